"""Labels that few texts have: the default test must not take the luck of a few clusters for a finding."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from tests.stats.gaps import clustered_proportion_difference

from evenhand.stats._moments import compute_moments
from evenhand.stats.contrasts import clustered_contrast
from evenhand.stats.intervals import clustered_proportion

LEVELS = (0.05, 0.05 / 6)
"""A test alone, and the first step of Holm's correction over six."""


def test_the_degrees_of_freedom_of_a_rare_label_by_hand():
    # One of 20: u = (y - 0.05) / (20 sqrt(0.95)).
    # Sum of u^2 = (0.9025 + 19 x 0.0025) / 380 = 0.0025; sum of u^4 = 0.814625 / 144400 = 5.64145e-6.
    # 2 x 0.0025^2 / (5.64145e-6 - 0.0025^2 / 20) = 2.34571
    of = compute_moments(np.eye(20)[0], np.zeros(20, dtype=np.intp), np.arange(20, dtype=np.intp), n_cells=1)
    assert of.covariance[0, 0] == pytest.approx(0.0025)
    assert of.own_df(np.array(19.0))[0] == pytest.approx(2.34571, abs=1e-4)
    assert of.own_df(np.array(2.0))[0] == 2


def test_a_label_that_is_not_rare_keeps_the_degrees_of_freedom_of_the_design():
    y = np.tile([0.0, 1.0], 20)
    of = compute_moments(y, np.zeros(40, dtype=np.intp), np.arange(40, dtype=np.intp), n_cells=1)
    assert of.own_df(np.array(39.0))[0] == 39


@pytest.mark.parametrize(("hits", "rate"), [(1, 0.002), (2, 0.005), (3, 0.02), (5, 0.03)])
def test_a_few_texts_of_a_small_group_are_judged_about_as_the_binomial_judges_them(hits, rate):
    # 40 texts against so many that their share is as good as known.
    a, b = (np.arange(40) < hits).astype(float), (np.arange(20_000) < 20_000 * rate).astype(float)
    found = clustered_proportion_difference(a, None, b, None)
    exact = scipy_stats.binom.sf(hits - 1, 40, rate)
    assert exact / 2.5 < found.p < 2.2 * exact


def test_one_text_is_no_certainty_and_its_absence_neither():
    # Fisher's exact test says 0.091 and 1.
    b = (np.arange(2_000) < 8).astype(float)
    one, none = np.eye(20)[0], np.zeros(20)
    assert 0.04 < clustered_proportion_difference(one, None, b, None).p < 0.2
    assert clustered_proportion_difference(none, None, b, None).p > 0.5


def test_one_text_on_either_side_of_a_shared_cluster_is_no_finding():
    # One of 200 against one of 3,400, both in cluster 0 of 40; Fisher's exact test says 0.11.
    a, b = np.zeros((40, 5)), np.zeros((40, 85))
    a[0, 0] = b[0, 0] = 1
    ids = [np.repeat(np.arange(40), size) for size in (5, 85)]
    found = clustered_proportion_difference(a.ravel(), ids[0], b.ravel(), ids[1])
    assert found.p > 0.02


binary = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.integers(0, 3), st.integers(0, 14)), min_size=24)


@given(binary)
def test_two_cells_of_a_contrast_are_a_difference(rows):
    y, cells, clusters = (np.array(column) for column in zip(*rows, strict=True))
    y, cells, clusters = y[cells < 2], cells[cells < 2], clusters[cells < 2]
    a, b = cells == 0, cells == 1
    whole = clustered_contrast(y, cells, clusters, weights=(1.0, -1.0), is_share=True)
    assert whole == clustered_proportion_difference(y[a], clusters[a], y[b], clusters[b])


@given(binary)
def test_the_other_sign_and_the_other_answer_mirror_a_gap_of_gaps(rows):
    y, cells, clusters = (np.array(column) for column in zip(*rows, strict=True))
    weights = np.array([1.0, -1.0, -1.0, 1.0])
    here = clustered_contrast(y, cells, clusters, weights=weights, is_share=True)
    negated = clustered_contrast(y, cells, clusters, weights=-weights, is_share=True)
    answered = clustered_contrast(1 - y, cells, clusters, weights=weights, is_share=True)
    for there in (negated, answered):
        assert there.null_reason == here.null_reason
        if here.p is not None:
            assert there.p == pytest.approx(here.p, rel=1e-6, abs=1e-9)
            assert (there.low, there.high) == pytest.approx((-here.high, -here.low), abs=1e-9)


def test_a_gap_of_gaps_counts_a_cell_without_the_label_as_uncertain():
    # 0 of 20 under one model, 3 of 20 under the other, nothing to tell between 10 % and 10 % of 200.
    cells = np.repeat([0, 1, 2, 3], [20, 200, 20, 200])
    y = np.concatenate([np.zeros(20), np.arange(200) < 20, np.arange(20) < 3, np.arange(200) < 20])
    as_means = clustered_contrast(y, cells, np.arange(440), weights=(1.0, -1.0, -1.0, 1.0))
    as_shares = clustered_contrast(y, cells, np.arange(440), weights=(1.0, -1.0, -1.0, 1.0), is_share=True)
    assert as_shares.estimate == pytest.approx(-0.15)
    assert as_shares.high - as_shares.low > as_means.high - as_means.low
    assert as_shares.low <= -0.15 <= as_shares.high


class Design(NamedTuple):
    """Five texts of the group a cluster, and those of the baseline in the same clusters or in others."""

    clusters: int
    baseline: int
    """Clusters of their own with five texts each, or texts in every shared cluster."""
    shared: bool = False

    def rows(self):
        """Which cluster each text is in, and whether it is the group's."""
        if self.shared:
            size = 5 + self.baseline
            return np.repeat(np.arange(self.clusters), size), np.tile(np.arange(size) < 5, self.clusters)
        ids = np.repeat(np.arange(self.clusters + self.baseline), 5)
        return ids, ids < self.clusters


DESIGNS = (Design(40, 40), Design(40, 400), Design(40, 85, shared=True), Design(60, 5, shared=True))


def _simulated(runs, share, design, icc=0.2):
    """How often a true null is rejected at each level, and how often the interval of the group covers."""
    rng = np.random.default_rng(17)
    ids, group = design.rows()
    wrong, covered = np.zeros(len(LEVELS)), 0
    for _ in range(runs):
        # Rates of clusters follow a beta distribution with this intraclass correlation.
        rates = rng.beta(share * (1 / icc - 1), (1 - share) * (1 / icc - 1), ids[-1] + 1)
        y = (rng.random(ids.size) < rates[ids]).astype(float)
        p = clustered_proportion_difference(y[group], ids[group], y[~group], ids[~group]).p
        wrong += [p is not None and p <= level for level in LEVELS]
        found = clustered_proportion(y[group], ids[group])
        covered += found.low <= share <= found.high
    return wrong / runs, covered / runs


@pytest.mark.parametrize("design", DESIGNS)
def test_rare_labels_make_few_findings_at_small_levels(design):
    # The levels with three standard errors of 300 runs.
    wrong, covered = _simulated(300, 0.02, design)
    assert wrong[0] <= 0.05 + 3 * 0.0126
    assert wrong[1] <= 0.0083 + 3 * 0.0053
    assert covered >= 0.92


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.02, 0.05])
@pytest.mark.parametrize("design", DESIGNS)
def test_rare_labels_make_few_findings_in_2000_runs(share, design):
    wrong, covered = _simulated(2_000, share, design)
    # Two to four texts with a label can say little: the test then rejects less often than it may.
    assert (0.03 if share == 0.05 else 0.0) <= wrong[0] <= 0.07
    assert wrong[1] <= 0.0125
    assert covered >= 0.93
