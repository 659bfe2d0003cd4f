"""Linear classifiers: logistic regression over hashed word n-grams, or over a frozen encoder's features."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

Floats = NDArray[np.float64]
Features = csr_matrix | Floats

BUCKETS: Final = 2**18
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Linear:
    """Weights of shape (labels, features) and a bias a label; one row stands for a yes or no."""

    weights: Floats
    bias: Floats

    def probabilities(self, features: csr_matrix | Floats) -> Floats:
        """The probability of each label (two labels or more sum to 1)."""
        logits = np.asarray(features @ self.weights.T) + self.bias
        if logits.shape[1] == 1:
            return np.asarray(1 / (1 + np.exp(-logits)))
        return _softmax(logits)


def hashed_ngrams(texts: Sequence[str], *, longest: int = 2, buckets: int = BUCKETS) -> csr_matrix:
    """One row a text: 1 + log(count) of its word n-grams in hashed buckets, scaled to length 1."""
    rows, columns = [], []
    for row, text in enumerate(texts):
        words = _TOKEN.findall(text.lower())
        for size in range(1, longest + 1):
            for start in range(len(words) - size + 1):
                columns.append(zlib.crc32(" ".join(words[start : start + size]).encode()) % buckets)
                rows.append(row)
    matrix = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(texts), buckets))
    matrix.data = 1 + np.log(matrix.data)
    return _scaled(matrix)


def inverse_frequency(matrix: csr_matrix) -> Floats:
    """ln((1 + n) / (1 + texts that hold the feature)) + 1 for every column."""
    held = np.bincount(matrix.indices, minlength=matrix.shape[1])
    return np.asarray(np.log((1 + matrix.shape[0]) / (1 + held)) + 1)


def weighted(matrix: csr_matrix, weights: Floats) -> csr_matrix:
    """The rows with every column weighted, scaled to length 1 again."""
    changed = matrix.copy()
    changed.data = changed.data * weights[changed.indices]
    return _scaled(changed)


def fit(
    features: csr_matrix | Floats, labels: NDArray[np.int64], *, classes: int = 2, strength: float = 1.0
) -> Linear:
    """Logistic regression: cross-entropy summed over texts plus |w|^2 / (2 ``strength``), by L-BFGS.

    Two classes give one row of weights, more give one a class.
    """
    outputs = 1 if classes == 2 else classes
    truth = labels[:, None].astype(float) if outputs == 1 else np.eye(classes)[labels]
    width = features.shape[1]

    def objective(flat: Floats) -> tuple[float, Floats]:
        model = Linear(flat[: outputs * width].reshape(outputs, width), flat[outputs * width :])
        said = model.probabilities(features)
        right = np.where(truth > 0, said, 1 - said if outputs == 1 else 1.0)
        loss = -np.log(np.maximum(right, 1e-300)).sum() + (model.weights**2).sum() / (2 * strength)
        slope = np.asarray((features.T @ (said - truth)).T) + model.weights / strength
        return float(loss), np.concatenate([slope.ravel(), (said - truth).sum(0)])

    found = minimize(
        objective, np.zeros(outputs * (width + 1)), jac=True, method="L-BFGS-B", options={"maxiter": 300}
    )
    return Linear(found.x[: outputs * width].reshape(outputs, width), found.x[outputs * width :])


def _scaled(matrix: csr_matrix) -> csr_matrix:
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1)).ravel())
    matrix.data = matrix.data / np.repeat(np.maximum(lengths, 1e-12), np.diff(matrix.indptr))
    return matrix


def _softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(raised / raised.sum(1, keepdims=True))
