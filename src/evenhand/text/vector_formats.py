"""The layouts word vectors are published in: rows of text (GloVe, fastText, word2vec), word2vec's binary."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final, NamedTuple, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError

_CHUNK: Final = 1 << 20
_WIDEST: Final = 10_000
_LONGEST_WORD: Final = 4096
_LONGEST_LINE: Final = 1 << 20

Matrix = npt.NDArray[np.float32]


class ByteStream(Protocol):
    """A file opened for reading bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes."""
        ...

    def readline(self, size: int = -1, /) -> bytes:
        """The next line, its end included."""
        ...

    def seek(self, offset: int, /) -> int:
        """Go to a place."""
        ...


class _Header(NamedTuple):
    rows: int
    width: int


def read_vector_file(file: ByteStream, name: str, limit: int | None) -> tuple[list[str], Matrix]:
    """The words and vectors of an open file; ``name`` is used in messages."""
    first = file.readline(_CHUNK)
    header = _header(first, name)
    if header and _is_binary(file):
        file.seek(len(first))
        words, matrix = _read_binary(file, header, name, limit)
    else:
        file.seek(len(first) if header else 0)
        words, matrix = _read_text(file, header, name, limit)
    _check_numbers(words, matrix, name)
    return words, matrix


def _header(line: bytes, name: str) -> _Header | None:
    """What a first line of two whole numbers says; None where the first line is a row already (GloVe)."""
    fields = line.split()
    if not fields:
        _raise_damaged(
            name, "the first line is empty", "a header of two whole numbers, or a word and its numbers"
        )
    if len(fields) > 2:
        return None
    try:
        rows, width = (int(field) for field in fields)
    except ValueError:
        _raise_damaged(
            name, f"the header is {_format_line(line)}", "two whole numbers: how many words, how many columns"
        )
    if rows < 1 or not 1 <= width <= _WIDEST:
        _raise_damaged(
            name, f"the header says {rows} words of {width} columns", "at least one word, 1 to 10,000 columns"
        )
    return _Header(rows, width)


def _is_binary(file: ByteStream) -> bool:
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


def _read_binary(file: ByteStream, header: _Header, name: str, limit: int | None) -> tuple[list[str], Matrix]:
    rows = min(header.rows, limit or header.rows)
    stride = 4 * header.width
    words: list[str] = []
    # Grown as rows arrive, so that a wrong header cannot ask for more memory than the file has.
    blocks: list[bytes] = []
    buffer, place = b"", 0
    while len(words) < rows:
        space = buffer.find(b" ", place, place + _LONGEST_WORD)
        if space < 0 and len(buffer) - place >= _LONGEST_WORD:
            _raise_damaged(name, f"word {len(words) + 1} does not end", "a space after each word")
        if space < 0 or space + 1 + stride > len(buffer):
            more = file.read(_CHUNK)
            if not more:
                _raise_damaged(
                    name,
                    f"the header says {header.rows} words, the file ends after {len(words)}",
                    "a whole file",
                )
            buffer, place = buffer[place:] + more, 0
            continue
        words.append(_decode_word(buffer[place:space].lstrip(b"\n")))
        blocks.append(buffer[space + 1 : space + 1 + stride])
        place = space + 1 + stride
    if rows == header.rows and (buffer[place:] + file.read(_CHUNK)).strip():
        _raise_damaged(
            name,
            f"the header says {header.rows} words of {header.width} columns, more follows",
            "a header that fits",
        )
    matrix = np.frombuffer(b"".join(blocks), dtype="<f4").reshape(len(words), header.width)
    return words, matrix.astype(np.float32)


def _read_text(
    file: ByteStream, header: _Header | None, name: str, limit: int | None
) -> tuple[list[str], Matrix]:
    lines = _lines(file, name)
    first = next(lines, None)
    if first is None:
        _raise_damaged(name, "no row follows the header", "one line a word")
    width = header.width if header else len(first.split()) - 1
    rows = chain([first], lines)
    words, blocks = _parse_rows(islice(rows, limit), width, name, first_line=2 if header else 1)
    if header and len(words) < min(header.rows, limit or header.rows):
        _raise_damaged(
            name, f"the header says {header.rows} words, the file ends after {len(words)}", "a whole file"
        )
    if header and len(words) > header.rows:
        _raise_damaged(
            name, f"the header says {header.rows} words, {len(words)} or more follow", "a header that fits"
        )
    return words, np.concatenate(blocks).reshape(len(words), width)


def _lines(file: ByteStream, name: str) -> Iterator[bytes]:
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
            _raise_damaged(name, f"a line is longer than {_LONGEST_LINE >> 20} MiB", "one line a word")
        if line.strip():
            yield line.rstrip(b"\r\n ")


# A number too large for the type becomes infinity, which is refused by name later.
@np.errstate(over="ignore")
def _parse_rows(
    lines: Iterator[bytes], width: int, name: str, *, first_line: int
) -> tuple[list[str], list[Matrix]]:
    words: list[str] = []
    blocks: list[Matrix] = []
    for number, line in enumerate(lines, start=first_line):
        # From the right: some published words hold spaces.
        fields = line.rsplit(b" ", width)
        if len(fields) != width + 1:
            _raise_damaged(
                name,
                f"line {number} has {len(fields) - 1} numbers",
                f"a word and {width} numbers in every line",
            )
        try:
            blocks.append(np.array(fields[1:], dtype=np.float32))
        except ValueError:
            _raise_damaged(
                name, f"line {number} ({_format_line(line)}) has a field that is no number", "plain numbers"
            )
        words.append(_decode_word(fields[0]))
    return words, blocks


def _check_numbers(words: list[str], matrix: Matrix, name: str) -> None:
    broken = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(broken):
        row = int(broken[0])
        _raise_damaged(
            name,
            f"{len(broken)} vectors hold NaN or infinity, the first that of {words[row]!r} (row {row + 1})",
            "finite numbers",
        )


def _decode_word(word: bytes) -> str:
    # A few published files hold words cut inside a character: kept, so that the rows still count up.
    return word.decode("utf-8", "replace")


def _format_line(line: bytes) -> str:
    return repr(line[:60].decode("utf-8", "replace").strip())


def _raise_damaged(name: str, came: str, accepted: str) -> NoReturn:
    raise InputError(
        f"{name} cannot be read as word vectors: {came}",
        expected=accepted,
        fix="get the file again, or mend it",
    )
