"""How many rows fit: grown until memory says no, halved when it says so in the middle of the work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import torch

from evenhand.core.errors import ModelError

_CPU_REFUSAL: Final = "DefaultCPUAllocator"
_log = logging.getLogger(__name__)


def is_out_of_memory(error: Exception) -> bool:
    """Whether an accelerator, or this machine's own memory, refused an allocation."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and _CPU_REFUSAL in str(error)
    )


def find_most_rows(first: int, wanted: int, fits: Callable[[int], bool]) -> int:
    """The most rows that fit, doubled from ``first`` up to ``wanted``; ``first`` itself is not tried.

    >>> most_rows(32, 1000, lambda rows: rows <= 300)
    256
    """
    rows = min(first, wanted)
    while rows < wanted and fits(min(2 * rows, wanted)):
        rows = min(2 * rows, wanted)
    return rows


def run_in_halves(batch: Sequence[int], work: Callable[[Sequence[int]], None]) -> None:
    """Do the work of a batch, in halves where memory does not suffice for the whole, each once."""
    try:
        work(batch)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        half = halve_rows(len(batch))
        # Outside the except clause: the error holds on to the tensors that did not fit.
    else:
        return
    run_in_halves(batch[:half], work)
    run_in_halves(batch[half:], work)


def halve_rows(rows: int) -> int:
    """Half the rows, after memory did not suffice for them; an error where there is but one."""
    if rows == 1:
        raise ModelError(
            "the accelerator has too little memory for a single row",
            expected="a model and a length that fit",
            fix="ask for fewer new tokens, a smaller model, or --device cpu",
        )
    _log.warning("out of memory: going on with %d rows at a time", rows // 2)
    torch.cuda.empty_cache()
    return rows // 2


class RowLimits:
    """How many rows a sampling loop works on at once: those asked for, or those that fit in memory."""

    __slots__ = ()
    FIRST: ClassVar[int]
    """Rows on a CPU, where more of them are no faster, and where an accelerator begins."""
    LARGEST: ClassVar[int]
    batch: int | None
    rows_by_length: dict[int, int]
    """Length of a row to the rows that fit."""

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        raise NotImplementedError

    @property
    def rows(self) -> int:
        """The rows at once, before it is known how long they are."""
        return self.batch or self.FIRST

    @property
    def can_grow(self) -> bool:
        """Whether rows are grown to what fits; on a CPU more of them are no faster."""
        return self.batch is None and self.device.type != "cpu"

    @property
    def at_once(self) -> int:
        """How many texts to request together, so that rows are filled: any on a CPU, which needs few."""
        return 1 if self.device.type == "cpu" else self.batch or self.LARGEST

    def find_rows(self, length: int, wanted: int, fits: Callable[[int], bool]) -> int:
        """The rows of that length to work on: as many as asked, else of those wanted as many as fit."""
        if not self.can_grow:
            return max(1, self.rows)
        known = self.rows_by_length.get(length, 0)
        if known < min(wanted, self.LARGEST):
            known = find_most_rows(max(known, self.FIRST), min(wanted, self.LARGEST), fits)
            self.rows_by_length[length] = known
        return known

    def halve(self, rows: int) -> int:
        """Half the rows, after memory did not suffice for them; no length has more from now on."""
        half = halve_rows(rows)
        for length, known in self.rows_by_length.items():
            self.rows_by_length[length] = min(known, half)
        return half
