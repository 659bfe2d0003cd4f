"""The page in a real browser: it asks nothing of the network, and works by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.audits.report.test_html import EVIL, evil_run
from tests.chromium import PATIENCE, opened
from tests.report.realistic import comparison, group_row, realistic_run, small_run

from evenhand.report.render_run import render

pytestmark = pytest.mark.browser

CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (colour, below) => {
    canvas.fillStyle = `rgb(${below})`; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return Array.from(canvas.getImageData(0, 0, 1, 1).data).slice(0, 3);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    const line = [];
    for (let at = node; at; at = at.parentElement) line.unshift(getComputedStyle(at).backgroundColor);
    return line.reduce((below, colour) => over(colour, below), [255, 255, 255]);
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("script, style, svg, .skip")) continue;
    if (!parent.checkVisibility()) continue;
    const back = behind(parent);
    const [a, b] = [light(over(getComputedStyle(parent).color, back)), light(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push([node.data.trim().slice(0, 40), parent.className, ratio.toFixed(2)]);
  }
  return poor;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    yield from opened()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return render(realistic_run(tmp_path_factory.mktemp("run"), clusters=30), ("html",))["html"]


class Visit:
    """A page, with what it logged and what it asked for."""

    def __init__(self, browser: object, file: Path, **options: object) -> None:
        self.page = browser.new_page(**{"viewport": {"width": 1440, "height": 900}} | options)  # type: ignore[attr-defined]
        self.page.set_default_timeout(PATIENCE)
        self.logged: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.logged.append(message.text))
        self.page.on("pageerror", lambda error: self.logged.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())


@pytest.fixture
def visit(browser: object, report: Path) -> Iterator[Visit]:
    visited = Visit(browser, report)
    yield visited
    assert visited.logged == []
    visited.page.close()


def shown(visit: Visit, selector: str) -> int:
    return int(visit.page.locator(f"{selector}:visible").count())


def test_it_loads_without_an_error_or_a_request(visit: Visit, report: Path) -> None:
    assert visit.asked == [report.as_uri()]
    assert visit.page.title().startswith("Does gpt2 write differently about 43 groups?")
    assert shown(visit, ".card") == 3


def test_the_first_screen_holds_question_gaps_and_doubts(visit: Visit) -> None:
    for words in ("Does gpt2 write", "larger than chance after correction", "Inconclusive"):
        box = visit.page.get_by_text(words).first.bounding_box()
        assert box["y"] < 900


def test_filters_narrow_charts_and_table(visit: Visit) -> None:
    page = visit.page
    assert shown(visit, ".figure") == 10
    page.select_option("[name=axis]", "race")
    assert shown(visit, ".figure") == 2
    page.select_option("[name=metric]", "sentiment")
    assert shown(visit, ".figure") == 1
    assert page.text_content("#shown") == "6 of 656 comparisons"  # 3 groups, 2 primary outputs
    page.check("[name=exploratory]")
    assert page.text_content("#shown") == "24 of 656 comparisons"  # 3 groups, 8 outputs
    page.fill("[name=find]", "asian")
    assert shown(visit, ".comparisons tbody tr") == 8
    # The baseline stays beside what matches.
    assert shown(visit, ".chart tbody tr") == 2
    page.fill("[name=find]", "no such group")
    assert page.locator("#no-charts").is_visible()
    assert page.locator("#no-comparisons").is_visible()


def test_significance_filter_shows_supported_gaps_only(visit: Visit) -> None:
    visit.page.select_option("[name=standing]", "supported")
    rows = visit.page.locator(".comparisons tbody tr:visible")
    assert rows.count() > 0
    assert set(rows.evaluate_all("rows => rows.map((row) => row.classList[0])")) == {"supported"}
    assert visit.page.locator(".chart tbody tr.unclear:visible").count() == 0


def test_sorting_by_mouse_and_keyboard(visit: Visit) -> None:
    page = visit.page
    header = page.locator("#figure-1 .panel:visible th", has_text="Group").first

    def names() -> list[str]:
        return list(page.locator("#figure-1 .panel:visible .name").all_text_contents())

    before = names()
    header.locator(".sort").click()
    assert names() == sorted(before)
    assert header.get_attribute("aria-sort") == "ascending"
    header.locator(".sort").focus()
    page.keyboard.press("Enter")
    assert names() == sorted(before, reverse=True)
    assert header.get_attribute("aria-sort") == "descending"


def test_sorting_a_number_puts_empty_cells_last(visit: Visit) -> None:
    page = visit.page
    panel = "#figure-1 .panel:visible"
    for _ in range(2):
        page.locator(f"{panel} th", has_text="Adjusted p").locator(".sort").click()
        assert page.locator(f"{panel} tbody tr").last.locator(".tag").text_content() == "baseline"


def test_tabs_move_with_arrow_keys(visit: Visit) -> None:
    page = visit.page
    page.locator("#figure-0 [role=tab]").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#figure-0 [aria-selected=true]").text_content().startswith("positive")
    assert page.locator("#figure-0 .panel:visible").get_attribute("data-title") == "positive"


def test_texts_open_on_click_behind_a_notice_confirmed_once(visit: Visit) -> None:
    page = visit.page
    page.locator("#figure-1 .plot:visible svg").nth(1).click()
    assert page.locator("#notice").is_visible()
    assert not page.locator("#drawer-texts").is_visible()
    page.click("#notice-confirm")
    assert page.locator("#drawer-texts li").count() == 40
    page.click("#drawer-close")
    assert not page.locator("#drawer").is_visible()
    page.locator("#figure-2 .name:visible").first.click()
    assert not page.locator("#notice").is_visible()
    assert page.locator("#drawer-texts").is_visible()


def test_texts_open_and_close_by_keyboard_and_focus_returns(visit: Visit) -> None:
    page = visit.page
    first = page.locator("#figure-0 .name:visible").first
    first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#drawer").is_visible()
    page.locator("#notice-confirm").focus()
    page.keyboard.press("Enter")
    assert page.locator("#drawer-texts li").first.is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#drawer").is_visible()
    assert first.evaluate("node => node === document.activeElement")


def test_a_click_beside_the_texts_closes_them(visit: Visit) -> None:
    visit.page.locator("#figure-0 .name:visible").first.click()
    visit.page.mouse.click(700, 400)
    assert visit.page.locator("#drawer").is_visible() is False


def test_the_comparison_table_opens_texts_too(visit: Visit) -> None:
    visit.page.locator(".comparisons .name:visible").first.click()
    assert visit.page.locator("#drawer").is_visible()


def test_the_skip_link_is_the_first_stop(visit: Visit) -> None:
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.className") == "skip"


def test_the_theme_follows_the_system_and_the_button(browser: object, report: Path) -> None:
    visit = Visit(browser, report, color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = visit.page.evaluate(paper)
    visit.page.click("#theme")
    assert visit.page.evaluate(paper) == "rgb(255, 255, 255)"
    visit.page.click("#theme")
    assert visit.page.evaluate(paper) == dark != "rgb(255, 255, 255)"
    assert visit.logged == []
    visit.page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_meets_wcag_aa_contrast(browser: object, report: Path, scheme: str) -> None:
    visit = Visit(browser, report, color_scheme=scheme)
    visit.page.locator("#figure-0 .name:visible").first.click()
    assert visit.page.evaluate(CONTRAST) == []
    visit.page.close()


@pytest.mark.parametrize("width", [390, 768, 1440])
def test_the_page_never_scrolls_sideways(browser: object, report: Path, width: int) -> None:
    visit = Visit(browser, report, viewport={"width": width, "height": 844})
    visit.page.check("[name=exploratory]")
    # An axis of somebody's own file may be a whole question.
    visit.page.evaluate("document.querySelector('[name=axis]').add(new Option('how people '.repeat(9)))")
    assert visit.page.evaluate("document.documentElement.scrollWidth") == width
    visit.page.close()


def test_numbers_and_charts_are_there_without_scripts(browser: object, report: Path) -> None:
    visit = Visit(browser, report, java_script_enabled=False)
    assert visit.page.locator(".panel:visible").count() == 80
    assert visit.page.locator(".comparisons tbody tr:visible").count() == 656
    assert not visit.page.locator("#filters").is_visible()
    assert "examples.parquet" in visit.page.locator("noscript").first.inner_text()
    visit.page.close()


def test_tables_download_as_guarded_csv(browser: object, tmp_path: Path) -> None:
    names = ("=cmd()", "@sum", "-1", "+1", 'say "hi", twice', "a;=cmd()", "a\t@x; - b;")
    run = small_run(
        tmp_path,
        [comparison(group=name, estimate=-0.03) for name in names],
        [group_row(group=name) for name in (*names, "European_Americans")],
    )
    visit = Visit(browser, render(run, ("html",))["html"])
    with visit.page.expect_download() as waiting:
        visit.page.click("[data-download=comparisons]")
    lines = Path(waiting.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert waiting.value.suggested_filename == "comparisons.csv"
    assert lines[0].startswith("suite,model,axis,group,baseline,metric")
    written = ("'=cmd()", "'@sum", "'-1", "'+1", 'say ""hi"", twice', "a;'=cmd()", "a\t'@x;' - b;")
    # A word is guarded; a number keeps its minus.
    for line, name in zip(lines[1:], written, strict=True):
        assert line.startswith(
            f'"starter","gpt2","race","{name}","European_Americans","sentiment","negative","difference",-0.03,'
        )
    assert visit.logged == []
    visit.page.close()


def test_markup_in_names_and_texts_shows_as_text(browser: object, tmp_path: Path) -> None:
    visit = Visit(browser, render(evil_run(tmp_path), ("html",))["html"])
    page = visit.page
    for index, name in enumerate(EVIL):
        row = page.locator(f'.chart tr[data-g="{index}"] .name')
        assert row.text_content() == name
        row.click()
        if index == 0:
            page.click("#notice-confirm")
        assert page.text_content("#drawer-title") == name
        assert name in page.locator("#drawer-texts li").first.text_content()
        page.keyboard.press("Escape")
    assert page.locator("img").count() == 0
    assert visit.logged == []
    assert len(visit.asked) == 1
    page.close()


def test_it_prints(browser: object, report: Path) -> None:
    visit = Visit(browser, report)
    visit.page.emulate_media(media="print")
    assert not visit.page.locator("#filters").is_visible()
    assert visit.page.pdf(format="A4").startswith(b"%PDF")
    visit.page.close()
