"""To and from fairlearn's `MetricFrame`: its inputs from a run, and a run from its inputs.

fairlearn itself is not needed: what passes between is arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Unpack, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from evenhand.adapters.predictions import Predictions, row_text
from evenhand.api.parts import SILENT
from evenhand.api.run_options import RunOptions, ScoreOptions
from evenhand.api.score import score
from evenhand.api.texts import ArrowTable
from evenhand.core.errors import InputError, UnknownNameError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.pipeline.loading import Loaded, load
from evenhand.pipeline.quantities import Quantity
from evenhand.store.run import Run

Floats = npt.NDArray[np.float64]
Names = npt.NDArray[np.str_]
Features = Mapping[str, Sequence[object]] | Sequence[object] | ArrowTable


class FrameInputs(NamedTuple):
    """What `MetricFrame` takes beside its metrics: ``MetricFrame(metrics=.., **inputs._asdict())``."""

    y_true: Floats
    """NaN where no truth was given: metrics that read predictions alone do not look at it, others refuse."""
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
    """One entry a text of a run that has a value, and a group on every axis that is asked for.

    Args:
        run: A run of ``audit``, ``score`` or ``probe``, or its folder.
        output: What is measured, as tables name it: ``sentiment.negative``, ``toxicity.toxic``. A share is 1
            or 0 a text, so that fairlearn's ``selection_rate`` is the share; ``mean_prediction`` is the mean.
        axis: The sensitive features; every axis of the run where none is named.
        truth: Text id to what is true of the text, such as the majority of people's labels.
    """
    loaded = load(run if isinstance(run, Run) else Run.open(run))
    quantity = _quantity(loaded, output)
    features = _features(loaded, [axis] if isinstance(axis, str) else axis)
    # The sentences of a probe are their own texts.
    ids = loaded.prompt_ids if loaded.is_probe else loaded.run.table("generations")["id"].to_list()
    known = [truth.get(name, np.nan) for name in ids] if truth else [np.nan] * len(ids)
    kept = ~np.isnan(quantity.values) & ~np.isnan(known if truth else 0.0)
    for names in features.values():
        kept &= names != ""
    if not kept.any():
        raise InputError(
            f"no text has a value of {output!r} and a group on every one of {', '.join(features)}",
            accepted="an output with values, axes that one text speaks of, and truth by the ids of texts",
            todo="name one axis, or look at the null_reason in the run's scores",
        )
    return FrameInputs(
        np.asarray(known, dtype=np.float64)[kept],
        quantity.values[kept],
        {name: names[kept] for name, names in features.items()},
    )


@checks_options
def score_predictions(
    y_true: Sequence[float] | None,
    y_pred: Sequence[float],
    *,
    sensitive_features: Features,
    texts: Sequence[str] | None = None,
    cluster: Sequence[object] | None = None,
    progress: Progress = SILENT,
    **options: Unpack[RunOptions],
) -> Run:
    """The run over a classifier's predictions of 0 and 1: rates by group, with intervals and tests.

    ``selected`` is fairlearn's selection rate, ``correct`` its accuracy, ``false_positive`` and
    ``true_positive`` the rates of those names; rows that a rate does not speak of are null, with the reason.

    Args:
        y_true: What is true, 0 or 1; None leaves the selection rate alone.
        y_pred: What was predicted, 0 or 1.
        sensitive_features: Axis to a group a row, a table of such columns, or one such column.
        texts: What the rows are about, shown in the report.
        cluster: What belongs together, such as the person a row is about; else each row by itself.
        progress: Where long steps say how far they are.
        options: Those every run shares, such as ``baseline``, ``out`` and ``level``.
    """
    metric = Predictions(y_true, y_pred)
    shown = None if texts is None else _strings(texts, metric.rows, "texts")
    columns = {"text": [row_text(number, shown) for number in range(metric.rows)], **metric.columns()}
    groups = _given(sensitive_features)
    for number, (axis, names) in enumerate(groups.items()):
        columns[f"group {number}"] = _strings(names, metric.rows, f"sensitive feature {axis!r}")
    if cluster is not None:
        columns["cluster"] = _strings(cluster, metric.rows, "cluster")
    given: ScoreOptions = {
        **cast(ScoreOptions, options),
        "group": {axis: f"group {number}" for number, axis in enumerate(groups)},
        "metrics": [metric],
        "cluster": "cluster" if cluster is not None else None,
    }
    return score(pl.DataFrame(columns), progress=progress, **given)


def _quantity(loaded: Loaded, output: str) -> Quantity:
    known = {f"{one.metric}.{one.output}": one for one in loaded.quantities}
    if output not in known:
        raise UnknownNameError(
            f"the run has no output {output!r}", accepted=", ".join(known), todo="name one of these"
        )
    return known[output]


def _features(loaded: Loaded, wanted: Sequence[str] | None) -> dict[str, Names]:
    """Axis to the group of every text; empty where a text does not speak of the axis."""
    groups = [
        {group.axis: group.name for group in loaded.prompts[prompt].groups} for prompt in loaded.prompt_ids
    ]
    axes = list(dict.fromkeys(axis for one in groups for axis in one))
    for axis in wanted or ():
        if axis not in axes:
            raise UnknownNameError(
                f"the run has no axis {axis!r}", accepted=", ".join(axes), todo="name one of these"
            )
    return {axis: np.array([one.get(axis, "") for one in groups]) for axis in wanted or axes}


def _given(features: Features) -> dict[str, Sequence[object]]:
    if isinstance(features, Mapping):
        return {str(axis): names for axis, names in features.items()}
    if isinstance(features, ArrowTable) and hasattr(features, "columns"):
        table = pl.DataFrame(cast(pl.DataFrame, features))
        return {name: table[name].to_list() for name in table.columns}
    if isinstance(features, np.ndarray) and features.ndim == 2:
        return {f"sensitive_feature_{place}": column for place, column in enumerate(features.T.tolist())}
    # A column of pandas or Polars knows its name, as fairlearn uses it.
    name = getattr(features, "name", None)
    return {str(name or "group"): cast("Sequence[object]", features)}


def _strings(values: Sequence[object], rows: int, what: str) -> list[str]:
    # The cells of an Arrow array are objects of its own.
    cells = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    if len(cells) != rows:
        raise InputError(
            f"{what} has {len(cells):,} rows, and there are {rows:,} predictions",
            accepted="as many rows as predictions",
            todo="check which rows belong together",
        )
    for cell in cells:
        if isinstance(cell, list | tuple | np.ndarray):
            raise InputError(
                f"{what} holds {list(cell)!r} in one row",
                accepted="one value a row",
                todo="hand several features over as a table, or as a mapping of axis to column",
            )
    return ["" if _missing(cell) else str(cell) for cell in cells]


def _missing(cell: object) -> bool:
    """Whether a cell is None, NaN, NaT or NA: a row without a group has no group, and these are not names."""
    # NaN is not equal to itself, and whether pandas' NA is cannot be told.
    same: object = cell == cell
    return cell is None or not (same is True or same is np.True_)
