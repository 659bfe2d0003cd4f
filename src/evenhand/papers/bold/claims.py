"""The numbers in the text of sections 6.1 and 6.2, compared with ours, and the paper's tests."""

from __future__ import annotations

import operator
from collections.abc import Iterator

import polars as pl

from evenhand.core.records import Estimate
from evenhand.papers.bold.group_tables import (
    GENDERS,
    Row,
    gender_ratios,
    group_by,
    label_hits,
    label_share,
    merge_professions,
)
from evenhand.papers.replication_pages import Exhibit, PaperClaim
from evenhand.stats.contrasts import clustered_gap, clustered_omnibus
from evenhand.stats.hypothesis_tests import chi_square, two_proportions
from evenhand.stats.results import Difference, Omnibus, TestResult

HUMAN = "WIKI"
_AFRICAN, _EUROPEAN = "African_Americans", "European_Americans"
_ASIAN, _HISPANIC = "Asian_Americans", "Hispanic_and_Latino_Americans"
_LATINO = "Hispanic and Latino Americans"
_NEGATIVE = ("sentiment", "negative")


_SHARES = (
    ("6.1.2", "texts with neutral sentiment", "76.72 %", "gender", "sentiment", "neutral"),
    ("6.1.2", "positive sentiment, male", "17.041 %", "American_actors", "sentiment", "positive"),
    ("6.1.2", "positive sentiment, female", "17.763 %", "American_actresses", "sentiment", "positive"),
    ("6.1.2", "negative sentiment, male", "6.9 %", "American_actors", *_NEGATIVE),
    ("6.1.2", "negative sentiment, female", "4.7 %", "American_actresses", *_NEGATIVE),
    ("6.1.3", "negative sentiment, African Americans", "8.154 %", _AFRICAN, *_NEGATIVE),
    ("6.1.3", "toxic texts, African Americans", "0.297 %", _AFRICAN, "toxicity", "toxic"),
    ("6.1.3", "negative sentiment, Asian Americans", "4.917 %", _ASIAN, *_NEGATIVE),
    ("6.1.3", "toxic texts, Asian Americans", "0.077 %", _ASIAN, "toxicity", "toxic"),
    ("6.1.3", "negative sentiment, European Americans", "7.484 %", _EUROPEAN, *_NEGATIVE),
    ("6.1.3", "toxic texts, European Americans", "0.193 %", _EUROPEAN, "toxicity", "toxic"),
    ("6.1.3", f"negative sentiment, {_LATINO}", "6.958 %", _HISPANIC, *_NEGATIVE),
    ("6.1.3", f"toxic texts, {_LATINO}", "0.162 %", _HISPANIC, "toxicity", "toxic"),
    ("6.1.4", "negative sentiment, atheism, over all sources", "13.21 %", "atheism", *_NEGATIVE),
    ("6.1.4", "negative sentiment, islam, over all sources", "10.39 %", "islam", *_NEGATIVE),
    ("6.1.4", "negative sentiment, hinduism, over all sources", "1.38 %", "hinduism", *_NEGATIVE),
    ("6.1.4", "negative sentiment, buddhism, over all sources", "3.85 %", "buddhism", *_NEGATIVE),
)
"""Shares stated in the text: section, claim, number, domain or group of the texts, column and label."""
_ATHEISM = ("6.1.4", "toxic texts, atheism", "0.574 %", "atheism", "toxicity", "toxic")
RATIOS = {"WIKI": 2.29, "BERT": 1.25, "GPT-2": 3.18, "CTRL-WIKI": 2.94, "CTRL-OPN": 1.85, "CTRL-THT": 2.15}
"""Section 6.2: the mean of a source's four male : female ratios by Gender-Max."""
_TOXIC = {
    "religious_ideology": "CTRL-THT, CTRL-OPN: islam 1, christianity 1, atheism 1 each; others none",
    "political_ideology": "BERT: communism 1; CTRL-OPN: fascism 1; CTRL-THT: socialism 1, communism 1",
}
_TESTS = (
    ("6.1.2", "gender", "sentiment", "positive", "0.204"),
    ("6.1.2", "gender", "sentiment", "negative", "< 0.01"),
    ("6.1.3", "race", "sentiment", "negative", "< 0.001"),
    ("6.1.3", "race", "toxicity", "toxic", "< 0.001"),
    ("6.2", "gender", "regard", "positive", "< 0.0002"),
    ("6.2", "gender", "sentiment", "positive", "< 0.001"),
    ("6.2", "gender", "sentiment", "negative", "< 0.001"),
)
"""Section, domain, column and label of a test, and the printed p; those of 6.2 compare sources."""


def claims(texts: pl.DataFrame) -> tuple[PaperClaim, ...]:
    """Every number in 6.1 and 6.2 that follows from labels, ours with its interval and n."""
    parts = (
        _profession(texts),
        *(_share(texts, *share) for share in _SHARES),
        *_race_sources(texts),
        *_beliefs(texts),
        *_models(texts),
        *_toxic_ideas(texts),
        *_tests(texts),
    )
    return tuple(sorted(parts, key=lambda claim: claim.section))


def _share(
    texts: pl.DataFrame, section: str, claim: str, printed: str, part: str, column: str, label: str
) -> PaperClaim:
    own = texts.filter((pl.col("domain") == part) | (pl.col("group") == part))
    return _claim(section, claim, printed, label_share(own, column, label))


def _profession(texts: pl.DataFrame) -> PaperClaim:
    merged = merge_professions(texts).filter(pl.col("max").is_not_null())
    polar = merged.with_columns(polar=(pl.col("max") != "neutral").cast(pl.String))
    claim = "texts about professions that are male or female"
    # Table 3 has 3,956 such texts of 60,204: 6.571 %. With the other two metrics it would be 5.67 and 5.00.
    remark = "by Gender-Max in the groups of Table 3, whose printed counts give the paper's number"
    return _claim("6.1.1", claim, "6.57 %", label_share(polar, "polar", "true"), remark=remark)


def _race_sources(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    """The number of sources that reproduce the paper's order of regard for African and European Americans."""
    sources = group_by(texts.filter(pl.col("domain") == "race"), "source").values()
    for label, holds, claim in (
        ("positive", operator.le, "European texts have positive regard at least as often as African texts"),
        ("negative", operator.gt, "African texts have negative regard more often than European texts"),
    ):
        results = []
        for frame in sources:
            parts = (frame.filter(pl.col("group") == group) for group in (_AFRICAN, _EUROPEAN))
            african, european = (label_share(part, "regard", label).value for part in parts)
            if african is not None and european is not None:
                results.append(holds(african, european))
        ours = f"{sum(results)} of {len(results)}" if results else None
        remark = "a count of point estimates: see Table 5 for intervals"
        remark = remark if results else "no source has regard for both groups"
        yield PaperClaim("6.1.3", f"sources whose {claim}", "5 of 6", ours, remark=remark)


def _beliefs(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    beliefs = texts.filter(pl.col("domain") == "religious_ideology")
    hinduism = beliefs.filter(pl.col("group") == "hinduism")["prompt_id"].n_unique()
    yield PaperClaim("6.1.4", "prompts about hinduism", "12", str(hinduism) if hinduism else None)
    scored = beliefs.filter(pl.col("toxicity").is_not_null())
    toxic = scored.filter(pl.col("toxicity") == "toxic")["group"].n_unique()
    ours = f"{toxic} of {scored['group'].n_unique()}" if scored.height else None
    yield PaperClaim("6.1.4", "beliefs with toxic texts", "3 of 7", ours)
    yield _share(texts, *_ATHEISM)
    known = texts.filter(pl.col("domain") == "political_ideology")
    negative = known.group_by("source", "group").agg(share=(pl.col("sentiment") == "negative").mean())
    is_largest = pl.col("share") == pl.col("share").max().over("source")
    largest = negative.filter(is_largest, pl.col("group") == "fascism").height
    yield PaperClaim(
        "6.1.4",
        "sources in which fascism has the largest share of negative texts",
        "6 of 6",
        f"{largest} of {known['source'].n_unique()}" if known.height else None,
        remark="not a sign of bias: the group is included to show extreme ideas (section 3.1)",
    )


def _models(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    ratios = gender_ratios(texts)
    for source in (*(source for source in RATIOS if source not in ratios), *ratios):
        claim, ratio = f"mean male : female ratio, {source}", ratios.get(source)
        in_paper = f"{RATIOS[source]:.2f}" if source in RATIOS else "-"
        ours = None if ratio is None else f"{ratio:.2f}"
        remark = "" if ours else "a merged group of professions has no female text, so no ratio"
        if source not in ratios:
            remark, source = "a source of the paper", f"paper: {source}"
        yield PaperClaim("6.2", claim, in_paper, ours, source, remark)
    for (source,), frame in group_by(texts, "source").items():
        toxic = label_share(frame, "toxicity", "toxic")
        yield _claim("6.2", "toxic texts, all domains", "< 0.5 %", toxic, source=source)


def _toxic_ideas(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    """The number of toxic texts for each belief and ideology, by source."""
    for domain, in_paper in _TOXIC.items():
        for (source,), frame in group_by(texts.filter(pl.col("domain") == domain), "source").items():
            scored = frame.filter(pl.col("toxicity").is_not_null())
            toxic = scored.filter(pl.col("toxicity") == "toxic").group_by("group", maintain_order=True).len()
            counts = ", ".join(f"{group} {count}" for group, count in toxic.iter_rows()) or "none"
            ours = f"{counts}, n = {scored.height:,}" if scored.height else None
            yield PaperClaim("6.2", f"toxic texts, {domain.replace('_', ' ')}", in_paper, ours, source)


def _tests(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    for row in test_table(texts).frame.iter_rows(named=True):
        ours = None if row["p_as_paper"] is None else f"{row['p_as_paper']:.2g}"
        # Only a test without a value has a reason.
        remark = row["null_reason"] or f"by the paper's test; with entities as clusters {row['p_ours']:.2g}"
        claim = f"p, {row['question']}"
        yield PaperClaim(row["section"], claim, row["paper_p"], ours, remark=remark)


def _claim(
    section: str, claim: str, paper: str, share: Estimate, *, source: str = "", remark: str = ""
) -> PaperClaim:
    """A share next to the printed one, with the reason if it has no interval."""
    reason, ours = share.null_reason or "", None
    if share.value is not None:
        reason = reason and f"no interval: {reason}"
        interval = "" if share.low is None or share.high is None else f" [{share.low:.2%}, {share.high:.2%}]"
        ours = f"{share.value:.2%}{interval}, n = {share.n:,}".replace("%", " %")
    return PaperClaim(section, claim, paper, ours, source, reason or remark)


def test_table(texts: pl.DataFrame) -> Exhibit:
    """Every test in the text: the paper's own on raw counts, and ours with entities as clusters."""
    return Exhibit(
        "tests",
        "The paper's tests, compared with ours",
        pl.DataFrame([_test(texts, *test) for test in _TESTS], infer_schema_length=None),
        notes=(
            "The paper's tests assume independent texts. Ours treat an entity as one cluster, also across "
            "sources, because each of them continues the same prompts.",
            "Sources are pooled in tests over groups. Tests over sources use texts that models wrote about "
            "gender, without WIKI; the paper also leaves BERT out of its test of regard, and does not "
            "name that test's domain.",
            "p-values are not corrected: these are the seven tests of the text, taken one by one.",
        ),
        decimals=4,
    )


def _test(texts: pl.DataFrame, section: str, domain: str, column: str, label: str, printed: str) -> Row:
    """The test of one label between men and women, all groups, or all sources."""
    known = texts.filter(pl.col("domain") == domain, pl.col(column).is_not_null())
    over = "source" if section == "6.2" else "group"
    if over == "source":
        known = known.filter(pl.col("source") != HUMAN)
    parts = {name: label_hits(part, column, label) for (name,), part in group_by(known, over).items()}
    paper_test: Difference | TestResult | None
    ours: Difference | Omnibus
    if section == "6.1.2":
        sides = [label_hits(known.filter(pl.col("group") == group), column, label) for group in GENDERS]
        paper_test = two_proportions(*(count for side, _ in sides for count in (int(side.sum()), side.size)))
        ours = clustered_gap(*sides[0], *sides[1], is_share=True)[0]
        question, test = "male against female, sources pooled", paper_test.method
    else:
        hits, clusters = label_hits(known, column, label)
        counts = [[int(hits.sum()), int((1 - hits).sum())] for hits, _ in parts.values()]
        paper_test = chi_square(counts) if counts else None
        ours = clustered_omnibus(hits, known[over].to_numpy(), clusters)
        pooled = "gender" if over == "source" else "race, sources pooled"
        question, test = f"the same in every {over}, {pooled}", "chi-square"
    return {
        "section": section,
        "question": f"{column} {label}: {question}",
        "shares": ", ".join(f"{name} {hits.mean():.4f}" for name, (hits, _) in parts.items()),
        "paper_test": test,
        "paper_p": printed,
        "p_as_paper": paper_test.p if paper_test else None,
        "our_test": ours.method,
        "p_ours": ours.p,
        "n": known.height,
        "n_clusters": ours.n_clusters,
        "null_reason": ours.null_reason or (paper_test.null_reason if paper_test else "no values"),
    }
