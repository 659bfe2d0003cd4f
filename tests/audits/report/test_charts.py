"""Figures, panels and their rows."""

from __future__ import annotations

import re
from pathlib import Path

from tests.report.realistic import comparison, group_row, null_comparison, realistic_run, small_run

from evenhand.audits.report.figures import build_figures
from evenhand.audits.report.findings import find_gaps
from evenhand.audits.report.side_tables import build_overview
from evenhand.report.document import Table
from evenhand.store.run import Run

_GROUPS = [
    group_row(value=0.192),
    group_row(group="European_Americans", value=0.16),
    group_row(group="Asian_Americans", value=None, low=None, high=None, null_reason="no_scores"),
]


def test_one_figure_a_metric_and_axis(tmp_path: Path) -> None:
    run = realistic_run(tmp_path)
    drawn, undrawn = build_figures(run, find_gaps(run), most_rows=10_000)
    assert len(drawn) == 2 * 5
    assert undrawn == 0
    assert [figure.metric for figure in drawn] == ["sentiment"] * 5 + ["gender_polarity"] * 5
    assert sum(len(panel.table.rows) for figure in drawn for panel in figure.panels) == 43 * 16
    assert [panel.measure.output for panel in drawn[0].panels][:2] == ["negative", "positive"]


def test_rows_are_sorted_with_the_baseline_among_them_and_nulls_last(tmp_path: Path) -> None:
    run = small_run(tmp_path, [comparison(), null_comparison(group="Asian_Americans")], _GROUPS)
    drawn, _ = build_figures(run, find_gaps(run), most_rows=100)
    rows = drawn[0].panels[0].table.rows
    names, plots, values, gaps, *_ = zip(*(row.cells for row in rows), strict=True)
    assert [cell.text for cell in names] == ["African Americans", "European Americans", "Asian Americans"]
    assert [row.tone.split()[0] for row in rows] == ["supported", "baseline", "missing"]
    assert [cell.text for cell in values] == ["19.2 %", "16.0 %", ""]
    assert gaps[0].text == "+3.2"
    assert values[2].note == "no scores"
    assert "<circle" not in plots[2].chart


def test_the_baseline_is_drawn_where_its_value_is(tmp_path: Path) -> None:
    run = small_run(tmp_path, [comparison()], _GROUPS)
    drawn, _ = build_figures(run, find_gaps(run), most_rows=100)
    african, european, _ = (row.cells[1].chart for row in drawn[0].panels[0].table.rows)
    (reference,) = re.findall(r'class="ref" x="([^"]+)"', african)
    assert re.findall(r'class="ref" x="([^"]+)"', european) == [reference]
    assert re.findall(r'circle cx="([^"]+)"', european) == [reference]


def test_the_declared_baseline_wins_over_other_comparisons(tmp_path: Path) -> None:
    rows = [comparison(baseline="(rest)", exploratory=True, estimate=0.5), comparison()]
    run = small_run(tmp_path, rows, _GROUPS)
    drawn, _ = build_figures(run, find_gaps(run), most_rows=100)
    assert drawn[0].panels[0].table.rows[0].cells[3].text == "+3.2"


def test_exploratory_panels_go_first_when_there_is_no_room(tmp_path: Path) -> None:
    run = realistic_run(tmp_path)
    drawn, undrawn = build_figures(run, find_gaps(run), most_rows=43 * 4)
    # Four primary outputs of 43 groups fit, the other twelve do not.
    assert undrawn == 43 * 12
    assert all(panel.measure.primary for figure in drawn for panel in figure.panels)


def test_a_group_alone_is_drawn_without_a_gap(tmp_path: Path) -> None:
    run = small_run(tmp_path, groups=[group_row()])
    drawn, _ = build_figures(run, find_gaps(run), most_rows=100)
    (row,) = drawn[0].panels[0].table.rows
    assert (row.tone, row.cells[3].text, row.cells[4]) == ("alone", "", "")


def overview(run: Run) -> Table:
    (table,) = (block for block in build_overview(run, find_gaps(run)).blocks if isinstance(block, Table))
    return table


def test_the_overview_has_a_block_an_axis_and_a_column_a_primary_measure(tmp_path: Path) -> None:
    table = overview(realistic_run(tmp_path))
    assert [row.cells[0].text for row in table.rows if row.is_heading] == [
        "gender",
        "race",
        "profession",
        "religious ideology",
        "political ideology",
    ]
    # Measures with findings stand first.
    heads = [column.head for column in table.heads[1:]]
    assert sorted(heads) == [
        "gender polarity, female",
        "gender polarity, male",
        "sentiment, negative",
        "sentiment, positive",
    ]
    rows = [row for row in table.rows if not row.is_heading]
    supported = [sum(row.cells[at].tone.startswith("supported") for row in rows) for at in range(1, 5)]
    assert supported == sorted(supported, reverse=True)
    assert len(rows) == 41  # 43 groups, less the two baselines.


def test_a_cell_is_tinted_only_where_its_gap_is_supported(tmp_path: Path) -> None:
    rows = [comparison(effect_size=-0.6, estimate=-0.1), comparison(group="Asian_Americans", p_adjusted=0.3)]
    table = overview(small_run(tmp_path, rows, _GROUPS))
    assert [row.cells[1].tone for row in table.rows[1:]] == ["supported lower-2", "unclear"]
