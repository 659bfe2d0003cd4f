"""The charts of an audit: a figure per metric and axis, a row with a dot and an interval per group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import polars as pl
from markupsafe import Markup

from evenhand.audits.report.findings import Findings
from evenhand.audits.report.gap_wording import Gap, OverallKey, format_level, read_omnibus
from evenhand.audits.report.measures import Measure
from evenhand.report.charts import AxisScale, build_scale, draw_interval, element
from evenhand.report.document import Cell, Column, Row, Table
from evenhand.report.json_tables import BAR_KEY, null_non_finite
from evenhand.report.manifest import read_text
from evenhand.report.wording import format_exact, format_name, format_p
from evenhand.store.run import Run

HEIGHT = 20
"""Units of the tallest column of a histogram."""
GroupKey = tuple[str, str, str, str, str, str]
"""suite, model, axis, group, metric, output."""
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChartPanel:
    """One output of a figure."""

    id: str
    measure: Measure
    table: Table
    caption: str
    has_spread: bool
    """Whether the spread of any group can be drawn."""
    supported_count: int
    """How many of its gaps are larger than chance."""
    has_values: bool
    """Whether any group of it has an estimate."""
    cuts: tuple[float, ...] = ()
    """The cuts at which its shares are known, from the middle of the range outwards."""
    own_cut: int = 0
    """Which of them is the metric's own."""


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
        return any(panel.has_values for panel in self.panels)

    @property
    def supported_count(self) -> int:
        """How many of its gaps are larger than chance."""
        return sum(panel.supported_count for panel in self.panels)

    @property
    def groups(self) -> int:
        """How many groups its largest panel holds."""
        return max(len(panel.table.rows) for panel in self.panels)

    @property
    def title(self) -> str:
        """Metric and axis as words: "Sentiment by race"."""
        title = f"{format_name(self.metric)} by {format_name(self.axis)}"
        return title[:1].upper() + title[1:]


def build_figures(run: Run, findings: Findings, *, most_rows: int) -> tuple[list[ChartFigure], int]:
    """The figures of a run, and how many rows of the groups table they leave undrawn.

    Metrics in the order they were asked for, axes in the order of the table. Where there are more rows
    than may be drawn, whole panels go, exploratory ones first.
    """
    rows: dict[tuple[str, str, str, str], dict[str, list[_GroupRow]]] = {}
    for row in _read_rows(run, findings):
        suite, model, axis, _, metric, output = row.key
        rows.setdefault((suite, model, axis, metric), {}).setdefault(output, []).append(row)
    omnibus, cuts, level = read_omnibus(run), _read_cuts(run), format_level(run)
    figures = []
    for number, (key, by_output) in enumerate(rows.items()):
        panels = []
        for place, measure in enumerate(findings.measures.values()):
            if measure.metric != key[3] or measure.output not in by_output:
                continue
            panel = _build_panel(f"panel-{number}-{place}", measure, by_output[measure.output], level)
            overall = (*key, measure.output)
            answer = f" {omnibus[overall].sentence}" if overall in omnibus else ""
            known, own = cuts.get(overall, ((), 0))
            panels.append(replace(panel, caption=panel.caption + answer, cuts=known, own_cut=own))
        figures.append(ChartFigure(f"figure-{number}", *key, tuple(panels)))
    metrics = list(dict.fromkeys(measure.metric for measure in findings.measures.values()))
    figures.sort(key=lambda figure: metrics.index(figure.metric))
    return _limit_rows(figures, most_rows)


def _limit_rows(figures: list[ChartFigure], most_rows: int) -> tuple[list[ChartFigure], int]:
    panels = [panel for figure in figures for panel in figure.panels]
    total = sum(len(panel.table.rows) for panel in panels)
    fitting = panels
    if total > most_rows:
        primary = [panel for panel in panels if panel.measure.primary] or panels
        ends = accumulate(len(panel.table.rows) for panel in primary)
        # One panel stays whatever its size: a page without a chart helps nobody.
        fitting = [panel for panel, end in zip(primary, ends, strict=True) if end <= most_rows] or primary[:1]
    names = {panel.id for panel in fitting}
    smaller = [replace(figure, panels=tuple(p for p in figure.panels if p.id in names)) for figure in figures]
    drawn = sum(len(panel.table.rows) for panel in fitting)
    return [figure for figure in smaller if figure.panels], total - drawn


@dataclass(frozen=True, slots=True)
class _GroupRow:
    """A row of the groups table with the gap it is shown with."""

    index: int
    key: GroupKey
    row: Values
    gap: Gap | None
    is_baseline: bool
    spread: Values | None
    """Its row of the distributions, with its counts in equal bins and its quantiles."""

    @property
    def reference(self) -> float | None:
        """The value it is compared with."""
        if self.is_baseline:
            value: float | None = self.row["value"]
            return value
        return self.gap.comparison.baseline_value if self.gap else None

    @property
    def order(self) -> tuple[bool, float, str]:
        """Sort key: the largest value first, nulls last."""
        return self.row["value"] is None, -(self.row["value"] or 0), self.row["group"]

    @property
    def standing(self) -> str:
        """The standing of the gap, or ``baseline``, or ``alone`` where there is nothing to compare with."""
        return self.gap.standing if self.gap else "baseline" if self.is_baseline else "alone"


def _read_rows(run: Run, findings: Findings) -> Iterable[_GroupRow]:
    spreads = {
        tuple(row[column] for column in BAR_KEY): row
        for row in run.table("distributions").iter_rows(named=True)
        if sum(row["counts"] or ())
    }
    gaps = _select_gaps(run, findings)
    baselines = {(gap.comparison.suite, gap.comparison.axis, gap.baseline_group) for gap in findings.gaps}
    for index, row in enumerate(null_non_finite(run.table("groups")).iter_rows(named=True)):
        suite, model, axis, group, metric, output = (row[column] for column in BAR_KEY)
        key = (suite, model, axis, group, metric, output)
        gap = gaps.get(key)
        is_baseline = gap is None and (suite, axis, group) in baselines
        yield _GroupRow(index, key, row, gap, is_baseline, spreads.get(key))


def _select_gaps(run: Run, findings: Findings) -> dict[GroupKey, Gap]:
    """For each group the gap to its declared baseline, or else the first there is."""
    gaps: dict[GroupKey, Gap] = {}
    for gap in findings.gaps:
        row = gap.comparison
        key = (row.suite, row.model, row.axis, row.group, row.metric, row.output)
        declared = row.baseline == read_text(run.manifest, "suites", row.suite, "baselines", row.axis)
        if key not in gaps or declared:
            gaps[key] = gap
    return gaps


def _read_cuts(run: Run) -> dict[OverallKey, tuple[tuple[float, ...], int]]:
    """For each axis and share its cuts, from the middle outwards, and which is the metric's own."""
    columns = ("suite", "model", "axis", "metric", "output")
    cuts: dict[OverallKey, tuple[tuple[float, ...], int]] = {}
    table = run.table("cuts").select(*columns, "cut", "own").unique(maintain_order=True)
    for key, part in table.group_by(*columns, maintain_order=True):
        ordered = part.sort(pl.col("cut").abs())
        own = ordered["own"].to_list()
        if True in own:
            suite, model, axis, metric, output = map(str, key)
            cuts[suite, model, axis, metric, output] = (tuple(ordered["cut"].to_list()), own.index(True))
    return cuts


def _build_panel(name: str, measure: Measure, rows: Sequence[_GroupRow], level: str) -> ChartPanel:
    ordered = sorted(rows, key=lambda row: row.order)
    ends = [
        end for row in rows for end in (*(row.row[key] for key in ("value", "low", "high")), row.reference)
    ]
    scale = build_scale((end for end in ends if end is not None), share=measure.kind == "share")
    spreads = [row.spread for row in ordered if row.spread]
    spread_scale = find_histogram_scale(spreads)
    tallest = max((max(spread["counts"]) / sum(spread["counts"]) for spread in spreads), default=1.0)
    lines = []
    for row in ordered:
        chart, words = Markup(), Markup()
        if row.spread and spread_scale:
            chart = draw_histogram(row.spread, spread_scale, tallest=tallest, grid=f"{name}-spread")
            quantiles = [measure.value(row.spread[key]) for key in ("q50", "q25", "q75")]
            words = element("b", quantiles[0]) + " " + element("small", "{1} to {2}".format(*quantiles))
            words = element("span", words, class_="spreads")
        lines.append(_build_line(row, measure, scale, chart=chart, words=words, grid=f"{name}-grid"))
    baselines = {row.gap.short_baseline for row in rows if row.gap}
    line = f" Vertical line: {baselines.pop()}." if len(baselines) == 1 else ""
    form = (lambda x: f"{100 * x:g} %") if measure.kind == "share" else format_exact
    ticks = _draw_ticks(scale, form, style="means", grid=f"{name}-grid")
    estimate = element("span", "Estimate ", element("small", level), class_="means" if spreads else "")
    if spreads:
        ticks += _draw_ticks(spread_scale, form, style="spreads", grid=f"{name}-spread")
        estimate += element("span", "Median ", element("small", "middle half"), class_="spreads")
    columns = (
        *("Group", Column("", "plot", drawing=ticks)),
        Column("", "num", name="est", drawing=estimate, is_sorted=True),
        Column("Gap, points" if measure.kind == "share" else "Gap", "num", level, "gap"),
        *(Column("Adjusted p", "num", name="p"), Column("Texts", "num", "/ clusters", "n")),
    )
    return ChartPanel(
        id=name,
        measure=measure,
        table=Table(columns=columns, rows=lines, style="chart", label=measure.full_title),
        caption=f"{measure.caption}{line}",
        has_spread=bool(spreads),
        supported_count=sum(row.standing == "supported" for row in rows),
        has_values=any(row.row["value"] is not None for row in rows),
    )


def _build_line(
    group: _GroupRow, measure: Measure, scale: AxisScale | None, *, chart: Markup, words: Markup, grid: str
) -> Row:
    row, gap = group.row, group.gap.comparison if group.gap else None
    direction = group.gap.direction if group.gap else ""
    size = Cell(text="", note=format_name(row["null_reason"] or "no estimate"))
    if row["value"] is not None:
        ends = [None if row[end] is None else measure.value(row[end]) for end in ("low", "high")]
        interval = f"{ends[0].removesuffix(' %')} to {ends[1]}" if ends[0] and ends[1] else ""
        size = Cell(text=measure.value(row["value"]), note=interval, is_strong=True, chart=words)
    difference, p = Cell(text=""), ""
    if gap and gap.estimate is not None:
        p = format_p(gap.p_adjusted)
        difference = Cell(
            text=measure.signed_gap(gap.estimate),
            note=measure.interval(gap.low, gap.high),
            arrow=direction if group.standing == "supported" else "",
            is_strong=True,
        )
    plot = Markup()
    if scale:
        dot, reference = (None if x is None else scale.at(x) for x in (row["value"], group.reference))
        lines = element("use", href=f"#{grid}")
        bar = scale.span(row["low"], row["high"])
        plot = draw_interval(dot, bar, reference=reference, style="means", extra=lines)
    tags = ("baseline",) * group.is_baseline
    return Row(
        (
            Cell(text=format_name(row["group"]), tags=tags, button={"class": "name"}),
            Cell(text="", chart=plot + chart),
            *(size, difference, p),
            Cell(text=f"{row['n']:,}", note=f"/ {row['n_clusters']:,}"),
        ),
        f"{group.standing} {direction}".strip(),
        {"g": str(group.index)},
    )


def find_histogram_scale(spreads: Sequence[Values]) -> AxisScale | None:
    """The scale that all histograms of a panel are drawn on: exactly their bins, with round ticks inside."""
    if not spreads:
        return None
    low, high = spreads[0]["low"], spreads[0]["high"]
    ticks = build_scale([low, high], share=False)
    return AxisScale(low, high, tuple(tick for tick in ticks.ticks if low <= tick <= high) if ticks else ())


def draw_histogram(spread: Values, scale: AxisScale, *, tallest: float, grid: str = "") -> Markup:
    """The scores of one group: an outline over its bins, the middle half, the median.

    A column is as high as its share of the group's texts over ``tallest``, in whole units: at least one unit
    where there is any text.
    """
    counts, path, at = spread["counts"], f"M0 {HEIGHT}", HEIGHT
    for count in counts:
        share = count / sum(counts) / tallest
        top = HEIGHT - (max(1, round(share * HEIGHT)) if share > 0 else 0)
        path += f"v{top - at}h1" if top != at else "h1"
        at = top
    outline = element("path", d=f"{path}V{HEIGHT}z")
    box = {"x": "2%", "width": "96%", "viewBox": f"0 0 {len(counts)} {HEIGHT}", "preserveAspectRatio": "none"}
    middle = scale.span(spread["q25"], spread["q75"]) or (0.0, 0.0)
    return element(
        "svg",
        element("use", href=f"#{grid}"),
        element("svg", outline, **box),
        element("rect", class_="middle", x=f"{middle[0]}%", width=f"{middle[1]}%"),
        element("rect", class_="median", x=f"{scale.at(spread['q50'])}%"),
        class_="spreads",
    )


def _draw_ticks(scale: AxisScale | None, form: Callable[[float], str], *, style: str, grid: str) -> Markup:
    """The labels of a scale, and its lines for the rows to use."""
    places = [(scale.at(tick), form(tick)) for tick in scale.ticks] if scale else []
    lines = (element("rect", class_="grid", x=f"{at}%") for at, _ in places)
    labels = (element("text", label, x=f"{at}%", y=14) for at, label in places)
    shared = element("defs", element("g", *lines, id=grid))
    return element("svg", shared, *labels, class_=style, aria_hidden="true")
