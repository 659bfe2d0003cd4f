"""Intervals of sets of texts: a mean's jackknife is its standard error, and clusters are the units."""

import math

import numpy as np
import pytest

from evenhand.audits.tradeoff import estimate_sets
from evenhand.core.protocols import Cell
from evenhand.core.records import MetricInfo, OutputInfo, Text, Value

CELL = Cell("topic", "tax")


class MeanLength:
    info = MetricInfo("mean", "1", (OutputInfo("length", "continuous", "longer"),), "", ())

    def measure(self, cells):
        return {cell: {"length": self._mean(texts)} for cell, texts in cells.items()}

    def _mean(self, texts):
        sizes = [len(text.text) for text in texts]
        return Value(float(np.mean(sizes))) if sizes else Value(None, null_reason="empty")


def estimate(sizes, clusters):
    rows = [(Text("x" * size), cluster) for size, cluster in zip(sizes, clusters, strict=True)]
    return estimate_sets(MeanLength(), {CELL: rows})[CELL]["length"]


def test_the_jackknife_of_a_mean_is_its_standard_error():
    # 1, 2, 3, 6: mean 3, sum of squares 14, standard error sqrt(14 / 3 / 4); t(0.975, 3) = 3.1824.
    found = estimate([1, 2, 3, 6], ["a", "b", "c", "d"])
    assert found.value == 3
    assert found.high - found.value == pytest.approx(3.182446 * math.sqrt(14 / 12), rel=1e-6)
    assert found.value - found.low == pytest.approx(found.high - found.value)
    assert (found.n, found.n_clusters) == (4, 4)


def test_copies_inside_clusters_are_no_more_evidence():
    once = estimate([1, 2, 3, 6], ["a", "b", "c", "d"])
    copied = estimate([1, 2, 3, 6] * 5, ["a", "b", "c", "d"] * 5)
    assert (copied.low, copied.high) == pytest.approx((once.low, once.high))


def test_one_cluster_and_no_text_have_no_interval():
    assert estimate([1, 2], ["a", "a"]).null_reason == "one cluster"
    assert estimate([], []).null_reason == "empty"
