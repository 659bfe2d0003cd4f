"""Links lead somewhere, every page is in the navigation, pictures are small and described."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from markdown.extensions.toc import slugify
from markdown_it import MarkdownIt
from tests.docs.pages import ROOT, name_of, pages

PAGES = [*pages(), ROOT / "CHANGELOG.md", ROOT / "docs" / "reference" / "command-line.md"]
PICTURES = ROOT / "docs" / "pictures"


def _links(path: Path) -> Iterator[tuple[str, str]]:
    """Kind (``href``, ``src``) and target of every link and picture of a page."""
    for token in MarkdownIt().enable("table").parse(path.read_text(encoding="utf-8")):
        for child in token.children or ():
            for kind in ("href", "src"):
                if target := child.attrGet(kind):
                    yield kind, str(target)


def _anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs makes them."""
    tokens = MarkdownIt().parse(path.read_text(encoding="utf-8"))
    titles = [
        after.content.replace("`", "") for token, after in pairwise(tokens) if token.type == "heading_open"
    ]
    return {slugify(title, "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for _, target in _links(page):
        if "://" in target or target.startswith("mailto:"):
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file) if file else page
        if not found.exists() or (anchor and anchor not in _anchors(found)):
            lost.append(target)
    assert lost == []


def test_every_page_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    decisions = {name for name in written if name.startswith("adr/0")}
    assert set(_named(yaml.safe_load(nav)["nav"])) == written - decisions


def test_the_built_site_opens_from_disk_and_asks_no_other_host() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert site["use_directory_urls"] is False
    assert site["theme"]["highlightjs"] is False


def test_every_decision_is_listed_by_its_title() -> None:
    folder = ROOT / "docs" / "adr"
    titles = {
        path: path.read_text(encoding="utf-8").partition("\n")[0] for path in sorted(folder.glob("0*.md"))
    }
    listed = [f"- [{title.removeprefix('# ')}]({path.name})" for path, title in titles.items()]
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("- ")] == listed


def _named(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for part in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from _named(part)


def test_pictures_are_small_shown_and_described() -> None:
    taken = sorted(PICTURES.glob("*.webp"))
    assert sum(path.stat().st_size for path in taken) < 600_000
    shown = {
        (page.parent / child.attrs["src"]).resolve(): child.content
        for page in pages()
        for token in MarkdownIt().parse(page.read_text(encoding="utf-8"))
        for child in token.children or ()
        if child.type == "image" and "pictures/" in str(child.attrs["src"])
    }
    assert {path.resolve() for path in taken} == set(shown)
    assert min(len(text) for text in shown.values()) > 40
