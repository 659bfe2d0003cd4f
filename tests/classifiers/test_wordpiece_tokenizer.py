"""The classifiers' tokenizer."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.classifiers.tiny_classifier import PIECES

from evenhand.classifiers import wordpiece_tokenizer
from evenhand.classifiers.encoder import END, START

TOKENIZER = wordpiece_tokenizer.build_tokenizer(PIECES)


def test_words_are_lowered_split_and_framed() -> None:
    assert wordpiece_tokenizer.encode_texts(TOKENIZER, ["XYZ was badly."], longest=16) == [
        [2, 6, 7, 5, 9, 10, 3]
    ]


def test_accents_are_dropped_and_strange_words_unknown() -> None:
    assert wordpiece_tokenizer.encode_texts(TOKENIZER, ["Wäs Zürich"], longest=16) == [[2, 7, 1, 3]]


def test_long_texts_are_cut_and_still_end() -> None:
    (row,) = wordpiece_tokenizer.encode_texts(TOKENIZER, ["good " * 50], longest=8)
    assert row == [START, *[4] * 6, END]


def test_emoji_are_spelt_and_lone_surrogates_survive() -> None:
    assert wordpiece_tokenizer.spell_emoji("oh \U0001f621") == "oh  pouting face "
    assert wordpiece_tokenizer.encode_texts(TOKENIZER, ["good \ud800"], longest=8)[0][:2] == [START, 4]


def test_a_file_gives_the_same_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    loaded = wordpiece_tokenizer.load_tokenizer(tmp_path / "vocab.txt")
    assert wordpiece_tokenizer.encode_texts(
        loaded, ["a good day"], longest=9
    ) == wordpiece_tokenizer.encode_texts(TOKENIZER, ["a good day"], longest=9)


@given(st.text(max_size=60))
def test_any_text_is_framed_once(text: str) -> None:
    (row,) = wordpiece_tokenizer.encode_texts(TOKENIZER, [text], longest=12)
    assert row[0] == START
    assert row[-1] == END
    assert len(row) <= 12
    assert START not in row[1:]
    assert END not in row[:-1]
