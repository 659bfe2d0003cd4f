"""Table 4, labels; Table 5, sentiment against regard; their disagreements; and the claims of the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import polars as pl

from evenhand.annotate.label_aggregation import AgreementEstimate
from evenhand.core.records import Estimate, Text
from evenhand.metrics.sentiment import Sentiment
from evenhand.papers.regard.figures import LEVEL
from evenhand.papers.regard.released_data import GPT2_SAMPLES, LABELS, LM1B_SAMPLES, PARTS, RegardRelease
from evenhand.papers.replication_pages import Exhibit, PaperClaim, estimate_cells
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
            row |= estimate_cells(context, rho) | {f"{context}_texts": rho.n}
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


_NO_RATINGS = "the individual ratings were not released; pass your own with --human"
_MORE_NEGATIVE = {"respect": ("Black", "man", "gay"), "occupation": ("Black", "woman", "gay")}
"""Section 5: the groups with more negative regard in GPT-2's texts, by context."""
_AGREEMENT = (
    ("fleiss_kappa", "all", "sentiment", "0.50"),
    ("fleiss_kappa", "all", "regard", "0.49"),
    ("fleiss_kappa", "original", "sentiment", "0.60"),
    ("fleiss_kappa", "original", "regard", "0.67"),
    ("spearman", "original", "sentiment", "0.76"),
    ("spearman", "original", "regard", "0.80"),
)
"""Statistic, categories, question, and the printed value."""
_STATED = "more negative regard"
_RIVALS = ("LSTM, random", "LSTM, pretrained", "VADER", "TextBlob")


def agreement_claims(estimates: Sequence[AgreementEstimate]) -> Iterator[PaperClaim]:
    """Section 4: agreement between annotators; ours is from the table of individual ratings, if given."""
    known = {(row.statistic, row.categories, row.question): row.estimate for row in estimates}
    source = "your annotations" if estimates else ""
    for statistic, categories, question, number in _AGREEMENT:
        claim = f"{statistic.replace('_', ' ')} of {question}, {categories} categories"
        estimate = known.get((statistic, categories, question))
        remark = _NO_RATINGS if estimate is None else ""
        yield PaperClaim("4", claim, number, _format_estimate(estimate), source, remark)


def annotation_claims(published: RegardRelease, seed: int) -> Iterator[PaperClaim]:
    """Section 4: the number of kept texts; sentiment is the better proxy in respect contexts."""
    texts = published.annotations("regard")
    rho = correlations(published, seed)["sentiment ann. vs. regard ann."]
    claim, distinct = "texts whose majority is an original category", texts["text"].n_unique()
    yield PaperClaim("4", claim, "302", str(texts.height), "annotations", f"{distinct} different texts")
    claim = "sentiment correlates with regard more strongly in respect than in occupation contexts"
    ours = f"{_format_estimate(rho['respect'])} against {_format_estimate(rho['occupation'])}"
    yield PaperClaim("4", claim, "0.95 against 0.70", ours, "annotations")


def classifier_claims(accuracies: pl.DataFrame) -> Iterator[PaperClaim]:
    """Section 4 and footnote 9: the transformer against the other models, and by context."""
    test = accuracies.filter(pl.col("source") != "paper", pl.col("part") == "test")
    transformers = test.filter(pl.col("classifier").str.starts_with("transformer"))
    if transformers.is_empty():
        return
    name = transformers["classifier"][-1]
    of_context = transformers.filter(classifier=name).rows_by_key("context", named=True, unique=True)
    own = of_context["all"]
    rivals = test.filter(pl.col("context") == "all", pl.col("classifier").is_in(_RIVALS))
    best = rivals.sort("accuracy", descending=True).row(0, named=True)
    gap = 100 * (own["accuracy"] - best["accuracy"])
    yield PaperClaim(
        "4",
        "the transformer's test accuracy exceeds every other model's by",
        "more than 20 points",
        f"{gap:+.0f} points ({_accuracy(own)} against {_accuracy(best)} of {best['classifier']})",
        name,
        "30 texts: intervals overlap widely" if own["low"] < best["high"] else "",
    )
    for context, number in (("respect", "78 %"), ("occupation", "79 %")):
        claim, ours = f"accuracy in {context} contexts", _accuracy(of_context[context])
        yield PaperClaim("4, footnote 9", claim, number, ours, name)


def gap_claims(gaps: pl.DataFrame) -> Iterator[PaperClaim]:
    """Section 5: the groups with more negative regard from GPT-2, and whether LM-1B differs less."""
    negative = gaps.filter(metric="regard", output="negative")
    mirrored = negative.with_columns(
        -pl.col("gap"), group="baseline", baseline="group", low=-pl.col("high"), high=-pl.col("low")
    )
    known = pl.concat([negative.with_row_index(), mirrored.with_row_index()]).drop_nulls("gap").sort("index")
    for context, groups in _MORE_NEGATIVE.items():
        for group in groups:
            for row in known.filter(context=context, group=group).iter_rows(named=True):
                yield _more_negative(row)
    inside = negative.filter(~pl.col("context").str.starts_with("(")).group_by("source")
    means = dict(inside.agg(pl.col("gap").abs().mean()).iter_rows())
    lm1b, gpt2 = (
        None if mean is None else f"{100 * mean:.1f} points"
        for mean in (means.get(LM1B_SAMPLES), means.get(GPT2_SAMPLES))
    )
    yield PaperClaim(
        "5",
        "LM-1B's samples differ less between demographic pairs than GPT-2's",
        "as stated, no number",
        lm1b and f"{lm1b} against {gpt2}",
        "mean absolute gap of negative regard",
        "" if lm1b else "LM-1B's samples were not released: put lm1b_samples.tsv next to the other files",
    )


def _more_negative(row: dict[str, Any]) -> PaperClaim:
    low, high, p = row["low"], row["high"], row["p_adjusted"]
    shown = "none" if p is None else f"{p:.3f}"
    return PaperClaim(
        "5",
        f"{_STATED} of {row['group']} than of {row['baseline']} in {row['context']} contexts",
        "as stated, no number",
        f"{100 * row['gap']:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f}), adjusted p {shown}",
        row["source"],
        describe_gap(low, high, p),
    )


def describe_gap(low: float, high: float, p: float | None) -> str:
    """An empty text if a gap is significant after correction, else why the statement is not reproduced."""
    if low > 0:
        return "" if p is not None and p < LEVEL else "not after correction for the number of tests"
    return "the interval includes zero" if high > 0 else "the opposite"


def summarise_claims(claims: Sequence[PaperClaim]) -> tuple[str, ...]:
    """For each source the number of the paper's statements on more negative regard that are reproduced."""
    remarks: dict[str, list[str]] = {}
    for claim in claims:
        if claim.claim.startswith(_STATED):
            remarks.setdefault(claim.source, []).append(claim.remark)
    return tuple(
        f"{source}: of the paper's {len(own)} statements on groups with more negative regard, "
        f"{own.count('')} are reproduced after correction; the others are under Claims."
        for source, own in remarks.items()
    )


def _accuracy(row: dict[str, float]) -> str:
    return f"{100 * row['accuracy']:.0f} % ({100 * row['low']:.0f} to {100 * row['high']:.0f})"


def _format_estimate(estimate: Estimate | None) -> str | None:
    if estimate is None or estimate.value is None:
        return None
    spread = "" if estimate.low is None else f" ({estimate.low:.2f} to {estimate.high:.2f})"
    return f"{estimate.value:.2f}{spread}, {estimate.n_clusters} clusters"
