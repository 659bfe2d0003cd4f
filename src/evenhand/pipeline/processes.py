"""Work of minutes side by side, each piece in a process of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from typing import TypeVar

from evenhand.core.protocols import Progress

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


def in_processes(
    work: Callable[[_Item], _Found], items: Sequence[_Item], *, jobs: int, progress: Progress, label: str
) -> list[_Found]:
    """What the work gives for each item, in their order, with at most ``jobs`` items at once.

    The cores are shared out among the processes. One job, or one item, is done in this process. ``work`` is a
    function of a module, and what it takes and gives is sent from process to process. An error of one item
    ends the whole; what other items wrote stays.
    """
    if min(jobs, len(items)) < 2:
        return [work(item) for item in items]
    cores = max(1, (os.cpu_count() or 1) // jobs)
    pool = ProcessPoolExecutor(
        min(jobs, len(items)), mp_context=get_context("spawn"), initializer=_begin, initargs=(cores,)
    )
    with pool, progress.step(label, len(items)) as advance:
        futures = [pool.submit(_told, work, item) for item in items]
        try:
            for future in as_completed(futures):
                _checked(future.result())
                advance(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [_checked(future.result()) for future in futures]


def _begin(cores: int) -> None:
    """Share out the cores before any library counts them, and end with the process that asked."""
    os.environ["OMP_NUM_THREADS"] = str(cores)
    os.environ["NUMBA_NUM_THREADS"] = str(cores)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _told(work: Callable[[_Item], _Found], item: _Item) -> object:
    """What the work gives; an error of ours travels as a value, with all of its parts."""
    from evenhand.core.errors import EvenhandError
    from evenhand.pipeline.workers import Refused

    try:
        return work(item)
    except EvenhandError as error:
        return Refused(type(error).__name__, error.came, error.accepted, error.todo)


def _checked(found: object) -> _Found:  # type: ignore[type-var]
    from evenhand.pipeline.workers import Refused

    if isinstance(found, Refused):
        raise found.error()
    return found  # type: ignore[return-value]
