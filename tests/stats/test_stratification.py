from __future__ import annotations

import numpy as np
import pytest
from tests.stats.gaps import clustered_difference

from evenhand.stats.contrasts import stratified_difference

# The kidney-stone table: (stratum, in the group, successes, of).
STONES = [
    ("small", True, 81, 87),
    ("small", False, 234, 270),
    ("large", True, 192, 263),
    ("large", False, 55, 80),
]


def kidney_stones() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y = np.concatenate([np.repeat([1.0, 0.0], [k, n - k]) for _, _, k, n in STONES])
    group = np.concatenate([np.full(n, side) for _, side, _, n in STONES])
    strata = np.concatenate([np.full(n, name) for name, _, _, n in STONES])
    return y, group, strata


def test_simpsons_paradox_is_seen() -> None:
    # Crude: 273/350 - 289/350 = -0.0457.
    # Inside: small 81/87 - 234/270 = 0.0644; large 192/263 - 55/80 = 0.0425.
    # Adjusted: (357 x 0.0644 + 343 x 0.0425) / 700 = 0.0537
    y, group, strata = kidney_stones()
    found = stratified_difference(np.tile(y, 9), np.tile(group, 9), np.tile(strata, 9))
    gaps = {"small": 81 / 87 - 234 / 270, "large": 192 / 263 - 55 / 80}
    assert found.adjusted.estimate == pytest.approx((357 * gaps["small"] + 343 * gaps["large"]) / 700)
    assert found.disagrees


def test_a_reversal_within_noise_is_not_called_one() -> None:
    assert not stratified_difference(*kidney_stones()).disagrees


def test_one_stratum_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    y, group, clusters = rng.normal(size=90), rng.random(90) < 0.4, rng.integers(0, 30, 90)
    found = stratified_difference(y, group, np.zeros(90, dtype=int), clusters)
    plain = clustered_difference(y[group], clusters[group], y[~group], clusters[~group])
    gap = found.adjusted
    assert (gap.estimate, gap.se, gap.df, gap.p) == pytest.approx(
        (plain.estimate, plain.se, plain.df, plain.p)
    )


def test_strata_with_one_side_are_left_out() -> None:
    y, group = np.arange(10.0), np.array([True, False] * 4 + [True, True])
    strata = np.array(["a"] * 4 + ["b"] * 4 + ["c"] * 2)
    found = stratified_difference(y, group, strata)
    assert found.adjusted.n_a + found.adjusted.n_b == 8
    assert found.adjusted.estimate == pytest.approx(-1)


def test_no_stratum_with_both_sides_is_null() -> None:
    found = stratified_difference(
        [1.0, 2.0, 3.0, 4.0], np.array([True, True, False, False]), ["a", "a", "b", "b"]
    )
    assert found.adjusted.null_reason == "no values"
    assert not found.disagrees
