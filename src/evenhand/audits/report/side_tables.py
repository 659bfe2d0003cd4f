"""The tables of an audit besides its gaps: the overview, gaps inside strata, pairs of groups, distances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import polars as pl

from evenhand.audits.report.findings import Findings
from evenhand.audits.report.gap_wording import Gap, read_omnibus
from evenhand.audits.report.measures import Measure
from evenhand.core.records import Comparison
from evenhand.report import document as doc
from evenhand.report.charts import draw_swatches
from evenhand.report.json_tables import GAP_KEY, null_non_finite
from evenhand.report.manifest import read_mapping, read_objects, read_texts
from evenhand.report.verdicts import ALPHA, INCONCLUSIVE, LARGER, NOT_TESTABLE
from evenhand.report.wording import format_baseline, format_name, format_p
from evenhand.stats.base_rates import FEW_KEYWORDS, OVERALL
from evenhand.store.run import Run
from evenhand.store.schemas import ADJUSTED

MOST = 200
"""Rows of each table on the page; the CSV and the run folder have all."""
STRONG, MIDDLING = 0.8, 0.5
"""Cohen's words for an effect size of h or g: large, medium; below is small."""
DISTANCE_HEADS = (
    *("Option", "#Distance", "#By chance", "#Beyond chance", "#Interval", "#Adjusted p", "#Leans", "#Texts"),
    "#Keywords",
)
EXPLANATION = (
    "How far the scores of an option are spread differently from those of all options: 0 is alike, 1 the "
    "largest possible. A distance is never 0 in a sample; the next column is what chance alone gives, and "
    "what is left beyond chance has an interval. A lean is larger than chance only where that interval "
    "excludes 0 and the adjusted p is below 0.05: where some options lean, one that does not lies off the "
    "mean of all too, as chance would put it. Two or three keywords are too few for an interval: there p "
    "alone decides."
)
_NAMED = 4
"""Options that the terminal names."""
Values = Mapping[str, Any]


def build_overview(run: Run, findings: Findings) -> doc.Section:
    """Groups down, primary measures across, a signed gap in each cell; a table for each suite and model."""
    sources: dict[tuple[str, str], list[Gap]] = {}
    for gap in findings.judged_gaps:
        sources.setdefault((gap.comparison.suite, gap.comparison.model), []).append(gap)
    tables = [_overview_table(run, key, gaps, findings) for key, gaps in sources.items()]
    if len(tables) == 1:
        tables = [doc.Table(columns=each.columns, rows=each.rows, **_OVERVIEW) for each in tables]
    rows = [row for table in tables for row in table.rows if isinstance(row, doc.Row)]
    tones = {cell.tone for row in rows for cell in row.cells if isinstance(cell, doc.Cell)}
    legend = [
        (draw_swatches("higher-1", "higher-2", "higher-3"), "▲ higher than the baseline"),
        (draw_swatches("lower-1", "lower-2", "lower-3"), "▼ lower"),
        (draw_swatches(""), INCONCLUSIVE),
        (draw_swatches(), f"– {NOT_TESTABLE}"),
    ]
    if "blank" in tones:
        legend.append((draw_swatches("blank"), "not measured for this group"))
    if any(len(row.cells) > 1 for row in rows if row.is_heading):
        legend.append((draw_swatches(), "p in the line of an axis: do its groups differ at all?"))
    lede = (
        f"Every gap to its baseline: points of share, or units of a mean. Coloured cells are {LARGER}; the "
        f"deeper the colour, the larger the effect size. Plain numbers are {INCONCLUSIVE}."
    )
    blocks: list[doc.Block] = [doc.Text(lede, formats="html"), doc.Legend(legend), *tables]
    return doc.Section("overview", "Overview", blocks if tables else (), "Overview")


_OVERVIEW: Mapping[str, Any] = {
    "group_head": "Axis",
    "style": "matrix",
    "frame": "wide",
    "tall": 60,
    "source": "comparisons",
    "formats": "html",
}


def _overview_table(run: Run, source: tuple[str, str], gaps: Sequence[Gap], findings: Findings) -> doc.Table:
    axes: dict[tuple[str, str], dict[str, dict[tuple[str, str], Gap]]] = {}
    for gap in gaps:
        row = gap.comparison
        groups = axes.setdefault((row.axis, row.baseline), {})
        groups.setdefault(row.group, {})[row.metric, row.output] = gap
    used = Counter((gap.comparison.metric, gap.comparison.output) for gap in gaps)
    supported = Counter(
        (gap.comparison.metric, gap.comparison.output) for gap in gaps if gap.standing == "supported"
    )
    # Measures with findings come first, where a wide table is seen; the others keep their order.
    keys = sorted((key for key in findings.measures if key in used), key=lambda key: -supported[key])
    answers, rows = read_omnibus(run), []
    for (axis, _), groups in axes.items():
        baseline = next(iter(next(iter(groups.values())).values())).short_baseline
        heading = [doc.Cell(text=format_name(axis), note=f"against {baseline}")]
        known = [answers.get((*source, axis, *key)) for key in keys]
        if any(known):
            heading += [
                doc.Cell(text=answer.short, hint=answer.sentence, tone="differs" if answer.differs else "")
                if answer
                else doc.Cell(text="")
                for answer in known
            ]
        rows.append(doc.Row(heading, is_heading=True))
        for group, cells in sorted(groups.items()):
            name = doc.Cell(text=format_name(group), button={"class": "find", "find": ""})
            rows.append(doc.Row((name, *(_overview_cell(cells.get(key)) for key in keys))))
    measures = [findings.measures[key] for key in keys]
    columns = [doc.Column(measure.full_title, "num", measure.scale) for measure in measures]
    return doc.Table(
        title=", ".join((format_name(source[0]), source[1])),
        columns=[doc.Column("Group"), *columns],
        rows=rows,
        **_OVERVIEW,
    )


def _overview_cell(gap: Gap | None) -> doc.Cell:
    if gap is None:
        return doc.Cell(text="", tone="blank")
    estimate, size = gap.comparison.estimate, abs(gap.comparison.effect_size or 0)
    tint = ""
    if gap.standing == "supported" and gap.direction:
        tint = f"{gap.direction}-{1 + (size >= MIDDLING) + (size >= STRONG)}"
    text = "–" if estimate is None else gap.measure.signed_gap(estimate)
    return doc.Cell(text=text, tone=f"{gap.standing} {tint}".strip(), arrow=gap.direction if tint else "")


def find_adjusted_gaps(run: Run, findings: Findings) -> list[tuple[Values, Measure]]:
    """The gaps with the same mix of strata on both sides, contradicted ones first."""
    rows = null_non_finite(run.table("strata")).filter(
        pl.col("stratum") == ADJUSTED, pl.col("estimate").is_not_null()
    )
    gaps = [(row, findings.measures[row["metric"], row["output"]]) for row in rows.iter_rows(named=True)]
    chosen = [(row, measure) for row, measure in gaps if row["disagrees"] or measure.primary]
    return sorted(chosen, key=lambda item: not item[0]["disagrees"])


def build_strata(run: Run, findings: Findings, level: str) -> tuple[doc.Section, list[str]]:
    """The gaps inside strata, and a warning for each that its strata contradict."""
    whole = _read_estimates(run.table("comparisons"), GAP_KEY, pl.col("estimate"))
    inside = null_non_finite(run.table("strata")).filter(pl.col("stratum") != ADJUSTED)
    least = _read_estimates(inside, (*GAP_KEY, "by"), pl.col("estimate").min())
    most = _read_estimates(inside, (*GAP_KEY, "by"), pl.col("estimate").max())
    rows, warnings = [], []
    for row, measure in find_adjusted_gaps(run, findings):
        key = tuple(row[column] for column in GAP_KEY)
        group, by = format_name(row["group"]), format_name(row["by"])
        baseline = format_baseline(row["baseline"], row["axis"])
        before = "" if key not in whole else measure.signed_gap(whole[key])
        gap, ends = measure.signed_gap(row["estimate"]), (*key, row["by"])
        if row["disagrees"]:
            warnings.append(
                f"{group} against {baseline}, {measure.full_title}: over all texts the gap is "
                f"{before}{measure.unit}, but with the same mix of {by} on both sides it is "
                f"{gap}{measure.unit}. The mix of {by} makes the gap, not the group."
            )
        span = (
            ""
            if ends not in least
            else f"{measure.signed_gap(least[ends])} to {measure.signed_gap(most[ends])}"
        )
        rows.append(
            (
                doc.Cell(text=group, note=f"against {baseline}"),
                doc.Cell(text=measure.full_title, tags=("points the other way",) * row["disagrees"]),
                *(by, before, doc.Cell(text=gap, is_strong=True), measure.interval(row["low"], row["high"])),
                *(format_p(row["p_adjusted"]), span),
            )
        )
    lede = (
        "Each gap again with the same mix of strata on both sides. Where that gap points the other way, the "
        "mix makes the gap over all texts (Simpson’s paradox). All of this is exploratory."
    )
    columns = (
        *("Group", "Measure", "Strata", "#Over all", "#Same mix"),
        *(doc.Column("Interval", "num", level, can_sort=False), "#Adjusted p"),
        doc.Column("Inside, least to most", "num", can_sort=False),
    )
    table = doc.Table(
        columns=columns, rows=rows, source="strata", style="beside", frame="wide", shown=MOST, formats="html"
    )
    blocks = (doc.Text(lede, formats="html"), table) if rows else ()
    return doc.Section("strata", "Inside strata", blocks, "Strata"), warnings


def build_pairs(run: Run, findings: Findings, level: str) -> doc.Section:
    """The pairs of groups whose gap is larger than chance, by p."""
    table = null_non_finite(run.table("pairs")).select([field.name for field in fields(Comparison)])
    clear = table.filter(pl.col("p_adjusted") <= ALPHA).sort("p_adjusted", maintain_order=True)
    rows = []
    for row in clear.iter_rows(named=True):
        measure = findings.measures[row["metric"], row["output"]]
        estimate = row["estimate"] or 0.0
        way = "higher" if estimate > 0 else "lower"
        cells = (
            doc.Cell(text=format_name(row["group"]), note=f"against {format_name(row['baseline'])}"),
            measure.full_title,
            doc.Cell(text=measure.signed_gap(estimate), arrow=way, is_strong=True),
            *(measure.interval(row["low"], row["high"]), format_p(row["p_adjusted"])),
        )
        rows.append(doc.Row(cells, f"supported {way}"))
    lede = (
        f"{clear.height:,} of {table.height:,} comparisons of two groups are {LARGER} after correction over "
        "all of them. They are exploratory."
    )
    gap = doc.Column("Gap", "num", name="gap")
    columns = ("Group", "Measure", gap, doc.Column("Interval", "num", level, can_sort=False), "#Adjusted p")
    pairs = doc.Table(
        columns=columns, rows=rows, source="pairs", style="beside", frame="wide", shown=MOST, formats="html"
    )
    return doc.Section(
        "pairs", "Every pair of groups", (doc.Text(lede, formats="html"), pairs) if table.height else ()
    )


def _read_estimates(
    table: pl.DataFrame, key: Sequence[str], value: pl.Expr
) -> dict[tuple[object, ...], float]:
    known = table.filter(pl.col("estimate").is_not_null()).group_by(key, maintain_order=True)
    rows = known.agg(value.first() if value.meta.is_column() else value)
    return {row[:-1]: row[-1] for row in rows.iter_rows()}


def build_distances(run: Run) -> doc.Section:
    """The distances of base rates: distance, chance, what is left, which way; a table for each attribute."""
    tables = [
        doc.Table(
            title=title,
            columns=DISTANCE_HEADS,
            rows=rows,
            source="distances",
            frame="wide",
            formats="html md",
        )
        for title, rows in read_distances(run).items()
    ]
    return doc.Section("distances", "Distances", (doc.Text(EXPLANATION), *tables) if tables else ())


def read_distances(run: Run) -> dict[str, list[tuple[str | doc.Cell, ...]]]:
    """The rows of each attribute, metric and kind of prompt by the title of their table."""
    table, poles = run.table("distances"), _read_poles(run)
    # Suites differ in attribute or bias as a rule; where a run has several models each is named.
    is_shared = table["model"].n_unique() > 1
    tables: dict[str, list[tuple[str | doc.Cell, ...]]] = {}
    for row in table.iter_rows(named=True):
        title = f"{format_name(row['attribute'])}, {row['bias']} ({format_name(row['metric'])})"
        rows = tables.setdefault(f"{row['model']}: {title}" if is_shared else title, [])
        rows.append(_distance_cells(row, *poles.get(row["metric"], ("lower", "higher"))))
    return tables


def describe_distances(run: Run) -> str:
    """How many options lean beyond chance, in a sentence, and the first of them; empty without distances."""
    rows = [(title, row) for title, rows in read_distances(run).items() for row in rows]
    tested = [(title, row) for title, row in rows if row[0] != "Overall" and row[5]]
    leans = [
        f"{row[0]} {row[6]} ({title})"
        for title, row in tested
        if isinstance(row[3], doc.Cell) and row[3].is_strong
    ]
    if not tested:
        return ""
    if not leans:
        return f"Distances: none of {len(tested):,} options lies further off than chance puts it."
    more = f"; {len(leans) - _NAMED:,} more in the report" if len(leans) > _NAMED else ""
    verb = "leans" if len(leans) == 1 else "lean"
    named = "; ".join(leans[:_NAMED])
    return f"Distances: {len(leans):,} of {len(tested):,} options {verb} beyond chance: {named}{more}."


def _distance_cells(row: Values, lower: str, higher: str) -> tuple[doc.Cell | str, ...]:
    """One option; what is beyond chance is strong where the lean is larger than chance."""
    low, high, way = row["low"], row["high"], row["direction"]
    is_overall = row["option"] == OVERALL
    p = row["p"] if is_overall else row["p_adjusted"]
    # Of few keywords there is no interval: p alone decides.
    is_above = low > 0 if low is not None else row["null_reason"] == FEW_KEYWORDS
    beyond = "" if row["corrected"] is None else f"{row['corrected']:+.4f}"
    return (
        "Overall" if is_overall else format_name(row["option"]),
        *("" if row[key] is None else f"{row[key]:.4f}" for key in ("estimate", "null_mean")),
        doc.Cell(text=beyond, is_strong=is_above and p is not None and p < ALPHA),
        f"{low:+.4f} to {high:+.4f}" if low is not None else row["null_reason"] or "",
        "" if p is None else f"{p:.3f}",
        "" if way is None else f"{way:+.3f} {higher if way > 0 else lower}",
        *(f"{row['n']:,}", f"{row['n_keywords']:,}"),
    )


def _read_poles(run: Run) -> dict[str, tuple[str, str]]:
    """What the low and the high end of each metric are called."""
    poles: dict[str, tuple[str, str]] = {}
    for spec in read_mapping(run.manifest, "metrics"):
        for output in read_objects(run.manifest, "metrics", spec, "outputs"):
            labels = read_texts(output, "labels")
            if len(labels) == 2:
                poles.setdefault(spec, (labels[0], labels[1]))
    return poles
