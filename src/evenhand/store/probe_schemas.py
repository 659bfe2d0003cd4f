"""The tables of a probe run: their columns."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

Schema = Mapping[str, pl.DataType]

_TEXT, _REAL, _COUNT = pl.String(), pl.Float64(), pl.Int64()
_CELL: Schema = {"corpus": _TEXT, "model": _TEXT, "axis": _TEXT, "group_a": _TEXT, "group_b": _TEXT}

MEASURES: Schema = {
    **_CELL,
    "emotion": _TEXT,
    "pairs": _TEXT,
    "score": _TEXT,
    "dp": _REAL,
    "avg_delta": _REAL,
    "p": _REAL,
    "acs": _REAL,
    "n_dp": _COUNT,
    "n": _COUNT,
    **{
        f"{name}_{end}": _REAL
        for name in ("dp", "avg_delta", "acs", "difference", "opportunity")
        for end in ("low", "high")
    },
    "difference": _REAL,
    "effect_size": _REAL,
    "p_adjusted": _REAL,
    "p_wilcoxon": _REAL,
    "p_wilcoxon_adjusted": _REAL,
    "share_a": _REAL,
    "share_b": _REAL,
    "mean_a": _REAL,
    "mean_b": _REAL,
    "opportunity": _REAL,
    "recall_a": _REAL,
    "recall_b": _REAL,
    "n_truth": _COUNT,
    "flips": _COUNT,
    "n_zero": _COUNT,
    "n_clusters": _COUNT,
    "level": _REAL,
    "correction": _TEXT,
    "null_reason": _TEXT,
}
"""One row an emotion, a pair of groups and a way of measuring (``pairs``: all or agreeing; ``score``:
predicted or emotion). ``acs`` and ``difference`` are positive where the second group is higher."""

SETS: Schema = {
    "corpus": _TEXT,
    "model": _TEXT,
    "axis": _TEXT,
    "groups": pl.List(_TEXT),
    "emotion": _TEXT,
    "dp": _REAL,
    "dp_low": _REAL,
    "dp_high": _REAL,
    "spread": _REAL,
    "spread_low": _REAL,
    "spread_high": _REAL,
    "statistic": _REAL,
    "p": _REAL,
    "p_adjusted": _REAL,
    "highest": _TEXT,
    "lowest": _TEXT,
    "n_dp": _COUNT,
    "n": _COUNT,
    "n_clusters": _COUNT,
    "null_reason": _TEXT,
}
"""Axes of three groups or more, compared over whole sets; ``highest`` and ``lowest`` by mean intensity."""

FLIPS: Schema = {
    **_CELL,
    "set": _TEXT,
    "emotion": _TEXT,
    "text_a": _TEXT,
    "text_b": _TEXT,
    "label_a": _TEXT,
    "label_b": _TEXT,
    "score_a": _REAL,
    "score_b": _REAL,
}
"""Pairs whose predicted class changes with the group; ``emotion`` is the ground truth."""

PAIR_SCORES: Schema = {
    **_CELL,
    "set": _TEXT,
    "emotion": _TEXT,
    "truth": _TEXT,
    "label_a": _TEXT,
    "label_b": _TEXT,
    "predicted_a": _REAL,
    "predicted_b": _REAL,
    "intensity_a": _REAL,
    "intensity_b": _REAL,
    "agreeing": pl.Boolean(),
    "all_predicted": pl.Boolean(),
    "all_emotion": pl.Boolean(),
}
"""Both sides of every pair, once for each emotion, and in which ways of measuring it counts for the emotion:
what the intensity plots draw."""

ASSOCIATIONS: Schema = {
    "corpus": _TEXT,
    "pair_corpus": _TEXT,
    "model": _TEXT,
    "axis": _TEXT,
    "group_a": _TEXT,
    "group_b": _TEXT,
    "emotion": _TEXT,
    "percent_a": _REAL,
    "percent_b": _REAL,
    "corpus_difference": _REAL,
    "odds_ratio_a": _REAL,
    "odds_ratio_b": _REAL,
    "acs": _REAL,
    "difference": _REAL,
    "p_adjusted": _REAL,
    "is_clear": pl.Boolean(),
    "same_direction": pl.Boolean(),
    "null_reason": _TEXT,
}
"""A corpus run beside a probe run: which way each leans; ``corpus_difference`` is in percentage points."""

AGREEMENTS: Schema = {
    "corpus": _TEXT,
    "pair_corpus": _TEXT,
    "model": _TEXT,
    "rho": _REAL,
    "rho_low": _REAL,
    "rho_high": _REAL,
    "same": _COUNT,
    "n": _COUNT,
    "n_clusters": _COUNT,
    "share": _REAL,
    "share_low": _REAL,
    "share_high": _REAL,
    "level": _REAL,
    "null_reason": _TEXT,
}
"""How far corpus and classifier lean the same way: Spearman's rho, and the share of cells that agree."""

PROBE_SCHEMAS: Mapping[str, Schema] = {
    "measures": MEASURES,
    "sets": SETS,
    "flips": FLIPS,
    "pair_scores": PAIR_SCORES,
    "associations": ASSOCIATIONS,
    "agreements": AGREEMENTS,
}
