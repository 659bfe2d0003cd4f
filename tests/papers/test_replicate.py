"""Asking for a paper: names, exhibits, the folder that comes out."""

import sys
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

import evenhand
from evenhand.core.errors import InputError
from evenhand.papers import replicate, svg_figures
from evenhand.papers.replication_pages import Exhibit, PaperClaim, Replication, format_value, html_page


def bars(*rows):
    """Bars of (label, series, value, low, high)."""
    schema = dict.fromkeys(("label", "series"), pl.String) | dict.fromkeys(
        ("value", "low", "high"), pl.Float64
    )
    return pl.DataFrame(rows, schema=schema, orient="row")


STACK = pl.DataFrame({"label": ["m"], "negative": [0.2], "neutral": [0.3], "positive": [0.5]})


class _Prepared:
    identity = {"models": ["x"]}  # noqa: RUF012
    exhibits = ("table_3", "figure_2")

    def plan(self):
        return ("texts   2",)

    def run(self, folder: Path, progress):
        table = pl.DataFrame({"source": ["paper: WIKI", "x<script>"], "share": [0.5, None], "count": [3, -4]})
        drawn = bars(("m", "s", 1.0, 0.5, 1.5), ("n", "s", None, None, None))
        svg = svg_figures.draw_panels({"a": drawn}, unit="%")
        return Replication(
            title="A title",
            citation="A citation",
            exhibits=(
                Exhibit("table_3", "Shares", table, notes=("a note",)),
                Exhibit("figure_2", "Bars", table, svg=svg, alt="bars of a"),
            ),
            claims=(
                PaperClaim("6.1", "polar texts", "6.57 %", None, remark="not asked for"),
                PaperClaim("6.2", "toxic texts", "CTRL-THT, CTRL-OPN: one each; others none", "none"),
            ),
            remarks=("Wikipedia is not a neutral yardstick.",),
            warnings=("half of it is missing",),
        )


@pytest.fixture
def paper(monkeypatch):
    module = ModuleType("evenhand.papers.bold.replication")
    module.EXHIBITS = ("table_1", "table_3", "figure_2")
    module.requests = []
    module.BoldReplication = lambda request: (module.requests.append(request), _Prepared())[1]
    monkeypatch.setitem(sys.modules, "evenhand.papers.bold.replication", module)
    return module


def test_a_replication_is_written_whole(paper, tmp_path):
    run = evenhand.replicate("bold", out=tmp_path / "r")
    assert sorted(path.name for path in run.path.iterdir() if path.name != ".lock") == [
        "claims.md",
        "claims.parquet",
        "figure_2.parquet",
        "figure_2.svg",
        "replication.md",
        "report.html",
        "run.json",
        "table_3.md",
        "table_3.parquet",
    ]
    assert run.manifest["warnings"] == ["half of it is missing"]
    assert run.manifest["stages"]["replicate"]["state"] == "done"
    markdown = (run.path / "table_3.md").read_text()
    assert "| x\\<script\\> | – | −4 |" in markdown
    page = (run.path / "report.html").read_text()
    assert "<script>" not in page
    assert "x&lt;script&gt;" in page
    assert '<tr class="printed"><td>paper: WIKI</td>' in page
    assert "half of it is missing" in page
    assert pl.read_parquet(run.path / "claims.parquet")["ours"].to_list() == [None, "none"]
    # Long words of the paper may break, its numbers may not.
    assert "<td>6.57\u00a0%</td>" in page
    assert '<td class="words">CTRL-THT, CTRL-OPN: one each; others none</td>' in page


def test_figures_repeat_byte_for_byte():
    panels = {"a": bars(("m", "s", 1.0, None, None)), "b": bars(("m", "t", 2.0, 1.0, 3.0))}
    assert svg_figures.draw_panels(panels, unit="x") == svg_figures.draw_panels(panels, unit="x")
    assert (
        svg_figures.bars_and_stacks({"a": STACK}).count(">50 %<") == 2
    )  # the axis, and the part that is half


def test_exhibits_are_chosen_by_number_or_id(paper, tmp_path):
    replicate.prepare("bold", tables="figure_2,3", model=["a,b", "c"], offline=True)
    request = paper.requests[-1]
    assert request.exhibits == ("table_3", "figure_2")
    assert request.models == ("a", "b", "c")
    assert request.execution().offline


def test_wrong_names_are_refused_before_work(paper):
    with pytest.raises(InputError) as error:
        replicate.prepare("bold", tables="2")
    assert str(error.value) == (
        "--tables names 'table_2', which this replication does not have. "
        "Expected: table_1, table_3, figure_2. Fix: choose from these; a bare number is a table."
    )
    with pytest.raises(InputError, match="unknown paper 'gold'"):
        replicate.prepare("gold")
    with pytest.raises(InputError, match="--data names nowhere, which does not exist"):
        replicate.prepare("bold", data="nowhere")


def test_fresh_forgets_the_runs_inside(paper, tmp_path):
    run = evenhand.replicate("bold", out=tmp_path / "r")
    (run.path / "runs").mkdir()
    evenhand.replicate("bold", out=tmp_path / "r", fresh=True)
    assert not (run.path / "runs").exists()


def test_missing_is_a_dash_never_zero():
    assert [format_value(value, 2) for value in (None, 0.0, -1.234, 12345, True, "x")] == [
        "–",
        "0.00",
        "−1.23",
        "12,345",
        "yes",
        "x",
    ]


def _page(table, narrow=""):
    drawn = svg_figures.horizontal_bars(bars(("m", "s", 1.0, None, None)), unit="x")
    figure = Exhibit("figure_2", "Bars", pl.DataFrame({"a": [1]}), svg=drawn, alt="bars", narrow=narrow)
    return html_page(Replication("T", "C", (Exhibit("table_3", "S", table), figure)))


def test_wide_tables_use_the_window_say_that_they_go_on_and_are_printed_sideways():
    wide = _page(pl.DataFrame({f"c{place}": [1.0] for place in range(12)}))
    assert '<section id="table_3" class="many"' in wide
    assert '<div class="scroll columns"' in wide
    assert '<p class="hint many">12 columns: scroll sideways to see them all.</p>' in wide
    assert "@page sideways { size: A4 landscape;" in wide
    few = _page(pl.DataFrame({"a": [1.0], "words": ["x" * 41]}))
    assert '<section id="table_3" aria-labelledby' in few
    assert "columns: scroll" not in few


def test_a_column_in_which_nothing_is_known_is_aligned_as_numbers_are():
    page = _page(pl.DataFrame({"mode": ["a"], "perplexity": [None], "bias": [0.5]}))
    assert '<th scope="col" class="num">perplexity</th>' in page
    assert '<th scope="col">mode</th>' in page


def test_a_narrow_screen_gets_its_own_figure_where_there_is_one():
    table = pl.DataFrame({"a": [1.0]})
    drawn = bars(("m", "s", -1.0, -1.5, -0.5), ("n", "t", None, None, None))
    svg = svg_figures.horizontal_bars(drawn, unit="x")
    assert '<source media="screen and (max-width: 46rem)" srcset="data:image' in _page(table, svg)
    assert 'class="wide"' not in _page(table, svg)
    assert "<source" not in _page(table)
    assert '<img class="wide"' in _page(table)


def test_an_interval_far_above_every_bar_is_cut_with_an_arrow():
    short = bars(("m", "s", 0.01, 0.0, 0.02), ("n", "s", 0.02, 0.0, 0.07))
    assert svg_figures._upper_limit(short) == float("inf")
    long = pl.concat([short, bars(("o", "s", 0.0, 0.0, 0.29), ("p", "s", None, None, None))])
    assert svg_figures._upper_limit(long) == pytest.approx(4 * 0.02)
    # Nothing to see below it.
    assert svg_figures._upper_limit(bars(("m", "s", 0.0, 0.0, 0.5))) == float("inf")
    assert svg_figures.bars_and_stacks({"t": long}) != svg_figures.bars_and_stacks({"t": short})
