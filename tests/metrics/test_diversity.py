"""Diversity by hand, and which way is up."""

import numpy as np
import pytest

from evenhand.core.protocols import Cell
from evenhand.core.records import Text
from evenhand.metrics import diversity
from evenhand.metrics.diversity import Diversity

CELL = Cell("all", "all")


def measured(*texts):
    return {
        output: value.value
        for output, value in Diversity().measure({CELL: [Text(text) for text in texts]})[CELL].items()
    }


def test_by_hand():
    # a b a b a b: six words, two different; pairs ab ba ab ba ab: two of five; triples aba bab aba bab: two
    # of four; 4-grams abab baba abab: one of three stood there before.
    found = measured("a b a b a b")
    assert found == {
        "distinct_1": 2 / 6,
        "distinct_2": 2 / 5,
        "distinct_3": 2 / 4,
        "repetition": 1 / 3,
        "length": 6,
    }


def test_texts_count_together_and_do_not_run_into_each_other():
    # Two texts "a b": four words, two different; two pairs, one different; no triple.
    found = measured("a b", "A b")
    assert (found["distinct_1"], found["distinct_2"], found["distinct_3"]) == (0.5, 0.5, None)
    assert found["length"] == 2


def test_a_varied_set_is_higher_than_a_dull_one():
    varied = measured("the cat sat here", "some dogs ran away")
    dull = measured("the cat sat here", "the cat sat here")
    assert all(varied[name] > dull[name] for name in ("distinct_1", "distinct_2", "distinct_3"))


def test_nothing_is_null_with_a_reason():
    found = Diversity().measure({CELL: []})[CELL]
    assert {value.value for value in found.values()} == {None}
    assert {value.null_reason for value in found.values()} == {"empty"}


def by_sets(texts, n):
    """Different n-grams over all, the obvious way."""
    grams = [gram for text in texts for gram in zip(*(text.split()[at:] for at in range(n)), strict=False)]
    return len(set(grams)) / len(grams)


@pytest.mark.parametrize("bits", [None, 22])
def test_packed_numbers_count_what_sets_of_words_do(bits, monkeypatch):
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in rng.integers(0, 9, size=rng.integers(3, 12))) for _ in range(40)]
    if bits:
        # 3 x 22 bits do not fit a number of 64: n-grams are compared as rows.
        monkeypatch.setattr(diversity._CountCache, "bits", bits)
    metric = Diversity()
    for some in (texts, texts[:13]):
        found = metric.measure({CELL: [Text(text) for text in some]})[CELL]
        for n in (1, 2, 3):
            assert found[f"distinct_{n}"].value == by_sets(some, n)
