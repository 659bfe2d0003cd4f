"""Damage to bytes: what disks, transfers, editors and enemies do to a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

Rng = np.random.Generator
_NUMBER: Final = re.compile(rb"-?\d+(?:\.\d+)?")
_ODD: Final = (
    *(
        b"0",
        b"-1",
        b"1e999",
        b"-0.0",
        b"NaN",
        b"Infinity",
        b"9" * 400,
        b"9" * 5000,
        b"0x10",
        b"1_000",
        b"null",
    ),
    *(b"2147483648", b"18446744073709551616", b"\xd9\xa3"),
)
"""What a number may be written as."""
_TOKENS: Final = (
    *(
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\r",
        b"\n\n",
        b"\t",
        b'"',
        b"'",
        b"\\",
    ),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"=",
        b":",
        b"{}",
        b"[[",
        b"]]",
        b'"""',
        b"\\ud800",
        b"\\u0000",
        b"</page>",
    ),
    *(
        b"../",
        b"%s%n",
        b"{0}",
        b"{a:9999999999}",
        b"</script>",
        b"=1+1",
        b"\xe2\x80\xa8",
        b"\x1b[2J",
        b"\x85",
    ),
)


_OFTEN: Final = (50, 50, 300, 300, 1000, 1000, 3000, 20_000)


def mutated(data: bytes, others: Sequence[bytes], rng: Rng) -> bytes:
    """The bytes after one to four kinds of damage."""
    for _ in range(int(rng.integers(1, 5))):
        change = _CHANGES[int(rng.integers(len(_CHANGES)))]
        data = change(data, rng) if change is not _spliced else _spliced(data, others, rng)
    return data[: 1 << 21]


def _flipped(data: bytes, rng: Rng) -> bytes:
    found = bytearray(data)
    for _ in range(int(rng.integers(1, 9)) if found else 0):
        found[int(rng.integers(len(found)))] ^= 1 << int(rng.integers(8))
    return bytes(found)


def _replaced(data: bytes, rng: Rng) -> bytes:
    start, end = _span(data, rng, 16)
    return data[:start] + rng.bytes(end - start) + data[end:]


def _cut(data: bytes, rng: Rng) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def _without(data: bytes, rng: Rng) -> bytes:
    start, end = _span(data, rng, 64)
    return data[:start] + data[end:]


def _doubled(data: bytes, rng: Rng) -> bytes:
    start, end = _span(data, rng, 200)
    return data[:end] + data[start:end] * int(rng.integers(1, 4)) + data[end:]


def _spliced(data: bytes, others: Sequence[bytes], rng: Rng) -> bytes:
    other = others[int(rng.integers(len(others)))]
    return data[: int(rng.integers(len(data) + 1))] + other[int(rng.integers(len(other) + 1)) :]


def _renumbered(data: bytes, rng: Rng) -> bytes:
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    place = found[int(rng.integers(len(found)))]
    return data[: place.start()] + _ODD[int(rng.integers(len(_ODD)))] + data[place.end() :]


def _inserted(data: bytes, rng: Rng) -> bytes:
    place = int(rng.integers(len(data) + 1))
    token = _TOKENS[int(rng.integers(len(_TOKENS)))]
    return data[:place] + token + data[place:]


def _repeated(data: bytes, rng: Rng) -> bytes:
    """One token very often: nesting without end, or a line without end."""
    place = int(rng.integers(len(data) + 1))
    token = _TOKENS[int(rng.integers(len(_TOKENS)))]
    return data[:place] + token * _OFTEN[int(rng.integers(len(_OFTEN)))] + data[place:]


def _shuffled_lines(data: bytes, rng: Rng) -> bytes:
    lines = data.split(b"\n")
    return b"\n".join(lines[int(place)] for place in rng.permutation(len(lines)))


def _encoded(data: bytes, rng: Rng) -> bytes:
    text = data.decode("utf-8", "replace")
    kind = ("utf-16", "utf-16-be", "utf-32", "utf-8-sig", "utf-7", "cp1252")[int(rng.integers(6))]
    return text.encode(kind, "replace")


def _with_line_ends(data: bytes, rng: Rng) -> bytes:
    return data.replace(b"\n", (b"\r\n", b"\r", b"\n\n", b"\x0b", b"")[int(rng.integers(5))])


def _span(data: bytes, rng: Rng, longest: int) -> tuple[int, int]:
    start = int(rng.integers(len(data) + 1))
    return start, min(len(data), start + int(rng.integers(longest + 1)))


_CHANGES: Final[Sequence[Callable[..., bytes]]] = (
    *(_flipped, _flipped, _replaced, _cut, _without, _doubled, _spliced, _renumbered, _renumbered),
    *(_inserted, _inserted, _repeated, _shuffled_lines, _encoded, _with_line_ends),
)
