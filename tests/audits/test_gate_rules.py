"""No worse than before: what a gap that has reversed counts as."""

from __future__ import annotations

import pytest

from evenhand.audits.analysis.quantities import Row
from evenhand.audits.gate import GateCheck, GateRule, check_limits, reversals
from evenhand.stats.contrasts import SHARES

Ends = tuple[float, float] | None


def change(
    before: float | None, after: float | None, *, gap: Ends, moved: Ends, widens: Ends = (0, 0)
) -> Row:
    """A gap before and after, with the intervals of the gap after, of its change and of that of its size."""
    known = before is not None and after is not None
    return {
        "suite": "s",
        "run": "new",
        "reference": "old",
        "axis": "race",
        "group": "a",
        "baseline": "b",
        "metric": "m",
        "output": "o",
        "effect": "gap",
        "estimate": after - before if known else None,
        "low": moved and moved[0],
        "high": moved and moved[1],
        "p": None,
        "p_adjusted": None,
        "n": 10,
        "n_reference": 10,
        "n_clusters": 5,
        "min_detectable": None,
        "run_value": after,
        "reference_value": before,
        "widens": abs(after) - abs(before) if known else None,
        "widens_low": widens and widens[0],
        "widens_high": widens and widens[1],
        "paired": True,
        "exploratory": False,
        "family": "",
        "family_size": 1,
        "correction": "bh",
        "method": SHARES,
        "null_reason": None,
        "run_low": gap and gap[0],
        "run_high": gap and gap[1],
    }


def checked(item: Row, limit: float = 0.05) -> GateCheck:
    (check,) = check_limits([GateRule.parse(f"* * {limit}", "worse")], [], [item])
    return check


def test_a_larger_gap_on_the_other_side_fails() -> None:
    check = checked(change(0.379, -0.587, gap=(-0.66, -0.51), moved=(-1.07, -0.86), widens=(-0.02, 0.44)))
    assert (check.verdict, check.estimate) == ("fails", 0.587)
    assert (check.low, check.high) == (0.51, 0.66)
    assert check.finding == (
        "reversed from +0.3790 to -0.5870, wider by +0.5870 (+0.5100 to +0.6600; 10 texts, 5 clusters)"
    )
    assert len(reversals([check, check])) == 1


def test_a_smaller_gap_on_the_other_side_fails_beyond_the_limit() -> None:
    reversal = change(-0.3, 0.2, gap=(0.12, 0.28), moved=(0.4, 0.6), widens=(-0.2, 0.0))
    assert checked(reversal, 0.1).verdict == "fails"
    assert checked(reversal, 0.12).verdict == "inconclusive"
    assert checked(reversal, 0.28).verdict == "passes"


def test_a_reversal_inside_the_limit_passes_and_is_reported() -> None:
    check = checked(change(0.3, -0.03, gap=(-0.05, -0.01), moved=(-0.4, -0.2)))
    assert check.verdict == "passes"
    assert reversals([check]) == [
        "m.o race: a against b: the gap has the opposite sign to that in the baseline run, "
        "and is larger than chance there"
    ]


def test_a_gap_that_may_be_0_has_no_side_and_is_judged_by_its_size() -> None:
    """A gap that is gone is no wider, whatever the sign that chance gives it."""
    check = checked(change(0.7, -0.02, gap=(-0.08, 0.04), moved=(-0.8, -0.6), widens=(-0.75, -0.6)))
    assert (check.verdict, check.reversed_from, reversals([check])) == ("passes", None, [])


def test_an_uncertain_gap_before_does_not_make_a_reversal_fail() -> None:
    """The gap after is certain, but it may have been there all along."""
    check = checked(change(0.01, -0.06, gap=(-0.065, -0.055), moved=(-0.17, 0.03)))
    assert (check.verdict, check.low) == ("inconclusive", -0.03)


@pytest.mark.parametrize(("before", "after"), [(0.0, 0.2), (0.2, 0.0), (0.1, 0.3), (0.0, 0.0), (None, None)])
def test_a_gap_that_has_not_reversed_is_judged_by_its_size(before: float | None, after: float | None) -> None:
    check = checked(change(before, after, gap=(0.1, 0.3), moved=(0.1, 0.3), widens=(0.06, 0.3)))
    assert (check.verdict, check.low, check.high) == ("fails", 0.06, 0.3)
    assert check.reversed_from is None


def test_a_reversal_without_an_interval_cannot_tell() -> None:
    check = checked(change(-0.1, 0.2, gap=(0.1, 0.3), moved=None))
    assert (check.verdict, check.estimate, check.low) == ("inconclusive", 0.2, None)
    check = checked(change(-0.1, 0.2, gap=None, moved=(0.1, 0.3), widens=None))
    assert (check.verdict, check.low) == ("inconclusive", None)
