"""The compiled draws are NumPy's own, and leave the generator where NumPy would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.stats_permutation import draw_arrangements_slowly, resample_means_slowly

from evenhand.stats.bootstrap import _resample_means, cluster_bootstrap_mean
from evenhand.stats.contrasts import _Sides, cluster_permutation

seeds = st.integers(0, 2**63)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n=st.integers(2, 400), used=st.integers(0, 3), resamples=st.integers(1, 20))
def test_means_are_those_of_gathered_draws(seed: int, n: int, used: int, resamples: int) -> None:
    fast, slow = np.random.default_rng(seed), np.random.default_rng(seed)
    sums, sizes = np.random.default_rng(1).normal(size=n), np.arange(1.0, n + 1)
    for generator in (fast, slow):
        # An odd number of draws leaves half a number over, which must be used next.
        generator.integers(7, size=used, dtype=np.int32)
    found, wanted = (
        _resample_means(sums, sizes, fast, resamples),
        resample_means_slowly(sums, sizes, slow, resamples),
    )
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-14)
    assert fast.bit_generator.state == slow.bit_generator.state


def test_a_number_that_must_be_drawn_again_is() -> None:
    # Of 2^32 numbers the lowest 2^32 mod n are redrawn, here 2^20 - 4095: about 750 of three million draws.
    n = 2**20 + 1
    assert 2**32 % n == 2**20 - 4095
    fast, slow = np.random.default_rng(8), np.random.default_rng(8)
    found = _resample_means(np.arange(float(n)), np.ones(n), fast, 3)
    assert found == pytest.approx(resample_means_slowly(np.arange(float(n)), np.ones(n), slow, 3), rel=1e-12)
    assert fast.bit_generator.state == slow.bit_generator.state


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n=st.integers(2, 60), rows=st.integers(1, 9), used=st.integers(0, 3))
def test_arrangements_are_those_of_permuted_labels(seed: int, n: int, rows: int, used: int) -> None:
    fast, slow = np.random.default_rng(seed), np.random.default_rng(seed)
    made = np.random.default_rng(seed + 1)
    codes, group = np.arange(3 * n) // 3, made.random(3 * n) < made.choice([0.1, 0.5])
    sides = _Sides.of(made.normal(size=3 * n), group, codes)
    for generator in (fast, slow):
        generator.integers(7, size=used, dtype=np.int32)
    found = next(sides.draw(fast, rows))
    wanted = draw_arrangements_slowly(sides.spans, sides.inside, slow, rows)
    assert found == pytest.approx(sides.totals(wanted), rel=1e-9, abs=1e-9)
    assert fast.bit_generator.state == slow.bit_generator.state


def test_another_generator_seeds_numpy_s_default() -> None:
    y, clusters = np.random.default_rng(2).normal(size=60), np.repeat(np.arange(20), 3)
    group = clusters < 8
    for make in (np.random.Philox, np.random.PCG64DXSM):
        found = cluster_bootstrap_mean(y, clusters, rng=np.random.Generator(make(1)))
        assert found.low is not None
        assert found == cluster_bootstrap_mean(y, clusters, rng=np.random.Generator(make(1)))
        p = cluster_permutation(y, group, clusters, rng=np.random.Generator(make(1)), resamples=200).p
        assert p is not None
