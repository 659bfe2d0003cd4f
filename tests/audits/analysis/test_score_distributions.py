"""Spreads of scores, worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.audits.analysis.cut_sensitivity import BINS, HistogramBins, distribution_table, find_bins
from evenhand.audits.analysis.quantities import Axis, Quantity
from evenhand.core.records import MetricInfo, OutputInfo

BOUNDED = OutputInfo("tone", "continuous", "warmer", low=-1.0, high=1.0)
OPEN = OutputInfo("words", "continuous", "more")
INFOS = {"m": MetricInfo("m", "1", (BOUNDED, OPEN), "", primary=())}


def _axis(codes):
    codes = np.asarray(codes)
    return Axis("s", "ax", ("a", "b"), np.arange(codes.size), codes, np.arange(codes.size))


def test_counts_and_quantiles_of_each_group():
    values = np.array([-1.0, 0.0, 1.0, 0.5, np.nan])
    table = distribution_table(
        "model", [_axis([0, 0, 0, 1, 1])], INFOS, [Quantity("m", "tone", "mean", values, True)]
    )
    a, b = table.iter_rows(named=True)
    # 24 bins of 1/12: -1 opens the first, 0 the thirteenth, and 1 closes the last.
    assert [place for place, count in enumerate(a["counts"]) if count] == [0, 12, 23]
    assert (a["n"], a["q50"], a["q25"], a["q95"]) == (3, 0.0, -0.5, pytest.approx(0.9))
    assert (b["n"], sum(b["counts"]), b["q05"]) == (1, 1, 0.5)


def test_shares_and_groups_without_values_have_no_spread():
    share = Quantity("m", "negative", "share", np.array([0.0, 1.0]), True)
    empty = Quantity("m", "tone", "mean", np.full(2, np.nan), True)
    half = Quantity("m", "words", "mean", np.array([1.0, np.nan]), True)
    table = distribution_table("model", [_axis([0, 1])], INFOS, [share, empty, half])
    assert table.select("group", "output").rows() == [("a", "words")]


def test_whole_numbers_stand_in_the_middle_of_a_bin_each():
    assert find_bins(np.array([-2.0, 0.0, 3.0, np.nan]), OPEN) == HistogramBins(-2.5, 3.5, 6)
    assert HistogramBins(-2.5, 3.5, 6).counts(np.array([-2.0, 0.0, 0.0, 3.0])) == [1, 0, 2, 0, 0, 1]


def test_equal_values_have_a_bin():
    bins = find_bins(np.full(3, 0.7), OPEN)
    assert bins is not None
    assert sum(bins.counts(np.full(3, 0.7))) == 3


def test_no_values_no_bins():
    assert find_bins(np.full(3, np.nan), BOUNDED) is None


def test_a_value_on_a_border_lies_in_the_bin_above():
    # 0.3 / 0.1 is a hair below 3 in binary.
    assert HistogramBins(0.0, 1.0, 10).counts(np.array([0.3])) == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=50))
def test_every_value_is_counted_once(values):
    counts = HistogramBins(-1.0, 1.0, BINS).counts(np.array(values))
    assert (len(counts), sum(counts)) == (BINS, len(values))
