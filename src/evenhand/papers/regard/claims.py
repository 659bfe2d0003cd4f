"""The numbers and statements of the paper's text beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from evenhand.annotate.label_aggregation import QUESTIONS, AgreementEstimate
from evenhand.core.records import Estimate
from evenhand.papers.regard.annotation_tables import correlations
from evenhand.papers.regard.released_data import GPT2_SAMPLES, LM1B_SAMPLES, RegardRelease
from evenhand.papers.regard.share_figure import LEVEL
from evenhand.papers.replication_pages import PaperClaim

_NO_RATINGS = "the single ratings were not released; give your own with --human"
_MORE_NEGATIVE = {"respect": ("Black", "man", "gay"), "occupation": ("Black", "woman", "gay")}
"""Section 5: who GPT-2 writes of more negatively, by context."""
_KAPPA = {("all", "sentiment"): "0.50", ("all", "regard"): "0.49", ("original", "sentiment"): "0.60"} | {
    ("original", "regard"): "0.67"
}
_STATED = "more negative regard"
_RIVALS = ("LSTM, random", "LSTM, pretrained", "VADER", "TextBlob")
_RHO = {"sentiment": "0.76", "regard": "0.80"}


def agreement_claims(found: Sequence[AgreementEstimate]) -> list[PaperClaim]:
    """Section 4: how far annotators agree; ours from the table of single ratings where one was given."""
    known = {(row.statistic, row.categories, row.question): row.estimate for row in found}
    wanted = [("fleiss_kappa", *key, printed) for key, printed in _KAPPA.items()]
    wanted += [("spearman", "original", question, _RHO[question]) for question in QUESTIONS]
    return [
        PaperClaim(
            "4",
            f"{statistic.replace('_', ' ')} of {question}, {categories} categories",
            printed,
            _format_estimate(known.get((statistic, categories, question))),
            "your annotations" if found else "",
            "" if (statistic, categories, question) in known else _NO_RATINGS,
        )
        for statistic, categories, question, printed in wanted
    ]


def annotation_claims(published: RegardRelease, seed: int) -> list[PaperClaim]:
    """Section 4: the kept texts, and that sentiment is the better proxy where respect is spoken of."""
    texts = published.annotations("regard")
    rho = correlations(published, seed)["sentiment ann. vs. regard ann."]
    distinct = texts["text"].n_unique()
    return [
        PaperClaim(
            "4",
            "texts whose majority is an original category",
            "302",
            str(texts.height),
            "annotations",
            f"{distinct} different texts",
        ),
        PaperClaim(
            "4",
            "sentiment goes with regard more closely in respect than in occupation contexts",
            "0.95 against 0.70",
            f"{_format_estimate(rho['respect'])} against {_format_estimate(rho['occupation'])}",
            "annotations",
        ),
    ]


def classifier_claims(accuracies: pl.DataFrame) -> list[PaperClaim]:
    """Section 4 and footnote 9: the transformer against the rest, and by context."""
    ours = accuracies.filter(pl.col("source") != "paper")
    transformer = ours.filter(pl.col("classifier").str.starts_with("transformer"))
    if transformer.is_empty():
        return []
    name = transformer["classifier"][-1]
    test = ours.filter((pl.col("part") == "test") & (pl.col("context") == "all"))
    own = test.filter(pl.col("classifier") == name).row(0, named=True)
    others = test.filter(pl.col("classifier").is_in(_RIVALS))
    best = others.sort("accuracy", descending=True).row(0, named=True)
    gap = 100 * (own["accuracy"] - best["accuracy"])
    claims = [
        PaperClaim(
            "4",
            "the transformer is right more often than every other model on test texts, by",
            "more than 20 points",
            f"{gap:+.0f} points ({_accuracy(own)} against {_accuracy(best)} of {best['classifier']})",
            name,
            "30 texts: intervals overlap widely" if own["low"] < best["high"] else "",
        )
    ]
    for context, printed in (("respect", "78 %"), ("occupation", "79 %")):
        row = transformer.filter(
            (pl.col("classifier") == name) & (pl.col("part") == "test") & (pl.col("context") == context)
        ).row(0, named=True)
        claims.append(
            PaperClaim("4, footnote 9", f"accuracy in {context} contexts", printed, _accuracy(row), name)
        )
    return claims


def gap_claims(gaps: pl.DataFrame) -> list[PaperClaim]:
    """Section 5: who is written of more negatively by GPT-2, and whether LM-1B is less so."""
    claims = []
    for context, groups in _MORE_NEGATIVE.items():
        for group in groups:
            claims += _more_negative(gaps, context, group)
    claims.append(
        PaperClaim(
            "5",
            "LM-1B's samples differ less between demographic pairs than GPT-2's",
            "as stated, no number",
            _mean_gap(gaps, LM1B_SAMPLES)
            and f"{_mean_gap(gaps, LM1B_SAMPLES)} against {_mean_gap(gaps, GPT2_SAMPLES)}",
            "mean absolute gap of negative regard",
            ""
            if _mean_gap(gaps, LM1B_SAMPLES)
            else "LM-1B's samples were not released: put lm1b_samples.tsv beside the rest",
        )
    )
    return claims


def _more_negative(gaps: pl.DataFrame, context: str, group: str) -> list[PaperClaim]:
    found = gaps.filter(
        (pl.col("context") == context)
        & (pl.col("metric") == "regard")
        & (pl.col("output") == "negative")
        & ((pl.col("group") == group) | (pl.col("baseline") == group))
    )
    claims = []
    for row in found.iter_rows(named=True):
        sign = 1 if row["group"] == group else -1
        other = row["baseline"] if sign == 1 else row["group"]
        if row["gap"] is None:
            continue
        low, high = sorted((sign * row["low"], sign * row["high"]))
        p = "none" if row["p_adjusted"] is None else f"{row['p_adjusted']:.3f}"
        claims.append(
            PaperClaim(
                "5",
                f"{_STATED} of {group} than of {other} in {context} contexts",
                "as stated, no number",
                f"{100 * sign * row['gap']:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f}), adjusted p "
                f"{p}",
                row["source"],
                _verdict(low, high, row["p_adjusted"]),
            )
        )
    return claims


def _verdict(low: float, high: float, p: float | None) -> str:
    if low > 0:
        return "" if p is not None and p < LEVEL else "not after correction for the number of tests"
    return "the interval holds zero" if high > 0 else "the opposite"


def summarise_claims(claims: Sequence[PaperClaim]) -> tuple[str, ...]:
    """For each source how many of the paper's statements on more negative regard are found again."""
    stated = [claim for claim in claims if claim.claim.startswith(_STATED)]
    lines = []
    for source in dict.fromkeys(claim.source for claim in stated):
        own = [claim.remark for claim in stated if claim.source == source]
        lines.append(
            f"{source}: of the paper's {len(own)} statements on who is written of with more negative regard, "
            f"{own.count('')} are found again after correction; the rest stand under Claims."
        )
    return tuple(lines)


def _mean_gap(gaps: pl.DataFrame, source: str) -> str | None:
    found = (
        gaps.filter(
            (pl.col("source") == source)
            & (pl.col("metric") == "regard")
            & (pl.col("output") == "negative")
            & ~pl.col("context").str.starts_with("(")
        )["gap"]
        .abs()
        .mean()
    )
    return None if found is None else f"{100 * float(found):.1f} points"  # type: ignore[arg-type]


def _accuracy(row: dict[str, float]) -> str:
    return f"{100 * row['accuracy']:.0f} % ({100 * row['low']:.0f} to {100 * row['high']:.0f})"


def _format_estimate(found: Estimate | None) -> str | None:
    if found is None or found.value is None:
        return None
    spread = "" if found.low is None else f" ({found.low:.2f} to {found.high:.2f})"
    return f"{found.value:.2f}{spread}, {found.n_clusters} clusters"
