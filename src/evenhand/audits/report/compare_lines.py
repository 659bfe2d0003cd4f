"""What changed from the reference to another run: one line a gap or value, in words and as a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evenhand.audits.report.gap_wording import ALPHA
from evenhand.audits.report.measures import Measure, MeasureKey
from evenhand.core.digests import Json
from evenhand.report.wording import format_name, format_p, format_short_baseline, show_control_characters

BEYOND = ("wider", "narrower", "moved")
"""The verdicts that say a change is beyond chance."""
_TONES = {"wider": "higher", "narrower": "lower"}
_EDGE = 3.0
"""Percent of a plot kept free on each side."""


@dataclass(frozen=True, slots=True)
class ChangePlot:
    """Where a line is drawn, in percent: the reference, the run, and 0."""

    before: float
    after: float
    zero: float

    @property
    def start(self) -> float:
        """The left end of the way between the two."""
        return min(self.before, self.after)

    @property
    def width(self) -> float:
        """How far it is from one to the other."""
        return round(abs(self.after - self.before), 2)


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A change of a gap or of a value, in words."""

    run: str
    axis: str
    metric: str
    group: str
    baseline: str
    """What a gap is against; empty for a value."""
    measure: str
    unit: str
    before: str
    after: str
    change: str
    interval: str
    p: str
    verdict: str
    """``wider``, ``narrower``, ``moved``, ``cannot tell`` or ``not testable``."""
    reason: str
    """Why it was not testable."""
    seen_from: str
    exploratory: bool
    is_bounded: bool
    size: float
    """For sorting: the part of the measure's range, or the bare size where it has none."""
    ends: tuple[float, float] | None
    """Both values as parts of the range of the measure; None where one is missing or there is no range."""
    move: ChangePlot | None = None

    @property
    def what(self) -> str:
        """The group, and what its gap is against."""
        return f"{self.group} against {self.baseline}" if self.baseline else self.group

    @property
    def full_change(self) -> str:
        """The change with its unit."""
        return f"{self.change}{self.unit}" if self.change else ""

    @property
    def tone(self) -> str:
        """The class of its colour: ``higher`` where a gap widened, ``lower`` where it narrowed."""
        return _TONES.get(self.verdict, "")

    @property
    def claim(self) -> str:
        """The change without its evidence: "women against men: wider (sentiment, negative) under B"."""
        turned = " and the other way round" if self.has_turned else ""
        return f"{self.what}: {self.verdict}{turned} ({self.measure}) under {self.run}"

    @property
    def doubt(self) -> str:
        """What an undecided change leaves open."""
        what = f"{self.what}, {self.measure}, under {self.run}"
        seen = f"; it had to reach {self.seen_from}{self.unit} to be seen" if self.seen_from else ""
        return f"{what}: the change may be anywhere from {self.interval}{self.unit}{seen}"

    @property
    def has_turned(self) -> bool:
        """Whether a gap has the other sign than in the reference."""
        return bool(self.baseline and self.ends and self.ends[0] * self.ends[1] < 0)


def build_lines(
    rows: Sequence[Mapping[str, Json]], known: Mapping[MeasureKey, Measure], effect: str
) -> tuple[ChangeLine, ...]:
    """The changes of gaps or of values: the corrected family first, beyond chance first, largest first."""
    found = [_line(row, known[str(row["metric"]), str(row["output"])]) for row in rows]
    of_effect = [line for line, row in zip(found, rows, strict=True) if row["effect"] == effect]
    return _add_plots(sorted(of_effect, key=_order))


def number_or_none(value: Json) -> float | None:
    """The number, or None where it is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _line(row: Mapping[str, Json], measure: Measure) -> ChangeLine:
    is_gap = row["effect"] == "gap"
    form = measure.signed_gap if is_gap else measure.value
    before, after, change = (number_or_none(row[key]) for key in ("reference_value", "run_value", "estimate"))
    low, high = number_or_none(row["low"]), number_or_none(row["high"])
    least = number_or_none(row["min_detectable"])
    return ChangeLine(
        run=show_control_characters(str(row["run"])),
        axis=str(row["axis"]),
        metric=str(row["metric"]),
        group=format_name(str(row["group"])),
        baseline=format_short_baseline(str(row["baseline"])) if is_gap else "",
        measure=measure.full_title,
        unit=measure.unit,
        before="" if before is None else form(before),
        after="" if after is None else form(after),
        change="" if change is None else measure.signed_gap(change),
        interval=""
        if low is None or high is None
        else f"{measure.signed_gap(low)} to {measure.signed_gap(high)}",
        p="" if change is None else format_p(number_or_none(row["p_adjusted"])),
        verdict=_verdict(row),
        reason=format_name(str(row["null_reason"])) if row["null_reason"] else "",
        seen_from="" if least is None else measure.gap(least),
        exploratory=bool(row["exploratory"]),
        is_bounded=measure.span is not None,
        size=abs(change or 0) / (measure.span or 1),
        ends=None
        if before is None or after is None or not measure.span
        else (before / measure.span, after / measure.span),
    )


def _verdict(row: Mapping[str, Json]) -> str:
    p, widens = number_or_none(row["p_adjusted"]), number_or_none(row["widens"])
    if p is None:
        return "not testable"
    if p > ALPHA:
        return "cannot tell"
    low, high = number_or_none(row["widens_low"]), number_or_none(row["widens_high"])
    # A gap that changes its sign has moved, and need be neither wider nor narrower.
    if widens is None or low is None or high is None or low <= 0 <= high:
        return "moved"
    return "wider" if widens > 0 else "narrower"


def _order(line: ChangeLine) -> tuple[bool, int, bool, float, str, str, str]:
    """Sort key. What has no range comes after what has one: its size is of another kind."""
    standing = 0 if line.verdict in BEYOND else 1 if line.verdict == "cannot tell" else 2
    return (
        line.exploratory,
        standing,
        not line.is_bounded,
        -line.size,
        line.what,
        line.measure,
        line.run,
    )


def _add_plots(found: Sequence[ChangeLine]) -> tuple[ChangeLine, ...]:
    """The lines with their plots, all on one scale of parts of a range."""
    known = [end for line in found if line.ends for end in line.ends]
    low, high = min([0.0, *known]), max([0.0, *known])
    width = (high - low) or 1.0

    def at(value: float) -> float:
        return round(_EDGE + (100 - 2 * _EDGE) * (value - low) / width, 2)

    return tuple(
        replace(line, move=ChangePlot(at(line.ends[0]), at(line.ends[1]), at(0.0))) if line.ends else line
        for line in found
    )
