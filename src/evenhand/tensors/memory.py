"""How many rows fit: grown until memory says no, halved when it says so in the middle of the work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

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
