from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.stats_distances import wasserstein2_slowly

from evenhand.stats import wasserstein2_1d

values = st.lists(st.floats(-1, 1), min_size=1, max_size=25)


def test_equal_sizes_by_hand() -> None:
    # sorted 0, 1 and 2, 5: sqrt((4 + 16) / 2)
    assert wasserstein2_1d([1.0, 0.0], [5.0, 2.0]).value == pytest.approx(math.sqrt(10))


def test_unequal_sizes_by_hand() -> None:
    # quantiles of 0, 1 against 0, 0, 1 over sixths: 0|0 0|0 0|0 1|0 1|1 1|1 -> one sixth differs by 1
    assert wasserstein2_1d([0.0, 1.0], [0.0, 0.0, 1.0]).value == pytest.approx(math.sqrt(1 / 6))


@given(values, values)
def test_it_equals_paired_copies(a: list[float], b: list[float]) -> None:
    assert wasserstein2_1d(a, b).value == pytest.approx(wasserstein2_slowly(a, b), rel=1e-9, abs=1e-12)


@given(values, values)
def test_a_distance_is_symmetric_and_zero_to_itself(a: list[float], b: list[float]) -> None:
    assert wasserstein2_1d(a, a).value == 0
    assert wasserstein2_1d(a, b).value == pytest.approx(wasserstein2_1d(b, a).value)
    assert wasserstein2_1d(a, a + a).value == 0  # the same distribution, twice the sample


def test_shifted_samples_lie_their_shift_apart() -> None:
    y = np.random.default_rng(0).normal(size=1001)
    assert wasserstein2_1d(y, y + 0.3).value == pytest.approx(0.3)
    assert wasserstein2_1d([], [1.0]) == (None, "no values")
