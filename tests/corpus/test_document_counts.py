"""Blocks of documents: each document's counts go into one block, the same text always into the same."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus.lists import SMALL
from tests.corpus.test_scan_kernel import BUILT, LISTS, WORDS, check, pieces, quick, text
from tests.oracles.corpus_counts import count

from evenhand.corpus.scanner import BLOCKS, BlockLayout, CountingConfig, Scanner, block_rows

MANY = 1 << 12
"""Blocks enough that few documents share one."""


def layout(terms):
    return BlockLayout(len(terms.emotions), len(terms.groups), len(terms.axes))


def blocks_of(data, kind="dense", *, size=0, way=None, **options):
    scanner = Scanner(BUILT[kind], way or CountingConfig(blocks=MANY, is_distinct=True), **options)
    for piece in pieces(data, size):
        scanner.feed(piece)
    counts = scanner.finish()
    return counts, counts.blocks


def twin_row(document, terms, unit="sentence"):
    """The row of one document, from the slow twin's counts."""
    found = count([document], terms, unit=unit)
    emotions, groups = list(terms.emotions), [(group.axis, group.name) for group in terms.groups]
    return (
        found["units",],
        *(found["emotion", emotion] for emotion in emotions),
        *(found["flag", "*", *group] for group in groups),
        *(found["flag", emotion, *group] for emotion in emotions for group in groups),
        *(found["axis", "*", axis] for axis in terms.axes),
        *(found["axis", emotion, axis] for emotion in emotions for axis in terms.axes),
        *(found["distinct", emotion, *group] for emotion in emotions for group in groups),
    )


def same_rows(blocks, documents, terms, unit="sentence"):
    """Whether the blocks hold one row for each different document, as often as it occurs."""
    times = Counter(document for document in documents if count([document], terms)["units",])
    expected = [tuple(np.array(twin_row(text, terms, unit)) * n) for text, n in times.items()]
    found = [tuple(row) for row in blocks[blocks[:, 0] > 0].tolist()]
    if len(found) < len(expected):
        # Two documents in one block, once in some hundred examples: their sum is all that can be asked.
        return np.array_equal(np.sum(expected, axis=0), np.sum(found, axis=0))
    return sorted(expected) == sorted(found)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@settings(quick, max_examples=40)
@given(texts=st.lists(text.map(lambda t: re.sub(r"\s*\n[\s]*", " ", t).strip() or "x"), max_size=6))
def test_records_and_lines_fill_blocks(kind, texts):
    # Texts that differ in the middle of a sentence alone may share a block: here they begin differently.
    texts = [f"n{number} {text}" for number, text in enumerate(texts)]
    records = b"".join(piece.encode() + b"\xff" for piece in texts)
    counts, blocks = blocks_of(records, kind, is_records=True)
    assert same_rows(blocks, texts, LISTS[kind])
    assert counts.documents == len([t for t in texts if count([t], LISTS[kind])["units",]])
    _, lines = blocks_of("\n".join(texts).encode(), kind, document_end="line")
    assert same_rows(lines, texts, LISTS[kind])
    # In running text the documents stand between empty lines, whatever blanks these hold.
    _, parts = blocks_of("\n \t\r\n".join(texts).encode(), kind)
    assert same_rows(parts, texts, LISTS[kind])


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("unit", ["sentence", "line", "document"])
@quick
@given(text=text, size=st.sampled_from([0, 64, 700]), ending=st.sampled_from(["empty line", "line", "file"]))
def test_blocks_add_up_to_the_counts(kind, unit, text, size, ending):
    way = CountingConfig(unit=unit, blocks=64, is_distinct=True)
    counts, _ = blocks_of(text.encode(), kind, size=size, way=way, document_end=ending)
    check(counts, count([text], LISTS[kind], unit=unit), LISTS[kind], distinct=True)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_order_and_copies_do_not_move_a_document(kind):
    rng = np.random.default_rng(3)
    texts = [" ".join(WORDS[i] for i in rng.integers(len(WORDS), size=30)) for _ in range(300)]
    way = CountingConfig(blocks=64)
    _, once = blocks_of("\n\n".join(texts).encode(), kind, way=way)
    _, shuffled = blocks_of("\n\n".join(rng.permutation(texts)).encode(), kind, way=way, size=4096)
    _, twice = blocks_of("\n\n".join([*texts, *texts[::-1]]).encode(), kind, way=way)
    np.testing.assert_array_equal(once, shuffled)
    np.testing.assert_array_equal(2 * once, twice)
    # 300 documents over 64 blocks: an even throw leaves 64 exp(-300 / 64) = 0.6 of them empty.
    assert (once[:, 0] > 0).sum() > 58


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_documents_longer_than_the_notes_and_many_short_ones(kind):
    long = "She is happy. " * 30_000
    short = [f"he fears {number}" for number in range(9_000)]
    data = "\n".join([long, *short, long]).encode()
    counts, blocks = blocks_of(data, kind, document_end="line", size=1 << 20)
    assert counts.documents == 9_002
    largest = blocks[blocks[:, 0].argmax()]
    assert largest[0] >= 60_000  # both copies in one block
    assert blocks[:, 0].sum() == counts.units


def test_a_file_as_one_document_keeps_its_block():
    for start in (0, 1000):
        scanner = Scanner(BUILT["dense"], CountingConfig(blocks=64), key=70, start=start, document_end="file")
        scanner.feed(b"she is happy\n\nhe is sad\n")
        blocks = scanner.finish().blocks
        assert np.flatnonzero(blocks[:, 0]).tolist() == [6]  # 70 mod 64


def test_the_number_of_blocks_follows_the_width():
    assert block_rows(layout(SMALL).size, CountingConfig()) == BLOCKS
    assert (
        block_rows(10_000, CountingConfig()) == 128
    )  # 128 x 10,000 cells are below two million, 256 x 10,000 are not
    assert block_rows(10**7, CountingConfig()) == 32
