"""One gap, worked by hand: sizes, ratios, nulls by reason, and the papers' own tests."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy import stats as scipy_stats

from evenhand.audits.analysis.group_comparison import GroupComparer
from evenhand.audits.analysis.quantities import Axis, Quantity
from evenhand.core.errors import InputError
from evenhand.core.records import ALL


def _axis(codes, clusters=None, groups=("a", "b")):
    codes = np.asarray(codes)
    clusters = np.arange(codes.size) if clusters is None else np.asarray(clusters)
    return Axis("s", "ax", tuple(groups), np.arange(codes.size), codes, clusters)


def _one(quantity, axis, **how):
    axis = replace(axis, baseline="b")
    ((row,),) = GroupComparer("model", **how).compare_outputs(axis, [quantity])
    return SimpleNamespace(**row)


VALUES = np.array([1.0, 2.0, 3.0, 4.0, 0.0, 1.0, 2.0, 5.0])
MEAN = Quantity("m", "score", "mean", VALUES, True)
SHARE = Quantity("m", "negative", "share", np.array([1.0, 1, 1, 0, 1, 0, 0, 0]), True)
AXIS = _axis([0] * 4 + [1] * 4)


def test_sizes_of_a_mean():
    # a = 1, 2, 3, 4 and b = 0, 1, 2, 5.
    # Above: 1>0; 2>0,1; 3>0,1,2; 4>0,1,2: 9. Below: 1<2,5; 2<5; 3<5; 4<5: 5.
    whole = _one(MEAN, AXIS)
    assert whole.cliffs_delta == pytest.approx((9 - 5) / 16)
    assert whole.effect_size > 0
    assert whole.ratio == pytest.approx(2.5 / 2)
    assert whole.ratio_low < 1.25 < whole.ratio_high


def test_cliffs_delta_of_a_share_is_the_difference():
    # 3 of 4 against 1 of 4.
    found = _one(SHARE, AXIS)
    assert found.cliffs_delta == pytest.approx(0.5)
    assert found.ratio == pytest.approx(3)


def test_a_mean_that_is_not_positive_has_no_ratio():
    shifted = Quantity("m", "score", "mean", VALUES - 3, True)
    found = _one(shifted, AXIS)
    assert found.ratio is None
    assert found.cliffs_delta == pytest.approx(0.25)


def test_nulls_are_counted_by_reason_on_both_sides():
    values = np.array([1.0, np.nan, np.nan, 0, 1, np.nan, 0, 0])
    reasons = pl.Series([None, "refused", "too short", None, None, "refused", None, None])
    quantity = Quantity("m", "negative", "share", values, True, reasons)
    found = _one(quantity, AXIS)
    assert found.n_null == 3
    assert found.nulls == '{"refused": 2, "too short": 1}'
    groups = GroupComparer("model").groups([AXIS], [quantity]).to_dicts()
    assert [row["nulls"] for row in groups] == ['{"refused": 1, "too short": 1}', '{"refused": 1}']
    axis = replace(_axis([0] * 4 + [1] * 2 + [2] * 2, groups="abc"), baseline=ALL)
    (against_all,) = GroupComparer("model").compare_outputs(axis, [quantity])
    assert {row["n_null"] for row in against_all} == {3}


@pytest.mark.parametrize("test", ["binomial", "chi-square"])
def test_named_tests_of_shares_take_texts_for_independent(test):
    # 30 of 40 against 18 of 40: pooled 0.6, z = 0.3 / sqrt(0.24 x 2 / 40); scipy's chi-square agrees.
    share = Quantity("m", "negative", "share", np.repeat([1.0, 0, 1, 0], [30, 10, 18, 22]), True)
    axis = _axis([0] * 40 + [1] * 40, clusters=np.arange(80) % 5)
    found = _one(share, axis, test=test)
    table = [[30, 10], [18, 22]]
    assert found.p == pytest.approx(scipy_stats.chi2_contingency(table, correction=False).pvalue)
    assert found.estimate == pytest.approx(0.3)
    assert "cluster" not in found.method
    assert _one(MEAN, AXIS, test=test).method == "cluster-robust t"


def test_paired_t_pairs_by_cluster():
    # Clusters 0, 1, 2 are in both groups, with means a = 1.5, 3, 4 and b = 0, 1, 2; cluster 7 is in one only.
    values = np.array([1.0, 2, 3, 4, 0, 1, 2, 9])
    quantity = Quantity("m", "score", "mean", values, True)
    axis = _axis([0] * 4 + [1] * 4, clusters=[0, 0, 1, 2, 0, 1, 2, 7])
    found = _one(quantity, axis, test="paired-t")
    expected = scipy_stats.ttest_rel([1.5, 3, 4], [0, 1, 2])
    interval = expected.confidence_interval(0.95)
    assert found.estimate == pytest.approx((1.5 + 2 + 2) / 3)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.n_clusters == 3
    ranked = _one(quantity, axis, test="wilcoxon")
    assert ranked.p == pytest.approx(
        scipy_stats.wilcoxon([1.5, 2, 2], zero_method="pratt", method="asymptotic").pvalue
    )


def test_no_shared_cluster_is_no_pair():
    found = _one(MEAN, AXIS, test="paired-t")
    assert (found.p, found.null_reason) == (None, "no values")


def test_more_pairs_than_anybody_reads_are_refused():
    axis = _axis(list(range(500)), groups=[f"g{number}" for number in range(500)])
    share = Quantity("m", "negative", "share", np.zeros(500), True)
    with pytest.raises(InputError, match=r"^--pairs asks for 124,750 comparisons of two groups\."):
        GroupComparer("model").pairs([axis], [share])


def test_every_pair_of_groups_once():
    axis = _axis([0] * 4 + [1] * 4 + [2] * 4, groups="abc")
    share = Quantity("m", "negative", "share", np.array([1.0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1]), True)
    other = Quantity("m", "second", "share", share.values, False)
    found = GroupComparer("model").pairs([axis], [share, other])
    assert [(row["group"], row["baseline"], row["estimate"]) for row in found] == [
        ("a", "b", pytest.approx(0.5)),
        ("a", "c", pytest.approx(0.25)),
        ("b", "c", pytest.approx(-0.25)),
    ]
    assert {(row["family"], row["family_size"], row["exploratory"]) for row in found} == {
        ("s / model / pairs", 3, True)
    }
