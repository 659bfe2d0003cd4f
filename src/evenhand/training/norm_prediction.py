"""Predict emotion ratings of words from their vectors: the network, its cross-validation, the lexicon.

One multi-task feed-forward network for all eight variables (Buechel and Hahn 2018, the method of BOLD's
section 4.4): two shared hidden layers, one output per variable, so that a word rated on some variables helps
to learn the others. Ratings are standardised; a missing rating adds no loss.
"""

from __future__ import annotations

import csv
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress
from evenhand.core.regular_files import open_regular
from evenhand.store.atomic_writes import replace_file
from evenhand.tensors.devices import single_thread
from evenhand.text.lexicons import NORMS, Lexicon, write_lexicon
from evenhand.text.word_vectors import WordVectors, load_embedded_vectors, read_vectors, unit_rows
from evenhand.training import job_folder
from evenhand.training.finetuning import descend

_LOG = logging.getLogger(__name__)
LEXICON: Final = "lexicon.tsv"
LEAST: Final = 20
"""Minimum number of rated words for a variable to be learned and checked."""
_LARGEST: Final = 1e6
"""No rating scale reaches this value: a larger number is not a rating."""
_SCALES: Final = np.array(list(NORMS.values()), dtype=np.float32)
_STEPS: Final = np.array([0.05 if high > 5 else 0.02 for _, high in NORMS.values()])
"""Stored predictions are rounded to this: far below their error, and half the size on disk."""

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class NormNetworkConfig:
    """How the network is trained."""

    hidden: tuple[int, int] = (256, 128)
    input_dropout: float = 0.1
    hidden_dropout: float = 0.3
    steps: int = 3000
    rows: int = 128
    rate: float = 1e-3
    networks: int = 3
    """Number of networks whose predictions are averaged."""
    folds: int = 10
    seed: int = 0


class WordRatings(NamedTuple):
    """Rated words; NaN where a word has no rating on a variable."""

    words: tuple[str, ...]
    values: Matrix


def read_word_ratings(paths: Sequence[Path]) -> WordRatings:
    """The single words rated in any of the tables, lower-cased, with the columns named after our variables.

    ``.csv`` files are comma-separated, others tab-separated. Entries of several words or with a sense in
    brackets are left out; a word rated twice gets the mean.
    """
    rows: dict[str, list[Matrix]] = {}
    for path in paths:
        for word, ratings in _rows(path):
            rows.setdefault(word, []).append(ratings)
    means = [np.ma.masked_invalid(own).mean(axis=0).filled(np.nan) for own in rows.values()]
    return WordRatings(tuple(rows), np.array(means, dtype=np.float32).reshape(-1, len(NORMS)))


def match_vectors(ratings: WordRatings, vectors: WordVectors) -> tuple[Matrix, Matrix]:
    """The network's inputs and the ratings, for the rated words that have a vector."""
    pairs = [(row, vectors.index[word]) for row, word in enumerate(ratings.words) if word in vectors.index]
    if not pairs:
        raise InputError("no rated word has a vector", expected="ratings and vectors of one language")
    rated, rows = np.array(pairs).T
    return _features(vectors)[rows], ratings.values[rated]


def cross_validate(
    features: Matrix, values: Matrix, recipe: NormNetworkConfig
) -> list[tuple[str, float, int]]:
    """For each variable Pearson's r of held-out predictions with ratings, over all folds, and the words."""
    order = np.random.default_rng(recipe.seed).permutation(len(features))
    predicted = np.empty_like(values)
    for fold in range(recipe.folds):
        test = order[fold :: recipe.folds]
        rest = np.setdiff1d(order, test)
        predicted[test] = predict_ratings(fit_networks(features[rest], values[rest], recipe), features[test])
        _LOG.info("fold %d of %d", fold + 1, recipe.folds)
    agreements = []
    for name, given, rated in zip(NORMS, predicted.T, values.T, strict=True):
        has_rating = ~np.isnan(rated)
        r = np.corrcoef(given[has_rating], rated[has_rating])[0, 1] if has_rating.sum() > 2 else np.nan
        agreements.append((name, float(r), int(has_rating.sum())))
    return agreements


class NormNetworks(NamedTuple):
    """Networks that predict standardised ratings (rows x variables), and the ratings' own scale."""

    networks: list[nn.Module]
    mean: Tensor
    spread: Tensor


def fit_networks(features: Matrix, values: Matrix, recipe: NormNetworkConfig) -> NormNetworks:
    """The trained networks, alike but for their seed: shared hidden layers, one output per variable."""
    inputs, rated = torch.from_numpy(features), torch.from_numpy(values)
    has_rating = ~rated.isnan()
    count = has_rating.sum(dim=0).clamp(min=1)
    mean = torch.where(has_rating, rated, 0.0).sum(dim=0) / count
    spread = (torch.where(has_rating, rated - mean, 0.0).square().sum(dim=0) / count).sqrt().clamp(min=1e-6)
    target = torch.where(has_rating, (rated - mean) / spread, 0.0)
    networks: list[nn.Module] = []
    first, second = recipe.hidden
    for number in range(recipe.networks):
        with single_thread(), torch.random.fork_rng():
            torch.manual_seed(recipe.seed * 1000 + number)
            network = nn.Sequential(
                nn.Dropout(recipe.input_dropout),
                *(nn.Linear(inputs.shape[1], first), nn.LeakyReLU(0.01), nn.Dropout(recipe.hidden_dropout)),
                *(nn.Linear(first, second), nn.LeakyReLU(0.01), nn.Dropout(recipe.hidden_dropout)),
                nn.Linear(second, len(mean)),
            )
            optimiser = torch.optim.Adam(network.parameters(), lr=recipe.rate)
            for step in range(recipe.steps):
                rows = torch.randint(len(inputs), (recipe.rows,))
                error = (network(inputs[rows]) - target[rows]).square() * has_rating[rows]
                descend(error.sum() / has_rating[rows].sum(), optimiser, factor=1 - step / recipe.steps)
        networks.append(network.eval())
    return NormNetworks(networks, mean, spread)


def predict_ratings(fitted: NormNetworks, features: Matrix) -> Matrix:
    """The mean prediction, clipped to each variable's scale."""
    with torch.no_grad():
        rows = torch.from_numpy(features)
        answers = [(network(rows) * fitted.spread + fitted.mean).numpy() for network in fitted.networks]
    mean: Matrix = np.clip(np.mean(answers, axis=0), _SCALES[:, 0], _SCALES[:, 1]).astype(np.float32)
    return mean


def build_lexicon(vectors: WordVectors, ratings: WordRatings, recipe: NormNetworkConfig) -> Lexicon:
    """Predictions of all variables for every word with a vector, including rated words.

    Human ratings are not mixed in, so that rated and unrated words are treated alike: the lexicon holds only
    the network's output.
    """
    networks = fit_networks(*match_vectors(ratings, vectors), recipe)
    predicted = np.rint(predict_ratings(networks, _features(vectors)) / _STEPS) * _STEPS
    return Lexicon(vectors.words, predicted.astype(np.float32), tuple(NORMS))


def _features(vectors: WordVectors) -> Matrix:
    # Unit vectors have tiny components; this scaling gives each a variance near 1.
    return unit_rows(vectors.matrix) * np.float32(math.sqrt(vectors.matrix.shape[1]))


def _rows(path: Path) -> list[tuple[str, Matrix]]:
    accepted = f"a table in UTF-8 with the columns word and any of {', '.join(NORMS)}"
    try:
        with TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, delimiter="," if path.suffix == ".csv" else "\t")
            names = {name.strip().lower(): name for name in rows.fieldnames or ()}
            # A short row lacks its last cells.
            table = [((row[names["word"]] or "").strip().lower(), row) for row in rows if "word" in names]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path} cannot be read: {error}", expected=accepted, fix="check the file"
        ) from error
    if "word" not in names or not set(NORMS) & set(names):
        raise InputError(f"{path} has no ratings", expected=accepted, fix="rename the columns")
    return [
        (word, np.array([_number(row.get(names.get(name, ""), "")) for name in NORMS], dtype=np.float32))
        for word, row in table
        if word and " " not in word
    ]


def _number(text: str | None) -> float:
    """A rating; NaN if there is none."""
    try:
        value = float(text or "")
    except ValueError:
        return float("nan")
    return value if abs(value) < _LARGEST else float("nan")


@dataclass(frozen=True, slots=True)
class NormTraining:
    """Predicts emotion ratings of words from word vectors with a network, for the whole vocabulary."""

    data: tuple[Path, ...]
    vectors: Path | None
    recipe: NormNetworkConfig

    def identity(self) -> dict[str, Json]:
        """Everything that determines the result."""
        vectors = file_digest(self.vectors) if self.vectors else "embedded"
        digests: list[Json] = [file_digest(path) for path in self.data]
        return {"task": "norms", "data": digests, "vectors": vectors, **asdict(self.recipe)}

    def lines(self) -> tuple[str, ...]:
        """The planned steps."""
        return (
            f"ratings  {', '.join(path.name for path in self.data)}",
            f"vectors  {self.vectors or 'the embedded ones'}",
            f"networks {self.recipe.networks}, checked over {self.recipe.folds} folds",
        )

    def run(self, folder: job_folder.TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Cross-validate, fit on all words, write the lexicon; returns Pearson's r of every variable."""
        vectors = read_vectors(self.vectors) if self.vectors else load_embedded_vectors()
        ratings = read_word_ratings(self.data)
        features, values = match_vectors(ratings, vectors)
        counts = dict(zip(NORMS, (values == values).sum(0).tolist(), strict=True))
        if few := [f"{name} ({count})" for name, count in counts.items() if count < LEAST]:
            raise InputError(
                f"too few rated words have a vector: {', '.join(few)}",
                expected=f"at least {LEAST} words for each of {', '.join(counts)}",
                fix="add tables with the missing columns: evenhand train norms FIRST SECOND",
            )
        with progress.step("cross-validation", None):
            agreements = cross_validate(features, values, self.recipe)
        with progress.step("lexicon", None), replace_file(folder.path / LEXICON) as path:
            lexicon = build_lexicon(vectors, ratings, self.recipe)
            write_lexicon(lexicon, path)
        rows = [(name, f"{r:.3f}", format_interval(r, n), f"{n:,}") for name, r, n in agreements]
        header = ("variable", "Pearson's r, held-out words", "95 % interval", "rated words")
        card = job_folder.write_card(
            title="Emotion lexicon",
            settings={
                "data": job_folder.describe_files(*self.data),
                "word vectors": str(self.vectors or "the embedded ones"),
                "training": f"multi-task network; {job_folder.describe_settings(asdict(self.recipe))}",
                "words": f"{len(lexicon.words):,}",
            },
            results=[job_folder.markdown_table(header, *rows)],
            notes=("Values are predictions, also for rated words. r is computed on held-out words.",),
            use=job_folder.score_command(f"norms={folder.path / LEXICON}"),
        )
        measures = {f"r_{name}": r for name, r, _ in agreements if math.isfinite(r)}
        return folder.finish(measures | {"words": len(lexicon.words)}, card=card)


def format_interval(r: float, n: int) -> str:
    """The 95 % interval of a correlation by Fisher's z; ``-`` with fewer than five pairs.

    >>> format_interval(0.5, 103)
    '0.339 to 0.632'
    """
    if n < 5 or not abs(r) < 1:
        return "-"
    z, half = math.atanh(r), 1.959964 / math.sqrt(n - 3)
    return f"{math.tanh(z - half):.3f} to {math.tanh(z + half):.3f}"
