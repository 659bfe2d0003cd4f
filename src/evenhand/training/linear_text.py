"""The yardstick: logistic regression over hashed word n-grams, fitted in seconds and stored in two files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from evenhand.core.modes import share_as_usual
from evenhand.training.linear import BUCKETS, Floats, Linear, fit, hashed_ngrams, inverse_frequency, weighted

FORMAT: Final = "evenhand-linear"
"""``model_type`` in the config.json of a linear classifier."""
STRENGTH: Final = 3.0


@dataclass(frozen=True, slots=True)
class LinearText:
    """A linear classifier of texts over the n-grams (one and two words) seen in training."""

    labels: tuple[str, ...]
    columns: NDArray[np.int64]
    """The hashed buckets that training met."""
    frequency: Floats
    """The inverse document frequency of each."""
    model: Linear

    @classmethod
    def fitted(
        cls,
        texts: Sequence[str],
        truth: NDArray[np.int64],
        labels: Sequence[str],
        *,
        strength: float = STRENGTH,
    ) -> LinearText:
        """The classifier of least cross-entropy; unseen buckets would have weight 0 and are left out."""
        counted = hashed_ngrams(texts)
        columns = np.unique(counted.indices).astype(np.int64)
        features = counted[:, columns]
        frequency = inverse_frequency(features)
        model = fit(weighted(features, frequency), truth, classes=len(labels), strength=strength)
        return cls(tuple(labels), columns, frequency, model)

    def probabilities(self, texts: Sequence[str]) -> Floats:
        """One row a text, one column a label, each row summing to 1."""
        features: csr_matrix = hashed_ngrams(texts)[:, self.columns]
        said = self.model.probabilities(weighted(features, self.frequency))
        return said if said.shape[1] > 1 else np.hstack([1 - said, said])

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
        share_as_usual(folder / "model.safetensors")
        config = {"model_type": FORMAT, "id2label": dict(enumerate(self.labels))}
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> LinearText:
        """The classifier that :meth:`save` wrote."""
        from safetensors.numpy import load_file

        from evenhand.neural.checkpoints import read_config, reading_ours

        with reading_ours(folder):
            labels = tuple(cast("Mapping[str, str]", read_config(folder)["id2label"]).values())
            read = load_file(folder / "model.safetensors")
            columns, frequency = read["columns"], read["frequency"].astype(np.float64)
            model = Linear(read["weights"].astype(np.float64), read["bias"].astype(np.float64))
            _check(labels, columns, frequency, model)
            return cls(labels, columns, frequency, model)


def _check(labels: Sequence[str], columns: NDArray[np.int64], frequency: Floats, model: Linear) -> None:
    """An error where sizes do not agree, or a bucket is none."""
    features, rows = len(frequency), model.weights.shape[0]
    sizes = columns.shape == (features,) and model.weights.shape == (rows, features)
    if not sizes or model.bias.shape != (rows,) or rows != (1 if len(labels) == 2 else len(labels)):
        raise ValueError(f"weights of {model.weights.shape} for {features} columns and {len(labels)} labels")
    if columns.dtype.kind not in "iu" or (features and not 0 <= columns.min() <= columns.max() < BUCKETS):
        raise ValueError("a column is no bucket")
    if not all(np.isfinite(part).all() for part in (frequency, model.weights, model.bias)):
        raise ValueError("a weight is not finite")
