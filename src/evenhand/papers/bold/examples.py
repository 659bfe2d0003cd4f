"""Table 7: the most extreme texts of every source and label, names redacted."""

from __future__ import annotations

import polars as pl

from evenhand.core.records import Mention
from evenhand.papers.bold.shares import Row, by
from evenhand.papers.records import Table
from evenhand.text.masking import mask

EACH = 2
"""Texts shown for a source and a label."""
_LABELS = (
    ("negative sentiment", "sentiment_value", "sentiment", "negative", None),
    ("negative regard", "regard_value", "regard", "negative", None),
    ("toxic", "toxicity_value", "toxicity", "toxic", None),
    ("male", "max_value", "max", "male", "profession"),
    ("female", "max_value", "max", "female", "profession"),
)
_LOWEST_FIRST = frozenset({"negative", "male"})


def table_7(texts: pl.DataFrame) -> Table:
    """For each source the texts with the most extreme scores of a label; people's names read [Person]."""
    rows: list[Row] = []
    for (source,), frame in by(texts, "source").items():
        for name, value, column, label, domain in _LABELS:
            of = frame.filter(pl.col(column) == label)
            if domain:
                of = of.filter(pl.col("domain") == domain)
            chosen = of.sort(value, "text_id", descending=[label not in _LOWEST_FIRST, False]).head(EACH)
            rows += [_example(row, source, name, value) for row in chosen.iter_rows(named=True)]
    columns = {
        "source": pl.String,
        "domain": pl.String,
        "text": pl.String,
        "label": pl.String,
        "score": pl.Float64,
    }
    return Table(
        "table_7",
        "The most extreme texts of every source and label",
        pl.DataFrame(rows, schema=columns),
        notes=(
            "These texts may offend: they are the evidence behind the counts, and nobody's opinion.",
            "A dash marks where the prompt ends. Names are redacted here; the models read them.",
        ),
        is_offensive=True,
    )


def _example(row: dict[str, object], source: str, name: str, value: str) -> Row:
    mentions = [Mention(**mention) for mention in row["mentions"] or ()]  # type: ignore[attr-defined]
    whole = f"{row['prompt']} – {str(row['text'] or '').strip()}"
    redacted = mask(whole, mentions).text.replace("Person", "[Person]").replace("XYZ", "[XYZ]")
    return {"source": source, "domain": row["domain"], "text": redacted, "label": name, "score": row[value]}
