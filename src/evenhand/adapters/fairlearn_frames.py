"""Conversion from and to fairlearn's `MetricFrame`: its inputs from a run, and a run from its inputs.

fairlearn itself is not required: the data are plain arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Unpack, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from evenhand.audits.loaded_run import FinishedRun, load_run
from evenhand.audits.run_setup import SILENT_PROGRESS
from evenhand.audits.score import ArrowTable, score
from evenhand.core.digests import digest
from evenhand.core.errors import InputError, UnknownNameError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.core.records import MetricInfo, OutputInfo, Text, Value
from evenhand.run_options import RunOptions, ScoreOptions
from evenhand.store.run import Run

_OUTPUTS = (
    OutputInfo("prediction", "label", "more rows get a 1", labels=("not_selected", "selected")),
    OutputInfo("agreement", "label", "more predictions are correct", labels=("wrong", "correct")),
    OutputInfo(
        "negatives", "label", "more rows of class 0 get a 1", labels=("true_negative", "false_positive")
    ),
    OutputInfo(
        "positives", "label", "more rows of class 1 get a 1", labels=("false_negative", "true_positive")
    ),
)


class PredictionMetric:
    """The metric that looks up a row's prediction."""

    def __init__(self, y_true: Sequence[float] | None, y_pred: Sequence[float]) -> None:
        """The predictions, and the truth if it is known."""
        pred, true = _flags(y_pred, "y_pred"), None if y_true is None else _flags(y_true, "y_true")
        if true is not None and len(true) != len(pred):
            raise InputError(
                f"y_true has {len(true):,} rows and y_pred {len(pred):,}",
                expected="the same number of both",
                fix="check which rows belong together",
            )
        self.columns = {"y_pred": list(map(str, pred))} | ({"y_true": list(map(str, true))} if true else {})
        """The predictions as columns, so that different predictions give a different run."""
        self.info = MetricInfo(
            name="predictions",
            version="1",
            outputs=_OUTPUTS if true else _OUTPUTS[:1],
            summary="a classifier's predictions, by group",
            primary=("selected", *(("correct", "false_positive", "true_positive") if true else ())),
            null_when="the rate does not apply to the row: a false positive requires a row that is 0",
            weights=digest([pred, true]),
            cheap=True,
        )
        self._rows = [
            {"prediction": flag, "agreement": int(flag == truth), "positives" if truth else "negatives": flag}
            for flag, truth in zip(pred, true or pred, strict=True)
        ]

    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        """The prediction of each row, and whether it is correct; a text is ``row NUMBER: ..``."""
        rows = (self._rows[int(text.text.split()[1].rstrip(":"))] for text in texts)
        return [{output.name: _to_value(output, row) for output in self.info.outputs} for row in rows]


def _to_value(output: OutputInfo, row: Mapping[str, int]) -> Value:
    if output.name not in row:
        return Value(None, None, f"not a {output.name.removesuffix('s')}")
    return Value(float(row[output.name]), output.labels[row[output.name]])


def _flags(values: Sequence[float], name: str) -> list[int]:
    flags = np.asarray(values)
    invalid = flags[~np.isin(flags, (0, 1))]
    if flags.ndim != 1 or flags.size == 0 or invalid.size:
        raise InputError(
            f"{name} holds {invalid[0]}" if invalid.size else f"{name} is not a list of numbers",
            expected="0 or 1 for every row",
            fix="compare one class with the rest, or apply a threshold to the scores",
        )
    return [int(value) for value in flags]


Floats = npt.NDArray[np.float64]
Names = npt.NDArray[np.str_]
Features = Mapping[str, Sequence[object]] | Sequence[object] | ArrowTable


class FrameInputs(NamedTuple):
    """The inputs of `MetricFrame` besides its metrics: ``MetricFrame(metrics=.., **inputs._asdict())``."""

    y_true: Floats
    """NaN if no truth was given: metrics of predictions alone ignore it, others raise an error."""
    y_pred: Floats
    sensitive_features: dict[str, Names]


@checks_options
def frame_inputs(
    run: Run | Path | str,
    output: str,
    *,
    axis: str | Sequence[str] | None = None,
    truth: Mapping[str, float] | None = None,
) -> FrameInputs:
    """One entry per text of a run that has a value, and a group on every requested axis.

    Args:
        run: A run of ``audit``, ``score`` or ``probe``, or its folder.
        output: The output, as tables name it: ``sentiment.negative``, ``toxicity.toxic``. A share is 1 or
            0 per text, so that fairlearn's ``selection_rate`` is the share; ``mean_prediction`` the mean.
        axis: The sensitive features; by default every axis of the run.
        truth: Text id to the true value, such as the majority of human labels.
    """
    loaded = load_run(run if isinstance(run, Run) else Run.open(run))
    quantities = {f"{item.metric}.{item.output}": item for item in loaded.quantities}
    if output not in quantities:
        raise UnknownNameError(
            f"the run has no output {output!r}", expected=", ".join(quantities), fix="name one of these"
        )
    values, features = quantities[output].values, _features(loaded, [axis] if isinstance(axis, str) else axis)
    # The sentences of a probe are their own texts.
    ids = loaded.prompt_ids if loaded.is_probe else loaded.run.table("generations")["id"].to_list()
    true_values = [truth.get(name, np.nan) for name in ids] if truth else [np.nan] * len(ids)
    usable = ~np.isnan(values) & ~np.isnan(true_values if truth else 0.0)
    for names in features.values():
        usable &= names != ""
    if not usable.any():
        raise InputError(
            f"no text has a value of {output!r} and a group on every one of {', '.join(features)}",
            expected="an output with values, axes that apply to the same text, and truth by text id",
            fix="name one axis, or look at the null_reason in the run's scores",
        )
    groups = {name: names[usable] for name, names in features.items()}
    return FrameInputs(np.asarray(true_values, dtype=np.float64)[usable], values[usable], groups)


@checks_options
def score_predictions(
    y_true: Sequence[float] | None,
    y_pred: Sequence[float],
    *,
    sensitive_features: Features,
    texts: Sequence[str] | None = None,
    cluster: Sequence[object] | None = None,
    progress: Progress = SILENT_PROGRESS,
    **options: Unpack[RunOptions],
) -> Run:
    """The run over a classifier's binary predictions: rates by group, with intervals and tests.

    ``selected`` is fairlearn's selection rate, ``correct`` its accuracy, ``false_positive`` and
    ``true_positive`` the rates of those names; rows that a rate does not apply to are null, with a reason.

    Args:
        y_true: The true values, 0 or 1; None leaves only the selection rate.
        y_pred: The predictions, 0 or 1.
        sensitive_features: Axis to the group of each row, a table of such columns, or one such column.
        texts: A description of each row, shown in the report.
        cluster: The cluster of each row, such as a person; by default each row is its own cluster.
        progress: Where long steps report their progress.
        options: Those shared by all runs, such as ``baseline``, ``out`` and ``level``.
    """
    metric = PredictionMetric(y_true, y_pred)
    rows = len(metric.columns["y_pred"])
    # The text that represents a row: its number, used to look up the prediction, then its description.
    shown = [""] * rows if texts is None else [f": {text}" for text in _strings(texts, rows, "texts")]
    columns = {"text": [f"row {number}{text}" for number, text in enumerate(shown)], **metric.columns}
    groups = _to_columns(sensitive_features)
    for number, (axis, names) in enumerate(groups.items()):
        columns[f"group {number}"] = _strings(names, rows, f"sensitive feature {axis!r}")
    if cluster is not None:
        columns["cluster"] = _strings(cluster, rows, "cluster")
    given: ScoreOptions = {
        **cast(ScoreOptions, options),
        "group": {axis: f"group {number}" for number, axis in enumerate(groups)},
        "metrics": [metric],
        "cluster": "cluster" if cluster is not None else None,
    }
    return score(pl.DataFrame(columns), progress=progress, **given)


def _features(loaded: FinishedRun, requested: Sequence[str] | None) -> dict[str, Names]:
    """Axis to the group of every text; empty if a text has no group on the axis."""
    prompts = (loaded.prompts[prompt_id] for prompt_id in loaded.prompt_ids)
    groups = [{group.axis: group.name for group in prompt.groups} for prompt in prompts]
    axes = list(dict.fromkeys(axis for one in groups for axis in one))
    for axis in requested or ():
        if axis not in axes:
            raise UnknownNameError(
                f"the run has no axis {axis!r}", expected=", ".join(axes), fix="name one of these"
            )
    return {axis: np.array([one.get(axis, "") for one in groups]) for axis in requested or axes}


def _to_columns(features: Features) -> dict[str, Sequence[object]]:
    if isinstance(features, Mapping):
        return {str(axis): names for axis, names in features.items()}
    if isinstance(features, ArrowTable) and hasattr(features, "columns"):
        table = pl.DataFrame(cast(pl.DataFrame, features))
        return {name: table[name].to_list() for name in table.columns}
    if isinstance(features, np.ndarray) and features.ndim == 2:
        return {f"sensitive_feature_{place}": column for place, column in enumerate(features.T.tolist())}
    # A column of pandas or Polars has a name, which fairlearn uses too.
    name = getattr(features, "name", None)
    return {str(name or "group"): cast("Sequence[object]", features)}


def _strings(values: Sequence[object], rows: int, what: str) -> list[str]:
    # The cells of an Arrow array are objects of their own type.
    cells = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    if len(cells) != rows:
        raise InputError(
            f"{what} has {len(cells):,} rows for {rows:,} predictions",
            expected="as many rows as predictions",
            fix="check which rows belong together",
        )
    for cell in cells:
        if isinstance(cell, list | tuple | np.ndarray):
            raise InputError(
                f"{what} holds {list(cell)!r} in one row",
                expected="one value per row",
                fix="pass several features as a table, or as a mapping of axis to column",
            )
    return ["" if _is_missing(cell) else str(cell) for cell in cells]


def _is_missing(cell: object) -> bool:
    """Whether a cell is None, NaN, NaT or NA: such a row has no group, and these are not names."""
    # NaN is not equal to itself, and comparisons with pandas' NA are neither true nor false.
    same: object = cell == cell
    return cell is None or not (same is True or same is np.True_)
