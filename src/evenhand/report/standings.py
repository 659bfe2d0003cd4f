"""A row of a table as a reader meets it, and how a test on it is put into words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

TestStanding: TypeAlias = Literal["supported", "unclear", "missing"]
STANDING_WORDS: Final[Mapping[TestStanding, str]] = {
    "supported": "clear of chance",
    "unclear": "not told from chance",
    "missing": "not tested",
}
CLEAR_LEVEL: Final = 0.05
"""Adjusted p up to which a row is called clear."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row whose columns are read as names or as numbers."""

    row: Mapping[str, str | int | float | None]

    def text(self, column: str) -> str:
        """A name of the row, as in the table."""
        return str(self.row[column])

    def value(self, column: str) -> float | None:
        """A number of the row."""
        found = self.row[column]
        return None if found is None or isinstance(found, str) else float(found)


S = TypeVar("S", bound=str)


@dataclass(frozen=True, slots=True)
class StandingCount:
    """How many findings stand so, and its piece of the bar that shows them all."""

    standing: str
    word: str
    meaning: str
    amount: int
    start: float
    """Start and width of the piece, in percent."""
    width: float


def count_standings(
    standings: Iterable[S], *, words: Mapping[S, str], meanings: Mapping[S, str]
) -> tuple[StandingCount, ...]:
    """A tally for every standing of ``words``, in their order; pieces of a bar that ends at 100."""
    amounts = Counter(standings)
    total, start, found = max(1, amounts.total()), 0.0, []
    for standing, word in words.items():
        width = 100 * amounts[standing] / total
        tally = StandingCount(
            standing, word, meanings[standing], amounts[standing], round(start, 3), round(width, 3)
        )
        found.append(tally)
        start += width
    return tuple(found)
