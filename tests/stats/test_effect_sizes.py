from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.meta_analysis import effectsize_smd
from tests.oracles.stats_distances import cliffs_delta_slowly

from evenhand.core.errors import InputError
from evenhand.stats.hypothesis_tests import cliffs_delta, cohens_h, hedges_g

values = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30)


def test_cohens_h_by_hand() -> None:
    # 2 asin(sqrt 0.75) - 2 asin(sqrt 0.25) = 2 (60 degrees - 30 degrees) = pi / 3
    assert cohens_h(0.75, 0.25) == pytest.approx(math.pi / 3)
    assert cohens_h(1, 0) == pytest.approx(math.pi)
    assert cohens_h(0.4, 0.4) == 0


@given(st.floats(0, 1), st.floats(0, 1))
def test_cohens_h_flips_with_its_shares(a: float, b: float) -> None:
    assert cohens_h(a, b) == -cohens_h(b, a)


def test_cohens_h_refuses_what_is_no_share() -> None:
    with pytest.raises(InputError, match=r"^a share of 1\.2\. Expected: shares from 0 to 1\.$"):
        cohens_h(1.2, 0.5)


def test_hedges_g_by_hand() -> None:
    # means 2 and 4; pooled variance (2 + 8) / 4 = 2.5, d = -2 / 1.581139 = -1.264911
    # exact correction, 4 degrees of freedom: gamma(2) / (sqrt(2) gamma(1.5)) = 1 / (1.414214 x 0.886227)
    found = hedges_g([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert found.value == pytest.approx(-1.264911 * 0.797885, abs=1e-5)


def test_hedges_g_is_close_to_the_usual_approximation() -> None:
    a, b = [1.0, 4.0, 2.0, 6.0, 3.0, 8.0] * 5, [2.0, 5.0, 5.0, 9.0, 4.0, 8.0] * 5
    mean_a, mean_b = sum(a) / 30, sum(b) / 30
    sd_a, sd_b = (math.sqrt(sum((x - m) ** 2 for x in v) / 29) for v, m in ((a, mean_a), (b, mean_b)))
    expected, _ = effectsize_smd(mean_a, sd_a, 30, mean_b, sd_b, 30)
    assert hedges_g(a, b).value == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([], [1.0], "no values"),
        ([1.0], [2.0, 3.0], "fewer than four values"),
        ([0.1, 0.1, 0.1], [0.3, 0.3, 0.3], "no variation"),
    ],
)
def test_hedges_g_that_cannot_be_told_says_why(a: list[float], b: list[float], reason: str) -> None:
    assert hedges_g(a, b) == (None, reason)


def test_cliffs_delta_by_hand() -> None:
    # 1 beats nothing, ties 1, loses to 2; 3 beats both: (0 - 1 + 2 - 0) / 4
    assert cliffs_delta([1.0, 3.0], [1.0, 2.0]).value == 0.25
    assert cliffs_delta([], [1.0]) == (None, "no values")


@given(values, values)
def test_cliffs_delta_counts_every_pair(a: list[float], b: list[float]) -> None:
    assert cliffs_delta(a, b).value == cliffs_delta_slowly(a, b)
    assert cliffs_delta(a, b).value == -(cliffs_delta(b, a).value or 0.0)
