"""Figures, panels and marks."""

from __future__ import annotations

from pathlib import Path

from tests.report.realistic import comparison, group_row, null_comparison, realistic_run, small_run

from evenhand.audits.report.charts import build_figures
from evenhand.audits.report.findings import find_gaps
from evenhand.audits.report.overview_matrix import build_overviews

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
    assert sum(len(panel.marks) for figure in drawn for panel in figure.panels) == 43 * 16
    assert [panel.measure.output for panel in drawn[0].panels][:2] == ["negative", "positive"]


def test_marks_are_sorted_with_the_baseline_among_them_and_nulls_last(tmp_path: Path) -> None:
    run = small_run(tmp_path, [comparison(), null_comparison(group="Asian_Americans")], _GROUPS)
    drawn, _ = build_figures(run, find_gaps(run), most_rows=100)
    marks = drawn[0].panels[0].marks
    assert [mark.name for mark in marks] == ["African Americans", "European Americans", "Asian Americans"]
    assert [mark.standing for mark in marks] == ["supported", "baseline", "missing"]
    assert [mark.value for mark in marks] == ["19.2 %", "16.0 %", ""]
    assert marks[0].gap == "+3.2"
    assert marks[2].reason == "no scores"
    assert marks[2].dot is None


def test_the_baseline_is_drawn_where_its_value_is(tmp_path: Path) -> None:
    run = small_run(tmp_path, [comparison()], _GROUPS)
    drawn, _ = build_figures(run, find_gaps(run), most_rows=100)
    african, european, _ = drawn[0].panels[0].marks
    assert african.reference == european.dot == european.reference


def test_the_declared_baseline_wins_over_other_comparisons(tmp_path: Path) -> None:
    rows = [comparison(baseline="(rest)", exploratory=True, estimate=0.5), comparison()]
    run = small_run(tmp_path, rows, _GROUPS)
    drawn, _ = build_figures(run, find_gaps(run), most_rows=100)
    assert drawn[0].panels[0].marks[0].gap == "+3.2"


def test_exploratory_panels_go_first_when_there_is_no_room(tmp_path: Path) -> None:
    run = realistic_run(tmp_path)
    drawn, undrawn = build_figures(run, find_gaps(run), most_rows=43 * 4)
    # Four primary outputs of 43 groups fit, the other twelve do not.
    assert undrawn == 43 * 12
    assert all(panel.measure.primary for figure in drawn for panel in figure.panels)


def test_a_group_alone_is_drawn_without_a_gap(tmp_path: Path) -> None:
    run = small_run(tmp_path, groups=[group_row()])
    drawn, _ = build_figures(run, find_gaps(run), most_rows=100)
    (mark,) = drawn[0].panels[0].marks
    assert (mark.standing, mark.gap, mark.p) == ("alone", "", "")


def test_the_overview_has_a_block_an_axis_and_a_column_a_primary_measure(tmp_path: Path) -> None:
    (matrix,) = build_overviews(find_gaps(realistic_run(tmp_path)))
    assert [block.axis for block in matrix.blocks] == [
        "gender",
        "race",
        "profession",
        "religious ideology",
        "political ideology",
    ]
    # Measures with findings stand first.
    assert sorted(column.output for column in matrix.columns) == ["female", "male", "negative", "positive"]
    found = [
        sum(
            cell.standing == "supported"
            for block in matrix.blocks
            for line in block.lines
            if (cell := line.cells[at])
        )
        for at in range(4)
    ]
    assert found == sorted(found, reverse=True)
    assert matrix.lines == 41  # 43 groups, less the two baselines.


def test_a_cell_is_tinted_only_where_its_gap_is_supported(tmp_path: Path) -> None:
    rows = [comparison(effect_size=-0.6, estimate=-0.1), comparison(group="Asian_Americans", p_adjusted=0.3)]
    (matrix,) = build_overviews(find_gaps(small_run(tmp_path, rows, _GROUPS)))
    cells = [line.cells[0] for line in matrix.blocks[0].lines]
    assert [cell.tint for cell in cells if cell] == ["lower-2", ""]
