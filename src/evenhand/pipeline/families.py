"""Families of comparisons: which p-values are corrected together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from evenhand.stats.corrections import benjamini_hochberg, holm

Correction = Literal["bh", "holm"]
CORRECTIONS: Mapping[Correction, Callable[[Sequence[float | None]], list[float | None]]] = {
    "bh": benjamini_hochberg,
    "holm": holm,
}


class Adjusted(NamedTuple):
    """A p-value corrected over its family."""

    adjusted: float | None
    family: str
    size: int
    """Tests in the family; a null is none."""


def by_family(
    p_values: Sequence[float | None], families: Sequence[str], correction: Correction
) -> list[Adjusted]:
    """Each p-value corrected over those of the same family, in their order."""
    places: dict[str, list[int]] = {}
    for place, family in enumerate(families):
        places.setdefault(family, []).append(place)
    found: list[Adjusted] = [Adjusted(None, family, 0) for family in families]
    for family, members in places.items():
        adjusted = CORRECTIONS[correction]([p_values[place] for place in members])
        size = sum(p is not None for p in adjusted)
        for place, p in zip(members, adjusted, strict=True):
            found[place] = Adjusted(p, family, size)
    return found
