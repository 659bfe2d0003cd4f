"""Feeds the kernel: cuts a stream of bytes without losing words or terms, and keeps the sampled texts."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from evenhand.core.digests import digest
from evenhand.corpus import letters, scan_kernel
from evenhand.corpus.term_matcher import I64, U64, Bytes, TermVocabulary
from evenhand.corpus.tokenisation import PAPER_DELETED, PAPER_STOP, RECORD_END, CountingUnit, WordRule
from evenhand.store.atomic_writes import write_text

_NO_PRIORITY = (1 << 64) - 1
_SAMPLE_BYTES = 600
_NEWLINE = 0x0A
BLOCKS = 1024
"""Blocks of documents: the relative error of an interval's width is about 2 % (1 / sqrt(2 x 1023))."""
_BLOCK_CELLS, _FEWEST_BLOCKS = 1 << 21, 32
"""Maximum cells of all blocks (16 MiB): with thousands of groups there are fewer blocks."""

_IS_KEPT = ~np.isin(np.arange(256), list(PAPER_DELETED))
KERNEL_SOURCES: Final = ("letters", "scan_kernel", "term_matcher", "tokenisation")
"""Every module whose code or constants end up in the compiled kernel."""
_STAMP: Final = "evenhand-corpus.stamp"

DocumentEnd = Literal["record", "empty line", "line", "file"]
"""What ends a document: a record of a table or dump; in running text an empty line, a line or the file."""
UNITS: tuple[CountingUnit, ...] = get_args(CountingUnit)
DOCUMENT_ENDS: tuple[DocumentEnd, ...] = get_args(DocumentEnd)
"""The kernel and the tables of shards refer to both by index."""


@dataclass(frozen=True, slots=True)
class CountingConfig:
    """How bytes are counted."""

    unit: CountingUnit = "sentence"
    rule: WordRule = "words"
    is_distinct: bool = False
    """Count distinct target terms in addition to flags."""
    samples: int = 0
    """Texts kept for each cell."""
    blocks: int = BLOCKS
    """Blocks of documents, a power of two."""


class SampledText(NamedTuple):
    """A unit counted in a cell; the lowest priorities of all shards form the sample."""

    cell: int
    priority: int
    place: int
    """Where its text begins in the file, or the place of the record that holds it."""
    text: str


class UnitCounts(NamedTuple):
    """Units and words in total; occurrences of emotions and groups by block of documents."""

    units: int
    words: int
    documents: int
    """The documents that the units belong to."""
    with_group: int
    """Units that name a group."""
    blocks: I64
    """`BlockLayout` names the columns; their sums are the counts of the stream."""


class BlockLayout(NamedTuple):
    """The columns of a block: units, emotions, groups, pairs, axes, emotions by axis, distinct terms."""

    emotions: int
    groups: int
    axes: int

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each field of `BlockCounts`, in the order of the columns."""
        emotions, groups, axes = self
        pairs = (emotions, groups)
        return ((), (emotions,), (groups,), pairs, (axes,), (emotions, axes), pairs)

    @property
    def size(self) -> int:
        """The number of columns."""
        return sum(map(math.prod, self.shapes))

    def split(self, blocks: I64) -> BlockCounts:
        """Split blocks, or a row that sums some of them, by what the columns count."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = zip(self.shapes, np.split(blocks, ends[:-1], axis=-1), strict=True)
        return BlockCounts(*(part.reshape((*blocks.shape[:-1], *shape)) for shape, part in parts))


class BlockCounts(NamedTuple):
    """The counts of each block of documents, in the first dimension; a unit counts once in each field."""

    units: I64
    emotions: I64
    """Units with each emotion."""
    groups: I64
    """Units with each group."""
    flags: I64
    """Units with the emotion and the group."""
    axes: I64
    """Units that name a group of the axis."""
    emotion_axes: I64
    """The same among units with each emotion."""
    distinct: I64
    """Distinct terms of the group in units with the emotion; zeros unless requested."""


@dataclass(frozen=True)
class _Stretch:
    """Bytes of a file from which the paper's rule deletes some."""

    start: int
    """The place of the first byte that is kept, in the text that is counted."""
    original: int
    """The place of the first byte in the file."""
    data: bytes

    @cached_property
    def kept(self) -> I64:
        """The places in the data of the bytes that are kept, and its end; only samples need them."""
        return np.append(np.flatnonzero(_IS_KEPT[np.frombuffer(self.data, dtype=np.uint8)]), len(self.data))


class Scanner:
    """Counts one stream of bytes.

    Args:
        vocabulary: The terms.
        way: How to count.
        is_records: The stream holds records that end with byte 0xFF; otherwise it is running text.
        key: Seeds the samples; one for each file.
        start: The place of the first byte in the file.
        document_end: What ends a document; by default a record, or an empty line of running text.
    """

    def __init__(
        self,
        vocabulary: TermVocabulary,
        way: CountingConfig,
        *,
        is_records: bool = False,
        key: int = 0,
        start: int = 0,
        document_end: DocumentEnd | None = None,
    ) -> None:
        remove_stale_code()
        self._vocabulary, self._config, self._is_records = vocabulary, way, is_records
        self._key = np.uint64(key & _NO_PRIORITY)
        self._tally = new_tally(vocabulary, way, start)
        ending = document_end or ("record" if is_records else "empty line")
        self._document_end = DOCUMENT_ENDS.index(ending)
        if ending == "file":
            # A file may be counted in several shards, which must use the same block.
            self._tally.state["document_block"] = key % self._tally.blocks.shape[0]
        self._texts: dict[tuple[int, int], tuple[int, str]] = {}
        self._places: Sequence[int] = ()
        self.first_bad_byte: int | None = None
        """The place of the first byte that is not UTF-8."""
        self._rest, self._pending, self._offset, self._chunk, self._is_inside = b"", b"", start, 0, False
        self._stretches = deque([_Stretch(start, start, b"")])
        """Under the paper's rule: the last bytes as read, which hold the rest."""
        self._buffer = np.empty(0, dtype=np.uint8)
        is_whole = is_records and way.unit == "document"
        self._unit = scan_kernel.RECORD if is_whole else UNITS.index(way.unit)

    def feed(self, data: bytes | memoryview, places: Sequence[int] = ()) -> None:
        """Count running text, or whole records with the places where they begin.

        The end is kept for the next call if a word or term may continue there.
        """
        self._places = places
        self._scan(self._apply_paper_rule(data), is_last=False)

    def finish(self) -> UnitCounts:
        """The counts, after the end of the stream."""
        self._scan(self._apply_paper_rule(b"", is_last=True), is_last=True)
        totals = {name: int(self._tally.state[name][0]) for name in UnitCounts._fields[:-1]}
        return UnitCounts(**totals, blocks=self._tally.blocks)

    def samples(self) -> list[SampledText]:
        """The sampled texts of the cells, lowest priority first."""
        priorities = self._tally.priority
        return sorted(
            SampledText(cell, int(priorities[cell, rank]), place, text)
            for (cell, rank), (place, text) in self._texts.items()
        )

    @property
    def bad_bytes(self) -> int:
        """The number of bytes that are not UTF-8."""
        return int(self._tally.state["bad_bytes"][0])

    def _apply_paper_rule(self, data: bytes | memoryview, *, is_last: bool = False) -> bytes | memoryview:
        """The bytes to count; under the paper's rule, a stop at the end waits for the next byte."""
        if self._config.rule == "words":
            return data
        data = self._pending + bytes(data)
        keep = 1 if data[-1:] in (b".", b"?", b"!") and not is_last else 0
        self._pending, data = data[len(data) - keep :], data[: len(data) - keep]
        if self._config.unit == "sentence":
            # Turn the stops of sentences into line ends before stops are deleted.
            data = PAPER_STOP.sub(b"\n", data)
        last = self._stretches[-1]
        stretch = _Stretch(self._offset + len(self._rest), last.original + len(last.data), data)
        self._stretches.append(stretch)
        while self._stretches[1].start <= self._offset and len(self._stretches) > 2:
            self._stretches.popleft()
        return data.translate(None, PAPER_DELETED)

    def _scan(self, data: bytes | memoryview, *, is_last: bool) -> None:
        buffer = self._fill_buffer(data)
        stop = buffer.size - scan_kernel.PADDING
        begin = self._skip_begun_word(buffer, stop)
        buffer, stop = buffer[begin:], stop - begin
        if is_last:
            buffer[stop] = _NEWLINE
        end = stop + 1 if is_last else self._cut(buffer, stop)
        matcher, way = self._vocabulary, self._config
        here = (self._offset, self._chunk)
        if end > 0:
            mode = (self._unit, self._is_records, self._document_end, way.is_distinct, self._key)
            scan_kernel.scan_bytes(buffer, end, stop, *here, matcher, self._tally, *mode)
        if self.first_bad_byte is None and self.bad_bytes:
            self.first_bad_byte = self._in_file(int(self._tally.state["first_bad"][0]) - self._offset)
        if way.samples:
            self._keep_texts(buffer)
        self._rest = buffer[end:stop].tobytes()
        self._offset, self._chunk = self._offset + end, self._chunk + 1

    def _fill_buffer(self, data: bytes | memoryview) -> Bytes:
        """The rest of earlier data, the new data, and the zeros the kernel needs after them, in one array."""
        middle, stop = len(self._rest), len(self._rest) + len(data)
        if self._buffer.size < stop + scan_kernel.PADDING:
            self._buffer = np.empty(stop + stop // 4 + scan_kernel.PADDING, dtype=np.uint8)
        buffer = self._buffer[: stop + scan_kernel.PADDING]
        buffer[:middle] = np.frombuffer(self._rest, dtype=np.uint8)
        buffer[middle:stop] = np.frombuffer(data, dtype=np.uint8)
        buffer[stop:] = 0
        return buffer

    def _skip_begun_word(self, buffer: Bytes, stop: int) -> int:
        if not self._is_inside:
            return 0
        begin = int(letters.end_of_word(buffer, stop, self._vocabulary))
        # A letter cut in two by the end of the data is not the end of the word.
        self._is_inside = begin >= stop - 4
        self._offset += begin
        return begin

    def _cut(self, buffer: Bytes, stop: int) -> int:
        """The place up to which the data can be counted now."""
        end = letters.find_after_last(buffer, stop, RECORD_END if self._is_records else _NEWLINE)
        margin = int(self._vocabulary.sizes[4])
        latest = stop - margin - 8
        if end or self._is_records or latest <= 0:
            return int(end)
        place = int(letters.place_between_words(buffer, latest, self._vocabulary))
        if place < 0 and latest > 4 * margin:
            # One word fills the buffer: count it here, and skip the rest of it.
            self._is_inside = True
            while buffer[latest] & 0xC0 == 0x80:
                latest -= 1
            return latest
        return max(place, 0)

    def _keep_texts(self, data: Bytes) -> None:
        tally = self._tally
        for cell, rank in np.argwhere(tally.sample[:, :, 0] == self._chunk).tolist():
            _, first, last = tally.sample[cell, rank].tolist()
            first = max(first, 0)
            piece = data[first : min(last + 1, first + _SAMPLE_BYTES)].tobytes()
            text = " ".join(piece.rstrip(b"\xff").decode("utf-8", "replace").split())
            begin = first + len(piece) - len(piece.lstrip())
            self._texts[cell, rank] = (self._place(data, begin), text)

    def _place(self, data: Bytes, begin: int) -> int:
        if self._places:
            # Records are never cut, so all records before this one are in the data.
            return self._places[int(np.count_nonzero(data[:begin] == RECORD_END))]
        return self._in_file(begin)

    def _in_file(self, place: int) -> int:
        place += self._offset
        if self._config.rule == "words":
            return place
        stretch = next(one for one in reversed(self._stretches) if one.start <= place)
        return stretch.original + int(stretch.kept[place - stretch.start])


_STATE = (
    "mask unit hits has_words at_line_start units words with_group bad_bytes first_bad unit_start unit_first "
    "extra documents document_key document_units document_block noted"
)
STATE = np.dtype([(name, np.int64) for name in _STATE.split()])
"""The state that the kernel carries from one stretch of bytes to the next."""


class KernelTally(NamedTuple):
    """The arrays that the kernel writes, carried from one stretch of bytes to the next."""

    state: npt.NDArray[np.void]
    """One record of `STATE`."""
    hits: I64
    """The distinct terms of the unit."""
    term_seen: I64
    category_seen: I64
    priority: U64
    """The lowest priorities of each cell: a sample independent of the order of work."""
    sample: I64
    """For each sample: chunk number, first and last byte."""
    blocks: I64
    """Counts by block of documents. `BlockLayout` names the columns."""
    noted: U64
    """Entries of the document, not yet added to its block: sets of categories, or columns."""


def new_tally(vocabulary: TermVocabulary, way: CountingConfig, start: int = 0) -> KernelTally:
    """An empty tally."""
    emotions, groups, axes = (int(size) for size in vocabulary.sizes[:3])
    pairs = emotions * (groups + 1)
    width = BlockLayout(emotions, groups, axes).size
    state = np.zeros(1, dtype=STATE)
    state["unit"], state["at_line_start"], state["unit_start"], state["document_block"] = 1, 1, start, -1
    terms = vocabulary.term_bits.size
    return KernelTally(
        state=state,
        hits=np.zeros(terms + 1, dtype=np.int64),
        term_seen=np.zeros(terms + 1, dtype=np.int64),
        category_seen=np.zeros(emotions + groups + axes, dtype=np.int64),
        priority=np.full((pairs, way.samples), _NO_PRIORITY, dtype=np.uint64),
        sample=np.full((pairs, way.samples, 3), -1, dtype=np.int64),
        blocks=np.zeros((block_rows(width, way), width), dtype=np.int64),
        noted=np.zeros(2 * scan_kernel.LONG + width + vocabulary.categories.size * emotions, dtype=np.uint64),
    )


def block_rows(width: int, way: CountingConfig) -> int:
    """The number of blocks to keep, each of that many columns; a power of two."""
    rows = way.blocks
    while rows > _FEWEST_BLOCKS and rows * width > _BLOCK_CELLS:
        rows //= 2
    return rows


def compile_kernel(vocabulary: TermVocabulary, way: CountingConfig) -> None:
    """Compile the kernel, which takes seconds, or load the cached code, which is fast."""
    scanner = Scanner(vocabulary, way)
    scanner.feed(b"a line\nand another")
    scanner.finish()


@cache
def remove_stale_code() -> None:
    """Remove code that was compiled from other sources than the current ones; checked once per process.

    numba caches compiled code next to a file and checks that file only, but the kernel is compiled from
    several: after an edit to another one, numba would still run the old code.
    """
    sources = (Path(scan_kernel.__file__).with_name(f"{name}.py") for name in KERNEL_SOURCES)
    # If the folder is not writable, it holds no cached code, or code of this very installation.
    with contextlib.suppress(OSError):
        folder = Path(scan_kernel.scan_bytes.stats.cache_path or "")
        remove_other_code(folder, digest([source.read_text(encoding="utf-8") for source in sources]))


def remove_other_code(folder: Path, version: str) -> None:
    """Remove compiled code of another version of the kernel from a folder, and stamp it with this one."""
    stamp = folder / _STAMP
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == version:
        return
    for file in folder.glob("*.nb[ic]"):
        if file.name.split(".")[0] in KERNEL_SOURCES:
            file.unlink(missing_ok=True)
    write_text(stamp, version)
