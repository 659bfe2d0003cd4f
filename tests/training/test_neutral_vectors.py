"""Ideology-neutral vectors at a tiny scale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from evenhand.core.errors import InputError
from evenhand.mitigations.word_lists import WordLists
from evenhand.text.word_vectors import read_vectors
from evenhand.training.neutral_vectors import (
    NeutralVectorConfig,
    count_cooccurrences,
    fit_glove,
    train_neutral_vectors,
)

SIDES = WordLists(("left", "right"), (("red", "rose"), ("blue", "sky")))
TEXTS = ["red rose bloom garden soil water"] * 15 + ["blue sky cloud air wind water"] * 15


def test_pairs_are_weighed_by_distance_and_end_with_the_document() -> None:
    ids = np.array([0, 1, 2, -1, 0, -1], dtype=np.int32)
    counts = count_cooccurrences(ids, 3, window=2).toarray()
    # 0-1 and 1-2 are neighbours (1), 0-2 two apart (1/2); nothing reaches over a document's end.
    assert counts.tolist() == [[0, 1, 0.5], [1, 0, 1], [0.5, 1, 0]]


def test_the_last_column_takes_up_what_parts_the_sides() -> None:
    counts = count_cooccurrences(np.array([0, 2, 1, 2, -1, 3, 4, 5, 4, -1] * 6, dtype=np.int32), 6, window=2)
    places = (torch.tensor([0, 1]), torch.tensor([3, 5]))

    def share(recipe: NeutralVectorConfig) -> float:
        matrix = fit_glove(counts, places, recipe)
        assert (matrix == fit_glove(counts, places, recipe)).all()
        gap = np.square(matrix[[0, 1]].mean(0) - matrix[[3, 5]].mean(0))
        return float(gap[4] / gap.sum())

    # GloVe alone spreads what parts them over all five columns.
    split = NeutralVectorConfig(width=4, epochs=40, batch=64)
    assert share(split) > 2 * share(replace(split, apart=0.0, neutral=0.0))


def test_from_texts_to_a_file_of_vectors(tmp_path: Path) -> None:
    recipe = NeutralVectorConfig(words=50, width=6, epochs=10, batch=256)
    made = train_neutral_vectors(TEXTS, tmp_path, sides=SIDES, recipe=recipe)
    read = read_vectors(tmp_path / "vectors.safetensors")
    assert set(read.words) == set(made.words) >= {"red", "blue", "water"}
    assert read.matrix.shape[1] == 6


def test_texts_without_the_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^no word of a side is frequent enough in the texts\."):
        train_neutral_vectors(
            ["water air soil"] * 20, tmp_path, sides=SIDES, recipe=NeutralVectorConfig(epochs=1)
        )
