from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from evenhand.core.errors import InputError
from evenhand.text.word_vectors import (
    WordVectors,
    load_vectors,
    read_vectors,
    save_vectors,
    unit_rows,
    word_form,
)

ROWS = {"the": (1.0, 0.0, 2.0), "café": (0.5, -1.5, 0.25), "queen": (-1.0, 3.0, 0.0)}
TEXT = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in ROWS.items())
BINARY = b"".join(word.encode() + b" " + np.array(row, "<f4").tobytes() for word, row in ROWS.items())


def write(folder: Path, content: bytes, name: str = "vectors.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def check(vectors: WordVectors) -> None:
    assert vectors.words == tuple(ROWS)
    assert vectors.matrix.tolist() == [list(row) for row in ROWS.values()]
    assert vectors.matrix.dtype == np.float32
    assert vectors.find("queen") == 2
    assert vectors.find("king") == -1
    assert len(vectors.digest) == 32


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),  # GloVe
        b"3 3\n" + TEXT.encode(),  # word2vec text, fastText
        b"3 3\n" + TEXT.replace("\n", " \r\n").encode(),  # spaces and carriage returns at line ends
        b"3 3\n" + BINARY,  # word2vec binary
        b"3 3\n" + BINARY.replace("café".encode(), "\ncafé".encode()),  # with line ends between rows
    ],
)
def test_every_layout_is_found_by_looking(tmp_path: Path, content: bytes) -> None:
    check(read_vectors(write(tmp_path, content)))


def test_a_packed_file_is_unpacked(tmp_path: Path) -> None:
    check(read_vectors(write(tmp_path, gzip.compress(b"3 3\n" + BINARY), "vectors.bin.gz")))


def test_words_with_spaces_keep_them(tmp_path: Path) -> None:
    vectors = read_vectors(write(tmp_path, b"2 2\n. . . 1 2\nnew 3 4\n"))
    assert vectors.words == (". . .", "new")


def test_the_first_of_two_equal_words_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    vectors = read_vectors(write(tmp_path, b"a 1 2\nb 3 4\na 5 6\n"))
    assert vectors.words == ("a", "b")
    assert vectors.matrix.tolist() == [[1, 2], [3, 4]]
    assert "1 words occur again; their first vector is used" in caplog.text


@pytest.mark.parametrize(
    ("content", "came", "accepted"),
    [
        (b"\n", "the first line is empty", "a header of two whole numbers, or a word and its numbers"),
        (b"three 3\n", "the header is 'three 3'", "two whole numbers: how many words, how many columns"),
        (b"0 3\n", "the header says 0 words of 3 columns", "at least one word, 1 to 10,000 columns"),
        (b"9 3\n" + TEXT.encode(), "the header says 9 words, the file ends after 3", "a whole file"),
        (b"2 3\n" + TEXT.encode(), "the header says 2 words, 3 or more follow", "a header that fits"),
        (b"9 3\n" + BINARY, "the header says 9 words, the file ends after 3", "a whole file"),
        (b"3 3\n" + BINARY[:-2], "the header says 3 words, the file ends after 2", "a whole file"),
        (b"2 3\n" + BINARY, "the header says 2 words of 3 columns, more follows", "a header that fits"),
        (b"3 3\n", "no row follows the header", "one line a word"),
        (b"a 1 2 3\nb 1 2\n", "line 2 has 2 numbers", "a word and 3 numbers in every line"),
        (b"1 2\na 1 x\n", "line 2 ('a 1 x') has a field that is no number", "plain numbers"),
        (
            b"a 1 2\nb nan 3\nc 1 inf\n",
            "2 vectors hold NaN or infinity, the first that of 'b' (row 2)",
            "finite numbers",
        ),
        (
            b"a 1 2\nb 1e39 3\n",
            "1 vectors hold NaN or infinity, the first that of 'b' (row 2)",
            "finite numbers",
        ),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, content: bytes, came: str, accepted: str) -> None:
    path = write(tmp_path, content)
    message = (
        f"{path} cannot be read as word vectors: {came}. Expected: {accepted}. "
        "Fix: get the file again, or correct it."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_vectors(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^there is no file .*none.vec. Expected: word2vec"):
        read_vectors(tmp_path / "none.vec")


def test_a_foreign_safetensors_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no word vectors of ours"):
        read_vectors(write(tmp_path, b"not a tensor", "x.safetensors"))


@given(
    npst.arrays(np.float32, (5, 8), elements=st.floats(-4, 4, width=32)).filter(
        lambda matrix: bool((np.abs(matrix).max(axis=1) > 0.01).all())
    )
)
def test_int8_loses_at_most_a_half_step(tmp_path_factory: pytest.TempPathFactory, matrix: np.ndarray) -> None:
    path = tmp_path_factory.mktemp("v") / "v.safetensors"
    save_vectors("abcde", matrix, path)
    loaded = load_vectors(path)
    assert loaded.words == tuple("abcde")
    assert loaded.possessives
    # A step is the row's peak / 127; the scale's rounding to float16 adds 1/2048 of the value at most.
    step = np.abs(matrix).max(axis=1, keepdims=True) / 127
    assert (np.abs(loaded.matrix - matrix) <= step * (0.5 + 127 / 1024)).all()


def test_possessives_are_found_by_their_stem_in_our_vectors_only() -> None:
    rows = np.eye(3, dtype=np.float32)
    words = ("mayor", "she's", "she")
    ours = WordVectors.create(words, rows, source="ours", possessives=True)
    theirs = WordVectors.create(words, rows, source="theirs")
    assert [ours.find(word) for word in ("mayor's", "she's", "he's")] == [0, 1, -1]
    assert [theirs.find(word) for word in ("mayor's", "she's", "he's")] == [-1, 1, -1]
    assert word_form("it's") == "it's"


def test_unit_rows_keep_zero_rows() -> None:
    assert unit_rows(np.array([[3, 4], [0, 0]], dtype=np.float32)).tolist() == [
        [pytest.approx(0.6), pytest.approx(0.8)],
        [0, 0],
    ]


@pytest.mark.parametrize("keep", [slice(0, 30), slice(4, None)])
def test_a_packed_file_that_is_cut_or_no_gzip_is_named(tmp_path: Path, keep: slice) -> None:
    path = write(tmp_path, gzip.compress(b"3 3\n" + BINARY)[keep], "vectors.bin.gz")
    with pytest.raises(InputError, match=r"vectors\.bin\.gz cannot be unpacked: .*get the file again"):
        read_vectors(path)
