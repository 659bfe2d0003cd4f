"""The numbers in the text of sections 6.1 and 6.2, the paper's beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from evenhand.core.records import Estimate
from evenhand.papers.bold.gender import ratios
from evenhand.papers.bold.printed import RATIOS
from evenhand.papers.bold.shares import by, share
from evenhand.papers.records import Claim

_GENDER = {"American_actors": "male", "American_actresses": "female"}
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


def claims(texts: pl.DataFrame) -> tuple[Claim, ...]:
    """Every number of the text of 6.1 and 6.2 that labels can give, ours with its interval and n."""
    return (*_profession(texts), *_gender(texts), *_race(texts), *_beliefs(texts), *_models(texts))


def _profession(texts: pl.DataFrame) -> Sequence[Claim]:
    of = texts.filter(pl.col("domain") == "profession")
    polar = of.with_columns(
        polar=pl.when(pl.col("max") != "neutral").then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    found = share(polar.filter(pl.col("max").is_not_null()), "polar", "yes")
    remark = "by Gender-Max; the paper does not say by which of its three metrics"
    return [
        Claim(
            "6.1.1",
            "texts about professions that are male or female",
            "6.57 %",
            _percent(found),
            remark=remark,
        )
    ]


def _gender(texts: pl.DataFrame) -> Sequence[Claim]:
    of = texts.filter(pl.col("domain") == "gender")
    found = [
        Claim("6.1.2", "texts with neutral sentiment", "76.72 %", _percent(share(of, "sentiment", "neutral")))
    ]
    for (label, group), printed in _SENTIMENT.items():
        ours = share(of.filter(pl.col("group") == group), "sentiment", label)
        found.append(Claim("6.1.2", f"{label} sentiment, {_GENDER[group]}", printed, _percent(ours)))
    return found


def _race(texts: pl.DataFrame) -> Sequence[Claim]:
    found = []
    for group, (negative, toxic) in _RACE.items():
        of, name = texts.filter(pl.col("group") == group), group.replace("_", " ")
        found.append(
            Claim(
                "6.1.3", f"negative sentiment, {name}", negative, _percent(share(of, "sentiment", "negative"))
            )
        )
        found.append(Claim("6.1.3", f"toxic texts, {name}", toxic, _percent(share(of, "toxicity", "toxic"))))
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


def _sources_where(texts: pl.DataFrame, label: str, claim: str) -> Claim:
    hits = sources = 0
    for frame in by(texts.filter(pl.col("domain") == "race"), "source").values():
        african, european = (
            share(frame.filter(pl.col("group") == group), "regard", label).value
            for group in ("African_Americans", "European_Americans")
        )
        if african is None or european is None:
            continue
        sources += 1
        hits += european >= african if label == "positive" else african > european
    ours = f"{hits} of {sources}" if sources else None
    remark = "" if sources else "no source has regard for both groups"
    return Claim(
        "6.1.3",
        claim,
        "5 of 6",
        ours,
        remark=remark or "a count of point estimates: see Table 5 for intervals",
    )


def _beliefs(texts: pl.DataFrame) -> Sequence[Claim]:
    of = texts.filter(pl.col("domain") == "religious_ideology")
    found = []
    for group, printed in _RELIGION.items():
        ours = share(of.filter(pl.col("group") == group), "sentiment", "negative")
        found.append(
            Claim("6.1.4", f"negative sentiment, {group}, over all sources", printed, _percent(ours))
        )
    atheism = share(of.filter(pl.col("group") == "atheism"), "toxicity", "toxic")
    found.append(Claim("6.1.4", "toxic texts, atheism", "0.574 %", _percent(atheism)))
    found.append(_fascism(texts))
    return found


def _fascism(texts: pl.DataFrame) -> Claim:
    sources = by(texts.filter(pl.col("domain") == "political_ideology"), "source")
    largest = 0
    for frame in sources.values():
        shares = {
            key[0]: share(part, "sentiment", "negative").value or 0.0
            for key, part in by(frame, "group").items()
        }
        largest += max(shares, key=lambda group: shares[group]) == "fascism"
    return Claim(
        "6.1.4",
        "sources in which fascism has the largest share of negative texts",
        "6 of 6",
        f"{largest} of {len(sources)}",
        remark="not to be read as bias: the group is there to show extreme ideas (section 3.1)",
    )


def _models(texts: pl.DataFrame) -> Sequence[Claim]:
    found = [
        Claim(
            "6.2",
            f"mean male : female ratio, {source}",
            f"{value:.2f}",
            None,
            source=f"paper: {source}",
            remark="the paper's source",
        )
        for source, value in RATIOS.items()
        if source not in ratios(texts)
    ]
    for source, value in ratios(texts).items():
        printed = f"{RATIOS[source]:.2f}" if source in RATIOS else "-"
        ours = None if value is None else f"{value:.2f}"
        remark = "" if ours else "a merged group of professions has no female text, so that it has no ratio"
        found.append(
            Claim("6.2", f"mean male : female ratio, {source}", printed, ours, source=source, remark=remark)
        )
    return [*found, *_toxic(texts)]


def _toxic(texts: pl.DataFrame) -> Sequence[Claim]:
    return [
        Claim(
            "6.2",
            "toxic texts, all domains",
            "< 0.5 %",
            _percent(share(frame, "toxicity", "toxic")),
            source=source,
        )
        for (source,), frame in by(texts, "source").items()
    ]


def _percent(found: Estimate) -> str | None:
    if found.value is None:
        return None
    interval = "" if found.low is None or found.high is None else f" [{found.low:.2%}, {found.high:.2%}]"
    return f"{found.value:.2%}{interval}, n = {found.n:,}".replace("%", " %")
