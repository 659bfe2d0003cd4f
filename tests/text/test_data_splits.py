"""Families of near-identical texts, and a split that does not tear them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import InputError
from evenhand.text.data_splits import (
    divide_texts,
    group_near_duplicates,
    split_shingles,
)

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), min_size=1, max_size=8).map(" ".join)


def slow_families(texts: list[str]) -> list[set[int]]:
    """Every pair compared, then linked."""
    groups = [{place} for place in range(len(texts))]
    for one in range(len(texts)):
        for other in range(one):
            first, second = split_shingles(texts[one]), split_shingles(texts[other])
            if len(first & second) >= 0.5 * len(first | second):
                joined = groups[one] | groups[other]
                for place in joined:
                    groups[place] = joined
    return groups


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, max_size=12))
def test_families_are_those_of_comparing_every_pair(texts: list[str]) -> None:
    found = group_near_duplicates(texts)
    assert [{i for i, f in enumerate(found) if f == mine} for mine in found] == slow_families(texts)


def test_near_identical_texts_stay_on_one_side() -> None:
    # 3-word runs of 6 and 7 words: 4 and 5, of which 4 are shared: 4 / 5 >= 0.5.
    texts = [f"text {n} about the thing {n * 7}" for n in range(40)]
    twins = [f"{text} again" for text in texts]
    labels = ["x" if n % 2 else "y" for n in range(40)] * 2
    found = divide_texts(texts + twins, labels, seed=3)
    held = set(found.held_out)
    assert all((place in held) == (place + 40 in held) for place in range(40))
    assert sorted([*found.train, *found.held_out]) == list(range(80))
    # A fifth of 40 a label is 8.
    assert [sum(labels[place] == label for place in held) for label in "xy"] == [8, 8]
    assert divide_texts(texts + twins, labels, seed=3) == found
    assert divide_texts(texts + twins, labels, seed=4) != found


def test_a_label_that_cannot_be_held_out_is_named() -> None:
    texts = [f"number {n} of many {n}" for n in range(20)] + ["all the same text here"] * 20
    with pytest.raises(InputError) as raised:
        divide_texts(texts, ["x"] * 20 + ["y"] * 20, seed=0)
    assert str(raised.value) == (
        "the texts of the label 'y' are too few, or too much alike, to hold some of them out. "
        "Expected: several different texts a label. "
        "Fix: add texts, or name texts to test on with --valid."
    )
