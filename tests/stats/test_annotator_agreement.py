"""Annotators beside each other, worked by hand and against every pair of ratings."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import InputError
from evenhand.stats.agreement_coefficients import (
    annotator_figures,
    find_dissents,
    item_figures,
    pair_figures,
    pairwise_spearman,
    spearman,
)
from evenhand.stats.label_scales import RatingCodes

SCALE = ("low", "middle", "high")
PLACES = (-1.0, 0.0, 1.0)
# item: what a, b and c say
TABLE = {"1": "lll", "2": "llm", "3": "hhh", "4": "mmh", "5": "lhh"}
LONG = {"l": "low", "m": "middle", "h": "high"}


def ratings_of(table: dict[str, str], scale: tuple[str, ...] = SCALE) -> RatingCodes:
    rows = [
        (item, who, LONG.get(letter, letter))
        for item, letters in table.items()
        for who, letter in zip("abcdefgh", letters, strict=False)
        if letter != "-"
    ]
    items, people, labels = zip(*rows, strict=True)
    return RatingCodes.from_rows(items, people, labels, scale=scale)


def test_each_annotator_with_the_others_by_hand() -> None:
    a, b, c = annotator_figures(ratings_of(TABLE), PLACES, rng=0, resamples=100)
    # a: item 1 both others say the same (1), 2: one of two (1/2), 3: 1, 4: 1/2, 5: 0 -> 3/5
    assert a.agreement.value == pytest.approx(3 / 5)
    # b: 1, 1/2, 1, 1/2, 1/2 -> 3.5/5; c: 1, 0, 1, 0, 1/2 -> 2.5/5
    assert b.agreement.value == pytest.approx(3.5 / 5)
    assert c.agreement.value == pytest.approx(2.5 / 5)
    # a says low 3, middle 1, high 1 of 5; the others low 1 + 1/2, middle 1/2 + 1/2, high 1 + 1/2 + 1, of 5.
    chance = (3 * 1.5 + 1 * 1 + 1 * 2.5) / 25
    assert a.kappa.value == pytest.approx((3 / 5 - chance) / (1 - chance))
    assert (a.n, a.agreement.n, a.agreement.n_clusters) == (5, 5, 5)
    assert a.agreement.low is not None
    assert a.agreement.low < 3 / 5


def test_pairs_by_hand() -> None:
    found = {
        (row.first, row.second): row for row in pair_figures(ratings_of(TABLE), PLACES, rng=0, resamples=100)
    }
    assert {pair: row.agreement.value for pair, row in found.items()} == pytest.approx(
        {("a", "b"): 4 / 5, ("a", "c"): 2 / 5, ("b", "c"): 3 / 5}
    )
    a, b = [-1, -1, 1, 0, -1], [-1, -1, 1, 0, 1]
    assert found["a", "b"].spearman.value == pytest.approx(spearman(a, b, rng=0, resamples=100).value)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("lmh-", min_size=3, max_size=4), min_size=2, max_size=12))
def test_pairwise_rho_is_that_of_every_ordered_pair(rows: list[str]) -> None:
    table = {str(number): row for number, row in enumerate(rows)}
    if all(letter == "-" for row in rows for letter in row):
        return
    found = pairwise_spearman(ratings_of(table), PLACES, rng=0, resamples=100)
    place = {"l": -1.0, "m": 0.0, "h": 1.0}
    pairs = [
        pair for row in rows for pair in permutations([place[letter] for letter in row if letter != "-"], 2)
    ]
    if not pairs:
        assert found.null_reason == "no item has two ratings"
        return
    slow = spearman([x for x, _ in pairs], [y for _, y in pairs], rng=0, resamples=100)
    assert found.value == pytest.approx(slow.value, abs=1e-12)


def test_labels_of_one_place_are_tied_and_those_without_a_place_left_out() -> None:
    scale = ("low", "middle", "mixed", "high", "nonsense")
    rows = [("1", "a", "low"), ("1", "b", "low"), ("2", "a", "mixed"), ("2", "b", "middle")]
    rows += [("3", "a", "high"), ("3", "b", "high"), ("4", "a", "nonsense"), ("4", "b", "low")]
    ratings = RatingCodes.from_rows(*zip(*rows, strict=True), scale=scale)
    found = pairwise_spearman(ratings, (-1, 0, 0, 1, None), rng=0, resamples=100)
    assert found.value == pytest.approx(1.0)
    assert (found.n, found.n_clusters, found.n_null) == (6, 3, 1)


def test_intervals_are_those_of_resampled_items() -> None:
    """The fast draw of rows that look alike and the plain one agree: same spread, other draws."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 200)
    said = np.where(rng.random((200, 3)) < 0.7, truth[:, None], rng.integers(0, 3, (200, 3)))
    table = {str(item): "".join("lmh"[code] for code in row) for item, row in enumerate(said)}
    fast = pair_figures(ratings_of(table), PLACES, rng=0, resamples=4000)[0].spearman
    slow = spearman(said[:, 0], said[:, 1], rng=1, resamples=2000)
    assert fast.value == pytest.approx(slow.value)
    # The quantiles of 2,000 draws have a standard error of about 3 % of the interval's width.
    width = slow.high - slow.low
    assert (fast.low, fast.high) == pytest.approx((slow.low, slow.high), abs=0.15 * width)


def test_who_stands_alone_and_where() -> None:
    found = find_dissents(ratings_of(TABLE))
    # Item 2: c against two lows; 4: c against two middles; 5: a against two highs.
    assert [(row.item, row.annotator, row.said, row.others, row.share) for row in found] == [
        ("5", "a", "low", "high", 1.0),
        ("2", "c", "middle", "low", 1.0),
        ("4", "c", "high", "middle", 1.0),
    ]
    # Two people who differ: neither stands alone.
    assert find_dissents(ratings_of({"1": "lh"})) == []


def test_items_are_ordered_by_dispute() -> None:
    first, *_, last = item_figures(ratings_of({**TABLE, "6": "lmh", "7": "l"}))
    assert (first.item, first.disagreement, first.counts) == ("6", 1.0, (1, 1, 1))
    assert (last.item, last.disagreement, last.n) == ("7", None, 1)


def test_one_annotator_and_labels_without_order() -> None:
    (alone,) = annotator_figures(ratings_of({"1": "l", "2": "h"}), PLACES, rng=0)
    assert (alone.agreement.value, alone.agreement.null_reason) == (None, "nobody else rated these items")
    assert alone.kappa.null_reason == alone.spearman.null_reason == "nobody else rated these items"
    plain = annotator_figures(ratings_of(TABLE), rng=0, resamples=100)[0]
    assert (plain.spearman.value, plain.spearman.null_reason) == (None, "the labels have no order")
    assert pair_figures(ratings_of({"1": "l", "2": "h"}), rng=0) == []


def test_one_item_has_a_value_and_no_interval() -> None:
    found = annotator_figures(ratings_of({"1": "llh"}), rng=0)[0].agreement
    assert (found.value, found.low, found.null_reason) == (0.5, None, "one cluster")


def test_the_order_of_rows_changes_nothing() -> None:
    turned = dict(reversed(TABLE.items()))
    assert annotator_figures(ratings_of(TABLE), PLACES, rng=0, resamples=100) == annotator_figures(
        ratings_of(turned), PLACES, rng=0, resamples=100
    )


def test_bad_input() -> None:
    with pytest.raises(InputError, match=r"^the label 'angry' is not on the scale\. Expected: low, high\."):
        RatingCodes.from_rows(["1"], ["a"], ["angry"], scale=("low", "high"))
    with pytest.raises(InputError, match=r"^1 items came with 2 annotators and 1 labels\."):
        RatingCodes.from_rows(["1"], ["a", "b"], ["low"])
    with pytest.raises(InputError, match=r"^there are 2 positions for 3 labels\."):
        pairwise_spearman(ratings_of(TABLE), (0.0, 1.0), rng=0)
