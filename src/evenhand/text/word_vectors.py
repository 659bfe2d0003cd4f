"""Read word vectors: the embedded ones, word2vec (binary, text), GloVe and fastText (``.vec``) files.

Every file is checked while it is read: a header that does not fit, a row of another width, a number that is
none, NaN and a file cut in the middle stop with a message that names the place. A word that occurs twice
keeps its first vector, as files are sorted by frequency; how many were left out is kept and logged.
"""

from __future__ import annotations

import gzip
import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, cast

import numpy as np
import numpy.typing as npt

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import apply_umask, asset_path, max_decompressed_size
from evenhand.text import vector_formats

_LOG = logging.getLogger(__name__)
FORMAT: Final = "evenhand-vectors-1"
_LIMIT: Final = 127
_FORMATS: Final = (
    "word2vec (.bin, .txt), GloVe (.txt), fastText (.vec), evenhand (.safetensors), or one of them as .gz"
)
_CONTRACTED: Final = frozenset(
    {"he", "she", "it", "that", "there", "here", "what", "who", "where", "how", "when", "why", "let"}
)
"""Words after which 's is a verb."""

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class WordVectors:
    """Words and their vectors, one row a word."""

    words: tuple[str, ...]
    matrix: Matrix
    source: str
    """Where they were read."""
    digest: str = ""
    """Digest of the file; empty for vectors that were never stored."""
    repeated: int = 0
    """Words left out because the file held them before."""
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
        repeated = len(words) - len(index)
        if repeated:
            _LOG.warning("%s: %d words occur again; their first vector is used", source, repeated)
            matrix = matrix[list(index.values())]
            index = {word: row for row, word in enumerate(index)}
        return cls(tuple(index), matrix, source, digest, repeated, possessives, index)

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
        return WordVectors(
            self.words, matrix, self.source, self.digest, self.repeated, self.possessives, self.index
        )


def word_form(word: str) -> str:
    """The lower-case word under which the embedded vectors keep a word: possessives lose their ending.

    >>> word_form("mayor's"), word_form("she's")
    ('mayor', "she's")
    """
    if word.endswith("'s") and word[:-2] not in _CONTRACTED:
        return word[:-2]
    return word


def read_vectors(path: Path, *, limit: int | None = None) -> WordVectors:
    """The word vectors of a file; which of the known formats it has is found by looking.

    Args:
        path: The file. ``.gz`` is unpacked on the way.
        limit: Read only this many rows from the top, the most frequent words in every published file.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}", expected=_FORMATS, fix="check the path")
    if path.suffix == ".safetensors":
        return load_vectors(path)
    try:
        with path.open("rb") as raw:
            file = (
                _GzipReader(raw, max_decompressed_size(path.stat().st_size)) if path.suffix == ".gz" else raw
            )
            words, matrix = vector_formats.read_vector_file(file, str(path), limit)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{path} cannot be unpacked: {error}", expected=_FORMATS, fix="get the file again: it is cut"
        ) from error
    return WordVectors.create(words, matrix, source=str(path), digest=file_digest(path))


class _GzipReader(gzip.GzipFile):
    """A packed file that says so where it would not end."""

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
