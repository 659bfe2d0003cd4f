"""Patterns meet the texts they like least: one thing very often, and never what would end it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest

from evenhand.classifiers.wordpiece_tokenizer import spell_emoji
from evenhand.collection.build import compile_term, cut_prompt, find_subject, is_person, split_page
from evenhand.collection.page_streams import SourcePage, linked_titles, page_categories
from evenhand.collection.page_streams import plain_text as page_text
from evenhand.core.records import Mention
from evenhand.corpus.record_readers import plain_text
from evenhand.metrics.sentiment import Sentiment
from evenhand.report.wording import escape_markdown, show_control_characters
from evenhand.suites.pairs.crows import pair_variants
from evenhand.text.rendering import Text, mask_mentions
from evenhand.text.sentences import split_sentences
from evenhand.text.word_tokens import compose_unicode, find_tokens, tokenize
from evenhand.training.semeval import repair_utf7

LETTERS = 20_000
SECONDS = 2.0
"""CPU time a text of that length may take; what reads it once takes a hundredth."""
SENTIMENT = Sentiment()
MENTIONS = (Mention("New York"), Mention("she"), Mention("a" * 500))
WORK: Mapping[str, Callable[[str], object]] = {
    "sentences": split_sentences,
    "tokens": find_tokens,
    "pieces": tokenize,
    "normalise": compose_unicode,
    "utf-7": repair_utf7,
    "masking": lambda text: mask_mentions(text, MENTIONS),
    "wikitext": plain_text,
    "page": lambda text: page_text(SourcePage("A", text[:5000], 0, is_wikitext=True)),
    "links": lambda text: (
        SourcePage("A", text, 0, is_wikitext=True),
        linked_titles(SourcePage("A", text, 0, is_wikitext=True)),
    ),
    "categories": lambda text: page_categories(SourcePage("A", text, 0, is_wikitext=True)),
    "collecting": lambda text: (split_page(text), find_subject(text), is_person("Ann Roe", f"Ann {text}")),
    "cutting": lambda text: cut_prompt(text, compile_term("Ann   Roe")),
    "markdown": lambda text: (escape_markdown(text), show_control_characters(text)),
    "emoji": spell_emoji,
    "pairs": lambda text: pair_variants(text[:1000], f"{text[:1000]}she", "gender"),
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
