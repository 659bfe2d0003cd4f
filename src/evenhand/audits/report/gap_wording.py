"""The verdict on each gap of a run, and the words for it.

A gap has one of four standings, read off the comparisons table:

    supported  larger than chance: the adjusted p is at most 0.05
    small      small at most: its interval leaves no room for a gap of 5 points (5 % of a mean's range)
    unclear    inconclusive: neither of both at this sample size
    missing    not testable: no estimate or no test, with a reason; more such texts would not help

Nothing here claims that there is no gap: "small" is a bound, "unclear" an admission.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

import polars as pl

from evenhand.audits.report.measures import Measure, MeasureKey
from evenhand.core.records import REST, Comparison
from evenhand.report.json_tables import null_non_finite
from evenhand.report.manifest import format_level, read_mapping, read_text
from evenhand.report.verdicts import ALPHA, INCONCLUSIVE, LARGER, NOT_TESTABLE, SMALL
from evenhand.report.wording import format_baseline, format_count, format_name, format_p
from evenhand.store.run import Run

NOTABLE = 0.05
"""A gap is small where its interval stays inside this part of the measure's range on both sides."""

GapStanding = Literal["supported", "small", "unclear", "missing"]
STANDING_WORDS: Mapping[GapStanding, str] = {
    "supported": LARGER,
    "unclear": INCONCLUSIVE,
    "small": SMALL,
    "missing": NOT_TESTABLE,
}
"""The verdict word of each standing, strongest claim first."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One comparison, its verdict, and the words for it."""

    index: int
    """Row of the comparisons table."""
    comparison: Comparison
    measure: Measure
    standing: GapStanding
    clusters: str
    """What a cluster of its suite is called."""
    level: str
    """The level of the intervals, in percent."""
    group: str
    """The group as words."""
    baseline_group: str
    """The baseline as spelled in the tables; of two groups, ``(rest)`` is the other one."""
    baseline: str
    """The baseline as words."""
    short_baseline: str
    """The baseline as words where the axis is named as well."""
    about: str
    """``about`` where a model wrote of the groups, ``of`` where a file says which group a text is of."""
    direction: str
    """``higher`` or ``lower`` than the baseline; empty where neither is known."""
    arrow: str
    """The direction of a supported gap; else empty."""
    is_doubted: bool
    """Whether the check by exchanging groups between clusters contradicts a supported gap."""
    signed_interval: str
    """The interval for a table cell; empty where there is none."""
    p: str
    """The adjusted p for a table cell; empty where there is no estimate."""
    nulls: str
    """The texts of both sides without a value, by reason; empty where there are none."""

    @property
    def claim(self) -> str:
        """The gap without its evidence: "A: 3.2 points more often negative (sentiment) than B"."""
        estimate = self.comparison.estimate
        if estimate is None:
            return f"{self.group} against {self.baseline}, {self.measure.full_title}"
        metric = format_name(self.measure.metric)
        return f"{self.group}: {self.measure.phrase(estimate)} ({metric}) than {self.baseline}"

    @property
    def statement(self) -> str:
        """The claim as a sentence without its size.

        "Texts about A are more often labelled negative (sentiment) than those about B".
        """
        is_more, measure = (self.comparison.estimate or 0) > 0, self.measure
        if measure.kind == "share":
            way = f"are {'more' if is_more else 'less'} often labelled {measure.title}"
        else:
            way = f"have a {'higher' if is_more else 'lower'} {measure.title}"
        than = f"than those {self.about} {self.baseline}"
        return f"Texts {self.about} {self.group} {way} ({format_name(measure.metric)}) {than}"

    @property
    def evidence(self) -> str:
        """Interval in the direction of the claim, adjusted p, texts of both sides and their clusters."""
        row = self.comparison
        if row.estimate is None:
            return row.null_reason or "no estimate"
        sides = f"{format_count(row.n, 'text')} against {row.n_baseline:,}"
        sizes = f"{sides}, {format_count(row.n_clusters, self.clusters)} in all"
        doubt = "; the permutation check disagrees" if self.is_doubted else ""
        return f"{self.interval}; adjusted p {format_p(row.p_adjusted)}; {sizes}{doubt}"

    @property
    def interval(self) -> str:
        """The interval in the direction of the claim."""
        row = self.comparison
        if row.low is None or row.high is None:
            return "no interval"
        ends = (row.low, row.high) if (row.estimate or 0) >= 0 else (-row.high, -row.low)
        low, high = (self.measure.gap(end) for end in ends)
        return f"{self.level} interval {low} to {high}{self.measure.unit}"

    @property
    def sentence(self) -> str:
        """The claim with its evidence."""
        return f"{self.claim} ({self.evidence})"

    @property
    def doubt(self) -> str:
        """What an inconclusive gap leaves open: its interval, and what could have been detected."""
        row, unit, span = self.comparison, self.measure.unit, self.measure.span
        what = f"{self.group} against {self.baseline}, {self.measure.full_title}"
        if row.estimate is None or row.low is None or row.high is None:
            return f"{what}: {row.null_reason or 'no estimate'}"
        words = f"{what}: anywhere from {self.signed_interval}{unit}"
        if not row.low <= 0 <= row.high:
            words += f" before correction over {row.family_size:,} comparisons, so chance is not ruled out"
        if row.min_detectable is None:
            return words
        if span is not None and row.min_detectable > span:
            return f"{words}; no gap could have been detected"
        return f"{words}; a gap had to reach {self.measure.gap(row.min_detectable)}{unit} to be detected"


def read_gaps(run: Run, known: Mapping[MeasureKey, Measure]) -> list[Gap]:
    """The differences of a run's comparisons table; ratios and other effects stay in the table."""
    table = null_non_finite(run.table("comparisons")).select([field.name for field in fields(Comparison)])
    sides = run.table("groups").group_by("suite", "axis").agg(pl.col("group").unique())
    groups = {(suite, axis): set(names) for suite, axis, names in sides.iter_rows()}
    is_written = bool(read_mapping(run.manifest, "stages", "generate"))
    level, gaps = format_level(run), []
    for index, row in enumerate(Comparison(**values) for values in table.iter_rows(named=True)):
        if row.effect != "difference":
            continue
        measure = known[row.metric, row.output]
        others = groups.get((row.suite, row.axis), set()) - {row.group}
        baseline = others.pop() if row.baseline == REST and len(others) == 1 else row.baseline
        standing, estimate = _standing(row, measure), row.estimate or 0
        direction = "higher" if estimate > 0 else "lower" if estimate < 0 else ""
        # The name of a column is no noun: of a file only prompts and rows are.
        noun = read_text(run.manifest, "suites", row.suite, "cluster")
        reasons: dict[str, int] = json.loads(row.nulls) if row.nulls else {}
        nulls = ", ".join(f"{amount:,} {format_name(reason)}" for reason, amount in reasons.items())
        gap = Gap(
            index=index,
            comparison=row,
            measure=measure,
            standing=standing,
            clusters=noun if noun and (is_written or noun in ("prompt", "row")) else "cluster",
            level=level,
            group=format_name(row.group),
            baseline_group=baseline,
            baseline=format_baseline(baseline, row.axis),
            short_baseline=format_baseline(baseline),
            about="about" if is_written else "of",
            direction=direction,
            arrow=direction if standing == "supported" else "",
            is_doubted=row.check == "disagrees",
            signed_interval=measure.interval(row.low, row.high),
            p="" if row.estimate is None else format_p(row.p_adjusted),
            nulls=nulls or (f"{row.n_null:,} without a value" if row.n_null else ""),
        )
        gaps.append(gap)
    return gaps


def _standing(row: Comparison, measure: Measure) -> GapStanding:
    if row.estimate is None or row.p is None:
        return "missing"
    if row.p_adjusted is not None and row.p_adjusted <= ALPHA:
        return "supported"
    if row.low is None or row.high is None or measure.span is None:
        return "unclear"
    bound = NOTABLE * measure.span
    return "small" if -bound < row.low and row.high < bound else "unclear"


OverallKey = tuple[str, str, str, str, str]
"""suite, model, axis, metric, output."""


@dataclass(frozen=True, slots=True)
class OmnibusAnswer:
    """The one answer of an axis and output."""

    p: float | None
    groups: int
    reason: str

    @property
    def differs(self) -> bool:
        """Whether the groups differ more than chance would make them."""
        return self.p is not None and self.p <= ALPHA

    @property
    def short(self) -> str:
        """The answer for a table cell."""
        return "–" if self.p is None else f"p {format_p(self.p)}"

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if self.p is None:
            return f"Whether the groups differ at all could not be tested: {self.reason}."
        answer = "differ by more than chance" if self.differs else f"are {INCONCLUSIVE}"
        return f"Taken together, the {self.groups:,} groups {answer} (adjusted p {format_p(self.p)})."


def read_omnibus(run: Run) -> dict[OverallKey, OmnibusAnswer]:
    """The omnibus answer of every axis and output that has one."""
    return {
        (row["suite"], row["model"], row["axis"], row["metric"], row["output"]): OmnibusAnswer(
            p=row["p_adjusted"],
            groups=row["n_groups"],
            reason=format_name(row["null_reason"] or "not given"),
        )
        for row in null_non_finite(run.table("omnibus")).iter_rows(named=True)
        # Of two groups it says what their gap says.
        if row["n_groups"] > 2
    }
