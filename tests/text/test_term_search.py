from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.masking import mask_slowly

from evenhand.core.records import Mention
from evenhand.text.rendering import _FOLD, TermSearcher, TermSpan, mask_mentions

# Letters whose case is odd (long s, sharp s, dotless i, iota below, Kelvin, final sigma), every apostrophe,
# spaces of three kinds, and signs that are no words.
ODD = "aAbBsS_1\u017f\u00df\u1e9eiI\u0130\u0131\u0345\u03b9\u0399\u1fbekK\u212a\u03c3\u03c2\u03a3"
ODD += "'\u2019\u2018\u02bc-.( \u00a0\n\x1c\u0301"
TEXTS = st.text(alphabet=ODD, max_size=40)
WORDS = st.text(alphabet=ODD, max_size=5)
MENTIONS = st.builds(Mention, WORDS, st.sampled_from(["Person", "XYZ"]), st.booleans())


@given(TEXTS, st.lists(MENTIONS, max_size=6))
def test_masks_are_those_of_one_long_expression(text: str, mentions: list[Mention]) -> None:
    assert mask_mentions(text, mentions) == mask_slowly(text, mentions)
    assert mask_mentions(text, mentions, token="XYZ") == mask_slowly(text, mentions, token="XYZ")


@given(st.data(), st.text(alphabet=ODD + "\U0001f600\u00e9", max_size=60))
def test_pieces_of_the_text_in_another_case(data: st.DataObject, text: str) -> None:
    places = st.integers(0, len(text))
    pieces = data.draw(st.lists(st.tuples(places, st.integers(1, 12), st.booleans()), max_size=6))
    mentions = [
        Mention(text[start : start + length].swapcase(), whole_word=whole) for start, length, whole in pieces
    ]
    assert mask_mentions(text, mentions) == mask_slowly(text, mentions)


def test_any_two_characters_that_match_fold_alike() -> None:
    everything = [chr(code) for code in range(0x110000)]
    # What no case changes can match itself alone.
    cased = [
        one for one in everything if len({one, one.lower(), one.upper(), one.title(), one.casefold()}) > 1
    ]
    line = "".join(cased)
    for one in cased:
        matching = re.findall(re.escape(one), line, re.IGNORECASE)
        assert {other.translate(_FOLD) for other in matching} == {one.translate(_FOLD)}


def test_every_character_stays_one() -> None:
    line = "".join(chr(code) for code in range(0x110000))
    assert len(line.translate(_FOLD)) == len(line)


def test_white_space_of_any_length_and_where_it_stood() -> None:
    #       0123456789012345678
    text = "  New \t York,  newyork"
    assert list(TermSearcher([Mention("new york")]).find(text)) == [TermSpan(0, 2, 12)]
    assert text[2:12] == "New \t York"


def test_the_first_of_the_list_wins_where_both_start() -> None:
    assert list(TermSearcher([Mention("a"), Mention("a b")]).find("a b")) == [TermSpan(0, 0, 1)]
    assert list(TermSearcher([Mention("a b"), Mention("a")]).find("a b a")) == [
        TermSpan(0, 0, 3),
        TermSpan(1, 4, 5),
    ]


def test_folding_is_coarser_than_ignoring_case_and_that_is_mended() -> None:
    assert "\u00df".translate(_FOLD) == "s".translate(_FOLD)
    assert list(TermSearcher([Mention("s")]).find("\u00df")) == []
    assert list(TermSearcher([Mention("\u00df")]).find("s \u1e9e")) == [TermSpan(0, 2, 3)]


def test_what_folds_to_a_plain_letter_was_part_of_a_word() -> None:
    everything = (chr(code) for code in range(0x110000))
    assert all(re.match(r"\w", one) for one in everything if re.match("[a-z0-9_]", one.translate(_FOLD)))


def test_thousands_of_mentions_take_little_time() -> None:
    names = [
        f"the {first}{second}er {number}" for first in "bcdfg" for second in "aei" for number in range(400)
    ]
    mentions = [Mention(name, whole_word=number % 2 == 0) for number, name in enumerate(names)]
    text = "So the baer 7 met the gier 399 and the gier 4000. " * 240
    assert (len(mentions), len(text)) == (6000, 12_000)
    start = time.process_time()
    masked = mask_mentions(text, mentions)
    assert time.process_time() - start < 3
    # "the gier 40" and "the gier 4" have even numbers: they are whole words, and not masked inside 4000.
    assert masked.text == "So XYZ met XYZ and the gier 4000. " * 240


def test_text_that_keeps_almost_matching() -> None:
    mentions = [Mention("a" * length + "b", whole_word=False) for length in range(1, 120)]
    start = time.process_time()
    assert mask_mentions("a" * 12_000, mentions).masks == ()
    assert time.process_time() - start < 3


def test_signs_are_taken_literally() -> None:
    signs = "[^]\\&&~~||--{}$.*+?()"
    assert mask_mentions(signs, [Mention(sign, whole_word=False) for sign in signs]).text == "XYZ" * len(
        signs
    )
    assert mask_mentions("a-b ^ []", [Mention("^"), Mention("[]")]).text == "a-b XYZ XYZ"
