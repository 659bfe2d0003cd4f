from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from tests.oracles.stats_distances import wasserstein2_slowly

from evenhand.core.errors import InputError
from evenhand.stats.base_rates import (
    LARGE,
    check_simplex,
    mean_square_gap,
    simplex_directions,
)


def wasserstein2(a: ArrayLike, b: ArrayLike) -> float:
    return math.sqrt(mean_square_gap(np.sort(a), np.sort(b)))


values = st.lists(st.floats(-1, 1), min_size=1, max_size=25)


def test_equal_sizes_by_hand() -> None:
    # sorted 0, 1 and 2, 5: sqrt((4 + 16) / 2)
    assert wasserstein2([1.0, 0.0], [5.0, 2.0]) == pytest.approx(math.sqrt(10))


def test_unequal_sizes_by_hand() -> None:
    # quantiles of 0, 1 against 0, 0, 1 over sixths: 0|0 0|0 0|0 1|0 1|1 1|1 -> one sixth differs by 1
    assert wasserstein2([0.0, 1.0], [0.0, 0.0, 1.0]) == pytest.approx(math.sqrt(1 / 6))


@given(values, values)
def test_it_equals_paired_copies(a: list[float], b: list[float]) -> None:
    assert wasserstein2(a, b) == pytest.approx(wasserstein2_slowly(a, b), rel=1e-9, abs=1e-12)


@given(values, values)
def test_a_distance_is_symmetric_and_zero_to_itself(a: list[float], b: list[float]) -> None:
    assert wasserstein2(a, a) == 0
    assert wasserstein2(a, b) == pytest.approx(wasserstein2(b, a))
    assert wasserstein2(a, a + a) == 0  # the same distribution, twice the sample


def test_shifted_samples_lie_their_shift_apart() -> None:
    y = np.random.default_rng(0).normal(size=1001)
    assert wasserstein2(y, y + 0.3) == pytest.approx(0.3)


def probabilities(seed: int, rows: int, weights: tuple[float, ...]) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(weights, size=rows)


def sliced(a: np.ndarray, b: np.ndarray, directions: int = 128) -> float:
    """The sliced distance of two samples, as base rates of several classes take it."""
    shadows = simplex_directions(a.shape[1], rng=0, number=directions)
    sides = zip(np.sort(a @ shadows, axis=0).T, np.sort(b @ shadows, axis=0).T, strict=True)
    return math.sqrt(float(np.mean([mean_square_gap(one, other) for one, other in sides])))


def test_sliced_with_two_classes_is_the_exact_distance() -> None:
    a, b = probabilities(0, 40, (1, 2)), probabilities(1, 60, (2, 1))
    exact = wasserstein2(a[:, 1], b[:, 1])
    assert sliced(a, b) == pytest.approx(exact)


def test_sliced_by_hand() -> None:
    # All on one corner against all on another: every shadow is |direction . (1, -1, 0)|, whose mean square
    # over the unit sphere is 2 / 3.
    a, b = np.tile([1.0, 0.0, 0.0], (5, 1)), np.tile([0.0, 1.0, 0.0], (7, 1))
    found = sliced(a, b, 20_000)
    assert found == pytest.approx(math.sqrt(2 / 3), rel=0.01)
    assert sliced(a, a) == 0


def test_sliced_equals_pot_within_the_noise_of_directions() -> None:
    ot = pytest.importorskip("ot", reason="POT is not installed")
    a, b = probabilities(2, 300, (1, 2, 3, 1)), probabilities(3, 200, (3, 1, 1, 1))
    ours = sliced(a, b, 4000)
    theirs = ot.sliced_wasserstein_distance(a, b, n_projections=4000, p=2, seed=0)
    assert ours == pytest.approx(float(theirs), rel=0.02)
    exact = float(ot.wasserstein_1d(a[:, 0], b[:, 0], p=2)) ** 0.5
    assert wasserstein2(a[:, 0], b[:, 0]) == pytest.approx(exact, rel=1e-9)


def test_rows_that_are_no_probabilities_are_refused() -> None:
    with pytest.raises(InputError, match=r"points holds 1 rows that are not probabilities"):
        check_simplex([[0.5, 0.6]])
    with pytest.raises(InputError, match=r"points has the shape"):
        check_simplex([0.5, 0.5])


def test_large_samples_of_unequal_sizes_lie_as_far_apart_as_small_ones() -> None:
    # A sample and itself twice over have one distribution; moved by 0.25 it lies 0.25 away.
    y = np.random.default_rng(1).random(LARGE)
    assert wasserstein2(y, np.concatenate([y, y]) + 0.25) == pytest.approx(0.25, rel=1e-9)
    # A third of 3 n values moved by 1 (n = LARGE), against 2 n unmoved: quantiles differ on one third.
    moved = np.concatenate([np.zeros(2 * LARGE), np.ones(LARGE)])
    assert wasserstein2(np.zeros(2 * LARGE), moved) == pytest.approx(math.sqrt(1 / 3))
