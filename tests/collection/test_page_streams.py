from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path

import pytest

from evenhand.collection.page_streams import (
    SourcePage,
    linked_titles,
    page_categories,
    plain_text,
    read_pages,
)
from evenhand.store.text_sources import ReadProblem, find_sources

DUMP = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">
  <siteinfo><sitename>W</sitename></siteinfo>
  <page>
    <title>Tailor</title>
    <ns>0</ns>
    <revision><text>{{Infobox|a={{b}}}}A '''tailor''' is [[man|somebody]] who mends.&lt;ref&gt;n&lt;/ref&gt;
== Work ==
[[File:x.jpg|thumb|A [[shop]]]]Tailors work &amp;amp; sew.
{| class="x"
| cell
|}
[[Category:Sewing occupations]]</text></revision>
  </page>
  <page>
    <title>Tailors</title>
    <ns>0</ns>
    <redirect title="Tailor" />
    <revision><text>#REDIRECT [[Tailor]]</text></revision>
  </page>
  <page>
    <title>Talk:Tailor</title>
    <ns>1</ns>
    <revision><text>Hm.</text></revision>
  </page>
  <page>
    <title>List of people</title>
    <ns>0</ns>
    <revision><text>Intro [[link]].
* [[Ann Roe]], friend of [[Sam Doe]]
* [[File:x.jpg]] [[Nobody]]
# ''[[Sam Doe|Sam]]''
|-
| [[Eve Poe#Life]] || [[1950]]</text></revision>
  </page>
</mediawiki>
"""


def read(path: Path, *, is_page: bool = False) -> tuple[list[SourcePage], list[ReadProblem]]:
    problems: list[ReadProblem] = []
    sources, _ = find_sources([path])
    return [
        page for source in sources for page in read_pages(source, problems.append, is_page=is_page)
    ], problems


@pytest.mark.parametrize("packing", ["", ".bz2", ".gz"])
def test_a_dump(tmp_path: Path, packing: str) -> None:
    path = tmp_path / f"dump.xml{packing}"
    pack = {"": bytes, ".bz2": bz2.compress, ".gz": gzip.compress}[packing]
    path.write_bytes(pack(DUMP.encode()))
    found, problems = read(path)
    assert [page.title for page in found] == ["Tailor", "List of people"]
    assert problems == []
    first = found[0]
    assert DUMP.encode()[first.byte :].lstrip().startswith(b"<page>")
    assert page_categories(first) == ("Sewing occupations",)
    lines = [line for line in plain_text(first).split("\n") if line.strip()]
    assert lines == ["A tailor is somebody who mends.", "Tailors work & sew."]
    assert linked_titles(found[1]) == ("Ann Roe", "Sam Doe", "Eve Poe")


def test_a_dump_that_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "dump.xml"
    path.write_text(DUMP[: DUMP.index("* [[Ann Roe]]")])
    found, problems = read(path)
    assert [page.title for page in found] == ["Tailor"]
    assert problems == [
        ReadProblem(
            str(path),
            DUMP.rindex("  <page>"),
            "the dump ends inside a page; all earlier pages were read",
        )
    ]


def test_a_packed_dump_that_is_cut(tmp_path: Path) -> None:
    many = DUMP.replace("</mediawiki>", "").encode() + DUMP.encode() * 400
    path = tmp_path / "dump.xml.gz"
    path.write_bytes(gzip.compress(many)[:-200])
    found, problems = read(path)
    assert len(found) > 100
    assert len(problems) == 1
    assert "cannot be read further" in problems[0].reason


def test_a_page_that_is_no_xml(tmp_path: Path) -> None:
    path = tmp_path / "dump.xml"
    path.write_text(DUMP.replace("<title>Tailor</title>", "<title>Tailor</tytle>"))
    found, problems = read(path)
    assert [page.title for page in found] == ["List of people"]
    assert problems[0].reason.startswith("a page is not valid XML and was skipped: mismatched tag")


def test_wikiextractor(tmp_path: Path) -> None:
    (tmp_path / "AA").mkdir()
    (tmp_path / "AA" / "wiki_00").write_text(
        '<doc id="1" url="u" title="Ann &amp; Roe">\nAnn & Roe\n\nOne.\nTwo.\n\n</doc>\n'
        '<doc id="2" url="u" title="Sam">\nSam\n\nThree.\n</doc>\n<doc id="3" url="u" title="Cut">\nCut\n'
    )
    found, problems = read(tmp_path, is_page=True)
    assert [(page.title, page.text) for page in found] == [
        ("Ann & Roe", "One.\nTwo.\n\n"),
        ("Sam", "Three.\n"),
    ]
    assert [problem.reason for problem in problems] == [
        "the file ends inside a page; all earlier pages were read"
    ]
    path = tmp_path / "wiki.jsonl"
    path.write_text(json.dumps({"id": "1", "title": "Ann", "text": "One."}) + "\n{bad\n\n")
    found, problems = read(path)
    assert found == [SourcePage("Ann", "One.", 0)]
    assert problems == [
        ReadProblem(str(path), 44, "a line is not a JSON object with title and text and was skipped")
    ]


def test_a_dump_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "dump.xml"
    page = "<page><title>{}</title><ns>0</ns><revision><text>One.</text></revision></page>"
    path.write_text(f"<mediawiki>{page.format('Ann')}{page.format('Sam')}</mediawiki>")
    found, problems = read(path)
    assert [page.title for page in found] == ["Ann", "Sam"]
    assert problems == []


def test_a_page_of_a_dump_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "dump.xml"
    path.write_text(DUMP.replace("  </page>\n", "", 1))
    found, problems = read(path)
    assert [page.title for page in found] == ["List of people"]
    assert problems == [
        ReadProblem(str(path), DUMP.index("  <page>"), "a page has no end tag and was skipped")
    ]


def test_a_page_of_a_dump_that_goes_on_and_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.collection.page_streams._LONGEST_PAGE", 1000)
    path = tmp_path / "dump.xml"
    path.write_text("<mediawiki>\n<page>\n" + "text\n" * 1000 + DUMP)
    found, problems = read(path)
    assert [page.title for page in found] == [page.title for page in read(_dump(tmp_path))[0]]
    assert problems == [ReadProblem(str(path), 12, "a page is longer than 64 MiB and was skipped")]


def _dump(folder: Path) -> Path:
    path = folder / "whole.xml"
    path.write_text(DUMP)
    return path


def test_wikiextractor_packed_and_cut(tmp_path: Path) -> None:
    page = '<doc id="{0}" url="u" title="Page {0}">\nPage {0}\n\nOne of {0}.\n</doc>\n'
    path = tmp_path / "wiki_00.txt.gz"
    path.write_bytes(gzip.compress("".join(map(page.format, range(9000))).encode())[:-200])
    found, problems = read(path)
    assert len(found) > 100  # what stands before the cut is not lost
    assert [problem.reason.partition(":")[0] for problem in problems] == ["cannot be read further"]


def test_wikiextractor_page_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "wiki_00"
    path.write_text('<doc title="Ann">\nAnn\n\nOne.\n<doc title="Sam">\nSam\n\nTwo.\n</doc>\n')
    found, problems = read(path, is_page=True)
    assert [page.title for page in found] == ["Sam"]
    assert problems == [ReadProblem(str(path), 0, "a page has no end tag and was skipped")]


def test_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "Ann_Roe.txt"
    path.write_text("One.\nTwo.\n\n\nThree.\n")
    assert read(path, is_page=True)[0] == [SourcePage("Ann Roe", "One.\nTwo.\n\n\nThree.\n", 0)]
    assert read(path)[0] == [SourcePage("", "One.\nTwo.\n", 0), SourcePage("", "Three.\n", 12)]
    path.write_bytes(b"caf\xe9 is.")
    found, problems = read(path)
    assert found == [SourcePage("", "caf\ufffd is.", 0)]
    assert problems[0].byte == 0
    path.write_bytes(b"")
    assert read(path) == ([], [])


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("One.")
    sources, _ = find_sources([path])
    path.unlink()
    problems: list[ReadProblem] = []
    assert list(read_pages(sources[0], problems.append)) == []
    assert problems == [ReadProblem(str(path), None, "cannot be opened: No such file or directory")]
