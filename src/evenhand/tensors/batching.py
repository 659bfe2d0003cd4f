"""Padded batches of texts of similar length, as large as memory allows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import ClassVar, Final, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from evenhand.core.errors import ModelError
from evenhand.tensors.devices import to_device

_Item = TypeVar("_Item", bound=Sequence[int])
_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


def batch_by_length(lengths: Sequence[int], *, rows: int, tokens: int | None = None) -> Iterator[list[int]]:
    """Batches of indices, every index once: at most ``rows`` indices and ``tokens`` cells, padding included.

    The longest come first, so that a batch that does not fit in memory fails at once. Ties keep their order,
    so the batches depend on the lengths only. A text longer than ``tokens`` is a batch of its own.

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
    """The result of every item, in order; ``work`` gets batches of items of similar length."""
    results: dict[int, _Result] = {}
    for batch in batch_by_length([len(item) for item in items], rows=rows, tokens=tokens):
        results.update(zip(batch, work([items[index] for index in batch]), strict=True))
    return [results[index] for index in range(len(items))]


MAX_LOGITS = 1 << 24
"""Logits held at a time while log-probabilities are computed: 64 MiB in float32."""


def pad_rows(
    rows: Sequence[Sequence[int]], *, device: torch.device, left: bool = False, filler: int = 0
) -> Tensor:
    """The rows as one matrix, padded on the right or on the left."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    longest = int(lengths.max(initial=0))
    columns = np.arange(longest)
    filled = np.full((len(rows), longest), filler, np.int64)
    is_token = columns >= longest - lengths[:, None] if left else columns < lengths[:, None]
    filled[is_token] = np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum()))
    return to_device(torch.from_numpy(filled), device)


def token_log_probs(logits: Tensor, targets: Tensor) -> Tensor:
    """The natural log-probability of each target under its row of logits."""
    return logits.gather(-1, targets[:, None])[:, 0] - logits.logsumexp(-1)


def next_log_probs(
    hidden: Tensor, rows: Sequence[Sequence[int]], *, logits: Callable[[Tensor], Tensor], vocabulary: int
) -> list[Tensor]:
    """For each row the log-probability of every token but the first, from right-padded hidden states.

    The output embedding is applied to a few hundred positions at a time: all at once would need gigabytes.
    """
    lengths = [len(row) - 1 for row in rows]
    states = torch.cat([hidden[index, :length] for index, length in enumerate(lengths)])
    targets = torch.tensor([token for row in rows for token in row[1:]], device=hidden.device)
    size = max(1, MAX_LOGITS // vocabulary)
    parts = [
        token_log_probs(logits(states[at : at + size]), targets[at : at + size])
        for at in range(0, len(states), size)
    ]
    return list(torch.split(torch.cat(parts), lengths))


_CPU_REFUSAL: Final = "DefaultCPUAllocator"


def is_out_of_memory(error: Exception) -> bool:
    """Whether an accelerator or this machine's memory refused an allocation."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and _CPU_REFUSAL in str(error)
    )


def find_most_rows(first: int, wanted: int, fits: Callable[[int], bool]) -> int:
    """The most rows that fit, doubling from ``first`` up to ``wanted``; ``first`` itself is not tried.

    >>> find_most_rows(32, 1000, lambda rows: rows <= 300)
    256
    """
    rows = min(first, wanted)
    while rows < wanted and fits(min(2 * rows, wanted)):
        rows = min(2 * rows, wanted)
    return rows


def run_in_halves(batch: Sequence[int], work: Callable[[Sequence[int]], None]) -> None:
    """Run the work of a batch, each item once, splitting the batch in half when it does not fit in memory."""
    try:
        work(batch)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        half = halve_rows(len(batch))
        # Outside the except clause: the error keeps references to the tensors that did not fit.
    else:
        return
    run_in_halves(batch[:half], work)
    run_in_halves(batch[half:], work)


def halve_rows(rows: int) -> int:
    """Half the rows, after running out of memory; an error if there is only one."""
    if rows == 1:
        raise ModelError(
            "the accelerator has too little memory for a single row",
            expected="a model and a length that fit",
            fix="ask for fewer new tokens, a smaller model, or --device cpu",
        )
    _log.warning("out of memory: continuing with batches of %d rows", rows // 2)
    torch.cuda.empty_cache()
    return rows // 2


class HasDevice(Protocol):
    """Anything on a device."""

    @property
    def device(self) -> torch.device:
        """The device."""
        ...


class RowLimits:
    """How many rows a sampling loop processes at once: the requested number, or what fits in memory."""

    __slots__ = ()
    FIRST: ClassVar[int]
    """Rows on a CPU, where more are no faster, and the first number tried on an accelerator."""
    LARGEST: ClassVar[int]
    engine: HasDevice
    batch: int | None
    rows_by_length: dict[int, int]
    """Row length to the number of rows that fit."""

    @property
    def rows(self) -> int:
        """The number of rows at once, before their length is known."""
        return self.batch or self.FIRST

    @property
    def can_grow(self) -> bool:
        """Whether rows can be increased to what fits; on a CPU more are no faster."""
        return self.batch is None and self.engine.device.type != "cpu"

    @property
    def at_once(self) -> int:
        """How many texts to request together to fill the rows: any number on a CPU, which needs few."""
        return 1 if self.engine.device.type == "cpu" else self.batch or self.LARGEST

    def find_rows(self, length: int, wanted: int, fits: Callable[[int], bool]) -> int:
        """The rows of that length to process: as requested, else as many as fit, at most ``wanted``."""
        if not self.can_grow:
            return max(1, self.rows)
        known = self.rows_by_length.get(length, 0)
        if known < min(wanted, self.LARGEST):
            known = find_most_rows(max(known, self.FIRST), min(wanted, self.LARGEST), fits)
            self.rows_by_length[length] = known
        return known

    def halve(self, rows: int) -> int:
        """Half the rows, after running out of memory; no length uses more from then on."""
        half = halve_rows(rows)
        for length, known in self.rows_by_length.items():
            self.rows_by_length[length] = min(known, half)
        return half
