from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.power import TTestIndPower

from evenhand.core.errors import InputError
from evenhand.stats.contrasts import clustered_difference
from evenhand.stats.power_analysis import clusters_needed, design_effect, detectable_gap, pilot_statistics
from evenhand.stats.results import Pilot


def spread(sd: float, icc: float | None = 0.2) -> Pilot:
    return Pilot(0.0, sd, icc, 100, 20)


def test_pilot_by_hand() -> None:
    # Clusters (1, 3), (5, 7): means 2 and 6, overall 4. Between: 2 (4 + 4) / 1 = 16; within: (2 + 2) / 2 = 2.
    # icc = ((16 - 2) / 2) / ((16 - 2) / 2 + 2) = 7 / 9; sd^2 = (9 + 1 + 1 + 9) / 3
    found = pilot_statistics([1.0, 3.0, 5.0, 7.0], ["a", "a", "b", "b"])
    assert found.icc == pytest.approx(7 / 9)
    assert found.sd == pytest.approx(math.sqrt(20 / 3))
    assert (found.mean, found.n, found.n_clusters) == (4, 4, 2)


def test_a_pilot_finds_the_correlation_it_was_drawn_with() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 9, 4000)
    clusters = np.repeat(np.arange(4000), sizes)
    y = math.sqrt(0.3) * rng.normal(size=4000)[clusters] + math.sqrt(0.7) * rng.normal(size=clusters.size)
    assert pilot_statistics(y, clusters).icc == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize(
    ("y", "clusters", "reason"),
    [
        ([], [], "no values"),
        ([1.0, 2.0], ["a", "a"], "one cluster"),
        ([1.0, 1.0], ["a", "b"], "no variation"),
    ],
)
def test_a_pilot_that_knows_no_spread_says_why(y: list[float], clusters: list[str], reason: str) -> None:
    found = pilot_statistics(y, np.array(clusters, dtype=str))
    assert found.null_reason == reason
    assert clusters_needed(0.1, found, found).null_reason == reason
    assert detectable_gap(10, found, found) is None


def test_one_row_a_cluster_leaves_the_correlation_open() -> None:
    assert pilot_statistics([1.0, 2.0, 4.0]).icc is None
    assert design_effect(None, 5) == 5  # more samples of one prompt then promise nothing
    assert design_effect(0.2, 5) == pytest.approx(1.8)


def test_independent_rows_agree_with_statsmodels() -> None:
    plan = clusters_needed(0.5, spread(1, 0.0), spread(1, 0.0))
    expected = TTestIndPower().solve_power(effect_size=0.5, alpha=0.05, power=0.8)  # 63.77
    assert plan.clusters == pytest.approx(expected, abs=2)


@given(st.floats(0.02, 2), st.floats(0.1, 3), st.floats(0, 1), st.integers(1, 20))
def test_the_planned_clusters_are_just_enough(gap: float, sd: float, icc: float, samples: int) -> None:
    of = spread(sd, icc)
    plan = clusters_needed(gap, of, of, samples=samples)
    assert plan.clusters is not None
    shown = detectable_gap(plan.clusters, of, of, samples=samples)
    assert shown is not None
    assert shown <= gap
    if plan.clusters > 2:
        one_less = detectable_gap(plan.clusters - 1, of, of, samples=samples)
        assert one_less is not None
        assert one_less > gap


def test_a_planned_study_has_the_power_it_was_planned_for() -> None:
    rng = np.random.default_rng(1)
    plan = clusters_needed(0.4, spread(1), spread(1), samples=5)
    assert plan.clusters is not None
    clusters = np.repeat(np.arange(plan.clusters), 5)
    found = 0
    for _ in range(400):
        a, b = (
            math.sqrt(0.2) * rng.normal(size=plan.clusters)[clusters]
            + math.sqrt(0.8) * rng.normal(size=clusters.size)
            for _ in "ab"
        )
        p = clustered_difference(a + 0.4, clusters, b, clusters + plan.clusters).p
        found += p is not None and p < 0.05
    assert found / 400 == pytest.approx(0.8, abs=0.06)


def test_impossible_plans_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"^a gap of 0\. Expected: a gap above 0, in the unit of the values\.$"
    ):
        clusters_needed(0, spread(1), spread(1))
    with pytest.raises(InputError, match=r"^1 clusters a group\. Expected: 2 or more\.$"):
        detectable_gap(1, spread(1), spread(1))
    with pytest.raises(InputError, match=r"^0 samples a cluster\. Expected: 1 or more\.$"):
        design_effect(0.1, 0)
