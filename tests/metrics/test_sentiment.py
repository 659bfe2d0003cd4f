from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import InputError
from evenhand.core.protocols import ExplainsScores, Metric
from evenhand.core.records import Text, Value
from evenhand.metrics.sentiment import Sentiment, VaderScorer

METRIC = Sentiment()


def test_it_is_a_metric_that_explains() -> None:
    assert isinstance(METRIC, Metric)
    assert isinstance(METRIC, ExplainsScores)


def test_a_value_worked_by_hand() -> None:
    # "good" has valence 1.9: 1.9 / sqrt(1.9^2 + 15) = 1.9 / 4.3139 = 0.4404
    assert METRIC.score([Text("good")]) == [
        {"compound": Value(0.4404, "neutral"), "compound@0.05": Value(0.4404, "positive")}
    ]


def test_direction() -> None:
    kind, cruel = METRIC.score([Text("They praised her kindness."), Text("They hated her cruelty.")])
    assert kind["compound"].value > cruel["compound"].value  # type: ignore[operator]


@pytest.mark.parametrize(
    ("compound", "cut", "expected"),
    [
        (0.5, 0.5, "positive"),
        (0.4999, 0.5, "neutral"),
        (-0.5, 0.5, "negative"),
        (-0.4999, 0.5, "neutral"),
        (0.05, 0.05, "positive"),
        (-0.05, 0.05, "negative"),
        (0.0, 0.05, "neutral"),
    ],
)
def test_the_cut_belongs_to_the_outer_classes(
    compound: float, cut: float, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VaderScorer, "compounds", lambda scorer, texts: [compound] * len(texts))
    assert Sentiment(cut=cut).score([Text("a text")])[0]["compound"] == Value(compound, expected)


@pytest.mark.parametrize("text", ["", " \n\t", "\u3000"])
def test_an_empty_text_is_null_with_a_reason(text: str) -> None:
    empty = Value(None, None, "empty")
    assert METRIC.score([Text(text)]) == [{"compound": empty, "compound@0.05": empty}]


def test_a_text_without_known_words_is_a_measured_zero() -> None:
    assert METRIC.score([Text("the table")])[0]["compound"] == Value(0.0, "neutral")


def test_shares_are_named_by_cut() -> None:
    shares = [tuple(output.shares().values()) for output in METRIC.info.outputs]
    assert shares == [
        ("negative", "neutral", "positive"),
        ("negative@0.05", "neutral@0.05", "positive@0.05"),
    ]
    assert METRIC.info.primary == ("negative", "positive")


def test_another_primary_cut_keeps_bolds_beside_it() -> None:
    metric = Sentiment(cut=0.05)
    assert metric.score([Text("good")])[0] == {
        "compound": Value(0.4404, "positive"),
        "compound@0.5": Value(0.4404, "neutral"),
    }
    assert metric.info.identity() != METRIC.info.identity()
    assert metric.info.options == {"cut": "0.05"}


@pytest.mark.parametrize("cut", [0, -0.5, 1.5, float("nan")])
def test_an_impossible_cut_is_refused(cut: float) -> None:
    with pytest.raises(InputError) as error:
        Sentiment(cut=cut)
    assert str(error.value) == (
        f"the sentiment cut is {cut}. Expected: a number above 0 and at most 1. "
        "Fix: use 0.5 as BOLD does, or 0.05 as VADER's authors do."
    )


@given(st.lists(st.text(max_size=20).map(Text), max_size=8))
def test_one_row_a_text_within_bounds_or_null(texts: list[Text]) -> None:
    rows = METRIC.score(texts)
    assert len(rows) == len(texts)
    for row in rows:
        for value, name, reason in row.values():
            assert (value is None) == (name is None) == (reason is not None)
            assert value is None or -1 <= value <= 1


def test_the_identity_holds_version_and_lexicon() -> None:
    assert METRIC.info.version == "1+vader3.3.2"
    assert len(METRIC.info.weights) == 32
