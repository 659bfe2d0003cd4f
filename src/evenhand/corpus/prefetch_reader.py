"""Reading ahead: bytes are unpacked while those before them are counted."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator

from evenhand.corpus.text_blocks import ByteBlock


class PrefetchReader:
    """A stream that is read by another thread, so that unpacking and counting go on at once."""

    def __init__(self, stream: Iterator[ByteBlock], *, depth: int) -> None:
        self._stream, self._depth = stream, depth
        self.reading, self.wait_seconds = 0.0, 0.0

    def __iter__(self) -> Iterator[ByteBlock]:
        if not self._depth:
            yield from self._read_timed()
            return
        ready: queue.Queue[ByteBlock | BaseException | None] = queue.Queue(self._depth)
        reader = threading.Thread(target=self._read, args=(ready,), daemon=True)
        reader.start()
        while (item := self._next(ready)) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
        reader.join()

    def _next(self, ready: queue.Queue[ByteBlock | BaseException | None]) -> ByteBlock | BaseException | None:
        before = time.perf_counter()
        item = ready.get()
        self.wait_seconds += time.perf_counter() - before
        return item

    def _read(self, ready: queue.Queue[ByteBlock | BaseException | None]) -> None:
        try:
            for block in self._read_timed():
                ready.put(block)
            ready.put(None)
        except BaseException as error:
            ready.put(error)

    def _read_timed(self) -> Iterator[ByteBlock]:
        while True:
            before = time.perf_counter()
            block = next(self._stream, None)
            self.reading += time.perf_counter() - before
            if block is None:
                return
            yield block
