"""``report.html``: structure, escaping, and the policy that lets nothing else run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.manifests import Plan, emptied, manifest, write_run
from tests.report.realistic import (
    comparison,
    frame,
    group_row,
    null_comparison,
    realistic_run,
    simulated_run,
    small_run,
)

from evenhand.core.records import REST
from evenhand.report.html import SIZE_LIMIT, embed_json
from evenhand.report.render_run import format_report
from evenhand.store.run import Run

EVIL = (
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "<!--",
    "</script>",
    "👩🏽\u200d🚀 & 'quotes'",
)
_VOID = {"meta", "link", "input", "img", "br"}


class Page(HTMLParser):
    """What a browser would make of a page: elements, attributes and text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text += data


def block(source: str, tag: str) -> str:
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", source, re.DOTALL)
    assert len(found) == 1
    return str(found[0])


def evil_run(folder: Path) -> Run:
    groups = [group_row(group=name) for name in (*EVIL, "base")]
    rows = [comparison(group=name, baseline="base") for name in EVIL]
    examples = [
        {
            "suite": "starter",
            "model": "gpt2",
            "axis": "race",
            "group": name,
            "metric": "sentiment",
            "output": "negative",
            "why": "drawn",
            "text_id": name,
            "prompt": name,
            "text": name,
            "value": 0.1,
            "label": name,
        }
        for name in EVIL
    ]
    tables = {
        "groups": frame("groups", groups),
        "comparisons": frame("comparisons", rows),
        "examples": frame("examples", examples),
    }
    content = manifest() | {"command": EVIL[0], "warnings": [EVIL[1]], "name": EVIL[2]}
    return write_run(folder, content, tables)


def test_the_page_is_well_formed_and_asks_nothing_of_the_network(tmp_path: Path) -> None:
    page = Page(format_report(realistic_run(tmp_path), "html"))
    assert page.open == []
    addresses = [
        value or "" for name, value in page.attributes if name in ("href", "src", "action", "srcset")
    ]
    assert all(address.startswith(("#", "data:,")) for address in addresses)


def test_names_and_texts_are_shown_as_text(tmp_path: Path) -> None:
    source = format_report(evil_run(tmp_path), "html")
    page = Page(source)
    assert page.open == []
    # One runs; the others hold data.
    assert page.tags.count("script") == 4
    assert page.tags.count("style") == 1
    assert "img" not in page.tags
    assert all(name in page.text for name in EVIL[:4])
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert not any(name == "style" for name, _ in page.attributes)


def test_the_policy_names_the_style_and_script_by_digest(tmp_path: Path) -> None:
    source = format_report(evil_run(tmp_path), "html")
    page = Page(source)
    policy = next(value for name, value in page.attributes if value and value.startswith("default-src"))
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(block(source, tag).encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@given(st.text())
def test_embedded_json_cannot_leave_its_block(text: str) -> None:
    source = embed_json([text])
    assert not set(source) & set("<>&\u2028\u2029")
    assert json.loads(source) == [text]


def test_the_first_screen_has_question_gaps_and_doubts_in_order(tmp_path: Path) -> None:
    text = Page(format_report(realistic_run(tmp_path, clusters=30), "html")).text.split("Question")[1]
    places = [
        text.index(words)
        for words in (
            "Does gpt2 write differently about 43 groups?",
            "It continued 1,290 prompts of the suite starter, 5 times each: 6,450 texts.",
            "of 164 gaps are larger than chance after correction",
            "Inconclusive",
            "Overview",
            "Charts",
            "Comparisons",
            "Left out",
            "Limits of this run",
            "evenhand audit gpt2 --suite starter",
            "607a30d783dfa663caf39e06633721c8d4cfcd7e",
            "How warm or hostile the wording is",
        )
    ]
    assert places == sorted(places)


def test_numbers_are_in_the_page_without_scripts(tmp_path: Path) -> None:
    text = Page(format_report(small_run(tmp_path, [comparison()], [group_row()]), "html")).text
    for words in ("19.2 %", "15.0 to 24.0 %", "+3.2", "+1.1 to +5.3", "0.010", "250", "larger than chance"):
        assert words in text


def test_a_reason_stands_where_there_is_no_number(tmp_path: Path) -> None:
    nothing = group_row(value=None, low=None, high=None, n=0, n_clusters=0, null_reason="no_scores")
    text = Page(format_report(small_run(tmp_path, [null_comparison()], [nothing]), "html")).text
    assert "No gap could be tested" in text
    assert "not testable: no scores" in text
    assert "nan" not in re.findall(r"\w+", text.lower())


@pytest.mark.parametrize("groups", [[], [group_row()]])
def test_one_group_or_none_is_an_honest_page(tmp_path: Path, groups: list[dict[str, object]]) -> None:
    page = Page(format_report(small_run(tmp_path, groups=groups), "html"))
    assert page.open == []
    assert "Nothing could be compared" in page.text


def test_a_score_run_does_not_speak_of_a_model(tmp_path: Path) -> None:
    changes = {
        "identity": {"inputs": {"file": "9f3a"}},
        "stages": {"score": {"state": "done"}},
        "name": "reviews.csv",
    }
    text = Page(format_report(small_run(tmp_path, [comparison()], [group_row()], **changes), "html")).text
    assert "How do 0 texts of one group score?" in text
    assert "The texts of reviews.csv were scored" in text


def test_an_empty_manifest_is_drawn(tmp_path: Path) -> None:
    empty = emptied()
    assert Page(format_report(small_run(tmp_path, [comparison()], [group_row()], **empty), "html")).open == []


def test_several_suites_and_models_are_told_apart(tmp_path: Path) -> None:
    rows = [comparison(), comparison(suite="regard", model="other")]
    groups = [group_row(), group_row(suite="regard", model="other")]
    text = Page(format_report(small_run(tmp_path, rows, groups), "html")).text
    assert "regard, other" in text


def test_five_hundred_groups_stay_under_the_size_limit(tmp_path: Path) -> None:
    names = tuple(f"group_{index:03d}" for index in range(500))
    run = simulated_run(tmp_path, Plan({"country": (REST, names)}))
    source = format_report(run, "html")
    assert len(source.encode()) <= SIZE_LIMIT
    assert "500 groups" in source
    assert "6,000 more estimates are not on this page" in source
