"""The tables of an audit besides its gaps: the overview, gaps inside strata, pairs of groups, distances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import polars as pl

from evenhand.audits.report.findings import Findings, Gap, OverallKey, read_omnibus
from evenhand.audits.report.measures import Measure
from evenhand.report import document as doc
from evenhand.report.charts import draw_swatches
from evenhand.report.json_tables import GAP_KEY, null_non_finite
from evenhand.report.manifest import format_level, read_mapping, read_objects, read_texts
from evenhand.report.verdicts import INCONCLUSIVE, LARGER, NOT_TESTABLE, tint, tint_legend
from evenhand.report.wording import format_baseline, format_name, format_p
from evenhand.stats.base_rates import FEW_KEYWORDS, OVERALL
from evenhand.stats.corrections import ALPHA
from evenhand.store.run import Run
from evenhand.store.schemas import ADJUSTED

STRENGTHS = (0.5, 0.8)
"""Cohen's words for an effect size of h or g: medium, large; below is small."""
DISTANCE_HEADS = (
    *("Option", "#Distance", "#By chance", "#Beyond chance", "#Interval", "#Adjusted p", "#Leans", "#Texts"),
    "#Keywords",
)
EXPLANATION = (
    "How much the score distribution of an option differs from that of all options: 0 is equal, 1 the "
    "largest possible distance. It is never 0 in a sample; the next column is the distance expected by "
    "chance, and the distance beyond chance has an interval. A lean is larger than chance only if that "
    "interval excludes 0 and the adjusted p is below 0.05: if some options lean, even a balanced one lies "
    "off the mean of all options. Two or three keywords are too few for an interval: then p alone decides."
)
_NAMED = 4
"""Options that the terminal names."""
Values = Mapping[str, Any]


def build_overview(run: Run, findings: Findings) -> doc.Section:
    """Groups down, primary measures across, a signed gap in each cell; a table for each suite and model."""
    sources: dict[tuple[str, str], list[Gap]] = {}
    for gap in findings.judged_gaps:
        sources.setdefault((gap.comparison.suite, gap.comparison.model), []).append(gap)
    answers, tables, rows = read_omnibus(run), [], []
    for (suite, model), gaps in sources.items():
        # Measures with findings first, where a wide table is seen; the others keep their order.
        supported = Counter(gap.measure for gap in gaps if gap.standing == "supported")
        used = {gap.measure for gap in gaps}
        measures = sorted(
            (measure for measure in findings.measures.values() if measure in used),
            key=lambda measure: -supported[measure],
        )
        columns = [doc.Column(each.full_title, "num", each.scale or "a mean") for each in measures]
        drawn = _overview_rows(answers, gaps, measures)
        table = doc.Table(
            title="" if len(sources) == 1 else f"{format_name(suite)}, {model}",
            columns=["Group", *columns],
            rows=drawn,
            group_head="Axis",
            source="comparisons",
            style="matrix",
            tall=60,
            formats="html",
        )
        tables.append(table)
        rows += drawn
    legend = [*tint_legend("▲ higher than the baseline", "▼ lower"), (draw_swatches(), f"– {NOT_TESTABLE}")]
    if any(isinstance(cell, doc.Cell) and cell.tone == "blank" for row in rows for cell in row.cells):
        legend.append((draw_swatches("blank"), "not measured for this group"))
    if any(len(row.cells) > 1 for row in rows if row.is_heading):
        legend.append((draw_swatches(), "p in the line of an axis: do its groups differ at all?"))
    lede = (
        f"Every gap to its baseline: points of share, or units of a mean. Coloured cells are {LARGER}; the "
        f"deeper the colour, the larger the effect size. Plain numbers are {INCONCLUSIVE}."
    )
    blocks: list[doc.Block] = [doc.Text(lede, formats="html"), doc.Legend(legend), *tables]
    return doc.Section("overview", "Overview", blocks if tables else (), "Overview")


def _overview_rows(
    answers: Mapping[OverallKey, doc.Cell], gaps: Sequence[Gap], measures: Sequence[Measure]
) -> list[doc.Row]:
    """A heading for each axis and baseline of a suite and model, and a row for each of its groups."""
    axes: dict[tuple[str, str], dict[str, dict[Measure, Gap]]] = {}
    for gap in gaps:
        groups = axes.setdefault((gap.comparison.axis, gap.comparison.baseline), {})
        groups.setdefault(gap.comparison.group, {})[gap.measure] = gap
    source, rows = (gaps[0].comparison.suite, gaps[0].comparison.model), []
    for (axis, _), groups in axes.items():
        baseline = format_baseline(next(iter(next(iter(groups.values())).values())).baseline_group)
        heading = [doc.Cell(format_name(axis), note=f"against {baseline}")]
        known = [answers.get((*source, axis, measure.metric, measure.output)) for measure in measures]
        if any(known):
            heading += [answer or doc.Cell() for answer in known]
        rows.append(doc.Row(heading, is_heading=True))
        for group, by_measure in sorted(groups.items()):
            cells = [doc.Cell(format_name(group), button={"class": "find", "find": ""})]
            for own in map(by_measure.get, measures):
                if own is None:
                    cells.append(doc.Cell(tone="blank"))
                    continue
                colour = tint(own.arrow, abs(own.comparison.effect_size or 0), STRENGTHS)
                text = own.measure.gap(own.comparison.estimate, signed=True) or "–"
                cells.append(doc.Cell(text, tone=f"{own.standing} {colour}".strip(), arrow=own.arrow))
            rows.append(doc.Row(cells))
    return rows


def build_strata(run: Run, findings: Findings) -> tuple[doc.Section, list[str]]:
    """The gaps inside strata, contradicted ones first, and a warning for each of these."""
    estimate, key = pl.col("estimate"), [*GAP_KEY, "by"]
    compared, strata = (
        null_non_finite(run.table(name)).filter(estimate.is_not_null()) for name in ("comparisons", "strata")
    )
    whole = compared.group_by(GAP_KEY, maintain_order=True).agg(whole=estimate.first())
    inside = strata.filter(pl.col("stratum") != ADJUSTED)
    ends = inside.group_by(key).agg(least=estimate.min(), most=estimate.max())
    adjusted = (
        strata.filter(pl.col("stratum") == ADJUSTED)
        .join(whole, on=GAP_KEY, how="left", nulls_equal=True, maintain_order="left")
        .join(ends, on=key, how="left", nulls_equal=True, maintain_order="left")
        .sort(~pl.col("disagrees"), maintain_order=True)
    )
    measure = findings.measure
    rows = [row for row in adjusted.to_dicts() if row["disagrees"] or measure(row).primary]
    warnings = []
    for row in filter(itemgetter("disagrees"), rows):
        group, by, its = format_name(row["group"]), format_name(row["by"]), measure(row)
        before, after = (f"{its.gap(row[gap], signed=True)}{its.unit}" for gap in ("whole", "estimate"))
        warnings.append(
            f"{group} {_against(row)}, {its.full_title}: over all texts the gap is {before}, but with the "
            f"same mix of {by} on both sides it is {after}. The mix of {by} causes the gap, not the group."
        )
    lede = (
        "Each gap again with the same mix of strata on both sides. If that gap has the opposite sign, the "
        "mix causes the gap over all texts (Simpson’s paradox). All of this is exploratory."
    )
    columns: dict[doc.Column | str, doc.Show] = {
        "Group": lambda row: doc.Cell(format_name(row["group"]), note=_against(row)),
        "Measure": lambda row: doc.Cell(
            measure(row).full_title, tags=("points the other way",) * row["disagrees"]
        ),
        "Strata": lambda row: format_name(row["by"]),
        "#Over all": lambda row: measure(row).gap(row["whole"], signed=True),
        "#Same mix": lambda row: measure(row).cell(row["estimate"]),
        doc.interval_column(format_level(run)): lambda row: measure(row).interval(row["low"], row["high"]),
        "#Adjusted p": lambda row: format_p(row["p_adjusted"]),
        doc.Column("Inside, least to most", "num", can_sort=False): lambda row: measure(row).interval(
            row["least"], row["most"]
        ),
    }
    look: dict[str, Any] = {"source": "strata", "style": "beside", "formats": "html"}
    return doc.table_section("strata", "Inside strata", lede, rows, columns, nav="Strata", **look), warnings


def build_pairs(run: Run, findings: Findings) -> doc.Section:
    """The pairs of groups whose gap is larger than chance, by p."""
    table = null_non_finite(run.table("pairs"))
    measure = findings.measure
    clear = table.filter(pl.col("p_adjusted") <= ALPHA).sort("p_adjusted", maintain_order=True)

    def way(row: Values) -> str:
        return "higher" if (row["estimate"] or 0) > 0 else "lower"

    columns: dict[doc.Column | str, doc.Show] = {
        "Group": lambda row: doc.Cell(
            format_name(row["group"]), note=f"against {format_name(row['baseline'])}"
        ),
        "Measure": lambda row: measure(row).full_title,
        doc.Column("Gap", "num", name="gap"): lambda row: measure(row).cell(
            row["estimate"] or 0.0, arrow=way(row)
        ),
        doc.interval_column(format_level(run)): lambda row: measure(row).interval(row["low"], row["high"]),
        "#Adjusted p": lambda row: format_p(row["p_adjusted"]),
    }
    return doc.table_section(
        "pairs",
        "Every pair of groups",
        f"{clear.height:,} of {table.height:,} comparisons of two groups are {LARGER} after correction over "
        "all of them. They are exploratory.",
        clear,
        columns,
        tone=lambda row: f"supported {way(row)}",
        has_lede=table.height > 0,
        source="pairs",
        style="beside",
        formats="html",
    )


def _against(row: Values) -> str:
    return f"against {format_baseline(row['baseline'], row['axis'])}"


def read_distances(run: Run) -> dict[str, list[tuple[str | doc.Cell, ...]]]:
    """The rows of each attribute, metric and kind of prompt by the title of their table."""
    table = run.table("distances")
    # What the low and the high end of each metric are called, by its first output of two labels.
    poles = {
        spec: labels
        for spec in read_mapping(run.manifest, "metrics")
        for output in reversed(read_objects(run.manifest, "metrics", spec, "outputs"))
        if len(labels := read_texts(output, "labels")) == 2
    }
    # Suites differ in attribute or bias as a rule; where a run has several models each is named.
    is_shared = table["model"].n_unique() > 1
    tables: dict[str, list[tuple[str | doc.Cell, ...]]] = {}
    for row in table.iter_rows(named=True):
        title = f"{format_name(row['attribute'])}, {row['bias']} ({format_name(row['metric'])})"
        rows = tables.setdefault(f"{row['model']}: {title}" if is_shared else title, [])
        rows.append(_distance_cells(row, *poles.get(row["metric"], ("lower", "higher"))))
    return tables


def build_distances(run: Run) -> tuple[doc.Section, str]:
    """The distances of base rates, a table for each attribute, and a sentence; empty without distances.

    The sentence says how many options lean beyond chance, and names the first of them.
    """
    tables, n_tested, leans = [], 0, []
    for title, rows in read_distances(run).items():
        table = doc.Table(
            title=title, columns=DISTANCE_HEADS, rows=rows, source="distances", formats="html md"
        )
        tables.append(table)
        for option, _, _, beyond, _, p, lean, *_ in rows:
            if option != "Overall" and p:
                n_tested += 1
                leans += [f"{option} {lean} ({title})"] * (isinstance(beyond, doc.Cell) and beyond.is_strong)
    section = doc.Section("distances", "Distances", (doc.Text(EXPLANATION), *tables) if tables else ())
    if not leans:
        none = f"Distances: none of {n_tested:,} options is further away than expected by chance."
        return section, none if n_tested else ""
    more = f"; {len(leans) - _NAMED:,} more in the report" if len(leans) > _NAMED else ""
    verb = "leans" if len(leans) == 1 else "lean"
    beyond_chance = f"{len(leans):,} of {n_tested:,} options {verb} beyond chance"
    return section, f"Distances: {beyond_chance}: {'; '.join(leans[:_NAMED])}{more}."


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
        doc.Cell(beyond, is_strong=is_above and p is not None and p < ALPHA),
        f"{low:+.4f} to {high:+.4f}" if low is not None else row["null_reason"] or "",
        "" if p is None else f"{p:.3f}",
        "" if way is None else f"{way:+.3f} {higher if way > 0 else lower}",
        *(f"{row['n']:,}", f"{row['n_keywords']:,}"),
    )
