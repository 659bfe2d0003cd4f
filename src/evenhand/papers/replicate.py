"""``replicate``: the tables and figures of a paper, on the given models, paper beside ours."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, Unpack, cast

from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan, metric_names
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, split_names
from evenhand.core.protocols import Progress
from evenhand.core.records import Execution
from evenhand.papers.options import ReplicateOptions
from evenhand.papers.replication_pages import Replication, write_replication
from evenhand.store.run import MANIFEST, Manifest, Run, read_manifest
from evenhand.store.run_folder import RunFolder, default_folder, run_stage, utc_timestamp

PAPERS = ("bold", "regard", "affective", "political")
SWAPPABLE = ("bold",)
"""Papers whose metrics may be put in place by others of their name, and whose length is open."""
PARALLEL = ("political",)
"""Papers that work on several conditions of a model at once."""
EXTENDABLE = ("regard",)
"""Papers whose prompts take a user's own groups and contexts."""
GROWING_KEYS: Mapping[str, frozenset[str]] = {
    "bold": frozenset({"sources"}),
    "regard": frozenset({"sources"}),
    "political": frozenset({"sources", "exhibits"}),
}
"""Papers whose folder takes more of something later: each source's run inside guards its own identity."""
STAGE = "replicate"
RUNS = "runs"
"""Where a replication keeps the runs of single models."""


@dataclass(frozen=True, slots=True)
class ReplicationRequest:
    """What is asked of a paper."""

    data: Path | None
    exhibits: tuple[str, ...]
    """Ids such as ``table_3``; all of the paper's where none was named."""
    models: tuple[str, ...]
    """Empty where the paper's own default is wanted."""
    metrics: tuple[str, ...]
    """Metrics to take in place of the paper's default ones: ``toxicity=ORG/NAME``."""
    human: Path | None
    suite: Path | None
    """A file of groups and contexts that named models are asked about besides the paper's."""
    max_new_tokens: int | None
    """The length of texts where the paper prints none; None takes ours."""
    full: bool
    seed: int
    device: str
    batch: int | None
    offline: bool
    jobs: int = 1
    """Conditions at once, each in a process of its own."""

    def execution(self) -> Execution:
        """How models are loaded."""
        return Execution(device=self.device, batch=self.batch, offline=self.offline)


class PaperJob(Protocol):
    """A replication that is ready to run: data found and checked, nothing computed."""

    @property
    def identity(self) -> Mapping[str, Json]:
        """What its numbers depend on: data digests, models, sampling, subset, seed."""
        ...

    def plan(self) -> Sequence[str]:
        """What will be done, a line each: sources, texts, the subset and the estimated time."""
        ...

    def run(self, folder: Path, progress: Progress) -> Replication:
        """The exhibits; runs of single models are kept in ``folder / RUNS``: a second start resumes."""
        ...


class PaperModule(Protocol):
    """The module of a paper, ``evenhand.papers.<name>``."""

    EXHIBITS: tuple[str, ...]
    """All it can write, in the paper's order: ``table_1``, ``figure_2`` ..."""

    def prepare(self, request: ReplicationRequest) -> PaperJob:
        """The replication with its data found and checked."""
        ...


@dataclass(frozen=True, slots=True)
class ReplicationJob:
    """A replication and the folder it is written to."""

    paper: str
    job: PaperJob
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        lines = (*self.job.plan(), *self._list_earlier_sources(), f"folder  {self.folder}")
        return RunPlan(title=f"replicate {self.paper}", lines=lines, folder=self.folder)

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Compute and write every exhibit; what single runs finished is not done again."""
        with RunFolder(self.folder, identity=self._owned_identity(), fresh=self.fresh) as folder:
            if self.fresh:
                shutil.rmtree(self.folder / RUNS, ignore_errors=True)
            folder.manifest.update(command=self.command, name=self.paper, ended=None, warnings=[])
            folder.manifest["sources"] = {**_earlier(folder.manifest), **self._sources()}
            with run_stage(folder, STAGE) as record:
                replication = self.job.run(self.folder, progress)
                record["files"] = [path.name for path in write_replication(replication, self.folder)]
                record["sources"] = list(replication.sources)
            folder.manifest.update(ended=utc_timestamp(), warnings=list(replication.warnings))
            folder.save_manifest()
            return folder.run()

    def _owned_identity(self) -> dict[str, Json]:
        """What may not change in the folder: a source may be added, and finished ones are reused."""
        growing = GROWING_KEYS.get(self.paper, frozenset())
        return {key: value for key, value in self.identity.items() if key not in growing}

    def _sources(self) -> Mapping[str, Json]:
        return cast("Mapping[str, Json]", self.identity.get("sources") or {})

    def _list_earlier_sources(self) -> Sequence[str]:
        """What the folder holds besides what is named now."""
        if self.fresh or not (self.folder / MANIFEST).is_file():
            return ()
        now = self._sources()
        names = ", ".join(name for name in _earlier(read_manifest(self.folder)) if name not in now)
        return (f"kept    {names}: there already, and only in the tables if named too",) if names else ()


@checks_options
def replicate(
    paper: str, *, progress: Progress = SILENT_PROGRESS, **options: Unpack[ReplicateOptions]
) -> Run:
    """The folder with a paper's tables and figures: ``table_3.parquet``, ``table_3.md``, ``figure_2.svg`` ...

    Arguments are those of ``evenhand replicate``. A model may be named more than once; without one the
    paper's default sources are used. ``full`` takes all of the paper's prompts instead of a stated subset.
    The tables hold the sources named now; a folder that has runs of some of them goes on from there.
    """
    return prepare(paper, **options).run(progress)


@checks_options
def prepare(paper: str, **options: Unpack[ReplicateOptions]) -> ReplicationJob:
    """A replication with everything found and checked, so that ``plan`` can be shown before ``run``."""
    if paper not in PAPERS:
        raise InputError(
            f"the paper {paper!r} is not known", expected=", ".join(PAPERS), fix="name one of these"
        )
    if options["metrics"] and paper not in SWAPPABLE:
        raise InputError(
            f"replicate {paper} measures with the metrics of its paper",
            expected=f"--metrics with {', '.join(SWAPPABLE)}",
            fix="audit a model with --metrics instead",
        )
    if options["max_new_tokens"] and paper not in SWAPPABLE:
        raise InputError(
            f"replicate {paper} writes texts as long as its paper's, or as its subset's",
            expected=f"--max-new-tokens with {', '.join(SWAPPABLE)}",
            fix="audit a model with --max-new-tokens instead",
        )
    if options["jobs"] and paper not in PARALLEL:
        raise InputError(
            f"replicate {paper} works on one source after the other",
            expected=f"--jobs with {', '.join(PARALLEL)}",
            fix="leave --jobs out; libraries use all cores as it is",
        )
    if options["suite"] and paper not in EXTENDABLE:
        raise InputError(
            f"replicate {paper} asks with the prompts of its paper",
            expected=f"--suite with {', '.join(EXTENDABLE)}",
            fix="audit a model with --suite instead",
        )
    module: PaperModule = import_module(f"evenhand.papers.{paper}")
    out = options["out"]
    prepared = module.prepare(_request(module.EXHIBITS, options))
    identity: dict[str, Json] = {"command": "replicate", "paper": paper, **prepared.identity}
    return ReplicationJob(
        paper=paper,
        job=prepared,
        identity=identity,
        folder=Path(out) if out else default_folder("replicate", paper, identity),
        command=options["command"] or f"evenhand replicate {paper}",
        fresh=options["fresh"],
    )


def _earlier(manifest: Manifest) -> Mapping[str, Json]:
    """The sources a folder has runs of."""
    return cast("Mapping[str, Json]", manifest.get("sources") or {})


def _request(known: Sequence[str], options: ReplicateOptions) -> ReplicationRequest:
    return ReplicationRequest(
        data=_check_exists(options["data"], "--data"),
        exhibits=_select_exhibits(known, split_names(options["tables"])),
        models=split_names(options["model"]) or (),
        metrics=metric_names(options["metrics"]) or (),
        human=_check_exists(options["human"], "--human"),
        suite=_suite_file(options["suite"]),
        max_new_tokens=options["max_new_tokens"],
        full=options["full"],
        seed=options["seed"],
        device=options["device"],
        batch=options["batch"],
        offline=options["offline"],
        jobs=options["jobs"] or 1,
    )


def _suite_file(given: Path | str | None) -> Path | None:
    """The file of ``--suite FILE``, or of ``--suite regard:FILE`` as an audit takes it."""
    return _check_exists(given and str(given).removeprefix("regard:"), "--suite")


def _check_exists(path: Path | str | None, option: str) -> Path | None:
    if path is None:
        return None
    if not Path(path).exists():
        raise InputError(
            f"{option} names {path}, which is not there", expected="a file or folder", fix="check the path"
        )
    return Path(path)


def _select_exhibits(known: Sequence[str], names: Sequence[str] | None) -> tuple[str, ...]:
    """Exhibits by id; a bare number is a table."""
    wanted = [f"table_{name}" if name.isdigit() else name.lower() for name in names or known]
    for name in wanted:
        if name not in known:
            raise InputError(
                f"--tables names {name!r}, which this replication does not have",
                expected=", ".join(known),
                fix="name some of these; a bare number is a table",
            )
    return tuple(name for name in known if name in wanted)
