"""Shards: pieces of a corpus that are counted apart and added up; a finished one is never counted again."""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import polars as pl

from evenhand.core.digests import Json
from evenhand.core.seeds import derived_seed
from evenhand.corpus.counts import Counts, counts_from_rows, counts_to_rows
from evenhand.corpus.matcher import Vocabulary, build
from evenhand.corpus.readers import READ_ERRORS, blocks, is_records, line_start
from evenhand.corpus.scanner import Sample, Scanner, Way
from evenhand.corpus.sources import Source, opened
from evenhand.corpus.terms import Problem, TermList

SHARD_BYTES = 64 << 20
"""Plain text and JSONL is cut into pieces of about this size, at line ends."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A source, or a range of its bytes."""

    source: Source
    start: int = 0
    stop: int | None = None

    @property
    def key(self) -> str:
        """A name that follows from the input alone."""
        text = f"{self.source.corpus}|{self.source.path}|{self.source.size}|{self.start}"
        return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=10).hexdigest()

    @property
    def size(self) -> int:
        """Stored bytes."""
        return (self.source.size if self.stop is None else self.stop) - self.start


@dataclass(frozen=True, slots=True)
class Task:
    """How every shard of a run is counted."""

    terms: TermList
    way: Way
    column: str | None = None
    seed: int = 0

    def vocabulary(self) -> Vocabulary:
        """The terms, ready for the kernel."""
        return build(self.terms, self.way.rule)


@dataclass(frozen=True, slots=True)
class Clock:
    """Where the time of a shard went, in seconds."""

    reading: float = 0.0
    """Reading and unpacking."""
    counting: float = 0.0
    waiting: float = 0.0
    """The counter had nothing to count: reading is the limit."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What came out of a shard."""

    counts: Counts
    bytes: int
    """Of unpacked text."""
    samples: tuple[tuple[str, Sample], ...] = ()
    """Each with its file."""
    problems: tuple[Problem, ...] = ()
    clock: Clock = field(default_factory=Clock)


def plan(sources: Sequence[Source], way: Way) -> list[Shard]:
    """The shards of a corpus, in a fixed order that follows from the inputs alone."""
    shards = []
    for source in sources:
        can_cut = source.format in ("text", "jsonl") and not source.packing and not source.is_url
        # A document of running text may reach over any number of lines.
        if not can_cut or (way.unit == "document" and source.format == "text") or source.size <= SHARD_BYTES:
            shards.append(Shard(source))
            continue
        for start in range(0, source.size, SHARD_BYTES):
            shards.append(Shard(source, start, min(start + SHARD_BYTES, source.size)))
    return shards


class Stopped(Exception):
    """Counting was given up because the run ends."""


def count_shard(
    shard: Shard, task: Task, vocabulary: Vocabulary, stop: threading.Event | None = None
) -> Counted:
    """The counts of a shard, with its samples and what was wrong in it."""
    source, problems = shard.source, list[Problem]()
    span = _span(shard, problems)
    key = derived_seed(task.seed, "sample", source.corpus, source.path)
    scanner = Scanner(
        vocabulary, task.way, is_records=is_records(source), key=key, start=span[0] if span else 0
    )
    total, counting, waiting = 0, 0.0, 0.0
    stream = blocks(source, problems.append, column=task.column, span=span)
    is_cheap = source.format == "text" and not source.packing
    feed = _Ahead(stream, depth=0 if is_cheap else 4)
    for block in feed:
        before = time.perf_counter()
        scanner.feed(block)
        counting += time.perf_counter() - before
        total += len(block)
        if stop is not None and stop.is_set():
            raise Stopped
    counts = scanner.finish()
    if scanner.first_bad_byte is not None:
        where = " of the unpacked text" if source.packing else ""
        reason = f"{scanner.bad_bytes:,} bytes{where} are not UTF-8; they separate words"
        problems.append(Problem(source.path, scanner.first_bad_byte, reason))
    waiting = feed.waited if not is_cheap else 0.0
    return Counted(
        counts,
        total,
        tuple((source.path, sample) for sample in scanner.samples()),
        tuple(problems),
        Clock(feed.reading, counting, waiting),
    )


def _span(shard: Shard, problems: list[Problem]) -> tuple[int, int] | None:
    """The range of a shard moved to starts of lines."""
    if shard.stop is None:
        return None
    try:
        file, _ = opened(shard.source)
        with file:
            return line_start(file, shard.start), line_start(file, shard.stop)
    except READ_ERRORS:
        # The reader meets the same error and reports it.
        return (shard.start, shard.stop)


class _Ahead:
    """A stream that is read by another thread, so that unpacking and counting go on at once."""

    def __init__(self, stream: Iterator[bytes], *, depth: int) -> None:
        self._stream, self._depth = stream, depth
        self.reading, self.waited = 0.0, 0.0

    def __iter__(self) -> Iterator[bytes]:
        if not self._depth:
            yield from self._timed()
            return
        ready: queue.Queue[bytes | BaseException | None] = queue.Queue(self._depth)
        reader = threading.Thread(target=self._read, args=(ready,), daemon=True)
        reader.start()
        while (item := self._next(ready)) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
        reader.join()

    def _next(self, ready: queue.Queue[bytes | BaseException | None]) -> bytes | BaseException | None:
        before = time.perf_counter()
        item = ready.get()
        self.waited += time.perf_counter() - before
        return item

    def _read(self, ready: queue.Queue[bytes | BaseException | None]) -> None:
        try:
            for block in self._timed():
                ready.put(block)
            ready.put(None)
        except BaseException as error:
            ready.put(error)

    def _timed(self) -> Iterator[bytes]:
        while True:
            before = time.perf_counter()
            block = next(self._stream, None)
            self.reading += time.perf_counter() - before
            if block is None:
                return
            yield block


_COUNT_SCHEMA = {"name": pl.String, "row": pl.Int64, "column": pl.Int64, "value": pl.Int64}
_SAMPLE_SCHEMA = {
    "cell": pl.Int64,
    "priority": pl.UInt64,
    "byte": pl.Int64,
    "file": pl.String,
    "text": pl.String,
}
_PROBLEM_SCHEMA = {"file": pl.String, "byte": pl.Int64, "reason": pl.String}


def to_tables(counted: Counted) -> dict[str, pl.DataFrame]:
    """A counted shard as three small tables: problems, samples, counts."""
    clock = [(f"clock.{name}", 0, 0, int(seconds * 1e6)) for name, seconds in asdict(counted.clock).items()]
    rows = [*counts_to_rows(counted.counts), ("bytes", 0, 0, counted.bytes), *clock]
    samples = [(s.cell, s.priority, s.byte, _clean(file), s.text) for file, s in counted.samples]
    problems = [(_clean(p.file), p.byte, _clean(p.reason)) for p in counted.problems]
    return {
        "problems": pl.DataFrame(problems, schema=_PROBLEM_SCHEMA, orient="row"),
        "samples": pl.DataFrame(samples, schema=_SAMPLE_SCHEMA, orient="row"),
        "counts": pl.DataFrame(rows, schema=_COUNT_SCHEMA, orient="row"),
    }


def from_tables(tables: Mapping[str, pl.DataFrame], shape: tuple[int, int, int]) -> Counted:
    """The counted shard that `to_tables` wrote; the shape is emotions, groups, axes."""
    rows = list(tables["counts"].iter_rows())
    single = {name: value for name, _, _, value in rows if name == "bytes" or name.startswith("clock.")}
    clock = Clock(*(single.get(f"clock.{name}", 0) / 1e6 for name in ("reading", "counting", "waiting")))
    samples = tuple(
        (file, Sample(cell, priority, byte, text))
        for cell, priority, byte, file, text in tables["samples"].iter_rows()
    )
    problems = tuple(Problem(*row) for row in tables["problems"].iter_rows())
    return Counted(counts_from_rows(rows, shape), single["bytes"], samples, problems, clock)


def plan_record(shards: Sequence[Shard]) -> list[Json]:
    """The shard plan as the manifest holds it."""
    return [[shard.key, shard.source.path, shard.start, shard.stop] for shard in shards]


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
