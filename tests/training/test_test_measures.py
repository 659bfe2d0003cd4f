"""Measures of classifiers, against hand-worked values and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, roc_auc_score
from tools.assets.classifier_figures import accuracy, pearson

from evenhand.training.test_measures import (
    bootstrap_measure,
    calibration_error,
    macro_f1,
    roc_auc,
)

SCORES = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 0.75]), st.booleans()), min_size=2, max_size=30)


def test_the_area_counts_pairs_in_the_right_order() -> None:
    # True 0.35 and 0.8, false 0.1 and 0.4: of four pairs only (0.35, 0.4) is the wrong way round.
    scores, truth = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    assert roc_auc(scores, truth) == 3 / 4
    assert roc_auc(-scores, truth) == 1 / 4
    assert roc_auc(np.zeros(4), truth) == 1 / 2
    assert math.isnan(roc_auc(scores, np.ones(4, dtype=bool)))


@given(SCORES)
def test_the_area_agrees_with_scikit_learn(rows: list[tuple[float, bool]]) -> None:
    scores, truth = np.array([score for score, _ in rows]), np.array([true for _, true in rows])
    if 0 < truth.sum() < len(truth):
        assert roc_auc(scores, truth) == pytest.approx(roc_auc_score(truth, scores))


def test_macro_f1_weighs_labels_alike() -> None:
    predicted, truth = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    # Label 0: 2 * 2 / (3 + 2) = 0.8; label 1: 2 * 1 / (1 + 2) = 2/3.
    assert macro_f1(predicted, truth) == pytest.approx((0.8 + 2 / 3) / 2)
    assert macro_f1(predicted, truth) == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert accuracy(predicted, truth) == 0.75


def test_calibration_error_is_the_mean_gap_within_bins() -> None:
    # Two bins: 0.2 and 0.4 (mean 0.3) against 0 and 1 (0.5); 0.9 against 1. (2 * 0.2 + 1 * 0.1) / 3.
    error = calibration_error(np.array([0.2, 0.4, 0.9]), np.array([0.0, 1.0, 1.0]), bins=2)
    assert error == pytest.approx((2 * 0.2 + 0.1) / 3)
    assert calibration_error(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == 0


def test_intervals_hold_the_value_and_repeat() -> None:
    truth = np.array([1, 0, 1, 1, 0, 1, 1, 0, 1, 1])
    found = bootstrap_measure(accuracy, np.ones(10, dtype=np.int64), truth, rounds=200)
    assert found.value == 0.7
    assert found.low <= 0.7 <= found.high
    assert found.n == 10
    assert found == bootstrap_measure(accuracy, np.ones(10, dtype=np.int64), truth, rounds=200)


def test_correlation_of_a_line_is_one() -> None:
    assert pearson(np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 9.0])) == pytest.approx(1.0)
