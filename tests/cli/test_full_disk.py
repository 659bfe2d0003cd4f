"""A disk that fills up: said in a sentence, nothing finished is lost, the same command goes on."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.store.run import Run


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 96 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here (it needs root)")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_said_and_the_run_goes_on_later(evenhand, small_disk, tmp_path):
    arguments = ("audit", "stub", "--metrics", "sentiment", "--samples", 2, "--out")
    full = evenhand(*arguments, small_disk / "run")
    assert full.returncode == 2, full.stderr
    assert "the disk is full" in full.stderr
    assert "finished shards are kept" in full.stderr
    assert "Traceback" not in full.stderr
    shards = list((small_disk / "run" / "shards" / "generate").glob("*.parquet"))
    assert shards
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    kept = {path: path.stat().st_mtime_ns for path in shards}
    done = evenhand(*arguments, small_disk / "run")
    assert done.returncode == 0, done.stderr
    assert kept == {path: path.stat().st_mtime_ns for path in shards}
    assert Run.open(small_disk / "run").table("generations").height == 860


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_that_finds_no_room_is_an_error_too():
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "evenhand", "list"]
        said = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        silent = subprocess.run(command, stdout=full, stderr=full, check=False)
    assert said.returncode == silent.returncode == 2
    assert said.stderr.startswith(
        "error: the disk is full: the output of this command could not be written\n"
    )
    assert "Traceback" not in said.stderr
