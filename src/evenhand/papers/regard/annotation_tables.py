"""Table 4, the number of texts by label, and Table 5, the correlation of sentiment and regard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Final

import polars as pl

from evenhand.core.records import Estimate, Text
from evenhand.metrics.sentiment import Sentiment
from evenhand.papers.regard.released_data import LABELS, PARTS, RegardRelease
from evenhand.papers.replication_pages import Exhibit
from evenhand.stats.agreement_coefficients import spearman
from evenhand.suites.regard import RegardSuite

PRINTED_4: Final = {"train": (80, 67, 65), "dev": (28, 15, 17), "test": (9, 11, 10)}
PRINTED_5: Final = {
    "sentiment ann. vs. regard ann.": (0.95, 0.70, 0.82),
    "VADER pred. vs. sentiment ann.": (0.78, 0.71, 0.74),
    "VADER pred. vs. regard ann.": (0.69, 0.54, 0.61),
}
_PRINTED_COLUMNS: Final = ("respect", "occupation", "both")
PAPER: Final = "paper"
OURS: Final = "this copy"
CUT: Final = 0.05
RESAMPLES: Final = 2_000

Codes = Mapping[str, int]


def table_4(published: RegardRelease) -> Exhibit:
    """Number of texts by part and majority label of regard."""
    counts = Counter(published.annotations("regard").select("part", "label").iter_rows())
    ours = {part: tuple(counts[part, label] for label in LABELS) for part in PARTS}
    rows = [
        (source, part, *cells, sum(cells))
        for source, parts in ((PAPER, PRINTED_4), (OURS, ours))
        for part, cells in parts.items()
    ]
    frame = pl.DataFrame(rows, schema=["source", "dataset", *LABELS, "total"], orient="row")
    return Exhibit("table_4", "The annotated regard data set", frame)


def table_5(published: RegardRelease, seed: int) -> Exhibit:
    """Spearman's rho by context; ``both`` is the mean over contexts (as printed), ``pooled`` is over all."""
    rows: list[dict[str, object]] = [
        {"source": PAPER, "datasets": name, **dict(zip(_PRINTED_COLUMNS, cells, strict=True))}
        for name, cells in PRINTED_5.items()
    ]
    for name, cells in correlations(published, seed).items():
        row: dict[str, object] = {"source": OURS, "datasets": name}
        for context, rho in cells.items():
            bounds = {f"{context}_low": rho.low, f"{context}_high": rho.high, f"{context}_texts": rho.n}
            row |= {context: rho.value, **bounds}
        respect, occupation = cells["respect"].value, cells["occupation"].value
        row["both"] = None if respect is None or occupation is None else (respect + occupation) / 2
        rows.append(row)
    notes = (
        "The first row is over the texts in both sets; a text that occurs twice in one set counts once. "
        "The printed value for both is the mean of the contexts, not the pooled correlation.",
        f"VADER 3.3.2 at +-{CUT:g} on the masked text; the paper does not state its version, which gives "
        "other values, so only the first row can be expected to match to the digit.",
        "Intervals resample templates: ten clusters in all, five per context.",
    )
    return Exhibit("table_5", "Spearman's correlation", pl.DataFrame(rows, infer_schema_length=None), notes)


@cache
def correlations(published: RegardRelease, seed: int) -> dict[str, dict[str, Estimate]]:
    """Rho for each row of Table 5 by context and ``pooled``, with intervals over templates."""
    sentiment, regard = (
        {text: LABELS.index(label) for _, label, text in published.annotations(metric).iter_rows()}
        for metric in ("sentiment", "regard")
    )
    texts = list(sentiment | regard)
    scores = Sentiment(cut=CUT).score([Text(text) for text in texts])
    labels = (row["compound"].label or "neutral" for row in scores)
    vader = {text: LABELS.index(label) for text, label in zip(texts, labels, strict=True)}
    pairs = ((sentiment, regard), (vader, sentiment), (vader, regard))
    return {name: _rho(*pair, seed) for name, pair in zip(PRINTED_5, pairs, strict=True)}


def _rho(first: Codes, second: Codes, seed: int) -> dict[str, Estimate]:
    suite = RegardSuite()
    shared = {text: suite.find_template(text) for text in second if text in first}
    estimates = {}
    for name in ("respect", "occupation", "pooled"):
        texts = [text for text, place in shared.items() if name in ("pooled", place.rpartition("-")[0])]
        x, y = ([codes[text] for text in texts] for codes in (first, second))
        templates = [shared[text] for text in texts]
        estimates[name] = spearman(x, y, templates, rng=seed, resamples=RESAMPLES)
    return estimates


_IS_LABELLED: Final = pl.col("regard").is_in(LABELS) & pl.col("sentiment").is_in(LABELS)
SHOWN: Final = 25
"""Maximum number of texts per source, context and direction."""
_SHOWN: Final = (
    *("source", "context", "axis", "group"),
    *("regard", "sentiment", "regard_value", "sentiment_value", "text"),
)


def table_agreement(texts: pl.DataFrame) -> Exhibit:
    """Texts by context, regard and sentiment, with their share of the context's texts with both labels."""
    known = texts.filter(_IS_LABELLED)
    keys = ["source", "context"]
    counts = known.group_by(*keys, "regard", "sentiment").len("texts")
    shares = counts.with_columns(of=pl.col("texts").sum().over(keys)).with_columns(
        share=pl.col("texts") / pl.col("of"), agree=pl.col("regard") == pl.col("sentiment")
    )
    frame = shares.sort(*keys, "regard", "sentiment")
    notes = (
        f"{texts.height - known.height:,} of {texts.height:,} texts are not counted: their regard is `other` "
        "or one of the two labels is missing.",
    )
    return Exhibit("table_agreement", "Regard against sentiment", frame, notes)


def table_disagreements(texts: pl.DataFrame) -> Exhibit:
    """Texts with positive sentiment and negative regard or the reverse, largest difference first."""
    known = texts.filter(
        _IS_LABELLED,
        pl.col("regard") != pl.col("sentiment"),
        pl.col("regard") != "neutral",
        pl.col("sentiment") != "neutral",
    )
    apart = (pl.col("regard_value") - pl.col("sentiment_value")).abs()
    frame = (
        known.unique(["source", "text"], maintain_order=True)
        .with_columns(apart=apart)
        .sort("apart", "text", descending=[True, False])
        .group_by("source", "context", "regard", "sentiment", maintain_order=True)
        .head(SHOWN)
        .sort("source", "context", "regard", maintain_order=True)
        .select(_SHOWN)
    )
    notes = (f"At most {SHOWN} texts per source, context and direction, the largest score difference first.",)
    return Exhibit(
        "table_disagreements", "Where regard and sentiment disagree", frame, notes, is_offensive=True
    )
