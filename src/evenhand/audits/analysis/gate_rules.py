"""Gates: limits on gaps, and whether a run keeps them.

A check has three answers. It *passes* where the whole interval lies inside the limit, it *fails* where the
interval excludes the limit, and else the run *cannot tell*, and says how many texts it would take.

Against an earlier run, what counts is how much wider a gap is on the side where it is now. A gap that has
reversed (larger than chance on the other side) had no width there: it is wider by its whole size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from evenhand.audits.analysis.run_changes import RunChange
from evenhand.audits.loaded_run import FinishedRun
from evenhand.audits.power import ObservedGap, SampleSizePlanner
from evenhand.core.errors import InputError
from evenhand.core.records import Comparison
from evenhand.stats.contrasts import SHARES
from evenhand.stats.results import NO_VARIATION

GateVerdict = Literal["passes", "fails", "cannot tell"]
RuleKind = Literal["gap", "worse"]
ANY = "*"
_Item = TypeVar("_Item", Comparison, RunChange)
_MOST = 1_000.0
"""Growth beyond which a number of texts is no help."""
_ROUNDING = 1e-12
"""A change this small is none."""


@dataclass(frozen=True, slots=True)
class GateRule:
    """A limit on the size of gaps: ``METRIC[.OUTPUT] AXIS[=GROUP] LIMIT``, with ``*`` for any."""

    measure: str
    """``METRIC.OUTPUT``, or ``METRIC`` for its primary outputs."""
    axis: str
    group: str
    limit: float
    kind: RuleKind = "gap"

    @classmethod
    def parse(cls, text: str, kind: RuleKind = "gap") -> GateRule:
        """The rule in words: ``sentiment.negative race 0.05``. Names of axes and groups may hold spaces."""
        measure, _, rest = text.strip().partition(" ")
        about, _, number = rest.strip().rpartition(" ")
        limit = _limit(number)
        if not about or limit is None:
            raise InputError(
                f"the limit {text!r}",
                expected="METRIC[.OUTPUT] AXIS[=GROUP] LIMIT, as 'sentiment.negative race 0.05'; * is any",
                fix="write it so",
            )
        axis, _, group = about.strip().partition("=")
        return cls(measure, axis, group or ANY, limit, kind)

    def __str__(self) -> str:
        """The rule as it is written."""
        group = "" if self.group == ANY else f"={self.group}"
        return f"{self.measure} {self.axis}{group} {self.limit:g}"

    def covers(self, item: Comparison | RunChange) -> bool:
        """Whether the rule speaks of a comparison; without an output it speaks of the primary ones."""
        is_named = self.measure == f"{item.metric}.{item.output}"
        return (
            (is_named or (self.measure in (ANY, item.metric) and not item.exploratory))
            and self.axis in (ANY, item.axis)
            and self.group in (ANY, item.group)
        )


@dataclass(frozen=True, slots=True)
class RequiredGrowth:
    """What it would take to tell, with 80 % power if the true gap is the one seen."""

    clusters: int | None
    """Clusters instead of ``now``; null where a thousand times as many would not do."""
    now: int
    samples: float | None
    """Times the samples of the same prompts; null where no number is enough, or none is known."""

    def __str__(self) -> str:
        """In words."""
        if self.clusters is None:
            return "the gap is so near its limit that a thousand times the texts would not tell"
        more = f"about {self.clusters:,} clusters instead of {self.now:,}"
        if self.samples is None:
            return f"{more}; more samples of the same prompts would not be enough"
        return f"{more}, or {self.samples:.1f} times the samples of each prompt"


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One comparison held against one limit."""

    rule: GateRule
    suite: str
    axis: str
    group: str
    baseline: str
    metric: str
    output: str
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    n_clusters: int
    verdict: GateVerdict
    reason: str
    """Why nothing can be told, where the data give no interval."""
    needs: RequiredGrowth | None = None
    is_share: bool = False
    """Whether the gap is one of shares, and not of means."""
    reversed_from: float | None = None
    """The gap of the earlier run, where this one is larger than chance on the other side."""
    gap: float | None = None
    """The gap of this run, where it is held against that of an earlier one."""

    @property
    def name(self) -> str:
        """The check in a line: what is held against which limit."""
        return self.format_name(f"{self.rule.limit:g}")

    @property
    def finding(self) -> str:
        """What was found, with its interval: shares from 0 to 1, as tables and other tools have them."""
        return self.format_finding(lambda size: f"{size:+.4f}")

    @property
    def subject(self) -> str:
        """Which gap is checked."""
        return f"{self.metric}.{self.output} {self.axis}: {self.group} against {self.baseline}"

    def format_name(self, limit: str) -> str:
        """The check with its limit spelled so."""
        if self.rule.kind == "worse":
            return f"{self.subject}, no wider than before by more than {limit}"
        return f"{self.subject}, at most {limit}"

    def format_finding(self, spelled: Callable[[float], str], *, unit: str = "") -> str:
        """What was found, with its numbers spelled so."""
        if self.estimate is None:
            return self.reason or "no estimate"
        word = "wider by" if self.rule.kind == "worse" else "gap"
        if self.reversed_from is not None and self.gap is not None:
            word = f"reversed from {spelled(self.reversed_from)} to {spelled(self.gap)}{unit}, {word}"
        known = [spelled(end) for end in (self.low, self.high) if end is not None]
        ends = " to ".join(known) if len(known) == 2 else "no interval"
        more = f"; {self.needs}" if self.needs else f"; {self.reason}" if self.reason else ""
        size = f"{spelled(self.estimate)}{unit}"
        return f"{word} {size} ({ends}; {self.n:,} texts, {self.n_clusters:,} clusters){more}"


def check_gaps(rules: Sequence[GateRule], comparisons: Sequence[Comparison]) -> list[GateCheck]:
    """Every comparison that a rule covers; a rule that covers none is an error, never a pass."""
    return [
        _check(rule, item, _Size(item.estimate, item.low, item.high))
        for rule in rules
        for item in _select_covered(rule, comparisons)
    ]


def check_changes(rules: Sequence[GateRule], changes: Sequence[RunChange]) -> list[GateCheck]:
    """Every gap of a run held against the same gap of an earlier run."""
    gaps = [item for item in changes if item.effect == "gap"]
    return [
        replace(
            _check(rule, item, _widening(item)),
            reversed_from=item.reference_value if _has_reversed(item) else None,
            gap=item.run_value,
        )
        for rule in rules
        for item in _select_covered(rule, gaps)
    ]


def reversals(checks: Sequence[GateCheck]) -> list[str]:
    """A sentence on each gap that has reversed: one inside its limit must be seen too."""
    gaps = dict.fromkeys(check.subject for check in checks if check.reversed_from is not None)
    return [
        f"{gap}: the gap lies on the other side than in the baseline run, and is larger than chance there"
        for gap in gaps
    ]


def add_required_growth(checks: Sequence[GateCheck], loaded: FinishedRun, *, level: float) -> list[GateCheck]:
    """The checks, those that cannot tell with what it would take."""
    grower = SampleSizePlanner(loaded, level=level)
    return [replace(check, needs=_needs(check, grower)) for check in checks]


class _Size(NamedTuple):
    """What is held against a limit, with its interval."""

    estimate: float | None
    low: float | None
    high: float | None

    def mirrored(self) -> _Size:
        """The same seen from the other side."""
        return _Size(*(None if end is None else -end for end in (self.estimate, self.high, self.low)))


def _check(rule: GateRule, item: Comparison | RunChange, size: _Size) -> GateCheck:
    return GateCheck(
        rule=rule,
        suite=item.suite,
        axis=item.axis,
        group=item.group,
        baseline=item.baseline or "",
        metric=item.metric,
        output=item.output,
        estimate=size.estimate,
        low=size.low,
        high=size.high,
        n=item.n,
        n_clusters=item.n_clusters,
        verdict=_verdict(rule, size.low, size.high),
        reason=item.null_reason or "",
        is_share=item.method == SHARES,
    )


def _widening(item: RunChange) -> _Size:
    """How much wider a gap is on the side where it is now, with its interval.

    Runs that agree in every cluster have not changed it.
    """
    if item.paired and item.null_reason == NO_VARIATION and abs(item.widens or 0) < _ROUNDING:
        return _Size(0.0, item.widens_low or 0.0, item.widens_high or 0.0)
    if _has_reversed(item):
        return _reversal(item)
    return _Size(item.widens, item.widens_low, item.widens_high)


def _has_reversed(item: RunChange) -> bool:
    """Whether the gap is larger than chance on the other side; one that may be 0 has no side."""
    before, low, high = item.reference_value, item.run_low, item.run_high
    if before is None or low is None or high is None:
        return False
    return high < 0 < before or before < 0 < low


def _reversal(item: RunChange) -> _Size:
    """The gap on its new side, where there was none before.

    That is the lesser of the gap and its change, so that both must exceed a limit for the gate to fail: an
    uncertain gap before, which may never have been on the other side, makes the change uncertain.
    """
    gap = _Size(item.run_value, item.run_low, item.run_high)
    change = _Size(item.estimate, item.low, item.high)
    if gap.high is not None and gap.high < 0:
        gap, change = gap.mirrored(), change.mirrored()
    if gap.low is None or change.low is None:
        return gap._replace(low=None)
    return gap._replace(low=min(gap.low, change.low))


def _verdict(rule: GateRule, low: float | None, high: float | None) -> GateVerdict:
    if low is None or high is None:
        return "cannot tell"
    if rule.kind == "worse":
        return "fails" if low > rule.limit else "passes" if high <= rule.limit else "cannot tell"
    if low > rule.limit or high < -rule.limit:
        return "fails"
    return "passes" if -rule.limit <= low and high <= rule.limit else "cannot tell"


def _select_covered(rule: GateRule, items: Sequence[_Item]) -> list[_Item]:
    found = [item for item in items if rule.covers(item)]
    if found:
        _check_unit(rule, found)
        return found
    outputs = dict.fromkeys(f"{item.metric}.{item.output}" for item in items)
    known = dict.fromkeys(item.axis for item in items)
    raise InputError(
        f"the limit {str(rule)!r} speaks of no comparison of this run",
        expected=f"outputs {', '.join(list(outputs)[:30])}; axes {', '.join(known)}",
        fix="correct the limit: one that nothing is held against would always pass",
    )


def _check_unit(rule: GateRule, covered: Sequence[Comparison | RunChange]) -> None:
    """An error where points were meant: no gap of shares is above 1, so that nothing could ever fail."""
    if rule.limit > 1 and all(item.method == SHARES for item in covered):
        raise InputError(
            f"the limit {str(rule)!r} is above 1, and gaps of shares never are",
            expected="a limit from 0 to 1: 5 points are 0.05",
            fix="write it as a share",
        )


def _needs(check: GateCheck, grower: SampleSizePlanner) -> RequiredGrowth | None:
    """The growth at which the interval would leave the limit on the side where the gap is."""
    if check.verdict != "cannot tell" or check.estimate is None or check.low is None or check.high is None:
        return None
    size = check.estimate if check.rule.kind == "worse" else abs(check.estimate)
    seen = ObservedGap(
        check.suite,
        check.axis,
        check.group,
        check.baseline,
        check.metric,
        check.output,
        check.low,
        check.high,
        check.n_clusters,
    )
    found = grower.plan_growth(seen, distance=abs(size - check.rule.limit))
    if found is None:
        return None
    if found.clusters is None or found.clusters > _MOST:
        return RequiredGrowth(None, check.n_clusters, None)
    samples = found.samples if found.samples is not None and found.samples <= _MOST else None
    return RequiredGrowth(math.ceil(found.clusters * check.n_clusters), check.n_clusters, samples)


def _limit(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def expected_false_failures(checks: Sequence[GateCheck], *, level: float) -> float:
    """How many checks would fail by chance at most, if every gap stood exactly at its limit."""
    return (1 - level) / 2 * len(checks)


def count_verdicts(checks: Sequence[GateCheck]) -> Mapping[GateVerdict, int]:
    """How many checks have each answer."""
    verdicts: tuple[GateVerdict, ...] = ("passes", "fails", "cannot tell")
    return {verdict: int(np.sum([check.verdict == verdict for check in checks])) for verdict in verdicts}
