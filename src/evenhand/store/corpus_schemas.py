"""The tables of a corpus run: their columns."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

_TEXT, _REAL, _COUNT = pl.String(), pl.Float64(), pl.Int64()

OCCURRENCE: Mapping[str, pl.DataType] = {
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
    "n_clusters": _COUNT,
    "null_reason": _TEXT,
}
"""A corpus run: emotions in all ``sentences`` (units); ``low`` and ``high`` are of ``per_million``."""

COOCCURRENCE: Mapping[str, pl.DataType] = {
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
    "per_million_low": _REAL,
    "per_million_high": _REAL,
    "n_clusters": _COUNT,
    "null_reason": _TEXT,
}
"""Emotions with groups; ``low`` and ``high`` are of ``odds_ratio``, ``sentences`` are units with both."""

CONTRASTS: Mapping[str, pl.DataType] = {
    "corpus": _TEXT,
    "baseline": _TEXT,
    "emotion": _TEXT,
    "axis": _TEXT,
    "group": _TEXT,
    "ratio": _REAL,
    "low": _REAL,
    "high": _REAL,
    "p": _REAL,
    "p_adjusted": _REAL,
    "null_reason": _TEXT,
}
"""One corpus against another: of the emotion's rate (no group), or of the odds ratio with a group."""

SAMPLES: Mapping[str, pl.DataType] = {
    "corpus": _TEXT,
    "emotion": _TEXT,
    "axis": _TEXT,
    "group": _TEXT,
    "file": _TEXT,
    "byte": _COUNT,
    "row": _COUNT,
    "text": _TEXT,
}
"""Sentences drawn for each cell of ``cooccurrence``.

``byte`` counts from 0 in the file as it is unpacked. In running text it is where the sentence begins; in
tables and dumps where the record that holds it begins: the line of JSONL, the element of a JSON array, the
line of CSV on which the row begins, the ``<page>`` of a dump. Parquet has no bytes to point at: there
``byte`` is null and ``row`` is the number of the row, from 0; elsewhere ``row`` is null. ``text`` is what
was counted, at most 600 bytes of it, with single blanks; under the paper's rule without what that deletes.
"""

PROBLEMS: Mapping[str, pl.DataType] = {"file": _TEXT, "byte": _COUNT, "reason": _TEXT}
"""What of a corpus was not counted as it stands.

``byte`` counts from 0 in the file as it is unpacked; where an archive cannot be unpacked any further, it is
how far the stored file was read. Null where a file could not be opened.
"""

CORPUS_SCHEMAS: Mapping[str, Mapping[str, pl.DataType]] = {
    "occurrence": OCCURRENCE,
    "cooccurrence": COOCCURRENCE,
    "contrasts": CONTRASTS,
    "samples": SAMPLES,
    "problems": PROBLEMS,
}
