"""The best cut: against trying every one, with an interval, and honest on texts it was not fitted on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.stats_consensus import cut_slowly, kappa_slowly

from evenhand.core.errors import InputError
from evenhand.stats.classification_metrics import best_cut, candidate_cuts


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-8, 8), st.integers(0, 2)), min_size=4, max_size=25),
    st.sampled_from([2, 3]),
)
def test_every_cut_equals_its_slow_twin(rows: list[tuple[int, int]], labels: int) -> None:
    values = [value / 8 for value, _ in rows]
    human = [min(code, labels - 1) for _, code in rows]
    found = best_cut(values, human, labels=labels, rng=0, resamples=100)
    slow = {
        float(cut): kappa_slowly(cut_slowly(values, cut, labels), human)
        for cut in candidate_cuts(np.array(values), labels)
    }
    if found.cut.value is None:
        assert len(slow) == 0 or len(set(human)) == 1
        return
    assert {point.cut: point.kappa for point in found.curve} == pytest.approx(slow)
    assert slow[found.cut.value] == pytest.approx(max(kappa for kappa in slow.values() if kappa is not None))
    assert found.kappa.value == pytest.approx(slow[found.cut.value])


def test_by_hand() -> None:
    # low: 0.1 0.2 0.3, high: 0.7 0.8 0.9: every cut between 0.3 and 0.7 parts them; half-way is 0.5.
    found = best_cut([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 0, 1, 1, 1], labels=2, rng=0, resamples=200)
    assert found.cut.value == pytest.approx(0.5)
    assert (found.kappa.value, found.accuracy.value) == (1.0, 1.0)
    # Three labels at minus the cut and the cut.
    three = best_cut([-0.9, -0.7, -0.1, 0.0, 0.1, 0.8, 0.9], [0, 0, 1, 1, 1, 2, 2], labels=3, rng=0)
    assert three.cut.value == pytest.approx(0.4)
    assert three.kappa_held_out.value == pytest.approx(1.0)


def test_pure_noise_looks_good_where_it_was_fitted_and_only_there() -> None:
    """Scores that know nothing: on held-out texts kappa is about 0, and its interval says so."""
    fitted, held_out, covered = [], [], 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values, human = rng.normal(size=120), rng.integers(0, 2, 120)
        found = best_cut(values, human, labels=2, rng=seed, resamples=100)
        fitted.append(found.kappa.value)
        held_out.append(found.kappa_held_out.value)
        covered += found.kappa_held_out.low <= 0 <= found.kappa_held_out.high
    # The standard error of a kappa of 0 is 1 / sqrt(120) = 0.09, of the mean of twenty 0.02.
    error = 0.09 / 20**0.5
    assert np.mean(fitted) > 4 * error
    assert abs(np.mean(held_out)) < 4 * error
    assert covered >= 17


def test_the_interval_of_a_cut_holds_the_true_one() -> None:
    """Labels follow a cut at 0.3 but for one in ten, turned at random."""
    hits = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        values = rng.uniform(-1, 1, 300)
        human = np.where(rng.random(300) < 0.9, values >= 0.3, values < 0.3).astype(int)
        cut = best_cut(values, human, labels=2, rng=seed, resamples=100).cut
        hits += cut.low <= 0.3 <= cut.high
    assert hits >= 8


def test_clusters_are_resampled_and_held_out_whole() -> None:
    values, human = np.tile(np.linspace(0, 1, 20), 3), np.tile([0] * 10 + [1] * 10, 3)
    found = best_cut(values, human, np.tile(np.arange(20), 3), labels=2, rng=0, resamples=200)
    assert (found.cut.n, found.cut.n_clusters, found.folds) == (60, 20, 10)


@pytest.mark.parametrize(
    ("values", "human", "reason"),
    [([], [], "no values"), ([1.0, 1.0], [0, 1], "no variation"), ([1.0, 2.0], [1, 1], "no variation")],
)
def test_nothing_to_cut(values: list[float], human: list[int], reason: str) -> None:
    found = best_cut(np.array(values), np.array(human, dtype=int), labels=2, rng=0)
    assert (found.cut.value, found.cut.null_reason, found.curve) == (None, reason, ())


def test_bad_input() -> None:
    with pytest.raises(InputError, match=r"^2 values came with 1 labels\."):
        best_cut([1.0, 2.0], [0], labels=2, rng=0)
    with pytest.raises(InputError, match=r"^2 labels with codes from 0 to 2\. Expected: 2 or 3 labels"):
        best_cut([1.0, 2.0], [0, 2], labels=2, rng=0)
