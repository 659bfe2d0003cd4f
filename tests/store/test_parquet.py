"""Paths are names: what Polars, glob and the like would read as a pattern names one file."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import polars as pl
import pytest

import evenhand
from evenhand.store.cache import cached_table
from evenhand.store.parquet import read_parquet, scan_parquet, write_parquet

NAMES = (
    *("run?", "run*", "run[1]", "**", "[!a]", "]", "{run1,run2}", "~", "~nobody", "$HOME", "%20", "a b"),
    *("a=1", "s3:", "\\", "Zoë 東 ☂", "\u202ea"),
)
SOURCES = Path(evenhand.__file__).parent


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_only_a_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [Path(folder) for folder in ("run1", "a", name)]
    for number, folder in enumerate(folders):
        folder.mkdir(exist_ok=True)
        for file in ("x", f"{name}"):
            write_parquet(pl.DataFrame({"x": [number]}), folder / file)
    paths = [folders[-1] / file for file in ("x", f"{name}")]
    assert scan_parquet(*paths).collect().rows() == [(2,), (2,)]
    write_parquet(scan_parquet(*paths), folders[-1] / "both")
    assert read_parquet(folders[-1] / "both").rows() == [(2,), (2,)]
    assert sorted(path.name for path in folders[-1].iterdir()) == sorted(("both", "x", name))


def test_a_kept_table_is_of_its_own_folder(tmp_path: Path) -> None:
    tables = {name: pl.DataFrame({"x": [name]}) for name in ("run1", "run?")}
    for _ in range(2):
        for name, table in tables.items():
            assert cached_table(tmp_path / name, "t", [], lambda table=table: table).equals(table)


def test_only_one_module_gives_paths_to_polars() -> None:
    for file, call in _calls():
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        is_of_polars = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "pl"
        where = f"{file}:{call.lineno}"
        if name in POLARS_PATHS:
            assert file == "store/parquet.py", where
        elif is_of_polars and name.startswith("read_"):
            source = ast.unparse(call.args[0])
            assert "BytesIO(" in source or ".read_bytes()" in source, where
        elif name in ("write_csv", "write_ndjson", "write_json"):
            assert not call.args, where
        if name == "scan_parquet":
            assert "glob=False" in ast.unparse(call), where


def test_patterns_and_home_folders_are_read_in_one_place_each() -> None:
    """The method ``glob`` of a folder is another matter: the folder itself is a name there."""
    for file, call in _calls():
        words = ast.unparse(call.func)
        if words.startswith(("glob.", "fsspec.")) and words != "glob.escape":
            assert file == "store/text_sources.py", f"{file}:{call.lineno}"
        if words.endswith("expanduser"):
            assert file == "core/files.py", f"{file}:{call.lineno}"


POLARS_PATHS = {
    *(f"{verb}_{kind}" for verb in ("scan", "sink") for kind in ("parquet", "csv", "ndjson", "ipc", "delta")),
    *("write_parquet", "read_parquet_schema"),
}
"""What of Polars takes a path and may read it as a pattern."""


@cache
def _calls() -> list[tuple[str, ast.Call]]:
    """Every call in our sources, with its file."""
    return [
        (path.relative_to(SOURCES).as_posix(), node)
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]
