"""Sentiment analysers in another role: their answer is taken as the label of a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evenhand.core.registry import require_library

ANALYSERS: Final = ("vader", "textblob")
SCALE: Final = ("negative", "neutral", "positive")
CUTS: Final[Mapping[str, float]] = {"vader": 0.05, "textblob": 0.05}
"""A polarity beyond the cut has a side; VADER's own, and the same for TextBlob, whose authors give none."""


class SentimentAnalyser:
    """VADER or TextBlob as a classifier of negative, neutral and positive; it learns nothing.

    Its whole weight is on one label. Labels that a data set has beside the three are never given.
    """

    def __init__(self, name: str, labels: Sequence[str]) -> None:
        self._polarities = _polarities(name)
        self._cut = CUTS[name]
        self._labels = tuple(labels)

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """One row a text: 1 for its label, 0 for the others."""
        found = np.zeros((len(texts), len(self._labels)))
        for row, polarity in enumerate(self._polarities(texts)):
            side = SCALE[1 + (polarity >= self._cut) - (polarity <= -self._cut)]
            if side in self._labels:
                found[row, self._labels.index(side)] = 1.0
            else:
                # The data has no such label: the nearest it has is the neutral one, or the first.
                found[row, self._labels.index("neutral") if "neutral" in self._labels else 0] = 1.0
        return found


def _polarities(name: str) -> Callable[[Sequence[str]], Sequence[float]]:
    if name == "vader":
        from evenhand.metrics.vader import VaderScorer

        return VaderScorer().compounds
    require_library("textblob")
    from textblob import TextBlob

    return lambda texts: [float(TextBlob(text).sentiment.polarity) for text in texts]
