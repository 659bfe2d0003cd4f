"""Many gaps at once are those found one at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import astuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.records import Estimate
from evenhand.stats._arrays import Floats
from evenhand.stats.contrasts import GapLayout, clustered_gap, compare_many_gaps
from evenhand.stats.intervals import clustered_proportion
from evenhand.stats.results import Difference


def flatten(values: Iterable[object]) -> Iterator[object]:
    for value in values:
        yield from flatten(value) if isinstance(value, tuple) else [value]


def close(found: Difference | Estimate, wanted: Difference | Estimate) -> bool:
    """Whether two records are the same to eleven digits, nulls and words exactly."""
    pairs = zip(flatten(astuple(found)), flatten(astuple(wanted)), strict=True)
    return all(
        math.isclose(one, other, rel_tol=1e-10, abs_tol=1e-13)
        if isinstance(one, float) and isinstance(other, float)
        else one == other
        for one, other in pairs
    )


@st.composite
def layouts(draw: st.DrawFn) -> tuple[GapLayout, Floats, bool]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, n_groups, n_clusters = (draw(st.integers(1, most)) for most in (60, 5, 25))
    groups, clusters = rng.integers(n_groups, size=rows), rng.integers(n_clusters, size=rows)
    if draw(st.booleans()):
        groups = clusters % n_groups
    baseline = draw(st.none() | st.integers(0, n_groups - 1))
    is_share = draw(st.booleans())
    rate = draw(st.sampled_from([0.0, 0.03, 0.3, 0.9, 1.0]))
    effect = rng.normal(size=n_clusters)[clusters]
    values = np.stack(
        [
            (rng.random(rows) < rate).astype(np.float64)
            if is_share
            else 9 + rate * effect + rng.normal(size=rows)
            for _ in range(3)
        ]
    )
    if not is_share and draw(st.booleans()):
        values = np.round(values)
    return GapLayout(groups, clusters, n_groups, baseline), values, is_share


@settings(max_examples=150, deadline=None)
@given(layouts())
def test_gaps_ratios_and_shares_are_those_of_one_at_a_time(given: tuple[GapLayout, Floats, bool]) -> None:
    layout, values, is_share = given
    found = compare_many_gaps(layout, values, is_share=is_share, level=0.95)
    for output, y in enumerate(values):
        for group in range(layout.n_groups):
            inside = layout.groups == group
            other = ~inside if layout.baseline is None else layout.groups == layout.baseline
            sides = y[inside], layout.clusters[inside], y[other], layout.clusters[other]
            if group != layout.baseline:
                gap, ratio = clustered_gap(*sides, is_share=is_share)
                assert close(found.difference(output, group), gap)
                assert close(found.ratio(output, group), ratio)
            if is_share:
                assert close(found.shares(output)[group], clustered_proportion(*sides[:2]))


def test_equal_values_have_no_variation_whatever_other_groups_have() -> None:
    groups, clusters = np.repeat([0, 1, 2], 6), np.arange(18) // 2
    y = np.where(groups == 2, np.arange(18) / 7, 0.1)[None]
    found = compare_many_gaps(GapLayout(groups, clusters, 3, 0), y, is_share=False, level=0.95).difference(
        0, 1
    )
    assert (found.estimate, found.p, found.null_reason) == (0.0, None, "no variation")


def test_one_of_many_gaps_is_the_gap_by_itself() -> None:
    rng = np.random.default_rng(4)
    groups, clusters = rng.integers(4, size=200), rng.integers(30, size=200)
    y = rng.normal(size=(2, 200))
    found = compare_many_gaps(GapLayout(groups, clusters, 4), y, is_share=False, level=0.9)
    wanted, _ = clustered_gap(
        y[1][groups == 2],
        clusters[groups == 2],
        y[1][groups != 2],
        clusters[groups != 2],
        is_share=False,
        level=0.9,
    )
    assert close(found.difference(1, 2), wanted)
