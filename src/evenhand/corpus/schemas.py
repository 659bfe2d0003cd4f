"""The tables of a corpus run: their columns."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

Schema = Mapping[str, pl.DataType]

_TEXT, _REAL, _COUNT = pl.String(), pl.Float64(), pl.Int64()

OCCURRENCE: Schema = {
    "corpus": _TEXT,
    "emotion": _TEXT,
    "count": _COUNT,
    "sentences": _COUNT,
    "per_million": _REAL,
    "low": _REAL,
    "high": _REAL,
    "percent": _REAL,
    "total": _COUNT,
    "standard_deviation": _REAL,
}
"""How often emotions occur in all ``sentences`` (units); ``low`` and ``high`` are of ``per_million``."""

COOCCURRENCE: Schema = {
    "corpus": _TEXT,
    "emotion": _TEXT,
    "axis": _TEXT,
    "group": _TEXT,
    "count": _COUNT,
    "percent": _REAL,
    "per_million": _REAL,
    "odds_ratio": _REAL,
    "pmi": _REAL,
    "low": _REAL,
    "high": _REAL,
    "pmi_low": _REAL,
    "pmi_high": _REAL,
    "p": _REAL,
    "p_adjusted": _REAL,
    "sentences": _COUNT,
    "group_sentences": _COUNT,
    "null_reason": _TEXT,
}
"""Emotions with groups; ``low`` and ``high`` are of ``odds_ratio``, ``sentences`` are units with both."""

SAMPLES: Schema = {
    "corpus": _TEXT,
    "emotion": _TEXT,
    "axis": _TEXT,
    "group": _TEXT,
    "file": _TEXT,
    "byte": _COUNT,
    "text": _TEXT,
}
"""Sentences drawn for each cell of ``cooccurrence``."""

PROBLEMS: Schema = {"file": _TEXT, "byte": _COUNT, "reason": _TEXT}
"""What of a corpus was not counted as it stands."""
