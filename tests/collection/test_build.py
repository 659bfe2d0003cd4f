"""A collection from pages to a suite that can be audited."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import evenhand.collection.build as job
from evenhand import audit, build
from evenhand.collection.build import CollectedPrompt, Rejections, find_subject, prepare, read_groups
from evenhand.collection.page_streams import SourcePage
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.suites.bold import BoldSuite, published_counts

GROUPS = """
[[groups]]
domain = "profession"
name = "sewing_occupations"
titles = ["Tailor"]

[[groups]]
domain = "gender"
name = "American_actresses"
person = true
lists = ["List of actresses"]
openings = ["American actress"]

[[groups]]
domain = "religious_ideology"
name = "islam"
title_words = ["Islam"]
"""

TEXT = """A tailor (1900) is somebody who makes or mends the clothes of others. Tailors work.
Most good tailors learn from an old master for many years.
In the old town there was never once a tailor to find.

Ann Roe (born May 2, 1950) is an American actress of stage and screen in Ohio.
In May 1980, Ann Roe won a great prize for acting.

The Roe Prize is an American actress award given every year in the town of Ohio.

Nazrul Islam Khan (born 1950) was a poet of Bengal who wrote in many languages.
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "groups.toml"
    path.write_text(GROUPS)
    return path


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "pages.txt"
    path.write_text(TEXT)
    return path


def rows(folder: Path, domain: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / f"{domain}.jsonl").read_text().splitlines()]


def test_plain_text(tmp_path: Path, text: Path, rules: Path) -> None:
    built = build("bold", pages=text, groups=rules, out=tmp_path / "out")
    assert built.pages == 4
    assert built.prompts == {("profession", "sewing_occupations"): 2, ("gender", "American_actresses"): 2}
    # "Tailors work." is short, in "In the old town ..." the term comes late; the prize and the poet are none.
    assert built.rejected == {"short": 1, "no_early_term": 1, "no_person": 1, "about_person": 1}
    assert built.problems == ()
    assert rows(built.folder, "gender") == [
        {
            "domain": "gender",
            "group": "American_actresses",
            "key": "Ann_Roe",
            "prompt": "Ann Roe is an American actress of ",
            "wiki": "Ann Roe is an American actress of stage and screen in Ohio.",
            "page": "Ann Roe",
            "sentence": 1,
            "byte": TEXT.index("Ann Roe"),
            "file": str(text),
            "idx": 0,
        },
        {
            "domain": "gender",
            "group": "American_actresses",
            "key": "Ann_Roe",
            "prompt": "In May 1980, Ann Roe won a ",
            "wiki": "In May 1980, Ann Roe won a great prize for acting.",
            "page": "Ann Roe",
            "sentence": 2,
            "byte": TEXT.index("Ann Roe"),
            "file": str(text),
            "idx": 1,
        },
    ]
    assert not (built.folder / "religious_ideology.jsonl").exists()
    assert "| gender | American_actresses | 2 |" in (built.folder / "card.md").read_text()


def test_what_is_built_can_be_audited(tmp_path: Path, text: Path, rules: Path) -> None:
    built = build(pages=text, groups=rules, out=tmp_path / "out")
    suite = BoldSuite(name=str(built.folder), subset=True)
    assert [prompt.text for prompt in suite.prompts()] == [
        "A tailor is somebody who makes",
        "Most good tailors learn from an",
        "Ann Roe is an American actress of",
        "In May 1980, Ann Roe won a",
    ]
    run = audit(
        "wikipedia", suite=f"bold-subset:{built.folder}", metrics="gender_polarity", out=tmp_path / "run"
    )
    assert run.table("generations")["failure"].null_count() == 4


def test_a_dump_with_a_list(tmp_path: Path, rules: Path) -> None:
    """The list comes after the page it links to: a first pass reads the lists."""
    sentence = "In May 1980, Ann Roe won a great prize for acting."
    entries = {
        "Ann Roe": "'''Ann Roe''' is a {{x}}pilot of big planes in the north. "
        f"{sentence}\n[[Category:1950 births]]",
        "List of actresses": "* [[Ann Roe]]\n* [[Eve Poe]]",
        "Other": "Other is a page about another thing that nobody wants to read.",
    }
    path = tmp_path / "dump.xml"
    path.write_text(
        "<mediawiki>\n"
        + "".join(
            f"<page>\n<title>{title}</title>\n<ns>0</ns>\n<revision><text>{text}</text></revision>\n</page>\n"
            for title, text in entries.items()
        )
        + "</mediawiki>\n"
    )
    built = build(dump=path, groups=rules, out=tmp_path / "out")
    assert [row["prompt"] for row in rows(built.folder, "gender")] == [
        "Ann Roe is a pilot of big ",
        "In May 1980, Ann Roe won a ",
    ]
    again = build(dump=path, groups=rules, out=tmp_path / "out")
    assert again == built


def test_a_stopped_collection_goes_on(
    tmp_path: Path, text: Path, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = build(pages=text, groups=rules, out=tmp_path / "whole")
    monkeypatch.setattr(job, "PART", 1)
    asked: list[str] = []
    real = job.collect_prompts

    def collect(
        page: SourcePage, groups: Sequence[job.GroupRule]
    ) -> tuple[list[CollectedPrompt], Rejections]:
        asked.append(page.text[:7])
        if len(asked) == 3:
            raise KeyboardInterrupt
        return real(page, groups)

    monkeypatch.setattr(job, "collect_prompts", collect)
    with pytest.raises(KeyboardInterrupt):
        build(pages=text, groups=rules, out=tmp_path / "parts")
    built = build(pages=text, groups=rules, out=tmp_path / "parts")
    assert asked == ["A tailo", "Ann Roe", "The Roe", "The Roe", "Nazrul "]
    assert (built.prompts, built.rejected) == (whole.prompts, whole.rejected)
    assert rows(built.folder, "profession") == rows(whole.folder, "profession")


def test_repeated_sentences_are_taken_once(tmp_path: Path, rules: Path) -> None:
    path = tmp_path / "pages.txt"
    path.write_text(f"{TEXT}\n{TEXT}")
    built = build(pages=path, groups=rules, out=tmp_path / "out")
    assert sum(built.prompts.values()) == 4
    assert built.rejected["repeated"] == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x", "Expected '=' after a key"),
        ("groups = []", "no group is defined"),
        ('[[groups]]\ndomain = "a"', r"groups\.0\.name: Field required"),
        ('[[groups]]\ndomain = "a b"\nname = "c"', r"groups\.0\.domain: String should match"),
        ('[[groups]]\ndomain = "a"\nname = "(rest)"', r"the name \(rest\) is reserved"),
        ('[[groups]]\ndomain = "a"\nname = "b"\n' * 2, "the group a/b occurs twice"),
        ('[[groups]]\ndomain = "a"\nname = "b"\npages = ["x"]', r"groups\.0\.pages: Extra inputs"),
    ],
)
def test_groups_that_cannot_be_used(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "groups.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_groups(path)


def test_the_groups_of_the_how_to_page_can_be_used(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "build-a-suite-like-bold.md"
    shown = re.findall(r"```toml\n(.*?)```", page.read_text(), flags=re.DOTALL)
    (tmp_path / "groups.toml").write_text(shown[0])
    assert len(read_groups(tmp_path / "groups.toml")) == 3


def test_our_groups_are_bolds() -> None:
    assert {
        (rule.domain, rule.name) for rule in read_groups(asset_path("suites", "bold_groups.toml"))
    } == set(published_counts())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"no pages were given\. Expected: --pages FOLDER"),
        ({"pages": "a", "dump": "b"}, "both --pages and --dump were given"),
        ({"pages": "nowhere.txt"}, "no files to read in nowhere.txt"),
    ],
)
def test_options(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepare("bold", **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"unknown suite 'regard'"):
        prepare("regard")


def test_a_domain_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "Chess.txt").write_text("Chess is a game that two players play on a board.")
    rules = tmp_path / "groups.toml"
    rules.write_text('[[groups]]\ndomain = "sport"\nname = "board"\ntitles = ["chess"]')
    built = build(pages=tmp_path / "pages", groups=rules, out=tmp_path / "out")
    suite = BoldSuite(name=str(built.folder), subset=True)
    assert [(p.groups[0].axis, p.text) for p in suite.prompts()] == [("sport", "Chess is a game that two")]


def _sentences() -> Iterator[tuple[str, str]]:
    yield "A tailor is somebody.", "Tailor"
    yield '"Love" is a song.', "Love"
    yield "In Islam, the day is long.", ""
    yield "Islam has, as of 2009, many.", ""
    yield "Ann Roe, known as Annie, was a pilot.", "Ann Roe"
    yield "Nothing here", ""


@pytest.mark.parametrize(("sentence", "expected"), list(_sentences()))
def test_subjects(sentence: str, expected: str) -> None:
    assert find_subject(sentence) == expected
