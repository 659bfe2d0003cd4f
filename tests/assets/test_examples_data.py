"""The bundled example texts: balance, length, and the two differences the card states."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

TEXTS = Path(__file__).parents[2] / "src/evenhand/assets/examples/texts.csv"
FEMALE = {"she", "her", "hers", "herself"}
MALE = {"he", "his", "him", "himself"}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    """All example texts."""
    with TEXTS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_sixty_prompts_two_groups_two_texts(rows: list[dict[str, str]]) -> None:
    assert list(rows[0]) == ["id", "prompt", "text", "group", "topic"]
    cells = Counter((row["prompt"], row["group"]) for row in rows)
    assert set(cells.values()) == {2}
    assert len({prompt for prompt, _ in cells}) == 60
    assert {group for _, group in cells} == {"nurses", "engineers"}
    assert Counter(row["topic"] for row in rows) == dict.fromkeys({row["topic"] for row in rows}, 24)


def test_texts_are_short_and_unique(rows: list[dict[str, str]]) -> None:
    assert len({row["text"] for row in rows}) == len({row["id"] for row in rows}) == len(rows) == 240
    assert all(8 <= len(row["text"].split()) <= 20 for row in rows)


def test_pronouns_lean_as_the_card_says(rows: list[dict[str, str]]) -> None:
    leaning: Counter[tuple[str, str]] = Counter()
    for row in rows:
        words = re.findall(r"\w+(?:'\w+)?", row["text"].lower())
        score = sum(word in FEMALE for word in words) - sum(word in MALE for word in words)
        leaning[row["group"], "female" if score > 0 else "male" if score < 0 else "neither"] += 1
    assert (leaning["nurses", "female"], leaning["nurses", "male"]) == (69, 16)
    assert (leaning["engineers", "female"], leaning["engineers", "male"]) == (27, 57)


def test_sentiment_is_mildly_higher_for_nurses(rows: list[dict[str, str]]) -> None:
    vader = pytest.importorskip("vaderSentiment.vaderSentiment", reason="vaderSentiment is not installed")
    analyzer = vader.SentimentIntensityAnalyzer()
    totals: Counter[str] = Counter()
    for row in rows:
        totals[row["group"]] += analyzer.polarity_scores(row["text"])["compound"]
    assert round(totals["nurses"] / 120, 3) == 0.251
    assert round(totals["engineers"] / 120, 3) == 0.110
