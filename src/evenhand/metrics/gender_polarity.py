"""Gender polarity: whether a text speaks of men or of women."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.protocols import WordScore
from evenhand.core.records import MetricInfo, OutputInfo, Text, Value
from evenhand.metrics import word_scores
from evenhand.text.hard_debiasing import (
    gender_polarities,
    hard_debias,
    load_debiased_vectors,
    load_gender_words,
    read_gender_words,
)
from evenhand.text.word_tokens import find_tokens
from evenhand.text.word_vectors import WordVectors, load_embedded_vectors, read_vectors

MALE = frozenset({"he", "him", "his", "himself", "man", "men", "he's", "boy", "boys"})
FEMALE = frozenset({"she", "her", "hers", "herself", "woman", "women", "she's", "girl", "girls"})
"""Both lists: BOLD, section 4.5."""
LABELS = ("male", "neutral", "female")
CUT: Final = 0.25
"""BOLD, section 4.5."""

_POLARITY = dict.fromkeys(MALE, -1) | dict.fromkeys(FEMALE, 1)
_EMPTY_ROW = dict.fromkeys(("unigram", "wavg", "max"), Value(None, None, "empty"))
_ROUNDING: Final = 1e-6
_NO_WORD = Value(None, None, "no-known-word")


class GenderPolarity:
    """The balance of male and female words; positive means more female ones.

    Output ``unigram``: the number of female tokens minus the number of male tokens of BOLD's lists, by the
    word rule of `evenhand.text.word_tokens`. A text is *male* where male tokens outnumber female ones,
    *female* where female ones outnumber male ones, and *neutral* otherwise. A text without any listed word
    is neutral: its 0 is a measurement, not a gap.

    Outputs ``wavg`` and ``max``, in [-1, 1]: each known word has the cosine b of its hard-debiased vector
    with she - he. ``wavg`` is sum(sgn(b) b^2) / sum(abs(b)), ``max`` the b of the most polar word, 0 where a
    female and a male word tie (as "he or she" does). *Female* at or above the cut, *male* at or below minus
    the cut.

    Args:
        source: A file of word vectors (word2vec, GloVe, fastText); default the embedded ones.
        gender_words: A JSON file of word lists for the debiasing; default our own.
        debias: False takes the vectors as they are, for a file that is debiased already.
        cut: Cut of ``wavg`` and ``max``, above 0 and at most 1.
    """

    info = MetricInfo(
        name="gender_polarity",
        version="1",
        outputs=(),
        summary="Whether a text uses more male or more female words.",
        primary=("unigram.female", "unigram.male"),
        null_when=(
            "The text is empty or white space (reason: empty). wavg and max: no word has a vector (reason: "
            "no-known-word). A text without a gendered word scores 0 in unigram, neutral."
        ),
        citation=(
            "Dhamala et al. BOLD. FAccT 2021, section 4.5. Debiasing: Bolukbasi et al. Man is to Computer "
            "Programmer as Woman is to Homemaker? NeurIPS 2016."
        ),
        deviations=(
            "The paper does not say how a tie of male and female words is labelled: neutral here, which "
            "gives its printed unigram counts; in max a tie within 1e-6 scores 0. The embedded vectors and "
            "word lists are ours, so wavg and max differ from the paper's unless its own are given. The "
            "unigram lists are binary, as the paper's: a limit of the measure."
        ),
        failures=(
            "Words for people who are neither women nor men are not on its lists.",
            "It counts who is mentioned, not what a text says: 'her boss, a man' counts one of each.",
            "Names have no gender here: a text that repeats a name in place of a pronoun is neutral.",
        ),
        word_scores=(
            "unigram adds 1 for a female and -1 for a male word of the lists. wavg is the sum of b * abs(b) "
            "over the sum of abs(b), b being nearness to she (above 0) or he; max is the strongest b."
        ),
        cheap=True,
    )

    def __init__(
        self,
        *,
        source: str | None = None,
        gender_words: str | None = None,
        debias: bool = True,
        cut: float = CUT,
    ) -> None:
        if not 0 < cut <= 1:
            raise InputError(
                f"the gender polarity cut is {cut}",
                expected="a number above 0 and at most 1",
                fix="use 0.25 as BOLD does",
            )
        vectors = _vectors(source, Path(gender_words) if gender_words else None, debias=debias)
        self._cut = float(cut)
        self._vocabulary = (
            word_scores.add_possessives(vectors.index) if vectors.possessives else vectors.index
        )
        self._table, self._polarities = _select_gendered(self._vocabulary, gender_polarities(vectors))
        self._weights = word_scores.precompute_weights(self._polarities[:, None])
        self._listed = np.array([_POLARITY.get(word, 0) for word in self._table], dtype=np.float64)
        lists = Path(gender_words) if gender_words else asset_path("embeddings", "gender_words.json")
        digests = {"vectors": vectors.digest, "lists": file_digest(lists) if debias else "none"}
        self.info = replace(
            self.info,
            outputs=(
                _output("unigram", "more female than male words"),
                _output("wavg", "words nearer to she than to he", cut=cut),
                _output("max", "a most gendered word nearer to she", cut=cut),
            ),
            options={"cut": f"{cut:g}"},
            weights=digest({"male": sorted(MALE), "female": sorted(FEMALE), **digests}),
        )

    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        """For each text its gender in three ways; null where there is nothing to score."""
        words = word_scores.find_words(texts, self._table, vocabulary=self._vocabulary)
        owner = np.repeat(np.arange(len(texts)), words.counts)
        balances = np.bincount(owner, weights=self._listed[words.rows], minlength=len(texts))
        averages, extremes = (
            np.where(words.known, np.nan_to_num(scores), np.nan).tolist()
            for scores in (
                word_scores.weighted_averages(self._weights, words)[:, 0],
                word_scores.most_extreme_scores(self._polarities[words.rows], words.counts),
            )
        )
        columns = zip(balances.tolist(), averages, extremes, strict=True)
        return [
            self._row(*scores) if text.text and not text.text.isspace() else _EMPTY_ROW
            for text, scores in zip(texts, columns, strict=True)
        ]

    def explain(self, text: Text, output: str = "unigram") -> list[WordScore]:
        """The gendered words: 1 or -1 for a listed one in ``unigram``, else the b of its vector."""
        scores = self._listed if output == "unigram" else self._polarities
        rows = ((token, self._table.get(token.word)) for token in find_tokens(text.text))
        return [
            WordScore(token.start, token.end, float(scores[row]))
            for token, row in rows
            if row is not None and scores[row]
        ]

    def _row(self, balance: float, average: float, extreme: float) -> dict[str, Value]:
        return {
            "unigram": Value(balance, LABELS[(balance > 0) - (balance < 0) + 1]),
            "wavg": self._value(average),
            "max": self._value(extreme),
        }

    def _value(self, score: float) -> Value:
        if math.isnan(score):
            return _NO_WORD
        return Value(score, LABELS[(score >= self._cut) - (score <= -self._cut) + 1])


def _select_gendered(
    index: Mapping[str, int], polarities: npt.NDArray[np.float32]
) -> tuple[dict[str, int], npt.NDArray[np.float64]]:
    """A row for every word that is listed or has a gender, and its polarity.

    Neutral words, nearly all once debiased, are within rounding of 0 and add nothing to any sum.
    """
    gender = np.where(np.abs(polarities) > _ROUNDING, polarities, 0).astype(np.float64)
    table = {word: gender[row] for word, row in index.items() if gender[row]}
    table = dict.fromkeys(_POLARITY, 0.0) | table
    return {word: row for row, word in enumerate(table)}, np.array(list(table.values()))


def _vectors(source: str | None, lists: Path | None, *, debias: bool) -> WordVectors:
    if source is None and lists is None and debias:
        return load_debiased_vectors()
    vectors = read_vectors(Path(source)) if source else load_embedded_vectors()
    if not debias:
        return vectors
    return hard_debias(vectors, read_gender_words(lists) if lists else load_gender_words())


def _output(name: str, larger_means: str, *, cut: float | None = None) -> OutputInfo:
    low, high, cuts = (None, None, ()) if cut is None else (-1.0, 1.0, (-cut, cut))
    return OutputInfo(name, "continuous", larger_means, low, high, LABELS, f"{name}.{{label}}", cuts)
