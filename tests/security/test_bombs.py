"""Small files that stand for a lot: refused or read in steps, never unpacked whole."""

from __future__ import annotations

import gzip
import lzma
import resource
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from evenhand.core.errors import InputError
from evenhand.corpus.readers import read_blocks
from evenhand.store import table_files
from evenhand.store.table_files import read_table
from evenhand.store.text_sources import ReadProblem, find_sources
from evenhand.text.lexicons import NORMS, read_lexicon
from evenhand.text.word_vectors import read_vectors

SIZE = 48 << 20
"""What the bombs here unpack to."""


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a quarter of a gibibyte were a mebibyte, so that the bombs can be small too."""
    for module in (
        "evenhand.store.table_files",
        "evenhand.text.lexicons",
        "evenhand.text.word_vectors",
        "evenhand.corpus.readers",
    ):
        monkeypatch.setattr(f"{module}.max_decompressed_size", lambda size: 1 << 20)


def _bomb(pack: Callable[[bytes], bytes], head: bytes, body: bytes) -> bytes:
    """Packed members one after the other; the later ones are the same, so that making them is quick."""
    part = pack(body * ((4 << 20) // len(body)))
    return pack(head) + part * (SIZE // (4 << 20))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@pytest.mark.parametrize(
    ("name", "head", "body"),
    [
        ("t.jsonl.gz", b'{"text": "', b"a" * 64),
        ("t.csv.gz", b"text\n", b"a" * 63 + b"\n"),
        ("t.tsv.gz", b"text\n", b"\n" * 64),
    ],
)
def test_a_table(tmp_path: Path, name: str, head: bytes, body: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(_bomb(gzip.compress, head, body))
    before = _peak()
    with pytest.raises(InputError, match=r"t\.\w+\.gz unpacks to more than \d+ MiB"):
        read_table(path)
    assert _peak() - before < SIZE >> 20


@pytest.mark.parametrize("body", [b"word 1 2\n" * 7, b"1" * 64])
def test_word_vectors(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "v.txt.gz"
    path.write_bytes(_bomb(gzip.compress, b"9999999 2\n", body))
    with pytest.raises(InputError, match=r"unpacks to more than|a line is longer than 1 MiB"):
        read_vectors(path)


def test_a_lexicon(tmp_path: Path) -> None:
    path = tmp_path / "norms.tsv.xz"
    path.write_bytes(_bomb(lzma.compress, b"word\t" + "\t".join(NORMS).encode(), b"a" * 64))
    with pytest.raises(InputError, match=r"it unpacks to more than \d+ MiB"):
        read_lexicon(path)


def test_a_table_that_is_packed_once_more(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet.gz"
    path.write_bytes(_bomb(gzip.compress, b"PAR1", b"\0" * 64))
    problems: list[ReadProblem] = []
    (source,), _ = find_sources([path])
    assert list(read_blocks(source, problems.append)) == []
    assert "it unpacks to more than" in problems[0].reason


def test_running_text_is_read_in_steps(tmp_path: Path) -> None:
    path = tmp_path / "c.txt.xz"
    path.write_bytes(_bomb(lzma.compress, b"", b"a" * 64))
    (source,), _ = find_sources([path])
    before = _peak()
    assert sum(len(block.data) for block in read_blocks(source, lambda problem: None)) == SIZE
    assert _peak() - before < SIZE >> 20


def test_a_row_that_comes_a_billion_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "_MOST_ROWS", 1000)
    path = tmp_path / "t.parquet"
    pl.DataFrame({"text": pl.repeat("a", 1001, eager=True)}).write_parquet(path)
    with pytest.raises(
        InputError, match=r"holds 1,001 rows, too much to read into memory\. Expected: at most 1,000 rows"
    ):
        read_table(path)


def test_a_long_text_that_comes_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "_LARGEST", 4 << 20)
    path = tmp_path / "t.parquet"
    pl.DataFrame({"text": pl.repeat("a" * 10_000, 1000, eager=True)}).write_parquet(path)
    with pytest.raises(InputError, match=r"holds 9 MiB of text"):
        read_table(path)
