"""The overview: groups down, primary measures across, a signed gap in each cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evenhand.audits.report.findings import Findings
from evenhand.audits.report.gap_wording import Gap, OmnibusAnswer, OverallKey
from evenhand.audits.report.measures import Measure, MeasureKey
from evenhand.report.wording import format_name

STRONG, MIDDLING = 0.8, 0.5
"""Cohen's words for an effect size of h or g: large, medium; below is small."""


@dataclass(frozen=True, slots=True)
class OverviewCell:
    """One gap of the overview."""

    text: str
    standing: str
    tint: str
    """Direction and strength of a supported gap, such as ``higher-2``; else empty."""


@dataclass(frozen=True, slots=True)
class OverviewLine:
    """One group of the overview."""

    name: str
    cells: tuple[OverviewCell | None, ...]
    """None where this group was not measured so."""


@dataclass(frozen=True, slots=True)
class OverviewBlock:
    """The lines of one axis, with what they are compared with."""

    axis: str
    baseline: str
    lines: tuple[OverviewLine, ...]
    overall: tuple[OmnibusAnswer | None, ...]
    """For each measure whether the groups of the axis differ at all; None where it was not asked."""


@dataclass(frozen=True, slots=True)
class OverviewMatrix:
    """The overview of one suite and model."""

    suite: str
    model: str
    columns: tuple[Measure, ...]
    blocks: tuple[OverviewBlock, ...]

    @property
    def lines(self) -> int:
        """How many groups it shows."""
        return sum(len(block.lines) for block in self.blocks)


def build_overviews(
    found: Findings, known: Mapping[OverallKey, OmnibusAnswer] | None = None
) -> list[OverviewMatrix]:
    """One overview for each suite and model that has gaps, with the omnibus answers of its axes."""
    by_source: dict[tuple[str, str], list[Gap]] = {}
    for gap in found.judged_gaps:
        by_source.setdefault((gap.comparison.suite, gap.comparison.model), []).append(gap)
    return [_matrix(suite, model, gaps, found, known or {}) for (suite, model), gaps in by_source.items()]


def _matrix(
    suite: str, model: str, gaps: Iterable[Gap], found: Findings, known: Mapping[OverallKey, OmnibusAnswer]
) -> OverviewMatrix:
    axes: dict[tuple[str, str], dict[str, dict[MeasureKey, Gap]]] = {}
    for gap in gaps:
        row = gap.comparison
        groups = axes.setdefault((row.axis, row.baseline), {})
        groups.setdefault(row.group, {})[row.metric, row.output] = gap
    used = {key for groups in axes.values() for cells in groups.values() for key in cells}
    supported = Counter(
        key
        for groups in axes.values()
        for cells in groups.values()
        for key, gap in cells.items()
        if gap.standing == "supported"
    )
    # Measures with findings stand first, where a wide table is seen; the others keep their order.
    measures = [(key, measure) for key, measure in found.measures.items() if key in used]
    columns = tuple(measure for key, measure in sorted(measures, key=lambda item: -supported[item[0]]))
    blocks = tuple(
        _block(
            axis,
            groups,
            columns,
            tuple(known.get((suite, model, axis, column.metric, column.output)) for column in columns),
        )
        for (axis, _), groups in axes.items()
    )
    return OverviewMatrix(suite, model, columns, blocks)


def _block(
    axis: str,
    groups: dict[str, dict[MeasureKey, Gap]],
    columns: tuple[Measure, ...],
    answers: tuple[OmnibusAnswer | None, ...],
) -> OverviewBlock:
    lines = tuple(
        OverviewLine(
            format_name(group), tuple(_cell(cells.get((column.metric, column.output))) for column in columns)
        )
        for group, cells in sorted(groups.items())
    )
    first = next(gap for cells in groups.values() for gap in cells.values())
    return OverviewBlock(format_name(axis), first.short_baseline, lines, answers)


def _cell(gap: Gap | None) -> OverviewCell | None:
    if gap is None:
        return None
    estimate = gap.comparison.estimate
    text = "–" if estimate is None else gap.measure.signed_gap(estimate)
    supported = gap.standing == "supported"
    tint = f"{gap.direction}-{_strength(gap.comparison.effect_size)}" if supported and gap.direction else ""
    return OverviewCell(text, gap.standing, tint)


def _strength(effect_size: float | None) -> int:
    size = abs(effect_size or 0)
    return 3 if size >= STRONG else 2 if size >= MIDDLING else 1
