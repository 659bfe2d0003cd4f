"""The cells of a probe run, each an emotion and a pair of groups, as the report shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evenhand.report.verdicts import ALPHA, TEST_WORDS, TableRow, TestStanding, tint
from evenhand.report.wording import format_count, format_number, format_percent
from evenhand.stats.paired_measures import PARITY_THRESHOLD

MEANINGS: Final[Mapping[TestStanding, str]] = {
    "supported": "adjusted p of at most 0.05, and the interval over templates excludes 0",
    "unclear": "the difference may be chance",
    "missing": "no t-test: fewer than two pairs, all differences the same, or one template",
}
STRENGTHS: Final = (0.05, 0.15)
"""Sizes of the ACS from which a clear cell has the medium colour, and the full colour."""
KEY: Final = ("corpus", "axis", "group_a", "group_b", "emotion")
Key = tuple[str, str, str, str, str]
"""Corpus, axis, first group, second group, emotion."""


@dataclass(frozen=True, slots=True)
class ProbeCell(TableRow):
    """One row of ``measures``."""

    @property
    def key(self) -> Key:
        """The key of the cell."""
        corpus, axis, group_a, group_b, emotion = map(self.text, KEY)
        return corpus, axis, group_a, group_b, emotion

    @property
    def size(self) -> float:
        """The size of the mean difference."""
        return abs(self.value("difference") or 0)

    @property
    def pair(self) -> str:
        """The two groups: "male × female"."""
        return f"{self.words('group_a')} × {self.words('group_b')}"

    @property
    def standing(self) -> TestStanding:
        """The combined result of test and interval."""
        adjusted, low, high = (self.value(key) for key in ("p_adjusted", "difference_low", "difference_high"))
        if adjusted is None or low is None or high is None:
            return "missing"
        return "supported" if adjusted <= ALPHA and not low <= 0 <= high else "unclear"

    @property
    def direction(self) -> str:
        """``higher`` where the second group has the higher intensities, ``lower`` where the first has."""
        gap = self.value("difference")
        return "" if not gap else "higher" if gap > 0 else "lower"

    @property
    def tint(self) -> str:
        """The colour of a clear cell: side and strength of the ACS.

        Empty if the ACS, a mean of ratios, and the mean difference have opposite signs.
        """
        acs, gap = self.value("acs") or 0.0, self.value("difference") or 0.0
        is_clear = self.standing == "supported" and acs * gap > 0
        return tint(self.direction, abs(acs), STRENGTHS) if is_clear else ""

    @property
    def acs_words(self) -> str:
        """The higher group by the ACS: "female higher", "equal"; empty if there is no ACS."""
        acs = self.value("acs")
        if acs is None:
            return ""
        return f"{self.words('group_b' if acs > 0 else 'group_a')} higher" if acs else "equal"

    @property
    def contrary(self) -> str:
        """The group with the higher mean if the ACS, a mean of ratios, favours the other one; else empty."""
        acs, gap = self.value("acs") or 0.0, self.value("difference") or 0.0
        return self.more if acs * gap < 0 else ""

    @property
    def more(self) -> str:
        """The group with the higher intensities."""
        return self.words("group_b" if self.direction == "higher" else "group_a")

    @property
    def less(self) -> str:
        """The other group."""
        return self.words("group_a" if self.direction == "higher" else "group_b")

    @property
    def statement(self) -> str:
        """The difference in words, without its sign."""
        emotion = self.words("emotion")
        return f"More {emotion} is found in the same sentence for {self.more} than for {self.less}"

    @property
    def verdict(self) -> str:
        """The direction of a clear cell, else the reason why there is no answer."""
        if self.standing == "supported":
            return f"higher for {self.more}"
        return self.reason or TEST_WORDS[self.standing]

    @property
    def evidence(self) -> str:
        """The numbers behind the statement."""
        low, high = (self.value(end) or 0.0 for end in ("difference_low", "difference_high"))
        pairs, templates = (int(self.value(count) or 0) for count in ("n", "n_clusters"))
        ends = " to ".join(map(format_number, sorted((abs(low), abs(high)))))
        span = f" ({ends})" if low * high > 0 else ""
        return (
            f"by {format_number(self.size)}{span} on a scale from 0 to 1, "
            f"ACS {self.format_number('acs', signed=True)}, adjusted p {self.p}, "
            f"{format_count(pairs, 'pair')} from {format_count(templates, 'template')}"
        )

    @property
    def is_below_parity(self) -> bool:
        """Whether one group gets the class much less often than the other."""
        dp = self.value("dp")
        return dp is not None and dp < PARITY_THRESHOLD

    @property
    def parity(self) -> str:
        """How often the class is predicted for each group, in words."""
        first, second = self.value("share_a"), self.value("share_b")
        if first is None or second is None:
            return ""
        emotion, group_a, group_b = map(self.words, ("emotion", "group_a", "group_b"))
        return (
            f"{emotion} is predicted for {format_percent(first)} of the sentences about {group_a} "
            f"and {format_percent(second)} of those about {group_b}"
        )
