"""Simulated nulls of designs that pair: two models on the same prompts, templates, strata; and a plan."""

import numpy as np
import pytest
from tests.stats.gaps import clustered_difference

from evenhand.stats.contrasts import clustered_contrast, stratified_difference
from evenhand.stats.power_analysis import required_growth, variance_within

SHORT, LONG = (400, (0.02, 0.085), (0.92, 0.98)), (2_000, (0.03, 0.07), (0.93, 0.97))
CLUSTERS, SAMPLES = 40, 3


def _gap_of_gaps(rng):
    """(group, baseline) x (model 1, model 2) on the same prompts: a true gap of 0.4 in both models."""
    prompt = rng.normal(size=(CLUSTERS, 1, 1, 1)) * 0.5
    of_group = rng.normal(size=(CLUSTERS, 2, 1, 1)) * 0.4
    of_both = rng.normal(size=(CLUSTERS, 2, 2, 1)) * 0.3
    y = prompt + of_group + of_both + rng.normal(size=(CLUSTERS, 2, 2, SAMPLES))
    y[:, 0] += 0.4
    cluster, group, model, _ = np.indices(y.shape)
    found = clustered_contrast(
        y.ravel(), (2 * model + group).ravel(), cluster.ravel(), weights=(1.0, -1.0, -1.0, 1.0)
    )
    return found.p, found.low <= 0 <= found.high


def _templates(rng):
    """One template under two groups."""
    y = rng.normal(size=(CLUSTERS, 1, 1)) + rng.normal(size=(CLUSTERS, 2, SAMPLES))
    ids = np.repeat(np.arange(CLUSTERS), SAMPLES)
    found = clustered_difference(y[:, 0].ravel(), ids, y[:, 1].ravel(), ids)
    return found.p, found.low <= 0 <= found.high


def _strata(rng):
    """Two strata of different level and mix; inside them no gap."""
    stratum = (np.arange(2 * CLUSTERS) % 4 == 0).astype(int)
    inside = np.where(stratum == 1, rng.random(2 * CLUSTERS) < 0.7, rng.random(2 * CLUSTERS) < 0.3)
    ids = np.repeat(np.arange(2 * CLUSTERS), SAMPLES)
    y = (2.0 * stratum + 0.4 * rng.normal(size=2 * CLUSTERS))[ids] + rng.normal(size=ids.size)
    found = stratified_difference(y, inside[ids], stratum[ids], ids).adjusted
    return found.p, found.low <= 0 <= found.high


DESIGNS = {"gap of gaps": _gap_of_gaps, "templates": _templates, "strata": _strata}


def _check(design, runs, wrong, covered):
    rng = np.random.default_rng(77)
    found = [DESIGNS[design](rng) for _ in range(runs)]
    assert wrong[0] <= np.mean([p < 0.05 for p, _ in found]) <= wrong[1]
    assert covered[0] <= np.mean([covers for _, covers in found]) <= covered[1]


@pytest.mark.parametrize("design", sorted(DESIGNS))
def test_paired_designs_hold_in_a_short_simulation(design):
    _check(design, *SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("design", sorted(DESIGNS))
def test_paired_designs_hold_in_2000_runs(design):
    _check(design, *LONG)


def test_a_plan_comes_true():
    """A pilot of 40 clusters plans a run; at that size the gap is found about as often as planned."""
    rng = np.random.default_rng(5)

    def drawn(clusters, samples, gap):
        ids = np.repeat(np.arange(clusters), samples)
        a = rng.normal(size=clusters)[ids] * 0.6 + rng.normal(size=ids.size) + gap
        b = rng.normal(size=clusters)[ids] * 0.6 + rng.normal(size=ids.size)
        return a, ids, b, ids + clusters

    pilot = [drawn(40, 4, 0.0) for _ in range(40)]
    variance = np.mean([clustered_difference(*rows).se ** 2 for rows in pilot])
    within = variance_within(*pilot[0])
    # Within clusters: 1 / (40 x 4) on either side.
    assert within == pytest.approx(2 / 160, rel=0.2)
    plan = required_growth(variance, within, wanted=(0.3 / 2.8) ** 2)
    clusters = round(40 * plan.clusters)
    seen = np.mean([clustered_difference(*drawn(clusters, 4, 0.3)).p < 0.05 for _ in range(300)])
    assert 0.72 <= seen <= 0.88


def test_samples_help_only_inside_clusters():
    # Of a variance of 1, half is inside clusters: 0.75 needs twice the samples, 0.5 cannot be reached.
    assert required_growth(1.0, 0.5, wanted=0.75) == (pytest.approx(4 / 3), pytest.approx(2))
    assert required_growth(1.0, 0.5, wanted=0.5) == (pytest.approx(2), None)
    assert required_growth(1.0, 0.5, wanted=2.0) == (1, 1)
    assert required_growth(1.0, None, wanted=0.5) == (pytest.approx(2), None)
    assert required_growth(1.0, 0.5, wanted=0.0) == (None, None)
