"""A page of a real run: words behind scores, other cuts, spreads; by mouse, by keyboard, on a phone."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.report.test_browser import CONTRAST, Visit, browser, shown  # noqa: F401 the fixture

import evenhand
from evenhand.store.run import Run

pytestmark = pytest.mark.browser

MARKUP = "<script>alert(1)</script> and </style> stood on the kind wall."
TEXTS = {
    "bad": ("He was cruel and hated her.", "A terrible war destroyed the town."),
    "good": ("She was kind and happy 🌿 and loved.", MARKUP),
    "plain": ("The committee met on Monday.", "There was a risk."),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("scored")
    rows = []
    for number in range(120):
        group = ("red", "blue", "islam")[number % 3]
        kind = "bad" if (number % 3 == 0) == (number % 7 > 1) else ("good", "plain")[number % 2]
        text = TEXTS[kind][number // 3 % len(TEXTS[kind])]
        rows.append({"text": text, "group": group, "prompt": f"p{number // 3}"})
    with (folder / "texts.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return evenhand.score(
        folder / "texts.csv",
        text="text",
        group={"team": "group"},
        cluster="prompt",
        metrics="sentiment,gender_polarity",
        out=folder / "run",
    )


@pytest.fixture
def visit(browser: object, run: Run) -> Iterator[Visit]:  # noqa: F811
    visited = Visit(browser, run.path / "report.html")
    yield visited
    assert visited.logged == []
    assert len(visited.asked) == 1
    visited.page.close()


def open_texts(visit: Visit, row: str) -> None:
    visit.page.locator(row).click()
    visit.page.click("#notice-confirm")
    visit.page.locator("#drawer-texts li").first.wait_for()


RED = '.figure[data-metric="sentiment"] .panel:visible .name:text-is("red")'


def test_words_are_marked_with_what_they_add(visit: Visit) -> None:
    open_texts(visit, RED)
    # VADER's lexicon has cruel at -2.8 and terrible at -2.1.
    marked = set(visit.page.locator("#drawer-texts mark.down").all_text_contents())
    assert {"cruel−2.8", "terrible−2.1"} <= marked
    assert "s / sqrt(s * s + 15)" in visit.page.locator("#drawer-texts .caption").last.text_content()
    assert visit.page.locator("#drawer-texts .counted").count() > 0


def test_a_word_after_an_emoji_is_marked_where_it_stands(visit: Visit) -> None:
    open_texts(visit, RED)
    item = visit.page.locator("#drawer-texts li", has_text="🌿").first
    words = [re.sub(r"[+−].*", "", text) for text in item.locator("mark").all_text_contents()]
    assert words[:2] == ["kind", "happy"]
    assert words[-1].startswith("loved")


def test_markup_written_by_a_model_is_text_in_the_drawer(visit: Visit) -> None:
    open_texts(visit, RED.replace("red", "blue"))
    item = visit.page.locator("#drawer-texts li", has_text="<script>").first
    assert "<script>alert(1)</script> and </style> stood on the kind" in item.locator(".read").text_content()
    assert visit.page.locator("#drawer script, #drawer style").count() == 0


def test_the_slider_moves_every_number_to_another_cut(visit: Visit, run: Run) -> None:
    page = visit.page
    panel = '.figure[data-metric="sentiment"] .panel:visible'
    row = page.locator(f"{panel} tr", has=page.locator('.name:text-is("red")'))
    slider = page.locator(f"{panel} .cut input")
    slider.focus()
    page.keyboard.press("Home")
    page.locator(f"{panel} .cut output", has_text="at or below −0.05").wait_for()
    expected = run.table("cuts").filter(group="red", output="negative", cut=-0.05).row(0, named=True)
    assert row.locator(".est b").text_content() == f"{100 * expected['value']:.1f} %"
    assert row.locator(".gap b").text_content().split()[-1] == f"{100 * expected['estimate']:+.1f}"
    supported = (run.table("cuts").filter(output="negative", cut=-0.05)["p_adjusted"] <= 0.05).sum()
    assert (
        f": {supported} of 3 gaps larger than chance" in page.locator(f"{panel} .cut output").text_content()
    )
    assert page.locator(f"{panel} .strip .now").text_content().endswith("−0.05")
    # Texts are counted at the cut that is shown.
    open_texts(visit, RED)
    assert "at or below −0.05" in page.locator("#drawer-texts .caption").first.text_content()


def test_back_at_its_own_cut_a_chart_says_what_it_said(visit: Visit) -> None:
    page = visit.page
    panel = '.figure[data-metric="sentiment"] .panel:visible'

    def numbers() -> list[str]:
        cells = page.locator(f"{panel} tbody td.num").all_text_contents()
        return [" ".join(cell.replace("▲", "▲ ").replace("▼", "▼ ").split()) for cell in cells]

    before = numbers()
    page.locator(f"{panel} .cut input").focus()
    page.keyboard.press("Home")
    page.locator(f"{panel} .cut output", has_text="−0.05").wait_for()
    assert numbers() != before
    page.locator(f"{panel} .strip .own").click()
    page.locator(f"{panel} .cut output", has_text="own threshold)").wait_for()
    assert numbers() == before


def test_a_mean_can_be_seen_as_a_spread(visit: Visit) -> None:
    page = visit.page
    page.check("[name=exploratory]")
    page.locator('.figure[data-metric="sentiment"] [role=tab]', has_text="mean compound").click()
    panel = '.figure[data-metric="sentiment"] .panel:visible'
    assert not page.locator(f"{panel} tbody .spreads").first.is_visible()
    page.locator(f"{panel} .views button", has_text="Spread").click()
    assert page.locator(f"{panel} tbody .spreads path").first.is_visible()
    assert not page.locator(f"{panel} tbody .means").first.is_visible()
    assert page.locator(f"{panel} .views [aria-pressed=true]").text_content() == "Spread of the texts"


def test_a_count_leads_to_its_rows(visit: Visit) -> None:
    page = visit.page
    page.locator("[data-standing=unclear]").click()
    assert page.locator("[name=standing]").input_value() == "unclear"
    assert shown(visit, ".comparisons tbody tr:not(.unclear)") == 0
    assert page.evaluate("document.activeElement.id") == "comparisons"


def test_a_headline_opens_its_texts(visit: Visit) -> None:
    open_texts(visit, ".card [data-texts] >> nth=0")
    assert visit.page.locator("#drawer-title").text_content() == "red"


def test_a_name_of_the_overview_leads_to_its_charts(visit: Visit) -> None:
    visit.page.locator("[data-find]", has_text="blue").click()
    assert visit.page.locator("[name=find]").input_value() == "blue"
    assert set(visit.page.locator(".chart .name:visible").all_text_contents()) == {"blue"}


def test_religions_have_a_capital_and_tables_keep_their_spelling(visit: Visit) -> None:
    assert visit.page.locator("[data-find]", has_text="Islam").count() == 1
    assert (
        visit.page.evaluate("JSON.parse(document.getElementById('data').textContent).groups.group.words")[1]
        == "islam"
    )


@pytest.mark.parametrize("table", ["groups", "comparisons", "omnibus", "distributions", "cuts", "texts"])
def test_every_table_downloads(visit: Visit, run: Run, table: str) -> None:
    with visit.page.expect_download() as waiting:
        visit.page.click(f"[data-download={table}]")
    lines = list(csv.reader(Path(waiting.value.path()).read_text(encoding="utf-8-sig").splitlines()))
    whole = run.table("examples" if table == "texts" else table)
    assert len(lines) == whole.height + 1
    assert set(lines[0]) <= set(whole.columns)


def test_a_phone_shows_comparisons_without_scrolling_sideways(browser: object, run: Run) -> None:  # noqa: F811
    visit = Visit(browser, run.path / "report.html", viewport={"width": 390, "height": 844})
    wide = "document.querySelector('.stacks').scrollWidth <= document.querySelector('.stacks').clientWidth"
    assert visit.page.evaluate(wide)
    assert visit.page.evaluate("document.documentElement.scrollWidth") == 390
    visit.page.close()


def test_known_failures_stand_on_the_cards(visit: Visit) -> None:
    assert visit.page.get_by_text("Irony, and praise or blame without a listed word").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marked_words_and_the_slider_meet_wcag_aa_contrast(browser: object, run: Run, scheme: str) -> None:  # noqa: F811
    visit = Visit(browser, run.path / "report.html", color_scheme=scheme)
    visit.page.locator(".cut:visible input").first.focus()
    visit.page.keyboard.press("Home")
    open_texts(visit, RED)
    assert visit.page.evaluate(CONTRAST) == []
    visit.page.close()
