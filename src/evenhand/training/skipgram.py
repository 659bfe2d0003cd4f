"""One epoch of skip-gram with negative sampling, compiled: the inner loop of the word-vector training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numba
import numpy as np
import numpy.typing as npt

_TABLE_BITS: Final = 21
_SENTENCE: Final = 1000
"""Words looked at together: the longest stretch a window can lie in."""
_SIGMOID_STEPS: Final = 1024
_SIGMOID_REACH: Final = 6.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides a skip-gram epoch."""

    window: int = 5
    """The farthest neighbour; each word draws its reach between 1 and this."""
    negatives: int = 5
    """Random words each word is told apart from."""
    rate: float = 0.025
    """The learning rate at the start; it falls in a line to nearly 0 at the end of the last epoch."""
    common: float = 1e-4
    """Share of the text above which a word is skipped now and then."""
    power: float = 0.75
    """Random words are drawn by their frequency to this power."""


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
    rates = np.array([settings.rate * (1 - done), settings.rate * (1 - done - share)])
    np.maximum(rates, settings.rate * 1e-4, out=rates)
    draws = (
        _keep_levels(counts, settings.common),
        _draw_table(counts, settings.power),
        np.uint64(seed * 2 + 1),
    )
    _epoch(ids, (words, contexts), draws, (settings.window, settings.negatives), rates, _sigmoid_table())


def _keep_levels(counts: npt.NDArray[np.int64], common: float) -> npt.NDArray[np.uint32]:
    """For each word the number in 0..65536 a 16-bit draw must stay below for the word to be kept."""
    relative = np.maximum(counts / counts.sum() / common, 1e-12)
    keep = np.minimum((np.sqrt(relative) + 1) / relative, 1.0)
    levels: npt.NDArray[np.uint32] = np.ceil(keep * 65536).astype(np.uint32)
    return levels


def _draw_table(counts: npt.NDArray[np.int64], power: float) -> npt.NDArray[np.int32]:
    """A table in which each word fills a share of the places by its frequency to ``power``."""
    weights = counts.astype(np.float64) ** power
    edges = np.cumsum(weights) / weights.sum()
    places = (np.arange(1 << _TABLE_BITS) + 0.5) / (1 << _TABLE_BITS)
    return np.minimum(np.searchsorted(edges, places), len(counts) - 1).astype(np.int32)


def _sigmoid_table() -> npt.NDArray[np.float32]:
    middle = (np.arange(_SIGMOID_STEPS) + 0.5) / _SIGMOID_STEPS * 2 * _SIGMOID_REACH - _SIGMOID_REACH
    return (1 / (1 + np.exp(-middle))).astype(np.float32)


@numba.njit(inline="always")
def _next(state: np.uint64) -> np.uint64:
    # The linear congruence of drand48: 48 good bits, the high ones best.
    return np.uint64((state * np.uint64(25214903917) + np.uint64(11)) & np.uint64(0xFFFFFFFFFFFF))


@numba.njit(fastmath=True)
def _slope(dot: np.float32, label: np.float32, sigmoid: npt.NDArray[np.float32]) -> np.float32:
    if dot >= _SIGMOID_REACH:
        return np.float32(label - 1)
    if dot <= -_SIGMOID_REACH:
        return label
    return np.float32(
        label - sigmoid[int((dot + _SIGMOID_REACH) * np.float32(_SIGMOID_STEPS / (2 * _SIGMOID_REACH)))]
    )


@numba.njit(fastmath=True)
def _learn_pair(word, contexts, targets, rate, sigmoid, change):  # type: ignore[no-untyped-def]
    """Move one word towards its neighbour (the first target) and away from the random words (the others)."""
    change[:] = 0
    for place in range(targets.shape[0]):
        if place > 0 and targets[place] == targets[0]:
            continue
        other = contexts[targets[place]]
        dot = np.float32(0)
        for column in range(word.shape[0]):
            dot += word[column] * other[column]
        step = _slope(dot, np.float32(place == 0), sigmoid) * rate
        for column in range(word.shape[0]):
            change[column] += step * other[column]
            other[column] += step * word[column]
    for column in range(word.shape[0]):
        word[column] += change[column]


@numba.njit(fastmath=True)
def _epoch(ids, vectors, draws, sizes, rates, sigmoid):  # type: ignore[no-untyped-def]
    words, contexts = vectors
    keep, table, state = draws
    window, negatives = sizes
    stretch = np.empty(_SENTENCE, np.int32)
    targets = np.empty(negatives + 1, np.int32)
    change = np.empty(words.shape[1], np.float32)
    place = 0
    while place < ids.shape[0]:
        length = 0
        while place < ids.shape[0] and length < _SENTENCE:
            number = ids[place]
            place += 1
            if number < 0:
                break
            state = _next(state)
            if (state >> np.uint64(32)) & np.uint64(0xFFFF) < keep[number]:
                stretch[length] = number
                length += 1
        rate = np.float32(rates[0] + (rates[1] - rates[0]) * place / ids.shape[0])
        for middle in range(length):
            state = _next(state)
            reach = 1 + int((state >> np.uint64(20)) % np.uint64(window))
            # The neighbours of a word share its random words: rows stay in cache, the result is as good.
            targets[0] = stretch[middle]
            for draw in range(negatives):
                state = _next(state)
                targets[draw + 1] = table[
                    (state >> np.uint64(48 - _TABLE_BITS)) & np.uint64((1 << _TABLE_BITS) - 1)
                ]
            for near in range(max(0, middle - reach), min(length, middle + reach + 1)):
                if near != middle:
                    _learn_pair(words[stretch[near]], contexts, targets, rate, sigmoid, change)
