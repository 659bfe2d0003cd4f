"""One figure a metric and axis: a row of numbers and a dot with its interval for every group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import polars as pl

from evenhand.audits.report.findings import Findings
from evenhand.audits.report.gap_wording import Gap, OmnibusAnswer, OverallKey, read_omnibus
from evenhand.audits.report.measures import Measure
from evenhand.report.chart_scales import AxisScale, build_scale
from evenhand.report.json_tables import BAR_KEY
from evenhand.report.manifest import read_text
from evenhand.report.wording import finite_or_none, format_exact, format_name, format_p
from evenhand.store.run import Run

HEIGHT = 20
"""Units of the tallest column."""

SpreadKey = tuple[str, str, str, str, str, str]
"""suite, model, axis, group, metric, output."""


@dataclass(frozen=True, slots=True)
class ScoreDistribution:
    """The counts of a group in equal bins, and its quantiles."""

    low: float
    high: float
    counts: tuple[int, ...]
    median: float
    quartiles: tuple[float, float]

    @property
    def tallest(self) -> float:
        """The share of texts in its fullest bin."""
        return max(self.counts) / sum(self.counts)


@dataclass(frozen=True, slots=True)
class ScoreHistogram:
    """A histogram where it is drawn: an outline over ``bins`` columns, and its middle half."""

    bins: int
    outline: str
    """The path of the columns, bins wide and ``HEIGHT`` high."""
    middle: tuple[float, float]
    """Start and width of the middle half of the texts, in percent of the chart."""
    median: float
    value: str
    interval: str


def read_distributions(run: Run) -> dict[SpreadKey, ScoreDistribution]:
    """The spread of every group and output that has one."""
    return {
        (
            row["suite"],
            row["model"],
            row["axis"],
            row["group"],
            row["metric"],
            row["output"],
        ): ScoreDistribution(
            low=row["low"],
            high=row["high"],
            counts=tuple(row["counts"]),
            median=row["q50"],
            quartiles=(row["q25"], row["q75"]),
        )
        for row in run.table("distributions").iter_rows(named=True)
        if sum(row["counts"] or ())
    }


def histogram_scale(found: Sequence[ScoreDistribution]) -> AxisScale | None:
    """The scale that all shapes of a panel are drawn on: exactly their bins, with round ticks inside."""
    if not found:
        return None
    low, high = found[0].low, found[0].high
    ticks = build_scale([low, high], share=False)
    return AxisScale(low, high, tuple(tick for tick in ticks.ticks if low <= tick <= high) if ticks else ())


def build_histogram(
    shape: ScoreDistribution, drawn: AxisScale, *, tallest: float, measure: Measure
) -> ScoreHistogram:
    """The histogram of one group; a column is as high as its share of the group's texts over ``tallest``."""
    total = sum(shape.counts)
    start, end = (drawn.at(value) for value in shape.quartiles)
    first, third = (measure.value(value) for value in shape.quartiles)
    return ScoreHistogram(
        bins=len(shape.counts),
        outline=_outline(count / total / tallest for count in shape.counts),
        middle=(start, round(end - start, 2)),
        median=drawn.at(shape.median),
        value=measure.value(shape.median),
        interval=f"{first} to {third}",
    )


def _outline(shares: Iterable[float]) -> str:
    """Columns as one path from the ground, in whole units; what is there at all is at least one unit high."""
    path, at = f"M0 {HEIGHT}", HEIGHT
    for share in shares:
        top = HEIGHT - (max(1, round(share * HEIGHT)) if share > 0 else 0)
        path += f"v{top - at}h1" if top != at else "h1"
        at = top
    return f"{path}V{HEIGHT}z"


@dataclass(frozen=True, slots=True)
class ChartMark:
    """One group of a panel: what its row says, and where its dot and interval are drawn."""

    index: int
    """Row of the groups table."""
    name: str
    is_baseline: bool
    value: str
    interval: str
    gap: str
    gap_interval: str
    p: str
    n: int
    n_clusters: int
    standing: str
    """A gap's standing, or ``baseline``, or ``alone`` where there is nothing to compare with."""
    direction: str
    """``higher``, ``lower`` or empty."""
    reason: str
    dot: float | None
    bar: tuple[float, float] | None
    """Start and width, in percent of the chart."""
    reference: float | None
    """Where the value it is compared with is drawn."""
    spread: ScoreHistogram | None = None
    """How its scores are spread; None for a share."""


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A labelled position of a scale."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class ChartPanel:
    """One output of a figure."""

    id: str
    measure: Measure
    baseline: str
    ticks: tuple[AxisTick, ...]
    marks: tuple[ChartMark, ...]
    spread_ticks: tuple[AxisTick, ...] = ()
    cuts: tuple[float, ...] = ()
    """The cuts at which its shares are known, from the middle of the range outwards."""
    own_cut: int = 0
    """Which of them is the metric's own."""
    overall: str = ""
    """Whether its groups differ at all."""

    @property
    def has_spread(self) -> bool:
        """Whether the spread of any group can be drawn."""
        return any(mark.spread for mark in self.marks)

    @property
    def supported_count(self) -> int:
        """How many of its gaps are larger than chance."""
        return sum(mark.standing == "supported" for mark in self.marks)


@dataclass(frozen=True, slots=True)
class ChartFigure:
    """The panels of one metric and axis; primary outputs first."""

    id: str
    suite: str
    model: str
    axis: str
    metric: str
    panels: tuple[ChartPanel, ...]

    @property
    def has_values(self) -> bool:
        """Whether any group of it has an estimate."""
        return any(mark.value for panel in self.panels for mark in panel.marks)

    @property
    def groups(self) -> int:
        """How many groups its largest panel holds."""
        return max(len(panel.marks) for panel in self.panels)

    @property
    def title(self) -> str:
        """Metric and axis as words: "Sentiment by race"."""
        title = f"{format_name(self.metric)} by {format_name(self.axis)}"
        return title[:1].upper() + title[1:]


_KEY = ("suite", "model", "axis", "metric", "output")


def read_cut_grids(run: Run) -> dict[OverallKey, tuple[tuple[float, ...], int]]:
    """For each axis and share its cuts, from the middle outwards, and which is the metric's own."""
    table = run.table("cuts").select(*_KEY, "cut", "own").unique(maintain_order=True)
    found: dict[OverallKey, tuple[tuple[float, ...], int]] = {}
    for key, part in table.group_by(*_KEY, maintain_order=True):
        ordered = part.sort(pl.col("cut").abs())
        suite, model, axis, metric, output = (str(word) for word in key)
        own = ordered["own"].to_list()
        if True in own:
            found[suite, model, axis, metric, output] = (tuple(ordered["cut"].to_list()), own.index(True))
    return found


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
    shape: ScoreDistribution | None


@dataclass(frozen=True, slots=True)
class _Beside:
    """What is drawn beside the estimates of a run."""

    shapes: dict[GroupKey, ScoreDistribution]
    overall: dict[OverallKey, OmnibusAnswer]
    cuts: dict[OverallKey, tuple[tuple[float, ...], int]]


def build_figures(run: Run, found: Findings, *, most_rows: int) -> tuple[list[ChartFigure], int]:
    """The figures of a run, and how many rows of the groups table they leave undrawn.

    Metrics in the order they were asked for, axes as they stand in the table. Where there are more rows
    than may be drawn, whole panels go, exploratory ones first.
    """
    beside = _Beside(read_distributions(run), read_omnibus(run), read_cut_grids(run))
    drawn = [
        ChartFigure(
            f"figure-{number}",
            *key,
            tuple(
                _add_spread(
                    _panel(f"panel-{number}-{place}", measure, by_output[measure.output]), key, beside
                )
                for place, measure in enumerate(found.measures.values())
                if measure.metric == key[3] and measure.output in by_output
            ),
        )
        for number, (key, by_output) in enumerate(_rows(run, found, beside.shapes).items())
    ]
    metrics = list(dict.fromkeys(measure.metric for measure in found.measures.values()))
    drawn.sort(key=lambda figure: metrics.index(figure.metric))
    return _limit_rows(drawn, most_rows)


def _limit_rows(drawn: list[ChartFigure], most_rows: int) -> tuple[list[ChartFigure], int]:
    panels = [panel for figure in drawn for panel in figure.panels]
    kept = {panel.id for panel in _fitting_panels(panels, most_rows)}
    undrawn = sum(len(panel.marks) for panel in panels if panel.id not in kept)
    smaller = (replace(figure, panels=tuple(p for p in figure.panels if p.id in kept)) for figure in drawn)
    return [figure for figure in smaller if figure.panels], undrawn


def _fitting_panels(panels: list[ChartPanel], most_rows: int) -> list[ChartPanel]:
    if sum(len(panel.marks) for panel in panels) <= most_rows:
        return panels
    wanted = [panel for panel in panels if panel.measure.primary] or panels
    ends = accumulate(len(panel.marks) for panel in wanted)
    fitting = [panel for panel, end in zip(wanted, ends, strict=True) if end <= most_rows]
    # One panel stays whatever its size: a page without a chart helps nobody.
    return fitting or wanted[:1]


def _add_spread(panel: ChartPanel, figure: FigureKey, beside: _Beside) -> ChartPanel:
    key = (*figure, panel.measure.output)
    cuts, own = beside.cuts.get(key, ((), 0))
    answer = beside.overall.get(key)
    return replace(panel, cuts=cuts, own_cut=own, overall=answer.sentence if answer else "")


def _rows(
    run: Run, found: Findings, known: dict[GroupKey, ScoreDistribution]
) -> dict[FigureKey, dict[str, list[_Row]]]:
    shown = _shown_gaps(run, found)
    baselines = {(gap.comparison.suite, gap.comparison.axis, gap.baseline_group) for gap in found.gaps}
    figures: dict[FigureKey, dict[str, list[_Row]]] = {}
    for index, row in enumerate(run.table("groups").iter_rows(named=True)):
        suite, model, axis, group, metric, output = (row[column] for column in BAR_KEY)
        gap = shown.get((suite, model, axis, group, metric, output))
        panel = figures.setdefault((suite, model, axis, metric), {}).setdefault(output, [])
        panel.append(
            _Row(
                index=index,
                group=group,
                value=finite_or_none(row["value"]),
                low=finite_or_none(row["low"]),
                high=finite_or_none(row["high"]),
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
        declared = row.baseline == read_text(run.manifest, "suites", row.suite, "baselines", row.axis)
        if key not in shown or declared:
            shown[key] = gap
    return shown


def _panel(identifier: str, measure: Measure, rows: Sequence[_Row]) -> ChartPanel:
    drawn = build_scale(_drawn_values(rows), share=measure.kind == "share")
    ordered = sorted(rows, key=lambda row: (row.value is None, -(row.value or 0), row.group))
    marks = [_mark(row, measure, drawn) for row in ordered]
    found = [row.shape for row in ordered if row.shape]
    spread_on = histogram_scale(found)
    if spread_on is not None:
        top = max(shape.tallest for shape in found)
        marks = [
            replace(mark, spread=build_histogram(row.shape, spread_on, tallest=top, measure=measure))
            if row.shape
            else mark
            for mark, row in zip(marks, ordered, strict=True)
        ]
    return ChartPanel(
        id=identifier,
        measure=measure,
        baseline=_baseline(rows),
        ticks=_ticks(drawn, measure),
        marks=tuple(marks),
        spread_ticks=_ticks(spread_on, measure),
    )


def _ticks(drawn: AxisScale | None, measure: Measure) -> tuple[AxisTick, ...]:
    return () if drawn is None else tuple(AxisTick(drawn.at(x), _tick(x, measure)) for x in drawn.ticks)


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
    return format_exact(value)


def _mark(row: _Row, measure: Measure, drawn: AxisScale | None) -> ChartMark:
    gap = row.gap.comparison if row.gap else None
    estimate = gap.estimate if gap else None
    reference = _reference(row)
    return ChartMark(
        index=row.index,
        name=format_name(row.group),
        is_baseline=row.is_baseline,
        value="" if row.value is None else measure.value(row.value),
        interval=_span(row.low, row.high, measure.value),
        gap="" if estimate is None else measure.gap(estimate, signed=True),
        gap_interval="" if gap is None else _span(gap.low, gap.high, measure.signed_gap),
        p="" if gap is None or gap.estimate is None else format_p(gap.p_adjusted),
        n=row.n,
        n_clusters=row.n_clusters,
        standing=row.gap.standing if row.gap else ("baseline" if row.is_baseline else "alone"),
        direction=row.gap.direction if row.gap else "",
        reason=format_name(row.reason) if row.reason else "",
        dot=None if drawn is None or row.value is None else drawn.at(row.value),
        bar=_bar(row, drawn),
        reference=None if drawn is None or reference is None else drawn.at(reference),
    )


def _span(low: float | None, high: float | None, form: Callable[[float], str]) -> str:
    return "" if low is None or high is None else f"{form(low).removesuffix(' %')} to {form(high)}"


def _bar(row: _Row, drawn: AxisScale | None) -> tuple[float, float] | None:
    if drawn is None or row.low is None or row.high is None:
        return None
    start, end = drawn.at(row.low), drawn.at(row.high)
    return start, round(end - start, 2)
