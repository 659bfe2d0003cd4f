"""Our regard sentences: balanced, masked, unique, and no run of five words shared with published texts."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import TypedDict

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "src" / "evenhand" / "assets" / "regard"
LABELS = ("negative", "neutral", "positive", "other")
PREFIXES = {
    "respect": (
        "XYZ was known for",
        "XYZ was described as",
        "XYZ was regarded as",
        "XYZ was thought of as",
        "XYZ was well-known for",
    ),
    "occupation": (
        "XYZ worked as",
        "XYZ had a job as",
        "XYZ had a part-time job as",
        "XYZ earned money by",
        "XYZ started working as",
    ),
}
WORD = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")
GROUP_WORD = re.compile(
    r"\b(african|asian|american|arab|buddhist|catholic|chinese|christian|european|gay|heterosexual|hindu|hispanic"
    r"|homosexual|indian|islam|jew|jewish|lesbian|mexican|muslim|transgender)s?\b",
    re.IGNORECASE,
)


class Row(TypedDict):
    id: str
    text: str
    label: str
    context: str
    pair: str | None
    sentiment: str | None


def words(text: str) -> list[str]:
    """Lower-case words, punctuation dropped; a hyphen or an apostrophe inside a word keeps it whole."""
    return WORD.findall(text.lower().replace("’", "'"))


def five_grams(text: str) -> set[tuple[str, ...]]:
    """Runs of five words, with inner hyphens and apostrophes kept and, more strictly, cut there too."""
    runs = (words(text), re.findall(r"[a-z0-9]+", text.lower()))
    return {tuple(run[i : i + 5]) for run in runs for i in range(len(run) - 4)}


def exempt() -> set[tuple[str, ...]]:
    """Runs wholly within a template prefix plus at most one article after it: the only ones we may share."""
    openings = [prefix for prefixes in PREFIXES.values() for prefix in prefixes]
    return {
        gram
        for opening in openings
        for tail in ("", "a", "an", "the")
        for gram in five_grams(f"{opening} {tail}")
    }


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    with (FOLDER / "regard.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def published(data: Path) -> list[str]:
    """The 302 published texts (train 212, dev 60, test 30)."""
    texts: list[str] = []
    for part in ("train", "dev", "test"):
        path = data / "regard" / f"regard_{part}.tsv"
        if not path.is_file():
            pytest.skip(f"published regard annotations not found at {path}: set EVENHAND_DATA")
        lines = path.read_text(encoding="utf-8").splitlines()
        texts += [line.split("\t", 1)[1] for line in lines if line]
    return texts


def test_fields_are_complete_and_closed(rows: list[Row]) -> None:
    for row in rows:
        assert list(row) == ["id", "text", "label", "context", "pair", "sentiment"]
        assert row["label"] in LABELS
        assert row["context"] in PREFIXES
        assert (row["pair"] is None) == (row["sentiment"] is None), row["id"]
        assert row["sentiment"] in (None, "negative", "neutral", "positive")
    assert len({row["id"] for row in rows}) == len(rows)


def test_texts_are_unique_and_of_the_stated_length(rows: list[Row]) -> None:
    assert len({" ".join(words(row["text"])) for row in rows}) == len(rows)
    lengths = [len(row["text"].split()) for row in rows]
    assert (min(lengths), max(lengths)) == (8, 36)
    assert all(row["text"] == " ".join(row["text"].split()) for row in rows)


def test_the_mask_is_the_first_token_and_the_only_one(rows: list[Row]) -> None:
    for row in rows:
        assert re.match(r"XYZ\b", row["text"]), row["text"]
        assert len(re.findall("xyz", row["text"], re.IGNORECASE)) == 1, row["text"]


def test_counts_are_those_of_the_card(rows: list[Row]) -> None:
    counts = Counter((row["context"], row["label"]) for row in rows)
    card = (FOLDER / "card.md").read_text(encoding="utf-8")
    for context in PREFIXES:
        cells = [counts[context, label] for label in LABELS]
        assert f"| {context} | {' | '.join(map(str, cells))} | {sum(cells)} |" in card
    totals = [sum(counts[context, label] for context in PREFIXES) for label in LABELS]
    assert f"| all | {' | '.join(map(str, totals))} | {sum(totals):,} |" in card


def test_labels_are_balanced_in_each_context(rows: list[Row]) -> None:
    for context in PREFIXES:
        counts = Counter(row["label"] for row in rows if row["context"] == context)
        three = [counts[label] for label in LABELS[:3]]
        assert min(three) >= 400
        assert max(three) <= 1.15 * min(three)
        assert counts["other"] >= 75


def test_templates_are_about_even(rows: list[Row]) -> None:
    openings: Counter[str] = Counter()
    for row in rows:
        match = [p for p in PREFIXES[row["context"]] if row["text"].startswith(f"{p} ")]
        openings[match[0] if match else "free"] += 1
    free = openings.pop("free")
    assert 0.10 <= free / len(rows) <= 0.20
    assert len(openings) == 10
    assert max(openings.values()) <= 1.6 * min(openings.values())


def test_pronouns_do_not_give_the_label_away(rows: list[Row]) -> None:
    """In every label, rows with only he-forms and rows with only she-forms differ by at most seven points."""
    for label in LABELS:
        bags = [set(words(row["text"])) for row in rows if row["label"] == label]
        he = sum(bool(bag & {"he", "his", "him"}) and not bag & {"she", "her"} for bag in bags)
        she = sum(bool(bag & {"she", "her"}) and not bag & {"he", "his", "him"} for bag in bags)
        assert abs(he - she) / len(bags) <= 0.07, (label, he, she)


def test_no_row_names_a_group(rows: list[Row]) -> None:
    assert [row["text"] for row in rows if GROUP_WORD.search(row["text"])] == []


def test_hard_pairs_differ_in_regard_and_part_it_from_sentiment(rows: list[Row]) -> None:
    pairs: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["pair"] is not None:
            pairs[row["pair"]].append(row)
    assert len(pairs) >= 100
    for name, members in pairs.items():
        assert len(members) >= 2, name
        assert len({row["label"] for row in members}) == len(members), name
        assert any(row["label"] != row["sentiment"] for row in members), name


def test_exempt_runs_stop_at_the_article() -> None:
    # "XYZ worked as a" has four words; "XYZ had a job as a" has six, hence the runs from words 1 and 2.
    assert ("xyz", "had", "a", "job", "as") in exempt()
    assert ("had", "a", "job", "as", "a") in exempt()
    assert ("a", "job", "as", "a", "cook") not in exempt()
    assert ("xyz", "was", "known", "for", "his") not in exempt()


def test_no_run_of_five_words_is_shared_with_the_published_texts(
    rows: list[Row], published: list[str]
) -> None:
    assert len(published) == 302
    theirs = set().union(*map(five_grams, published)) - exempt()
    shared = {row["id"]: grams for row in rows if (grams := five_grams(row["text"]) & theirs)}
    assert shared == {}
