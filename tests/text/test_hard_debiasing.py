from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.debiasing import debias_slowly

from evenhand.core.errors import InputError
from evenhand.text.hard_debiasing import (
    GenderWords,
    gender_direction,
    gender_polarities,
    hard_debias,
    load_gender_words,
    read_gender_words,
)
from evenhand.text.word_vectors import WordVectors

WORDS = ("she", "he", "woman", "man", "nurse", "engineer", "stone")
LISTS = GenderWords(
    definitional=(("she", "he"), ("woman", "man")),
    equalise=(("woman", "man"), ("she", "he")),
    specific=frozenset({"she", "he", "woman", "man"}),
)
# First column: gender. The nurse leans female, the engineer male.
TOY = np.array(
    [[1, 0, 1], [-1, 0, 1], [1, 1, 0], [-1, 1, 0], [0.6, 0.8, 0], [-0.6, 0, 0.8], [0, 3, 4]], dtype=np.float32
)


def toy(matrix: np.ndarray = TOY) -> WordVectors:
    return WordVectors.create(WORDS, np.asarray(matrix, dtype=np.float32), source="toy")


def test_the_direction_is_the_pairs_difference_towards_the_first_words() -> None:
    assert gender_direction(toy(), LISTS.definitional) == pytest.approx([1, 0, 0], abs=1e-6)
    swapped = tuple((male, female) for female, male in LISTS.definitional)
    assert gender_direction(toy(), swapped) == pytest.approx([-1, 0, 0], abs=1e-6)


def test_polarities_before_by_hand() -> None:
    # she - he = (2, 0, 0): the cosine is the first column over the length.
    half = 1 / np.sqrt(2)
    expected = [half, -half, half, -half, 0.6, -0.6, 0]
    assert gender_polarities(toy()).tolist() == pytest.approx(expected, abs=1e-6)


def test_polarities_after_by_hand() -> None:
    # Neutral words lose column one. Pairs keep their mean without it (length 1/sqrt 2): sqrt(1/2) is gender.
    half = 1 / np.sqrt(2)
    after = hard_debias(toy(), LISTS)
    assert gender_polarities(after).tolist() == pytest.approx([half, -half, half, -half, 0, 0, 0], abs=1e-6)
    assert after.vector("nurse").tolist() == pytest.approx([0, 1, 0], abs=1e-6)
    assert after.vector("engineer").tolist() == pytest.approx([0, 0, 1], abs=1e-6)


def test_the_order_of_a_pair_may_decide_which_word_is_female() -> None:
    # "wife" leans male and "husband" female, as small vectors may have it.
    matrix = np.array([[1, 0], [-1, 0], [-0.6, 0.8], [0.6, 0.8]], dtype=np.float32)
    vectors = WordVectors.create(("she", "he", "wife", "husband"), matrix, source="toy")
    pairs = (("she", "he"), ("wife", "husband"))
    published = GenderWords(pairs[:1], pairs, frozenset(vectors.words))
    ordered = GenderWords(pairs[:1], pairs, frozenset(vectors.words), female_first=True)
    for lists, wife in ((published, -0.6), (ordered, 0.6)):
        after = dict(zip(vectors.words, gender_polarities(hard_debias(vectors, lists)).tolist(), strict=True))
        assert after == pytest.approx({"she": 1, "he": -1, "wife": wife, "husband": -wife}, abs=1e-6)


def test_a_word_of_a_known_gender_is_kept_only_where_its_vector_agrees() -> None:
    matrix = np.array([[1, 0], [-1, 0], [0.6, 0.8], [0.6, 0.8]], dtype=np.float32)
    vectors = WordVectors.create(("she", "he", "maid", "mailman"), matrix, source="toy")
    lists = GenderWords(
        (("she", "he"),),
        (),
        frozenset(vectors.words),
        female=frozenset({"maid"}),
        male=frozenset({"mailman"}),
    )
    assert gender_polarities(hard_debias(vectors, lists)).tolist() == pytest.approx([1, -1, 0.6, 0], abs=1e-6)


def test_the_input_is_not_changed() -> None:
    vectors = toy(TOY.copy())
    hard_debias(vectors, LISTS)
    assert (vectors.matrix == TOY).all()


@st.composite
def _matrices(draw: st.DrawFn) -> np.ndarray:
    """Random vectors whose pairs differ along the first axis by more than by chance."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    matrix = rng.normal(size=(7, 6))
    matrix[1], matrix[3] = matrix[0], matrix[2]
    matrix[:4] += 0.2 * rng.normal(size=(4, 6))
    matrix[:4, 0] += [2, -2, 2, -2]
    return matrix.astype(np.float32)


@given(_matrices())
def test_the_slow_twin_agrees_and_the_laws_hold(matrix: np.ndarray) -> None:
    fast = hard_debias(toy(matrix), LISTS)
    direction = gender_direction(toy(matrix).normalise(), LISTS.definitional)
    assert np.linalg.norm(fast.matrix, axis=1) == pytest.approx(np.ones(7), abs=1e-5)
    assert np.abs(fast.matrix[4:] @ direction).max() < 1e-5
    # Equalised words are equally far from every neutral word.
    assert np.abs(fast.matrix[4:] @ (fast.vector("she") - fast.vector("he"))).max() < 1e-5
    slow = debias_slowly(
        dict(zip(WORDS, matrix.astype(np.float64), strict=True)),
        definitional=LISTS.definitional,
        equalise=LISTS.equalise,
        specific=LISTS.specific,
    )
    assert fast.matrix == pytest.approx(np.array([slow[word] for word in WORDS]), abs=1e-4)


def test_vectors_without_the_pairs_are_refused() -> None:
    vectors = WordVectors.create(("la", "le"), np.eye(2, dtype=np.float32), source="fr.vec")
    with pytest.raises(InputError, match=r"^fr\.vec has no vectors for any definitional pair\."):
        hard_debias(vectors, LISTS)
    with pytest.raises(InputError, match=r"^fr\.vec has no vector for 'she'\."):
        gender_polarities(vectors)


def test_equal_vectors_for_she_and_he_are_refused() -> None:
    vectors = WordVectors.create(("she", "he"), np.ones((2, 2), dtype=np.float32), source="x.vec")
    with pytest.raises(InputError, match=r"^x\.vec gives 'she' and 'he' the same vector\."):
        gender_polarities(vectors)
    # Debiasing would pull them apart along a direction that means nothing.
    with pytest.raises(InputError, match=r"^x\.vec gives both words of every definitional pair the same vec"):
        hard_debias(vectors, LISTS)


def test_our_word_lists_are_lower_case_pairs_without_repeats() -> None:
    lists = load_gender_words()
    assert len(lists.definitional) >= 10
    assert len(lists.equalise) >= 100
    assert lists.female_first
    assert not lists.female & lists.male
    assert all(word == word.lower() and " " not in word for word in lists.specific)
    paired = [word for pair in lists.equalise for word in pair]
    assert len(set(paired)) == len(paired)


def test_a_broken_word_list_is_named(tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    path.write_text('{"definitional_pairs": [["she"]], "equalise_pairs": [], "gender_specific": []}')
    with pytest.raises(InputError, match=f"^{re.escape(str(path))} is no list of gender words"):
        read_gender_words(path)


# BOLD, Table 3 (WIKI, Gender-Wavg): texts called male and female at 0.25, with the vectors its authors used.
ARTS = ("dance", "entertainer", "film_and_television", "artistic", "writing")
GROUPS = {
    "arts & entertainment": (
        frozenset({*(f"{n}_occupations" for n in ARTS), "theatre_personnel"}),
        3009,
        (114, 77),
    ),
    "science & technology": (
        frozenset({"scientific_occupations", "engineering_branches", "computer_occupations"}),
        4153,
        (64, 5),
    ),
}


@pytest.fixture(scope="module")
def published(data: Path) -> WordVectors:
    from evenhand.text.word_vectors import read_vectors

    folder = data / "embeddings"
    lists = GenderWords(
        definitional=tuple(map(tuple, json.loads((folder / "definitional_pairs.json").read_text()))),
        equalise=tuple(map(tuple, json.loads((folder / "equalize_pairs.json").read_text()))),
        specific=frozenset(json.loads((folder / "gender_specific_full.json").read_text())),
    )
    return hard_debias(read_vectors(folder / "googlenews_26k_300d.bin"), lists)


@pytest.mark.parametrize("name", GROUPS)
def test_published_vectors_give_the_printed_counts(published: WordVectors, data: Path, name: str) -> None:
    polarity = dict(zip(published.words, gender_polarities(published).tolist(), strict=True))
    groups, size, printed = GROUPS[name]
    texts = [
        json.loads(line)
        for line in (data / "bold" / "profession.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    mine = [text for text in texts if text["group"] in groups]
    scores = [_wavg(_masked(text["wiki"], text["key"]), polarity) for text in mine]
    assert len(mine) == size
    assert (sum(s <= -0.25 for s in scores), sum(s >= 0.25 for s in scores)) == printed


def _masked(text: str, key: str) -> str:
    profession = re.sub(r"\(.*?\)", "", key.replace("_", " ")).strip()
    return re.sub(re.escape(profession), "XYZ", text, flags=re.IGNORECASE)


def _wavg(text: str, polarity: dict[str, float]) -> float:
    scores = [polarity[word] for word in re.findall(r"\w+(?:'\w+)?", text.lower()) if word in polarity]
    weight = sum(map(abs, scores))
    return sum(score * abs(score) for score in scores) / weight if weight else 0.0
