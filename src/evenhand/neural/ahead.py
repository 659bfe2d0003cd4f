"""Work that another thread does ahead of its reader."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

A = TypeVar("A")
B = TypeVar("B")
_AHEAD: Final = 2
"""Results that may wait, so that memory stays bounded."""


def done_ahead(work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """The work of each item, in their order, done while the caller is busy with those before it.

    It gains time where both let go of the interpreter: a tokenizer, and whatever waits for a GPU. What the
    work raises is raised here.
    """
    waiting: deque[Future[B]] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
