"""Hard-debiasing of word vectors: gender leaves every word that does not mean it (Bolukbasi et al. 2016).

The published algorithm, step by step:

1. every vector is scaled to length 1;
2. the gender direction is the first principal component of the definitional pairs, each centred on its mean;
3. *neutralise*: words that are not gender-specific lose their part along it, and all are scaled again;
4. *equalise*: the two words of a pair get the same neutral part, and opposite parts along the direction.

One direction is taken out. A word's neighbours still tell its usual gender (Gonen and Goldberg 2019): the
result serves to measure gendered words in a text, and is no promise about the vectors.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.regular_files import read_text
from evenhand.text.word_vectors import WordVectors, load_embedded_vectors, unit_rows

Matrix = npt.NDArray[np.float32]
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class GenderWords:
    """The word lists that hard-debiasing needs."""

    definitional: Pairs
    """Pairs that differ in gender alone: they give the direction."""
    equalise: Pairs
    """Pairs that must differ in gender alone afterwards."""
    specific: frozenset[str]
    """Words that mean a gender, and keep it."""
    female_first: bool = False
    """True where every pair names the female word first; else, as published, the vectors decide."""
    female: frozenset[str] = frozenset()
    """Specific words known to be female: kept only where their vector points that way too."""
    male: frozenset[str] = frozenset()
    """Specific words known to be male, likewise."""


def read_gender_words(path: Path) -> GenderWords:
    """The word lists of a JSON file: ``definitional_pairs``, ``equalise_pairs`` and gender-specific words.

    The last are one list ``gender_specific``, as published, or two, ``female`` and ``male``. Words of a pair
    are specific without being listed again. ``female_first`` is true or left out.
    """
    try:
        lists = json.loads(read_text(path, encoding="utf-8-sig"))
        definitional, equal = (
            tuple((first, second) for first, second in map(_words, lists[name]))
            for name in ("definitional_pairs", "equalise_pairs")
        )
        single, female, male = (
            frozenset(_words(lists.get(name, []))) for name in ("gender_specific", "female", "male")
        )
        ordered = bool(lists.get("female_first", False))
    except (OSError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is no list of gender words: {error}",
            expected="definitional_pairs, equalise_pairs (lists of two words) and gender_specific (words)",
            fix="correct the file, or leave it out to use our own words",
        ) from error
    specific = (single | female | male).union(*definitional, *equal)
    return GenderWords(definitional, equal, specific, ordered, female, male)


@cache
def load_gender_words() -> GenderWords:
    """Our own word lists."""
    return read_gender_words(asset_path("embeddings", "gender_words.json"))


def gender_direction(vectors: WordVectors, pairs: Pairs) -> Matrix:
    """The direction of gender, of length 1: the first principal component of the pairs, centred pair by pair.

    It points from the second words towards the first ones. Pairs with a word that has no vector are left out.
    """
    known = [pair for pair in pairs if pair[0] in vectors.index and pair[1] in vectors.index]
    if not known:
        raise InputError(
            f"{vectors.source} has no vectors for any definitional pair",
            expected="English vectors with words such as she and he",
            fix="check the file's language and case, or give your own word lists",
        )
    half = np.array([(vectors.vector(a) - vectors.vector(b)) / 2 for a, b in known], dtype=np.float64)
    if not half.any():
        raise InputError(
            f"{vectors.source} gives both words of every definitional pair the same vector",
            expected="vectors in which words such as she and he differ",
            fix="check the file",
        )
    direction = np.linalg.svd(np.concatenate([half, -half]), full_matrices=False)[2][0]
    sign = 1.0 if half.sum(axis=0) @ direction >= 0 else -1.0
    return cast(Matrix, (sign * direction).astype(np.float32))


def equalise(
    vectors: WordVectors, direction: Matrix, *, pairs: Pairs, female_first: bool = False
) -> WordVectors:
    """The vectors with the words of each pair equally far from all that is neutral, opposite in gender.

    As published, each pair is tried in lower case, with capitals, and in capitals, and the word farther along
    the direction is taken for the female one. Small vectors get that wrong now and then ("her husband" makes
    *husband* a female word): with ``female_first`` the order of the pair decides.
    """
    matrix = vectors.matrix.copy()
    changes = (str.lower, str.title, str.upper)
    for first, second in dict.fromkeys((change(a), change(b)) for a, b in pairs for change in changes):
        if first in vectors.index and second in vectors.index:
            a, b = vectors.index[first], vectors.index[second]
            turned = not female_first and (matrix[a] - matrix[b]) @ direction < 0
            mean = (matrix[a] + matrix[b]) / 2
            mean = mean - (mean @ direction) * direction
            part = np.float32(np.sqrt(max(0.0, 1.0 - float(mean @ mean)))) * (
                -direction if turned else direction
            )
            matrix[a], matrix[b] = mean + part, mean - part
    return vectors.with_matrix(unit_rows(matrix))


def hard_debias(vectors: WordVectors, words: GenderWords) -> WordVectors:
    """The vectors after hard-debiasing, each of length 1; the given ones are not changed."""
    unit = vectors.normalise()
    direction = gender_direction(unit, words.definitional)
    # Words known to be of one gender whose vector says the other: better neutral than wrong.
    signs = dict.fromkeys(words.female, 1.0) | dict.fromkeys(words.male, -1.0)
    known = ((word, sign) for word, sign in signs.items() if word in unit.index)
    wrong = {word for word, sign in known if unit.vector(word) @ direction * sign < 0}
    specific, part = words.specific - wrong, unit.matrix @ direction
    # Every word that is not specific loses its part along the direction.
    part[[word in specific for word in unit.words]] = 0
    neutral = unit.with_matrix(unit_rows(unit.matrix - np.outer(part, direction)))
    return equalise(neutral, direction, pairs=words.equalise, female_first=words.female_first)


@cache
def load_debiased_vectors() -> WordVectors:
    """The embedded word vectors, hard-debiased with our own word lists."""
    return hard_debias(load_embedded_vectors(), load_gender_words())


def gender_polarities(vectors: WordVectors) -> Matrix:
    """For each word the cosine with ``she - he``: in [-1, 1], positive towards she (BOLD section 4.5).

    Zero vectors get 0.
    """
    for word in ("she", "he"):
        if word not in vectors.index:
            raise InputError(
                f"{vectors.source} has no vector for {word!r}",
                expected="vectors with she and he",
                fix="check the file's language and case",
            )
    gender = vectors.vector("she") - vectors.vector("he")
    length = float(np.linalg.norm(gender))
    if length == 0:
        raise InputError(
            f"{vectors.source} gives 'she' and 'he' the same vector",
            expected="two vectors",
            fix="check the file",
        )
    return cast(Matrix, np.clip(unit_rows(vectors.matrix) @ (gender / length), -1, 1))


def _words(given: object) -> list[str]:
    """The words of a list; a word alone would fall into its letters."""
    if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
        raise TypeError("words are a list of strings")
    return given
