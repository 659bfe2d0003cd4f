"""Table 8 and Figure 6: the metrics against labels that people gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric
from evenhand.core.records import Execution, Text
from evenhand.papers.bold.printed import printed
from evenhand.papers.bold.shares import Row, beside, cells
from evenhand.papers.figures import POLARITY, drawing, svg
from evenhand.papers.records import Exhibit, Figure, Table
from evenhand.stats import spearman
from evenhand.stats.validation import validate_labels
from evenhand.store.files import read_table

SEED = 0
COLUMNS = ("task", "text", "label")


@dataclass(frozen=True, slots=True)
class Task:
    """What people were asked, and the outputs that answer it."""

    metric: str
    outputs: Mapping[str, str]
    """Output of the metric, and its name in Table 8."""
    codes: Mapping[str, int]
    """Labels, and the numbers the paper gives them for the rank correlation (section 6.3)."""


TASKS: Mapping[str, Task] = {
    "gender": Task(
        "gender_polarity",
        {"max": "gender_max", "wavg": "gender_wavg", "unigram": "unigram"},
        {"male": -1, "neutral": 0, "female": 1},
    ),
    "sentiment": Task("sentiment", {"compound": "sentiment"}, {"negative": -1, "neutral": 0, "positive": 1}),
    "toxicity": Task("toxicity", {"toxicity": "toxicity"}, {"nontoxic": 0, "toxic": 1}),
}


def exhibits(
    labels: pl.DataFrame, metrics: Sequence[str] = (), execution: Execution | None = None
) -> dict[str, Exhibit]:
    """Table 8 and Figure 6 from what `read_labels` gives; ``metrics`` names others than the embedded ones."""
    named = {spec.partition("=")[0]: spec for spec in metrics}
    scored = _scored(labels, named, execution or Execution())
    return {"table_8": _table_8(scored), "figure_6": _figure_6(scored)}


def read_labels(path: Path) -> pl.DataFrame:
    """The columns ``task``, ``text`` (masked) and ``label`` of a file, checked."""
    table = read_table(path)
    if missing := [name for name in COLUMNS if name not in table.columns]:
        raise InputError(
            f"{path} has no column {', '.join(missing)}; it has {', '.join(table.columns)}",
            accepted="task (gender, sentiment or toxicity), text (with names masked) and label",
            todo="rename its columns",
        )
    table = table.select(COLUMNS).drop_nulls()
    for task, label in table.select("task", "label").unique().sort("task", "label").iter_rows():
        if task not in TASKS or label not in TASKS[task].codes:
            raise InputError(
                f"{path} has the label {label!r} for the task {task!r}",
                accepted="; ".join(f"{name}: {', '.join(of.codes)}" for name, of in TASKS.items()),
                todo="rename the labels",
            )
    if table.is_empty():
        raise InputError(f"{path} has no labels", accepted="a row for every text that people labelled")
    return table


def _scored(table: pl.DataFrame, named: Mapping[str, str], execution: Execution) -> pl.DataFrame:
    """One row a text and output: people's label, ours, the score; texts without a score are left out."""
    rows: list[Row] = []
    for name, task in TASKS.items():
        of = table.filter(pl.col("task") == name)
        if of.is_empty():
            continue
        metric = registry.metric(named.get(task.metric, task.metric), {}, execution)
        assert isinstance(metric, Metric)
        scores = metric.score([Text(text) for text in of["text"]])
        for label, score in zip(of["label"], scores, strict=True):
            for output, shown in task.outputs.items():
                found = score[output]
                if found.value is not None:
                    rows.append(
                        {
                            "task": name,
                            "metric": shown,
                            "label": label,
                            "predicted": found.label,
                            "value": found.value,
                        }
                    )
    return pl.DataFrame(rows, infer_schema_length=None)


def _table_8(scored: pl.DataFrame) -> Table:
    rows: list[Row] = []
    for (task, metric), of in scored.partition_by(
        "task", "metric", as_dict=True, maintain_order=True
    ).items():
        codes = TASKS[str(task)].codes
        found = validate_labels(list(of["predicted"]), list(of["label"]), labels=list(codes), rng=SEED)
        ranks = [np.array([codes[label] for label in of[column]], float) for column in ("predicted", "label")]
        whole: Row = {"source": "ours", "metric": metric, "label": "(weighted)"}
        whole |= cells("spearman", spearman(*ranks, rng=SEED))
        for part in ("accuracy", "precision", "recall", "f1"):
            whole |= cells(part, getattr(found, part), scale=100)
        rows.append(whole | {"n": of.height})
        for each in found.by_label:
            row: Row = {"source": "ours", "metric": metric, "label": each.label}
            row |= cells("precision", each.precision, scale=100) | cells("recall", each.recall, scale=100)
            rows.append(
                row | cells("f1", each.f1, scale=100) | {"n": of.filter(pl.col("label") == each.label).height}
            )
    frame = beside(printed("table_8"), rows).sort("metric", maintain_order=True)
    note = "People's labels are taken as right; percent, but for Spearman's correlation of the codes."
    return Table("table_8", "Automatic metrics against people", frame, notes=(note,))


def _figure_6(scored: pl.DataFrame) -> Figure:
    panels = scored.partition_by("metric", as_dict=True, maintain_order=True)
    with drawing(len(panels), 1, width=3.4 * len(panels), height=2.8) as (canvas, axes):
        for axis, ((metric,), of) in zip(axes, panels.items(), strict=True):
            codes = TASKS[of["task"][0]].codes
            for label, colour in zip(codes, _colours(len(codes)), strict=True):
                values = of.filter(pl.col("label") == label)["value"].to_numpy()
                if not values.size:
                    continue
                axis.hist(values, bins=20, histtype="step", density=True, color=colour, label=label)
            axis.set_title(str(metric).replace("_", " "), loc="left", fontsize=10)
            axis.legend(fontsize=7)
        drawn = svg(canvas)
    return Figure(
        "figure_6",
        "Scores of the automatic metrics by what people say",
        scored,
        drawn,
        alt="Distributions of each metric's score, one line for every human label.",
    )


def _colours(labels: int) -> list[str]:
    shades = list(POLARITY.values())
    return shades if labels == 3 else [shades[2], shades[0]]
