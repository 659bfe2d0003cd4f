"""Rows of tokens as tensors, and the log-probabilities a model gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from evenhand.neural.devices import sent

SCORES_AT_ONCE = 1 << 24
"""Logits held at once while log-probabilities are taken: 64 MiB in float32."""


def padded(rows: Sequence[Sequence[int]], *, device: torch.device, left: bool = False) -> Tensor:
    """The rows as one matrix, filled with token 0 on the right, or on the left."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    longest = int(lengths.max(initial=0))
    columns = np.arange(longest)
    filled = np.zeros((len(rows), longest), np.int64)
    there = columns >= longest - lengths[:, None] if left else columns < lengths[:, None]
    filled[there] = np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum()))
    return sent(torch.from_numpy(filled), device)


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
    size = max(1, SCORES_AT_ONCE // vocabulary)
    found = [
        token_log_probs(logits(states[at : at + size]), targets[at : at + size])
        for at in range(0, len(states), size)
    ]
    return list(torch.split(torch.cat(found), lengths))
