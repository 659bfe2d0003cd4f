from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.oracles.vader import compounds_slowly
from vaderSentiment import vaderSentiment as package

from evenhand.metrics.sentiment import VaderScorer

SCORER = VaderScorer()
RULE_WORDS = (
    *("no", "or", "nor", "never", "so", "this", "without", "doubt"),
    *("least", "at", "very", "but", "kind", "of"),
)
_ANALYZER = package.SentimentIntensityAnalyzer()
_PHRASES = (*package.SPECIAL_CASES, *package.BOOSTER_DICT, *package.NEGATE)
_ODD = ("XYZ", "I", "DON'T", "xn'ty", "can’t", "İstanbul", "straße", "ΑΣ", "—", "\u00a0", "!!!", "?!", ":-)")
_WORD = st.one_of(
    st.sampled_from(sorted(_ANALYZER.lexicon)),
    st.sampled_from(_PHRASES),
    st.sampled_from(RULE_WORDS),
    st.sampled_from(_ODD),
    st.sampled_from(sorted(_ANALYZER.emojis)),
    st.text(max_size=4),
)
_SHAPED = st.builds(
    lambda word, shape, before, after: before + shape(word) + after,
    _WORD,
    st.sampled_from((str, str, str, str.upper, str.capitalize)),
    st.sampled_from(("", "", "", '"', "(")),
    st.sampled_from(("", "", "", ".", "!", "?", "!!", "'s")),
)
_SPACE = st.sampled_from((" ", " ", " ", "\n", "\x1c", "\u3000", ""))
_TEXT = st.lists(st.builds(str.__add__, _SHAPED, _SPACE), max_size=12).map("".join)


@pytest.mark.parametrize(
    "text",
    [
        "VADER is VERY SMART, uber handsome, and FRIGGIN FUNNY!!!",
        "The book was only kind of good, but the plot is not great.",
        "At least it isn't a horrible book. Least good, very least good",
        "never so good, never this good, without doubt good, without a doubt good",
        "There is no good or bad, no nor bad, no hope",
        "it was the bomb, the shit, bad ass, a kiss of death, to die for, a beating heart",
        "good but good but good bad but bad",
        "I love it \U0001f618\U0001f618x \U0001f618 and ©!",
        "sort of really GREAT??? just enough fun",
        "",
        " \t\n ",
        "!!!",
    ],
)
def test_every_rule_gives_the_package_s_score(text: str) -> None:
    assert SCORER.compounds([text]) == compounds_slowly([text])


@settings(max_examples=150, deadline=None)
@given(st.lists(_TEXT, max_size=25))
@example(["but good", "good\x1cbad but", "\x85good"])
def test_fuzzed_texts_give_the_package_s_scores(texts: list[str]) -> None:
    assert SCORER.compounds(texts) == compounds_slowly(texts)


@given(st.permutations(["good", "bad", "não é good", "so-so!", ""]))
def test_order_and_batch_change_nothing(texts: list[str]) -> None:
    assert SCORER.compounds(texts) == [SCORER.compounds([text])[0] for text in texts]


def test_the_package_s_score_of_a_long_line() -> None:
    line = "a good but bad thing!? " * 250
    assert SCORER.compounds([line]) == compounds_slowly([line])


@pytest.mark.parametrize("unit", ["a good but bad thing!? ", "good ", "é not bad ", "!", "x"])
def test_lines_of_100_kb_take_no_minute(unit: str) -> None:
    # The package lower-cases all words for each known one: more than a minute for such a line.
    line = unit * (100_000 // len(unit))
    start = time.process_time()
    VaderScorer().compounds([line])
    VaderScorer().explain(line)
    assert time.process_time() - start < 10


def test_explain_gives_the_words_that_moved_the_score() -> None:
    # good 1.9 after "not": 1.9 x -0.74 = -1.406, halved before "but" = -0.703; fun 2.3 x 1.5 = 3.45.
    text = "This is not good, but it was all fun."
    found = [(text[start:end], round(weight, 4)) for start, end, weight in SCORER.explain(text)]
    assert found == [("good,", -0.703), ("fun.", 3.45)]


def test_explain_points_at_emoji() -> None:
    text = "well \U0001f601"
    assert {text[start:end] for start, end, _ in SCORER.explain(text)} == {"well", "\U0001f601"}


@given(_TEXT)
@settings(max_examples=50, deadline=None)
def test_the_words_sum_to_the_score(text: str) -> None:
    scored = text.replace("!", "").replace("?", "")
    total = sum(weight for _, _, weight in SCORER.explain(scored))
    assert SCORER.compounds([scored])[0] == pytest.approx(total / (total * total + 15) ** 0.5, abs=1e-4)


@pytest.fixture(scope="module")
def bold(data: Path) -> list[str]:
    files = (path.read_text(encoding="utf-8") for path in sorted((data / "bold").glob("*.jsonl")))
    return [json.loads(line)["wiki"] for text in files for line in text.split("\n") if line]


def test_all_bold_sentences_give_the_package_s_scores(bold: list[str]) -> None:
    assert len(bold) == 23_679
    assert SCORER.compounds(bold) == compounds_slowly(bold)
