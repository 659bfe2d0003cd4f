"""Terms as arrays for the kernel: a hash table of first words that points to the rest of longer terms."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.corpus.term_lists import TermList, split_term
from evenhand.corpus.tokenisation import GAP_BYTES, GAPS, WordRule, letter_tables, split_words

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

DENSE_BITS = 63
"""Maximum categories for which a unit's set is one number; with more, they are recorded one by one."""
FILTER_FACTOR = 0x9E3779B97F4A7C15
SLOT_FACTOR = 0xC2B2AE3D27D4EB4F
FILTER_BITS = 17
"""A filter of 16 KiB: half that size would pass a quarter more English words, among them `with`."""
_BLANK = 0x20


HEAD, TAIL, LENGTH, PLACE, SINGLE, BITS, LONGER, SECOND = range(8)
"""The columns of `TermVocabulary.entries`.

The first eight bytes of the word (padded with zeros), its last eight if it is longer (else 0), its length,
where it begins in `spelling`, one plus the number of the term that is this word alone (else 0), that term's
categories as bits, the range of longer terms that begin with it (first, and end in the upper half), and the
first letters of their second words, a bit for each value of the lowest six bits (0 without longer terms).
"""


class TermVocabulary(NamedTuple):
    """The terms as arrays for the kernel. Categories are the emotions, then the groups."""

    filter: U64
    """A bit for each hash of a first word's first eight bytes: it rejects most words of a text."""
    slots: npt.NDArray[np.int32]
    """First words by hash: a row of `entries`, or -1."""
    entries: U64
    """A row for each first word, one cache line; its columns are described above."""
    longer: I64
    """A row for each longer term: its number, and the start and end in `spelling` of its other words, each
    followed by a zero byte."""
    spelling: Bytes
    term_bits: U64
    categories: I64
    """Categories of term t are `categories[first_category[t]:first_category[t + 1]]`."""
    first_category: I64
    axis: I64
    """The axis of each category, -1 for emotions."""
    is_word: Bytes
    folded: npt.NDArray[np.int32]
    gaps: npt.NDArray[np.int32]
    sizes: I64
    """Emotions, groups, axes, longest first word in bytes; bytes a term may extend beyond its first word."""


def build_vocabulary(terms: TermList, rule: WordRule) -> TermVocabulary:
    """The terms as arrays."""
    owners = _owners(terms, rule)
    spellings = _spellings(owners)
    heads: dict[bytes, list[tuple[int, tuple[bytes, ...]]]] = {}
    for parts, term in spellings.items():
        heads.setdefault(parts[0], []).append((term, parts[1:]))
    masks = [sum(1 << category for category in part if category < 64) for part in owners.values()]
    spelling, rows, longer = bytearray(), list[list[int]](), list[tuple[int, int, int]]()
    for word, members in heads.items():
        place, first, single, bits, second = len(spelling), len(longer), 0, 0, 0
        spelling += word
        for term, rest in members:
            if rest:
                begin = len(spelling)
                spelling += b"".join(part + b"\0" for part in rest)
                longer.append((term, begin, len(spelling)))
                second |= 1 << (rest[0][0] & 63)
            else:
                single, bits = term + 1, masks[term]
        head, tail = word[:8], word[-8:] if len(word) > 8 else b""
        ends = (int.from_bytes(head, "little"), int.from_bytes(tail, "little"))
        rows.append([*ends, len(word), place, single, bits, first | len(longer) << 32, second])
    entries = np.array(rows, dtype=np.uint64).reshape(-1, 8)
    axes = list(terms.axes)
    is_word, folded = letter_tables()
    longest = max((sum(map(len, parts)) + GAP_BYTES * len(parts) for parts in spellings), default=0)
    head_size = max(map(len, heads), default=0)
    return TermVocabulary(
        filter=_filter(entries),
        slots=_slots(entries),
        entries=entries,
        longer=np.array(longer, dtype=np.int64).reshape(-1, 3),
        spelling=np.frombuffer(bytes(spelling) + bytes(8), dtype=np.uint8),
        term_bits=np.array(masks, dtype=np.uint64),
        categories=_i64(category for part in owners.values() for category in part),
        first_category=_i64(accumulate(map(len, owners.values()), initial=0)),
        axis=_i64([*[-1] * len(terms.emotions), *(axes.index(group.axis) for group in terms.groups)]),
        is_word=is_word,
        folded=folded,
        gaps=np.array([ord(gap) for gap in GAPS], dtype=np.int32),
        sizes=_i64([len(terms.emotions), len(terms.groups), len(axes), head_size, longest + 2 * GAP_BYTES]),
    )


def _owners(terms: TermList, rule: WordRule) -> dict[tuple[str, ...], list[int]]:
    """The categories of each distinct term."""
    lists = [*terms.emotions.values(), *(group.terms for group in terms.groups)]
    owners: dict[tuple[str, ...], list[int]] = {}
    for category, part in enumerate(lists):
        for term in part:
            parts = split_term(term, rule)
            if parts and category not in owners.setdefault(parts, []):
                owners[parts].append(category)
    return owners


def _spellings(owners: Mapping[tuple[str, ...], object]) -> dict[tuple[bytes, ...], int]:
    """The encoded words of each term: composed and decomposed accents are the same term."""
    spellings: dict[tuple[bytes, ...], int] = {}
    for number, parts in enumerate(owners):
        for form in ("NFC", "NFD"):
            words = split_words(unicodedata.normalize(form, " ".join(parts)))
            spellings.setdefault(tuple(map(_folded_bytes, words)), number)
    return spellings


def _folded_bytes(word: str) -> bytes:
    """A folded word as the kernel compares it: UTF-8 with bit 0x20 set in every ASCII byte."""
    return bytes(byte | _BLANK if byte < 0x80 else byte for byte in word.encode())


def _filter(entries: U64) -> U64:
    table = np.zeros((1 << FILTER_BITS) // 64, dtype=np.uint64)
    places = (entries[:, HEAD] * np.uint64(FILTER_FACTOR)) >> np.uint64(64 - FILTER_BITS)
    np.bitwise_or.at(table, places >> np.uint64(6), np.uint64(1) << (places & np.uint64(63)))
    return table


def _slots(entries: U64) -> npt.NDArray[np.int32]:
    """The hash table of first words; the kernel computes the start of a search in the same way."""
    size = max(16, 1 << (4 * len(entries) - 1).bit_length())
    slots = np.full(size, -1, dtype=np.int32)
    mixed = entries[:, HEAD] ^ (entries[:, TAIL] * np.uint64(SLOT_FACTOR)) ^ entries[:, LENGTH]
    for number, start in enumerate(((mixed * np.uint64(FILTER_FACTOR)) >> np.uint64(32)).tolist()):
        slot = start & (size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = number
    return slots


def _i64(values: Iterable[int]) -> I64:
    return np.array(list(values), dtype=np.int64)
