"""``build``: a prompt suite from pages you have, as BOLD was collected from Wikipedia."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from evenhand.audits.options import BuildOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan
from evenhand.collection.collector import REASONS, CollectedPrompt, PageResult, collect_prompts
from evenhand.collection.group_rules import GroupRules, normalise_title, read_groups
from evenhand.collection.page_streams import SourcePage, linked_titles, read_pages
from evenhand.core.digests import Json, digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.store.atomic_writes import write_text
from evenhand.store.run_folder import RunFolder, default_folder, run_stage, utc_timestamp
from evenhand.store.text_sources import ReadProblem, TextSource, find_sources

if TYPE_CHECKING:
    from evenhand.store.text_sources import ReadProblem


PART = 2000
"""Pages between two commits."""
_TAKEN = {name: pl.Int64 if name in ("sentence", "byte") else pl.String for name in CollectedPrompt._fields}
_LINKS = {"list": pl.String, "title": pl.String}
_REJECTED = {"domain": pl.String, "group": pl.String, "reason": pl.String, "count": pl.Int64}


@dataclass(slots=True)
class CollectionOutcome:
    """What a collection came to."""

    pages: int = 0
    prompts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By domain and group."""
    rejected: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    problems: list[ReadProblem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CollectionRunner:
    """Sources, groups and the folder they are collected into."""

    sources: Sequence[TextSource]
    groups: GroupRules
    one_page: bool
    """Whether a plain text file is one page."""

    def run(self, folder: RunFolder, progress: Progress) -> CollectionOutcome:
        """Collect what is missing, then write one ``.jsonl`` a domain."""
        outcome = CollectionOutcome()
        groups = self._with_lists(folder, progress, outcome)
        keys: list[str] = []
        total = sum(source.size for source in self.sources)
        with progress.step("collecting", total) as advance:
            for source in self.sources:
                keys += self._collect(source, groups, folder, outcome, _FileProgress(advance))
        self._write(folder, keys, outcome)
        return outcome

    def _with_lists(self, folder: RunFolder, progress: Progress, outcome: CollectionOutcome) -> GroupRules:
        """The groups with the pages that list pages link to, which a first pass over dumps finds."""
        dumps = [source for source in self.sources if source.format == "mediawiki"]
        if not dumps or not self.groups.lists:
            return self.groups
        if not folder.has_shard("lists", "links"):
            with progress.step("reading lists", sum(source.size for source in dumps)) as advance:
                rows = [row for source in dumps for row in self._links(source, _FileProgress(advance))]
            folder.write_shard("lists", "links", pl.DataFrame(rows, _LINKS, orient="row"))
        listed: dict[str, list[str]] = {}
        for name, title in folder.read_shards("lists", ["links"]).collect().iter_rows():
            listed.setdefault(name, []).append(title)
        return GroupRules(self.groups.rules, listed)

    def _links(self, source: TextSource, place: _FileProgress) -> Iterator[tuple[str, str]]:
        # What is wrong with a file is told once, in the second pass.
        for page in read_pages(source, lambda problem: None, moved=place.move):
            if normalise_title(page.title) in self.groups.lists:
                yield from ((normalise_title(page.title), title) for title in linked_titles(page))

    def _collect(
        self,
        source: TextSource,
        groups: GroupRules,
        folder: RunFolder,
        outcome: CollectionOutcome,
        place: _FileProgress,
    ) -> list[str]:
        keys: list[str] = []
        stream = read_pages(source, outcome.problems.append, is_page=self.one_page, moved=place.move)
        while part := list(islice(stream, PART)):
            key = digest([source.path, source.size, len(keys)])
            keys.append(key)
            outcome.pages += len(part)
            if not (folder.has_shard("prompts", key) and folder.has_shard("rejected", key)):
                self._commit(key, part, groups, folder, source)
        return keys

    def _commit(
        self, key: str, part: Sequence[SourcePage], groups: GroupRules, folder: RunFolder, source: TextSource
    ) -> None:
        found = PageResult([], Counter())
        for page in part:
            one = collect_prompts(page, groups)
            found.prompts.extend(one.prompts)
            found.rejected.update(one.rejected)
        rows = [(*place, count) for place, count in found.rejected.items()]
        folder.write_shard("rejected", key, pl.DataFrame(rows, _REJECTED, orient="row"))
        taken = pl.DataFrame(found.prompts, _TAKEN, orient="row").with_columns(file=pl.lit(source.path))
        folder.write_shard("prompts", key, taken)

    def _write(self, folder: RunFolder, keys: Sequence[str], outcome: CollectionOutcome) -> None:
        lines: dict[str, list[str]] = {rule.domain: [] for rule in self.groups.rules}
        seen: set[tuple[str, str, str, str]] = set()
        counts: Counter[tuple[str, str, str]] = Counter()
        for row in _rows(folder, "prompts", keys):
            domain, group, key = row["domain"], row["group"], row["key"]
            if (domain, group, key, row["wiki"]) in seen:
                outcome.rejected[domain, group, "repeated"] += 1
                continue
            seen.add((domain, group, key, row["wiki"]))
            lines[domain].append(json.dumps(row | {"idx": counts[domain, group, key]}, ensure_ascii=False))
            counts[domain, group, key] += 1
            outcome.prompts[domain, group] += 1
        for row in _rows(folder, "rejected", keys):
            outcome.rejected[row["domain"], row["group"], row["reason"]] += row["count"]
        for domain, found in lines.items():
            path = folder.path / f"{domain}.jsonl"
            path.unlink(missing_ok=True)
            if found:
                write_text(path, "\n".join(found) + "\n")


class _FileProgress:
    """Turns how far a file is read into steps of a progress bar."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance
        self._at = 0

    def move(self, byte: int) -> None:
        """Say how many bytes of the file are behind us."""
        self._advance(byte - self._at)
        self._at = byte


def _rows(folder: RunFolder, stage: str, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    if keys:
        yield from folder.read_shards(stage, keys).collect().iter_rows(named=True)


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """What a collection left behind; the folder is a suite: ``--suite bold-subset:FOLDER``."""

    folder: Path
    pages: int
    prompts: Mapping[tuple[str, str], int]
    """Prompts by domain and group."""
    rejected: Mapping[str, int]
    """Sentences of the groups' pages that were not taken, by reason."""
    problems: tuple[ReadProblem, ...]
    """What could not be read, and where."""


@dataclass(frozen=True, slots=True)
class CollectionJob:
    """A collection with everything checked."""

    sources: tuple[TextSource, ...]
    groups: GroupRules
    one_page: bool
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        size = sum(source.size for source in self.sources)
        domains = dict.fromkeys(rule.domain for rule in self.groups.rules)
        return RunPlan(
            title="build bold",
            lines=(
                f"pages   {len(self.sources):,} files, {size / 1e6:,.1f} MB as stored",
                f"groups  {len(self.groups.rules)} in {', '.join(domains)}",
                f"folder  {self.folder}",
            ),
            folder=self.folder,
        )

    def run(self, progress: Progress = SILENT_PROGRESS) -> CollectionResult:
        """Collect, or go on with a collection that was stopped."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            folder.manifest.update(command=self.command, name="bold", warnings=[])
            with run_stage(folder, "collect") as record:
                outcome = CollectionRunner(self.sources, self.groups, self.one_page).run(folder, progress)
                built = _to_result(self.folder, outcome)
                record.update(_to_record(built))
            folder.manifest["ended"] = utc_timestamp()
            folder.save_manifest()
            write_text(self.folder / "card.md", write_card(built, self.sources))
        return built


@checks_options
def build(
    suite: str = "bold", *, progress: Progress = SILENT_PROGRESS, **options: Unpack[BuildOptions]
) -> CollectionResult:
    """The folder of a suite collected from pages, with what was taken and what was not.

    Arguments are those of ``evenhand build``. ``suite`` is ``bold``: the rules of its sections 3.2 and 3.3.
    """
    return prepare(suite, **options).run(progress)


@checks_options
def prepare(suite: str = "bold", **options: Unpack[BuildOptions]) -> CollectionJob:
    """A collection with everything found and checked, so that ``plan`` can be shown before ``run``."""
    if suite != "bold":
        raise InputError(f"there is nothing named {suite!r} to build", expected="bold", fix="use bold")
    given, dump = options["pages"], options["dump"]
    if (given is None) == (dump is None):
        raise InputError(
            "no pages were named" if dump is None else "both --pages and --dump were given",
            expected="--pages FOLDER or FILE (plain text, WikiExtractor's files), or --dump FILE.xml[.bz2]",
            fix="name one of them",
        )
    paths = [dump] if dump is not None else ([given] if isinstance(given, Path | str) else list(given or ()))
    sources, missing = find_sources([path for path in paths if path is not None])
    if missing:
        raise InputError(f"{missing[0].file} is not there", expected="files and folders", fix="check it")
    chosen = options["groups"]
    groups_file = Path(chosen) if chosen else asset_path("suites", "bold_groups.toml")
    one_page = dump is None and all(Path(path).is_dir() for path in paths if path is not None)
    identity: dict[str, Json] = {
        "command": "build",
        "sources": [source.identity() for source in sources],
        "groups": file_digest(groups_file) if groups_file.is_file() else "",
        "one_page": one_page,
    }
    out = options["out"]
    return CollectionJob(
        sources=tuple(_as_dump(source) if dump is not None else source for source in sources),
        groups=read_groups(groups_file),
        one_page=one_page,
        identity=identity,
        folder=Path(out) if out else default_folder("build", "bold", identity),
        command=options["command"] or "evenhand build bold",
        fresh=options["fresh"],
    )


def write_card(built: CollectionResult, sources: Sequence[TextSource]) -> str:
    """A card in Markdown: what was read, what was taken, what was left out and why."""
    taken = [f"| {domain} | {group} | {n:,} |" for (domain, group), n in sorted(built.prompts.items())]
    left = [f"| {reason} | {REASONS[reason]} | {built.rejected.get(reason, 0):,} |" for reason in REASONS]
    problems = [f"- {item.file}, byte {item.byte}: {item.reason}" for item in built.problems]
    return "\n".join(
        (
            "# A suite collected as BOLD was",
            "",
            f"{sum(built.prompts.values()):,} prompts from {built.pages:,} pages of {len(sources):,} files. "
            "Use it with `--suite bold-subset:FOLDER`; the sentences are its human baseline "
            "(`evenhand audit wikipedia --suite bold-subset:FOLDER`).",
            "",
            *("| domain | group | prompts |", "| --- | --- | ---: |", *taken),
            "",
            *("| left out | because | sentences |", "| --- | --- | ---: |", *left),
            "",
            *(("Not read:", "", *problems, "") if problems else ()),
        )
    )


def _to_result(folder: Path, outcome: CollectionOutcome) -> CollectionResult:
    rejected: dict[str, int] = {}
    for (_, _, reason), count in outcome.rejected.items():
        rejected[reason] = rejected.get(reason, 0) + count
    return CollectionResult(folder, outcome.pages, dict(outcome.prompts), rejected, tuple(outcome.problems))


def _to_record(built: CollectionResult) -> dict[str, Json]:
    return {
        "pages": built.pages,
        "prompts": {f"{domain}/{group}": count for (domain, group), count in built.prompts.items()},
        "rejected": dict(built.rejected),
        "problems": [asdict(problem) for problem in built.problems],
    }


def _as_dump(source: TextSource) -> TextSource:
    """The source, read as a dump whatever its name ends in."""
    return TextSource(source.corpus, source.path, "mediawiki", source.packing, source.size)
