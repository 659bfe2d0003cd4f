"""Table 8 and Figure 6: the metrics against labels that people gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from evenhand.annotate.agreement import ConsensusRule
from evenhand.annotate.label_mapping import map_labels
from evenhand.annotate.label_set import read_label_set
from evenhand.annotate.validate import ALL, MetricValidation, aggregate_texts
from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric
from evenhand.core.records import Execution, Text
from evenhand.papers.bold.labelled_texts import Row, stack_rows
from evenhand.papers.replication_pages import Exhibit, PaperFigure, PaperTable
from evenhand.papers.svg_figures import POLARITY, open_canvas, to_svg
from evenhand.stats.label_scales import TOXICITY, LabelScale
from evenhand.store.table_files import read_table

SEED = 0
COLUMNS = ("task", "text", "label")


@dataclass(frozen=True, slots=True)
class HumanTask:
    """What people were asked, and the outputs that answer it."""

    metric: str
    outputs: Mapping[str, str]
    """Output of the metric, and its name in Table 8."""
    codes: Mapping[str, int]
    """Labels, and the numbers the paper gives them for the rank correlation (section 6.3)."""


TASKS: Mapping[str, HumanTask] = {
    "gender": HumanTask(
        "gender_polarity",
        {"max": "gender_max", "wavg": "gender_wavg", "unigram": "unigram"},
        {"male": -1, "neutral": 0, "female": 1},
    ),
    "sentiment": HumanTask(
        "sentiment", {"compound": "sentiment"}, {"negative": -1, "neutral": 0, "positive": 1}
    ),
    "toxicity": HumanTask("toxicity", {"toxicity": "toxicity"}, {"nontoxic": 0, "toxic": 1}),
}


def build_exhibits(
    labels: pl.DataFrame, metrics: Sequence[str] = (), execution: Execution | None = None
) -> dict[str, Exhibit]:
    """Table 8 and Figure 6 from what `read_labels` gives, by the functions behind ``evenhand validate``.

    ``metrics`` names others than the embedded ones.
    """
    named = {spec.partition("=")[0]: spec for spec in metrics}
    tables = {
        name: _validate_task(name, of, named.get(TASKS[name].metric), execution)
        for name in TASKS
        if not (of := labels.filter(pl.col("task") == name)).is_empty()
    }
    return {"table_8": _table_8(tables), "figure_6": _figure_6(_list_scores(tables))}


def read_labels(path: Path) -> pl.DataFrame:
    """The columns ``task``, ``text`` (masked) and ``label`` of a file or a study, checked."""
    if path.is_dir():
        return _of_study(path)
    table = read_table(path)
    if missing := [name for name in COLUMNS if name not in table.columns]:
        raise InputError(
            f"{path} has no column {', '.join(missing)}; it has {', '.join(table.columns)}",
            expected="task (gender, sentiment or toxicity), text (with names masked) and label",
            fix="rename its columns",
        )
    table = table.select(COLUMNS).drop_nulls()
    for task, label in table.select("task", "label").unique().sort("task", "label").iter_rows():
        if task not in TASKS or label not in TASKS[task].codes:
            raise InputError(
                f"{path} has the label {label!r} for the task {task!r}",
                expected="; ".join(f"{name}: {', '.join(of.codes)}" for name, of in TASKS.items()),
                fix="rename the labels",
            )
    if table.is_empty():
        raise InputError(
            f"{path} has no labels",
            expected="a row for every text that people labelled",
            fix="check the file, and its columns task, text and label",
        )
    return table


def _of_study(path: Path) -> pl.DataFrame:
    """The majority labels of a study's questions that the paper asks too; others are left out."""
    collected = read_label_set(path)
    known = [question.name for question in collected.questions if question.name in TASKS]
    if not known:
        raise InputError(
            f"{path} asks {', '.join(question.name for question in collected.questions)}",
            expected=", ".join(TASKS),
            fix="make a study of one of these tasks",
        )
    parts = []
    for name in known:
        texts = aggregate_texts(collected.select_questions([name]), ConsensusRule()).drop_nulls("human")
        scale = TOXICITY if name == "toxicity" else LabelScale(name, dict(TASKS[name].codes))
        labels = {label: scale.label_of(label) for label in texts["human"].unique()}
        parts.append(
            texts.select(
                pl.lit(name).alias("task"),
                "text",
                pl.col("human").replace_strict(labels, return_dtype=pl.String).alias("label"),
            ).drop_nulls()
        )
    return pl.concat(parts)


def _validate_task(
    name: str, of: pl.DataFrame, spec: str | None, execution: Execution | None
) -> dict[str, pl.DataFrame]:
    """The tables of one task: people's labels against the metric that answers it."""
    task = TASKS[name]
    metric = registry.create_metric(spec or task.metric, {}, execution)
    assert isinstance(metric, Metric)
    rows = [
        {"text_id": str(place), "output": output, **value._asdict()}
        for place, score in enumerate(metric.score([Text(text) for text in of["text"]]))
        for output, value in score.items()
        if output in task.outputs
    ]
    texts = of.with_row_index("item_id").select(
        pl.col("item_id").cast(pl.String),
        "text",
        pl.col("label").alias("human"),
        pl.lit(1.0).alias("share"),
        pl.lit(None, pl.String).alias("cluster"),
    )
    scale = LabelScale(name, {label: float(code) for label, code in task.codes.items()})
    mapped = map_labels(metric.info, scale, renamed={}, outputs=list(task.outputs))
    validation = MetricValidation(task.metric, scale, SEED, wants_cuts=False)
    return validation.tables(mapped, texts, pl.DataFrame(rows, infer_schema_length=None))


def _list_scores(validations: Mapping[str, Mapping[str, pl.DataFrame]]) -> pl.DataFrame:
    """One row per text and output: people's label, ours, the score; texts without a score are left out."""
    return pl.concat(
        tables["judged"]
        .drop_nulls("value")
        .select(
            pl.lit(name).alias("task"),
            pl.col("output").replace_strict(dict(TASKS[name].outputs)).alias("metric"),
            pl.col("human").alias("label"),
            "predicted",
            "value",
        )
        for name, tables in validations.items()
    )


def _table_8(validations: Mapping[str, Mapping[str, pl.DataFrame]]) -> PaperTable:
    rows: list[Row] = []
    for name, tables in validations.items():
        for output, metric in TASKS[name].outputs.items():
            of = tables["validation"].filter(pl.col("output") == output)
            texts = tables["judged"].filter(pl.col("output") == output).drop_nulls("value")
            for label in (ALL, *TASKS[name].codes):
                row: Row = {"source": "ours", "metric": metric}
                row["label"] = "(weighted)" if label == ALL else label
                measures = of.filter(pl.col("label") == label).rows_by_key("measure", named=True, unique=True)
                for measure in ("spearman", "accuracy", "precision", "recall", "f1"):
                    for end, suffix in (("value", ""), ("low", "_low"), ("high", "_high")):
                        value = measures.get(measure, {}).get(end)
                        scale = 1.0 if measure == "spearman" else 100.0
                        row[f"{measure}{suffix}"] = None if value is None else scale * value
                row["n"] = texts.height if label == ALL else int((texts["human"] == label).sum())
                rows.append(row)
    ours = pl.DataFrame(rows, infer_schema_length=None)
    note = "People's labels are taken as right; percent, but for Spearman's correlation of the codes."
    frame = stack_rows("table_8", ours).sort("metric", maintain_order=True)
    return PaperTable("table_8", "Automatic metrics against people", frame, notes=(note,))


def _figure_6(scored: pl.DataFrame) -> PaperFigure:
    panels = scored.partition_by("metric", as_dict=True, maintain_order=True)
    with open_canvas(len(panels), columns=len(panels), width=3.4, height=2.8) as (canvas, axes):
        for axis, ((metric,), of) in zip(axes, panels.items(), strict=True):
            codes, shades = TASKS[of["task"][0]].codes, list(POLARITY.values())
            colours = shades if len(codes) == 3 else [shades[2], shades[0]]
            for label, colour in zip(codes, colours, strict=True):
                values = of.filter(pl.col("label") == label)["value"].to_numpy()
                if values.size:
                    axis.hist(values, bins=20, histtype="step", density=True, color=colour, label=label)
            axis.set_title(str(metric).replace("_", " "), loc="left", fontsize=10)
            axis.legend(fontsize=7)
        svg = to_svg(canvas)
    return PaperFigure(
        "figure_6",
        "Scores of the automatic metrics by what people say",
        scored,
        svg,
        alt="Distributions of each metric's score, one line for every human label.",
    )
