"""Corrections of p-values over a family of comparisons. Nulls stay null and do not count in the family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from evenhand.core.errors import InputError
from evenhand.stats._arrays import Floats


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


class AdjustedPValue(NamedTuple):
    """A p-value corrected over its family."""

    adjusted: float | None
    family: str
    size: int
    """Number of tests in the family, not counting nulls."""


def correct_by_family(
    p_values: Sequence[float | None], families: Sequence[str], correction: Correction
) -> list[AdjustedPValue]:
    """Each p-value corrected within its family, in input order."""
    places: dict[str, list[int]] = {}
    for place, family in enumerate(families):
        places.setdefault(family, []).append(place)
    corrected: dict[int, AdjustedPValue] = {}
    for family, members in places.items():
        adjusted = CORRECTIONS[correction]([p_values[place] for place in members])
        size = sum(p is not None for p in adjusted)
        corrected |= {at: AdjustedPValue(p, family, size) for at, p in zip(members, adjusted, strict=True)}
    return [corrected[place] for place in range(len(families))]
