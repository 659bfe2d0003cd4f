"""The tables of what people said: agreement, validation of a metric, ratings of methods."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

_TEXT, _REAL, _COUNT, _FLAG = pl.String(), pl.Float64(), pl.Int64(), pl.Boolean()
_Schema = Mapping[str, pl.DataType]


def _estimate(name: str) -> dict[str, pl.DataType]:
    """The four columns of an estimate; the last says why there is none, or no interval."""
    return {name: _REAL, f"{name}_low": _REAL, f"{name}_high": _REAL, f"{name}_null": _TEXT}


AGREEMENT: _Schema = {
    "question": _TEXT,
    "categories": _TEXT,
    "statistic": _TEXT,
    "value": _REAL,
    "low": _REAL,
    "high": _REAL,
    "level": _REAL,
    "n": _COUNT,
    "n_items": _COUNT,
    "n_left_out": _COUNT,
    "method": _TEXT,
    "null_reason": _TEXT,
}
"""``categories``: ``all``, or ``ordered`` for the labels that have a place in order; ``n`` counts ratings,
``n_left_out`` items with fewer than two of the ratings looked at."""

ANNOTATORS: _Schema = {
    "question": _TEXT,
    "annotator": _TEXT,
    "n": _COUNT,
    **_estimate("agreement"),
    **_estimate("kappa"),
    **_estimate("spearman"),
    **_estimate("skill"),
    "dissents": _COUNT,
    "checks_passed": _COUNT,
    "checks_met": _COUNT,
}
"""Each annotator with the others; ``skill`` is Dawid and Skene's probability of the true label, and
``dissents`` counts ratings against most of the others."""

ANNOTATOR_PAIRS: _Schema = {
    "question": _TEXT,
    "first": _TEXT,
    "second": _TEXT,
    "n": _COUNT,
    **_estimate("agreement"),
    **_estimate("spearman"),
}

ITEMS: _Schema = {
    "question": _TEXT,
    "item_id": _TEXT,
    "text": _TEXT,
    "n": _COUNT,
    "said": _TEXT,
    "disagreement": _REAL,
    "label": _TEXT,
    "share": _REAL,
    "null_reason": _TEXT,
}
"""``said`` counts the labels; ``label`` is the consensus, ``share`` of ratings, or its probability."""

DISSENTS: _Schema = {
    "question": _TEXT,
    "item_id": _TEXT,
    "text": _TEXT,
    "annotator": _TEXT,
    "said": _TEXT,
    "others": _TEXT,
    "share": _REAL,
}

ERRORS: _Schema = {
    "question": _TEXT,
    "annotator": _TEXT,
    "true": _TEXT,
    "said": _TEXT,
    "probability": _REAL,
}
"""What each annotator says of texts that truly have a label, by Dawid and Skene."""

VALIDATION: _Schema = {
    "metric": _TEXT,
    "output": _TEXT,
    "label": _TEXT,
    "measure": _TEXT,
    "value": _REAL,
    "low": _REAL,
    "high": _REAL,
    "p": _REAL,
    "level": _REAL,
    "n": _COUNT,
    "n_clusters": _COUNT,
    "method": _TEXT,
    "null_reason": _TEXT,
}
"""``label`` is ``(all)`` or one label; ``measure`` one of spearman, spearman_score, accuracy,
always_commonest, kappa, precision, recall, f1, people."""

CONFUSION: _Schema = {
    "metric": _TEXT,
    "output": _TEXT,
    "human": _TEXT,
    "predicted": _TEXT,
    "count": _COUNT,
}

SCORE_SPREADS: _Schema = {
    "metric": _TEXT,
    "output": _TEXT,
    "label": _TEXT,
    "low": _REAL,
    "high": _REAL,
    "counts": pl.List(_COUNT),
    "n": _COUNT,
    "mean": _REAL,
    "q05": _REAL,
    "q25": _REAL,
    "q50": _REAL,
    "q75": _REAL,
    "q95": _REAL,
}
"""The scores of the texts that people gave a label, in equal bins from ``low`` to ``high``."""

BEST_CUTS: _Schema = {
    "metric": _TEXT,
    "output": _TEXT,
    "own": _REAL,
    "own_kappa": _REAL,
    "own_accuracy": _REAL,
    **_estimate("cut"),
    **_estimate("kappa"),
    **_estimate("accuracy"),
    **_estimate("kappa_held_out"),
    **_estimate("accuracy_held_out"),
    "folds": _COUNT,
    "n": _COUNT,
}
"""The cut that agrees best: ``kappa`` and ``accuracy`` where it was fitted, ``_held_out`` elsewhere."""

CUT_CURVES: _Schema = {"metric": _TEXT, "output": _TEXT, "cut": _REAL, "kappa": _REAL, "accuracy": _REAL}

JUDGED: _Schema = {
    "item_id": _TEXT,
    "text": _TEXT,
    "human": _TEXT,
    "share": _REAL,
    "metric": _TEXT,
    "output": _TEXT,
    "value": _REAL,
    "predicted": _TEXT,
    "null_reason": _TEXT,
}
"""Every text with what people and the metric say of it."""

METHODS: _Schema = {
    "question": _TEXT,
    "method": _TEXT,
    "baseline": _TEXT,
    "mean": _REAL,
    "low": _REAL,
    "high": _REAL,
    "difference": _REAL,
    "difference_low": _REAL,
    "difference_high": _REAL,
    "t": _REAL,
    "df": _REAL,
    "p": _REAL,
    "p_adjusted": _REAL,
    "participants": _COUNT,
    "paired": _COUNT,
    "ratings": _COUNT,
    "method_of_test": _TEXT,
    "null_reason": _TEXT,
}
"""The mean rating of each method over participants, and its paired difference from the baseline."""

PEOPLE_SCHEMAS: Mapping[str, _Schema] = {
    "agreement": AGREEMENT,
    "annotators": ANNOTATORS,
    "annotator_pairs": ANNOTATOR_PAIRS,
    "items": ITEMS,
    "dissents": DISSENTS,
    "errors": ERRORS,
    "validation": VALIDATION,
    "confusion": CONFUSION,
    "score_spreads": SCORE_SPREADS,
    "best_cuts": BEST_CUTS,
    "cut_curves": CUT_CURVES,
    "judged": JUDGED,
    "methods": METHODS,
}
