"""A disk that fills up: said in a sentence, nothing finished is lost, the same command goes on."""

import shutil
import subprocess

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
