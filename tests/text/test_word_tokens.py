from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenhand.text.word_tokens import Token, find_tokens, split_words


def test_words_keep_one_straight_apostrophe_and_split_at_hyphens() -> None:
    assert split_words("He's a well-known 3rd-rate rock'n'roll_man.") == [
        "he's",
        "a",
        "well",
        "known",
        "3rd",
        "rate",
        "rock'n",
        "roll_man",
    ]


def test_a_curly_apostrophe_separates_as_in_the_recipe() -> None:
    assert split_words("the man\u2019s") == ["the", "man", "s"]


def test_quotes_around_a_word_are_no_part_of_it() -> None:
    assert split_words("'he' \"She\"") == ["he", "she"]


def test_tokens_say_where_they_stand() -> None:
    assert find_tokens("A MAN's") == [Token("a", 0, 1), Token("man's", 2, 7)]


@given(st.text(alphabet=st.characters(codec="latin-1")))
def test_tokens_are_the_words_where_case_keeps_length(text: str) -> None:
    found = find_tokens(text)
    assert [token.word for token in found] == split_words(text)
    assert all(text[token.start : token.end].lower() == token.word for token in found)
