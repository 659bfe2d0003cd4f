"""Shards: pieces of a corpus, counted separately and added up; a finished one is never counted again."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl

from evenhand.core.ray_cluster import check_nodes, connect_cluster, enter_folder
from evenhand.core.seeds import derive_seed
from evenhand.corpus.readers import (
    BLOCK,
    ByteBlock,
    find_document_start,
    find_line_start,
    has_empty_lines,
    peek,
    prefetch_blocks,
    read_blocks,
)
from evenhand.corpus.record_readers import holds_json_lines
from evenhand.corpus.scanner import (
    DOCUMENT_ENDS,
    BlockLayout,
    CountingConfig,
    DocumentEnd,
    Scanner,
    block_rows,
)
from evenhand.corpus.term_lists import TermList
from evenhand.corpus.term_matcher import TermVocabulary, build_vocabulary
from evenhand.corpus.tokenisation import ClusterUnit
from evenhand.store.schemas import PROBLEMS
from evenhand.store.text_sources import ReadProblem, TextSource

_LISTED = 100
SHARD_BYTES = 64 << 20
"""Plain text and JSONL are cut into pieces of about this size, at line ends."""
_COUNT_SCHEMA = {"name": pl.String, "value": pl.Int64}
_SAMPLE_SCHEMA = {
    "cell": pl.Int64,
    "priority": pl.UInt64,
    "place": pl.Int64,
    "file": pl.String,
    "text": pl.String,
}
TABLES = ("problems", "samples", "blocks", "counts")
"""The tables of a shard; the last one marks it as finished."""
WITH_GROUP = "axes"
"""The row of units that name a group. In older shards several rows have this name: the last one counts."""


@dataclass(frozen=True, slots=True)
class CorpusShard:
    """A source, or a range of its bytes."""

    source: TextSource
    start: int = 0
    stop: int | None = None

    @property
    def key(self) -> str:
        """A name derived from the input alone."""
        source = self.source
        text = f"{source.corpus}|{source.path}|{source.size}|{source.version}|{self.start}"
        return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=10).hexdigest()

    @property
    def size(self) -> int:
        """Stored bytes."""
        return (self.source.size if self.stop is None else self.stop) - self.start


@dataclass(frozen=True, slots=True)
class ScanTask:
    """How every shard of a run is counted."""

    terms: TermList
    config: CountingConfig
    column: str | None = None
    seed: int = 0
    cluster: ClusterUnit | None = None
    """The independent observations; null: documents, or lines of text that has no empty line."""

    @property
    def layout(self) -> BlockLayout:
        """The columns of its blocks of documents."""
        return BlockLayout(len(self.terms.emotions), len(self.terms.groups), len(self.terms.axes))

    def vocabulary(self) -> TermVocabulary:
        """The terms as arrays for the kernel."""
        return build_vocabulary(self.terms, self.config.rule)


def plan_shards(sources: Sequence[TextSource], way: CountingConfig) -> list[CorpusShard]:
    """The shards of a corpus, in a fixed order derived from the inputs alone."""
    shards = []
    for source in sources:
        if source.size <= SHARD_BYTES or not _can_be_cut(source, way):
            shards.append(CorpusShard(source))
        else:
            starts = range(0, source.size, SHARD_BYTES)
            shards += [CorpusShard(source, at, min(at + SHARD_BYTES, source.size)) for at in starts]
    return shards


def _can_be_cut(source: TextSource, way: CountingConfig) -> bool:
    if source.packing or source.is_url:
        return False
    if source.format == "text":
        # A document of running text may span any number of lines.
        return way.unit != "document"
    # An array, or an object over several lines, cannot be cut at line ends.
    return source.format == "jsonl" and peek(
        source, lambda file: holds_json_lines(file.read(BLOCK)), default=True
    )


@dataclass(slots=True)
class ShardProblems:
    """The problems of a file: the first hundred, and the number of further ones."""

    first: list[ReadProblem] = field(default_factory=list)
    more: int = 0

    def add(self, problem: ReadProblem) -> None:
        """Add a problem."""
        if len(self.first) < _LISTED:
            self.first.append(problem)
        else:
            self.more += 1


def count_shard(
    shard: CorpusShard, task: ScanTask, vocabulary: TermVocabulary, stop: threading.Event | None = None
) -> ShardTables:
    """The counts of a shard, with its samples and problems."""
    source, problems = shard.source, ShardProblems()
    key = derive_seed(task.seed, "sample", source.corpus, source.path)
    ending = _document_end(shard, task)
    span = _span(shard, ending or "line")
    stream = read_blocks(source, problems.add, column=task.column, span=span)
    is_cheap = source.format == "text" and not source.packing
    clock = dict.fromkeys(("reading", "counting", "waiting"), 0.0)
    pieces = prefetch_blocks(stream, depth=0 if is_cheap else 4, clock=clock)
    first = next(pieces, ByteBlock(b""))
    if ending is None:
        ending = "empty line" if has_empty_lines(first.data[:BLOCK]) else "line"
    start = span[0] if span else 0
    scanner = Scanner(
        vocabulary, task.config, is_records=source.format != "text", key=key, start=start, document_end=ending
    )
    total = 0
    for block in chain([first], pieces):
        before = time.perf_counter()
        scanner.feed(*block)
        clock["counting"] += time.perf_counter() - before
        total += len(block.data)
        if stop is not None and stop.is_set():
            raise CancelledError
    counts = scanner.finish()
    if scanner.first_bad_byte is not None:
        where = " of the unpacked text" if source.packing else ""
        reason = f"{scanner.bad_bytes:,} bytes{where} are not UTF-8; they separate words"
        if scanner.bad_bytes == 1:
            reason = f"1 byte{where} is not UTF-8; it separates words"
        problems.add(ReadProblem(source.path, scanner.first_bad_byte, reason))
    if problems.more:
        rest = f"{problems.more:,} more problems in this file"
        problems.first.append(ReadProblem(source.path, None, rest))
    single = {
        "units": counts.units,
        "words": counts.words,
        "documents": counts.documents,
        WITH_GROUP: counts.with_group,
        "bytes": total,
        "document_end": DOCUMENT_ENDS.index(ending),
        **{f"clock.{name}": int(seconds * 1e6) for name, seconds in clock.items()},
    }
    file = escape_surrogates(source.path)
    samples = [(one.cell, one.priority, one.place, file, one.text) for one in scanner.samples()]
    places, columns = np.nonzero(counts.blocks)
    blocks = {
        "block": places.astype(np.int32),
        "column": columns.astype(np.int32),
        "value": counts.blocks[places, columns],
    }
    return {
        "problems": problem_table(problems.first),
        "samples": pl.DataFrame(samples, schema=_SAMPLE_SCHEMA, orient="row"),
        "blocks": pl.DataFrame(blocks),
        "counts": pl.DataFrame(list(single.items()), schema=_COUNT_SCHEMA, orient="row"),
    }


def problem_table(problems: Iterable[ReadProblem]) -> pl.DataFrame:
    """The table ``problems``."""
    rows = [(escape_surrogates(one.file), one.byte, escape_surrogates(one.reason)) for one in problems]
    return pl.DataFrame(rows, schema=dict(PROBLEMS), orient="row")


def escape_surrogates(text: str) -> str:
    """The text with characters that UTF-8 cannot encode, as in file names, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _document_end(shard: CorpusShard, task: ScanTask) -> DocumentEnd | None:
    """What ends a document of a source; null if that depends on its first block, which is not read yet."""
    if task.cluster == "file":
        return "file"
    if shard.source.format != "text":
        return "record"
    if task.cluster == "line" and task.config.unit != "document":
        return "line"
    if task.cluster or task.config.unit == "document":
        return "empty line"
    if shard.stop is None:
        return None
    is_cut = peek(shard.source, lambda file: has_empty_lines(file.read(BLOCK)), default=False)
    return "empty line" if is_cut else "line"


def _span(shard: CorpusShard, ending: DocumentEnd) -> tuple[int, int] | None:
    """The range of a shard, moved to the starts of documents or lines."""
    if shard.stop is None:
        return None
    start, stop = shard.start, shard.stop
    find_start = find_document_start if ending == "empty line" else find_line_start
    return peek(
        shard.source, lambda file: (find_start(file, start), find_start(file, stop)), default=(start, stop)
    )


_RETRIES = 3
ShardTables: TypeAlias = Mapping[str, pl.DataFrame]
"""A table for each of `TABLES`."""


def run_local(
    shards: Sequence[CorpusShard], task: ScanTask, *, workers: int
) -> Iterator[tuple[CorpusShard, ShardTables]]:
    """Each shard with its counts, as it finishes, on this machine."""
    vocabulary, stop = task.vocabulary(), threading.Event()
    with ThreadPoolExecutor(workers, thread_name_prefix="count") as pool:
        try:
            yield from _finish_jobs(
                shards,
                lambda shard: pool.submit(count_shard, shard, task, vocabulary, stop),
                limit=2 * workers,
            )
        finally:
            # An interrupted run must not wait for the end of a shard, which may be a large archive.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def run_ray(
    shards: Sequence[CorpusShard], task: ScanTask, *, workers: int, address: str | None
) -> Iterator[tuple[CorpusShard, ShardTables]]:
    """The same on a Ray cluster, by address or started here; a shard whose worker dies is counted again."""
    with connect_cluster(address=address, cpus=workers) as ray:
        check_nodes(ray, list(dict.fromkeys(shard.source.path for shard in shards))[:100])
        remote = ray.remote(max_retries=_RETRIES)(_count_in_folder)
        shared, folder = ray.put(task), str(Path.cwd())
        limit = 2 * max(workers, int(ray.cluster_resources().get("CPU", 1)))
        yield from _finish_jobs(
            shards, lambda shard: remote.remote(shard, shared, folder).future(), limit=limit
        )


def _finish_jobs(
    shards: Iterable[CorpusShard], submit: Callable[[CorpusShard], Future[ShardTables]], *, limit: int
) -> Iterator[tuple[CorpusShard, ShardTables]]:
    """Each shard with the result of its job; few are submitted at a time, since there may be a million."""
    waiting, running = iter(shards), dict[Future[ShardTables], CorpusShard]()
    while True:
        while len(running) < limit and (shard := next(waiting, None)) is not None:
            running[submit(shard)] = shard
        if not running:
            return
        for done in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(done), done.result()


def _count_in_folder(shard: CorpusShard, task: ScanTask, folder: str) -> ShardTables:
    """The tables of a shard, counted in a Ray worker."""
    enter_folder(folder)
    return count_shard(shard, task, task.vocabulary())


class CorpusTotal:
    """The counts of a corpus so far; memory does not grow with the number of shards."""

    def __init__(self, task: ScanTask) -> None:
        self._task, width = task, task.layout.size
        self.blocks = np.zeros((block_rows(width, task.config), width), dtype=np.int64)
        self.samples = pl.DataFrame(schema=_SAMPLE_SCHEMA)
        """The lowest priorities of each cell."""
        self.values = Counter[str]()
        """Units, words, bytes and times in microseconds."""
        self.documents = Counter[str]()
        """The number of documents, by what ended them."""
        self.files = set[str]()

    def add(self, shard: CorpusShard, tables: ShardTables) -> None:
        """Add the tables of a shard; each must be added once."""
        values = dict(tables["counts"].select("name", "value").iter_rows())
        self.values.update(values)
        block, column, value = (tables["blocks"][name].to_numpy() for name in ("block", "column", "value"))
        self.blocks[block, column] += value
        drawn = pl.concat([self.samples, tables["samples"]]).sort("cell", "priority", "file", "place", "text")
        self.samples = drawn.group_by("cell", maintain_order=True).head(self._task.config.samples)
        ending, documents = DOCUMENT_ENDS[values["document_end"]], values["documents"]
        if ending == "file":
            # A file in several shards is one document.
            documents = 0 if shard.source.path in self.files else int(bool(documents))
        self.documents[ending] += documents
        self.files.add(shard.source.path)
