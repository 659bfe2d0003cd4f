"""Agreement of labels with people's, worked by hand and against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from evenhand.core.errors import InputError
from evenhand.stats.classification_metrics import validate_labels

LABELS = ["negative", "neutral", "positive"]


def test_by_hand():
    # people:   n n u u u p      metric: n u u u p p
    human = ["negative"] * 2 + ["neutral"] * 3 + ["positive"]
    found = validate_labels(
        ["negative", "neutral", "neutral", "neutral", "positive", "positive"], human, labels=LABELS, rng=0
    )
    assert found.confusion == ((1, 1, 0), (0, 2, 1), (0, 0, 1))
    assert found.accuracy.value == pytest.approx(4 / 6)
    # precision: 1/1, 2/3, 1/2, weighted by 2, 3, 1 of 6
    assert found.precision.value == pytest.approx((2 * 1 + 3 * 2 / 3 + 1 / 2) / 6)
    assert found.recall.value == found.accuracy.value
    assert found.accuracy.low < found.accuracy.value < found.accuracy.high


def test_a_label_nobody_predicts_is_null_not_zero():
    found = validate_labels(["neutral", "neutral"], ["negative", "neutral"], labels=LABELS, rng=0)
    negative, _, positive = found.by_label
    assert negative.precision.value is None
    assert negative.precision.null_reason == "no values"
    assert negative.recall.value == 0.0
    assert positive.recall.value is None


@pytest.mark.parametrize("seed", range(5))
def test_equal_to_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    human, predicted = rng.choice(LABELS, 200, p=[0.2, 0.6, 0.2]), rng.choice(LABELS, 200)
    found = validate_labels(list(predicted), list(human), labels=LABELS, rng=seed)
    expected = precision_recall_fscore_support(human, predicted, labels=LABELS, average="weighted")
    assert [found.precision.value, found.recall.value, found.f1.value] == pytest.approx(expected[:3])
    each = precision_recall_fscore_support(human, predicted, labels=LABELS)
    assert [of.f1.value for of in found.by_label] == pytest.approx(each[2])


def test_shares_stay_shares_where_clusters_differ_in_size():
    human = ["negative", "positive"] * 24
    # One prompt has 40 of 48 texts: resamples have from 9 to 360 texts.
    clusters = [0] * 40 + list(range(1, 9))
    predicted = ["positive", *human[1:]]
    found = validate_labels(predicted, human, labels=LABELS, rng=0, clusters=clusters)
    for of in (found.accuracy, found.precision, found.recall, found.f1):
        assert 0.0 <= of.low < of.value < of.high <= 1.0
    assert found.accuracy.n_clusters == 9


def test_full_agreement_on_few_texts_is_no_certainty():
    found = validate_labels(LABELS * 4, LABELS * 4, labels=LABELS, rng=0)
    # Wilson's interval of 12 of 12 at the t quantile for 11 degrees of freedom,
    # 2.201: 12 / (12 + 2.201^2).
    assert (found.accuracy.low, found.accuracy.high) == (pytest.approx(0.7124, abs=1e-3), 1.0)
    for of in (found.precision, found.f1, found.kappa, found.by_label[0].f1):
        assert (of.value, of.low, of.null_reason) == (1.0, None, "no variation")
    assert found.by_label[0].recall.n == 4


def test_intervals_cover():
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        human = rng.choice(LABELS, 150)
        predicted = np.where(rng.random(150) < 0.7, human, rng.choice(LABELS, 150))
        found = validate_labels(list(predicted), list(human), labels=LABELS, rng=seed, resamples=400).accuracy
        hits += found.low <= 0.7 + 0.3 / 3 <= found.high
    assert 0.90 <= hits / 200 <= 0.99


def test_bad_input():
    with pytest.raises(InputError, match="unknown label 'angry'"):
        validate_labels(["angry"], ["neutral"], labels=LABELS, rng=0)
    with pytest.raises(InputError, match="1 labels came with 2 human ones"):
        validate_labels(["neutral"], ["neutral", "neutral"], labels=LABELS, rng=0)
    nothing = validate_labels([], [], labels=LABELS, rng=0)
    assert nothing.accuracy.value is None
