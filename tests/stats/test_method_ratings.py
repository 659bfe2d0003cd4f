"""Methods rated by the same people, worked by hand."""

from __future__ import annotations

import pytest
from scipy import stats as scipy_stats

from evenhand.core.errors import InputError
from evenhand.stats.hypothesis_tests import compare_methods

ROWS = [
    # Anna reads the baseline twice, 4 and 6: her mean is 5.
    ("anna", "baseline", 4),
    ("anna", "baseline", 6),
    ("anna", "steered", 3),
    ("ben", "baseline", 6),
    ("ben", "steered", 5),
    ("cara", "baseline", 4),
    ("cara", "steered", 3),
    # Dan never saw the steered text: he counts for the baseline's mean alone.
    ("dan", "baseline", 1),
]


def test_by_hand_and_against_scipy() -> None:
    base, steered = compare_methods(*zip(*ROWS, strict=True), baseline="baseline")
    # (5 + 6 + 4 + 1) / 4 and (3 + 5 + 3) / 3
    assert (base.method, base.mean.value, base.mean.n, base.ratings) == ("baseline", 4.0, 4, 5)
    assert steered.mean.value == pytest.approx(11 / 3)
    assert base.difference is None
    # Differences 3 - 5, 5 - 6, 3 - 4: mean -4/3, over the three who read both.
    difference = steered.difference
    assert difference is not None
    assert (difference.estimate, difference.n_clusters) == (pytest.approx(-4 / 3), 3)
    assert difference.p == pytest.approx(scipy_stats.ttest_rel([3, 5, 3], [5, 6, 4]).pvalue)
    assert base.mean.low < 4.0 < base.mean.high


def test_nobody_read_both() -> None:
    base, other = compare_methods(["x", "y"], ["a", "b"], [1, 2], baseline="a")
    assert base.mean.null_reason == "one cluster"
    assert other.difference is not None
    assert (other.difference.estimate, other.difference.null_reason) == (None, "no values")


def test_bad_input() -> None:
    with pytest.raises(InputError, match=r"^the baseline 'c' has no ratings\. Expected: a, b\."):
        compare_methods(["x", "y"], ["a", "b"], [1, 2], baseline="c")
    with pytest.raises(InputError, match=r"^1 ratings came with 2 participants and 2 methods\."):
        compare_methods(["x", "y"], ["a", "b"], [1], baseline="a")
