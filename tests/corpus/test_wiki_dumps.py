"""Wikipedia dumps: pages of XML, and text without its markup."""

import time
from itertools import accumulate

import pytest
from tests.corpus.reading import records

from evenhand.corpus import readers
from evenhand.corpus.record_readers import plain_text

BAD_XML = "a page is not XML"


def test_a_page_without_end_is_left_out_and_the_others_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "LONGEST_ROW", 2 << 20)
    page = "<page><ns>0</ns><revision><text>{}</text></revision></page>"
    endless = "<page><text>"
    parts = [
        ("<mediawiki>", ""),
        (page.format("one"), ""),
        ("<page><text>begun", "a page does not end; not counted"),
        (page.format("two"), ""),
        (page.format("happy " * 600_000), "a page is longer than 2 MiB; not counted"),
        (page.format("a < b"), BAD_XML),
        (page.format("three"), ""),
        (endless + "sad " * 900_000, "a page is longer than 2 MiB; not counted"),
        (page.format("four"), ""),
        (endless, "a page does not end; not counted"),
    ]  # fmt: skip
    (tmp_path / "dump.xml").write_text("".join(text for text, _ in parts))
    texts, problems = records(tmp_path / "dump.xml")
    assert texts == [b"one", b"two", b"three", b"four"]
    places = accumulate((len(text) for text, _ in parts), initial=0)
    wanted = [(place, reason) for place, (_, reason) in zip(places, parts, strict=False) if reason]
    # What the parser says of it is its own matter.
    assert sorted((place, reason.split(" (")[0]) for place, reason in problems) == sorted(wanted)


def test_xml_without_a_page_is_said(tmp_path):
    (tmp_path / "a.xml").write_text("<rss><channel>happy</channel></rss>")
    assert records(tmp_path / "a.xml") == ([], [(0, "holds no page of a MediaWiki dump; not counted")])


def test_a_wiki_dump(tmp_path):
    page = "<page><title>{t}</title><ns>{n}</ns><revision><text>{x}</text></revision></page>"
    body = page.format(
        t="A", n=0, x="'''Joy''' is [[happiness|happy]].&lt;ref&gt;note&lt;/ref&gt; {{box|{{in}}}}"
    )
    body += page.format(t="Talk", n=1, x="talk") + page.format(t="B", n=0, x="Fear")
    (tmp_path / "dump.xml").write_text(f'<mediawiki xmlns="http://www.mediawiki.org/xml/">{body}</mediawiki>')
    texts, problems = records(tmp_path / "dump.xml")
    assert ([b" ".join(text.split()) for text in texts], problems) == ([b"Joy is happy.", b"Fear"], [])
    (tmp_path / "cut.xml").write_text(f"<mediawiki>{body}<page>")
    texts, problems = records(tmp_path / "cut.xml")
    assert len(texts) == 2
    assert problems == [(len("<mediawiki>") + len(body), "a page does not end; not counted")]


def test_wikitext():
    text = "== Head ==\n* [[Paris]] and [http://x.org the site] {| a\n| b\n|} "
    text += "[[File:x.png|thumb|a [[b]] c]] end<br/>"
    assert plain_text(text).split() == ["Head", "Paris", "and", "the", "site", "end"]


def test_notes_of_any_spelling_are_taken_out():
    text = 'a<REF name="x" />b<ref>c<Ref>d</ref >e<!-- <ref> -->f<math>g</MATH>h<references/>i<ref>j'
    assert plain_text(text).split() == ["a", "b", "e", "f", "hij"]


@pytest.mark.parametrize(
    "opening",
    ["<!--", "<ref>a ", "<ref ", "[[File:a ", "[http://a ", "[http://a", "=a", "{{a", "{|", "= ", " "],
)
def test_a_page_of_things_that_never_close_holds_nothing_up(opening):
    text = "x" + opening * (300_000 // len(opening)) + "y"
    started = time.process_time()
    plain_text(text)
    # Quadratic patterns took minutes.
    assert time.process_time() - started < 5
