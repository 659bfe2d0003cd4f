"""The page of a comparison in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.audits.texts import run
from tests.report.test_browser import CONTRAST, Visit, browser, shown

from evenhand import compare

pytestmark = pytest.mark.browser
__all__ = ["browser"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    shares = {"women": 0.4, "men": 0.2, "elders": 0.2}
    even = run(folder, "even", shares)
    wide = run(folder, "wide", shares | {"women": 0.95}, seed=1)
    third = run(folder, "a-very-long-name-of-a-release-candidate-of-a-model", shares, seed=2)
    return compare(even, wide, third, out=folder / "c").path / "report.html"


@pytest.fixture
def visit(browser: object, report: Path) -> Iterator[Visit]:
    visited = Visit(browser, report)
    yield visited
    assert visited.logged == []
    visited.page.close()


def test_it_loads_without_an_error_or_a_request(visit: Visit, report: Path) -> None:
    assert visit.asked == [report.as_uri()]
    for words in ("Do the gaps of", "changed by more than chance", "women against men"):
        assert visit.page.get_by_text(words).first.bounding_box()["y"] < 900


def test_filters_narrow_leaderboard_and_changes(visit: Visit) -> None:
    page = visit.page
    before = shown(visit, "#gaps tbody tr")
    page.check("[name=exploratory]")
    assert shown(visit, "#gaps tbody tr") > before
    page.select_option("[name=run]", "wide.csv")
    page.select_option("[name=so]", "wider")
    rows = page.locator("#gaps tbody tr:visible")
    assert set(rows.evaluate_all("rows => rows.map((row) => row.dataset.so + row.dataset.run)")) == {
        "widerwide.csv"
    }
    page.fill("[name=find]", "nobody")
    assert shown(visit, "#gaps tbody tr") == 0
    assert page.get_by_text("No line matches the filter.").first.is_visible()


def test_changes_are_sorted_by_keyboard(visit: Visit) -> None:
    page = visit.page
    page.locator("#gaps th", has_text="Change").locator(".sort").focus()
    page.keyboard.press("Enter")
    texts = page.locator("#gaps tbody tr:visible .change b").all_text_contents()
    values = [float(text.replace("−", "-")) for text in texts]
    assert values == sorted(values, reverse=True)


def test_tables_download_as_csv(visit: Visit) -> None:
    with visit.page.expect_download() as waiting:
        visit.page.click("[data-download=leaderboard]")
    lines = Path(waiting.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert lines[0].startswith("suite,axis,metric,output,run,rank,spread,low,high,tied_with")


@pytest.mark.parametrize("width", [390, 768, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(browser: object, report: Path, width: int, scheme: str) -> None:
    visited = Visit(browser, report, viewport={"width": width, "height": 844}, color_scheme=scheme)
    visited.page.check("[name=exploratory]")
    assert visited.page.evaluate("document.documentElement.scrollWidth") == width
    assert visited.page.evaluate(CONTRAST) == []
    visited.page.close()


def test_everything_is_there_without_scripts(browser: object, report: Path) -> None:
    visited = Visit(browser, report, java_script_enabled=False)
    assert shown(visited, "#gaps tbody tr") > 0
    assert not visited.page.locator("#narrow").is_visible()
    visited.page.close()
