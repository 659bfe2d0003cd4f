"""A disk that takes no more: said in three parts, nothing is half written, the same command goes on later."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.kills import Clean, clean
from tests.faults.nursery import Nursery
from tests.faults.trees import differences, leftovers

QUICK = [("annotate-agreement", 0.2), ("annotate-export", 0.5), ("build", 0.5), ("train-linear", 0.3)]
SLOW = [
    *[("audit", share) for share in (0.02, 0.1, 0.5, 0.9)],
    *[(name, share) for name in ("score", "compare", "corpus", "probe", "replicate") for share in (0.1, 0.8)],
    *[(name, 0.5) for name in ("annotate-import", "annotate-init", "export-task", "report")],
]


def _says_so(said: str) -> None:
    assert "the disk is full: " in said, said
    assert "expected" in said, said
    assert "fix" in said, said
    assert "defect" not in said, said
    assert "Traceback" not in said, said


def _written(of: Clean) -> list[int]:
    """Sizes of the files the command adds."""
    there = {path.relative_to(of.before) for path in of.before.rglob("*")}
    new = (path for path in of.after.rglob("*") if path.relative_to(of.after) not in there)
    return [
        path.stat().st_size for path in new if path.is_file() and path.name not in ("said", "cache.sqlite")
    ]


def _limited(name: str, share: float, nursery: Nursery, folder: Path) -> None:
    of = clean(name, nursery, folder)
    here = folder / "here"
    shutil.copytree(of.before, here)
    # Not below what the messages of the command itself need.
    largest = max(2048, int(max(_written(of)) * share))
    ended = nursery.run(of.arguments, here, largest_file=largest)
    assert ended.code == 2, ended.said
    _says_so(ended.said)
    assert not leftovers(here)
    ended = nursery.run(of.arguments, here)
    assert ended.code == of.case.ends, ended.said
    assert not differences(of.after, here, whole_cache=False)


@pytest.mark.parametrize(("name", "share"), QUICK)
def test_a_file_that_may_not_grow(name: str, share: float, nursery: Nursery, tmp_path: Path) -> None:
    """A limit on the size of files, which needs no rights: writing fails as on a full disk."""
    pytest.importorskip("resource")
    _limited(name, share, nursery, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "share"), SLOW)
def test_more_files_that_may_not_grow(name: str, share: float, nursery: Nursery, tmp_path: Path) -> None:
    pytest.importorskip("resource")
    _limited(name, share, nursery, tmp_path)


class Disk:
    """A small file system in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mount(self, size: int) -> None:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(self.folder)]
        program = shutil.which("mount")
        if program is None or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("a small file system cannot be mounted here (it needs root)")

    def grow(self) -> None:
        subprocess.run(["mount", "-o", "remount,size=100m", str(self.folder)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = Disk(tmp_path / "disk")
    made.folder.mkdir()
    yield made
    subprocess.run(["umount", "-l", str(made.folder)], capture_output=True, check=False)


@pytest.mark.parametrize("name", ["annotate-agreement", "score"])
def test_a_small_disk(name: str, nursery: Nursery, disk: Disk, tmp_path: Path) -> None:
    """Room for what the command reads and half of what it writes."""
    _small(name, 0.5, nursery, disk, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.2, 0.7])
@pytest.mark.parametrize(
    "name", ["audit", "corpus", "merge", "probe", "validate", "build", "replicate", "train-linear"]
)
def test_more_small_disks(name: str, share: float, nursery: Nursery, disk: Disk, tmp_path: Path) -> None:
    _small(name, share, nursery, disk, tmp_path)


def _small(name: str, share: float, nursery: Nursery, disk: Disk, folder: Path) -> None:
    of = clean(name, nursery, folder)
    page = 4096
    pages = sum(-(-path.stat().st_size // page) for path in of.before.rglob("*") if path.is_file())
    pages += int(sum(-(-size // page) for size in _written(of)) * share) + 2
    disk.mount(pages * page)
    here = disk.folder / "here"
    shutil.copytree(of.before, here)
    ended = nursery.run(of.arguments, here)
    assert ended.code == 2, ended.said
    disk.grow()
    if ended.said.count("error"):  # where there is no room for the message, there is none
        _says_so(ended.said)
    assert not leftovers(here)
    ended = nursery.run(of.arguments, here)
    assert ended.code == of.case.ends, ended.said
    assert not differences(of.after, here, whole_cache=False)
