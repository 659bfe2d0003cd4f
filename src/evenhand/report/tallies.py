"""How many findings stand how, as pieces of one bar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

S = TypeVar("S", bound=str)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many findings stand so, and its piece of the bar that shows them all."""

    standing: str
    word: str
    meaning: str
    amount: int
    start: float
    """Start and width of the piece, in percent."""
    width: float


def tallies(
    standings: Iterable[S], *, words: Mapping[S, str], meanings: Mapping[S, str]
) -> tuple[Tally, ...]:
    """A tally for every standing of ``words``, in their order; pieces of a bar that ends at 100."""
    amounts = Counter(standings)
    total, start, found = max(1, amounts.total()), 0.0, []
    for standing, word in words.items():
        width = 100 * amounts[standing] / total
        tally = Tally(standing, word, meanings[standing], amounts[standing], round(start, 3), round(width, 3))
        found.append(tally)
        start += width
    return tuple(found)
