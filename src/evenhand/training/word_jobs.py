"""Training jobs that produce a table of words: an emotion lexicon, word vectors."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import permutations
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.protocols import Progress
from evenhand.store.atomic_writes import replace_file, storage_errors
from evenhand.text.lexicons import NORMS, write_lexicon
from evenhand.text.word_vectors import WordVectors, load_embedded_vectors, read_vectors, unit_rows
from evenhand.training import norm_prediction
from evenhand.training.embeddings import WordVectorConfig, train_word_vectors
from evenhand.training.job_folder import (
    TrainingFolder,
    describe_file,
    markdown_table,
    score_command,
    write_card,
)

LEXICON: Final = "lexicon.tsv"
VECTORS: Final = "vectors.safetensors"
Pairs = Sequence[Sequence[str]]
LEAST: Final = 20
"""Minimum number of rated words for a variable to be learned and checked."""


@dataclass(frozen=True, slots=True)
class NormTraining:
    """Predicts emotion ratings of words from word vectors with a network, for the whole vocabulary."""

    data: tuple[Path, ...]
    vectors: Path | None
    recipe: norm_prediction.NormNetworkConfig

    def identity(self) -> dict[str, Json]:
        """Everything that determines the result."""
        vectors = file_digest(self.vectors) if self.vectors else "embedded"
        data: list[Json] = [file_digest(path) for path in self.data]
        return {"task": "norms", "data": data, "vectors": vectors, **asdict(self.recipe)}

    def lines(self) -> tuple[str, ...]:
        """The planned steps."""
        return (
            f"ratings  {', '.join(path.name for path in self.data)}",
            f"vectors  {self.vectors or 'the embedded ones'}",
            f"networks {self.recipe.networks}, checked over {self.recipe.folds} folds",
        )

    def run(self, folder: TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Cross-validate, fit on all words, write the lexicon; returns Pearson's r of every variable."""
        vectors = read_vectors(self.vectors) if self.vectors else load_embedded_vectors()
        ratings = norm_prediction.read_word_ratings(self.data)
        features, values = norm_prediction.match_vectors(ratings, vectors)
        counts = dict(zip(NORMS, (values == values).sum(0).tolist(), strict=True))
        if few := [f"{name} ({count})" for name, count in counts.items() if count < LEAST]:
            raise InputError(
                f"too few rated words have a vector: {', '.join(few)}",
                expected=f"at least {LEAST} words for each of {', '.join(counts)}",
                fix="add tables with the missing columns: evenhand train norms FIRST SECOND",
            )
        with progress.step("cross-validation", None):
            agreements = norm_prediction.cross_validate(features, values, self.recipe)
        with progress.step("lexicon", None), replace_file(folder.path / LEXICON) as path:
            lexicon = norm_prediction.build_lexicon(vectors, ratings, self.recipe)
            write_lexicon(lexicon, path)
        rows = [(a.variable, f"{a.r:.3f}", format_interval(a.r, a.words), f"{a.words:,}") for a in agreements]
        header = ("variable", "Pearson's r, held-out words", "95 % interval", "rated words")
        card = write_card(
            title="Emotion lexicon",
            settings={
                "data": "; ".join(map(describe_file, self.data)),
                "word vectors": str(self.vectors or "the embedded ones"),
                "training": f"multi-task network; {_describe_settings(asdict(self.recipe))}",
                "words": f"{len(lexicon.words):,}",
            },
            results=[markdown_table(header, *rows)],
            notes=("Values are predictions, also for rated words. r is computed on held-out words.",),
            use=score_command(f"norms={folder.path / LEXICON}"),
        )
        measures = {f"r_{a.variable}": a.r for a in agreements if math.isfinite(a.r)}
        return folder.finish(measures | {"words": len(lexicon.words)}, card=card)


@dataclass(frozen=True, slots=True)
class WordVectorTraining:
    """Trains word vectors on running text."""

    data: tuple[Path, ...]
    recipe: WordVectorConfig

    def identity(self) -> dict[str, Json]:
        """Everything that determines the result."""
        return {
            "task": "embeddings",
            "data": [file_digest(path) for path in self.data],
            **asdict(self.recipe),
        }

    def lines(self) -> tuple[str, ...]:
        """The planned steps."""
        return (
            f"texts   {', '.join(path.name for path in self.data)}",
            f"vectors at most {self.recipe.words:,} words x {self.recipe.width}, {self.recipe.epochs} epochs",
        )

    def run(self, folder: TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Train, write the vectors and evaluate them on our own questions."""
        try:
            with progress.step("word vectors", None), storage_errors(folder.path):
                vectors = train_word_vectors(self.data, folder.path, recipe=self.recipe)
        except UnicodeDecodeError as error:
            raise InputError(
                f"the texts are not UTF-8: {error}", expected="UTF-8 text", fix="convert the file"
            ) from error
        measures, rows = _questions(vectors)
        notes = ["The questions are few and easy: they show that training worked, but not how well."]
        if missing := [word for word in ("she", "he") if word not in vectors.index]:
            notes.insert(0, f"No vector for {' and '.join(missing)}: gender_polarity cannot use these.")
        card = write_card(
            title="Word vectors",
            settings={
                "data": "; ".join(map(describe_file, self.data)),
                "training": f"skip-gram with negative sampling; {_describe_settings(asdict(self.recipe))}",
                "words": f"{len(vectors.words):,} x {vectors.matrix.shape[1]}",
            },
            results=[markdown_table(("question", "result"), *rows)],
            notes=notes,
            use=score_command(f"gender_polarity={folder.path / VECTORS}"),
        )
        (folder.path / "encoded.safetensors").unlink(missing_ok=True)
        return folder.finish(measures, card=card)


def _questions(vectors: WordVectors) -> tuple[dict[str, float], list[tuple[str, str]]]:
    checks = embedded_checks()
    shares = analogy_shares(vectors, checks.analogies).values()
    right, total = sum(share.right for share in shares), sum(share.total for share in shares)
    measures = {"words": float(len(vectors.words))}
    rows = [("analogies", f"{right:,} of {total:,} correct")]
    if total:
        measures["analogies"] = right / total
    correlation, pairs = similarity_correlation(vectors, checks.similarity)
    if pairs >= 3:
        measures["similarity"] = correlation
        rows.append(("word similarity, Spearman", f"{correlation:.3f} over {pairs} pairs"))
    return measures, rows


def _describe_settings(settings: Mapping[str, object]) -> str:
    """The settings as a comma-separated list, nested ones last."""
    plain = [f"{name} {value}" for name, value in settings.items() if not isinstance(value, dict)]
    inner = [_describe_settings(value) for value in settings.values() if isinstance(value, dict)]
    return ", ".join([*plain, *inner])


def format_interval(r: float, n: int) -> str:
    """The 95 % interval of a correlation by Fisher's z; ``-`` with fewer than five pairs.

    >>> format_interval(0.5, 103)
    '0.339 to 0.632'
    """
    if n < 5 or not abs(r) < 1:
        return "-"
    z, half = math.atanh(r), 1.959964 / math.sqrt(n - 3)
    return f"{math.tanh(z - half):.3f} to {math.tanh(z + half):.3f}"


@dataclass(frozen=True, slots=True)
class VectorChecks:
    """Our own evaluation questions for word vectors."""

    analogies: Mapping[str, Pairs]
    """Kind to pairs; every two pairs of a kind form a question."""
    similarity: Sequence[tuple[str, str, float]]
    """Two words and their similarity, 0 to 10."""
    occupations: Sequence[str]


class QuestionScore(NamedTuple):
    """The number correct and the total."""

    right: int
    total: int


def embedded_checks() -> VectorChecks:
    """The questions that ship with the embedded vectors."""
    lists = json.loads(asset_path("embeddings", "checks.json").read_text(encoding="utf-8"))
    similarity = [(first, second, float(rating)) for first, second, rating in lists["similarity"]]
    return VectorChecks(lists["analogies"], similarity, lists["occupations"])


def analogy_shares(vectors: WordVectors, analogies: Mapping[str, Pairs]) -> dict[str, QuestionScore]:
    """For each kind the number of correct answers: the nearest word to b - a + c is d (a, b, c excluded).

    Questions with a word that has no vector are skipped.
    """
    unit, index, shares = unit_rows(vectors.matrix), vectors.index, {}
    for kind, pairs in analogies.items():
        usable = [(index[a], index[b]) for a, b in pairs if a in index and b in index]
        questions = [(*first, *second) for first, second in permutations(usable, 2) if first[0] != second[0]]
        a, b, c, d = np.array(questions, dtype=np.int64).reshape(-1, 4).T
        cosines = (unit[b] - unit[a] + unit[c]) @ unit.T
        cosines[np.arange(len(questions)), [a, b, c]] = -np.inf
        shares[kind] = QuestionScore(int((cosines.argmax(axis=1) == d).sum()), len(questions))
    return shares


def similarity_correlation(
    vectors: WordVectors, pairs: Sequence[tuple[str, str, float]]
) -> tuple[float, int]:
    """Spearman's correlation of cosines with the ratings, in [-1, 1], and the number of known pairs.

    NaN with fewer than three known pairs.
    """
    unit, index = unit_rows(vectors.matrix), vectors.index
    usable = [(index[a], index[b], rating) for a, b, rating in pairs if a in index and b in index]
    if len(usable) < 3:
        return math.nan, len(usable)
    cosines = [unit[a] @ unit[b] for a, b, _ in usable]
    return float(spearmanr(cosines, [rating for _, _, rating in usable]).statistic), len(usable)
