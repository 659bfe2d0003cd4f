"""Proof by simulation: under a true null with realistic clusters, tests and intervals keep their promises."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from tests.stats.gaps import clustered_difference, clustered_proportion_difference

from evenhand.core.records import Estimate
from evenhand.stats.bootstrap import cluster_bootstrap_mean
from evenhand.stats.contrasts import cluster_permutation, clustered_omnibus
from evenhand.stats.corrections import benjamini_hochberg, holm
from evenhand.stats.intervals import clustered_mean, clustered_proportion
from evenhand.stats.results import Difference

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
ICC = 0.2
SHARE = 0.2
GAP = 0.3
"""A true gap of means: intervals must cover it as they cover 0."""


class Rows(NamedTuple):
    y: Floats
    group: npt.NDArray[np.bool_]
    clusters: Ints


class Bounds(NamedTuple):
    false_positives: tuple[float, float]
    coverage: tuple[float, float]


SHORT = Bounds((0.02, 0.085), (0.92, 0.98))
"""400 runs: the promise, widened by about 1.5 standard errors of a simulated rate."""
LONG = Bounds((0.03, 0.07), (0.93, 0.97))


@dataclass(frozen=True)
class Design:
    """Clusters of unequal sizes; each in one group, or reaching over both."""

    crossed: bool

    def draw(self, rng: np.random.Generator, *, binary: bool) -> Rows:
        n_clusters = 45 if self.crossed else 90
        clusters = np.repeat(np.arange(n_clusters), 1 + rng.geometric(0.25, n_clusters))
        group = rng.random(clusters.size) < 0.5 if self.crossed else clusters % 2 == 0
        return Rows(_shares(rng, clusters) if binary else _means(rng, clusters), group, clusters)


def _means(rng: np.random.Generator, clusters: Ints) -> Floats:
    effects = math.sqrt(ICC) * rng.normal(size=clusters.max() + 1)
    noise: Floats = effects[clusters] + math.sqrt(1 - ICC) * rng.normal(size=clusters.size)
    return noise


def _shares(rng: np.random.Generator, clusters: Ints) -> Floats:
    # A beta-binomial with a + b = 1 / ICC - 1 has this intraclass correlation.
    rates = rng.beta(SHARE * (1 / ICC - 1), (1 - SHARE) * (1 / ICC - 1), clusters.max() + 1)
    successes: Floats = (rng.random(clusters.size) < rates[clusters]).astype(np.float64)
    return successes


def _gap(function: Callable[..., Difference], rows: Rows, shift: float = 0.0) -> Difference:
    y, group, clusters = rows
    return function(y[group] + shift, clusters[group], y[~group], clusters[~group])


def _covers(found: Estimate | Difference, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


def _rejects(p: float | None) -> bool:
    assert p is not None
    return p < 0.05


def simulate(design: Design, runs: int) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """False-positive rates and coverages over ``runs`` simulated audits."""
    rng = np.random.default_rng(20_240_601)
    wrong: dict[str, int] = {}
    covered: dict[str, int] = {}
    for run in range(runs):
        means, shares = design.draw(rng, binary=False), design.draw(rng, binary=True)
        tests = {
            "means": _gap(clustered_difference, means).p,
            "shares": _gap(clustered_proportion_difference, shares).p,
            "shares as means": _gap(clustered_difference, shares).p,
            "permutation": cluster_permutation(*means, rng=run, resamples=199).p,
            "permutation of shares": cluster_permutation(*shares, rng=run, is_share=True, resamples=199).p,
            "omnibus": clustered_omnibus(means.y, _three(means, design), means.clusters).p,
        }
        intervals = {
            "gap of means": _covers(_gap(clustered_difference, means, GAP), GAP),
            "gap of shares": _covers(_gap(clustered_proportion_difference, shares), 0),
            "mean": _covers(clustered_mean(means.y, means.clusters), 0),
            "share": _covers(clustered_proportion(shares.y, shares.clusters), SHARE),
            "bootstrap": _covers(
                cluster_bootstrap_mean(means.y, means.clusters, rng=run, resamples=1_000), 0
            ),
        }
        for name, p in tests.items():
            wrong[name] = wrong.get(name, 0) + _rejects(p)
        for name, covers in intervals.items():
            covered[name] = covered.get(name, 0) + covers
    return {k: v / runs for k, v in wrong.items()}, {k: v / runs for k, v in covered.items()}


def _three(rows: Rows, design: Design) -> Ints:
    """Three groups instead of two: rows where clusters are crossed, whole clusters where not."""
    return np.arange(rows.y.size) % 3 if design.crossed else rows.clusters % 3


def check(design: Design, runs: int, bounds: Bounds) -> None:
    wrong, covered = simulate(design, runs)
    low, high = bounds.false_positives
    assert {name: rate for name, rate in wrong.items() if not low <= rate <= high} == {}
    low, high = bounds.coverage
    assert {name: rate for name, rate in covered.items() if not low <= rate <= high} == {}


@pytest.mark.parametrize("crossed", [False, True])
def test_rates_hold_in_a_short_simulation(crossed: bool) -> None:
    check(Design(crossed), 400, SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("crossed", [False, True])
def test_rates_hold_in_2000_runs(crossed: bool) -> None:
    check(Design(crossed), 2_000, LONG)


def test_corrections_control_their_error_rates() -> None:
    # Families of 20 comparisons of which 10 are true gaps; 300 families.
    rng = np.random.default_rng(1)
    any_wrong, share_wrong = [], []
    clusters = np.repeat(np.arange(40), 3)
    for _ in range(300):
        family = []
        for test in range(20):
            a, b = _means(rng, clusters) + 0.8 * (test < 10), _means(rng, clusters)
            family.append(clustered_difference(a, clusters, b, clusters + 40).p)
        by_holm = [p is not None and p < 0.05 for p in holm(family)]
        by_bh = [p is not None and p < 0.05 for p in benjamini_hochberg(family)]
        any_wrong.append(any(by_holm[10:]))
        share_wrong.append(sum(by_bh[10:]) / max(1, sum(by_bh)))
        assert sum(by_bh) >= sum(by_holm)
    assert np.mean(any_wrong) <= 0.07
    assert np.mean(share_wrong) <= 0.05
    assert np.mean(share_wrong) >= 0.005  # it spends its allowance: half of 0.05 here


@pytest.mark.parametrize("share", [0.02, 0.05])
def test_rare_labels_do_not_make_findings(share: float) -> None:
    # The case a plain test of means fails: a small group, a rare label, most samples without any.
    rng = np.random.default_rng(2)
    wrong = covered = judged = 0
    for _ in range(400):
        a = (rng.random(25) < share).astype(float)
        b = (rng.random(600) < share).astype(float)
        found = clustered_proportion_difference(a, None, b, None)
        if found.p is not None:
            judged += 1
            wrong += found.p < 0.05
            covered += _covers(found, 0)
    assert wrong / judged <= 0.06
    assert covered / judged >= 0.94
