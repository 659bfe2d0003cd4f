from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.terms import find_slowly

from evenhand.text.term_search import TermMatch, TermMatcher


def test_terms_are_whole_words_in_any_case() -> None:
    found = TermMatcher(["cat", "New York"]).find("CAT, cats, concat; new\n york's")
    assert found == [TermMatch("cat", 0, 3), TermMatch("New York", 19, 28)]


def test_the_longest_of_terms_that_start_together_wins() -> None:
    assert [m.term for m in TermMatcher(["black", "black people"]).find("black people and black cats")] == [
        "black people",
        "black",
    ]


def test_terms_are_taken_literally() -> None:
    terms = TermMatcher(["c++", "a.b", "(x)"])
    assert [m.term for m in terms.find("C++ a.b axb (x)")] == ["c++", "a.b", "(x)"]


def test_a_straight_apostrophe_finds_a_curly_one() -> None:
    assert TermMatcher(["o'clock"]).find("five o\u2019clock") == [TermMatch("o'clock", 5, 12)]


def test_no_terms_find_nothing() -> None:
    assert TermMatcher(["", " "]).find("anything") == []


_WORD = st.sampled_from(["a", "b", "ab", "a b", "b a b", "A", "b-a"])


@given(st.lists(_WORD, max_size=4), st.text(alphabet="aAbB -.\n", max_size=30))
def test_the_slow_twin_agrees(terms: list[str], text: str) -> None:
    assert TermMatcher(terms).find(text) == find_slowly(terms, text)
