"""Corrections of p-values over a family of comparisons. Nulls stay null and do not count in the family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from evenhand.core.errors import InputError
from evenhand.stats._arrays import Floats

ALPHA: Final = 0.05
"""The adjusted p at or below which a finding is called larger than chance."""


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values that control the family-wise error rate (Holm 1979).

    The i-th smallest of m is multiplied by m - i + 1; results are made monotone and capped at 1.

    >>> holm([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    return _over_family(p_values, _holm)


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values that control the false discovery rate (Benjamini and Hochberg 1995).

    Valid for independent or positively dependent tests.

    >>> benjamini_hochberg([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    from scipy.stats import false_discovery_control

    return _over_family(p_values, false_discovery_control)


def _over_family(p_values: Sequence[float | None], adjust: Callable[[Floats], Floats]) -> list[float | None]:
    family = np.array([p for p in p_values if p is not None], dtype=np.float64)
    outside = family[~((family >= 0) & (family <= 1))]  # NaN is outside too
    if outside.size:
        raise InputError(
            f"a p-value of {outside[0]}", expected="p-values from 0 to 1, or None for a missing one"
        )
    adjusted = iter(adjust(family).tolist() if family.size else [])
    return [None if p is None else next(adjusted) for p in p_values]


def _holm(p: Floats) -> Floats:
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return adjusted


Correction = Literal["bh", "holm"]
CORRECTIONS: Mapping[Correction, Callable[[Sequence[float | None]], list[float | None]]] = {
    "bh": benjamini_hochberg,
    "holm": holm,
}


def decision_levels(
    p_values: Sequence[float | None], correction: Correction, alpha: float = ALPHA
) -> list[float]:
    """For each p-value the largest one that would have been significant in its place, given all others.

    Between ``alpha`` / m, where nothing else in a family of m is significant, and ``alpha``: the level at
    which a single test of the family is decided. A missing p counts as one more test.

    >>> decision_levels([0.001, 0.5], "bh")
    [0.025, 0.05]
    """
    known = np.array([p for p in p_values if p is not None], dtype=np.float64)
    order, levels = np.argsort(known, kind="stable"), np.empty_like(known)
    levels[order] = (_decide_bh if correction == "bh" else _decide_holm)(known[order], alpha)
    remaining, alone = iter(levels.tolist()), alpha / (known.size + 1)
    return [alone if p is None else next(remaining) for p in p_values]


def _decide_bh(p: Floats, alpha: float) -> Floats:
    ranks = np.arange(1, p.size + 1)
    rejected = int(np.flatnonzero([True, *(p <= alpha * ranks / p.size)])[-1])
    # A p-value that came before all others would move those before it one rank up.
    is_kept = np.concatenate([[0.0], p[:-1]]) <= alpha * ranks / p.size
    counts = np.maximum.accumulate(np.where(is_kept, ranks, 1))
    return alpha * np.where(ranks <= rejected, rejected, counts) / p.size


def _decide_holm(p: Floats, alpha: float) -> Floats:
    size, places = p.size, np.arange(p.size)
    # Without the tested one, those after it move one rank up.
    first = int(np.flatnonzero([*(p > alpha / (size - places)), True])[0])
    later = np.where(p > alpha / (size - places + 1), places, size)
    following = np.append(np.minimum.accumulate(later[::-1])[::-1][1:], size)
    passed = np.where(first < places, first, following - 1)
    return alpha / (size - passed)


class AdjustedPValue(NamedTuple):
    """A p-value corrected over its family."""

    adjusted: float | None
    family: str
    size: int
    """Number of tests in the family, not counting nulls."""
    decision_level: float
    """The largest p that would have been significant in its place, given the others of the family."""


def correct_by_family(
    p_values: Sequence[float | None], families: Sequence[str], correction: Correction
) -> list[AdjustedPValue]:
    """Each p-value corrected within its family, in input order."""
    places: dict[str, list[int]] = {}
    for place, family in enumerate(families):
        places.setdefault(family, []).append(place)
    corrected: dict[int, AdjustedPValue] = {}
    for family, members in places.items():
        values = [p_values[place] for place in members]
        adjusted, levels = CORRECTIONS[correction](values), decision_levels(values, correction)
        size = sum(p is not None for p in adjusted)
        corrected |= {
            at: AdjustedPValue(p, family, size, level)
            for at, p, level in zip(members, adjusted, levels, strict=True)
        }
    return [corrected[place] for place in range(len(families))]
