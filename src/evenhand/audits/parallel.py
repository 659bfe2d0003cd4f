"""A function applied to many items in parallel, in processes or in threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from typing import TypeVar

from evenhand.core.protocols import Progress

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_processes(
    work: Callable[[_Item], _Result], items: Sequence[_Item], *, jobs: int, progress: Progress, label: str
) -> list[_Result]:
    """What the work gives for each item, in their order, with at most ``jobs`` items at once.

    The processes share the cores. One job, or one item, is done in this process. ``work`` is a function of a
    module, and its arguments and results are pickled. An error of one item ends the whole; what other items
    wrote stays.
    """
    if min(jobs, len(items)) < 2:
        return [work(item) for item in items]
    cores = max(1, (os.cpu_count() or 1) // jobs)
    pool = ProcessPoolExecutor(
        min(jobs, len(items)), mp_context=get_context("spawn"), initializer=_start_worker, initargs=(cores,)
    )
    with pool, progress.step(label, len(items)) as advance:
        futures = [pool.submit(work, item) for item in items]
        try:
            for future in as_completed(futures):
                future.result()
                advance(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _start_worker(cores: int) -> None:
    """Share out the cores before any library counts them, and end with the process that asked."""
    os.environ["OMP_NUM_THREADS"] = str(cores)
    os.environ["NUMBA_NUM_THREADS"] = str(cores)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def map_threads(work: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """What the work gives for each item, in their order; the result does not depend on the threads.

    There are as many as ``OMP_NUM_THREADS`` says, as in every library, else one a core.
    """
    named = os.environ.get("OMP_NUM_THREADS", "")
    count = int(named) if named.isdigit() and int(named) else os.cpu_count() or 1
    if count < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, items))
