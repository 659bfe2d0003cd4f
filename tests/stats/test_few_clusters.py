"""A handful of clusters shared by both groups must not make chance look like a finding."""

import numpy as np
import pytest
from tests.stats.gaps import clustered_proportion_difference


def test_one_differing_text_in_two_clusters_is_no_finding():
    # The t statistic is 0.25 / 0.25 = 1 with one degree of freedom: p = 0.5.
    gap = clustered_proportion_difference([1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 0, 0], [0, 0, 1, 1])
    assert gap.estimate == pytest.approx(0.25)
    assert gap.p == pytest.approx(0.5)
    assert gap.low == -1
    assert gap.high == 1


def test_identical_texts_in_every_cluster_have_no_variation():
    values = [1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 1]
    gap = clustered_proportion_difference(values, range(12), values, range(12))
    assert gap.estimate == 0
    assert (gap.low, gap.high, gap.p, gap.min_detectable) == (None, None, None, None)
    assert gap.null_reason == "no variation"


@pytest.mark.parametrize("clusters", [2, 3, 5, 8])
def test_the_null_is_rejected_rarely_with_few_shared_clusters(clusters):
    rng = np.random.default_rng(clusters)
    rejected = tested = 0
    for _ in range(300):
        chances = np.clip(rng.beta(0.2 * 2.3, 0.8 * 2.3, clusters), 0, 1)
        ids = np.repeat(np.arange(clusters), 5)
        a, b = (rng.random(ids.size) < chances[ids] for _ in range(2))
        p = clustered_proportion_difference(a.astype(float), ids, b.astype(float), ids).p
        tested += p is not None
        rejected += p is not None and p <= 0.05
    # 0.05 with three standard errors of 300 draws: 0.05 + 3 * 0.0126 = 0.088.
    assert rejected <= 0.088 * tested
