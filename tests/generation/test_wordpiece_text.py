from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.pre_tokenizers import BertPreTokenizer

from evenhand.generation.tokenizer import join_pieces

SENTENCES = [
    "He was born in 1950 (the year of the flood), and he died at 72.",
    "It's the workers' well-known song; they don't sing it!",
    '"Go home," she said, "and sleep."',
    "Over 1,000 people paid $3.50 at 12:30.",
    "The U.S. Army moved in, e.g. to the north/south line.",
    "O'Brien [sic] got 25% of it: nothing.",
    "In 1990, 25 people came.",
]


def split(text: str) -> list[str]:
    return [word for word, _ in BertPreTokenizer().pre_tokenize_str(text)]


@pytest.mark.parametrize("text", SENTENCES)
def test_a_sentence_comes_back_from_its_pieces(text: str) -> None:
    assert join_pieces("", split(text)) == text


@pytest.mark.parametrize("text", SENTENCES)
def test_a_sentence_goes_on_after_any_of_its_words(text: str) -> None:
    for at in range(1, len(text)):
        # Only where a space stands: a prompt ends with a whole word.
        if text[at] == " " and text[at - 1].isalnum():
            assert join_pieces(text[:at], split(text[at:])) == text[at:]


def test_a_piece_inside_a_word_is_closed_up() -> None:
    assert join_pieces("The sing", ["##er", "sang"]) == "er sang"
    assert join_pieces("", ["un", "##bear", "##able"]) == "unbearable"


def test_an_open_quote_of_the_prompt_is_closed() -> None:
    # One quote stands open before, so the next one closes it.
    assert join_pieces('She said, "yes', [",", '"', "and", "left"]) == '," and left'


@pytest.mark.parametrize(
    ("before", "expected"), [("The", " man"), ("The ", "man"), ("", "man"), ("(", "man")]
)
def test_the_first_piece_is_spaced_as_the_prompt_asks(before: str, expected: str) -> None:
    assert join_pieces(before, ["man"]) == expected


def test_nothing_gives_nothing() -> None:
    assert join_pieces("The man", []) == ""


@given(
    st.text(max_size=20), st.lists(st.text(st.characters(codec="ascii"), min_size=1, max_size=4), max_size=12)
)
def test_only_spaces_are_added_and_marks_of_inner_pieces_removed(before: str, pieces: list[str]) -> None:
    inner = [piece[2:] if piece.startswith("##") and len(piece) > 2 else piece for piece in pieces]
    assert re.sub(r"\s", "", join_pieces(before, pieces)) == re.sub(r"\s", "", "".join(inner))
