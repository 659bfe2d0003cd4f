"""``build``: a prompt suite from pages you have, as BOLD was collected from Wikipedia."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from evenhand.api.parts import SILENT, Plan
from evenhand.api.result_options import BuildOptions
from evenhand.collection.cutting import REASONS
from evenhand.collection.groups import Groups, read_groups
from evenhand.collection.job import Collection, Outcome
from evenhand.core.assets import asset
from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.corpus.sources import Source, find_sources
from evenhand.store.atomic import write_text
from evenhand.store.folder import RunFolder, default_folder, now, stage

if TYPE_CHECKING:
    from evenhand.corpus.terms import Problem


@dataclass(frozen=True, slots=True)
class Built:
    """What a collection left behind; the folder is a suite: ``--suite bold-subset:FOLDER``."""

    folder: Path
    pages: int
    prompts: Mapping[tuple[str, str], int]
    """Prompts by domain and group."""
    rejected: Mapping[str, int]
    """Sentences of the groups' pages that were not taken, by reason."""
    problems: tuple[Problem, ...]
    """What could not be read, and where."""


@dataclass(frozen=True, slots=True)
class Build:
    """A collection with everything checked."""

    sources: tuple[Source, ...]
    groups: Groups
    one_page: bool
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        size = sum(source.size for source in self.sources)
        domains = dict.fromkeys(rule.domain for rule in self.groups.rules)
        return Plan(
            title="build bold",
            lines=(
                f"pages   {len(self.sources):,} files, {size / 1e6:,.1f} MB as stored",
                f"groups  {len(self.groups.rules)} in {', '.join(domains)}",
                f"folder  {self.folder}",
            ),
            folder=self.folder,
        )

    def run(self, progress: Progress = SILENT) -> Built:
        """Collect, or go on with a collection that was stopped."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            folder.manifest.update(command=self.command, name="bold", warnings=[])
            with stage(folder, "collect") as record:
                outcome = Collection(self.sources, self.groups, self.one_page).run(folder, progress)
                built = _built(self.folder, outcome)
                record.update(_recorded(built))
            folder.manifest["ended"] = now()
            folder.save_manifest()
            write_text(self.folder / "card.md", card_of(built, self.sources))
        return built


@checks_options
def build(suite: str = "bold", *, progress: Progress = SILENT, **options: Unpack[BuildOptions]) -> Built:
    """The folder of a suite collected from pages, with what was taken and what was not.

    Arguments are those of ``evenhand build``. ``suite`` is ``bold``: the rules of its sections 3.2 and 3.3.
    """
    return prepare(suite, **options).run(progress)


@checks_options
def prepare(suite: str = "bold", **options: Unpack[BuildOptions]) -> Build:
    """A collection with everything found and checked, so that ``plan`` can be shown before ``run``."""
    if suite != "bold":
        raise InputError(f"there is nothing named {suite!r} to build", accepted="bold", todo="use bold")
    given, dump = options["pages"], options["dump"]
    if (given is None) == (dump is None):
        raise InputError(
            "no pages were named" if dump is None else "both --pages and --dump were given",
            accepted="--pages FOLDER or FILE (plain text, WikiExtractor's files), or --dump FILE.xml[.bz2]",
            todo="name one of them",
        )
    paths = [dump] if dump is not None else ([given] if isinstance(given, Path | str) else list(given or ()))
    sources, missing = find_sources([path for path in paths if path is not None])
    if missing:
        raise InputError(f"{missing[0].file} is not there", accepted="files and folders", todo="check it")
    chosen = options["groups"]
    groups_file = Path(chosen) if chosen else asset("suites", "bold_groups.toml")
    one_page = dump is None and all(Path(path).is_dir() for path in paths if path is not None)
    identity: dict[str, Json] = {
        "command": "build",
        "sources": [source.identity() for source in sources],
        "groups": file_digest(groups_file) if groups_file.is_file() else "",
        "one_page": one_page,
    }
    out = options["out"]
    return Build(
        sources=tuple(_as_dump(source) if dump is not None else source for source in sources),
        groups=read_groups(groups_file),
        one_page=one_page,
        identity=identity,
        folder=Path(out) if out else default_folder("build", "bold", identity),
        command=options["command"] or "evenhand build bold",
        fresh=options["fresh"],
    )


def card_of(built: Built, sources: Sequence[Source]) -> str:
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


def _built(folder: Path, outcome: Outcome) -> Built:
    rejected: dict[str, int] = {}
    for (_, _, reason), count in outcome.rejected.items():
        rejected[reason] = rejected.get(reason, 0) + count
    return Built(folder, outcome.pages, dict(outcome.prompts), rejected, tuple(outcome.problems))


def _recorded(built: Built) -> dict[str, Json]:
    return {
        "pages": built.pages,
        "prompts": {f"{domain}/{group}": count for (domain, group), count in built.prompts.items()},
        "rejected": dict(built.rejected),
        "problems": [asdict(problem) for problem in built.problems],
    }


def _as_dump(source: Source) -> Source:
    """The source, read as a dump whatever its name ends in."""
    return Source(source.corpus, source.path, "mediawiki", source.packing, source.size)
