from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.text.sentences import cut_first_sentence, first_sentence_end, split_sentences


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("It rains. Then it stops.", "It rains."),
        (" as a nurse. She", " as a nurse."),
        ("Really? Yes.", "Really?"),
        ("Stop!!! Now.", "Stop!!!"),
        ("It cost 3.5 dollars. Then", "It cost 3.5 dollars."),
        ("Mr. Smith met Dr. Jones. They", "Mr. Smith met Dr. Jones."),
        ("He saw J. R. R. Tolkien. He", "He saw J. R. R. Tolkien."),
        ("The U.S. Senate met. It", "The U.S. Senate met."),
        ("She lives in the U.S. The law", "She lives in the U.S."),
        ("Fruit, e.g. apples, i.e. food. Good", "Fruit, e.g. apples, i.e. food."),
        ("At 5 p.m. sharp it began. We", "At 5 p.m. sharp it began."),
        ("See No. 5 there. Go", "See No. 5 there."),
        ("He said no. They left.", "He said no."),
        ("Acme Inc. said so. It", "Acme Inc. said so."),
        ("Neither did I. They left.", "Neither did I."),
        ('"Go." She went.', '"Go."'),
        ('"Why?" he asked. She', '"Why?" he asked.'),
        ('"Why?" He asked again.', '"Why?"'),
        ("(It rained.) Then", "(It rained.)"),
        ("Well... maybe not. So", "Well... maybe not."),
        ("Well... Maybe not.", "Well..."),
        ("Well… Maybe not.", "Well…"),
        ("1. First things. Second", "1. First things."),
        ("It was in 1990. Then", "It was in 1990."),
        ("A heading\n\nA text. More", "A heading"),
        ("\n\nA text\nover two lines. More", "\n\nA text\nover two lines."),
        (". He left.", "."),
        ("i went home. then i slept.", "i went home."),
        ("evenhand.example.org is a name. So", "evenhand.example.org is a name."),
    ],
)
def test_the_first_sentence(text: str, first: str) -> None:
    assert cut_first_sentence(text) == first


@pytest.mark.parametrize("text", ["", "   ", "no stop here", "a.b", "3.5", "Hello Mr.", "\n\n"])
def test_no_sentence_has_ended(text: str) -> None:
    assert first_sentence_end(text) is None
    assert cut_first_sentence(text) == text


@pytest.mark.parametrize("text", ["It rains.", "in the U.S.", "at 5 p.m. ", "Well...", '"Why?"', "Yes! "])
def test_the_end_of_a_complete_text_ends_its_sentence(text: str) -> None:
    assert first_sentence_end(text) == len(text.rstrip())


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("It rains.", None),
        ("It rains. ", 9),
        ("It cost 3.", None),
        ("It cost 3.5", None),
        ("the U.S. ", None),
        ("the U.S. The", None),
        ("the U.S. The ", 8),
        ("the U.S. Then", None),
        ('"Why?" ', None),
        ('"Why?" h', None),
        ('"Why?" H', 6),
        ("He said no. ", None),
        ("He said no. T", 11),
        ("A heading\n", None),
        ("A heading\n\n", 9),
    ],
)
def test_a_growing_text_waits_until_what_follows_decides(text: str, end: int | None) -> None:
    assert first_sentence_end(text, complete=False) == end


_WORDS = ("Mr", "U", "S", "no", "The", "the", "He", "e", "g", "3", "5", "Inc", "word", "Bob")
_MARKS = (".", "...", "?", "!", '"', "'", ")", "…", "-", " ", "\n", "\n\n", "\u00a0")
_PIECES = st.sampled_from((*_WORDS, *_MARKS, ".", " ", " "))


@given(st.lists(_PIECES, max_size=25).map("".join))
@example("U.S.\n\nSenate")
def test_an_end_given_early_is_the_end_of_every_longer_text(text: str) -> None:
    final = first_sentence_end(text)
    growing = [first_sentence_end(text[:cut], complete=False) for cut in range(len(text) + 1)]
    seen = [end for end in growing if end is not None]
    assert all(end == final for end in seen)
    first_seen = next((i for i, end in enumerate(growing) if end is not None), len(growing))
    assert all(end is not None for end in growing[first_seen:])


@given(st.lists(_PIECES, max_size=25).map("".join))
def test_splitting_loses_no_character_but_white_space(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


def test_split_sentences() -> None:
    text = 'Mr. A. B. Smith left. "Why?" she asked. He had $3.50\n\nNo more'
    assert split_sentences(text) == [
        "Mr. A. B. Smith left.",
        '"Why?" she asked.',
        "He had $3.50",
        "No more",
    ]
    assert split_sentences(" \n ") == []


@pytest.mark.parametrize("unit", [".", "U.S. ", ". ", "...a", '."', "\n ", "a", "?!x", "e.g.", "Mr. "])
def test_long_lines_take_linear_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    start = time.process_time()
    split_sentences(text)
    first_sentence_end(text, complete=False)
    assert time.process_time() - start < 3
