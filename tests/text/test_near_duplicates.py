"""Near-duplicates by shared runs of words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenhand.text.data_splits import find_near_duplicates, split_shingles

WORDS = st.lists(st.sampled_from("abcd"), max_size=9).map(" ".join)


def slow_near_duplicates(texts: list[str], known: list[str], similar: float) -> list[bool]:
    """Every pair, by the definition."""
    return [
        any(
            len(a & b) >= similar * len(a | b)
            for b in map(split_shingles, known)
            for a in [split_shingles(text)]
        )
        for text in texts
    ]


def test_half_of_the_runs_is_enough() -> None:
    # "a b c d" has abc, bcd; "a b c x" has abc, bcx: 1 shared of 3 in all.
    assert find_near_duplicates(["a b c d"], ["a b c x"], similar=1 / 3) == [True]
    assert find_near_duplicates(["a b c d"], ["a b c x"], similar=0.34) == [False]


def test_spelling_of_cases_and_stops_does_not_matter() -> None:
    assert find_near_duplicates(["You, SIR, are late!"], ["you sir are late"]) == [True]


def test_short_texts_repeat_only_themselves() -> None:
    assert find_near_duplicates(["Thanks", "Thanks a lot"], ["thanks!"]) == [True, False]


@given(st.lists(WORDS, max_size=5), st.lists(WORDS, max_size=5), st.sampled_from([0.3, 0.5, 1.0]))
def test_the_index_finds_what_comparing_all_pairs_finds(
    texts: list[str], known: list[str], similar: float
) -> None:
    assert find_near_duplicates(texts, known, similar=similar) == slow_near_duplicates(texts, known, similar)
