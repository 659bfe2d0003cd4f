"""The same audit of one model without and with mitigations: what changes, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from evenhand.api.audit import Audit, AuditOptions
from evenhand.api.audit import prepare as prepare_audit
from evenhand.core import registry
from evenhand.core.file_names import file_name
from evenhand.core.protocols import Metric, Model, Progress, ScoringModel, SetMetric
from evenhand.core.records import Request
from evenhand.core.registry import Option
from evenhand.pipeline.price import VANILLA, Pricing
from evenhand.store.run import Run

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

    def audit(self, condition: Condition, folder: Path) -> Audit:
        """The audit of one condition."""
        shared: AuditOptions = {**self.options, "out": folder / condition.folder}
        if condition.mitigation:
            shared["mitigate"] = condition.mitigation
            shared["mitigation_options"] = dict(condition.options)
        return prepare_audit(self.model, **shared)

    def runs(self, folder: Path, progress: Progress) -> dict[str, Run]:
        """The finished run of every condition, by name; a second start resumes."""
        return {condition.name: self.audit(condition, folder).run(progress) for condition in self.conditions}

    def prices(self, runs: Mapping[str, Run], folder: Path, source: str | None) -> pl.DataFrame:
        """What the mitigations cost; ``source`` names the model for its own perplexity."""
        own: Metric | SetMetric | None = None
        if source is not None and isinstance(self.model, ScoringModel):
            own = registry.metric("perplexity", {"source": source})
        pricing = Pricing(folder, own if isinstance(own, SetMetric) else None)
        rest = {name: run for name, run in runs.items() if name != VANILLA}
        return pricing.prices(runs[VANILLA], rest)

    def pace(self, condition: Condition) -> float | None:
        """Tokens a second in a trial of one batch; None where the model counts no tokens."""
        audit = self.audit(condition, Path())
        part = audit.parts[0]
        requests = [Request(prompt.id, prompt.text, (0,)) for prompt in part.prompts[:TRIAL]]
        start = time.perf_counter()
        tokens = sum(done.new_tokens or 0 for done in audit.model.generate(requests, part.spec))
        return tokens / (time.perf_counter() - start) if tokens else None


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
