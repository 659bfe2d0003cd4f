"""What is damaged is reported with file and byte, the rest is counted, and the exit code says partial."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import polars as pl
import pytest
from tests import program

from evenhand.core.errors import InputError
from evenhand.corpus import readers
from evenhand.corpus.scan import scan_corpus
from evenhand.store.run import Run

HAPPY = b"She is happy.\n"


def scanned(folder: Path, **options: object) -> tuple[dict[str, tuple[int | None, str]], int]:
    """Problems by file name, and how often joy was counted."""
    run = scan_corpus(folder / "in", out=folder / "run", **options)  # type: ignore[arg-type]
    found = {Path(file).name: (byte, reason) for file, byte, reason in run.table("problems").iter_rows()}
    joy = run.table("occurrence").filter(pl.col("emotion") == "joy")["count"].item()
    return found, joy


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good.txt").write_bytes(HAPPY)
    return tmp_path / "in"


@pytest.mark.parametrize(
    ("name", "data", "problem", "joy"),
    [
        ("binary.txt", b"\x7fELF\x00\x01happy", (4, "is not text (a zero byte); not counted"), 1),
        ("wide.txt", "happy".encode("utf-16"), (0, "is UTF-16, not UTF-8; not counted"), 1),
        ("latin.txt", "happy d\xe9j\xe0".encode("latin-1"), (7, "2 bytes are not UTF-8"), 2),
        ("mixed.txt", "caf\xe9 happy\n".encode() + b"caf\xe9 happy", (15, "1 byte is not UTF-8"), 3),
        ("rows.jsonl", b'{"text": "happy"}\n{"text": ]}\n{"text": "happy"}', (18, "a line is not JSON"), 3),
        ("rows.csv", b"text\nhapp\xff\nhappy\n", (9, "is not UTF-8 here; such bytes separate words"), 2),
        ("short.csv", b"id,text\n1,happy\n2\n3,happy\n", (16, "line 3 has no such cell; not counted"), 3),
        ("other.csv", b"a,b\nhappy,happy\n", (0, "has no column such as text"), 1),
        ("table.parquet", b"happy", (0, "is not Parquet"), 1),
        ("open.csv", b'text\nhappy\n"open\nhappy\n', (11, "line 3 opens a quote that is not closed"), 3),
        ("array.json", b'["happy", {"a": 1}, "happy"]', (10, "a value has no text; not counted"), 3),
        ("cut.json", b'["happy", "happy"', (0, "the array that begins here does not end"), 3),
        ("pages.xml", b"<mediawiki><page>happy", (11, "a page does not end; not counted"), 1),
        ("not.txt.gz", b"happy", (None, "reading failed: Not a gzipped file"), 1),
        ("not.txt.xz", b"happy", (None, "reading failed: "), 1),
        ("not.txt.bz2", b"happy", (None, "reading failed: Invalid data stream"), 1),
    ],
)  # fmt: skip
def test_each_kind_of_damage(
    inputs: Path, name: str, data: bytes, problem: tuple[int | None, str], joy: int
) -> None:
    (inputs / name).write_bytes(data)
    found, counted = scanned(inputs.parent)
    assert list(found) == [name]
    byte, reason = found[name]
    assert problem[0] is None or byte == problem[0]
    assert reason.startswith(problem[1])
    assert counted == joy


@pytest.mark.parametrize("ending", ["txt", "csv", "jsonl"])
def test_a_cut_archive_in_the_middle_of_a_folder(inputs: Path, ending: str) -> None:
    head, row = {"txt": (b"", b"%d she is happy\n"), "csv": (b"text\n", b"%d she is happy\n"),
                 "jsonl": (b"", b'{"text": "%d she is happy"}\n')}[ending]  # fmt: skip
    packed = gzip.compress(head + b"".join(row % number for number in range(100_000)))
    (inputs / f"cut.{ending}.gz").write_bytes(packed[: len(packed) // 2])
    (inputs / "last.txt").write_bytes(HAPPY)
    found, joy = scanned(inputs.parent)
    byte, reason = found[f"cut.{ending}.gz"]
    assert byte == len(packed) // 2
    assert reason.startswith("reading failed: Compressed file ended")
    assert joy > 10_000


def test_a_line_without_end_is_counted_and_a_row_without_end_is_reported(
    inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "LONGEST_RECORD", 3 << 20)
    monkeypatch.setattr(readers, "LONGEST_ROW", 3 << 20)
    (inputs / "line.txt").write_bytes(b"she is happy and " * 300_000 + b"glad")
    (inputs / "row.jsonl").write_bytes(b'{"text": "' + b"happy " * 600_000 + b'"}\n{"text": "happy"}\n')
    (inputs / "row.csv").write_bytes(b"text\nhappy\n" + b"happy " * 600_000 + b"\nhappy\n")
    found, joy = scanned(inputs.parent)
    assert found["row.jsonl"] == (0, "a line is longer than 3 MiB; not counted")
    assert found["row.csv"] == (11, "line 3 is longer than 3 MiB; not counted")
    assert "line.txt" not in found
    assert joy == 1 + 1 + 1 + 2  # good.txt, the long line as one sentence, the other rows of the tables


def test_a_flood_of_bad_lines_is_summed_up(inputs: Path) -> None:
    (inputs / "bad.jsonl").write_bytes(b"nonsense\n" * 5000 + b'{"text": "happy"}\n')
    run = scan_corpus(inputs, out=inputs.parent / "run")
    table = run.table("problems")
    assert table.height == 101
    assert table["reason"][-1] == "4,900 more problems in this file"


def test_files_that_cannot_be_opened(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (inputs / "gone.txt").symlink_to(inputs / "nothing")
    (inputs / "locked.txt").write_bytes(HAPPY)
    (inputs / "closed").mkdir()
    (inputs / "closed" / "x.txt").write_bytes(HAPPY)
    opened, listed = Path.open, os.scandir

    def refuse(name: str, path: object) -> None:
        # Modes would not stop a superuser, so that the refusal is made here.
        if Path(str(path)).name == name:
            raise PermissionError(13, "Permission denied", str(path))

    def open_(path: Path, *args: object, **options: object) -> object:
        refuse("locked.txt", path)
        return opened(path, *args, **options)  # type: ignore[call-overload]

    def list_(path: object = ".") -> object:
        refuse("closed", path)
        return listed(path)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", open_)
    monkeypatch.setattr(os, "scandir", list_)
    found, joy = scanned(inputs.parent)
    assert found == {
        "closed": (None, "cannot be listed: Permission denied; not counted"),
        "gone.txt": (None, "cannot be opened: No such file or directory; not counted"),
        "locked.txt": (None, "cannot be opened: Permission denied; not counted"),
    }
    assert joy == 1


def test_term_files(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("The boss is happy")
    terms = {"joy": ["happy", "Happy"], "male": ["he", "boss"], "female": ["she", "boss"], "nb": []}
    (tmp_path / "terms.json").write_text(json.dumps(terms))
    done = program.run("corpus", "text.txt", "--terms", "terms.json", "--out", "run", cwd=tmp_path)
    assert done.returncode == 3
    said = " ".join(done.stderr.split())
    assert "terms.json, byte 18: 'Happy' is in 'joy' twice; it is counted once" in said
    assert "'boss' is in 'male' and in 'female'; it is counted in both" in said
    assert "the list 'nb' has no terms; it is not counted" in said
    table = Run.open(tmp_path / "run").table("cooccurrence")
    both = table.filter((pl.col("emotion") == "joy") & (pl.col("group") != "(none)"))
    assert both["count"].to_list() == [1, 1]


@pytest.mark.parametrize("level", [0, 1, 2, -1])
def test_levels_are_between_0_and_1(inputs: Path, level: float) -> None:
    with pytest.raises(InputError, match="--level"):
        scanned(inputs.parent, level=level)


def test_an_open_quote_is_partial_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('id,text\n1,"She is happy\n2,He is happy\n3,They are happy\n')
    done = program.run("corpus", "rows.csv", "--out", "run", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "rows.csv, byte 8: line 2 opens a quote that is not closed" in " ".join(done.stderr.split())
    occurrence = Run.open(tmp_path / "run").table("occurrence")
    assert occurrence.filter(pl.col("emotion") == "joy")["count"].item() == 3
