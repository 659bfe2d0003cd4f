"""Both sides of every pair as rows: for the eye, for plots, and the pairs whose class changes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from evenhand.pipeline.predictions import Block, Predictions
from evenhand.stats.paired_measures import flips, select
from evenhand.store.probe_tables import FLIPS, PAIR_SCORES

Row = dict[str, object]


def flip_table(predictions: Predictions, model: str) -> pl.DataFrame:
    """The table ``flips``: pairs whose predicted class changes with the group, with their sentences."""
    rows = [row for block in predictions.pairs() for row in _flips(block, predictions, model)]
    return pl.DataFrame(rows, schema=dict(FLIPS))


def score_table(predictions: Predictions, model: str) -> pl.DataFrame:
    """The table ``pair_scores``: every pair, once for each emotion."""
    parts = [_scores(block, model) for block in predictions.pairs() if block.sets]
    return pl.concat(parts) if parts else pl.DataFrame(schema=dict(PAIR_SCORES))


def _cell(block: Block, model: str) -> Row:
    return {
        "corpus": block.corpus,
        "model": model,
        "axis": block.axis,
        "group_a": block.sides[0].group,
        "group_b": block.sides[1].group,
    }


def _flips(block: Block, predictions: Predictions, model: str) -> Iterator[Row]:
    first, second = block.sides
    # A code of -1 finds the last name: none.
    names = (*block.labels, None)
    for place in np.flatnonzero(flips(first.predicted, second.predicted)):
        name = block.sets[place]
        yield {
            **_cell(block, model),
            "set": name,
            "emotion": names[block.truth[place]],
            "text_a": predictions.text(block.corpus, block.axis, name, first.group),
            "text_b": predictions.text(block.corpus, block.axis, name, second.group),
            "label_a": names[first.predicted[place]],
            "label_b": names[second.predicted[place]],
            "score_a": _real(first.score[place]),
            "score_b": _real(second.score[place]),
        }


def _scores(block: Block, model: str) -> pl.DataFrame:
    names = (*block.labels, None)
    first, second = block.sides
    size = len(block.sets)
    shared = {
        **{column: [value] * size for column, value in _cell(block, model).items()},
        "set": list(block.sets),
        "truth": [names[code] for code in block.truth],
        "label_a": [names[code] for code in first.predicted],
        "label_b": [names[code] for code in second.predicted],
        "predicted_a": first.score,
        "predicted_b": second.score,
    }
    parts = [
        pl.DataFrame(
            {
                **shared,
                "emotion": [emotion] * size,
                "intensity_a": first.intensities[:, place],
                "intensity_b": second.intensities[:, place],
                **_counts(block, emotion),
            },
            schema_overrides=dict(PAIR_SCORES),
        )
        for place, emotion in enumerate(block.emotions)
    ]
    return pl.concat(parts).select(list(PAIR_SCORES)).with_columns(pl.selectors.float().fill_nan(None))


def _counts(block: Block, emotion: str) -> Row:
    """In which ways of measuring each pair counts for the emotion."""
    code, truth = block.labels.index(emotion), block.truth
    first, second = (side.predicted for side in block.sides)
    return {
        "agreeing": select(first, second, truth, emotion=code, pairs="agreeing", score="predicted"),
        "all_predicted": select(first, second, truth, emotion=code, pairs="all", score="predicted"),
        "all_emotion": select(first, second, truth, emotion=code, pairs="all", score="emotion"),
    }


def _real(value: np.float64) -> float | None:
    return float(value) if np.isfinite(value) else None
