from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.power import TTestIndPower
from tests.stats.gaps import clustered_difference

from evenhand.core.errors import InputError
from evenhand.stats.power_analysis import clusters_needed


def test_independent_rows_agree_with_statsmodels() -> None:
    plan = clusters_needed(0.5, sd=1, icc=0.0)
    expected = TTestIndPower().solve_power(effect_size=0.5, alpha=0.05, power=0.8)  # 63.77
    assert plan == pytest.approx(expected, abs=2)


@given(st.floats(0.02, 2), st.floats(0.1, 3), st.floats(0, 1), st.integers(1, 20))
def test_the_planned_clusters_are_just_enough(gap: float, sd: float, icc: float, samples: int) -> None:
    plan = clusters_needed(gap, sd=sd, icc=icc, samples=samples)
    # Clusters of one group vary by sd^2 (1 + (samples - 1) icc) / samples.
    variance = 2 * sd**2 * (1 + (samples - 1) * icc) / samples

    def power(clusters: int) -> float:
        df = 2 * (clusters - 1)
        shift = gap / math.sqrt(variance / clusters)
        return float(scipy_stats.nct.sf(scipy_stats.t.ppf(0.975, df), df, min(shift, 30)))

    # The plan uses an approximation of this distribution.
    assert power(plan) > 0.79
    if plan > 2:
        assert power(plan - 1) < 0.82


def test_a_planned_study_has_the_power_it_was_planned_for() -> None:
    rng = np.random.default_rng(1)
    plan = clusters_needed(0.4, sd=1, icc=0.2, samples=5)
    clusters = np.repeat(np.arange(plan), 5)
    found = 0
    for _ in range(400):
        a, b = (
            math.sqrt(0.2) * rng.normal(size=plan)[clusters] + math.sqrt(0.8) * rng.normal(size=clusters.size)
            for _ in "ab"
        )
        p = clustered_difference(a + 0.4, clusters, b, clusters + plan).p
        found += p is not None and p < 0.05
    assert found / 400 == pytest.approx(0.8, abs=0.06)


def test_impossible_plans_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"^a gap of 0\. Expected: a gap above 0, in the unit of the values\.$"
    ):
        clusters_needed(0, sd=1)
    with pytest.raises(InputError, match=r"^0 samples per cluster\. Expected: 1 or more\.$"):
        clusters_needed(0.1, sd=1, samples=0)
