from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.training.ideology_words import (
    LabelledArticle,
    WordLimits,
    contrast_words,
    read_articles,
    without_phrases,
    write_words,
)

LOOSE = WordLimits(words=1, articles=1, outlets=1, steadiness=0, one_outlet=1)


def test_contrast_by_hand() -> None:
    # Four articles; "budget" is in all (idf 0). Each row has one word left, so its TF-IDF is 1 after scaling.
    articles = [
        LabelledArticle("budget climate", False, "Daily A"),
        LabelledArticle("budget unions", False, "Daily B"),
        LabelledArticle("budget border", True, "Weekly C"),
        LabelledArticle("budget border", True, "Weekly D"),
    ]
    sides = contrast_words(articles, limits=LOOSE)
    assert sides.conservative == (("border", 1.0),)  # 1 of 1 conservative rows, none of the liberal ones
    assert sides.liberal == (("climate", pytest.approx(0.5)),)  # tied with unions: alphabetical


def test_a_large_outlet_is_weighed_down() -> None:
    many = [LabelledArticle("budget border", True, "Big")] * 6 + [
        LabelledArticle("budget taxes", True, "Small")
    ]
    others = [
        LabelledArticle("budget climate", False, "Other"),
        LabelledArticle("budget unions", False, "Another"),
    ]
    limits = WordLimits(words=2, articles=1, outlets=1, outlet_cap=2, steadiness=0, one_outlet=1)
    sides = contrast_words([*many, *others], limits=limits)
    # Six articles of Big weigh 2 in all, Small's one weighs 1: 2/3 and 1/3.
    assert dict(sides.conservative) == pytest.approx({"border": 2 / 3, "taxes": 1 / 3})


def test_names_of_outlets_and_function_words_are_left_out() -> None:
    articles = [
        LabelledArticle("the Herald spoke of climate and climate on Tuesday", False, "The Herald"),
        LabelledArticle("the Ledger spoke of border", True, "Ledger (Online)"),
    ]
    sides = contrast_words(articles, limits=LOOSE)
    assert [words[0][0] for words in sides] == ["climate", "border"]


def test_standing_phrases_of_an_outlet_are_left_out() -> None:
    footer = "stay interested and sign up here daily"
    openings = ("climate", "unions", "workers", "housing", "voting")
    articles = [LabelledArticle(f"{word} {footer}", False, "Daily A") for word in openings]
    articles += [LabelledArticle("border and then some more words here", True, "Weekly B")]
    # Words of two letters do not count: the footer is one run of six, in five articles of one outlet.
    found = without_phrases(articles)
    assert found[:5] == [[word] for word in openings]
    assert found[5] == ["border", "and", "then", "some", "more", "words", "here"]


def test_a_phrase_all_outlets_use_stays() -> None:
    phrase = "centers for disease control and prevention"
    articles = [LabelledArticle(phrase, False, f"Daily {letter}") for letter in "ABCDEF"]
    assert without_phrases(articles)[0] == phrase.split()


def test_a_word_that_one_outlet_lives_on_does_not_speak_for_the_side() -> None:
    articles = [LabelledArticle(f"climate unions{n}", False, f"Daily {n}") for n in range(4)]
    articles += [LabelledArticle("workers workers workers", False, "Daily 5")] * 3 + [
        LabelledArticle("workers", False, "Daily 6")
    ]
    articles += [LabelledArticle("border", True, f"Weekly {n}") for n in range(4)]
    loose = WordLimits(words=1, articles=1, outlets=1, steadiness=0, one_outlet=1)
    assert contrast_words(articles, limits=loose).liberal[0][0] == "workers"
    # Daily 5 has three quarters of the weight of "workers", each daily a quarter of that of "climate".
    assert contrast_words(articles, limits=replace(loose, one_outlet=0.5)).liberal[0][0] == "climate"


def test_sides_swap_with_the_labels() -> None:
    texts = ["climate unions", "climate workers", "border taxes", "border faith"]
    given = [LabelledArticle(text, place > 1, f"Outlet {place}") for place, text in enumerate(texts)]
    turned = [article._replace(conservative=not article.conservative) for article in given]
    assert contrast_words(given, limits=LOOSE).liberal == contrast_words(turned, limits=LOOSE).conservative


def test_one_side_alone_is_refused() -> None:
    with pytest.raises(InputError, match=r"^all articles are of one side\."):
        contrast_words([LabelledArticle("climate", False, "A")], limits=LOOSE)


def test_too_few_words_are_refused() -> None:
    articles = [LabelledArticle("climate", False, "A"), LabelledArticle("border", True, "B")]
    with pytest.raises(InputError, match=r"^a side has only 1 distinctive words\."):
        contrast_words(
            articles, limits=WordLimits(words=2, articles=1, outlets=1, steadiness=0, one_outlet=1)
        )


def test_files_round_trip(tmp_path: Path) -> None:
    rows = [{"text": "climate", "label": 0, "source": "A"}, {"text": "border", "label": 1, "source": "B"}]
    path = tmp_path / "articles.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    write_words(contrast_words(read_articles(path), limits=LOOSE), tmp_path / "words.json")
    assert json.loads((tmp_path / "words.json").read_text()) == {
        "liberal": ["climate"],
        "conservative": ["border"],
    }


def test_the_embedded_lists_are_250_single_words_a_side() -> None:
    lists = json.loads(asset_path("ideology", "words.json").read_text())
    liberal, conservative = set(lists["liberal"]), set(lists["conservative"])
    assert len(liberal) == len(conservative) == 250
    assert not liberal & conservative
    assert all(word.isalpha() and word.islower() for word in liberal | conservative)


def test_the_embedded_lists_tell_held_out_articles_apart(data: Path) -> None:
    lists = json.loads(asset_path("ideology", "words.json").read_text())
    weights = dict.fromkeys(lists["liberal"], -1) | dict.fromkeys(lists["conservative"], 1)
    hits = asked = 0
    for article in read_articles(data / "ideology" / "valid.jsonl"):
        balance = sum(weights.get(word.strip(".,").lower(), 0) for word in article.text.split())
        if balance:
            asked += 1
            hits += (balance > 0) is article.conservative
    # Better than a coin by more than three standard errors; the card says 0.595.
    assert hits / asked > 0.5 + 3 * math.sqrt(0.25 / asked)
    assert hits / asked > 0.58
