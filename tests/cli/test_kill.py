"""A run that is stopped keeps what it finished and says so; tests/faults has kills of every command."""

import os
import signal
import subprocess
import sys
import time

SETTINGS = '[model]\nname = "stub"\noptions = { delay = 0.002 }\n[generation]\nsamples = 2\n'
SETTINGS += '[metrics]\nnames = ["sentiment", "gender_polarity"]\n'


def _start(folder, out):
    command = [sys.executable, "-m", "evenhand", "audit", "--config", "e.toml", "--out", out]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)


def _finished(folder, out, stage):
    return len(list((folder / out / "shards" / stage).glob("*.parquet")))


def _kill_when(process, ready):
    while process.poll() is None:
        if ready():
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.002)
    return False


def test_a_finished_shard_is_not_done_again(tmp_path):
    (tmp_path / "e.toml").write_text(SETTINGS)
    _kill_when(_start(tmp_path, "killed"), lambda: _finished(tmp_path, "killed", "generate") >= 3)
    shards = tmp_path / "killed" / "shards" / "generate"
    before = {path.name: path.stat().st_mtime_ns for path in shards.glob("*.parquet")}
    assert _start(tmp_path, "killed").wait() == 0
    after = {path.name: path.stat().st_mtime_ns for path in shards.glob("*.parquet")}
    assert before.items() <= after.items()
    assert len(after) == 7  # 430 prompts in shards of 64


def test_interrupting_says_that_work_is_kept(tmp_path):
    (tmp_path / "e.toml").write_text(SETTINGS)
    process = _start(tmp_path, "run")
    while _finished(tmp_path, "run", "generate") < 1:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert "Finished shards are kept" in (tmp_path / "log").read_text()
