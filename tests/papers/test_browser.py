"""The page of a replication in a real browser: wide tables on a desk, on a telephone, on paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.chromium import opened

from evenhand.papers import svg_figures
from evenhand.papers.replication_pages import Exhibit, PaperClaim, Replication, html_page

pytestmark = pytest.mark.browser

HIDDEN = """() => [...document.querySelectorAll(".scroll")]
  .filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth).length"""
CUES = '() => [...document.querySelectorAll(".hint")].filter((cue) => cue.checkVisibility()).length'


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    yield from opened()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of twelve columns with intervals, a figure in two forms, a claim with many words."""
    columns = {f"share_of_{place}": [0.123] * 3 for place in range(11)}
    bounds = {f"{name}_{side}": [0.1] * 3 for name in columns for side in ("low", "high")}
    table = pl.DataFrame({"source": ["paper: WIKI", "WIKI", "builtin:masked"], **columns, **bounds})
    stacks = pl.DataFrame(
        {"label": ["a group, a source"], "negative": [0.2], "neutral": [0.3], "positive": [0.5]}
    )
    bars = pl.DataFrame({"label": ["m"] * 2, "series": ["WIKI", "builtin"]}).with_columns(
        value=pl.lit(0.2), low=pl.lit(0.1), high=pl.lit(0.3)
    )
    panels = {"shares": stacks, "bars": bars}
    drawn, narrow = svg_figures.bars_and_stacks(panels), svg_figures.bars_and_stacks(panels, narrow=True)
    figure = Exhibit("figure_3", "F", table, svg=drawn, alt="bars", narrow=narrow)
    claim = PaperClaim(
        "6.2", "toxic texts", "many words of the paper " * 6, "0.10 % [0.05 %, 0.20 %], n = 1,234"
    )
    found = Replication("T", "C", (Exhibit("table_5", "T", table), figure), claims=(claim,))
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html_page(found), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize(("width", "hidden", "cues"), [(1440, 0, 0), (390, 2, 2)])
def test_what_is_cut_has_a_cue(browser, page: str, width: int, hidden: int, cues: int) -> None:  # type: ignore[no-untyped-def]
    tab = browser.new_page(viewport={"width": width, "height": 900})
    tab.goto(page)
    assert tab.evaluate(HIDDEN) == hidden  # on the telephone the table and the claims
    assert tab.evaluate(CUES) == cues
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    shown = tab.evaluate("document.querySelector('img').currentSrc")
    is_narrow = shown == tab.evaluate("document.querySelector('source').srcset")
    assert is_narrow == (width == 390)
    tab.close()


def test_on_paper_no_column_is_lost(browser, page: str) -> None:  # type: ignore[no-untyped-def]
    # The inside of an A4 sheet laid sideways, and of one upright, at 96 dots an inch.
    for section, width in (("#table_5", 1030), ("#claims", 688)):
        tab = browser.new_page(viewport={"width": width, "height": 900})
        tab.emulate_media(media="print")
        tab.goto(page)
        box = tab.evaluate(f"document.querySelector('{section} table').getBoundingClientRect().right")
        assert box <= width
        assert tab.evaluate("document.querySelector('img').currentSrc.length") > 0
        tab.close()
