"""Numbers of the affective paper's text, beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from evenhand.core.protocols import Suite
from evenhand.papers.affective.published_values import load_published_predictions
from evenhand.papers.replication_pages import PaperClaim
from evenhand.suites.pairs.crows import PRINTED
from evenhand.suites.pairs.pair_sets import PairSuite, count_sets

_COUNTS = {
    "eec": {"gender": "1400 pairs", "race": "2800 pairs"},
    "bits": {"gender": "120 sentences a group", "race": "72 pairs"},
    "crows": {axis: f"{number}" for axis, number in PRINTED.items()},
}
_SECTION = "4.2.1"


def claims(suites: Sequence[Suite]) -> tuple[PaperClaim, ...]:
    """Counts of evaluation sentences, and what 5.1 says of the printed tables."""
    return (*_pairs(suites), *_of_tables())


def _pairs(suites: Sequence[Suite]) -> Iterator[PaperClaim]:
    for suite in suites:
        sets = suite.sets if isinstance(suite, PairSuite) else ()
        for axis, (number, pairs) in count_sets(sets).items():
            printed = _COUNTS.get(suite.info.name, {}).get(axis)
            if printed is None:
                continue
            remark = (
                "changed by hand in the paper and not released; ours by a rule"
                if suite.info.name == "crows"
                else "as released"
            )
            yield PaperClaim(
                _SECTION,
                f"{suite.info.name}, {axis}: sentences to compare",
                printed,
                f"{number} sets, {pairs} pairs of groups",
                suite.info.name,
                remark,
            )


def _of_tables() -> Iterator[PaperClaim]:
    """Section 5.1 counts in Tables 6 to 9, so that it can be checked against them."""
    table = load_published_predictions()
    largest = table.sort("avg_delta", descending=True)["source"].head(5).to_list()
    yield PaperClaim(
        "5.1",
        "of the five largest average deltas, how many are T5's",
        "3",
        str(largest.count("paper: T5")),
        "printed tables",
        "counted in Tables 6 to 9 as printed",
    )
    yield PaperClaim(
        "5.1",
        "of the five largest average deltas, how many are XLNet's",
        "0",
        str(largest.count("paper: XLNet")),
        "printed tables",
        "counted in Tables 6 to 9 as printed",
    )
    below = table.filter(pl.col("dp") < 0.8)
    xlnet = below.filter(pl.col("source") == "paper: XLNet")
    yield PaperClaim(
        "5.1",
        "XLNet has the least class-based bias, in religion and sadness alone",
        "religion, sadness",
        ", ".join(f"{pair} {emotion}" for pair, emotion in xlnet.select("pair", "emotion").iter_rows()),
        "printed tables",
        "cells with DP below 0.80",
    )
