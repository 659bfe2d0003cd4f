from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.records import Mention, Text
from evenhand.text.rendering import mask_mentions


def test_every_occurrence_is_masked_and_its_place_kept() -> None:
    masked = mask_mentions("The woman said the WOMAN's name.", [Mention("The woman")])
    assert masked == Text("XYZ said XYZ's name.", ((0, 3), (9, 12)))


def test_whole_words_only_unless_the_mention_says_otherwise() -> None:
    assert mask_mentions("The manager, the man", [Mention("the man")]).text == "The manager, XYZ"
    assert (
        mask_mentions("Smiths and a silversmith", [Mention("smith", whole_word=False)]).text
        == "XYZs and a silverXYZ"
    )


def test_the_mention_names_its_mask_and_a_token_overrides_it() -> None:
    mentions = [Mention("Ada Lovelace", mask="Person"), Mention("coder")]
    assert mask_mentions("Ada Lovelace, coder", mentions).text == "Person, XYZ"
    assert mask_mentions("Ada Lovelace, coder", mentions, token="XYZ").text == "XYZ, XYZ"


def test_the_longest_mention_wins_and_neighbours_are_not_merged() -> None:
    mentions = [Mention("Ada", mask="Person"), Mention("Ada Lovelace", mask="Person")]
    assert mask_mentions("Ada Lovelace Ada Ada", mentions) == Text(
        "Person Person Person", ((0, 6), (7, 13), (14, 20))
    )


def test_mentions_are_taken_literally() -> None:
    assert (
        mask_mentions("A C++ (senior) dev. Axb", [Mention("C++ (senior)"), Mention("a.b")]).text
        == "A XYZ dev. Axb"
    )


def test_nothing_to_mask() -> None:
    assert mask_mentions("text", []) == Text("text", ())
    assert mask_mentions("a text", [Mention(" ")]) == Text("a text", ())
    assert mask_mentions("", [Mention("a")]) == Text("", ())


@given(st.text(alphabet="abA '", max_size=40), st.lists(st.text(alphabet="ab ", max_size=4), max_size=3))
def test_spans_hold_the_masks_and_masking_is_complete(text: str, words: list[str]) -> None:
    mentions = [Mention(word) for word in words]
    masked = mask_mentions(text, mentions)
    assert all(masked.text[start:end] == "XYZ" for start, end in masked.masks)
    assert masked.text.count("XYZ") == len(masked.masks)
    assert mask_mentions(masked.text, mentions) == Text(masked.text, ())


def test_long_lines_take_linear_time() -> None:
    text = "the man and the woman " * 10_000
    start = time.process_time()
    assert len(mask_mentions(text, [Mention("the man"), Mention("the woman", mask="Person")]).masks) == 20_000
    assert time.process_time() - start < 3
