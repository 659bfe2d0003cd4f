"""The numbers in the text of sections 6.1 and 6.2, the paper's beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from evenhand.core.records import Estimate
from evenhand.papers.bold.group_tables import GENDERS, gender_ratios, merge_professions
from evenhand.papers.bold.labelled_texts import group_by, label_share
from evenhand.papers.bold.norm_tables import test_table
from evenhand.papers.bold.published_values import RATIOS
from evenhand.papers.replication_pages import PaperClaim

_SENTIMENT = {
    ("positive", "American_actors"): "17.041 %",
    ("positive", "American_actresses"): "17.763 %",
    ("negative", "American_actors"): "6.9 %",
    ("negative", "American_actresses"): "4.7 %",
}
_RACE = {
    "African_Americans": ("8.154 %", "0.297 %"),
    "Asian_Americans": ("4.917 %", "0.077 %"),
    "European_Americans": ("7.484 %", "0.193 %"),
    "Hispanic_and_Latino_Americans": ("6.958 %", "0.162 %"),
}
_RELIGION = {"atheism": "13.21 %", "islam": "10.39 %", "hinduism": "1.38 %", "buddhism": "3.85 %"}
_TOXIC = {
    "religious_ideology": "CTRL-THT, CTRL-OPN: islam 1, christianity 1, atheism 1 each; others none",
    "political_ideology": "BERT: communism 1; CTRL-OPN: fascism 1; CTRL-THT: socialism 1, communism 1",
}


def claims(texts: pl.DataFrame) -> tuple[PaperClaim, ...]:
    """Every number of the text of 6.1 and 6.2 that labels can give, ours with its interval and n."""
    parts = (_profession, _gender, _race, _beliefs, _models, _toxic_ideas, _tests)
    found = (claim for part in parts for claim in part(texts))
    return tuple(sorted(found, key=lambda claim: claim.section))


def _profession(texts: pl.DataFrame) -> Sequence[PaperClaim]:
    of = merge_professions(texts).filter(pl.col("max").is_not_null())
    polar = of.with_columns(
        polar=pl.when(pl.col("max") != "neutral").then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    claim = "texts about professions that are male or female"
    # Table 3 prints 3,956 such texts of 60,204: 6.571 %. By the other two metrics it would be 5.67 and 5.00.
    remark = "by Gender-Max in the groups of Table 3, whose printed counts give the paper's number"
    return [_claim("6.1.1", claim, "6.57 %", label_share(polar, "polar", "yes"), remark=remark)]


def _gender(texts: pl.DataFrame) -> Sequence[PaperClaim]:
    of = texts.filter(pl.col("domain") == "gender")
    found = [
        _claim("6.1.2", "texts with neutral sentiment", "76.72 %", label_share(of, "sentiment", "neutral"))
    ]
    for (label, group), printed in _SENTIMENT.items():
        ours = label_share(of.filter(pl.col("group") == group), "sentiment", label)
        found.append(_claim("6.1.2", f"{label} sentiment, {GENDERS[group]}", printed, ours))
    return found


def _race(texts: pl.DataFrame) -> Sequence[PaperClaim]:
    found = []
    for group, (negative, toxic) in _RACE.items():
        of, name = texts.filter(pl.col("group") == group), group.replace("_", " ")
        found += [
            _claim(
                "6.1.3", f"negative sentiment, {name}", negative, label_share(of, "sentiment", "negative")
            ),
            _claim("6.1.3", f"toxic texts, {name}", toxic, label_share(of, "toxicity", "toxic")),
        ]
    found.append(
        _sources_where(
            texts,
            "positive",
            "sources whose European texts are at least as often of positive regard as African",
        )
    )
    found.append(
        _sources_where(
            texts, "negative", "sources whose African texts are more often of negative regard than European"
        )
    )
    return found


def _sources_where(texts: pl.DataFrame, label: str, claim: str) -> PaperClaim:
    hits = sources = 0
    for frame in group_by(texts.filter(pl.col("domain") == "race"), "source").values():
        african, european = (
            label_share(frame.filter(pl.col("group") == group), "regard", label).value
            for group in ("African_Americans", "European_Americans")
        )
        if african is None or european is None:
            continue
        sources += 1
        hits += european >= african if label == "positive" else african > european
    ours = f"{hits} of {sources}" if sources else None
    remark = "" if sources else "no source has regard for both groups"
    return PaperClaim(
        "6.1.3",
        claim,
        "5 of 6",
        ours,
        remark=remark or "a count of point estimates: see Table 5 for intervals",
    )


def _beliefs(texts: pl.DataFrame) -> Sequence[PaperClaim]:
    of = texts.filter(pl.col("domain") == "religious_ideology")
    found = []
    for group, printed in _RELIGION.items():
        ours = label_share(of.filter(pl.col("group") == group), "sentiment", "negative")
        found.append(_claim("6.1.4", f"negative sentiment, {group}, over all sources", printed, ours))
    hinduism = of.filter(pl.col("group") == "hinduism")["prompt_id"].n_unique()
    atheism = label_share(of.filter(pl.col("group") == "atheism"), "toxicity", "toxic")
    return [
        *found,
        PaperClaim("6.1.4", "prompts about hinduism", "12", str(hinduism) if hinduism else None),
        PaperClaim("6.1.4", "beliefs with toxic texts", "3 of 7", _beliefs_with_toxic_texts(of)),
        _claim("6.1.4", "toxic texts, atheism", "0.574 %", atheism),
        _fascism(texts),
    ]


def _beliefs_with_toxic_texts(texts: pl.DataFrame) -> str | None:
    scored = texts.filter(pl.col("toxicity").is_not_null())
    toxic = scored.filter(pl.col("toxicity") == "toxic")["group"].n_unique()
    return f"{toxic} of {scored['group'].n_unique()}" if scored.height else None


def _fascism(texts: pl.DataFrame) -> PaperClaim:
    sources = group_by(texts.filter(pl.col("domain") == "political_ideology"), "source")
    largest = 0
    for frame in sources.values():
        shares = {
            group: label_share(part, "sentiment", "negative").value
            for (group,), part in group_by(frame, "group").items()
        }
        known = [value for value in shares.values() if value is not None]
        largest += bool(known) and shares.get("fascism") == max(known)
    return PaperClaim(
        "6.1.4",
        "sources in which fascism has the largest share of negative texts",
        "6 of 6",
        f"{largest} of {len(sources)}" if sources else None,
        remark="not to be read as bias: the group is there to show extreme ideas (section 3.1)",
    )


def _models(texts: pl.DataFrame) -> Sequence[PaperClaim]:
    found = [
        PaperClaim(
            "6.2",
            f"mean male : female ratio, {source}",
            f"{value:.2f}",
            None,
            source=f"paper: {source}",
            remark="the paper's source",
        )
        for source, value in RATIOS.items()
        if source not in gender_ratios(texts)
    ]
    for source, value in gender_ratios(texts).items():
        printed = f"{RATIOS[source]:.2f}" if source in RATIOS else "-"
        ours = None if value is None else f"{value:.2f}"
        remark = "" if ours else "a merged group of professions has no female text, so that it has no ratio"
        found.append(
            PaperClaim(
                "6.2", f"mean male : female ratio, {source}", printed, ours, source=source, remark=remark
            )
        )
    return [*found, *_toxic(texts)]


def _toxic(texts: pl.DataFrame) -> Sequence[PaperClaim]:
    return [
        _claim(
            "6.2",
            "toxic texts, all domains",
            "< 0.5 %",
            label_share(frame, "toxicity", "toxic"),
            source=source,
        )
        for (source,), frame in group_by(texts, "source").items()
    ]


def _toxic_ideas(texts: pl.DataFrame) -> Sequence[PaperClaim]:
    """How many toxic texts each belief and ideology has, source by source."""
    found = []
    for domain, printed in _TOXIC.items():
        for (source,), frame in group_by(texts.filter(pl.col("domain") == domain), "source").items():
            scored = frame.filter(pl.col("toxicity").is_not_null())
            toxic = scored.filter(pl.col("toxicity") == "toxic").group_by("group", maintain_order=True).len()
            counts = ", ".join(f"{group} {count}" for group, count in toxic.iter_rows()) or "none"
            ours = f"{counts}, n = {scored.height:,}" if scored.height else None
            found.append(PaperClaim("6.2", f"toxic texts, {domain.replace('_', ' ')}", printed, ours, source))
    return found


def _tests(texts: pl.DataFrame) -> Sequence[PaperClaim]:
    return [
        PaperClaim(
            row["section"],
            f"p, {row['question']}",
            row["paper_p"],
            None if row["p_as_paper"] is None else f"{row['p_as_paper']:.2g}",
            remark=row["null_reason"]
            or f"by the paper's test; with entities as clusters {row['p_ours']:.2g}",
        )
        for row in test_table(texts).frame.iter_rows(named=True)
    ]


def _claim(
    section: str, claim: str, paper: str, found: Estimate, *, source: str = "", remark: str = ""
) -> PaperClaim:
    """A share beside the printed one; one without an interval says why."""
    reason = found.null_reason or ""
    if reason and found.value is not None:
        reason = f"no interval: {reason}"
    return PaperClaim(section, claim, paper, _percent(found), source, reason or remark)


def _percent(found: Estimate) -> str | None:
    if found.value is None:
        return None
    interval = "" if found.low is None or found.high is None else f" [{found.low:.2%}, {found.high:.2%}]"
    return f"{found.value:.2%}{interval}, n = {found.n:,}".replace("%", " %")
