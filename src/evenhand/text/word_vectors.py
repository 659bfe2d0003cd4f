"""Read word vectors: the embedded ones, word2vec (binary, text), GloVe and fastText (``.vec``) files.

Every file is checked while it is read: a header that does not fit, a row of another width, a number that is
none, NaN and a file cut in the middle stop with a message that names the place. A word that occurs twice
keeps its first vector, as files are sorted by frequency; how many were left out is logged.
"""

from __future__ import annotations

import gzip
import logging
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, cast

import numpy as np
import numpy.typing as npt

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import apply_umask, asset_path, max_decompressed_size

_LOG = logging.getLogger(__name__)
FORMAT: Final = "evenhand-vectors-1"
_LIMIT: Final = 127
_CHUNK: Final = 1 << 20
"""Bytes read at a time, and of the longest line."""
_WIDEST: Final = 10_000
_LONGEST_WORD: Final = 4096
_FORMATS: Final = (
    "word2vec (.bin, .txt), GloVe (.txt), fastText (.vec), evenhand (.safetensors), or one of them as .gz"
)
_CONTRACTED: Final = frozenset(
    {"he", "she", "it", "that", "there", "here", "what", "who", "where", "how", "when", "why", "let"}
)
"""Words after which 's is a verb."""

Matrix = npt.NDArray[np.float32]
_Stream = BinaryIO | gzip.GzipFile


@dataclass(frozen=True, slots=True, eq=False)
class WordVectors:
    """Words and their vectors, one row a word."""

    words: tuple[str, ...]
    matrix: Matrix
    source: str
    """Where they were read."""
    digest: str = ""
    """Digest of the file; empty for vectors that were never stored."""
    possessives: bool = False
    """True where the vector of "mayor" stands for "mayor's" too."""
    index: dict[str, int] = field(default_factory=dict, repr=False)
    """Word to row."""

    @classmethod
    def create(
        cls, words: Sequence[str], matrix: Matrix, *, source: str, digest: str = "", possessives: bool = False
    ) -> WordVectors:
        """Vectors of the words; the first of two equal words counts."""
        index: dict[str, int] = {}
        for row, word in enumerate(words):
            index.setdefault(word, row)
        if repeated := len(words) - len(index):
            _LOG.warning("%s: %d words occur again; their first vector is used", source, repeated)
            matrix = matrix[list(index.values())]
            index = {word: row for row, word in enumerate(index)}
        return cls(tuple(index), matrix, source, digest, possessives, index)

    def find(self, word: str) -> int:
        """The row of a word, or -1 where it has none."""
        row = self.index.get(word, -1)
        return self.index.get(word_form(word), -1) if row < 0 and self.possessives else row

    def vector(self, word: str) -> Matrix:
        """The vector of a word that is known to be there."""
        return cast(Matrix, self.matrix[self.index[word]])

    def normalise(self) -> WordVectors:
        """The same vectors scaled to length 1; zero vectors stay."""
        return self.with_matrix(unit_rows(self.matrix))

    def with_matrix(self, matrix: Matrix) -> WordVectors:
        """The same words with other vectors."""
        return replace(self, matrix=matrix)


def word_form(word: str) -> str:
    """The lower-case word under which the embedded vectors keep a word: possessives lose their ending.

    >>> word_form("mayor's"), word_form("she's")
    ('mayor', "she's")
    """
    if word.endswith("'s") and word[:-2] not in _CONTRACTED:
        return word[:-2]
    return word


def read_vectors(path: Path) -> WordVectors:
    """The word vectors of a file, which may be packed (``.gz``); its content decides which format it has."""
    if not path.is_file():
        raise InputError(f"there is no file {path}", expected=_FORMATS, fix="check the path")
    if path.suffix == ".safetensors":
        return load_vectors(path)
    try:
        with path.open("rb") as raw:
            most = max_decompressed_size(path.stat().st_size)
            words, matrix = _read_rows(_GzipReader(raw, most) if path.suffix == ".gz" else raw)
    except _DamagedError as error:
        came, accepted = error.args
        raise InputError(
            f"{path} cannot be read as word vectors: {came}",
            expected=accepted,
            fix="get the file again, or correct it",
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{path} cannot be unpacked: {error}", expected=_FORMATS, fix="get the file again: it is cut"
        ) from error
    return WordVectors.create(words, matrix, source=str(path), digest=file_digest(path))


class _GzipReader(gzip.GzipFile):
    """A gzip file that fails where it unpacks to far too much."""

    def __init__(self, raw: BinaryIO, most: int) -> None:
        super().__init__(fileobj=raw)
        self._most = most

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes."""
        return self._within(super().read(size))

    def readline(self, size: int | None = -1, /) -> bytes:
        """The next line."""
        return self._within(super().readline(size))

    def _within(self, data: bytes) -> bytes:
        if self.tell() > self._most:
            raise OSError(f"it unpacks to more than {self._most >> 20:,} MiB")
        return data


class _DamagedError(Exception):
    """What a file holds, and what it should."""


_Header = tuple[int, int]
"""The numbers of words and of columns that a first line declares."""


def _read_rows(file: _Stream) -> tuple[list[str], Matrix]:
    """The words and vectors of an open file: text (GloVe, fastText, word2vec) or word2vec's binary rows."""
    first = file.readline(_CHUNK)
    header = _read_header(first)
    is_binary = header is not None and _is_binary(file)
    file.seek(len(first) if header else 0)
    words, matrix = _read_binary(file, header) if header and is_binary else _read_text(file, header)
    if header and len(words) != header[0]:
        is_cut = len(words) < header[0]
        came = f"the file ends after {len(words)}" if is_cut else f"{len(words)} or more follow"
        accepted = "a whole file" if is_cut else "a header that fits"
        raise _DamagedError(f"the header says {header[0]} words, {came}", accepted)
    broken = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(broken):
        where = f"the first that of {words[broken[0]]!r} (row {broken[0] + 1})"
        raise _DamagedError(f"{len(broken)} vectors hold NaN or infinity, {where}", "finite numbers")
    return words, matrix


def _read_header(line: bytes) -> _Header | None:
    """What a first line of two whole numbers says; None where the first line is a row already (GloVe)."""
    fields = line.split()
    if not fields:
        accepted = "a header of two whole numbers, or a word and its numbers"
        raise _DamagedError("the first line is empty", accepted)
    if len(fields) > 2:
        return None
    try:
        rows, width = (int(field) for field in fields)
    except ValueError:
        accepted = "two whole numbers: how many words, how many columns"
        raise _DamagedError(f"the header is {_quote(line)}", accepted) from None
    if rows < 1 or not 1 <= width <= _WIDEST:
        accepted = "at least one word, 1 to 10,000 columns"
        raise _DamagedError(f"the header says {rows} words of {width} columns", accepted)
    return rows, width


def _is_binary(file: _Stream) -> bool:
    """Whether the rows are binary: floats are soon no UTF-8 text, or hold control characters."""
    sample = file.read(4096)
    # In the whole sample: a file of one word has a single space, and its numbers come after it.
    if any(byte < 9 for byte in sample):
        return True
    cut = sample.rfind(b" ")
    try:
        sample[: cut if cut > 0 else None].decode()
    except UnicodeDecodeError:
        return True
    return False


def _read_binary(file: _Stream, header: _Header) -> tuple[list[str], Matrix]:
    rows, width = header
    stride = 4 * width
    words: list[str] = []
    # Grown as rows arrive, so that a wrong header cannot ask for more memory than the file has.
    blocks: list[bytes] = []
    buffer, place = b"", 0
    while len(words) < rows:
        space = buffer.find(b" ", place, place + _LONGEST_WORD)
        if space < 0 and len(buffer) - place >= _LONGEST_WORD:
            raise _DamagedError(f"word {len(words) + 1} does not end", "a space after each word")
        if space < 0 or space + 1 + stride > len(buffer):
            if not (more := file.read(_CHUNK)):
                break
            buffer, place = buffer[place:] + more, 0
            continue
        # A few published files hold words cut inside a character: kept, so that the rows still count up.
        words.append(buffer[place:space].lstrip(b"\n").decode("utf-8", "replace"))
        blocks.append(buffer[space + 1 : space + 1 + stride])
        place = space + 1 + stride
    else:
        if (buffer[place:] + file.read(_CHUNK)).strip():
            came = f"the header says {rows} words of {width} columns, more follows"
            raise _DamagedError(came, "a header that fits")
    matrix = np.frombuffer(b"".join(blocks), dtype="<f4").reshape(len(words), width)
    return words, matrix.astype(np.float32)


# A number too large for the type becomes infinity, which is refused by name later.
@np.errstate(over="ignore")
def _read_text(file: _Stream, header: _Header | None) -> tuple[list[str], Matrix]:
    words: list[str] = []
    blocks: list[Matrix] = []
    width = header[1] if header else None
    for number, line in enumerate(_read_lines(file), start=2 if header else 1):
        width = len(line.split()) - 1 if width is None else width
        # From the right: some published words hold spaces.
        word, *numbers = line.rsplit(b" ", width)
        if len(numbers) != width:
            accepted = f"a word and {width} numbers in every line"
            raise _DamagedError(f"line {number} has {len(numbers)} numbers", accepted)
        try:
            blocks.append(np.array(numbers, dtype=np.float32))
        except ValueError:
            came = f"line {number} ({_quote(line)}) has a field that is no number"
            raise _DamagedError(came, "plain numbers") from None
        words.append(word.decode("utf-8", "replace"))
    if not words:
        raise _DamagedError("no row follows the header", "one line a word")
    return words, np.stack(blocks)


def _read_lines(file: _Stream) -> Iterator[bytes]:
    while line := file.readline(_CHUNK):
        if len(line) == _CHUNK and not line.endswith(b"\n"):
            raise _DamagedError(f"a line is longer than {_CHUNK >> 20} MiB", "one line a word")
        if line.strip():
            yield line.rstrip(b"\r\n ")


def _quote(line: bytes) -> str:
    return repr(line[:60].decode("utf-8", "replace").strip())


@cache
def load_embedded_vectors() -> WordVectors:
    """The embedded word vectors as trained: lower-case words, 100 columns."""
    return load_vectors(asset_path("embeddings", "vectors.safetensors"))


def save_vectors(words: Sequence[str], matrix: Matrix, path: Path) -> None:
    """Write vectors as int8 with one scale a row, and the words beside them, in one safetensors file."""
    from safetensors.numpy import save_file

    peak = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), 1e-6)
    scale = (peak / _LIMIT).astype(np.float16)
    values = np.clip(np.rint(matrix / scale.astype(np.float32)), -_LIMIT, _LIMIT).astype(np.int8)
    letters = np.frombuffer("\n".join(words).encode(), dtype=np.uint8)
    save_file({"vectors": values, "scale": scale, "words": letters}, path, metadata={"format": FORMAT})
    apply_umask(path)


def load_vectors(path: Path) -> WordVectors:
    """The vectors of a file that :func:`save_vectors` wrote."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
        words = tensors["words"].tobytes().decode().split("\n")
        values, scale = tensors["vectors"], tensors["scale"]
        # Checked before they are multiplied: a column times a row would make a matrix of any size.
        if values.ndim != 2 or scale.shape != (len(values), 1) or len(words) != len(values):
            raise ValueError(f"{len(words)} words, vectors of {values.shape}, scales of {scale.shape}")
        matrix = values.astype(np.float32) * scale.astype(np.float32)
        if not np.isfinite(matrix).all():
            raise ValueError("vectors hold NaN or infinity")
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} holds no word vectors of ours: {error}", expected=_FORMATS, fix="export it again"
        ) from error
    return WordVectors.create(words, matrix, source=str(path), digest=file_digest(path), possessives=True)


def unit_rows(matrix: Matrix) -> Matrix:
    """The rows scaled to length 1; zero rows stay zero."""
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    return cast(Matrix, matrix / np.where(length > 0, length, 1).astype(np.float32))
