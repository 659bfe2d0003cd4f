"""Compiled code is thrown away when any of the files it was made from has changed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import evenhand.corpus
from evenhand.corpus import scanner

FOLDER = Path(evenhand.corpus.__file__).parent


def test_every_module_behind_the_kernel_is_watched() -> None:
    """All modules that the kernel imports, and those they import, are among the sources."""
    found, waiting = set(), ["scan_kernel"]
    while waiting:
        name = waiting.pop()
        if name in found or name == "term_lists":  # read by Python alone, when the arrays are made
            continue
        found.add(name)
        for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("evenhand.corpus."):
                waiting.append(str(node.module).rpartition(".")[2])
    assert found == set(scanner.KERNEL_SOURCES)


def test_code_of_other_sources_is_removed(tmp_path: Path) -> None:
    for name in ("scan_kernel.scan-80.py311.nbi", "letters.find-1.py311.1.nbc", "vader.score-3.py311.nbi"):
        (tmp_path / name).write_bytes(b"")
    scanner.remove_other_code(tmp_path, "one")
    assert {file.name for file in tmp_path.iterdir()} == {"vader.score-3.py311.nbi", "evenhand-corpus.stamp"}
    (tmp_path / "scan_kernel.scan-80.py311.nbi").write_bytes(b"")
    scanner.remove_other_code(tmp_path, "one")
    assert (tmp_path / "scan_kernel.scan-80.py311.nbi").exists()
    scanner.remove_other_code(tmp_path, "two")
    assert not (tmp_path / "scan_kernel.scan-80.py311.nbi").exists()


def test_an_edit_to_any_source_is_another_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in scanner.KERNEL_SOURCES:
        (tmp_path / f"{name}.py").write_text("x = 1\n")
    versions: list[str] = []
    monkeypatch.setattr(scanner.scan_kernel, "__file__", str(tmp_path / "scan_kernel.py"))
    monkeypatch.setattr(scanner, "remove_other_code", lambda _, version: versions.append(version))
    for text in ("x = 1\n", "x = 2\n"):
        (tmp_path / "tokenisation.py").write_text(text)
        scanner.remove_stale_code.__wrapped__()
    assert len(set(versions)) == 2
