"""The words of every verdict, their definitions, and rows of a table that a test judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from markupsafe import Markup

from evenhand.report.charts import draw_swatches
from evenhand.report.wording import format_name, format_number, format_p

LARGER: Final = "larger than chance"
INCONCLUSIVE: Final = "inconclusive"
SMALL: Final = "small at most"
NOT_TESTABLE: Final = "not testable"
DEFINITIONS: Final[Mapping[str, str]] = {
    LARGER: "statistically significant after correction: adjusted p of at most 0.05",
    INCONCLUSIVE: "this sample is too small to decide: the difference may be chance",
    SMALL: "the whole interval lies within 5 points of zero, or 5 % of a mean's range",
    NOT_TESTABLE: "no test was possible; the reason is in the table",
}
"""Shown on hover and on focus wherever a page says the word."""
TestStanding: TypeAlias = Literal["supported", "unclear", "missing"]
TEST_WORDS: Final[Mapping[TestStanding, str]] = {
    "supported": LARGER,
    "unclear": INCONCLUSIVE,
    "missing": NOT_TESTABLE,
}


def tint(way: str, size: float, bounds: Sequence[float]) -> str:
    """The colour of a clear cell of a matrix: its direction, deeper from each bound."""
    return f"{way}-{1 + sum(size >= bound for bound in bounds)}" if way else ""


def tint_legend(higher: str, lower: str) -> list[tuple[Markup, str]]:
    """What the colours of a matrix mean, each way in three depths."""
    ways = (("higher", higher), ("lower", lower))
    samples = [(draw_swatches(*(f"{way}-{depth}" for depth in (1, 2, 3))), words) for way, words in ways]
    return [*samples, (draw_swatches(""), INCONCLUSIVE)]


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row whose columns are read as names or as numbers."""

    row: Mapping[str, str | int | float | None]

    def text(self, column: str) -> str:
        """A name of the row, as in the table."""
        return str(self.row[column])

    def words(self, column: str) -> str:
        """A name of the row, as words; empty where there is none."""
        return "" if self.row[column] is None else format_name(self.text(column))

    def value(self, column: str) -> float | None:
        """A number of the row."""
        number = self.row[column]
        return None if number is None or isinstance(number, str) else float(number)

    def format_number(self, column: str, *, signed: bool = False) -> str:
        """A number of the row as a reader sees it; empty where there is none."""
        return format_number(self.value(column), signed=signed)

    @property
    def pair(self) -> str:
        """The two groups of a row about a pair: "male × female"."""
        return f"{self.words('group_a')} × {self.words('group_b')}"

    def leans_to(self, column: str) -> str:
        """The group of the pair that a signed number points to: the second one if it is positive."""
        value = self.value(column)
        return self.words("group_b" if value > 0 else "group_a") if value else ""

    @property
    def p(self) -> str:
        """The adjusted p-value."""
        return format_p(self.value("p_adjusted"))

    @property
    def reason(self) -> str:
        """Why a number is missing."""
        return str(self.row["null_reason"] or "")
