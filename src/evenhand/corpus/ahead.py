"""Reading ahead: bytes are unpacked while those before them are counted."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator

from evenhand.corpus.records import Block


class Ahead:
    """A stream that is read by another thread, so that unpacking and counting go on at once."""

    def __init__(self, stream: Iterator[Block], *, depth: int) -> None:
        self._stream, self._depth = stream, depth
        self.reading, self.waited = 0.0, 0.0

    def __iter__(self) -> Iterator[Block]:
        if not self._depth:
            yield from self._timed()
            return
        ready: queue.Queue[Block | BaseException | None] = queue.Queue(self._depth)
        reader = threading.Thread(target=self._read, args=(ready,), daemon=True)
        reader.start()
        while (item := self._next(ready)) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
        reader.join()

    def _next(self, ready: queue.Queue[Block | BaseException | None]) -> Block | BaseException | None:
        before = time.perf_counter()
        item = ready.get()
        self.waited += time.perf_counter() - before
        return item

    def _read(self, ready: queue.Queue[Block | BaseException | None]) -> None:
        try:
            for block in self._timed():
                ready.put(block)
            ready.put(None)
        except BaseException as error:
            ready.put(error)

    def _timed(self) -> Iterator[Block]:
        while True:
            before = time.perf_counter()
            block = next(self._stream, None)
            self.reading += time.perf_counter() - before
            if block is None:
                return
            yield block
