"""Beyond politics: the same calibration with a regard head, on the suite ``regard``, before and after."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl

from evenhand.audits.compare import prepare as prepare_comparison
from evenhand.audits.debias import MODES
from evenhand.audits.tradeoff import VANILLA, MitigationSweep, SweepCondition
from evenhand.core.protocols import Model, Progress
from evenhand.papers.political.bias_tables import estimate_columns
from evenhand.papers.replication_pages import Exhibit
from evenhand.run_options import AuditOptions

HEADS_FOLDER: Final = "regard"
"""The folder in ``--data`` with regard heads, by model name."""
SAMPLES: Final = 10
_SHOWN: Final = (("regard", "regard"), ("regard", "negative"), ("sentiment", "compound"))
"""Metric and output: the judge, which may know the head's training texts, and a metric that does not."""


def regard_study(model: Model, spec: str, head: Path, options: AuditOptions, jobs: int) -> MitigationSweep:
    """The audits of a model on the suite, unmodified and steered."""
    shared: AuditOptions = {**options, "suite": ("regard",), "metrics": ("regard", "sentiment")}
    shared |= {"preset": None, "limit": None, "samples": SAMPLES, "max_new_tokens": None}
    steered = SweepCondition("classifier", MODES["classifier"], {"calibrator": str(head)})
    return MitigationSweep(model, (SweepCondition(VANILLA), steered), shared, spec=spec, jobs=jobs)


def regard_changes(study: MitigationSweep, name: str, folder: Path, progress: Progress) -> pl.DataFrame:
    """The gaps of one model before and after, and their changes."""
    before, after = study.runs(folder, progress).values()
    comparison = prepare_comparison(before, after, out=folder / "compare", fresh=True).run(progress)
    keys = ["axis", "group", "baseline", "metric", "output"]
    is_shown = pl.struct("metric", "output").is_in([{"metric": a, "output": b} for a, b in _SHOWN])
    changes = comparison.table("changes").filter(pl.col("effect") == "gap", is_shown).drop_nulls("baseline")
    table = changes.select(*keys, *estimate_columns("change"), "p_adjusted")
    for when, run in (("before", before), ("after", after)):
        gaps = run.table("comparisons").select(*keys, *estimate_columns(when))
        table = table.join(gaps, on=keys, how="left", maintain_order="left")
    estimates = [f"{name}{end}" for name in ("before", "after", "change") for end in ("", "_low", "_high")]
    ordered = table.select(pl.lit(name).alias("source"), *keys, *estimates, "p_adjusted")
    return ordered.sort("metric", "output", "axis", "group")


def regard_table(rows: pl.DataFrame) -> Exhibit:
    """The gaps of all models."""
    return Exhibit(
        id="regard",
        title="Beyond politics: gaps in regard before and after",
        frame=rows,
        notes=(
            "The mode classifier with a head trained on negative against positive regard, on the suite "
            "regard. regard and compound range from -1 to 1, negative is a share; before and after are gaps "
            "of a group to its baseline, change is their difference, with p corrected over all changes.",
            "The embedded regard judge may share training sentences with the head; sentiment does not.",
        ),
        decimals=3,
    )
