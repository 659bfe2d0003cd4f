"""The Ray engine of audit and score: the same tables as here, also when an actor is killed at work."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.audits.audit import prepare
from evenhand.audits.score import score
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.testing import StubModel

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")
if not Path("/proc/self/environ").exists():
    pytest.skip("needs /proc to find its own actors", allow_module_level=True)

AUDIT = {"limit": 130, "samples": 1, "max_new_tokens": 6, "metrics": "sentiment,toxicity", "device": "cpu"}
TABLES = ("prompts", "generations", "scores", "groups", "comparisons", "exclusions")


@pytest.fixture(scope="module")
def mark() -> Iterator[str]:
    """A cluster for all of these tests, whose processes are known by a mark in their environment."""
    name = uuid.uuid4().hex
    os.environ["EVENHAND_TEST_MARK"] = name
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield name
    ray.shutdown()
    del os.environ["EVENHAND_TEST_MARK"]


class Killer(threading.Thread):
    """Kills the first actor it sees at work."""

    def __init__(self, mark: str) -> None:
        super().__init__(daemon=True)
        self.mark, self.killed, self.stopped = mark.encode(), 0, False

    def run(self) -> None:
        while not self.killed and not self.stopped:
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    at_work = (folder / "cmdline").read_bytes().startswith(b"ray::Worker.call")
                    if at_work and self.mark in (folder / "environ").read_bytes():
                        os.kill(int(folder.name), signal.SIGKILL)
                        self.killed = int(folder.name)
                        return
                except OSError:
                    continue
            time.sleep(0.002)


def same_files(one: Path, other: Path) -> None:
    for table in TABLES:
        assert (one / f"{table}.parquet").read_bytes() == (other / f"{table}.parquet").read_bytes(), table


def test_an_audit_with_a_killed_actor_has_the_tables_of_a_local_one(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prepared = prepare("builtin", engine="ray", workers=2, out=tmp_path / "ray", **AUDIT)
    assert "engine  ray at this machine, 2 workers" in prepared.plan().lines
    killer = Killer(mark)
    killer.start()
    with caplog.at_level(logging.WARNING):
        run = prepared.run()
    killer.stopped = True
    killer.join()
    assert killer.killed
    assert "a worker was lost and is replaced; what it was doing is done again" in caplog.messages
    assert run.manifest["execution"]["engine"] == "ray"
    # Nothing may come from what the other run left in the cache.
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    prepare("builtin", out=tmp_path / "here", **AUDIT).run()
    same_files(tmp_path / "ray", tmp_path / "here")


def test_scores_from_actors_are_those_of_this_process(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One of them is killed at work."""
    file, options = asset_path("examples", "texts.csv"), {"group": ["profession=group"], "prompt": "prompt"}
    options |= {"metrics": "regard,toxicity", "id": "id", "device": "cpu"}
    killer = Killer(mark)
    killer.start()
    with caplog.at_level(logging.WARNING):
        score(file, out=tmp_path / "ray", engine="ray", workers=1, **options)
    killer.stopped = True
    killer.join()
    assert killer.killed
    assert "a worker was lost and is replaced; what it was doing is done again" in caplog.messages
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    score(file, out=tmp_path / "here", **options)
    same_files(tmp_path / "ray", tmp_path / "here")


def test_a_model_that_cannot_travel_is_refused() -> None:
    with pytest.raises(InputError, match=r"^the model is an object, and the engine is ray\. Expected: a"):
        prepare(StubModel(), engine="ray")
