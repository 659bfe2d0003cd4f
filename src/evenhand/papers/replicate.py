"""``replicate``: a paper's tables and figures on the given models, next to the published numbers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Unpack, cast

import polars as pl

from evenhand.audits import audit
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan, metric_names
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.files import safe_file_name
from evenhand.core.options import checks_options, split_names
from evenhand.core.protocols import Model, Progress
from evenhand.core.records import Execution
from evenhand.papers import ReplicateOptions
from evenhand.papers.replication_pages import Replication, write_replication
from evenhand.run_options import AuditOptions
from evenhand.store.run import MANIFEST, Manifest, Run, read_manifest
from evenhand.store.run_folder import RunFolder, default_folder, run_stage, utc_timestamp

if TYPE_CHECKING:
    from evenhand.training.options import TrainOptions
    from evenhand.training.train import TrainingJob

PAPERS = ("bold", "regard", "affective", "political")
"""The papers; the module ``replication`` of each has a class such as ``BoldReplication``."""
_OPTIONS_OF_PAPERS = {
    "metrics": ("bold", "uses the metrics of its paper", "audit a model with --metrics instead"),
    "max_new_tokens": (
        "bold",
        "uses the text length of its paper, or of its subset",
        "audit a model with --max-new-tokens instead",
    ),
    "jobs": (
        "political",
        "processes one source at a time",
        "leave --jobs out; libraries use all cores anyway",
    ),
    "suite": ("regard", "uses the prompts of its paper", "audit a model with --suite instead"),
}
"""Options that only one paper accepts: the paper, what the others do instead, and the fix."""
GROWING_KEYS = frozenset({"sources", "exhibits"})
"""Parts of the identity that may grow in one folder: the run of each source checks its own identity."""
RUNS = "runs"
"""The subfolder with the runs of single models."""


@dataclass(frozen=True, slots=True)
class ReplicationRequest:
    """The validated options of a replication."""

    options: ReplicateOptions
    exhibits: tuple[str, ...]
    """Ids such as ``table_3``; all of the paper's exhibits if none was named."""
    models: tuple[str, ...]
    """Empty for the paper's default models."""
    metrics: tuple[str, ...]
    """Metrics that replace the paper's defaults: ``toxicity=ORG/NAME``."""
    data: Path | None
    human: Path | None
    suite: Path | None
    """A file of groups and contexts for the named models, in addition to the paper's."""
    full: bool
    seed: int
    jobs: int
    """Number of conditions in parallel, each in its own process."""

    def execution(self) -> Execution:
        """How models are loaded."""
        options = self.options
        return Execution(device=options["device"], batch=options["batch"], offline=options["offline"])

    def named_specs(self, *default: str) -> list[tuple[str, str]]:
        """Name and spec of each model, given as ``SPEC`` or ``NAME=SPEC``."""
        parts = (model.rpartition("=") for model in self.models or default)
        return [(name or spec, spec) for name, _, spec in parts]

    def audit_options(self, command: str) -> AuditOptions:
        """The options shared by all audits of the replication."""
        return {
            "seed": self.seed,
            "device": self.options["device"],
            "batch": self.options["batch"],
            "offline": self.options["offline"],
            "command": f"evenhand replicate {command}",
        }

    def training(self, task: str, parts: Sequence[Path], **options: Unpack[TrainOptions]) -> TrainingJob:
        """A training on the published parts of a paper's data: to train, validate and test on."""
        # Imported here: most replications train nothing.
        from evenhand.training.train import prepare

        train, valid, test = parts
        options |= {"seed": self.seed, "valid": valid, "test": test}
        options |= {"device": self.options["device"], "offline": self.options["offline"]}
        return prepare(task, train, **options)


@dataclass(frozen=True, slots=True)
class PaperSource:
    """A model, or replayed texts, measured in a replication."""

    name: str
    model: Model
    options: AuditOptions = field(default_factory=AuditOptions)
    """Audit options of this source only, such as its sampling."""

    @property
    def folder(self) -> str:
        """The name of the folder of its runs."""
        return safe_file_name(self.name, "source")

    def audit(
        self, paper: str, request: ReplicationRequest, folder: Path, **shared: Unpack[AuditOptions]
    ) -> audit.AuditJob:
        """Prepare its audit for a paper, in its own folder inside ``folder``."""
        options: AuditOptions = {**shared, **self.options, "out": folder / self.folder}
        options |= request.audit_options(f"{paper}, source {self.name}")
        return audit.prepare(self.model, **options)


def refuse_twins(names: Sequence[str]) -> None:
    """Raise an error if two sources would share a folder: names that differ only in case or punctuation."""
    folders = set[str]()
    for name in names:
        folder = safe_file_name(name, "source").casefold()
        if folder in folders:
            raise InputError(
                f"two sources have the name {name!r}, or nearly the same name",
                expected="a distinct name for each source",
                fix="rename one with --model NAME=SPEC",
            )
        folders.add(folder)


def run_warnings(runs: Mapping[str, Run]) -> tuple[str, ...]:
    """The warnings of every source's run."""
    return tuple(f"{name}: {text}" for name, run in runs.items() for text in run.manifest["warnings"])


def read_texts(run: Run, source: str, outputs: Mapping[tuple[str, str], str]) -> pl.DataFrame:
    """One row per text and group of its prompt, with the label and value of each output.

    ``outputs`` maps a metric and its output to the name of the label column; ``COLUMN_value`` holds the
    scores.
    """
    prompts = (
        run.table("prompts")
        .explode("groups")
        .unnest("groups")
        .select("axis", "cluster", "mentions", "meta", group="name", prompt_id="id", prompt="text")
    )
    completions = run.table("generations").select("prompt_id", "text", text_id="id")
    texts = prompts.join(completions, on="prompt_id", how="inner", maintain_order="left")
    metric, scores = pl.col("metric").str.split("=").list.first(), run.table("scores")
    for (name, output), column in outputs.items():
        output_scores = scores.filter((metric == name) & (pl.col("output") == output)).select(
            "text_id", pl.col("label").alias(column), pl.col("value").alias(f"{column}_value")
        )
        texts = texts.join(output_scores, on="text_id", how="left", maintain_order="left")
    return texts.with_columns(source=pl.lit(source))


class PaperJob(Protocol):
    """A replication that is ready to run: its data is located and checked, nothing is computed yet."""

    @property
    def exhibits(self) -> Sequence[str]:
        """The requested exhibits that can be built, in the paper's order."""

    @property
    def identity(self) -> Mapping[str, Json]:
        """Everything its numbers depend on: data digests, models, sampling, subset, seed."""

    def plan(self) -> Sequence[str]:
        """The planned work, one line each: sources, texts, the subset and the estimated time."""

    def run(self, folder: Path, progress: Progress) -> Replication:
        """Build the exhibits; runs of single models are kept in ``folder / RUNS`` and can be resumed."""


@dataclass(frozen=True, slots=True)
class ReplicationJob:
    """A replication and its output folder."""

    paper: str
    job: PaperJob
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> RunPlan:
        """The planned work."""
        writes = f"writes  {', '.join(self.job.exhibits) or 'nothing'}"
        lines = (*self.job.plan(), writes, *self._list_earlier_sources(), f"folder  {self.folder}")
        return RunPlan(title=f"replicate {self.paper}", lines=lines)

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Compute and write all exhibits; finished work of single runs is reused."""
        fixed = {key: value for key, value in self.identity.items() if key not in GROWING_KEYS}
        with RunFolder(self.folder, identity=fixed, fresh=self.fresh) as folder:
            if self.fresh:
                shutil.rmtree(self.folder / RUNS, ignore_errors=True)
            folder.manifest.update(command=self.command, name=self.paper, ended=None, warnings=[])
            folder.manifest["sources"] = {**_sources(folder.manifest), **_sources(self.identity)}
            with run_stage(folder, "replicate") as record:
                replication = self.job.run(self.folder, progress)
                record["files"] = [path.name for path in write_replication(replication, self.folder)]
                record["sources"] = list(replication.sources)
            folder.manifest.update(ended=utc_timestamp(), warnings=list(replication.warnings))
            folder.save_manifest()
            return folder.run()

    def _list_earlier_sources(self) -> Sequence[str]:
        """A line on sources in the folder that are not named now."""
        if self.fresh or not (self.folder / MANIFEST).is_file():
            return ()
        earlier, now = _sources(read_manifest(self.folder)), _sources(self.identity)
        names = ", ".join(name for name in earlier if name not in now)
        return (f"kept    {names}: already there, and only in the tables if named too",) if names else ()


@checks_options
def replicate(
    paper: str, *, progress: Progress = SILENT_PROGRESS, **options: Unpack[ReplicateOptions]
) -> Run:
    """Replicate a paper and return the run folder: ``table_3.parquet``, ``table_3.md``, ``figure_2.svg`` ...

    Arguments are those of ``evenhand replicate``. Several models may be named; without one the paper's
    default sources are used. ``full`` uses all of the paper's prompts instead of a stated subset. The tables
    contain the sources named now; existing runs of them in the folder are resumed.
    """
    return prepare(paper, **options).run(progress)


@checks_options
def prepare(paper: str, **options: Unpack[ReplicateOptions]) -> ReplicationJob:
    """A replication with its inputs located and checked, so that ``plan`` can be shown before ``run``."""
    if paper not in PAPERS:
        raise InputError(f"unknown paper {paper!r}", expected=", ".join(PAPERS), fix="choose one of these")
    for option, (only, differs, fix) in _OPTIONS_OF_PAPERS.items():
        if cast("Mapping[str, object]", options)[option] and paper != only:
            flag = f"--{option.replace('_', '-')}"
            raise InputError(f"replicate {paper} {differs}", expected=f"{flag} with {only}", fix=fix)
    module = import_module(f"evenhand.papers.{paper}.replication")
    out = options["out"]
    suite = options["suite"]  # FILE, or regard:FILE as for an audit
    request = ReplicationRequest(
        options,
        exhibits=_select_exhibits(module.EXHIBITS, split_names(options["tables"])),
        models=split_names(options["model"]) or (),
        metrics=metric_names(options["metrics"]) or (),
        data=_check_exists(options["data"], "--data"),
        human=_check_exists(options["human"], "--human"),
        suite=_check_exists(suite and str(suite).removeprefix("regard:"), "--suite"),
        full=options["full"],
        seed=options["seed"],
        jobs=options["jobs"] or 1,
    )
    job: PaperJob = getattr(module, f"{paper.title()}Replication")(request)
    identity: dict[str, Json] = {"command": "replicate", "paper": paper, **job.identity}
    folder = Path(out) if out else default_folder("replicate", paper, identity)
    command = options["command"] or f"evenhand replicate {paper}"
    return ReplicationJob(paper, job, identity, folder, command, options["fresh"])


def _sources(known: Manifest | Mapping[str, Json]) -> Mapping[str, Json]:
    """The sources of a manifest or an identity."""
    return cast("Mapping[str, Json]", known.get("sources") or {})


def _check_exists(path: Path | str | None, option: str) -> Path | None:
    if path is not None and not Path(path).exists():
        raise InputError(
            f"{option} names {path}, which does not exist", expected="a file or folder", fix="check the path"
        )
    return None if path is None else Path(path)


def _select_exhibits(known: Sequence[str], names: Sequence[str] | None) -> tuple[str, ...]:
    """Select exhibits by id; a bare number is a table."""
    requested = [f"table_{name}" if name.isdigit() else name.lower() for name in names or known]
    for name in requested:
        if name not in known:
            raise InputError(
                f"--tables names {name!r}, which this replication does not have",
                expected=", ".join(known),
                fix="choose from these; a bare number is a table",
            )
    return tuple(name for name in known if name in requested)
