"""The check of supported gaps: a second opinion that assumes nothing but that labels can be exchanged.

A permutation test of B arrangements has no p-value below 1 / (B + 1), so that it can speak for a family only
where B is large enough: to call one gap of a thousand supported takes more than 20,000. So the family decides
how many arrangements are drawn. Where there are fewer, or they take too long, the table gives the reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from evenhand.audits.analysis.group_comparison import GroupComparer, split_sides
from evenhand.audits.analysis.quantities import Axis, Quantity
from evenhand.audits.parallel import map_threads
from evenhand.core.records import Comparison
from evenhand.core.seeds import make_generator
from evenhand.stats.permutation import cluster_permutation

CheckMode = Literal["auto", "all", "none"]
ALPHA = 0.05
LEAST, MOST = 2_000, 1_000_000
"""Arrangements drawn for one gap."""
MIN_TAIL_ARRANGEMENTS = 5
"""Arrangements at the bar: with fewer, the luck of the draw would decide."""
ARRANGEMENT_BUDGET = 500_000_000
"""Clusters x arrangements of all checks of a run in ``auto``: some seconds."""
AGREES, DISAGREES = "agrees", "disagrees"
_UNCHECKED = "not checked: "
TOO_MANY = f"{_UNCHECKED}the family is too large for the arrangements there are"
TOO_LONG = f"{_UNCHECKED}a family of this size takes many arrangements; --check all draws them"


def check_by_permutation(
    comparer: GroupComparer,
    items: Sequence[Comparison],
    axes: Sequence[Axis],
    quantities: Sequence[Quantity],
    mode: CheckMode = "auto",
    *,
    budget: int = ARRANGEMENT_BUDGET,
) -> list[Comparison]:
    """The comparisons, supported primary ones with the p-value and the verdict of a permutation check."""
    supported = [
        not item.exploratory and item.p_adjusted is not None and item.p_adjusted <= ALPHA for item in items
    ]
    if mode == "none" or comparer.test != "cluster" or not any(supported):
        return list(items)
    rejected = Counter(item.family for item, is_clear in zip(items, supported, strict=True) if is_clear)
    by_axis = {(axis.suite, axis.name): axis for axis in axes}
    by_output = {(quantity.metric, quantity.output): quantity for quantity in quantities}
    # What is drawn is decided first, one after the other; the draws then share the cores there are.
    draws: list[Callable[[], Comparison]] = []
    for item, is_clear in zip(items, supported, strict=True):
        if not is_clear:
            draws.append(partial(replace, item))
            continue
        # The raw p-value at which the last supported gap of the family still is one.
        bar = ALPHA * rejected[item.family] / item.family_size
        if comparer.correction == "holm":
            bar = ALPHA / (item.family_size - rejected[item.family] + 1)
        resamples = max(LEAST, math.ceil(MIN_TAIL_ARRANGEMENTS / bar))
        work = resamples * item.n_clusters
        if resamples > MOST or (mode == "auto" and work > budget):
            draws.append(partial(replace, item, check=TOO_MANY if resamples > MOST else TOO_LONG))
            continue
        budget -= work
        axis, quantity = by_axis[item.suite, item.axis], by_output[item.metric, item.output]
        draws.append(partial(_permute, comparer.seed, item, axis, quantity, bar, resamples))
    return map_threads(lambda draw: draw(), draws)


def _permute(
    seed: int, item: Comparison, axis: Axis, quantity: Quantity, bar: float, resamples: int
) -> Comparison:
    """A gap checked against a raw p-value by so many arrangements."""
    inside, other = split_sides(axis, item.group, item.baseline)
    values = quantity.values[axis.rows]
    used = (inside | other) & ~np.isnan(values)
    result = cluster_permutation(
        values[used],
        inside[used],
        axis.clusters[used],
        rng=make_generator(seed, "check", item.suite, item.axis, item.group, item.metric, item.output),
        is_share=quantity.kind == "share",
        resamples=resamples,
    )
    if result.p is None or (result.is_exact and 2 / result.arrangements > bar):
        return replace(item, p_permutation=result.p, check=TOO_MANY)
    return replace(item, p_permutation=result.p, check=AGREES if result.p <= bar else DISAGREES)


def describe_unconfirmed(items: Sequence[Comparison]) -> list[str]:
    """Warnings where supported gaps do not stand up to the check, or could not be checked."""
    counts = Counter(item.check for item in items if item.check)
    against = [f"{item.group} {item.metric} {item.output}" for item in items if item.check == DISAGREES]
    warnings = []
    if against:
        names = f"{', '.join(against[:3])}{' ...' if len(against) > 3 else ''}"
        warnings.append(
            f"{len(against):,} of {counts[AGREES] + len(against):,} supported gaps do not stand up to the "
            f"permutation check ({names}): doubt them"
        )
    return warnings + [
        f"{count:,} supported gaps have no permutation check: {reason.removeprefix(_UNCHECKED)}"
        for reason, count in sorted(counts.items())
        if reason.startswith(_UNCHECKED)
    ]
