"""Intersectional groups: two axes of one suite crossed, where texts speak of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evenhand.core.records import ALL, REST
from evenhand.pipeline.quantities import Axis

MOST_GROUPS = 100
"""Crossed groups beyond which an axis is left out: each would rest on a handful of texts."""
CROSS = " x "


@dataclass(frozen=True, slots=True)
class Crossed:
    """The crossed axes of a run, and what was left out."""

    axes: tuple[Axis, ...]
    baselines: Mapping[tuple[str, str], str]
    left_out: tuple[str, ...]
    """A warning each."""


def cross(axes: Sequence[Axis], baselines: Mapping[tuple[str, str], str]) -> Crossed:
    """Every two axes of one suite that cross; their baseline is that of both axes, else ``(rest)``."""
    found: list[Axis] = []
    declared: dict[tuple[str, str], str] = {}
    left_out: list[str] = []
    for first, second in combinations(axes, 2):
        if first.suite != second.suite or (axis := _crossed(first, second)) is None:
            continue
        if len(axis.groups) > MOST_GROUPS:
            left_out.append(f"{axis.name} has {len(axis.groups):,} crossed groups and is left out")
            continue
        found.append(axis)
        declared[axis.suite, axis.name] = _baseline(axis, first, second, baselines)
    return Crossed(tuple(found), declared, tuple(left_out))


def _crossed(first: Axis, second: Axis) -> Axis | None:
    """The crossed axis; None where no text speaks of both, or one axis decides the other."""
    _, of_first, of_second = np.intersect1d(first.rows, second.rows, return_indices=True)
    if not of_first.size or _repeats(first) or _repeats(second):
        return None
    key = first.codes[of_first] * len(second.groups) + second.codes[of_second]
    cells, codes = np.unique(key, return_inverse=True)
    if cells.size <= max(len(first.groups), len(second.groups)):
        return None
    names = [divmod(int(cell), len(second.groups)) for cell in cells]
    return Axis(
        suite=first.suite,
        name=f"{first.name}{CROSS}{second.name}",
        groups=tuple(f"{first.groups[a]}{CROSS}{second.groups[b]}" for a, b in names),
        rows=first.rows[of_first],
        codes=codes.astype(np.int64),
        clusters=first.clusters[of_first],
    )


def _repeats(axis: Axis) -> bool:
    """Whether a text belongs to two groups of the axis: then crossing it has no one meaning."""
    return np.unique(axis.rows).size < axis.rows.size


def _baseline(axis: Axis, first: Axis, second: Axis, baselines: Mapping[tuple[str, str], str]) -> str:
    names = [baselines.get((part.suite, part.name), REST) for part in (first, second)]
    both = CROSS.join(names)
    return REST if {REST, ALL} & set(names) or both not in axis.groups else both
