"""``build``: collects a prompt suite from your own pages, as BOLD did from Wikipedia."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Unpack

import polars as pl

from evenhand.audits.options import BuildOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan
from evenhand.collection.collector import (
    REASONS,
    CollectedPrompt,
    GroupRules,
    collect_prompts,
    normalise_title,
    read_groups,
)
from evenhand.collection.page_streams import SourcePage, linked_titles, read_pages
from evenhand.core.digests import Json, digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.store.atomic_writes import write_text
from evenhand.store.run_folder import RunFolder, default_folder, run_stage, utc_timestamp
from evenhand.store.text_sources import ReadProblem, TextSource, find_sources

PART = 2000
"""Pages per commit."""
_PROMPTS = {name: pl.Int64 if name in ("sentence", "byte") else pl.String for name in CollectedPrompt._fields}
_PLACE = ["domain", "group", "key", "wiki"]
"""The unique key of a prompt; ``idx`` numbers the sentences with the same first three fields."""
_LINKS = {"list": pl.String, "title": pl.String}
_REJECTED = {"domain": pl.String, "group": pl.String, "reason": pl.String, "count": pl.Int64}


@dataclass(slots=True)
class CollectionResult:
    """A finished collection; the folder is a suite: ``--suite bold-subset:FOLDER``."""

    folder: Path
    pages: int = 0
    prompts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of prompts by domain and group."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Number of rejected sentences on the groups' pages, by reason."""
    problems: Sequence[ReadProblem] = ()
    """Read errors, with their location."""


@dataclass(frozen=True, slots=True)
class CollectionJob:
    """A collection whose inputs were checked."""

    sources: tuple[TextSource, ...]
    groups: GroupRules
    one_page: bool
    """Whether each plain text file is one page."""
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> RunPlan:
        """The plan to show before the run starts."""
        size = sum(source.size for source in self.sources)
        domains = dict.fromkeys(rule.domain for rule in self.groups.rules)
        lines = (
            f"pages   {len(self.sources):,} files, {size / 1e6:,.1f} MB as stored",
            f"groups  {len(self.groups.rules)} in {', '.join(domains)}",
            f"folder  {self.folder}",
        )
        return RunPlan("build bold", lines)

    def run(self, progress: Progress = SILENT_PROGRESS) -> CollectionResult:
        """Collect, or resume an interrupted collection."""
        result = CollectionResult(self.folder)
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            folder.manifest.update(command=self.command, name="bold", warnings=[])
            with run_stage(folder, "collect") as record:
                self._collect(folder, progress, result)
                record.update(
                    pages=result.pages,
                    prompts={f"{domain}/{group}": n for (domain, group), n in result.prompts.items()},
                    rejected=dict(result.rejected),
                    problems=[asdict(problem) for problem in result.problems],
                )
            folder.manifest["ended"] = utc_timestamp()
            folder.save_manifest()
            write_text(self.folder / "card.md", write_card(result, self.sources))
        return result

    def _collect(self, folder: RunFolder, progress: Progress, result: CollectionResult) -> None:
        """Collect missing parts, then write one ``.jsonl`` per domain."""
        groups = self._with_lists(folder, progress)
        keys, problems = list[str](), list[ReadProblem]()
        with progress.step("collecting", sum(source.size for source in self.sources)) as advance:
            for source in self.sources:
                stream = read_pages(source, problems.append, is_page=self.one_page, advance=advance)
                part_keys: list[str] = []
                while part := list(islice(stream, PART)):
                    part_keys.append(digest([source.path, source.size, len(part_keys)]))
                    result.pages += len(part)
                    _commit(part_keys[-1], part, groups, folder, source)
                keys += part_keys
        result.problems = tuple(problems)
        self._write(folder, keys, result)

    def _with_lists(self, folder: RunFolder, progress: Progress) -> GroupRules:
        """The groups with the pages that list pages link to, found in a first pass over dumps."""
        dumps = [source for source in self.sources if source.format == "mediawiki"]
        lists = self.groups.lists
        if not dumps or not lists:
            return self.groups
        if not folder.has_shard("lists", "links"):
            with progress.step("reading lists", sum(source.size for source in dumps)) as advance:
                # Problems of a file are reported once, in the second pass.
                pages = (read_pages(source, lambda problem: None, advance=advance) for source in dumps)
                rows = [
                    (name, title)
                    for page in chain.from_iterable(pages)
                    if (name := normalise_title(page.title)) in lists
                    for title in linked_titles(page)
                ]
            folder.write_shard("lists", "links", pl.DataFrame(rows, _LINKS, orient="row"))
        links = folder.read_shards("lists", ["links"]).group_by("list").agg("title").collect()
        linked = {name: frozenset(map(normalise_title, titles)) for name, titles in links.iter_rows()}
        return GroupRules(self.groups.rules, linked)

    def _write(self, folder: RunFolder, keys: Sequence[str], result: CollectionResult) -> None:
        prompts, rejected = (
            folder.read_shards(stage, keys).collect() if keys else pl.DataFrame(schema=schema)
            for stage, schema in (("prompts", _PROMPTS), ("rejected", _REJECTED))
        )
        # The same sentence may occur twice on a page, or in two files.
        different = prompts.unique(_PLACE, keep="first", maintain_order=True)
        if repeated := prompts.height - different.height:
            result.rejected["repeated"] += repeated
        for reason, number in rejected.select("reason", "count").iter_rows():
            result.rejected[reason] += number
        numbered = different.with_columns(idx=pl.int_range(pl.len()).over(_PLACE[:3]))
        lines: dict[str, list[str]] = {rule.domain: [] for rule in self.groups.rules}
        for row in numbered.iter_rows(named=True):
            result.prompts[row["domain"], row["group"]] += 1
            lines[row["domain"]].append(json.dumps(row, ensure_ascii=False))
        for domain, of_domain in lines.items():
            path = folder.path / f"{domain}.jsonl"
            path.unlink(missing_ok=True)
            if of_domain:
                write_text(path, "\n".join(of_domain) + "\n")


def _commit(
    key: str, part: Sequence[SourcePage], groups: GroupRules, folder: RunFolder, source: TextSource
) -> None:
    """Collect a part that does not exist yet."""
    if folder.has_shard("prompts", key) and folder.has_shard("rejected", key):
        return
    results = [collect_prompts(page, groups) for page in part]
    counts = sum((rejected for _, rejected in results), Counter[tuple[str, str, str]]())
    rejected = pl.DataFrame([(*place, count) for place, count in counts.items()], _REJECTED, orient="row")
    folder.write_shard("rejected", key, rejected)
    rows = list(chain.from_iterable(prompts for prompts, _ in results))
    prompts = pl.DataFrame(rows, _PROMPTS, orient="row").with_columns(file=pl.lit(source.path))
    folder.write_shard("prompts", key, prompts)


@checks_options
def build(
    suite: str = "bold", *, progress: Progress = SILENT_PROGRESS, **options: Unpack[BuildOptions]
) -> CollectionResult:
    """Collect a suite from pages; return its folder and counts of accepted and rejected sentences.

    Arguments are those of ``evenhand build``. ``suite`` is ``bold``: the rules of its sections 3.2 and 3.3.
    """
    return prepare(suite, **options).run(progress)


@checks_options
def prepare(suite: str = "bold", **options: Unpack[BuildOptions]) -> CollectionJob:
    """Find and check all inputs, so that ``plan`` can be shown before ``run``."""
    if suite != "bold":
        raise InputError(f"unknown suite {suite!r}", expected="bold", fix="use bold")
    given, dump = options["pages"], options["dump"]
    if (given is None) == (dump is None):
        raise InputError(
            "no pages were given" if dump is None else "both --pages and --dump were given",
            expected="--pages FOLDER or FILE (plain text, WikiExtractor's files), or --dump FILE.xml[.bz2]",
            fix="give one of them",
        )
    if dump is not None:
        paths: list[Path | str] = [dump]
    else:
        paths = [given] if isinstance(given, Path | str) else list(given or ())
    sources, missing = find_sources(paths)
    if missing:
        raise InputError(f"{missing[0].file} does not exist", expected="a file or folder", fix="check it")
    groups_file = Path(options["groups"] or asset_path("suites", "bold_groups.toml"))
    one_page = dump is None and all(Path(path).is_dir() for path in paths)
    identity: dict[str, Json] = {
        "command": "build",
        "sources": [source.identity() for source in sources],
        "groups": file_digest(groups_file) if groups_file.is_file() else "",
        "one_page": one_page,
    }
    return CollectionJob(
        # A dump, whatever its extension.
        sources=tuple(
            replace(source, format="mediawiki") if dump is not None else source for source in sources
        ),
        groups=read_groups(groups_file),
        one_page=one_page,
        identity=identity,
        folder=Path(options["out"] or default_folder("build", "bold", identity)),
        command=options["command"] or "evenhand build bold",
        fresh=options["fresh"],
    )


def write_card(result: CollectionResult, sources: Sequence[TextSource]) -> str:
    """Write a card in Markdown: pages read, sentences accepted, and sentences rejected by reason."""
    accepted = [f"| {domain} | {group} | {n:,} |" for (domain, group), n in sorted(result.prompts.items())]
    rejected = [f"| {reason} | {why} | {result.rejected[reason]:,} |" for reason, why in REASONS.items()]
    problems = [f"- {item.file}, byte {item.byte}: {item.reason}" for item in result.problems]
    return "\n".join(
        (
            "# A suite collected with BOLD's method",
            "",
            f"{result.prompts.total():,} prompts from {result.pages:,} pages of {len(sources):,} files. "
            "Use it with `--suite bold-subset:FOLDER`; the sentences are its human baseline "
            "(`evenhand audit wikipedia --suite bold-subset:FOLDER`).",
            "",
            *("| domain | group | prompts |", "| --- | --- | ---: |", *accepted),
            "",
            *("| rejected | reason | sentences |", "| --- | --- | ---: |", *rejected),
            "",
            *(("Read errors:", "", *problems, "") if problems else ()),
        )
    )
