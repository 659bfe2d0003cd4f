"""The same audit of one model without and with mitigations: what changes, and what it costs."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl

from evenhand._version import __version__
from evenhand.audits.audit import AuditJob
from evenhand.audits.audit import prepare as prepare_audit
from evenhand.audits.mitigation_cost import VANILLA, MitigationCosts
from evenhand.audits.parallel import map_processes
from evenhand.audits.run_setup import SILENT_PROGRESS
from evenhand.core import registry
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import Model, Progress, ScoringModel
from evenhand.core.records import Execution, Request
from evenhand.core.registry import Option
from evenhand.run_options import AuditOptions
from evenhand.store.run import MANIFEST, Run, read_manifest

SUITES = ("political", "political:direct")
METRICS = ("ideology",)
TRIAL = 32
"""Prompts of a trial of speed: a batch of the paper's bar."""


@dataclass(frozen=True, slots=True)
class SweepCondition:
    """One way the model writes: as it is, or with a mitigation."""

    name: str
    mitigation: str | None = None
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The folder of its run."""
        return safe_file_name(self.name, "condition")


@dataclass(frozen=True, slots=True)
class MitigationSweep:
    """A model under several conditions, vanilla first."""

    model: Model
    conditions: tuple[SweepCondition, ...]
    options: AuditOptions
    """What all audits share: suites, metrics, sampling, seed."""
    spec: str | None = None
    """The model by name: other processes load it too. None keeps all work in this process."""
    jobs: int = 1
    """Conditions at once."""

    def audit(self, condition: SweepCondition, folder: Path) -> AuditJob:
        """The audit of one condition."""
        return _prepare_audit(self.model, condition, self.options, folder)

    def runs(self, folder: Path, progress: Progress) -> dict[str, Run]:
        """The finished run of every condition, by name; a second start goes on where the first one ended."""
        named = {condition.name: condition for condition in self.conditions}
        if self.spec is None or self.jobs < 2:
            return {name: _run(self.audit(one, folder), progress) for name, one in named.items()}
        tasks = [_Task(self.spec, one, self.options, folder) for one in named.values()]
        paths = map_processes(_run_task, tasks, jobs=self.jobs, progress=progress, label="conditions")
        return {name: Run.open(path) for name, path in zip(named, paths, strict=True)}

    def compute_costs(
        self, runs: Mapping[str, Run], folder: Path, source: str | None, progress: Progress
    ) -> pl.DataFrame:
        """What the mitigations cost; ``source`` names the model for its own perplexity."""
        own = None
        if source is not None and isinstance(self.model, ScoringModel):
            options = self.options
            execution = Execution(
                device=options.get("device") or "auto",
                batch=options.get("batch"),
                offline=bool(options.get("offline")),
            )
            own = partial(registry.create_metric, "perplexity", {"source": source}, execution)
        rest = {name: run for name, run in runs.items() if name != VANILLA}
        return MitigationCosts(folder, own, jobs=self.jobs).compute(runs[VANILLA], rest, progress)

    def measure_throughput(self, condition: SweepCondition) -> float | None:
        """Tokens a second of one batch, after one to warm up; None where the model counts no tokens."""
        audit = self.audit(condition, Path())
        part = audit.parts[0]
        requests = [Request(prompt.id, prompt.text, (0,)) for prompt in part.prompts[:TRIAL]]
        for _ in range(2):
            start = time.perf_counter()
            tokens = sum(done.new_tokens or 0 for done in audit.model.generate(requests, part.spec))
            seconds = time.perf_counter() - start
        return tokens / seconds if tokens else None


class _Task(NamedTuple):
    """A condition for another process, which loads the model by its name."""

    spec: str
    condition: SweepCondition
    options: AuditOptions
    folder: Path


def _prepare_audit(
    model: str | Model, condition: SweepCondition, options: AuditOptions, folder: Path
) -> AuditJob:
    shared: AuditOptions = {**options, "out": folder / condition.folder}
    if condition.mitigation:
        shared["mitigate"] = condition.mitigation
        shared["mitigation_options"] = dict(condition.options)
    return prepare_audit(model, **shared)


def _run_task(task: _Task) -> Path:
    """The folder of a condition's finished run."""
    return _run(_prepare_audit(task.spec, task.condition, task.options, task.folder), SILENT_PROGRESS).path


def _run(audit: AuditJob, progress: Progress) -> Run:
    """The finished run of an audit; one that is there already is read, not compared again."""
    if audit.fresh or not (audit.folder / MANIFEST).is_file():
        return audit.run(progress)
    manifest = read_manifest(audit.folder)
    known = manifest.get("metrics") or {}
    same = ("version", "weights", "options")
    infos = {name: json.loads(json.dumps(asdict(metric.info))) for name, metric in audit.metrics.items()}
    is_finished = (
        manifest.get("ended")
        and manifest["package"] == __version__
        and manifest["identity"] == json.loads(json.dumps(dict(audit.identity)))
        and manifest["growth"] == [asdict(audit.sample_tier)]
        and all(name in known for name in infos)
        and all(known[name].get(key) == info.get(key) for name, info in infos.items() for key in same)
    )
    return Run.open(audit.folder) if is_finished else audit.run(progress)


def join_distances(runs: Mapping[str, Run]) -> pl.DataFrame:
    """The tables ``distances`` of all runs, with their ``condition``."""
    return pl.concat(
        [
            run.table("distances").insert_column(0, pl.lit(name).alias("condition"))
            for name, run in runs.items()
        ]
    )


def describe_sweep(study: MitigationSweep, folder: Path) -> Sequence[str]:
    """What will be done, a line a condition."""
    return [
        f"{condition.name}: {study.audit(condition, folder).plan().lines[0]}"
        for condition in study.conditions
    ]
