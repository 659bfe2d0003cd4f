"""The starter prompts: shape, balance, masking, and that no words are borrowed from BOLD."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PROMPTS = ROOT / "src/evenhand/assets/starter/prompts.jsonl"

GROUPS_PER_DOMAIN = {
    "gender": 2,
    "race": 4,
    "profession": 18,
    "religious_ideology": 7,
    "political_ideology": 12,
}
MASKS = {"gender": "Person", "race": "Person"}  # the other domains: XYZ (BOLD, section 3.3)


class Row(NamedTuple):
    """One line of prompts.jsonl."""

    domain: str
    group: str
    template: str
    text: str
    mentions: list[str]
    mask: str


def whole(mention: str) -> re.Pattern[str]:
    """The pattern of a mention on word boundaries; a hyphen joins words."""
    return re.compile(rf"(?<![\w-]){re.escape(mention)}(?![\w-])")


def masked(row: Row) -> str:
    """The text with every mention replaced by the row's mask."""
    text = row.text
    for mention in row.mentions:
        text = whole(mention).sub(row.mask, text)
    return text


def five_grams(text: str) -> set[tuple[str, ...]]:
    """Runs of five lower-case words, cut at white space and, more strictly, at every non-word character."""
    runs: set[tuple[str, ...]] = set()
    for words in (text.lower().split(), re.findall(r"\w+", text.lower())):
        runs.update(tuple(words[i : i + 5]) for i in range(len(words) - 4))
    return runs


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """All prompts of the asset."""
    return [Row(**json.loads(line)) for line in PROMPTS.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def bold(data: Path) -> list[dict[str, str]]:
    """All rows of BOLD, where it is there."""
    files = sorted((data / "bold").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def test_ten_prompts_for_each_of_43_groups(rows: list[Row]) -> None:
    counts = Counter((row.domain, row.group) for row in rows)
    assert set(counts.values()) == {10}
    assert Counter(domain for domain, _ in counts) == GROUPS_PER_DOMAIN
    assert len(rows) == 430  # 43 x 10


def test_every_group_of_a_domain_fills_the_same_ten_templates(rows: list[Row]) -> None:
    templates = defaultdict(set)
    for row in rows:
        templates[row.domain, row.group].add(row.template)
    for (domain, _), names in templates.items():
        assert names == {f"{domain}-{number:02d}" for number in range(1, 11)}


def test_prompts_have_six_to_nine_words_and_stop_in_mid_sentence(rows: list[Row]) -> None:
    for row in rows:
        assert 6 <= len(row.text.split()) <= 9, row.text
        assert row.text == " ".join(row.text.split())
        assert row.text[0].isupper()
        assert row.text[-1].isalpha(), row.text


def test_texts_are_unique(rows: list[Row]) -> None:
    assert len({row.text for row in rows}) == len(rows)


def test_each_mention_occurs_once_as_whole_words(rows: list[Row]) -> None:
    for row in rows:
        assert row.mentions
        for mention in row.mentions:
            assert len(whole(mention).findall(row.text)) == 1, row


def test_masks_follow_the_domain(rows: list[Row]) -> None:
    assert all(row.mask == MASKS.get(row.domain, "XYZ") for row in rows)


def test_masked_prompts_of_one_template_are_one_string(rows: list[Row]) -> None:
    """What is left after masking tells nothing of the group: groups are exact counterfactuals."""
    strings = defaultdict(set)
    for row in rows:
        strings[row.template].add(masked(row))
    assert {len(variants) for variants in strings.values()} == {1}
    assert len(set.union(*strings.values())) == 50


def test_no_mention_follows_an_indefinite_article(rows: list[Row]) -> None:
    """ "An Person" would give away that the masked word starts with a vowel."""
    for row in rows:
        assert not re.search(rf"\ban? {re.escape(row.mentions[0])}\b", row.text, re.IGNORECASE), row.text


def test_a_profession_group_uses_at_least_three_professions_of_its_own(rows: list[Row]) -> None:
    groups = defaultdict(set)
    for row in rows:
        if row.domain == "profession":
            groups[row.group].update(row.mentions)
    assert min(len(professions) for professions in groups.values()) >= 3
    owners = Counter(profession for professions in groups.values() for profession in professions)
    assert set(owners.values()) == {1}


def test_masked_prompts_carry_no_sentiment(rows: list[Row]) -> None:
    vader = pytest.importorskip("vaderSentiment.vaderSentiment", reason="vaderSentiment is not installed")
    analyzer = vader.SentimentIntensityAnalyzer()
    assert {analyzer.polarity_scores(masked(row))["compound"] for row in rows} == {0.0}


def test_five_grams_by_hand() -> None:
    assert five_grams("One two, three-four five") == {("one", "two", "three", "four", "five")}
    assert five_grams("Too short for that") == set()


def test_domains_and_groups_are_spelled_as_in_bold(rows: list[Row], bold: list[dict[str, str]]) -> None:
    assert {(r.domain, r.group) for r in rows} == {(r["domain"], r["group"]) for r in bold}


def test_no_five_words_in_a_row_come_from_bold(rows: list[Row], bold: list[dict[str, str]]) -> None:
    own = {run: row.text for row in rows for run in five_grams(row.text)}
    shared = {
        own[run] for r in bold for field in ("prompt", "wiki") for run in five_grams(r[field]) if run in own
    }
    assert not shared
