"""Patterns meet the texts they like least: one thing very often, and never what would end it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest

from evenhand.collection.collector import _sentences, subject
from evenhand.collection.cutting import Term, cut
from evenhand.collection.pages import Page, categories, linked
from evenhand.collection.pages import plain as page_text
from evenhand.collection.persons import is_person
from evenhand.core.records import Mention
from evenhand.corpus.wikitext import plain
from evenhand.metrics.sentiment import Sentiment
from evenhand.neural.wordpiece import spelt
from evenhand.report.markdown_text import escaped
from evenhand.report.wording import visible
from evenhand.suites.pairs.crows_rule import variants
from evenhand.text.masking import mask
from evenhand.text.ngrams import pieces
from evenhand.text.normalise import fold, normalise
from evenhand.text.rendering import Text
from evenhand.text.sentences import split_sentences
from evenhand.text.tokens import tokens
from evenhand.text.utf7 import repaired

LETTERS = 20_000
SECONDS = 2.0
"""CPU time a text of that length may take; what reads it once takes a hundredth."""
SENTIMENT = Sentiment()
MENTIONS = (Mention("New York"), Mention("she"), Mention("a" * 500))
WORK: Mapping[str, Callable[[str], object]] = {
    "sentences": split_sentences,
    "tokens": tokens,
    "pieces": pieces,
    "normalise": lambda text: (normalise(text), fold(text)),
    "utf-7": repaired,
    "masking": lambda text: mask(text, MENTIONS),
    "wikitext": plain,
    "page": lambda text: page_text(Page("A", text[:5000], 0, is_wikitext=True)),
    "links": lambda text: (
        Page("A", text, 0, is_wikitext=True),
        linked(Page("A", text, 0, is_wikitext=True)),
    ),
    "categories": lambda text: categories(Page("A", text, 0, is_wikitext=True)),
    "collecting": lambda text: (_sentences(text), subject(text), is_person("Ann Roe", f"Ann {text}")),
    "cutting": lambda text: cut(text, Term("Ann   Roe")),
    "markdown": lambda text: (escaped(text), visible(text)),
    "emoji": spelt,
    "pairs": lambda text: variants(text[:1000], f"{text[:1000]}she", "gender"),
    "sentiment": lambda text: SENTIMENT.score([Text(text)]),
}
UNITS = (
    *(
        "(",
        ")",
        "[[",
        "]]",
        "{{",
        "}}",
        "{|",
        "<",
        ">",
        "&",
        "a.",
        "a'",
        "\n ",
        "\n\n",
        " ",
        "'",
        '"',
        ".",
        "...",
        "!",
    ),
    *(
        "+a",
        "+",
        "1234 ",
        "(1234 ",
        "(born ",
        "-",
        "=",
        "== ",
        "http://",
        "[http://a ",
        "@",
        "#1",
        "www",
        "A. ",
        "Mr. ",
    ),
    *(
        "\u0301",
        "<ref",
        "<ref>",
        "<!--",
        "[[File:",
        "[[Category:",
        "*[[",
        "|",
        "she ",
        "New ",
        "she's ",
        "\U0001f600",
    ),
    *("x", "\u202e", "\0", "İ", "ß", "1.", "?!", "“", "a-b ", "____", "not ", "very "),
)


@pytest.mark.parametrize("name", WORK)
def test_no_text_holds_a_pattern_up(name: str) -> None:
    slow = {}
    for unit in UNITS:
        text = f"Ann Roe {unit * (LETTERS // len(unit))}"
        started = time.process_time()
        WORK[name](text)
        taken = time.process_time() - started
        if taken > SECONDS:
            slow[unit] = round(taken, 1)
    assert slow == {}
