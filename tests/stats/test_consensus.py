"""One label from many: majority by hand, Dawid and Skene against their slow twin and against known truth."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.stats_consensus import Rating, dawid_skene_slowly

from evenhand.core.errors import InputError
from evenhand.stats.consensus import annotator_accuracy, dawid_skene, majority_vote
from evenhand.stats.label_scales import RatingCodes


def ratings_of(rows: list[Rating], scale: str = "ab") -> RatingCodes:
    items, people, labels = zip(*rows, strict=True)
    return RatingCodes.from_rows(items, people, labels, scale=tuple(scale))


def of_items(*letters: str, scale: str = "ab") -> RatingCodes:
    rows = [
        (str(item), str(who), letter) for item, row in enumerate(letters) for who, letter in enumerate(row)
    ]
    return ratings_of(rows, scale)


def test_majority_by_hand() -> None:
    found = majority_vote(of_items("aab", "ab", "abc", "aaaab", "b", scale="abc"))
    assert found.labels == ("a", None, None, "a", "b")
    assert found.shares == pytest.approx((2 / 3, 1 / 2, 1 / 3, 4 / 5, 1.0))
    assert found.reasons == (None, "no majority", "no majority", None, None)


def test_majority_with_a_minimum() -> None:
    ratings = of_items("aab", "aaab", "aaa", "b")
    found = majority_vote(ratings, agreement=0.7, least=2)
    assert found.labels == (None, "a", "a", None)
    assert found.reasons == ("too little agreement", None, None, "too few ratings")
    # However two of three is rounded, it is two of three.
    for written in (0.66, 0.667, 0.67, 2 / 3):
        assert majority_vote(ratings, agreement=written).labels[0] == "a"
    with pytest.raises(InputError, match=r"^an agreement of 66\. Expected: a share from 0 to 1"):
        majority_vote(ratings, agreement=66)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("123456"), st.sampled_from("xyz"), st.sampled_from("abc")),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 6),
)
def test_em_equals_its_slow_twin(rows: list[Rating], rounds: int) -> None:
    """Missing answers and repeated ones are allowed, so any list of ratings will do."""
    ratings = ratings_of(rows, "abc")
    fast = dawid_skene(ratings, smoothing=0.1, tolerance=0, iterations=rounds)
    truth, confusion = dawid_skene_slowly(rows, "abc", smoothing=0.1, rounds=rounds)
    for at, item in enumerate(ratings.items):
        assert fast.posteriors[at] == pytest.approx([truth[item][label] for label in "abc"], abs=1e-9)
    for at, person in enumerate(ratings.annotators):
        for true, label in enumerate("abc"):
            slow = [confusion[person][label][said] for said in "abc"]
            assert fast.confusion[at, true] == pytest.approx(slow, abs=1e-9)


def test_a_careless_annotator_is_outvoted_and_found_out() -> None:
    """Four who agree and one who turns everything round: their answers count for the opposite."""
    truth = "ab" * 20
    rows = [(str(item), who, label) for item, label in enumerate(truth) for who in "wxyz"]
    rows += [(str(item), "contrary", "b" if label == "a" else "a") for item, label in enumerate(truth)]
    found = dawid_skene(ratings_of(rows))
    by_name = dict(zip(sorted({who for _, who, _ in rows}), found.accuracies, strict=True))
    assert by_name["contrary"] < 0.01
    assert all(by_name[who] > 0.99 for who in "wxyz")
    assert found.converged
    # An item that only the contrary one and one other rated: the one who is right decides, not a tie.
    more = dawid_skene(ratings_of([*rows, ("new", "contrary", "b"), ("new", "w", "a")]))
    assert more.posteriors[-1][0] > 0.99


def test_the_likelihood_never_falls_without_smoothing() -> None:
    rng = np.random.default_rng(5)
    rows = [(str(i), str(a), "abc"[rng.integers(3)]) for i in range(30) for a in range(4)]
    ratings = ratings_of(rows, "abc")
    steps = [
        dawid_skene(ratings, smoothing=0, tolerance=0, iterations=rounds).log_likelihood
        for rounds in range(1, 30)
    ]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(steps))


def test_skill_has_an_interval_that_holds_the_truth() -> None:
    """Accuracies of 0.9, 0.7 and 0.6 over 600 items and six people: within 4 standard errors of the truth.

    With the truth known, an accuracy's standard error is sqrt(p (1 - p) / 600) = 0.020 at most; that the
    truth is only inferred (right in more than nine of ten items here) widens it by less than half.
    """
    rng = np.random.default_rng(11)
    truth = rng.integers(0, 3, 600)
    known = (0.9, 0.9, 0.7, 0.7, 0.6, 0.6)
    rows = []
    for person, accuracy in enumerate(known):
        wrong = (truth + rng.integers(1, 3, 600)) % 3
        said = np.where(rng.random(600) < accuracy, truth, wrong)
        rows += [(f"{item:03}", str(person), "abc"[code]) for item, code in enumerate(said)]
    ratings = ratings_of(rows, "abc")
    fitted = dawid_skene(ratings)
    found = annotator_accuracy(ratings, fitted, rng=0, resamples=100)
    for accuracy, estimate in zip(known, found, strict=True):
        error = 1.5 * (accuracy * (1 - accuracy) / 600) ** 0.5
        assert abs(estimate.value - accuracy) < 4 * error
        assert estimate.low < estimate.value < estimate.high
        assert estimate.high - estimate.low < 12 * error
    right = np.mean(fitted.posteriors.argmax(axis=1) == truth)
    votes = np.mean(ratings.counts().argmax(axis=1) == truth)
    assert right >= votes


def test_one_item_and_nothing_at_all() -> None:
    ratings = of_items("aab")
    fitted = dawid_skene(ratings)
    assert fitted.consensus(ratings).labels == ("a",)
    assert {estimate.null_reason for estimate in annotator_accuracy(ratings, fitted, rng=0)} == {
        "one cluster"
    }
    with pytest.raises(InputError, match=r"^there are no ratings\. Expected: one rating or more\.$"):
        dawid_skene(RatingCodes.from_rows([], [], [], scale=("a",)))
    with pytest.raises(InputError, match=r"^a smoothing of -1\."):
        dawid_skene(ratings, smoothing=-1)


def test_what_is_not_probable_enough_has_no_label() -> None:
    ratings = of_items("ab", "ab")
    found = dawid_skene(ratings).consensus(ratings, probability=0.9)
    assert found.labels == (None, None)
    assert found.reasons == ("too little agreement",) * 2


def test_skill_of_one_rating_has_no_interval():
    rows = [(str(item), who, "ab"[item % 2]) for item in range(20) for who in ("anna", "ben")]
    ratings = RatingCodes.from_rows(*zip(*rows, ("0", "cara", "a"), strict=True), scale=("a", "b"))
    found = dict(
        zip(ratings.annotators, annotator_accuracy(ratings, dawid_skene(ratings), rng=0), strict=True)
    )
    assert (found["anna"].n, found["anna"].n_clusters) == (20, 20)
    assert found["anna"].low is not None
    assert (found["cara"].n_clusters, found["cara"].low, found["cara"].null_reason) == (
        1,
        None,
        "one cluster",
    )
