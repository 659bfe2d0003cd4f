"""People's labels as a metric's."""

from __future__ import annotations

import pytest

from evenhand.annotate.validate import find_question, map_labels
from evenhand.core.errors import InputError
from evenhand.core.records import MetricInfo, OutputInfo
from evenhand.stats.label_scales import POLARITY, LabelScale


def info(*labels: str, name: str = "sentiment") -> MetricInfo:
    output = OutputInfo("score", "continuous", "more", low=-1.0, high=1.0, labels=labels)
    return MetricInfo(name=name, version="1", outputs=(output,), summary="", primary=())


THREE = info("negative", "neutral", "positive")


def of(scale: LabelScale, metric: MetricInfo = THREE, **renamed: str) -> dict[str, str | None]:
    return dict(map_labels(metric, scale, renamed=renamed)[0].labels)


def test_the_same_words_and_those_without_a_place() -> None:
    found = of(LabelScale("x", {"negative": -1, "positive": 1, "mixed": 0, "nonsense": None}))
    assert found == {"negative": "negative", "positive": "positive", "mixed": None, "nonsense": None}
    with_other = info("negative", "neutral", "positive", "other", name="regard")
    assert of(LabelScale("x", {"negative": -1, "positive": 1, "mixed": 0}), with_other)["mixed"] == "other"


def test_codes_and_other_spellings() -> None:
    codes = LabelScale("x", {"-1": -1.0, "0": 0.0, "1": 1.0})
    assert of(codes) == {"-1": "negative", "0": "neutral", "1": "positive"}
    two = info("nontoxic", "toxic", name="toxicity")
    assert of(LabelScale("x", {"0": 0.0, "1": 1.0}), two) == {"0": "nontoxic", "1": "toxic"}
    # The study of toxicity calls the other label neutral, as the BOLD paper does.
    assert of(LabelScale("x", {"neutral": 0.0, "toxic": 1.0}), two) == {
        "neutral": "nontoxic",
        "toxic": "toxic",
    }


def test_what_the_user_says_wins() -> None:
    scale = LabelScale("x", {"bad": 0.0, "good": 1.0, "odd": 2.0})
    assert of(scale, bad="negative", good="positive", odd="") == {
        "bad": "negative",
        "good": "positive",
        "odd": None,
    }
    with pytest.raises(
        InputError, match=r"^the human label 'odd' is not a label of the metric\. Expected: negative"
    ):
        of(scale, bad="negative", good="positive")
    with pytest.raises(
        InputError, match=r"^the human label 'odd', mapped to 'sad', is not a label of the metric"
    ):
        of(scale, bad="negative", good="positive", odd="sad")


def test_ratings_are_compared_by_rank_alone() -> None:
    (found,) = map_labels(THREE, LabelScale("numbers", {str(n): float(n) for n in range(1, 8)}), renamed={})
    assert not found.is_complete


def test_labels_that_are_not_the_metrics() -> None:
    with pytest.raises(
        InputError,
        match=r"^the human labels are cat, dog, of which sentiment has fewer than two\. Expected: score: ",
    ):
        map_labels(THREE, LabelScale("x", {"cat": None, "dog": None}), renamed={})
    with pytest.raises(InputError, match=r"^metric 'sentiment' has no output 'norm'\. Expected: score\."):
        map_labels(THREE, POLARITY, renamed={}, outputs=["norm"])


def test_the_question_a_metric_answers() -> None:
    assert find_question("regard", ["sentiment", "regard"]) == "regard"
    assert find_question("gender_polarity", ["gender", "sentiment"]) == "gender"
    assert find_question("norms", ["joy"]) == "joy"
    with pytest.raises(
        InputError, match=r"^there are 2 questions, none of them 'toxicity'\. Expected: a, b\."
    ):
        find_question("toxicity", ["a", "b"])


def test_one_label_tells_nothing_apart() -> None:
    with pytest.raises(
        InputError,
        match=r"^every text has the human label neutral: .* Expected: texts with at least two labels",
    ):
        of(LabelScale("x", {"neutral": 0.0}))
