"""What changed from the reference to another run: one line per gap or value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from evenhand.audits.report.measures import Measure, MeasureKey
from evenhand.report.charts import AxisScale, element
from evenhand.report.document import Cell
from evenhand.report.verdicts import ALPHA, INCONCLUSIVE, NOT_TESTABLE, TableRow
from evenhand.report.wording import format_baseline, format_p

BEYOND = ("wider", "narrower", "moved")
"""The verdicts of a change that is larger than chance."""


@dataclass(frozen=True, slots=True)
class ChangeLine(TableRow):
    """A change of a gap or of a value, in words."""

    measure: Measure

    @property
    def group(self) -> str:
        """The group."""
        return self.words("group")

    @property
    def baseline(self) -> str:
        """What a gap is against; empty for a value."""
        return format_baseline(self.text("baseline")) if self.row["effect"] == "gap" else ""

    @property
    def what(self) -> str:
        """The group, and what its gap is against."""
        return f"{self.group} against {self.baseline}" if self.baseline else self.group

    def _format_side(self, column: str) -> str:
        value = self.value(column)
        if self.baseline or value is None:
            return self.measure.gap(value, signed=True)
        return self.measure.value(value)

    @property
    def before(self) -> str:
        """What it was in the reference."""
        return self._format_side("reference_value")

    @property
    def after(self) -> str:
        """What it is in the run."""
        return self._format_side("run_value")

    @property
    def change(self) -> Cell:
        """The change with its unit."""
        return self.measure.cell(self.value("estimate"))

    @property
    def interval(self) -> str:
        """The interval of the change."""
        return self.measure.interval(self.value("low"), self.value("high"))

    @property
    def p(self) -> str:
        """The adjusted p; empty where there is no change."""
        return "" if self.value("estimate") is None else format_p(self.value("p_adjusted"))

    @property
    def seen_from(self) -> str:
        """The smallest change that these prompts could have shown."""
        return self.measure.gap(self.value("min_detectable"))

    @property
    def verdict(self) -> str:
        """``wider``, ``narrower``, ``moved``, ``inconclusive`` or ``not testable``."""
        p, widens = self.value("p_adjusted"), self.value("widens")
        if p is None:
            return NOT_TESTABLE
        if p > ALPHA:
            return INCONCLUSIVE
        low, high = self.value("widens_low"), self.value("widens_high")
        # A gap that changes its sign has moved, and need be neither wider nor narrower.
        if widens is None or low is None or high is None or low <= 0 <= high:
            return "moved"
        return "wider" if widens > 0 else "narrower"

    @property
    def verdict_words(self) -> str:
        """The verdict, and why there is none."""
        reason = self.words("null_reason") if self.verdict == NOT_TESTABLE else ""
        return f"{self.verdict}: {reason}" if reason else self.verdict

    @property
    def tone(self) -> str:
        """The class of its colour: ``higher`` where a gap widened, ``lower`` where it narrowed."""
        return {"wider": "higher", "narrower": "lower"}.get(self.verdict, "")

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both values as parts of the measure's range; None where one is missing or there is no range."""
        before, after, span = self.value("reference_value"), self.value("run_value"), self.measure.span
        return None if before is None or after is None or not span else (before / span, after / span)

    @property
    def claim(self) -> str:
        """The change without its evidence: "women against men: wider (sentiment, negative) under B"."""
        has_turned = self.baseline and self.ends and self.ends[0] * self.ends[1] < 0
        turned = ", with the sign reversed" if has_turned else ""
        return f"{self.what}: {self.verdict}{turned} ({self.measure.full_title}) under {self.text('run')}"

    @property
    def doubt(self) -> str:
        """What an inconclusive change leaves open."""
        what, unit = f"{self.what}, {self.measure.full_title}, under {self.text('run')}", self.measure.unit
        seen = f"; it had to reach {self.seen_from}{unit} to be detected" if self.seen_from else ""
        return f"{what}: the change may be anywhere from {self.interval}{unit}{seen}"

    @property
    def order(self) -> tuple[bool, int, bool, float, str, str, str]:
        """Sort key: the corrected family, then larger than chance, then the largest part of the range.

        What has no range comes after what has one: its size is of another kind.
        """
        rank = 0 if self.verdict in BEYOND else 1 if self.verdict == INCONCLUSIVE else 2
        size = abs(self.value("estimate") or 0) / (self.measure.span or 1)
        names = (self.what, self.measure.full_title, self.text("run"))
        return bool(self.row["exploratory"]), rank, self.measure.span is None, -size, *names

    def draw(self, scale: AxisScale) -> Markup:
        """Its value in the reference and in the run, against zero."""
        if not self.ends:
            return Markup()
        before, after = map(scale.at, self.ends)
        zero = element("rect", class_="ref", x=f"{scale.at(0.0)}%")
        way = element("rect", class_="way", x=f"{min(before, after)}%", width=f"{abs(after - before):.2f}%")
        dots = (
            element("circle", class_=name, cx=f"{at}%") for name, at in (("before", before), ("after", after))
        )
        return element("svg", zero, way, *dots, class_="move")


def build_lines(
    rows: Iterable[Mapping[str, Any]], known: Mapping[MeasureKey, Measure], effect: str
) -> list[ChangeLine]:
    """The changes of gaps or of values: the corrected family, larger than chance, and largest first."""
    lines = [ChangeLine(row, known[row["metric"], row["output"]]) for row in rows]
    return sorted((line for line in lines if line.row["effect"] == effect), key=lambda line: line.order)


def find_scale(lines: Sequence[ChangeLine]) -> AxisScale:
    """One scale of parts of a range for all lines, with zero on it."""
    ends = [end for line in lines if line.ends for end in line.ends]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    return AxisScale(low, high if high > low else low + 1.0, ())
