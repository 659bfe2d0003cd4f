"""One figure a metric and axis: a row of numbers and a dot with its interval for every group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from evenhand.report.cuts import grids
from evenhand.report.findings import Findings
from evenhand.report.gaps import Gap
from evenhand.report.measures import Measure
from evenhand.report.overall import Overall, OverallKey, overall
from evenhand.report.panels import Figure, Mark, Panel, Tick
from evenhand.report.reading import text_at
from evenhand.report.scale import Scale, scale
from evenhand.report.spreads import Shape, shapes, spread, spread_scale
from evenhand.report.tables import BAR
from evenhand.report.wording import finite, name, probability, round_number
from evenhand.store.run import Run

GroupKey = tuple[str, str, str, str, str, str]
"""suite, model, axis, group, metric, output."""
FigureKey = tuple[str, str, str, str]
"""suite, model, axis, metric."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the groups table with the gap it is shown with."""

    index: int
    group: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    n_clusters: int
    reason: str
    gap: Gap | None
    is_baseline: bool
    shape: Shape | None


@dataclass(frozen=True, slots=True)
class _Beside:
    """What is drawn beside the estimates of a run."""

    shapes: dict[GroupKey, Shape]
    overall: dict[OverallKey, Overall]
    cuts: dict[OverallKey, tuple[tuple[float, ...], int]]


def figures(run: Run, found: Findings, *, most_rows: int) -> tuple[list[Figure], int]:
    """The figures of a run, and how many rows of the groups table they leave undrawn.

    Metrics in the order they were asked for, axes as they stand in the table. Where there are more rows
    than may be drawn, whole panels go, exploratory ones first.
    """
    beside = _Beside(shapes(run), overall(run), grids(run))
    drawn = [
        Figure(
            f"figure-{number}",
            *key,
            tuple(
                _with(_panel(f"panel-{number}-{place}", measure, by_output[measure.output]), key, beside)
                for place, measure in enumerate(found.measures.values())
                if measure.metric == key[3] and measure.output in by_output
            ),
        )
        for number, (key, by_output) in enumerate(_rows(run, found, beside.shapes).items())
    ]
    metrics = list(dict.fromkeys(measure.metric for measure in found.measures.values()))
    drawn.sort(key=lambda figure: metrics.index(figure.metric))
    return _within(drawn, most_rows)


def _within(drawn: list[Figure], most_rows: int) -> tuple[list[Figure], int]:
    panels = [panel for figure in drawn for panel in figure.panels]
    kept = {panel.id for panel in _that_fit(panels, most_rows)}
    undrawn = sum(len(panel.marks) for panel in panels if panel.id not in kept)
    smaller = (replace(figure, panels=tuple(p for p in figure.panels if p.id in kept)) for figure in drawn)
    return [figure for figure in smaller if figure.panels], undrawn


def _that_fit(panels: list[Panel], most_rows: int) -> list[Panel]:
    if sum(len(panel.marks) for panel in panels) <= most_rows:
        return panels
    wanted = [panel for panel in panels if panel.measure.primary] or panels
    ends = accumulate(len(panel.marks) for panel in wanted)
    fitting = [panel for panel, end in zip(wanted, ends, strict=True) if end <= most_rows]
    # One panel stays whatever its size: a page without a chart helps nobody.
    return fitting or wanted[:1]


def _with(panel: Panel, figure: FigureKey, beside: _Beside) -> Panel:
    key = (*figure, panel.measure.output)
    cuts, own = beside.cuts.get(key, ((), 0))
    answer = beside.overall.get(key)
    return replace(panel, cuts=cuts, own_cut=own, overall=answer.sentence if answer else "")


def _rows(run: Run, found: Findings, known: dict[GroupKey, Shape]) -> dict[FigureKey, dict[str, list[_Row]]]:
    shown = _shown_gaps(run, found)
    baselines = {(gap.comparison.suite, gap.comparison.axis, gap.baseline_group) for gap in found.gaps}
    figures: dict[FigureKey, dict[str, list[_Row]]] = {}
    for index, row in enumerate(run.table("groups").iter_rows(named=True)):
        suite, model, axis, group, metric, output = (row[column] for column in BAR)
        gap = shown.get((suite, model, axis, group, metric, output))
        panel = figures.setdefault((suite, model, axis, metric), {}).setdefault(output, [])
        panel.append(
            _Row(
                index=index,
                group=group,
                value=finite(row["value"]),
                low=finite(row["low"]),
                high=finite(row["high"]),
                n=row["n"],
                n_clusters=row["n_clusters"],
                reason=row["null_reason"] or "",
                gap=gap,
                is_baseline=gap is None and (suite, axis, group) in baselines,
                shape=known.get((suite, model, axis, group, metric, output)),
            )
        )
    return figures


def _shown_gaps(run: Run, found: Findings) -> dict[GroupKey, Gap]:
    """For each group the gap to its declared baseline, or else the first there is."""
    shown: dict[GroupKey, Gap] = {}
    for gap in found.gaps:
        row = gap.comparison
        key = (row.suite, row.model, row.axis, row.group, row.metric, row.output)
        declared = row.baseline == text_at(run.manifest, "suites", row.suite, "baselines", row.axis)
        if key not in shown or declared:
            shown[key] = gap
    return shown


def _panel(identifier: str, measure: Measure, rows: Sequence[_Row]) -> Panel:
    drawn = scale(_drawn_values(rows), share=measure.kind == "share")
    ordered = sorted(rows, key=lambda row: (row.value is None, -(row.value or 0), row.group))
    marks = [_mark(row, measure, drawn) for row in ordered]
    found = [row.shape for row in ordered if row.shape]
    spread_on = spread_scale(found)
    if spread_on is not None:
        top = max(shape.tallest for shape in found)
        marks = [
            replace(mark, spread=spread(row.shape, spread_on, tallest=top, measure=measure))
            if row.shape
            else mark
            for mark, row in zip(marks, ordered, strict=True)
        ]
    return Panel(
        id=identifier,
        measure=measure,
        baseline=_baseline(rows),
        ticks=_ticks(drawn, measure),
        marks=tuple(marks),
        spread_ticks=_ticks(spread_on, measure),
    )


def _ticks(drawn: Scale | None, measure: Measure) -> tuple[Tick, ...]:
    return () if drawn is None else tuple(Tick(drawn.at(x), _tick(x, measure)) for x in drawn.ticks)


def _drawn_values(rows: Iterable[_Row]) -> list[float]:
    values = [value for row in rows for value in (row.value, row.low, row.high, _reference(row))]
    return [value for value in values if value is not None]


def _reference(row: _Row) -> float | None:
    if row.is_baseline:
        return row.value
    return row.gap.comparison.baseline_value if row.gap else None


def _baseline(rows: Iterable[_Row]) -> str:
    names = {row.gap.short_baseline for row in rows if row.gap}
    return names.pop() if len(names) == 1 else ""


def _tick(value: float, measure: Measure) -> str:
    if measure.kind == "share":
        return f"{100 * value:g} %"
    return round_number(value)


def _mark(row: _Row, measure: Measure, drawn: Scale | None) -> Mark:
    gap = row.gap.comparison if row.gap else None
    estimate = gap.estimate if gap else None
    reference = _reference(row)
    return Mark(
        index=row.index,
        name=name(row.group),
        is_baseline=row.is_baseline,
        value="" if row.value is None else measure.value(row.value),
        interval=_span(row.low, row.high, measure.value),
        gap="" if estimate is None else measure.gap(estimate, signed=True),
        gap_interval="" if gap is None else _span(gap.low, gap.high, measure.signed_gap),
        p="" if gap is None or gap.estimate is None else probability(gap.p_adjusted),
        n=row.n,
        n_clusters=row.n_clusters,
        standing=row.gap.standing if row.gap else ("baseline" if row.is_baseline else "alone"),
        direction=row.gap.direction if row.gap else "",
        reason=name(row.reason) if row.reason else "",
        dot=None if drawn is None or row.value is None else drawn.at(row.value),
        bar=_bar(row, drawn),
        reference=None if drawn is None or reference is None else drawn.at(reference),
    )


def _span(low: float | None, high: float | None, form: Callable[[float], str]) -> str:
    return "" if low is None or high is None else f"{form(low).removesuffix(' %')} to {form(high)}"


def _bar(row: _Row, drawn: Scale | None) -> tuple[float, float] | None:
    if drawn is None or row.low is None or row.high is None:
        return None
    start, end = drawn.at(row.low), drawn.at(row.high)
    return start, round(end - start, 2)
