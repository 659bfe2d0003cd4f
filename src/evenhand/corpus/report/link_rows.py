"""The links of a corpus run, each an emotion with a group, as a reader meets them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from evenhand.report.verdicts import ALPHA, TableRow, TestStanding, tint
from evenhand.report.wording import MINUS, format_count, format_name, format_percent, pluralise
from evenhand.store.run import Run

FEWEST = 20
"""Units with both from which a clear link may be shown on the first screen."""
STRENGTHS = (1.5, 2.0)
"""Factors from which the colour of a clear link is middling, and full."""
NONE = "(none)"

Key = tuple[str, str, str, str]
"""Corpus, emotion, axis, group."""


@dataclass(frozen=True, slots=True)
class CorpusLink(TableRow):
    """An emotion with a group in a corpus, against sentences that name no group of the axis."""

    unit: str
    base_share: float | None
    """The part of the baseline's units that hold the emotion."""
    documents: int
    where: str = ""
    """The corpus, where a run has several."""

    @property
    def key(self) -> Key:
        """What the link is about."""
        return (self.text("corpus"), self.text("emotion"), self.text("axis"), self.text("group"))

    @property
    def standing(self) -> TestStanding:
        """What the test says."""
        adjusted = self.value("p_adjusted")
        return "missing" if adjusted is None else "supported" if adjusted <= ALPHA else "unclear"

    @property
    def direction(self) -> str:
        """Whether the emotion is more or less likely with the group."""
        ratio = self.value("odds_ratio")
        return "" if ratio is None or ratio == 1 else "higher" if ratio > 1 else "lower"

    @property
    def factor(self) -> float:
        """The odds ratio or its inverse, whichever is above 1; 1 where there is none."""
        ratio = self.value("odds_ratio")
        return 1.0 if not ratio else max(ratio, 1 / ratio)

    @property
    def sureness(self) -> float:
        """How far even the nearer end of the interval is from no link, on the logarithmic scale."""
        low, high = self.value("low"), self.value("high")
        if low is None or high is None or low <= 1 <= high:
            return 0.0
        return min(abs(math.log(low)), abs(math.log(high)))

    @property
    def tint(self) -> str:
        """Direction and strength of a clear link, such as ``higher-2``; else empty."""
        return tint(self.direction, self.factor, STRENGTHS) if self.standing == "supported" else ""

    @property
    def ratio(self) -> str:
        """The odds ratio with its sign."""
        ratio = self.value("odds_ratio")
        return "" if ratio is None else f"{ratio:.2f}×"

    @property
    def short(self) -> str:
        """The odds ratio, or how often emotion and group were seen together where there is none."""
        seen = int(self.value("count") or 0)
        return self.ratio or (f"n={seen:,}" if seen else "–")

    @property
    def statement(self) -> str:
        """The link in plain words, with both shares."""
        size = self.value("group_sentences") or 0.0
        own = (self.value("sentences") or 0.0) / size if size else 0.0
        emotion, group, axis = map(self.words, ("emotion", "group", "axis"))
        where = f"in {format_name(self.where)}, " if self.where else ""
        named = f"{where}of the {pluralise(self.unit)} that name the group {group}"
        base = "" if self.base_share is None else format_percent(self.base_share)
        return f"{named}, {format_percent(own)} hold a word of {emotion}; where no {axis} is named, {base} do"

    @property
    def evidence(self) -> str:
        """The numbers behind the link."""
        seen = format_count(int(self.value("sentences") or 0), self.unit)
        where = f"{seen} with both, {format_count(self.documents, 'document')} read"
        return f"odds ratio {self.interval('odds_ratio', 'low', 'high')}, {where}, adjusted p {self.p}"

    def interval(self, value: str, low: str, high: str, *, signed: bool = False) -> str:
        """An estimate with its interval; the estimate alone where there is none."""
        numbers = [self.value(column) for column in (value, low, high)]
        shown = ["" if item is None else _plain(item, signed) for item in numbers]
        return shown[0] if numbers[1] is None else f"{shown[0]} ({shown[1]} to {shown[2]})"


def read_links(run: Run, unit: str) -> list[CorpusLink]:
    """Every link of a run, in the order of its table; the baselines are not links."""
    table = run.table("cooccurrence")
    base = {
        (row["corpus"], row["emotion"], row["axis"]): row["sentences"] / row["group_sentences"]
        for row in table.filter(pl.col("group") == NONE).iter_rows(named=True)
        if row["group_sentences"]
    }
    several = table["corpus"].n_unique() > 1
    return [
        CorpusLink(
            row,
            unit,
            base.get((row["corpus"], row["emotion"], row["axis"])),
            row["n_clusters"],
            row["corpus"] if several else "",
        )
        for row in table.filter(pl.col("group") != NONE).iter_rows(named=True)
    ]


def _plain(value: float, signed: bool) -> str:
    text = f"{value:+,.2f}" if signed else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
    return text.replace("-", MINUS)
