from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evenhand.core.errors import InputError
from evenhand.text.lexicons import NORMS, Lexicon, read_lexicon, write_lexicon
from evenhand.text.word_vectors import WordVectors
from evenhand.training.norm_prediction import (
    NormNetworkConfig,
    WordRatings,
    build_lexicon,
    cross_validate,
    match_vectors,
    read_word_ratings,
)

QUICK = NormNetworkConfig(
    hidden=(16, 8), input_dropout=0.0, hidden_dropout=0.0, steps=400, rate=3e-3, networks=1, folds=3
)


def taught(words: int = 240) -> tuple[WordVectors, WordRatings]:
    """Vectors whose first column decides valence and the second joy; the rest is noise."""
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(words, 6)).astype(np.float32)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    values = np.full((words, len(NORMS)), np.nan, dtype=np.float32)
    values[:, 0] = 5 + 4 * unit[:, 0]
    values[: words // 2, 3] = 3 + 2 * unit[: words // 2, 1]  # half of the words have no joy
    names = tuple(f"w{number}" for number in range(words))
    return WordVectors.create(names, matrix, source="toy"), WordRatings(names, values)


def test_held_out_words_are_predicted_where_vectors_tell() -> None:
    vectors, ratings = taught()
    found = {name: (r, words) for name, r, words in cross_validate(*match_vectors(ratings, vectors), QUICK)}
    assert found["valence"][0] > 0.9
    assert found["joy"][0] > 0.8
    assert (found["valence"][1], found["joy"][1], found["fear"][1]) == (240, 120, 0)


def test_the_lexicon_covers_all_words_within_the_scales() -> None:
    vectors, ratings = taught()
    lexicon = build_lexicon(vectors, WordRatings(ratings.words[:200], ratings.values[:200]), QUICK)
    assert lexicon.words == vectors.words
    assert lexicon.values[:, :3].min() >= 1
    assert lexicon.values[:, :3].max() <= 9
    assert lexicon.values[:, 3:].max() <= 5
    again = build_lexicon(vectors, WordRatings(ratings.words[:200], ratings.values[:200]), QUICK)
    assert np.array_equal(lexicon.values, again.values)


def test_ratings_are_read_by_column_name(tmp_path: Path) -> None:
    first, second = tmp_path / "vad.csv", tmp_path / "be5.tsv"
    first.write_text('Word,Length,Arousal,Valence\nHat,3,4.5,6\nbat (animal),3,1,1\n"a b",2,1,1\n')
    second.write_text("Word\tJoy\tFear\nhat\t2\t1.5\ncat\t3\t\n")
    ratings = read_word_ratings([first, second])
    assert ratings.words == ("hat", "cat")
    nan = np.nan
    expected = [[6, 4.5, nan, 2, nan, nan, 1.5, nan], [nan, nan, nan, 3, nan, nan, nan, nan]]
    assert np.array_equal(ratings.values, np.array(expected, dtype=np.float32), equal_nan=True)


def test_a_word_rated_twice_has_the_mean(tmp_path: Path) -> None:
    path = tmp_path / "vad.csv"
    path.write_text("word,valence\nhat,4\nHAT,6\n")
    assert read_word_ratings([path]).values[0, 0] == 5


def test_a_table_without_ratings_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("word,length\nhat,3\n")
    with pytest.raises(
        InputError, match=r"x\.csv has no ratings\. Expected: a table in UTF-8 with the columns word and"
    ):
        read_word_ratings([path])


def test_ratings_of_another_language_are_refused() -> None:
    vectors, ratings = taught(8)
    with pytest.raises(InputError, match=r"^no rated word has a vector\."):
        match_vectors(WordRatings(tuple("abcdefgh"), ratings.values), vectors)


@pytest.mark.parametrize("name", ["lexicon.tsv", "lexicon.tsv.xz"])
def test_a_lexicon_round_trips_to_two_decimals(tmp_path: Path, name: str) -> None:
    values = np.array([[1.234, 9, 5, 1, 2, 3, 4, 5]], dtype=np.float32)
    write_lexicon(Lexicon(('"',), values, tuple(NORMS)), tmp_path / name)
    read = read_lexicon(tmp_path / name)
    assert read.words == ('"',)
    assert read.values[0].tolist() == pytest.approx([1.23, 9, 5, 1, 2, 3, 4, 5])
