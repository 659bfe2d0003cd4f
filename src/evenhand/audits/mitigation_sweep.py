"""The same audit of one model without and with mitigations: what changes, and what it costs."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import polars as pl

from evenhand._version import __version__
from evenhand.audits.audit import AuditJob
from evenhand.audits.audit import prepare as prepare_audit
from evenhand.audits.mitigation_cost import compute_costs
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
        return _prepare_audit(self.model, self.options, folder, condition)

    def runs(self, folder: Path, progress: Progress) -> dict[str, Run]:
        """The finished run of every condition, by name; a second start goes on where the first one ended."""
        if self.spec is None or self.jobs < 2:
            return {one.name: _run(self.audit(one, folder), progress) for one in self.conditions}
        work = partial(_run_elsewhere, self.spec, self.options, folder)
        paths = map_processes(work, self.conditions, jobs=self.jobs, progress=progress, label="conditions")
        return {one.name: Run.open(path) for one, path in zip(self.conditions, paths, strict=True)}

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
        return compute_costs(runs, folder, own, jobs=self.jobs, progress=progress)

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


def _prepare_audit(
    model: str | Model, options: AuditOptions, folder: Path, condition: SweepCondition
) -> AuditJob:
    shared: AuditOptions = {**options, "out": folder / condition.folder}
    if condition.mitigation:
        shared["mitigate"] = condition.mitigation
        shared["mitigation_options"] = dict(condition.options)
    return prepare_audit(model, **shared)


def _run_elsewhere(model: str, options: AuditOptions, folder: Path, condition: SweepCondition) -> Path:
    """The folder of a condition's finished run, in a process that loads the model by its name."""
    return _run(_prepare_audit(model, options, folder, condition), SILENT_PROGRESS).path


def _run(audit: AuditJob, progress: Progress) -> Run:
    """The finished run of an audit; one that is there already is read, not compared again."""
    if audit.options["fresh"] or not (audit.folder / MANIFEST).is_file():
        return audit.run(progress)
    manifest = read_manifest(audit.folder)
    known = manifest.get("metrics") or {}
    same = ("version", "weights", "options")
    # As a manifest has them: with lists for tuples.
    identity, infos = json.loads(
        json.dumps([audit.identity, {name: asdict(metric.info) for name, metric in audit.metrics.items()}])
    )
    is_finished = (
        manifest.get("ended")
        and manifest["package"] == __version__
        and manifest["identity"] == identity
        and manifest["growth"] == [asdict(audit.sample_tier)]
        and infos.keys() <= known.keys()
        and all(known[name].get(key) == info.get(key) for name, info in infos.items() for key in same)
    )
    return Run.open(audit.folder) if is_finished else audit.run(progress)


def join_distances(runs: Mapping[str, Run]) -> pl.DataFrame:
    """The tables ``distances`` of all runs, with their ``condition``."""
    condition = {name: pl.lit(name).alias("condition") for name in runs}
    return pl.concat([run.table("distances").insert_column(0, condition[name]) for name, run in runs.items()])
