"""One epoch of skip-gram with negative sampling: the inner loop of the word-vector training.

The text is read in stretches of words. Within a stretch all pairs in reach are learned at once, and its words
share their random words, so that everything is a small matrix product (Ji et al. 2016, "Parallelizing
Word2Vec in Shared and Distributed Memory"); a few stretches make a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evenhand.training.optim import one_thread

STRETCH: Final = 48
"""Words looked at together. Pairs across the edges are not met: 5 % of them, others in every epoch."""
SHARED: Final = 32
"""Random words a stretch is told apart from; weighted, so that each pair counts ``negatives`` of them."""
STRETCHES: Final = 8
"""Stretches a step at most."""
HEAT: Final = 5.0
"""The most that a step may weigh for one word: learning rate times pairs. A step adds up a word's changes, so
in a large one frequent words overshoot: 64 stretches of 32 words lost half of the analogies that 16 found."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides a skip-gram epoch."""

    window: int = 5
    """The farthest neighbour. One at distance d weighs (window + 1 - d) / window, which is how often a word
    whose reach is drawn between 1 and ``window`` would meet it."""
    negatives: int = 5
    """Random words each word is told apart from."""
    rate: float = 0.025
    """The learning rate at the start; it falls in a line to nearly 0 at the end of the last epoch."""
    common: float = 1e-4
    """Share of the text above which a word is skipped now and then."""
    power: float = 0.75
    """Random words are drawn by their frequency to this power."""


class Step(NamedTuple):
    """Some stretches of text."""

    near: Tensor
    """(stretches, words): word numbers."""
    weights: Tensor
    """(stretches, words, words): how much each pair counts; 0 out of reach and across documents."""
    far: Tensor
    """(stretches, random words): word numbers."""


def run_epoch(
    ids: npt.NDArray[np.int32],
    counts: npt.NDArray[np.int64],
    words: npt.NDArray[np.float32],
    contexts: npt.NDArray[np.float32],
    *,
    settings: Settings,
    seed: int,
    done: float,
    share: float,
) -> None:
    """Change ``words`` and ``contexts`` in place by one pass over the text.

    Args:
        ids: Word numbers; negative ones part documents.
        counts: How often each word occurs.
        words: The vectors, one row a word.
        contexts: The output vectors, one row a word.
        settings: Window, negatives, rates.
        seed: Decides every draw.
        done: Share of the whole training that lies behind.
        share: Share of it that this pass is.
    """
    rng = np.random.default_rng(seed)
    number, document = _kept(ids, _keep_shares(counts, settings.common), rng)
    tables = torch.from_numpy(words), torch.from_numpy(contexts)
    edges = _draw_edges(counts, settings.power)
    stretches, highest = pace(edges, settings)
    with one_thread(), torch.inference_mode():
        for progress, step in _steps(number, document, edges, settings.window, stretches, rng):
            rate = highest * max(1 - done - share * progress, 1e-4)
            learn(*tables, step, rate=rate, negatives=settings.negatives)


def pace(edges: npt.NDArray[np.float64], settings: Settings) -> tuple[int, float]:
    """(stretches a step, learning rate at the start) for random words drawn by these edges.

    A word of a small vocabulary is met so often in a step that fewer stretches, or a lower rate, must do.

    >>> pace(np.linspace(0.001, 1, 1000), Settings()), pace(np.array([0.5, 1.0]), Settings(rate=0.1))[0]
    ((8, 0.025), 1)
    """
    most = float(np.diff(edges, prepend=0.0).max())
    heat = settings.rate * settings.negatives * (settings.window + 1) * STRETCH * most
    return max(1, min(STRETCHES, int(HEAT / heat))), settings.rate * min(1.0, HEAT / heat)


def learn(words: Tensor, contexts: Tensor, step: Step, *, rate: float, negatives: int) -> None:
    """Move words towards their neighbours' output vectors and away from the random words', in place.

    The slope of a pair's log-likelihood: 1 - sigmoid(dot) for neighbours, -sigmoid(dot) for random words.
    """
    own, other, random = words[step.near], contexts[step.near], contexts[step.far]
    pull = step.weights * (1 - torch.bmm(own, other.mT).sigmoid_()) * rate
    push = torch.bmm(own, random.mT).sigmoid_() * step.weights.sum(-1, keepdim=True)
    push *= -rate * negatives / step.far.shape[1]
    change = torch.bmm(pull, other) + torch.bmm(push, random)
    words.index_add_(0, step.near.flatten(), change.flatten(0, 1))
    contexts.index_add_(0, step.near.flatten(), torch.bmm(pull.mT, own).flatten(0, 1))
    contexts.index_add_(0, step.far.flatten(), torch.bmm(push.mT, own).flatten(0, 1))


def reach_weights(length: int, window: int) -> Tensor:
    """How much the pair of two places counts in a stretch of this length; 0 on the diagonal.

    >>> reach_weights(3, 2).tolist()
    [[0.0, 1.0, 0.5], [1.0, 0.0, 1.0], [0.5, 1.0, 0.0]]
    """
    places = torch.arange(length)
    distance = (places[:, None] - places).abs()
    return ((window + 1 - distance).clamp(min=0) / window) * (distance > 0)


def _kept(
    ids: npt.NDArray[np.int32], shares: npt.NDArray[np.float32], rng: np.random.Generator
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """The words that are not skipped this time, and the number of each one's document."""
    is_word = ids >= 0
    document = np.cumsum(~is_word, dtype=np.int32)
    kept = is_word & (rng.random(len(ids), dtype=np.float32) < shares[ids])
    # Stretches begin elsewhere in every epoch.
    first = int(rng.integers(STRETCH))
    return ids[kept][first:], document[kept][first:]


def _steps(
    number: npt.NDArray[np.int32],
    document: npt.NDArray[np.int32],
    edges: npt.NDArray[np.float64],
    window: int,
    stretches: int,
    rng: np.random.Generator,
) -> Iterator[tuple[float, Step]]:
    """(share of the pass that lies behind, step); the words of a last partial stretch are left out."""
    reach = reach_weights(STRETCH, window)
    whole = len(number) // STRETCH
    near, part = (torch.from_numpy(a[: whole * STRETCH]).view(-1, STRETCH) for a in (number, document))
    for at in range(0, whole, stretches):
        some, where = near[at : at + stretches].long(), part[at : at + stretches]
        weights = reach * (where[:, :, None] == where[:, None, :])
        drawn = np.searchsorted(edges, rng.random((len(some), SHARED)))
        yield at / whole, Step(some, weights, torch.from_numpy(drawn))


def _keep_shares(counts: npt.NDArray[np.int64], common: float) -> npt.NDArray[np.float32]:
    """For each word the chance that an occurrence is kept: 1 unless its share of the text is above common."""
    relative = np.maximum(counts / counts.sum() / common, 1e-12)
    shares: npt.NDArray[np.float32] = np.minimum((np.sqrt(relative) + 1) / relative, 1.0).astype(np.float32)
    return shares


def _draw_edges(counts: npt.NDArray[np.int64], power: float) -> npt.NDArray[np.float64]:
    """The upper edges of the words' parts of [0, 1], each as wide as its frequency to ``power``."""
    weights = np.cumsum(counts.astype(np.float64) ** power)
    return np.asarray(weights / weights[-1])
