"""Table 8 and Figure 6: the metrics compared with human labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from evenhand.annotate.agreement import ConsensusRule
from evenhand.annotate.label_set import read_label_set
from evenhand.annotate.validate import ALL, RESAMPLES, MetricValidation, aggregate_texts, map_labels
from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric
from evenhand.core.records import Execution, Text
from evenhand.papers.bold.group_tables import Row, stack_rows
from evenhand.papers.replication_pages import Exhibit
from evenhand.papers.svg_figures import POLARITY, open_canvas, to_svg
from evenhand.stats.bootstrap import ResamplingOptions
from evenhand.stats.label_scales import TOXICITY, LabelScale
from evenhand.store.table_files import read_table

SEED = 0
COLUMNS = ("task", "text", "label")


class HumanTask(NamedTuple):
    """A question to annotators, and the metric outputs that answer it."""

    metric: str
    outputs: Mapping[str, str]
    """Output of the metric, and its name in Table 8."""
    scale: LabelScale
    """Labels, and the numbers the paper gives them for the rank correlation (section 6.3)."""


TASKS = {
    "gender": HumanTask(
        "gender_polarity",
        {"max": "gender_max", "wavg": "gender_wavg", "unigram": "unigram"},
        LabelScale("gender", {"male": -1.0, "neutral": 0.0, "female": 1.0}),
    ),
    "sentiment": HumanTask(
        "sentiment",
        {"compound": "sentiment"},
        LabelScale("sentiment", {"negative": -1.0, "neutral": 0.0, "positive": 1.0}),
    ),
    "toxicity": HumanTask(
        "toxicity", {"toxicity": "toxicity"}, LabelScale("toxicity", {"nontoxic": 0.0, "toxic": 1.0})
    ),
}


def build_exhibits(
    labels: pl.DataFrame, metrics: Sequence[str] = (), execution: Execution | None = None
) -> dict[str, Exhibit]:
    """Table 8 and Figure 6 from the table of `read_labels`, by the functions behind ``evenhand validate``.

    ``metrics`` replaces embedded metrics by others.
    """
    replacements = {spec.partition("=")[0]: spec for spec in metrics}
    rows: list[Row] = []
    scores: list[pl.DataFrame] = []
    for name, task in TASKS.items():
        task_labels = labels.filter(task=name)
        if task_labels.is_empty():
            continue
        tables = _validate_task(task, task_labels, replacements.get(task.metric, task.metric), execution)
        # Texts without a score are left out.
        judged = tables["judged"].drop_nulls("value")
        for output, metric in task.outputs.items():
            rows += _rows_of_metric(
                metric, task, judged.filter(output=output), tables["validation"].filter(output=output)
            )
        metric_names = pl.col("output").replace_strict(dict(task.outputs)).alias("metric")
        columns = (metric_names, pl.col("human").alias("label"), "predicted", "value")
        scores.append(judged.select(pl.lit(name).alias("task"), *columns))
    frame = stack_rows("table_8", pl.DataFrame(rows, infer_schema_length=None))
    frame = frame.sort("metric", maintain_order=True)
    note = "Human labels are the ground truth; percent, except for Spearman's correlation of the codes."
    table = Exhibit("table_8", "Automatic metrics compared with human labels", frame, notes=(note,))
    return {"table_8": table, "figure_6": _figure_6(pl.concat(scores))}


def read_labels(path: Path) -> pl.DataFrame:
    """The columns ``task``, ``text`` (masked) and ``label`` of a file or a study, checked."""
    if path.is_dir():
        return _read_study(path)
    table = read_table(path)
    if missing := [name for name in COLUMNS if name not in table.columns]:
        raise InputError(
            f"{path} has no column {', '.join(missing)}; it has {', '.join(table.columns)}",
            expected="task (gender, sentiment or toxicity), text (with names masked) and label",
            fix="rename its columns",
        )
    table = table.select(COLUMNS).drop_nulls()
    for task, label in table.select("task", "label").unique().sort("task", "label").iter_rows():
        if task not in TASKS or label not in TASKS[task].scale.places:
            raise InputError(
                f"{path} has the label {label!r} for the task {task!r}",
                expected="; ".join(f"{name}: {', '.join(own.scale.places)}" for name, own in TASKS.items()),
                fix="rename the labels",
            )
    if table.is_empty():
        raise InputError(
            f"{path} has no labels",
            expected="one row per labelled text",
            fix="check the file and its columns task, text and label",
        )
    return table


def _read_study(path: Path) -> pl.DataFrame:
    """The majority labels of those questions of a study that are in the paper."""
    collected = read_label_set(path)
    known = [question.name for question in collected.questions if question.name in TASKS]
    if not known:
        raise InputError(
            f"{path} has only the questions {', '.join(question.name for question in collected.questions)}",
            expected=", ".join(TASKS),
            fix="create a study with one of these tasks",
        )
    parts = []
    for name in known:
        texts = aggregate_texts(collected.select_questions([name]), ConsensusRule()).drop_nulls("human")
        scale = TOXICITY if name == "toxicity" else TASKS[name].scale
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
    task: HumanTask, labels: pl.DataFrame, spec: str, execution: Execution | None
) -> dict[str, pl.DataFrame]:
    """The validation tables of one task: human labels against the metric."""
    metric = registry.create_metric(spec, {}, execution)
    assert isinstance(metric, Metric)
    rows = [
        {"text_id": str(place), "output": output, **value._asdict()}
        for place, score in enumerate(metric.score([Text(text) for text in labels["text"]]))
        for output, value in score.items()
        if output in task.outputs
    ]
    texts = labels.with_row_index("item_id").select(
        pl.col("item_id").cast(pl.String),
        "text",
        pl.col("label").alias("human"),
        pl.lit(1.0).alias("share"),
        pl.lit(None, pl.String).alias("cluster"),
    )
    mapped = map_labels(metric.info, task.scale, renamed={}, outputs=list(task.outputs))
    how: ResamplingOptions = {"rng": SEED, "resamples": RESAMPLES, "level": 0.95}
    validation = MetricValidation(task.metric, task.scale, how, wants_cuts=False)
    return validation.tables(mapped, texts, pl.DataFrame(rows, infer_schema_length=None))


def _rows_of_metric(
    metric: str, task: HumanTask, texts: pl.DataFrame, measures: pl.DataFrame
) -> Iterator[Row]:
    """The rows of Table 8: over all texts, and for each label."""
    for label in (ALL, *task.scale.places):
        row: Row = {"source": "ours", "metric": metric, "label": "(weighted)" if label == ALL else label}
        known = measures.filter(label=label).rows_by_key("measure", named=True, unique=True)
        for measure in ("spearman", "accuracy", "precision", "recall", "f1"):
            scale = 1.0 if measure == "spearman" else 100.0
            for end, suffix in (("value", ""), ("low", "_low"), ("high", "_high")):
                value = known.get(measure, {}).get(end)
                row[f"{measure}{suffix}"] = None if value is None else scale * value
        yield {**row, "n": texts.height if label == ALL else int((texts["human"] == label).sum())}


def _figure_6(scored: pl.DataFrame) -> Exhibit:
    parts = scored.partition_by("metric", as_dict=True, maintain_order=True)
    titles = [str(metric).replace("_", " ") for (metric,) in parts]
    with open_canvas(titles, columns=len(parts), width=3.4, height=2.8) as (canvas, axes):
        for axis, part in zip(axes, parts.values(), strict=True):
            codes, shades = TASKS[part["task"][0]].scale.places, list(POLARITY.values())
            for label, colour in zip(codes, shades if len(codes) == 3 else shades[::-2], strict=True):
                values = part.filter(label=label)["value"].to_numpy()
                if values.size:
                    axis.hist(values, bins=20, histtype="step", density=True, color=colour, label=label)
            axis.legend(fontsize=7)
        svg = to_svg(canvas)
    return Exhibit(
        "figure_6",
        "Scores of the automatic metrics by human label",
        scored,
        svg=svg,
        alt="Distributions of each metric's score, one line per human label.",
    )
