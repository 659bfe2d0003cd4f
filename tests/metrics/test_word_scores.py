from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.records import Text
from evenhand.metrics.word_scores import (
    MatchedWords,
    add_possessives,
    find_words,
    most_extreme_scores,
    precompute_weights,
    weighted_averages,
)


def average_slowly(scores: list[float]) -> float:
    """The formula of BOLD 4.4 and 4.5, word by word."""
    if not scores:
        return math.nan
    weight = sum(abs(score) for score in scores)
    return sum(math.copysign(score * score, score) for score in scores) / weight if weight else 0.0


def strongest_slowly(scores: list[float]) -> float:
    if not scores:
        return math.nan
    best = max(abs(score) for score in scores)
    signs = {score > 0 for score in scores if best - abs(score) <= 1e-6}
    if len(signs) == 2:
        return 0.0
    return max(scores, key=abs)


def averages(scores: np.ndarray, counts: np.ndarray) -> np.ndarray:
    words = MatchedWords(np.arange(len(scores)), counts, counts > 0)
    return weighted_averages(precompute_weights(scores[:, None]), words)[:, 0]


def average(*scores: float) -> float:
    return float(averages(np.array(scores, dtype=float), np.array([len(scores)]))[0])


def test_average_by_hand() -> None:
    assert average(0.5, -0.1) == pytest.approx((0.25 - 0.01) / 0.6)  # 0.4, where the plain mean is 0.2
    assert average(0.3) == pytest.approx(0.3)  # one word: its score
    assert average(0.0, 0.0) == 0.0
    assert math.isnan(average())


def test_strongest_by_hand() -> None:
    scores = np.array([0.2, -0.7, 0.1, 0.6, -0.6, -0.3, -0.2, 0.0])
    counts = np.array([3, 0, 2, 2, 1])
    assert most_extreme_scores(scores, counts) == pytest.approx([-0.7, math.nan, 0.0, -0.3, 0.0], nan_ok=True)


# Steps of 1/16 and no score near another's negative but exactly: ties are exact or none.
_SCORE = st.integers(-16, 16).map(lambda n: n / 16)
_BATCH = st.lists(st.lists(_SCORE, max_size=6), min_size=1, max_size=8)


def flat(batch: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([s for text in batch for s in text], dtype=float), np.array([len(text) for text in batch])


@given(_BATCH)
def test_the_slow_twins_agree(batch: list[list[float]]) -> None:
    scores, counts = flat(batch)
    assert averages(scores, counts) == pytest.approx([average_slowly(t) for t in batch], nan_ok=True)
    assert most_extreme_scores(scores, counts) == pytest.approx(
        [strongest_slowly(t) for t in batch], nan_ok=True
    )


@given(_BATCH)
def test_batches_change_no_bit(batch: list[list[float]]) -> None:
    together = averages(*flat(batch))
    alone = [averages(*flat([text]))[0] for text in batch]
    assert np.array_equal(together, alone, equal_nan=True)


@given(_BATCH)
def test_tables_of_variables_are_averaged_as_one_variable_is(batch: list[list[float]]) -> None:
    """Two variables, the second the first turned round; one row a word."""
    scores, counts = flat(batch)
    found = MatchedWords(np.arange(len(scores)), counts, counts > 0)
    both = weighted_averages(precompute_weights(np.stack([scores, -scores], axis=1)), found)
    assert np.array_equal(both[:, 0], averages(scores, counts), equal_nan=True)
    assert np.array_equal(both[:, 1], -both[:, 0], equal_nan=True)


@given(st.lists(_SCORE, min_size=1, max_size=8))
def test_sign_and_bounds(scores: list[float]) -> None:
    value, extreme = average(*scores), most_extreme_scores(np.array(scores), np.array([len(scores)]))[0]
    assert min(scores) - 1e-12 <= value <= max(scores) + 1e-12
    assert average(*(-score for score in scores)) == pytest.approx(-value)
    assert most_extreme_scores(-np.array(scores), np.array([len(scores)]))[0] == -extreme


def test_look_up_skips_masks_and_unknown_words() -> None:
    table = {"person": 0, "sings": 1}
    text = Text("Person sings loudly to a person", ((0, 6),))
    assert find_words([text, Text("")], table).rows.tolist() == [0, 1, 0]
    found = find_words([text, Text("")], table, skip_masks=True)
    assert found.rows.tolist() == [1, 0]
    assert found.counts.tolist() == [2, 0]


def test_possessives_have_their_word_s_row() -> None:
    assert add_possessives({"she": 0, "she's": 1, "mayor": 2}) == {
        "she": 0, "she's": 1, "mayor": 2, "mayor's": 2,
    }  # fmt: skip
