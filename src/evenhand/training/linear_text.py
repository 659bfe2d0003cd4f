"""The baselines: logistic regression over hashed word n-grams, and untrained sentiment analysers."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from evenhand.core.files import apply_umask
from evenhand.core.registry import require_library

Floats = NDArray[np.float64]
Features: TypeAlias = csr_matrix | Floats

BUCKETS: Final = 2**18
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class LogisticRegression:
    """Weights of shape (labels, features) and a bias per label; a single row means binary labels."""

    weights: Floats
    bias: Floats

    def probabilities(self, features: Features) -> Floats:
        """The probability of each label (with two labels or more they sum to 1)."""
        logits = np.asarray(features @ self.weights.T) + self.bias
        if logits.shape[1] == 1:
            return np.asarray(1 / (1 + np.exp(-logits)))
        raised = np.exp(logits - logits.max(1, keepdims=True))
        return np.asarray(raised / raised.sum(1, keepdims=True))


def hashed_ngrams(texts: Sequence[str], *, longest: int = 2) -> csr_matrix:
    """One row per text: 1 + log(count) of its word n-grams in hashed buckets, normalised to length 1."""
    rows, columns = [], []
    for row, text in enumerate(texts):
        words = _TOKEN.findall(text.lower())
        for size in range(1, longest + 1):
            for start in range(len(words) - size + 1):
                columns.append(zlib.crc32(" ".join(words[start : start + size]).encode()) % BUCKETS)
                rows.append(row)
    matrix = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(texts), BUCKETS))
    matrix.data = 1 + np.log(matrix.data)
    return _unit_rows(matrix)


def inverse_frequency(matrix: csr_matrix) -> Floats:
    """ln((1 + n) / (1 + number of texts with the feature)) + 1 for every column."""
    document_counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
    return np.asarray(np.log((1 + matrix.shape[0]) / (1 + document_counts)) + 1)


def weight_columns(matrix: csr_matrix, weights: Floats) -> csr_matrix:
    """The rows with every column weighted, normalised to length 1 again."""
    changed = matrix.copy()
    changed.data = changed.data * weights[changed.indices]
    return _unit_rows(changed)


def fit_logistic_regression(
    features: Features, labels: NDArray[np.int64], *, classes: int = 2, strength: float = 1.0
) -> LogisticRegression:
    """Logistic regression: cross-entropy summed over texts plus |w|^2 / (2 ``strength``), by L-BFGS.

    Two classes give one row of weights, more give one row per class.
    """
    outputs = 1 if classes == 2 else classes
    truth = labels[:, None].astype(float) if outputs == 1 else np.eye(classes)[labels]
    width = features.shape[1]

    def unpack(flat: Floats) -> LogisticRegression:
        return LogisticRegression(flat[: outputs * width].reshape(outputs, width), flat[outputs * width :])

    def objective(flat: Floats) -> tuple[float, Floats]:
        model = unpack(flat)
        shares = model.probabilities(features)
        right = np.where(truth > 0, shares, 1 - shares if outputs == 1 else 1.0)
        loss = -np.log(np.maximum(right, 1e-300)).sum() + (model.weights**2).sum() / (2 * strength)
        slope = np.asarray((features.T @ (shares - truth)).T) + model.weights / strength
        return float(loss), np.concatenate([slope.ravel(), (shares - truth).sum(0)])

    start = np.zeros(outputs * (width + 1))
    return unpack(minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 300}).x)


def _unit_rows(matrix: csr_matrix) -> csr_matrix:
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1)).ravel())
    matrix.data = matrix.data / np.repeat(np.maximum(lengths, 1e-12), np.diff(matrix.indptr))
    return matrix


FORMAT: Final = "evenhand-linear"
"""``model_type`` in the config.json of a linear classifier."""
STRENGTH: Final = 3.0


@dataclass(frozen=True, slots=True)
class LinearText:
    """A linear text classifier over the n-grams (one and two words) seen in training."""

    labels: tuple[str, ...]
    columns: NDArray[np.int64]
    """The hashed buckets that occur in the training texts."""
    frequency: Floats
    """The inverse document frequency of each."""
    model: LogisticRegression

    @classmethod
    def fit(cls, texts: Sequence[str], truth: NDArray[np.int64], labels: Sequence[str]) -> LinearText:
        """The classifier with the lowest cross-entropy; unseen buckets, of weight 0, are left out."""
        counted = hashed_ngrams(texts)
        columns = np.unique(counted.indices).astype(np.int64)
        features = counted[:, columns]
        frequency = inverse_frequency(features)
        model = fit_logistic_regression(
            weight_columns(features, frequency), truth, classes=len(labels), strength=STRENGTH
        )
        return cls(tuple(labels), columns, frequency, model)

    def probabilities(self, texts: Sequence[str]) -> Floats:
        """One row per text, one column per label, each row summing to 1."""
        features: csr_matrix = hashed_ngrams(texts)[:, self.columns]
        shares = self.model.probabilities(weight_columns(features, self.frequency))
        return shares if shares.shape[1] > 1 else np.hstack([1 - shares, shares])

    def save(self, folder: Path) -> None:
        """Write ``model.safetensors`` and ``config.json``."""
        from safetensors.numpy import save_file

        tensors: dict[str, NDArray[np.generic]] = {
            "columns": self.columns,
            "frequency": self.frequency.astype(np.float32),
            "weights": self.model.weights.astype(np.float32),
            "bias": self.model.bias.astype(np.float32),
        }
        folder.mkdir(parents=True, exist_ok=True)
        save_file(tensors, folder / "model.safetensors")
        apply_umask(folder / "model.safetensors")
        config = {"model_type": FORMAT, "id2label": dict(enumerate(self.labels))}
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> LinearText:
        """The classifier that :meth:`save` wrote."""
        from safetensors.numpy import load_file

        from evenhand.tensors.checkpoints import our_model_errors, read_config

        with our_model_errors(folder):
            labels = tuple(cast("Mapping[str, str]", read_config(folder)["id2label"]).values())
            read = load_file(folder / "model.safetensors")
            columns, frequency = read["columns"], read["frequency"].astype(np.float64)
            model = LogisticRegression(read["weights"].astype(np.float64), read["bias"].astype(np.float64))
            outputs = 1 if len(labels) == 2 else len(labels)
            sizes = columns.shape, model.weights.shape, model.bias.shape
            if sizes != (frequency.shape, (outputs, frequency.size), (outputs,)):
                raise ValueError(
                    f"weights of {sizes[1]} for {frequency.size} columns and {len(labels)} labels"
                )
            if columns.dtype.kind not in "iu" or not ((columns >= 0) & (columns < BUCKETS)).all():
                raise ValueError("a column is not a bucket")
            if not all(np.isfinite(part).all() for part in (frequency, model.weights, model.bias)):
                raise ValueError("a weight is not finite")
            return cls(labels, columns, frequency, model)


ANALYSERS: Final = ("vader", "textblob")
SCALE: Final = ("negative", "neutral", "positive")
CUT: Final = 0.05
"""The polarity threshold of the labels; VADER's own, also used for TextBlob, whose authors give none."""


def judge_sentiment(name: str, labels: Sequence[str], texts: Sequence[str]) -> Floats:
    """One row per text: 1 for the label that VADER or TextBlob gives it, 0 for the other labels.

    They are not trained. Labels of a dataset other than negative, neutral and positive are never predicted.
    """
    if name == "vader":
        from evenhand.metrics.sentiment import VaderScorer

        polarities = VaderScorer().compounds(texts)
    else:
        require_library("textblob")
        from textblob import TextBlob

        polarities = [float(TextBlob(text).sentiment.polarity) for text in texts]
    answers = np.zeros((len(texts), len(labels)))
    # If the data has no such label, the nearest label is neutral, or the first one.
    other = labels.index("neutral") if "neutral" in labels else 0
    for row, polarity in enumerate(polarities):
        side = SCALE[1 + (polarity >= CUT) - (polarity <= -CUT)]
        answers[row, labels.index(side) if side in labels else other] = 1.0
    return answers
