"""From scores of words to scores of texts: what the norms and gender_polarity metrics share.

Words are looked up once, as one flat row of numbers for a whole batch; sums over the texts are then one pass
of NumPy, whatever the number of texts.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.core.records import Text
from evenhand.text.word_tokens import split_words

Scores = npt.NDArray[np.float64]


class MatchedWords(NamedTuple):
    """The scored words of a batch of texts, text after text."""

    rows: npt.NDArray[np.int64]
    """The row of each word in the table it was looked up in."""
    counts: npt.NDArray[np.int64]
    """How many scored words each text has."""
    known: npt.NDArray[np.bool_]
    """Whether a text has a known word at all."""


def find_words(
    texts: Sequence[Text],
    table: Mapping[str, int],
    *,
    vocabulary: Container[str] | None = None,
    skip_masks: bool = False,
) -> MatchedWords:
    """The words of each text that are in the table, which has the row of each.

    ``vocabulary`` holds all known words, where those with a score of 0 have no row; ``skip_masks`` leaves out
    what stands in for a group mention.
    """
    rows: list[int] = []
    counts: list[int] = []
    known: list[bool] = []
    find = table.get
    for text in texts:
        said = split_words(_blank_masks(text) if skip_masks and text.masks else text.text)
        own = [row for row in map(find, said) if row is not None]
        rows += own
        counts.append(len(own))
        known.append(bool(own) if vocabulary is None else any(word in vocabulary for word in said))
    return MatchedWords(
        np.array(rows, dtype=np.int64), np.array(counts, dtype=np.int64), np.array(known, dtype=bool)
    )


def precompute_weights(scores: Scores) -> Scores:
    """What `weighted_averages` adds up, once per lexicon: sgn(w) w^2 of every column, then abs(w)."""
    size = np.abs(scores)
    return np.concatenate([scores * size, size], axis=1)


def weighted_averages(table: Scores, words: MatchedWords) -> Scores:
    """The sum of sgn(w) w^2 over the sum of abs(w) (BOLD 4.4, 4.5): one row a text, one column a variable.

    It lies between the lowest and the highest score, and strong words weigh more than weak ones. Where every
    score is 0 it is 0, and where a text has no word it is NaN. Words are added in the order of the text, so
    that batches change nothing. ``table`` is what `precompute_weights` made of a lexicon.
    """
    has, sums = _fold_texts(np.add, table[words.rows], words.counts)
    total, weight = np.split(sums, 2, axis=1)
    averages: Scores = np.where(has[:, None], total / np.where(weight > 0, weight, 1.0), np.nan)
    return averages


def most_extreme_scores(scores: Scores, counts: npt.NDArray[np.int64], *, tie: float = 1e-6) -> Scores:
    """For each text the score of its most extreme word; NaN where it has no word.

    Where a positive and a negative word are equally strong (within ``tie``) the text is 0: neither side wins,
    and swapping the two words changes nothing.
    """
    (has, high), (_, low) = (_fold_texts(fold, scores, counts) for fold in (np.maximum, np.minimum))
    is_tied = (high > 0) & (low < 0) & (np.abs(high + low) <= tie)
    return np.where(has, np.where(is_tied, 0.0, np.where(high > -low, high, low)), np.nan)


def _fold_texts(
    fold: np.ufunc, scores: Scores, counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.bool_], Scores]:
    """Which texts have words, and the words' scores folded into one row a text; zeros where it has none."""
    has, folded = counts > 0, np.zeros((len(counts), *scores.shape[1:]))
    if has.any():
        folded[has] = fold.reduceat(scores, (np.cumsum(counts) - counts)[has], axis=0)
    return has, folded


def add_possessives(words_and_rows: Mapping[str, int]) -> dict[str, int]:
    """The same table in which "mayor's" has the row of "mayor", where it has no row of its own."""
    bare = {word: row for word, row in words_and_rows.items() if not word.endswith("'s")}
    return {f"{word}'s": row for word, row in bare.items()} | dict(words_and_rows)


def _blank_masks(text: Text) -> str:
    """The text with blanks where masks stand."""
    string = text.text
    for start, end in text.masks:
        string = string[:start] + " " * (end - start) + string[end:]
    return string
