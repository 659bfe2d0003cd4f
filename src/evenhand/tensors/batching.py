"""Batches of texts of like length, so that little is spent on padding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from evenhand.tensors.devices import to_device

_Item = TypeVar("_Item", bound=Sequence[int])
_Result = TypeVar("_Result")


def batch_by_length(lengths: Sequence[int], *, rows: int, tokens: int | None = None) -> Iterator[list[int]]:
    """Batches of indices, every index once: at most ``rows`` of them and ``tokens`` cells with padding.

    The longest come first, so that a batch that does not fit in memory fails at once. Ties keep their order,
    so the batches follow from the lengths alone. A text longer than ``tokens`` is a batch of its own.

    >>> list(batch_by_length([3, 9, 4, 8], rows=2))
    [[1, 3], [2, 0]]
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        cells = lengths[batch[0] if batch else index] * (len(batch) + 1)
        if batch and (len(batch) == rows or (tokens is not None and cells > tokens)):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def map_by_length(
    items: Sequence[_Item],
    work: Callable[[list[_Item]], Sequence[_Result]],
    *,
    rows: int,
    tokens: int | None = None,
) -> list[_Result]:
    """The result of every item, in the items' order; ``work`` gets batches of items of like length."""
    results: dict[int, _Result] = {}
    for batch in batch_by_length([len(item) for item in items], rows=rows, tokens=tokens):
        results.update(zip(batch, work([items[index] for index in batch]), strict=True))
    return [results[index] for index in range(len(items))]


MAX_LOGITS = 1 << 24
"""Logits held at once while log-probabilities are taken: 64 MiB in float32."""


def pad_rows(rows: Sequence[Sequence[int]], *, device: torch.device, left: bool = False) -> Tensor:
    """The rows as one matrix, filled with token 0 on the right, or on the left."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    longest = int(lengths.max(initial=0))
    columns = np.arange(longest)
    filled = np.zeros((len(rows), longest), np.int64)
    there = columns >= longest - lengths[:, None] if left else columns < lengths[:, None]
    filled[there] = np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum()))
    return to_device(torch.from_numpy(filled), device)


def token_log_probs(logits: Tensor, targets: Tensor) -> Tensor:
    """The natural log-probability of each target under its row of logits."""
    return logits.gather(-1, targets[:, None])[:, 0] - logits.logsumexp(-1)


def next_log_probs(
    hidden: Tensor, rows: Sequence[Sequence[int]], *, logits: Callable[[Tensor], Tensor], vocabulary: int
) -> list[Tensor]:
    """For each row the log-probability of every token but the first, from right-padded hidden states.

    The output table is applied to a few hundred positions at a time: all at once would need gigabytes.
    """
    lengths = [len(row) - 1 for row in rows]
    states = torch.cat([hidden[index, :length] for index, length in enumerate(lengths)])
    targets = torch.tensor([token for row in rows for token in row[1:]], device=hidden.device)
    size = max(1, MAX_LOGITS // vocabulary)
    found = [
        token_log_probs(logits(states[at : at + size]), targets[at : at + size])
        for at in range(0, len(states), size)
    ]
    return list(torch.split(torch.cat(found), lengths))
