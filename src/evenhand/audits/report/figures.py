"""The charts of an audit: a figure per metric and axis, a row with a dot and an interval per group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any

import polars as pl
from markupsafe import Markup

from evenhand.audits.report.findings import Findings, Gap, read_omnibus
from evenhand.audits.report.measures import Measure, MeasureKey
from evenhand.report.charts import AxisScale, build_scale, draw_interval, element
from evenhand.report.document import Cell, Column, Row, Table
from evenhand.report.json_tables import BAR_KEY, null_non_finite
from evenhand.report.manifest import format_level, read_text
from evenhand.report.wording import format_baseline, format_exact, format_name
from evenhand.store.run import Run

HEIGHT = 20
"""Units of the tallest column of a histogram."""
Values = Mapping[str, Any]
Cuts = tuple[tuple[float, ...], int]
"""Cuts, and which of them is the metric's own."""


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
    cuts: tuple[float, ...]
    """The cuts at which its shares are known, from the middle of the range outwards."""
    own_cut: int
    """Which of them is the metric's own."""


@dataclass(frozen=True, slots=True)
class ChartFigure:
    """The panels of one metric and axis; primary outputs first."""

    id: str
    panels: tuple[ChartPanel, ...]
    suite: str
    model: str
    axis: str
    metric: str
    title: str
    """Metric and axis as words: "Sentiment by race"."""
    has_values: bool
    """Whether any group of it has an estimate."""
    groups: int
    """How many groups its largest panel holds."""


def build_figures(run: Run, findings: Findings, *, most_rows: int) -> tuple[list[ChartFigure], int]:
    """The figures of a run, and how many rows of the groups table they leave undrawn.

    Metrics in the order they were asked for, axes in the order of the table. Where there are more rows
    than may be drawn, whole panels go, exploratory ones first.
    """
    # Suite, model, axis and metric to output.
    rows: dict[tuple[str, ...], dict[MeasureKey, list[Values]]] = {}
    for row in _read_rows(run, findings):
        suite, model, axis, _, metric, output = (row[column] for column in BAR_KEY)
        rows.setdefault((suite, model, axis, metric), {}).setdefault((metric, output), []).append(row)
    metrics = list(dict.fromkeys(measure.metric for measure in findings.measures.values()))
    plans = [
        (number, key, place, measure, own)
        for number, (key, by_measure) in enumerate(rows.items())
        for place, measure in enumerate(findings.measures.values())
        if (own := by_measure.get((measure.metric, measure.output)))
    ]
    plans.sort(key=lambda plan: metrics.index(plan[3].metric))
    total = sum(len(own) for *_, own in plans)
    if total > most_rows:
        plans = [plan for plan in plans if plan[3].primary] or plans
        ends = accumulate(len(own) for *_, own in plans)
        # One panel stays whatever its size: a page without a chart helps nobody.
        plans = [plan for plan, end in zip(plans, ends, strict=True) if end <= most_rows] or plans[:1]
    omnibus, level = read_omnibus(run), format_level(run)
    # For each axis and share its cuts, from the middle outwards, and which is the metric's own.
    names = ("suite", "model", "axis", "metric", "output")
    table = run.table("cuts").select(*names, "cut", "own").unique(maintain_order=True)
    ordered = table.sort(pl.col("cut").abs(), maintain_order=True)
    parts = ordered.group_by(names, maintain_order=True).agg("cut", "own").iter_rows()
    cuts = {tuple(key): (tuple(values), own.index(True)) for *key, values, own in parts if True in own}
    figures = []
    for (number, key), part in groupby(plans, key=itemgetter(0, 1)):
        panels, drawn = [], list[Values]()
        for _, _, place, measure, own in part:
            drawn += own
            overall = (*key, measure.output)
            answer = f" {omnibus[overall].hint}" if overall in omnibus else ""
            name = f"panel-{number}-{place}"
            panels.append(_build_panel(name, measure, own, level, answer, cuts.get(overall, ((), 0))))
        suite, model, axis, metric = key
        title = f"{format_name(metric)} by {format_name(axis)}"
        has_values = any(row["value"] is not None for row in drawn)
        most = max(len(panel.table.rows) for panel in panels)
        title = title[:1].upper() + title[1:]
        source = (f"figure-{number}", tuple(panels), suite, model, axis, metric)
        figures.append(ChartFigure(*source, title, has_values, most))
    return figures, total - sum(len(own) for *_, own in plans)


def _read_rows(run: Run, findings: Findings) -> Iterator[Values]:
    """The rows of the groups table, each with more of what is drawn.

    ``gap`` is the gap it is shown with, ``reference`` the value it is compared with, ``standing`` that of the
    gap, or ``baseline``, or ``alone`` where there is nothing to compare with, and ``spread`` its row of the
    distributions, with its counts in equal bins and its quantiles.
    """
    spreads = {
        tuple(row[column] for column in BAR_KEY): row
        for row in run.table("distributions").iter_rows(named=True)
        if sum(row["counts"] or ())
    }
    # For each group the gap to its declared baseline, or else the first there is.
    gaps: dict[tuple[str, ...], Gap] = {}
    for gap in findings.gaps:
        row = gap.comparison
        key = (row.suite, row.model, row.axis, row.group, row.metric, row.output)
        declared = read_text(run.manifest, "suites", row.suite, "baselines", row.axis)
        if key not in gaps or row.baseline == declared:
            gaps[key] = gap
    baselines = {(gap.comparison.suite, gap.comparison.axis, gap.baseline_group) for gap in findings.gaps}
    for index, values in enumerate(null_non_finite(run.table("groups")).iter_rows(named=True)):
        key = tuple(values[column] for column in BAR_KEY)
        reference, standing = None, "alone"
        if own := gaps.get(key):
            reference, standing = own.comparison.baseline_value, own.standing
        elif (values["suite"], values["axis"], values["group"]) in baselines:
            reference, standing = values["value"], "baseline"
        more = {"index": index, "gap": own, "reference": reference, "standing": standing}
        yield values | more | {"spread": spreads.get(key)}


def _build_panel(
    name: str, measure: Measure, rows: Sequence[Values], level: str, answer: str, cuts: Cuts
) -> ChartPanel:
    # The largest value first, nulls last.
    ordered = sorted(rows, key=lambda row: (row["value"] is None, -(row["value"] or 0), row["group"]))
    ends = [row[end] for row in rows for end in ("value", "low", "high", "reference")]
    scale = build_scale((end for end in ends if end is not None), share=measure.kind == "share")
    spreads = [row["spread"] for row in ordered if row["spread"]]
    spread_scale = find_histogram_scale(spreads)
    tallest = max((max(spread["counts"]) / sum(spread["counts"]) for spread in spreads), default=1.0)
    baselines = {format_baseline(row["gap"].baseline_group) for row in rows if row["gap"]}
    line = f" Vertical line: {baselines.pop()}." if len(baselines) == 1 else ""
    form = (lambda x: f"{100 * x:g} %") if measure.kind == "share" else format_exact
    ticks = _draw_ticks(scale, form, style="means", grid=f"{name}-grid")
    estimate = element("span", "Estimate ", element("small", level), class_="means" if spreads else "")
    if spreads:
        ticks += _draw_ticks(spread_scale, form, style="spreads", grid=f"{name}-spread")
        estimate += element("span", "Median ", element("small", "middle half"), class_="spreads")
    columns = (
        "Group",
        Column("", "plot", drawing=ticks),
        Column("", "num", name="est", drawing=estimate, is_sorted=True),
        Column("Gap, points" if measure.kind == "share" else "Gap", "num", level, "gap"),
        Column("Adjusted p", "num", name="p"),
        Column("Texts", "num", "/ clusters", "n"),
    )
    drawn = [_draw_row(row, measure, scale, spread_scale, tallest=tallest, panel=name) for row in ordered]
    table = Table(columns=columns, rows=drawn, style="chart", frame="", label=measure.full_title)
    supported_count = sum(row["standing"] == "supported" for row in rows)
    caption = f"{measure.caption}{line}{answer}"
    return ChartPanel(name, measure, table, caption, bool(spreads), supported_count, *cuts)


def _draw_row(
    row: Values,
    measure: Measure,
    scale: AxisScale | None,
    spread_scale: AxisScale | None,
    *,
    tallest: float,
    panel: str,
) -> Row:
    """A group: its chart, its estimate with the quantiles of its texts, and its gap."""
    gap: Gap | None = row["gap"]
    spread, chart, quantiles = row["spread"], Markup(), Markup()
    if scale:
        dot, reference = (None if x is None else scale.at(x) for x in (row["value"], row["reference"]))
        lines, bar = element("use", href=f"#{panel}-grid"), scale.span(row["low"], row["high"])
        chart = draw_interval(dot, bar, reference=reference, style="means", extra=lines)
    if spread and spread_scale:
        chart += draw_histogram(spread, spread_scale, tallest=tallest, grid=f"{panel}-spread")
    estimate = Cell(note=format_name(row["null_reason"] or "no estimate"))
    if row["value"] is not None:
        if spread:
            median, *middle = (measure.value(spread[key]) for key in ("q50", "q25", "q75"))
            words = element("b", median) + " " + element("small", " to ".join(middle))
            quantiles = element("span", words, class_="spreads")
        ends = [measure.value(row[end]) for end in ("low", "high") if row[end] is not None]
        interval = f"{ends[0].removesuffix(' %')} to {ends[1]}" if len(ends) == 2 else ""
        estimate = Cell(measure.value(row["value"]), note=interval, is_strong=True, chart=quantiles)
    difference = Cell()
    if gap and gap.comparison.estimate is not None:
        difference = measure.cell(gap.comparison.estimate, note=gap.signed_interval, arrow=gap.arrow)
    cells = (
        Cell(
            format_name(row["group"]),
            tags=("baseline",) * (row["standing"] == "baseline"),
            button={"class": "name"},
        ),
        Cell(chart=chart),
        estimate,
        difference,
        gap.p if gap else "",
        Cell(f"{row['n']:,}", note=f"/ {row['n_clusters']:,}"),
    )
    tone = f"{row['standing']} {gap.direction if gap else ''}".strip()
    return Row(cells, tone, {"g": str(row["index"])})


def find_histogram_scale(spreads: Sequence[Values]) -> AxisScale | None:
    """The scale that all histograms of a panel are drawn on: exactly their bins, with round ticks inside."""
    if not spreads:
        return None
    low, high = spreads[0]["low"], spreads[0]["high"]
    scale = build_scale([low, high], share=False)
    return AxisScale(low, high, tuple(tick for tick in scale.ticks if low <= tick <= high) if scale else ())


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
