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
from evenhand.api.audit import Audit
from evenhand.api.audit import prepare as prepare_audit
from evenhand.api.parts import SILENT
from evenhand.api.run_options import AuditOptions
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.file_names import file_name
from evenhand.core.protocols import Model, Progress, ScoringModel
from evenhand.core.records import Execution, Request
from evenhand.core.registry import Option
from evenhand.pipeline.price import VANILLA, Pricing
from evenhand.pipeline.processes import in_processes
from evenhand.store.run import MANIFEST, Run, read_manifest

SUITES = ("political", "political:direct")
METRICS = ("ideology",)
TRIAL = 32
"""Prompts of a trial of speed: a batch of the paper's bar."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One way the model writes: as it is, or with a mitigation."""

    name: str
    mitigation: str | None = None
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The folder of its run."""
        return file_name(self.name, "condition")


@dataclass(frozen=True, slots=True)
class Study:
    """A model under several conditions, vanilla first."""

    model: Model
    conditions: tuple[Condition, ...]
    options: AuditOptions
    """What all audits share: suites, metrics, sampling, seed."""
    spec: str | None = None
    """The model by name: other processes load it too. None keeps all work in this process."""
    jobs: int = 1
    """Conditions at once."""

    def audit(self, condition: Condition, folder: Path) -> Audit:
        """The audit of one condition."""
        return _prepared(self.model, condition, self.options, folder)

    def runs(self, folder: Path, progress: Progress) -> dict[str, Run]:
        """The finished run of every condition, by name; a second start goes on where the first one ended."""
        named = {condition.name: condition for condition in self.conditions}
        if self.spec is None or self.jobs < 2:
            return {name: _run(self.audit(one, folder), progress) for name, one in named.items()}
        tasks = [_Task(self.spec, one, self.options, folder) for one in named.values()]
        paths = in_processes(_written, tasks, jobs=self.jobs, progress=progress, label="conditions")
        return {name: Run.open(path) for name, path in zip(named, paths, strict=True)}

    def prices(
        self, runs: Mapping[str, Run], folder: Path, source: str | None, progress: Progress
    ) -> pl.DataFrame:
        """What the mitigations cost; ``source`` names the model for its own perplexity."""
        own = None
        if source is not None and isinstance(self.model, ScoringModel):
            own = partial(registry.metric, "perplexity", {"source": source}, self._execution())
        rest = {name: run for name, run in runs.items() if name != VANILLA}
        return Pricing(folder, own, jobs=self.jobs).prices(runs[VANILLA], rest, progress)

    def pace(self, condition: Condition) -> float | None:
        """Tokens a second of one batch, after one to warm up; None where the model counts no tokens."""
        audit = self.audit(condition, Path())
        part = audit.parts[0]
        requests = [Request(prompt.id, prompt.text, (0,)) for prompt in part.prompts[:TRIAL]]
        for _ in range(2):
            start = time.perf_counter()
            tokens = sum(done.new_tokens or 0 for done in audit.model.generate(requests, part.spec))
            seconds = time.perf_counter() - start
        return tokens / seconds if tokens else None

    def _execution(self) -> Execution:
        options = self.options
        return Execution(
            device=options.get("device") or "auto",
            batch=options.get("batch"),
            offline=bool(options.get("offline")),
        )


class _Task(NamedTuple):
    """A condition for another process, which loads the model by its name."""

    spec: str
    condition: Condition
    options: AuditOptions
    folder: Path


def _prepared(model: str | Model, condition: Condition, options: AuditOptions, folder: Path) -> Audit:
    shared: AuditOptions = {**options, "out": folder / condition.folder}
    if condition.mitigation:
        shared["mitigate"] = condition.mitigation
        shared["mitigation_options"] = dict(condition.options)
    return prepare_audit(model, **shared)


def _written(task: _Task) -> Path:
    """The folder of a condition's finished run."""
    return _run(_prepared(task.spec, task.condition, task.options, task.folder), SILENT).path


def _run(audit: Audit, progress: Progress) -> Run:
    """The finished run of an audit; one that is there already is read, not compared again."""
    return Run.open(audit.folder) if _is_finished(audit) else audit.run(progress)


def _is_finished(audit: Audit) -> bool:
    if audit.fresh or not (audit.folder / MANIFEST).is_file():
        return False
    manifest = read_manifest(audit.folder)
    known = manifest.get("metrics") or {}
    asked = {name: json.loads(json.dumps(asdict(metric.info))) for name, metric in audit.metrics.items()}
    return bool(
        manifest.get("ended")
        and manifest["package"] == __version__
        and manifest["identity"] == json.loads(json.dumps(dict(audit.identity)))
        and manifest["growth"] == [asdict(audit.tier)]
        and all(_same_metric(known.get(name), info) for name, info in asked.items())
    )


def _same_metric(known: Mapping[str, Json] | None, asked: Mapping[str, Json]) -> bool:
    return known is not None and all(
        known.get(key) == asked.get(key) for key in ("version", "weights", "options")
    )


def biases(runs: Mapping[str, Run]) -> pl.DataFrame:
    """The tables ``distances`` of all runs, with their ``condition``."""
    return pl.concat(
        [
            run.table("distances").insert_column(0, pl.lit(name).alias("condition"))
            for name, run in runs.items()
        ]
    )


def described(study: Study, folder: Path) -> Sequence[str]:
    """What will be done, a line a condition."""
    return [
        f"{condition.name}: {study.audit(condition, folder).plan().lines[0]}"
        for condition in study.conditions
    ]
