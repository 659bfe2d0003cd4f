"""Skip-gram with negative sampling, one pair after the other, as the definition says."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evenhand.training.embeddings import SkipGramBatch

Matrix = npt.NDArray[np.float32]


def learn_pairs(
    words: Matrix, contexts: Matrix, step: SkipGramBatch, *, rate: float, negatives: int
) -> tuple[Matrix, Matrix]:
    """Words and contexts after the summed changes of every pair in reach and its random words."""
    new_words, new_contexts = words.copy(), contexts.copy()
    for near, weights, far in zip(step.near.tolist(), step.weights.tolist(), step.far.tolist(), strict=True):
        for row, word in zip(weights, near, strict=True):
            for weight, other in zip(row, near, strict=True):
                targets = [(other, 1.0, weight), *((n, 0.0, weight * negatives / len(far)) for n in far)]
                for target, label, counts in targets:
                    dot = float(words[word] @ contexts[target])
                    slope = rate * counts * (label - 1 / (1 + math.exp(-dot)))
                    new_words[word] += slope * contexts[target]
                    new_contexts[target] += slope * words[word]
    return new_words, new_contexts
