"""Gender-Wavg and Gender-Max: the outputs of gender_polarity that read word vectors."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import InputError
from evenhand.core.records import Mention, Text, Value
from evenhand.metrics.gender_polarity import GenderPolarity
from evenhand.text.hard_debiasing import load_debiased_vectors
from evenhand.text.rendering import mask_mentions
from evenhand.text.word_tokens import split_words

# Cosines with she - he = (2, 0): she 1, he -1, aunt 0.6, lad -0.8, stone 0.
VECTORS = "she 1 0\nhe -1 0\naunt 0.6 0.8\nlad -0.8 0.6\nstone 0 1\n"


@pytest.fixture(scope="module")
def metric(tmp_path_factory: pytest.TempPathFactory) -> GenderPolarity:
    path = tmp_path_factory.mktemp("vectors") / "toy.vec"
    path.write_text("5 2\n" + VECTORS)
    return GenderPolarity(source=str(path), debias=False)


def both(metric: GenderPolarity, text: str) -> tuple[Value, Value]:
    row = metric.score([Text(text)])[0]
    return row["wavg"], row["max"]


def test_texts_by_hand(metric: GenderPolarity) -> None:
    # wavg of "she ... lad": (1 - 0.64) / 1.8 = 0.2, below the cut; the most polar word is she.
    wavg, extreme = both(metric, "She saw a lad")
    assert wavg.value == pytest.approx(0.2)
    assert (wavg.label, extreme.label) == ("neutral", "female")
    assert extreme.value == pytest.approx(1.0)
    wavg, extreme = both(metric, "The lad, a stone")
    assert wavg.value == extreme.value == pytest.approx(-0.8)
    assert wavg.label == extreme.label == "male"


def test_a_tie_of_the_most_polar_words_is_neutral(metric: GenderPolarity) -> None:
    assert both(metric, "he or she") == (Value(0.0, "neutral"), Value(0.0, "neutral"))
    assert both(metric, "she or he") == both(metric, "he or she")


def test_no_known_word_is_null(metric: GenderPolarity) -> None:
    assert both(metric, "nothing here") == (Value(None, None, "no-known-word"),) * 2
    assert both(metric, "hers") == (Value(None, None, "no-known-word"),) * 2  # listed, but without a vector
    assert both(metric, " ") == (Value(None, None, "empty"),) * 2
    assert both(metric, "stone") == (Value(0.0, "neutral"),) * 2


@given(st.lists(st.sampled_from(["she", "he", "aunt", "lad", "stone", "x"]), min_size=1, max_size=8))
def test_bounds_and_order(metric: GenderPolarity, chosen: list[str]) -> None:
    wavg, extreme = both(metric, " ".join(chosen))
    for value in (wavg.value, extreme.value):
        assert value is None or -1 <= value <= 1
    turned = both(metric, " ".join(reversed(chosen)))
    assert turned[1] == extreme
    assert turned[0].value == (None if wavg.value is None else pytest.approx(wavg.value))


def test_options_are_part_of_the_identity(metric: GenderPolarity) -> None:
    default = GenderPolarity()
    assert default.info.identity() == GenderPolarity().info.identity()
    others = (metric, GenderPolarity(cut=0.3), GenderPolarity(debias=False))
    assert all(other.info.identity() != default.info.identity() for other in others)
    with pytest.raises(InputError, match=r"^the gender polarity cut is 2\."):
        GenderPolarity(cut=2)


def test_direction_with_the_embedded_vectors() -> None:
    metric = GenderPolarity()
    female = both(metric, "The mayor's aunt thanked her sister.")
    male = both(metric, "The mayor's uncle thanked his brother.")
    assert [value.label for value in female] == ["female"] * 2
    assert [value.label for value in male] == ["male"] * 2
    # Every known word of the two is one of an equalised pair or neutral: mirror images.
    assert female[0].value == pytest.approx(-(male[0].value or 0), abs=1e-4)


def test_occupations_have_no_gender_with_the_embedded_vectors() -> None:
    rows = GenderPolarity().score([Text(word) for word in ("nurse", "engineer", "secretary", "plumber")])
    assert all(abs(row["max"].value or 0) < 1e-5 for row in rows)


# BOLD, Table 3 (WIKI, Gender-Wavg), with the vectors and word lists its authors used.
TABLE_3 = {
    "arts": (
        (
            "dance_occupations film_and_television_occupations artistic_occupations entertainer_occupations "
            "writing_occupations theatre_personnel"
        ),
        (114, 77),
    ),
    "science": ("engineering_branches scientific_occupations computer_occupations", (64, 5)),
}


@pytest.fixture(scope="module")
def published(data: Path, tmp_path_factory: pytest.TempPathFactory) -> GenderPolarity:
    folder = data / "embeddings"
    names = {
        "definitional_pairs": "definitional_pairs",
        "equalise_pairs": "equalize_pairs",
        "gender_specific": "gender_specific_full",
    }
    lists = {ours: json.loads((folder / f"{theirs}.json").read_text()) for ours, theirs in names.items()}
    path = tmp_path_factory.mktemp("lists") / "words.json"
    path.write_text(json.dumps(lists))
    return GenderPolarity(source=str(folder / "googlenews_26k_300d.bin"), gender_words=str(path))


@pytest.mark.parametrize("name", TABLE_3)
def test_table_3_of_bold_gender_wavg(published: GenderPolarity, data: Path, name: str) -> None:
    groups, printed = TABLE_3[name]
    lines = (data / "bold" / "profession.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["group"] in groups.split()]
    labels = Counter(row["wavg"].label for row in published.score([_masked(row) for row in rows]))
    assert (labels["male"], labels["female"]) == printed


def _masked(row: dict[str, str]) -> Text:
    key = re.sub(r"\(.*?\)", "", row["key"].replace("_", " ")).strip()
    return Text(mask_mentions(row["wiki"], [Mention(key, whole_word=False)]).text)


def test_much_faster_than_a_loop_of_cosines() -> None:
    text = Text(
        "The engineer and her brother thanked the nurses of the old hospital for their help that night."
    )
    metric, vectors = GenderPolarity(), load_debiased_vectors()
    gender = vectors.vector("she") - vectors.vector("he")

    def looped() -> list[float]:
        known = [vectors.vector(word) for word in split_words(text.text) if word in vectors.index]
        return [float(v @ gender / (np.linalg.norm(v) * np.linalg.norm(gender))) for v in known]

    # Measured 10 to 14; the bar of 8 is the benchmark's, this one only guards against a return to loops.
    assert _seconds(lambda: [looped() for _ in range(200)]) > 4 * _seconds(lambda: metric.score([text] * 200))


def _seconds(work: object) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()  # type: ignore[operator]
        best = min(best, time.process_time() - start)
    return best
