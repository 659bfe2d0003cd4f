"""Several classifiers that vote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evenhand.classifiers.text_classifier import LabelReader, Probabilities
from evenhand.core.digests import digest

FORMAT: Final = "evenhand-ensemble"
"""``model_type`` in the config.json of an ensemble; its members are the folders it names."""


class EnsembleReader:
    """Members with the same labels; each text gets the label most of them choose."""

    def __init__(self, members: Sequence[LabelReader]) -> None:
        self._members = tuple(members)
        self.labels = members[0].labels
        self.digest = digest([member.digest for member in members])

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row a text: the share of votes of each label."""
        return vote_shares([member.read(texts) for member in self._members]).astype(np.float32)


def vote_shares(said: Sequence[NDArray[np.floating]]) -> NDArray[np.float64]:
    """The share of members that choose each label; where no label leads, the mean of their probabilities.

    >>> said = [np.array([[0.6, 0.4]]), np.array([[0.9, 0.1]]), np.array([[0.2, 0.8]])]
    >>> votes(said).round(3).tolist()
    [[0.667, 0.333]]
    """
    stacked = np.stack(said).astype(np.float64)
    chosen = np.eye(stacked.shape[-1])[stacked.argmax(-1)].mean(0)
    leading = chosen == chosen.max(1, keepdims=True)
    tied = leading.sum(1, keepdims=True) > 1
    found: NDArray[np.float64] = np.where(tied, stacked.mean(0), chosen)
    # A member that answers with no number has no vote to count, and the text then has no answer.
    found[np.isnan(stacked).any((0, 2))] = np.nan
    return found


def save_ensemble(folder: Path, *, members: Sequence[str], labels: Sequence[str]) -> None:
    """Write ``config.json``; the members lie in the folders named, inside this one."""
    config = {"model_type": FORMAT, "members": list(members), "id2label": dict(enumerate(labels))}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
