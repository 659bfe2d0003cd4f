"""The typical gap of groups and the ranking of runs, by hand and by simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stats.gaps import clustered_difference

from evenhand.stats.group_spread import rank_spreads


def _two_groups(gap, clusters=50, seed=0, runs=1):
    rng = np.random.default_rng(seed)
    parts = []
    for run in range(runs):
        for group in (0, 1):
            parts.append((rng.normal(gap * group, 1, clusters), run, group))
    y = np.concatenate([values for values, _, _ in parts])
    of_run = np.repeat([run for _, run, _ in parts], clusters)
    of_group = np.repeat([group for _, _, group in parts], clusters)
    return y, of_run, of_group, np.tile(np.arange(clusters), 2 * runs)


def test_of_two_groups_the_square_is_the_squared_gap_without_chance():
    y, runs, groups, clusters = _two_groups(2.0)
    (spread,) = rank_spreads(y, runs, groups, clusters, n_runs=1).spreads
    gap = clustered_difference(y[groups == 1], clusters[groups == 1], y[groups == 0], clusters[groups == 0])
    # E[gap^2] = true gap^2 + its variance.
    assert spread.value == pytest.approx(np.sqrt(gap.estimate**2 - gap.se**2))
    assert spread.low < 2 < spread.high
    assert (spread.rank, spread.tied) == (1, ())


def test_of_three_groups_it_is_the_root_mean_square_of_the_pairs():
    # Means 0, 3 and 6 nearly without noise: gaps 3, 3, 6, of which sqrt((9 + 9 + 36) / 3) = 4.243.
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1, 2], 40)
    y = 3.0 * groups + rng.normal(0, 1e-3, 120)
    (spread,) = rank_spreads(y, np.zeros(120, int), groups, np.tile(np.arange(40), 3), n_runs=1).spreads
    assert spread.value == pytest.approx(np.sqrt(18), rel=1e-3)


def test_groups_that_do_not_differ_have_no_spread_more_often_than_not():
    zero = [rank_spreads(*_two_groups(0.0, seed=seed), n_runs=1).spreads[0] for seed in range(60)]
    assert np.mean([spread.value == 0 for spread in zero]) > 0.5
    assert all(spread.low == 0 for spread in zero if spread.value == 0)


def test_runs_that_cannot_be_told_apart_are_tied():
    y, runs, groups, clusters = _two_groups(1.0, runs=2, seed=3)
    tie = rank_spreads(y, runs, groups, clusters, n_runs=2)
    assert [spread.rank for spread in tie.spreads] == [1, 1]
    assert tie.spreads[0].tied == (1,)
    apart = rank_spreads(y + 5.0 * groups * runs, runs, groups, clusters, n_runs=2)
    assert [spread.rank for spread in apart.spreads] == [1, 2]
    assert apart.spreads[0].tied == ()
    assert apart.gaps[0].p_adjusted < 0.001


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_order_of_rows_and_names_of_runs_change_nothing(seed):
    rng = np.random.default_rng(seed)
    y, runs, groups, clusters = _two_groups(1.0, runs=2, seed=seed, clusters=12)
    order = rng.permutation(y.size)
    plain = rank_spreads(y, runs, groups, clusters, n_runs=2)
    shuffled = rank_spreads(y[order], runs[order], groups[order], clusters[order], n_runs=2)
    swapped = rank_spreads(y, 1 - runs, groups, clusters, n_runs=2)
    for one, same, other in zip(plain.spreads, shuffled.spreads, reversed(swapped.spreads), strict=True):
        assert (one.value, one.rank) == (pytest.approx(same.value), same.rank)
        assert (one.value, one.rank) == (pytest.approx(other.value), other.rank)
    assert plain.gaps[0].difference == pytest.approx(-swapped.gaps[0].difference)


def test_a_group_that_a_run_lacks_is_left_out_for_all():
    y, runs, groups, clusters = _two_groups(1.0, runs=2)
    keep = (runs == 0) | (groups == 0)
    found = rank_spreads(y[keep], runs[keep], groups[keep], clusters[keep], n_runs=2)
    assert found.groups == 1
    assert {spread.null_reason for spread in found.spreads} == {
        "fewer than two groups have two clusters or more in every run"
    }


def _models(rng, runs, clusters, groups, gap):
    """The same prompts under several models that treat groups alike but for chance."""
    means = np.linspace(-gap, gap, groups)
    shared = rng.normal(size=(clusters, 1, 1)) * 0.5 + rng.normal(size=(clusters, groups, 1)) * 0.4
    own = rng.normal(size=(clusters, groups, runs)) * 0.4
    rows = np.repeat((means[None, :, None] + shared + own)[..., None], 3, axis=3)
    y = rows + rng.normal(size=rows.shape)
    cluster, group, run, _ = np.indices(y.shape)
    return y.ravel(), run.ravel(), group.ravel(), cluster.ravel()


def _wrongly_apart(simulations, gap):
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(simulations):
        found = rank_spreads(*_models(rng, 3, 40, 4, gap), n_runs=3)
        wrong += any(spread.rank != 1 for spread in found.spreads)
    return wrong / simulations


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_models_that_do_not_differ_are_rarely_told_apart(gap):
    assert _wrongly_apart(200, gap) <= 0.08


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_models_that_do_not_differ_are_rarely_told_apart_in_2000_runs(gap):
    assert _wrongly_apart(2_000, gap) <= 0.06


def _covered(simulations, groups, gap):
    """How often the interval of a run's typical gap holds the true one."""
    rng = np.random.default_rng(13)
    means = np.linspace(-gap, gap, groups)
    true = np.sqrt(2 / (groups - 1) * np.sum((means - means.mean()) ** 2))
    spreads = [
        spread
        for _ in range(simulations)
        for spread in rank_spreads(*_models(rng, 3, 40, groups, gap), n_runs=3).spreads
    ]
    return np.mean([spread.low <= true <= spread.high for spread in spreads])


@pytest.mark.parametrize(("groups", "gap"), [(2, 0.3), (4, 0.5), (12, 0.4)])
def test_intervals_of_the_typical_gap_cover_it(groups, gap):
    assert 0.92 <= _covered(100, groups, gap) <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "gap"), [(2, 0.3), (2, 0.6), (4, 0.3), (4, 0.5), (12, 0.4)])
def test_intervals_of_the_typical_gap_cover_it_in_2000_runs(groups, gap):
    assert 0.93 <= _covered(2_000, groups, gap) <= 0.975
