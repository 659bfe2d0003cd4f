"""Starts evenhand commands quickly, and kills them at a chosen moment.

A nursery is a process that has imported evenhand and forks a child for every command: a start costs
milliseconds, so that a suite can afford many. The moment of a kill is counted, not timed: the child counts
what Python is about to do to files below the job's folder (an audit hook: open for writing, rename, remove,
mkdir, lock, connect to SQLite) and dies at the wanted one. Nothing in evenhand knows of it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
SLOWEST = 120.0
"""Seconds after which a command counts as hanging."""
_FILES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "sqlite3.connect")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Kill:
    """When and how a command is ended.

    ``at`` is the number of the event, from 1; 0 is the start of the command. ``after`` seconds later the
    signal is sent: 0 is at that very event, by the child itself.
    """

    at: int
    after: float = 0.0
    signal: int = signal.SIGKILL


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, or minus the signal that ended it."""

    code: int
    events: int
    said: str
    seconds: float


class Nursery:
    """The process that forks; use as a context manager."""

    def __init__(self, *, torch: bool = False) -> None:
        command = [sys.executable, __file__, "torch" if torch else "bare"]
        environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def run(
        self,
        arguments: tuple[str, ...],
        folder: Path,
        kill: Kill | None = None,
        *,
        largest_file: int = 0,
        smaller: Mapping[str, Mapping[str, int]] | None = None,
    ) -> Ended:
        """Run ``evenhand ARGUMENTS`` in a folder; its cache and its home are there too.

        ``largest_file`` limits the size of every file it writes, as a full disk would. ``smaller`` names
        recipes of trainings and the fields that are set lower.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {
            "arguments": list(arguments),
            "folder": str(folder),
            "kill": asdict(kill) if kill else None,
            "largest_file": largest_file,
            "smaller": {name: dict(fields) for name, fields in (smaller or {}).items()},
        }
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))


def _import_everything(*, torch: bool) -> None:
    """Load every module of the package, so that children need not; nothing is computed, nothing starts."""
    package = importlib.import_module("evenhand")
    for module in pkgutil.walk_packages(package.__path__, "evenhand."):
        skipped = ("evenhand.__main__", "evenhand.pytest_plugin")
        needs_torch = module.name.split(".")[1] in (
            *("tensors", "generation", "classifiers", "training", "mitigations", "models", "metrics"),
        )
        if module.name not in skipped and (torch or not needs_torch):
            with contextlib.suppress(Exception):
                importlib.import_module(module.name)
    for name in ("evenhand.metrics.sentiment", "evenhand.metrics.gender_polarity", "sqlalchemy"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _serve() -> None:
    """Fork a child for every line; answer how it ended."""
    _import_everything(torch=sys.argv[1] == "torch")
    for line in sys.stdin:
        job = json.loads(line)
        started = time.perf_counter()
        told, telling = os.pipe()
        said = Path(job["folder"], "said")
        said.write_text("")  # a child may die before it says anything
        child = os.fork()
        if child == 0:
            os.close(told)
            _live(job, telling)
        os.close(telling)
        ended = _watch(child, told, job["kill"], started)
        seconds = time.perf_counter() - started
        print(json.dumps({**ended, "said": said.read_text(errors="replace"), "seconds": seconds}), flush=True)


def _watch(child: int, told: int, kill: dict[str, Any] | None, started: float) -> dict[str, int]:
    """Wait for the child, and kill it where the moment is not its own affair."""
    deadline = started + SLOWEST
    due = started + kill["after"] if kill and kill["at"] == 0 else None
    events, waiting = 0, True
    while waiting:
        now = time.perf_counter()
        if due is not None and now >= due and kill:
            os.kill(child, kill["signal"])
            due, kill = None, None
        if now > deadline:
            os.kill(child, signal.SIGKILL)
        pause = min(due if due is not None else deadline, deadline) - now
        if not select.select([told], [], [], max(0.0, pause))[0]:
            continue
        word = os.read(told, 64)
        if word.startswith(b"now") and kill:
            due = time.perf_counter() + kill["after"]
        elif word:
            events = int(word.split()[-1])
        waiting = bool(word)
    os.close(told)
    _, status = os.waitpid(child, 0)
    return {"code": os.waitstatus_to_exitcode(status), "events": events}


def _live(job: dict[str, Any], telling: int) -> None:
    """The child: a command from its start to its end."""
    folder, kill = Path(job["folder"]), job["kill"]
    os.chdir(folder)
    os.environ.update(EVENHAND_CACHE=str(folder / "cache"), XDG_DATA_HOME=str(folder / "data"))
    os.environ.update(HOME=str(folder), TMPDIR=str(folder))
    with Path("said").open("wb") as said, Path("/dev/null").open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    if job["largest_file"]:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["largest_file"], job["largest_file"]))
    for name, fields in job["smaller"].items():
        module, _, recipe = name.rpartition(".")
        within = importlib.import_module(module)
        setattr(within, recipe, functools.partial(getattr(within, recipe), **fields))
    sys.argv = ["evenhand", *job["arguments"]]
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    counter = _Counter(str(folder), kill, telling)
    sys.addaudithook(counter)
    code = _called()
    # A Ctrl-C that comes too late is not the command's affair.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os.write(telling, f"end {counter.events}".encode())
    os._exit(code)


def _called() -> int:
    from evenhand.cli import main

    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except KeyboardInterrupt:
        return 130
    return 0


class _Counter:
    """Counts events on files below a folder, and acts at one of them."""

    def __init__(self, folder: str, kill: dict[str, Any] | None, telling: int) -> None:
        self.events, self._folder, self._kill, self._telling = 0, folder, kill, telling

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._counts(event, arguments):
            return
        self.events += 1
        if self._kill is None or self.events != self._kill["at"]:
            return
        if self._kill["after"]:
            os.write(self._telling, b"now")
        else:
            os.kill(os.getpid(), self._kill["signal"])

    def _counts(self, event: str, arguments: tuple[object, ...]) -> bool:
        if event == "open":
            path, _, flags = arguments
            return isinstance(flags, int) and bool(flags & _WRITES) and self._is_ours(path)
        return event == "fcntl.flock" or (event in _FILES and self._is_ours(arguments[0]))

    def _is_ours(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        text = os.fsdecode(path)
        # Relative ones are below the working folder.
        return text.startswith(self._folder) or not text.startswith("/")


if __name__ == "__main__":
    _serve()
