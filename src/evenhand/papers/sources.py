"""The sources of a replication: models or replayed texts, each audited once, and their scored texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

import polars as pl

from evenhand.audits import audit
from evenhand.core.errors import InputError
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import Model
from evenhand.papers.replicate import ReplicationRequest
from evenhand.run_options import AuditOptions
from evenhand.store.run import Run


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


def run_warnings(runs: Mapping[str, Run]) -> tuple[str, ...]:
    """The warnings of every source's run."""
    return tuple(f"{name}: {text}" for name, run in runs.items() for text in run.manifest["warnings"])


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


def read_texts(run: Run, source: str, outputs: Mapping[tuple[str, str], str]) -> pl.DataFrame:
    """One row per text and group of its prompt, with the label and value of each output.

    ``outputs`` maps a metric and its output to the name of the label column; ``COLUMN_value`` holds the
    scores.
    """
    prompts = run.table("prompts").explode("groups").unnest("groups")
    prompts = prompts.select(
        "axis", "cluster", "mentions", "meta", group="name", prompt_id="id", prompt="text"
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
