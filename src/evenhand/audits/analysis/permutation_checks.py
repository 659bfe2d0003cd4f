"""The check of supported gaps: a second opinion that assumes nothing but that labels can be exchanged.

A permutation test of B arrangements has no p-value below 1 / (B + 1), so that it can speak for a family only
where B is large enough: to call one gap of a thousand supported takes more than 20,000. So the family decides
how many arrangements are drawn. Where there are fewer, or they take too long, the table gives the reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

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


class _Plan(NamedTuple):
    """A gap that is checked: against which raw p-value, and by how many arrangements."""

    item: Comparison
    bar: float
    resamples: int


@dataclass(slots=True)
class PermutationChecker:
    """Checks the supported primary gaps of a run by permutation."""

    comparer: GroupComparer
    check: CheckMode = "auto"
    arrangements_used: int = 0

    def run(
        self, items: Sequence[Comparison], axes: Sequence[Axis], quantities: Sequence[Quantity]
    ) -> list[Comparison]:
        """The comparisons, those that are supported with the p-value and the verdict of the check."""
        supported = [
            not item.exploratory and item.p_adjusted is not None and item.p_adjusted <= ALPHA
            for item in items
        ]
        if self.check == "none" or self.comparer.test != "cluster" or not any(supported):
            return list(items)
        rejected = Counter(item.family for item, is_clear in zip(items, supported, strict=True) if is_clear)
        by_axis = {(axis.suite, axis.name): axis for axis in axes}
        by_output = {(quantity.metric, quantity.output): quantity for quantity in quantities}
        # What is drawn is decided first, one after the other; the draws then share the cores there are.
        plans = [
            self._plan_check(item, rejected[item.family]) if is_clear else item
            for item, is_clear in zip(items, supported, strict=True)
        ]

        def check(plan: Comparison | _Plan) -> Comparison:
            if isinstance(plan, Comparison):
                return plan
            item = plan.item
            return self._run_permutation(
                plan, by_axis[item.suite, item.axis], by_output[item.metric, item.output]
            )

        return map_threads(check, plans)

    def _plan_check(self, item: Comparison, rejected: int) -> Comparison | _Plan:
        """How a gap will be checked, or why it will not be."""
        # The raw p-value at which the last supported gap of the family still is one.
        if self.comparer.correction == "holm":
            bar = ALPHA / (item.family_size - rejected + 1)
        else:
            bar = ALPHA * rejected / item.family_size
        resamples = max(LEAST, math.ceil(MIN_TAIL_ARRANGEMENTS / bar))
        if resamples > MOST:
            return replace(item, check=TOO_MANY)
        if self.check == "auto" and self.arrangements_used + resamples * item.n_clusters > ARRANGEMENT_BUDGET:
            return replace(item, check=TOO_LONG)
        self.arrangements_used += resamples * item.n_clusters
        return _Plan(item, bar, resamples)

    def _run_permutation(self, plan: _Plan, axis: Axis, quantity: Quantity) -> Comparison:
        item, bar, resamples = plan
        inside, other = split_sides(axis, item.group, item.baseline)
        values = quantity.values[axis.rows]
        used = (inside | other) & ~np.isnan(values)
        rng = make_generator(
            self.comparer.seed, "check", item.suite, item.axis, item.group, item.metric, item.output
        )
        result = cluster_permutation(
            values[used],
            inside[used],
            axis.clusters[used],
            rng=rng,
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
