"""Two processes in one place: one works, the other says who does; a dead one holds nothing."""

from __future__ import annotations

import os
import shlex
import threading
from pathlib import Path

import pytest
from tests.faults.commands import CASES, write_suite
from tests.faults.kills import installed
from tests.faults.nursery import Ended, Kill, Nursery
from tests.faults.trees import rows

import evenhand
from evenhand.store.run import Run
from evenhand.store.run_folder import HOLDER, FolderLock
from evenhand.store.schemas import SCHEMAS


def _run(name: str, nursery: Nursery, folder: Path, kill: Kill | None = None) -> Ended:
    return installed(nursery.run(tuple(shlex.split(CASES[name].arguments)), folder, kill))


def _prepared(name: str, folder: Path) -> Path:
    def no_call(command: str) -> None:
        raise AssertionError(f"{name} is chosen because it needs no other command")

    CASES[name].prepare(folder, no_call)
    return folder


@pytest.mark.parametrize(
    ("name", "place", "doing"),
    [
        ("replicate", "there", "working in"),
        ("train-linear", "model", "training in"),
        ("annotate-init", "study", "creating a study in"),
    ],
)
def test_the_second_says_who_is_first(
    name: str, place: str, doing: str, nursery: Nursery, tmp_path: Path
) -> None:
    _prepared(name, tmp_path)
    (tmp_path / place).mkdir()
    lock = FolderLock(tmp_path / place)
    lock.acquire("holding")
    second = _run(name, nursery, tmp_path)
    assert second.code == 2, second.said
    assert f"another process is {doing} {place} (process {os.getpid()} on " in second.said
    assert "expected: one process per folder" in " ".join(second.said.split())
    assert "wait for it, or choose another folder" in second.said
    assert {path.name for path in (tmp_path / place).iterdir()} == {".lock", HOLDER}
    lock.release()
    assert _run(name, nursery, tmp_path).code == 0


def test_one_of_two_at_work_wins(nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is refused while the first writes, and changes nothing of what it leaves."""
    _prepared("audit", tmp_path)
    with (tmp_path / "e.toml").open("a") as settings:
        settings.write("[model]\noptions = { delay = 0.004 }\n")
    monkeypatch.chdir(tmp_path)
    ended: list[Ended] = []
    first = threading.Thread(target=lambda: ended.append(_run("audit", nursery, tmp_path)))
    first.start()
    while not (tmp_path / "run" / "run.json").exists():
        assert first.is_alive()
    with pytest.raises(evenhand.EvenhandError, match=r"another process is working in run \(process \d+ on"):
        evenhand.audit("stub", config="e.toml", samples=2, out="run")
    first.join()
    assert ended[0].code == 0, ended[0].said
    assert Run.open("run").table("generations").height == 320


def test_a_dead_process_holds_nothing(nursery: Nursery, tmp_path: Path) -> None:
    _prepared("audit", tmp_path)
    died = _run("audit", nursery, tmp_path, Kill(40))
    assert died.code == -9
    assert (tmp_path / "run" / HOLDER).read_text().startswith("process ")
    again = _run("audit", nursery, tmp_path)
    assert again.code == 0, again.said
    assert not (tmp_path / "run" / HOLDER).exists()


def test_two_processes_share_a_cache(
    nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    ended: list[Ended] = []
    command = "audit stub --config e.toml --samples 1 --out there"
    other = threading.Thread(target=lambda: ended.append(nursery.run(tuple(command.split()), tmp_path)))
    other.start()
    evenhand.audit("stub", config="e.toml", samples=1, out="here")
    other.join()
    assert ended[0].code == 0, ended[0].said
    for name in SCHEMAS:
        assert Run.open("here").table(name).equals(Run.open("there").table(name)), name
    assert len(rows(tmp_path / "cache" / "cache.sqlite")["generations"]) == 160
