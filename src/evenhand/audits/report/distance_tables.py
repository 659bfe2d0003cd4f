"""The distances of base rates, as tables a reader can follow: distance, chance, what is left, which way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from evenhand.report.manifest import read_mapping, read_objects, read_texts
from evenhand.report.wording import format_name
from evenhand.stats.base_rates import FEW_KEYWORDS, OVERALL
from evenhand.store.run import Run

HEAD = (
    "Option",
    "Distance",
    "By chance",
    "Beyond chance",
    "Interval",
    "Adjusted p",
    "Leans",
    "Texts",
    "Keywords",
)
EXPLANATION = (
    "How far the scores of an option are spread differently from those of all options: 0 is alike, 1 the "
    "most there can be. A distance is never 0 in a sample, so that it stands beside what chance alone gives, "
    "and what is left beyond chance has an interval. A lean has been found only where that excludes 0 and "
    "the adjusted p is below 0.05: beside options that lean, one that does not lies off the mean of all too, "
    "as chance would put it. Two or three keywords are too few for an interval: there p alone decides."
)
ALPHA = 0.05
_NAMED = 4
"""Options that the terminal names."""


@dataclass(frozen=True, slots=True)
class DistanceLine:
    """One option."""

    cells: tuple[str, ...]
    is_found: bool
    """Whether the interval of what is beyond chance, where keywords are enough for one, lies above 0, and
    chance seldom does as much."""
    is_overall: bool


@dataclass(frozen=True, slots=True)
class DistanceTable:
    """The options of one attribute, under one kind of prompt."""

    title: str
    head: tuple[str, ...]
    lines: tuple[DistanceLine, ...]


@dataclass(frozen=True, slots=True)
class Distances:
    """All of a run's distances."""

    tables: tuple[DistanceTable, ...]
    explanation: str = EXPLANATION

    def __bool__(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.tables)


def build_distance_tables(run: Run) -> Distances:
    """A table for each attribute, metric and kind of prompt; none where the run has no distances."""
    poles = _poles(run)
    table = run.table("distances")
    # Suites differ in attribute or bias as a rule; where several models stand side by side each is named.
    is_shared = table["model"].n_unique() > 1
    groups = table.group_by("suite", "model", "metric", "attribute", "bias", maintain_order=True)
    return Distances(
        tuple(
            _table(tuple(str(part) for part in key), rows, poles, with_model=is_shared)
            for key, rows in groups
        )
    )


def describe_distances(run: Run) -> str:
    """How many options lean beyond chance, in a sentence, and the first of them; empty without distances."""
    lines = [
        (table.title, line)
        for table in build_distance_tables(run).tables
        for line in table.lines
        if not line.is_overall and line.cells[5]
    ]
    if not lines:
        return ""
    found = [f"{line.cells[0]} {line.cells[6]} ({title})" for title, line in lines if line.is_found]
    if not found:
        return f"Distances: none of {len(lines):,} options lies further off than chance puts it."
    more = f"; {len(found) - _NAMED:,} more in the report" if len(found) > _NAMED else ""
    named = "; ".join(found[:_NAMED])
    verb = "leans" if len(found) == 1 else "lean"
    return f"Distances: {len(found):,} of {len(lines):,} options {verb} beyond chance: {named}{more}."


def _table(
    key: tuple[str, ...], rows: pl.DataFrame, poles: Mapping[str, tuple[str, str]], *, with_model: bool
) -> DistanceTable:
    _, model, metric, attribute, bias = key
    lower, higher = poles.get(metric, ("lower", "higher"))
    lines = tuple(_line(row, lower, higher) for row in rows.iter_rows(named=True))
    title = f"{format_name(attribute)}, {bias} ({format_name(metric)})"
    return DistanceTable(f"{model}: {title}" if with_model else title, HEAD, lines)


def _line(row: Mapping[str, object], lower: str, higher: str) -> DistanceLine:
    low, high = row["low"], row["high"]
    p = row["p"] if row["option"] == OVERALL else row["p_adjusted"]
    cells = (
        "Overall" if row["option"] == OVERALL else format_name(str(row["option"])),
        _number(row["estimate"]),
        _number(row["null_mean"]),
        _number(row["corrected"], signed=True),
        f"{_number(low, signed=True)} to {_number(high, signed=True)}"
        if low is not None
        else str(row["null_reason"] or ""),
        _number(p, digits=3),
        _leaning(row["direction"], lower, higher),
        f"{row['n']:,}",
        f"{row['n_keywords']:,}",
    )
    is_above = low > 0 if isinstance(low, float) else row["null_reason"] == FEW_KEYWORDS
    is_found = is_above and isinstance(p, float) and p < ALPHA
    return DistanceLine(cells, is_found, row["option"] == OVERALL)


def _leaning(direction: object, lower: str, higher: str) -> str:
    if not isinstance(direction, float):
        return ""
    return f"{direction:+.3f} {higher if direction > 0 else lower}"


def _number(value: object, *, signed: bool = False, digits: int = 4) -> str:
    if not isinstance(value, float):
        return ""
    return f"{value:{'+' if signed else ''}.{digits}f}"


def _poles(run: Run) -> dict[str, tuple[str, str]]:
    """What the low and the high end of each metric are called."""
    found: dict[str, tuple[str, str]] = {}
    for spec in read_mapping(run.manifest, "metrics"):
        for output in read_objects(run.manifest, "metrics", spec, "outputs"):
            labels = read_texts(output, "labels")
            if len(labels) == 2:
                found.setdefault(spec, (labels[0], labels[1]))
    return found
