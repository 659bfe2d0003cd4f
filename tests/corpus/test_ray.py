"""The Ray engine: the same counts as the local one, also when a worker is killed in the middle."""

import gzip
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from evenhand.corpus.scan import scan_corpus
from evenhand.store.run import Run

pytest.importorskip("ray")
if not Path("/proc/self/environ").exists():
    pytest.skip("needs /proc to find its own workers", allow_module_level=True)

LINES = ["She was happy. He was afraid!", "The black man is sad, and her mother-in-law is angry?", "Nothing"]


def _busy_worker(mark):
    """A worker of our own run that is counting a shard: known by a mark in its environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_busy = (folder / "cmdline").read_bytes().startswith(b"ray::_count_in_folder")
            if is_busy and mark.encode() in (folder / "environ").read_bytes():
                return int(folder.name)
        except OSError:
            continue
    return None


def test_a_worker_killed_in_the_middle_changes_no_count(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    packed = gzip.compress("\n".join(LINES * 100_000).encode(), 1)
    for number in range(6):
        (files / f"{number}.txt.gz").write_bytes(packed)
    clean = scan_corpus(files, out=tmp_path / "clean")
    mark = uuid.uuid4().hex
    command = [sys.executable, "-m", "evenhand", "corpus", str(files), "--out", "ray", "--engine", "ray"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--workers", "2"],
            cwd=tmp_path,
            stdout=log,
            stderr=log,
            env={**os.environ, "EVENHAND_TEST_MARK": mark},
        )
        killed = None
        while process.poll() is None and killed is None:
            killed = _busy_worker(mark)
            time.sleep(0.005)
        if killed is not None:
            os.kill(killed, signal.SIGKILL)
        assert process.wait(timeout=240) == 0, (tmp_path / "log").read_text()
    assert killed is not None
    run = Run.open(tmp_path / "ray")
    for name in ("occurrence", "cooccurrence", "samples", "problems"):
        assert run.table(name).equals(clean.table(name)), name
