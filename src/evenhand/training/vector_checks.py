"""What is asked of word vectors: analogies and word similarity."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from evenhand.core.files import asset_path
from evenhand.text.word_vectors import WordVectors, unit_rows

Pairs = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class VectorChecks:
    """Our own questions to word vectors."""

    analogies: Mapping[str, Pairs]
    """Kind to pairs; every two pairs of a kind make a question."""
    similarity: Sequence[tuple[str, str, float]]
    """Two words and how alike they are, 0 to 10."""
    neighbours: Sequence[str]
    occupations: Sequence[str]


class QuestionScore(NamedTuple):
    """How many of how many."""

    right: int
    total: int


def embedded_checks() -> VectorChecks:
    """The questions that ship with the embedded vectors."""
    lists = json.loads(asset_path("embeddings", "checks.json").read_text(encoding="utf-8"))
    similarity = [(first, second, float(rating)) for first, second, rating in lists["similarity"]]
    return VectorChecks(lists["analogies"], similarity, lists["neighbours"], lists["occupations"])


def analogy_shares(vectors: WordVectors, analogies: Mapping[str, Pairs]) -> dict[str, QuestionScore]:
    """For each kind the questions answered right: the nearest word to b - a + c is d (a, b, c left out).

    Questions with a word that has no vector are not asked.
    """
    unit = unit_rows(vectors.matrix)
    return {kind: _score_questions(unit, vectors.index, pairs) for kind, pairs in analogies.items()}


def similarity_correlation(
    vectors: WordVectors, pairs: Sequence[tuple[str, str, float]]
) -> tuple[float, int]:
    """Spearman's correlation of cosines with the ratings, in [-1, 1], and the number of pairs known."""
    unit = unit_rows(vectors.matrix)
    known = [(a, b, rating) for a, b, rating in pairs if a in vectors.index and b in vectors.index]
    cosines = np.array([unit[vectors.index[a]] @ unit[vectors.index[b]] for a, b, _ in known])
    ratings = np.array([rating for _, _, rating in known])
    return float(spearmanr(cosines, ratings).statistic), len(known)


def _score_questions(unit: npt.NDArray[np.float32], index: Mapping[str, int], pairs: Pairs) -> QuestionScore:
    known = [(index[a], index[b]) for a, b in pairs if a in index and b in index]
    questions = [(a, b, c, d) for a, b in known for c, d in known if a != c]
    if not questions:
        return QuestionScore(0, 0)
    a, b, c, d = np.array(questions).T
    cosines = (unit[b] - unit[a] + unit[c]) @ unit.T
    for given in (a, b, c):
        cosines[np.arange(len(questions)), given] = -np.inf
    return QuestionScore(int((cosines.argmax(axis=1) == d).sum()), len(questions))
