from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import InputError
from evenhand.core.protocols import Explains, Metric
from evenhand.core.records import Mention, Text, Value
from evenhand.metrics.norms import BE5, VAD, Norms, label, scaled
from evenhand.text.lexicons import NORMS
from evenhand.text.masking import mask

HEADER = "word\t" + "\t".join(NORMS)
# Scaled: gift (1, 0.5, 0, 1, 0, 0, 0, 0), grave (-0.5, -1, -0.25, 0, 0.25, 1, 0.5, 0), stone all 0.
ROWS = (
    "gift\t9\t7\t5\t5\t1\t1\t1\t1",
    "grave\t3\t1\t4\t1\t2\t5\t3\t1",
    "stone\t5\t5\t5\t1\t1\t1\t1\t1",
    "the\t9\t9\t9\t5\t5\t5\t5\t5",
    "person\t9\t9\t9\t5\t5\t5\t5\t5",
)


@pytest.fixture(scope="module")
def metric(tmp_path_factory: pytest.TempPathFactory) -> Norms:
    path = tmp_path_factory.mktemp("norms") / "lexicon.tsv"
    path.write_text("\n".join([HEADER, *ROWS]))
    return Norms(source=str(path))


def values(metric: Norms, text: str) -> dict[str, float | None]:
    return {name: value.value for name, value in metric.score([Text(text)])[0].items()}


def test_it_is_a_metric_that_explains(metric: Norms) -> None:
    assert isinstance(metric, Metric)
    assert isinstance(metric, Explains)
    assert {output.name for output in metric.info.outputs} == {*VAD, *BE5}


def test_a_text_by_hand(metric: Norms) -> None:
    # Valence 1, -0.5: (1 - 0.25) / 1.5 = 0.5. Arousal 0.5, -1: (0.25 - 1) / 1.5 = -0.5. Anger 0, 0.25: 0.25.
    row = metric.score([Text("The gift, a grave.")])[0]
    assert row["valence"] == Value(0.5, "positive")
    assert row["arousal"] == Value(-0.5, "negative")
    assert row["dominance"] == Value(-0.25, "negative")
    assert row["joy"] == Value(1.0, "present")
    assert row["anger"] == Value(0.25, "present")
    assert row["disgust"] == Value(0.0, "absent")


def test_scaling_comes_before_averaging(metric: Norms) -> None:
    # Averaging the raw ratings 9 and 3 first gives (81 + 9) / 12 = 7.5, scaled 0.625: another number.
    assert values(metric, "gift grave")["valence"] == 0.5
    assert (7.5 - 5) / 4 == 0.625


def test_one_word_texts_have_the_word_s_score(metric: Norms) -> None:
    assert values(metric, "Grave's") == dict(zip(NORMS, (-0.5, -1, -0.25, 0, 0.25, 1, 0.5, 0), strict=True))
    assert set(values(metric, "stone").values()) == {0.0}


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "empty"), ("  ", "empty"), ("the", "no-known-word"), ("qwertz 7", "no-known-word")],
)
def test_no_known_word_is_null_with_a_reason(metric: Norms, text: str, reason: str) -> None:
    assert set(metric.score([Text(text)])[0].values()) == {Value(None, None, reason)}


def test_masks_do_not_count(metric: Norms) -> None:
    assert metric.score([Text("Person stone", ((0, 6),))])[0]["joy"] == Value(0.0, "absent")
    assert metric.score([Text("Person", ((0, 6),))])[0]["joy"].null_reason == "no-known-word"
    assert metric.score([Text("Person")])[0]["joy"] == Value(1.0, "present")
    assert [word.start for word in metric.explain(Text("Person stone", ((0, 6),)))] == [7]


@given(st.lists(st.sampled_from(["gift", "grave", "stone", "the", "x"]), max_size=8))
def test_bounds_and_order(metric: Norms, words: list[str]) -> None:
    text = " ".join(words)
    for name, value in values(metric, text).items():
        if value is not None:
            assert (-1 if name in VAD else 0) <= value <= 1
    turned = values(metric, " ".join(reversed(words)))
    assert turned == {
        name: value if value is None else pytest.approx(value) for name, value in values(metric, text).items()
    }


def test_a_value_at_its_cut_is_beyond_it() -> None:
    assert label("valence", -0.2, cut=0.2) == "negative"
    assert label("valence", 0.2, cut=0.2) == "positive"
    assert label("fear", 0.2, cut=0.2) == "present"
    assert label("fear", 0.19, cut=0.2) == "absent"


def test_cuts_are_options(tmp_path: Path, metric: Norms) -> None:
    path = tmp_path / "lexicon.csv"
    path.write_text("\n".join(line.replace("\t", ",") for line in [HEADER, *ROWS]))
    strict = Norms(source=str(path), cuts="valence=0.6, anger=0.3")
    row = strict.score([Text("gift grave")])[0]
    assert (row["valence"].label, row["anger"].label) == ("neutral", "absent")
    assert strict.info.identity() != metric.info.identity()
    for wrong in ("valence=0", "joy", "luck=0.3", "fear=nan"):
        with pytest.raises(InputError, match=f"^the option cuts has '{wrong}'. Accepted: variable=number"):
            Norms(cuts=wrong)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("gift\t9", "line 2: arousal is ''. Accepted: a number from 1 to 9."),
        ("gift" + "\t7" * 8, "line 2: joy is '7'. Accepted: a number from 1 to 5."),
        ("gift" + "\tnan" * 8, "line 2: valence is 'nan'. Accepted: a number from 1 to 9."),
        (ROWS[0] + "\n" + ROWS[0], "line 3: the word 'gift' occurs again. Accepted: one row a word."),
    ],
)
def test_a_broken_lexicon_is_named(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "bad.tsv"
    path.write_text(f"{HEADER}\n{row}")
    with pytest.raises(InputError) as caught:
        Norms(source=str(path))
    assert str(caught.value).startswith(f"{path}, {message}")


def test_a_lexicon_without_a_variable_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.tsv"
    path.write_text("word\tvalence\ngift\t9")
    with pytest.raises(InputError, match="has no column 'arousal'"):
        Norms(source=str(path))


def test_scaled_ends() -> None:
    low, high = np.array([[1.0] * 8]), np.array([[9.0] * 3 + [5.0] * 5])
    assert scaled(low).tolist() == [[-1, -1, -1, 0, 0, 0, 0, 0]]
    assert scaled(high).tolist() == [[1] * 8]


def test_direction_with_the_embedded_lexicon() -> None:
    glad, grim = Norms().score([Text("A wonderful, happy party."), Text("A murder and a cruel funeral.")])
    assert glad["valence"].label == "positive"
    assert grim["valence"].label == "negative"
    assert (glad["joy"].value or 0) > (grim["joy"].value or 0) + 0.2
    for name in ("anger", "sadness", "fear", "disgust"):
        assert (grim[name].value or 0) > (glad[name].value or 0) + 0.1


# BOLD, Table 9, European Americans, WIKI: shares in percent. The paper's lexicon and cuts are not released.
TABLE_9 = {
    **{
        "valence.negative": 2.07,
        "dominance.negative": 0.79,
        "valence.positive": 30.3,
        "dominance.positive": 5.1,
    },
    **{"joy": 95.25, "anger": 4.71, "sadness": 5.6, "fear": 7.09, "disgust": 2.25},
}


def test_wikipedia_s_shares_lie_near_the_paper_s(data: Path) -> None:
    lines = (data / "bold" / "race.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["group"] == "European_Americans"]
    scored = Norms().score([_anonymous(row) for row in rows])
    for name, printed in TABLE_9.items():
        variable, _, label = name.partition(".")
        ours = 100 * np.mean([row[variable].label == (label or "present") for row in scored])
        assert abs(ours - printed) < 4, name


def _anonymous(row: dict[str, str]) -> Text:
    name = re.sub(r"\(.*?\)", "", row["key"].replace("_", " ")).strip()
    parts = [name, *(part for part in name.split() if len(part) > 2)]
    masked = mask(row["wiki"], [Mention(part, mask="Person") for part in parts])
    return Text(masked.text, masked.spans)
