"""Shards: pieces of a corpus that are counted apart and added up; a finished one is never counted again."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain

import numpy as np
import polars as pl

from evenhand.core.digests import Json
from evenhand.core.seeds import derived_seed
from evenhand.corpus.ahead import Ahead
from evenhand.corpus.counts import Counts, Layout, counts_from_rows, counts_to_rows
from evenhand.corpus.matcher import I64, Vocabulary, build
from evenhand.corpus.readers import (
    blocks,
    document_start,
    has_empty_lines,
    holds_lines,
    is_records,
    line_start,
)
from evenhand.corpus.records import BLOCK, READ_ERRORS, Block
from evenhand.corpus.rule import Cluster
from evenhand.corpus.scanner import DocumentEnd, Sample, Scanner, Way, block_rows
from evenhand.corpus.sources import Source, opened
from evenhand.corpus.terms import Problem, TermList

_LISTED = 100
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
        text = (
            f"{self.source.corpus}|{self.source.path}|{self.source.size}|{self.source.version}|{self.start}"
        )
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
    cluster: Cluster | None = None
    """What is independent of each other; null: documents, or lines of text that has no empty line."""

    @property
    def layout(self) -> Layout:
        """The columns of its blocks of documents."""
        return Layout(len(self.terms.emotions), len(self.terms.groups), len(self.terms.axes))

    def no_blocks(self) -> I64:
        """Blocks of documents without a document."""
        width = self.layout.size
        return np.zeros((block_rows(width, self.way), width), dtype=np.int64)

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

    def __add__(self, other: Clock) -> Clock:
        return Clock(
            self.reading + other.reading, self.counting + other.counting, self.waiting + other.waiting
        )


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
    blocks: I64 = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    """The counts of each block of documents."""
    document_end: DocumentEnd = "record"
    """What ended a document."""


def plan(sources: Sequence[Source], way: Way) -> list[Shard]:
    """The shards of a corpus, in a fixed order that follows from the inputs alone."""
    shards = []
    for source in sources:
        if source.size <= SHARD_BYTES or not _can_be_cut(source, way):
            shards.append(Shard(source))
            continue
        for start in range(0, source.size, SHARD_BYTES):
            shards.append(Shard(source, start, min(start + SHARD_BYTES, source.size)))
    return shards


def _can_be_cut(source: Source, way: Way) -> bool:
    if source.packing or source.is_url:
        return False
    if source.format == "text":
        # A document of running text may reach over any number of lines.
        return way.unit != "document"
    return source.format == "jsonl" and holds_lines(source)


class Problems:
    """What was wrong in a file: the first of it, and how much more there was."""

    def __init__(self, file: str) -> None:
        self._file, self._first, self._more = file, list[Problem](), 0

    def add(self, problem: Problem) -> None:
        """Note a problem."""
        if len(self._first) < _LISTED:
            self._first.append(problem)
        else:
            self._more += 1

    def listed(self) -> tuple[Problem, ...]:
        """The problems, at most a hundred and one."""
        if not self._more:
            return tuple(self._first)
        return (*self._first, Problem(self._file, None, f"{self._more:,} more problems of this file"))


class Stopped(Exception):
    """Counting was given up because the run ends."""


def count_shard(
    shard: Shard, task: Task, vocabulary: Vocabulary, stop: threading.Event | None = None
) -> Counted:
    """The counts of a shard, with its samples and what was wrong in it."""
    source, problems = shard.source, Problems(shard.source.path)
    key = derived_seed(task.seed, "sample", source.corpus, source.path)
    ending = _document_end(shard, task)
    span = _span(shard, ending or "line")
    stream = blocks(source, problems.add, column=task.column, span=span)
    is_cheap = source.format == "text" and not source.packing
    feed = Ahead(stream, depth=0 if is_cheap else 4)
    pieces = iter(feed)
    first = next(pieces, Block(b""))
    if ending is None:
        ending = "empty line" if has_empty_lines(first.data[:BLOCK]) else "line"
    start = span[0] if span else 0
    scanner = Scanner(
        vocabulary, task.way, is_records=is_records(source), key=key, start=start, document_end=ending
    )
    total, counting = 0, 0.0
    for block in chain([first], pieces):
        before = time.perf_counter()
        scanner.feed(*block)
        counting += time.perf_counter() - before
        total += len(block.data)
        if stop is not None and stop.is_set():
            raise Stopped
    counts = scanner.finish()
    if scanner.first_bad_byte is not None:
        where = " of the unpacked text" if source.packing else ""
        one = scanner.bad_bytes == 1
        said = f"1 byte{where} is" if one else f"{scanner.bad_bytes:,} bytes{where} are"
        reason = f"{said} not UTF-8; {'it separates' if one else 'they separate'} words"
        problems.add(Problem(source.path, scanner.first_bad_byte, reason))
    return Counted(
        counts,
        total,
        tuple((source.path, sample) for sample in scanner.samples()),
        problems.listed(),
        Clock(feed.reading, counting, 0.0 if is_cheap else feed.waited),
        scanner.blocks(),
        ending,
    )


def _document_end(shard: Shard, task: Task) -> DocumentEnd | None:
    """What ends a document of a source; null where its first block, which is not read yet, decides."""
    if task.cluster == "file":
        return "file"
    if is_records(shard.source):
        return "record"
    if task.cluster == "line" and task.way.unit != "document":
        return "line"
    if task.cluster or task.way.unit == "document":
        return "empty line"
    if shard.stop is None:
        return None
    try:
        file, _ = opened(shard.source)
        with file:
            return "empty line" if has_empty_lines(file.read(BLOCK)) else "line"
    except READ_ERRORS:
        return "line"


def _span(shard: Shard, ending: DocumentEnd) -> tuple[int, int] | None:
    """The range of a shard moved to starts of documents or lines."""
    if shard.stop is None:
        return None
    begin = document_start if ending == "empty line" else line_start
    try:
        file, _ = opened(shard.source)
        with file:
            return begin(file, shard.start), begin(file, shard.stop)
    except READ_ERRORS:
        # The reader meets the same error and reports it.
        return (shard.start, shard.stop)


_COUNT_SCHEMA = {"name": pl.String, "row": pl.Int64, "column": pl.Int64, "value": pl.Int64}
_SAMPLE_SCHEMA = {
    "cell": pl.Int64,
    "priority": pl.UInt64,
    "place": pl.Int64,
    "file": pl.String,
    "text": pl.String,
}
_PROBLEM_SCHEMA = {"file": pl.String, "byte": pl.Int64, "reason": pl.String}
_ENDS: tuple[DocumentEnd, ...] = ("record", "empty line", "line", "file")
TABLES = ("problems", "samples", "blocks", "counts")
"""The tables of a shard; the last one marks it as finished."""


def to_tables(counted: Counted) -> dict[str, pl.DataFrame]:
    """A counted shard as four small tables, by the names of `TABLES`."""
    clock = [(f"clock.{name}", 0, 0, int(seconds * 1e6)) for name, seconds in asdict(counted.clock).items()]
    single = [("bytes", 0, 0, counted.bytes), ("document_end", 0, 0, _ENDS.index(counted.document_end))]
    rows = [*counts_to_rows(counted.counts), *single, *clock]
    places, columns = np.nonzero(counted.blocks)
    samples = [(s.cell, s.priority, s.place, _clean(file), s.text) for file, s in counted.samples]
    problems = [(_clean(p.file), p.byte, _clean(p.reason)) for p in counted.problems]
    return {
        "problems": pl.DataFrame(problems, schema=_PROBLEM_SCHEMA, orient="row"),
        "samples": pl.DataFrame(samples, schema=_SAMPLE_SCHEMA, orient="row"),
        "blocks": pl.DataFrame(
            {
                "block": places.astype(np.int32),
                "column": columns.astype(np.int32),
                "value": counted.blocks[places, columns],
            }
        ),
        "counts": pl.DataFrame(rows, schema=_COUNT_SCHEMA, orient="row"),
    }


def from_tables(tables: Mapping[str, pl.DataFrame], task: Task) -> Counted:
    """The counted shard that `to_tables` wrote."""
    rows = list(tables["counts"].iter_rows())
    single = {name: value for name, row, column, value in rows if not row and not column}
    filled, found = task.no_blocks(), tables["blocks"]
    filled[found["block"].to_numpy(), found["column"].to_numpy()] = found["value"].to_numpy()
    clock = Clock(*(single.get(f"clock.{name}", 0) / 1e6 for name in ("reading", "counting", "waiting")))
    samples = tuple(
        (file, Sample(cell, priority, place, text))
        for cell, priority, place, file, text in tables["samples"].iter_rows()
    )
    problems = tuple(Problem(*row) for row in tables["problems"].iter_rows())
    return Counted(
        counts_from_rows(rows, task.layout),
        single["bytes"],
        samples,
        problems,
        clock,
        filled,
        _ENDS[single["document_end"]],
    )


def plan_record(shards: Sequence[Shard]) -> list[Json]:
    """The shard plan as the manifest holds it."""
    return [[shard.key, shard.source.path, shard.start, shard.stop] for shard in shards]


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
