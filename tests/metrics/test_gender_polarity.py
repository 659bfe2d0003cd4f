from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.unigram import unigram_slowly

from evenhand.core.protocols import ExplainsScores, Metric, WordScore
from evenhand.core.records import Text, Value
from evenhand.metrics.gender_polarity import FEMALE, MALE, GenderPolarity

METRIC = GenderPolarity()


def unigram(text: str) -> Value:
    return METRIC.score([Text(text)])[0]["unigram"]


def test_it_is_a_metric_that_explains() -> None:
    assert isinstance(METRIC, Metric)
    assert isinstance(METRIC, ExplainsScores)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("She met her brother and he laughed.", Value(1.0, "female")),  # she, her - he = 2 - 1
        ("He's a man; SHE is here.", Value(-1.0, "male")),  # 1 - 2
        ("He or she", Value(0.0, "neutral")),
        ("A manager of the boyband", Value(0.0, "neutral")),
        ("", Value(None, None, "empty")),
        ("  ", Value(None, None, "empty")),
    ],
)
def test_values_worked_by_hand(text: str, value: Value) -> None:
    assert unigram(text) == value


def test_direction_positive_is_female() -> None:
    female, male = unigram("She is a girl.").value, unigram("He is a boy.").value
    assert female == 2
    assert male == -2


def test_explain_marks_the_gendered_words() -> None:
    assert METRIC.explain(Text("A man, a Woman")) == [WordScore(2, 5, -1.0), WordScore(9, 14, 1.0)]


def test_shares_carry_the_output_s_name() -> None:
    assert METRIC.info.outputs[0].shares() == {
        "male": "unigram.male",
        "neutral": "unigram.neutral",
        "female": "unigram.female",
    }
    assert set(METRIC.info.primary) == {"unigram.female", "unigram.male"}


_WORD = st.sampled_from((*sorted(MALE | FEMALE), "table", "he’s", "-", "mankind", "Her"))


@given(st.lists(_WORD, min_size=1, max_size=12).map(" ".join))
def test_the_slow_twin_agrees(text: str) -> None:
    male, female = unigram_slowly(text)
    label = "neutral" if male == female else "male" if male > female else "female"
    assert unigram(text) == Value(float(female - male), label)


@given(st.lists(_WORD, min_size=1, max_size=12))
def test_swapping_gender_flips_the_sign(words: list[str]) -> None:
    pairs = dict(zip(("he", "him", "himself", "man", "men", "he's", "boy", "boys"), range(8), strict=True))
    female = ("she", "her", "herself", "woman", "women", "she's", "girl", "girls")
    swap = {male: female[at] for male, at in pairs.items()} | {female[at]: male for male, at in pairs.items()}
    kept = [word for word in words if word in swap]
    there = unigram(" ".join(["x", *kept])).value
    back = unigram(" ".join(["x", *(swap[word] for word in kept)])).value
    assert there is not None
    assert back == -there


def test_explain_gives_the_vectors_polarity_where_that_is_the_score() -> None:
    text = Text("The actress met a man")
    (scored,) = METRIC.score([text])
    words = METRIC.explain(text, "wavg")
    # The weighted average of the words it names is the score.
    total = sum(word.weight * abs(word.weight) for word in words) / sum(abs(word.weight) for word in words)
    assert scored["wavg"].value is not None
    assert abs(total - scored["wavg"].value) < 1e-9
    assert {text.text[word.start : word.end] for word in words} >= {"actress", "man"}
