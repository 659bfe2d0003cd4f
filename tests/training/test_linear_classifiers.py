"""Logistic regression over hashed word n-grams."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.training.linear_text import (
    fit_logistic_regression,
    hashed_ngrams,
    inverse_frequency,
    weight_columns,
)


def test_rows_have_length_one_and_count_logarithmically() -> None:
    matrix = hashed_ngrams(["no no no yes"], longest=1)
    # "no" weighs 1 + ln 3, "yes" 1, before the row is scaled.
    lengths = np.hypot(1 + np.log(3), 1)
    assert sorted(matrix.data) == pytest.approx(sorted([(1 + np.log(3)) / lengths, 1 / lengths]))


def test_runs_of_two_words_are_features_of_their_own() -> None:
    one, two = (hashed_ngrams(["a b c"], longest=longest).nnz for longest in (1, 2))
    assert (one, two) == (3, 5)


def test_rare_features_weigh_more() -> None:
    matrix = hashed_ngrams(["x y", "x z"], longest=1)
    weights = inverse_frequency(matrix)[np.unique(matrix.indices)]
    # ln(3 / 3) + 1 = 1 for the word in both texts, ln(3 / 2) + 1 for the others.
    assert sorted(weights) == pytest.approx([1.0, np.log(1.5) + 1, np.log(1.5) + 1])
    assert np.allclose(weight_columns(matrix, inverse_frequency(matrix)).power(2).sum(1), 1)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_fit_is_the_one_scikit_learn_finds(classes: int) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(80, 4))
    labels = (features[:, 0] + rng.normal(size=80) > 0).astype(int) + (features[:, 1] > 1) * (classes - 2)
    ours = fit_logistic_regression(features, labels, classes=classes, strength=2.0).probabilities(features)
    theirs = LogisticRegression(C=2.0, tol=1e-8, max_iter=1000).fit(features, labels).predict_proba(features)
    assert np.allclose(ours, theirs[:, 1:] if classes == 2 else theirs, atol=2e-3)


def test_words_tell_texts_apart() -> None:
    texts = ["a lovely day", "such a lovely song", "an awful day", "what an awful song"] * 3
    matrix = hashed_ngrams(texts)
    model = fit_logistic_regression(matrix, np.array([1, 1, 0, 0] * 3), strength=10.0)
    lovely, awful = model.probabilities(hashed_ngrams(["lovely", "awful"]))[:, 0]
    assert lovely > 0.6 > 0.4 > awful
