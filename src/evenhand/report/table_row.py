"""A row of a table as a reader meets it, and how a test on it is put into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Standing: TypeAlias = Literal["supported", "unclear", "missing"]
WORDS: Final[Mapping[Standing, str]] = {
    "supported": "clear of chance",
    "unclear": "not told from chance",
    "missing": "not tested",
}
CLEAR: Final = 0.05
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
