"""The corpus page in a real browser: phone and desk, light and dark, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.corpus.report.test_corpus_report import TEXTS
from tests.report.test_browser import CONTRAST, Visit, browser

from evenhand.corpus.scan import scan_corpus

pytestmark = pytest.mark.browser
__all__ = ["browser"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "a.txt").write_text("\n".join(TEXTS))
    changed = [text.replace("afraid", "happy") if i % 2 else text for i, text in enumerate(TEXTS)]
    (folder / "b.txt").write_text("\n".join(changed))
    (folder / "c.txt").write_text("\n".join(TEXTS[::2] + changed[::2]))
    corpora = [f"one={folder}/a.txt", f"two={folder}/b.txt", f"three={folder}/c.txt"]
    paths = [*corpora, f"four={folder}/nothing.txt"]
    return scan_corpus(paths, out=folder / "run").path / "report.html"


@pytest.fixture
def visit(browser: object, report: Path) -> Iterator[Visit]:
    visited = Visit(browser, report)
    yield visited
    assert visited.logged == []
    visited.page.close()


def test_it_loads_without_an_error_or_a_request(visit: Visit, report: Path) -> None:
    assert visit.asked == [report.as_uri()]
    assert visit.page.title().startswith(
        "Which emotions share a sentence with which groups in one, two, three?"
    )
    for words in ("Which emotions share", "larger than chance", "of the sentences that name the group"):
        box = visit.page.get_by_text(words).first.bounding_box()
        assert box["y"] < 900


@pytest.mark.parametrize("width", [390, 768, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(browser: object, report: Path, width: int, scheme: str) -> None:
    visited = Visit(browser, report, viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = visited.page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(CONTRAST) == []
    # No heat map of three corpora is cut off.
    cut = "[...document.querySelectorAll('#maps .scroll')].map(e => e.scrollWidth - e.clientWidth)"
    assert page.evaluate(cut) == [0, 0, 0]
    page.close()


def test_sentences_stand_behind_a_notice(visit: Visit) -> None:
    page = visit.page
    page.locator(".map .cell").first.click()
    assert page.locator("#notice").is_visible()
    assert not page.locator("#drawer-texts").is_visible()
    page.click("#notice-confirm")
    assert page.locator("#drawer-texts").is_visible()
    page.keyboard.press("Escape")
    cell = page.locator('[data-key="one\tfear\tgender\tmale"]').first
    cell.focus()
    page.keyboard.press("Enter")
    assert page.text_content("#drawer-title") == "Fear with male"
    texts = page.locator("#drawer-texts li").all_text_contents()
    assert len(texts) == 5
    assert all("He was afraid" in text for text in texts)


def test_links_are_sorted_and_the_theme_changes(visit: Visit) -> None:
    page = visit.page
    page.locator("#links th", has_text="Odds ratio").locator(".sort").click()
    first = page.locator("#links tbody tr").first.text_content()
    assert "53.79" in first or "fear" in first
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_it_prints_without_controls(visit: Visit) -> None:
    page = visit.page
    page.emulate_media(media="print")
    assert not page.locator(".top nav").is_visible()
    assert page.locator(".map").first.is_visible()
