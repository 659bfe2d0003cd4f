"""The minimum detectable gap: at the level that decides, and as large as simulated tests say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from evenhand.stats._arrays import Floats
from evenhand.stats.contrasts import ContrastTests, GapLayout, compare_many_gaps
from evenhand.stats.corrections import CORRECTIONS, Correction, correct_by_family, decision_levels
from evenhand.stats.power_analysis import GapSpread

CLUSTERS, ROWS, ICC, FAMILY = 60, 5, 0.2, 20
LAYOUT = GapLayout(
    np.repeat([0, 1], CLUSTERS * ROWS), np.repeat(np.arange(2 * CLUSTERS), ROWS), n_groups=2, baseline=1
)


@pytest.mark.parametrize("correction", ["bh", "holm"])
@given(
    st.lists(
        st.one_of(st.none(), st.sampled_from([0.0, 0.001, 0.01, 0.04, 1.0]), st.floats(0, 1)), max_size=9
    )
)
def test_a_decision_level_is_the_largest_p_that_is_significant(
    correction: Correction, family: list[float | None]
) -> None:
    for place, level in enumerate(decision_levels(family, correction)):
        if family[place] is None:
            continue
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            adjusted = CORRECTIONS[correction]([*family[:place], middle, *family[place + 1 :]])[place]
            assert adjusted is not None
            low, high = (middle, high) if adjusted <= 0.05 else (low, middle)
        assert level == pytest.approx(low, abs=1e-12)


@given(st.floats(3, 500), st.floats(1e-5, 0.2))
def test_the_power_of_a_mean_is_that_of_the_noncentral_t(df: float, alpha: float) -> None:
    shift = GapSpread(1.0, df).detectable(alpha)
    exact = scipy_stats.nct.sf(scipy_stats.t.isf(alpha / 2, df), df, shift)
    assert exact == pytest.approx(0.8, abs=0.012)


def draw(rng: np.random.Generator, gap: float, share: float | None) -> ContrastTests:
    """A family of outputs of the same texts, of which the first has a true gap."""
    if share is None:
        of_cluster = rng.normal(0, np.sqrt(ICC), (FAMILY, 2 * CLUSTERS))
        values: Floats = np.repeat(of_cluster, ROWS, axis=1) + rng.normal(
            0, np.sqrt(1 - ICC), (FAMILY, LAYOUT.groups.size)
        )
        values[0] += gap * (LAYOUT.groups == 0)
    else:
        rates = np.full((FAMILY, 2 * CLUSTERS), share)
        rates[0, :CLUSTERS] += gap
        spread = (1 - ICC) / ICC
        of_cluster = rng.beta(rates * spread, (1 - rates) * spread)
        values = (rng.random((FAMILY, LAYOUT.groups.size)) < np.repeat(of_cluster, ROWS, axis=1)).astype(
            float
        )
    return compare_many_gaps(LAYOUT, values, is_share=share is not None, level=0.95)


def judge_family(tests: ContrastTests, correction: Correction) -> tuple[bool, list[float]]:
    """Whether the first gap is found after correction, and what each had to reach."""
    gaps = [tests.difference(output, 0) for output in range(FAMILY)]
    corrected = correct_by_family([gap.p for gap in gaps], [""] * FAMILY, correction)
    first = corrected[0].adjusted
    assert first is not None
    pairs = zip(gaps, corrected, strict=True)
    return first <= 0.05, [gap.spread.detectable(p.decision_level) for gap, p in pairs if gap.spread]


@pytest.mark.parametrize("correction", ["bh", "holm"])
@pytest.mark.parametrize("share", [None, 0.05, 0.2, 0.5])
@pytest.mark.parametrize(
    ("runs", "points"), [(150, 0.11), pytest.param(2_000, 0.035, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_gap_of_the_detectable_size_is_found_in_80_percent_of_runs(
    share: float | None, correction: Correction, runs: int, points: float
) -> None:
    rng = np.random.default_rng(3)
    gap = float(np.mean([judge_family(draw(rng, 0.0, share), correction)[1] for _ in range(runs // 15)]))
    hits = sum(judge_family(draw(rng, gap, share), correction)[0] for _ in range(runs))
    assert hits / runs == pytest.approx(0.8, abs=points)


def test_at_the_level_of_a_single_test_the_gap_would_be_too_small() -> None:
    rng = np.random.default_rng(4)
    gap = draw(rng, 0.0, None).difference(0, 0).min_detectable
    assert gap is not None
    hits = sum(judge_family(draw(rng, gap, None), "bh")[0] for _ in range(150))
    assert hits / 150 < 0.6
