"""Work that leaves Python behind, on the cores there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


def threads() -> int:
    """How many threads may work at once: ``OMP_NUM_THREADS`` as in every library, else one a core."""
    named = os.environ.get("OMP_NUM_THREADS", "")
    return int(named) if named.isdigit() and int(named) else os.cpu_count() or 1


def in_threads(work: Callable[[_Item], _Found], items: Iterable[_Item]) -> list[_Found]:
    """What the work gives for each item, in their order; the result does not depend on the threads."""
    count = threads()
    if count < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, items))
