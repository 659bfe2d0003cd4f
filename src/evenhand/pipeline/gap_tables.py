"""The gaps of an axis on many outputs at once: outputs that the same texts have are judged together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from evenhand.core.records import ALL, REST, Estimate
from evenhand.pipeline.quantities import Axis, Flags, Quantity
from evenhand.stats._layout import Layout
from evenhand.stats._many import ManyGaps, many_gaps, many_shares
from evenhand.stats.results import Difference

_CELLS = 20_000_000
"""Values stacked at a time."""


@dataclass(frozen=True, slots=True)
class OutputGaps:
    """The gaps of one output: of every group of an axis."""

    gaps: ManyGaps
    place: int

    def difference(self, code: int) -> Difference:
        """The gap of a group to its baseline."""
        return self.gaps.difference(self.place, code)

    def ratio(self, code: int) -> Estimate:
        """The group's value over that of its baseline."""
        return self.gaps.ratio(self.place, code)

    def sides(self, code: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Of a share: texts and how many of them have it, in the group and in its baseline."""
        sizes = self.gaps.cells.sizes[code]
        yes = np.rint(self.gaps.spreads.means[self.place, code] * sizes)
        (n_a, n_b), (yes_a, yes_b) = sizes.astype(int).tolist(), yes.astype(int).tolist()
        return (n_a, yes_a), (n_b, yes_b)

    def shares(self) -> list[Estimate]:
        """The share of each group, with its interval."""
        spreads = type(self.gaps.spreads)(*(part[self.place : self.place + 1] for part in self.gaps.spreads))
        return many_shares(self.gaps.cells, spreads, level=self.gaps.level)[0]


def gaps_of_axis(
    axis: Axis, quantities: Sequence[Quantity], baseline: str, *, level: float
) -> list[OutputGaps]:
    """The gaps of every output of an axis, in their order; ``(all)`` is judged as ``(rest)``."""
    found: list[OutputGaps | None] = [None] * len(quantities)
    against = None if baseline in (REST, ALL) else axis.groups.index(baseline)
    layouts: dict[bytes, Layout] = {}
    for known, kind, places in _alike(axis, quantities):
        mark = blake2b(known.tobytes()).digest()
        if mark not in layouts:
            layouts[mark] = Layout(axis.codes[known], axis.clusters[known], len(axis.groups), against)
        rows = axis.rows[known]
        values = np.stack([quantities[place].values[rows] for place in places])
        gaps = many_gaps(layouts[mark], values, is_share=kind == "share", level=level)
        for number, place in enumerate(places):
            found[place] = OutputGaps(gaps, number)
    return [item for item in found if item is not None]


def nulls_by_group(axis: Axis, quantity: Quantity) -> list[Counter[str]]:
    """For each group why its texts have no value."""
    empty = np.flatnonzero(np.isnan(quantity.values[axis.rows]))
    of_empty = axis.codes[empty]
    return [
        quantity.nulls(axis.rows[empty[of_empty == code]]) if empty.size else Counter[str]()
        for code in range(len(axis.groups))
    ]


def _alike(axis: Axis, quantities: Sequence[Quantity]) -> Iterator[tuple[Flags, str, list[int]]]:
    """Outputs of one kind that the same texts have, so many that they fit in memory together."""
    most = max(1, _CELLS // max(1, axis.rows.size))
    members: dict[tuple[str, bytes], list[int]] = {}
    for place, quantity in enumerate(quantities):
        known = ~np.isnan(quantity.values[axis.rows])
        key = quantity.kind, blake2b(known.tobytes()).digest()
        members.setdefault(key, []).append(place)
    for (kind, _), places in members.items():
        flags: Flags = ~np.isnan(quantities[places[0]].values[axis.rows])
        for start in range(0, len(places), most):
            yield flags, kind, places[start : start + most]
