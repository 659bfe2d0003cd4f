"""The numbers in the text of sections 6.1 and 6.2, the paper's beside ours."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from evenhand.core.records import Estimate
from evenhand.papers.bold.group_tables import gender_ratios, merge_professions
from evenhand.papers.bold.labelled_texts import GENDERS, group_by, label_share
from evenhand.papers.bold.norm_tables import test_table
from evenhand.papers.replication_pages import PaperClaim


class _Share(NamedTuple):
    """A share that the text prints: of texts about a group (or a whole domain), those with a label."""

    claim: str
    printed: str
    domain: str
    group: str | None
    column: str
    label: str


_GENDER = (
    _Share("texts with neutral sentiment", "76.72 %", "gender", None, "sentiment", "neutral"),
    *(
        _Share(f"{label} sentiment, {GENDERS[group]}", printed, "gender", group, "sentiment", label)
        for label, group, printed in (
            ("positive", "American_actors", "17.041 %"),
            ("positive", "American_actresses", "17.763 %"),
            ("negative", "American_actors", "6.9 %"),
            ("negative", "American_actresses", "4.7 %"),
        )
    ),
)
_RACE = tuple(
    _Share(f"{words}, {group.replace('_', ' ')}", printed, "race", group, column, label)
    for group, *shares in (
        ("African_Americans", "8.154 %", "0.297 %"),
        ("Asian_Americans", "4.917 %", "0.077 %"),
        ("European_Americans", "7.484 %", "0.193 %"),
        ("Hispanic_and_Latino_Americans", "6.958 %", "0.162 %"),
    )
    for printed, words, column, label in zip(
        shares,
        ("negative sentiment", "toxic texts"),
        ("sentiment", "toxicity"),
        ("negative", "toxic"),
        strict=True,
    )
)
_COMPARED = ("African_Americans", "European_Americans")
_BELIEF = "religious_ideology"
_RELIGION = tuple(
    _Share(f"negative sentiment, {group}, over all sources", printed, _BELIEF, group, "sentiment", "negative")
    for group, printed in (
        ("atheism", "13.21 %"),
        ("islam", "10.39 %"),
        ("hinduism", "1.38 %"),
        ("buddhism", "3.85 %"),
    )
)
_ATHEISM = _Share("toxic texts, atheism", "0.574 %", _BELIEF, "atheism", "toxicity", "toxic")
RATIOS = {"WIKI": 2.29, "BERT": 1.25, "GPT-2": 3.18, "CTRL-WIKI": 2.94, "CTRL-OPN": 1.85, "CTRL-THT": 2.15}
"""Section 6.2: the mean of a source's four male : female ratios by Gender-Max."""
_TOXIC = {
    "religious_ideology": "CTRL-THT, CTRL-OPN: islam 1, christianity 1, atheism 1 each; others none",
    "political_ideology": "BERT: communism 1; CTRL-OPN: fascism 1; CTRL-THT: socialism 1, communism 1",
}


def claims(texts: pl.DataFrame) -> tuple[PaperClaim, ...]:
    """Every number of the text of 6.1 and 6.2 that labels can give, ours with its interval and n."""
    parts = (
        _profession(texts),
        *(_share(texts, "6.1.2", share) for share in _GENDER),
        *(_share(texts, "6.1.3", share) for share in _RACE),
        *_race_sources(texts),
        *(_share(texts, "6.1.4", share) for share in _RELIGION),
        *_beliefs(texts),
        *_models(texts),
        *_toxic_ideas(texts),
        *_tests(texts),
    )
    return tuple(sorted(parts, key=lambda claim: claim.section))


def _share(texts: pl.DataFrame, section: str, share: _Share) -> PaperClaim:
    of = texts.filter(pl.col("domain") == share.domain)
    of = of if share.group is None else of.filter(pl.col("group") == share.group)
    return _claim(section, share.claim, share.printed, label_share(of, share.column, share.label))


def _profession(texts: pl.DataFrame) -> PaperClaim:
    of = merge_professions(texts).filter(pl.col("max").is_not_null())
    polar = of.with_columns(polar=(pl.col("max") != "neutral").cast(pl.String))
    claim = "texts about professions that are male or female"
    # Table 3 prints 3,956 such texts of 60,204: 6.571 %. By the other two metrics it would be 5.67 and 5.00.
    remark = "by Gender-Max in the groups of Table 3, whose printed counts give the paper's number"
    return _claim("6.1.1", claim, "6.57 %", label_share(polar, "polar", "true"), remark=remark)


def _race_sources(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    """How many sources write of Africans with regard as the paper's do."""
    sources = group_by(texts.filter(pl.col("domain") == "race"), "source").values()
    for label, holds, claim in (
        ("positive", operator.le, "European texts are at least as often of positive regard as African"),
        ("negative", operator.gt, "African texts are more often of negative regard than European"),
    ):
        pairs = [
            [
                label_share(frame.filter(pl.col("group") == group), "regard", label).value
                for group in _COMPARED
            ]
            for frame in sources
        ]
        known = [(one, two) for one, two in pairs if one is not None and two is not None]
        ours = f"{sum(holds(*pair) for pair in known)} of {len(known)}" if known else None
        remark = "a count of point estimates: see Table 5 for intervals"
        remark = remark if known else "no source has regard for both groups"
        yield PaperClaim("6.1.3", f"sources whose {claim}", "5 of 6", ours, remark=remark)


def _beliefs(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    of = texts.filter(pl.col("domain") == _BELIEF)
    hinduism = of.filter(pl.col("group") == "hinduism")["prompt_id"].n_unique()
    yield PaperClaim("6.1.4", "prompts about hinduism", "12", str(hinduism) if hinduism else None)
    scored = of.filter(pl.col("toxicity").is_not_null())
    toxic = scored.filter(pl.col("toxicity") == "toxic")["group"].n_unique()
    ours = f"{toxic} of {scored['group'].n_unique()}" if scored.height else None
    yield PaperClaim("6.1.4", "beliefs with toxic texts", "3 of 7", ours)
    yield _share(texts, "6.1.4", _ATHEISM)
    sources = group_by(texts.filter(pl.col("domain") == "political_ideology"), "source")
    largest = 0
    for frame in sources.values():
        shares = {
            group: label_share(part, "sentiment", "negative").value
            for (group,), part in group_by(frame, "group").items()
        }
        known = [value for value in shares.values() if value is not None]
        largest += bool(known) and shares.get("fascism") == max(known)
    yield PaperClaim(
        "6.1.4",
        "sources in which fascism has the largest share of negative texts",
        "6 of 6",
        f"{largest} of {len(sources)}" if sources else None,
        remark="not to be read as bias: the group is there to show extreme ideas (section 3.1)",
    )


def _models(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    ratios = gender_ratios(texts)
    for source in (*(source for source in RATIOS if source not in ratios), *ratios):
        claim, ratio = f"mean male : female ratio, {source}", ratios.get(source)
        in_paper = f"{RATIOS[source]:.2f}" if source in RATIOS else "-"
        ours = None if ratio is None else f"{ratio:.2f}"
        remark = "" if ours else "a merged group of professions has no female text, so that it has no ratio"
        if source not in ratios:
            remark, source = "the paper's source", f"paper: {source}"
        yield PaperClaim("6.2", claim, in_paper, ours, source, remark)
    for (source,), frame in group_by(texts, "source").items():
        toxic = label_share(frame, "toxicity", "toxic")
        yield _claim("6.2", "toxic texts, all domains", "< 0.5 %", toxic, source=source)


def _toxic_ideas(texts: pl.DataFrame) -> Iterator[PaperClaim]:
    """How many toxic texts each belief and ideology has, source by source."""
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
        # Only a test without a value of its own has a reason.
        remark = row["null_reason"] or f"by the paper's test; with entities as clusters {row['p_ours']:.2g}"
        claim = f"p, {row['question']}"
        yield PaperClaim(row["section"], claim, row["paper_p"], ours, remark=remark)


def _claim(
    section: str, claim: str, paper: str, share: Estimate, *, source: str = "", remark: str = ""
) -> PaperClaim:
    """A share beside the printed one; one without an interval says why."""
    reason, ours = share.null_reason or "", None
    if share.value is not None:
        reason = reason and f"no interval: {reason}"
        interval = "" if share.low is None or share.high is None else f" [{share.low:.2%}, {share.high:.2%}]"
        ours = f"{share.value:.2%}{interval}, n = {share.n:,}".replace("%", " %")
    return PaperClaim(section, claim, paper, ours, source, reason or remark)
