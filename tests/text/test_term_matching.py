from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.masking import terms_slowly
from tests.oracles.terms import TermMatch, find_slowly

from evenhand.core.records import Mention
from evenhand.text.rendering import TermSearcher


def find_terms(terms: list[str], text: str) -> list[TermMatch]:
    """Whole words, the longest of those that start together."""
    ordered = sorted({term.strip() for term in terms} - {""}, key=lambda term: (-len(term), term))
    spans = TermSearcher([Mention(term) for term in ordered]).find(text)
    return [TermMatch(ordered[rank], start, end) for rank, start, end in spans]


def test_terms_are_whole_words_in_any_case() -> None:
    found = find_terms(["cat", "New York"], "CAT, cats, concat; new\n york's")
    assert found == [TermMatch("cat", 0, 3), TermMatch("New York", 19, 28)]


def test_the_longest_of_terms_that_start_together_wins() -> None:
    assert [m.term for m in find_terms(["black", "black people"], "black people and black cats")] == [
        "black people",
        "black",
    ]


def test_terms_are_taken_literally() -> None:
    assert [m.term for m in find_terms(["c++", "a.b", "(x)"], "C++ a.b axb (x)")] == ["c++", "a.b", "(x)"]


def test_a_straight_apostrophe_finds_a_curly_one() -> None:
    assert find_terms(["o'clock"], "five o\u2019clock") == [TermMatch("o'clock", 5, 12)]


def test_no_terms_find_nothing() -> None:
    assert find_terms(["", " "], "anything") == []


_WORD = st.sampled_from(["a", "b", "ab", "a b", "b a b", "A", "b-a"])


@given(st.lists(_WORD, max_size=4), st.text(alphabet="aAbB -.\n", max_size=30))
def test_the_slow_twin_agrees(terms: list[str], text: str) -> None:
    assert find_terms(terms, text) == find_slowly(terms, text)


ODD = "aAbBsS_1\u017f\u00df\u1e9eiI\u0130\u0131\u0345\u03b9\u0399\u1fbekK\u212a\u03c3\u03c2\u03a3"
ODD += "'\u2019\u2018\u02bc-.( \u00a0\n"


@given(st.lists(st.text(alphabet=ODD, max_size=5), max_size=6), st.text(alphabet=ODD, max_size=40))
def test_terms_are_those_of_one_long_expression(terms: list[str], text: str) -> None:
    assert find_terms(terms, text) == terms_slowly(terms, text)
