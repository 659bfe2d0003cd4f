"""Exit codes: 1 is a gate that was not passed, and nothing else, whatever fails on the way."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pytest
import typer
from tests import program
from tests.audits.texts import run
from tests.faults.commands import CASES

import evenhand
from evenhand.audits.parallel import map_processes, map_threads
from evenhand.audits.run_setup import SILENT_PROGRESS
from evenhand.cli.app import app
from evenhand.core.errors import InputError

SOURCE = str(Path(evenhand.__file__).parent)
RAISED: tuple[Callable[[], BaseException], ...] = (
    lambda: pl.exceptions.PanicException("index out of bounds"),
    lambda: SystemExit(1),
    lambda: SystemExit("a library gave up"),
    lambda: SystemExit(0),
    lambda: SystemExit(None),
    KeyboardInterrupt,
    MemoryError,
    RecursionError,
    lambda: BrokenPipeError(32, "Broken pipe"),
    lambda: OSError(28, "No space left on device"),
    lambda: ImportError("libgomp.so.1"),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    EOFError,
    GeneratorExit,
    StopIteration,
    AssertionError,
    lambda: InputError("x", expected="y", fix="z"),
    lambda: typer.Exit(1),
    typer.Abort,
    lambda: BaseException("bare"),
    lambda: type("Odd", (BaseException,), {"__str__": lambda self: 1 / 0})(),
)
NAMES = [f"{type(make()).__name__}-{number}" for number, make in enumerate(RAISED)]
COMMANDS = {shlex.split(case.arguments)[0] for case in CASES.values()}
GARBAGE = (
    *("", " ", "-", "--", "-1", "nan", "1e999", "0", "true", "[", "?*", "~", "%20", "no such file"),
    *(
        "🙂",
        "\udcff",
        "a\nb",
        "--max",
        "--help=",
        "-h",
        "--dry-run",
        "--nothing",
        "x" * 5000,
        "=",
        "::error::x",
    ),
)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose gap is far beyond 0.1 and far inside 0.99."""
    return run(tmp_path_factory.mktemp("runs"), "wide", {"women": 0.9, "men": 0.2}, prompts=40).path


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., int]:
    """How many calls a command makes that ends as it should."""

    @cache
    def count(*words: object, ends: int) -> int:
        fault = _Fault(None, 0)
        assert _with_fault(fault, words, tmp_path_factory.mktemp("calls")) == ends
        return fault.count

    return count


def test_every_command_has_a_case() -> None:
    names = {command.name for command in app.registered_commands} | {
        group.name for group in app.registered_groups
    }
    assert names - COMMANDS <= {"list", "show", "power", "doctor"}


@pytest.mark.parametrize("number", range(len(CASES)), ids=CASES)
def test_no_exception_of_any_command_ends_with_1(number: int, tmp_path: Path) -> None:
    words = shlex.split([*CASES.values()][number].arguments)
    # Each command with two of the exceptions, and each exception in some command.
    for make in (RAISED[number % len(RAISED)], RAISED[(3 * number + 1) % len(RAISED)]):
        error = make()
        with _raising_in_commands(error):
            done = program.run(*words, cwd=tmp_path)
        assert done.returncode == (130 if isinstance(error, KeyboardInterrupt) else 2), (error, done.stderr)


@pytest.mark.parametrize("make", RAISED, ids=NAMES)
def test_a_fault_anywhere_in_a_gate_never_changes_its_answer(
    wide: Path, tmp_path: Path, make: Callable[[], BaseException], calls: Callable[..., int]
) -> None:
    """Faults at random calls of our own functions: the gate's own code, or that of an error."""
    rng = np.random.default_rng(RAISED.index(make))
    for limit, truth in (("0.99", 0), ("0.1", 1)):
        words = ("gate", wide, "--max", f"sentiment.negative group {limit}")
        for at in rng.integers(1, calls(*words, ends=truth), size=2):
            assert _with_fault(_Fault(make(), int(at)), words, tmp_path) in (truth, 2, 130)


@pytest.mark.parametrize("make", RAISED, ids=NAMES)
def test_a_fault_anywhere_in_other_commands_never_ends_with_1(
    wide: Path, tmp_path: Path, make: Callable[[], BaseException], calls: Callable[..., int]
) -> None:
    commands = (("report", wide, "--format", "md"), ("power", wide, "--gap", "0.1"), ("list",))
    words = commands[RAISED.index(make) % len(commands)]
    at = np.random.default_rng(RAISED.index(make)).integers(1, calls(*words, ends=0))
    assert _with_fault(_Fault(make(), int(at)), words, tmp_path) in (0, 2, 3, 130)


@pytest.mark.parametrize("seed", range(2))
def test_no_arguments_end_with_1(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    root: Any = typer.main.get_command(app)
    for path, command in _leaves(root):
        options = [name for parameter in command.params for name in parameter.opts if name.startswith("-")]
        chosen = rng.choice([*options, *GARBAGE], size=int(rng.integers(0, 6))).tolist()
        # Nothing is audited, served or trained for minutes where the garbage happens to fit.
        if "--dry-run" in options:
            chosen.append("--dry-run")
        done = program.run(*path, *chosen, cwd=tmp_path)
        assert done.returncode in (0, 2, 3), (path, chosen, done.stderr)


def test_an_error_in_another_thread_or_process_is_an_error_here() -> None:
    for make in (RAISED[0], RAISED[1], RAISED[-2]):
        with mock.patch.dict(os.environ, OMP_NUM_THREADS="2"), pytest.raises(BaseException):  # noqa: B017, PT011
            map_threads(_raise, [make(), make()])
    with pytest.raises(BaseException):  # noqa: B017, PT011
        map_processes(_panic, [1, 2], jobs=2, progress=SILENT_PROGRESS, label="x")


START = "import sys; sys.argv = ['evenhand', *sys.argv[1:]]\n"
CALL = "from evenhand.cli import main; main()\n"
PANIC = """
import polars as pl
from evenhand.store.run import Run
def panic(*_, **__): raise pl.exceptions.PanicException("index out of bounds")
Run.open = panic
"""


@pytest.mark.parametrize(
    ("before", "code", "says"),
    [
        (PANIC, 2, "PanicException: index out of bounds"),
        (PANIC + "import os; os.environ['EVENHAND_DEBUG'] = '1'\n", 2, "Traceback"),
        ("sys.modules['rich'] = None\n", 2, "error: evenhand cannot start"),
        ("sys.modules['typer'] = None\n", 2, "fix: install evenhand"),
        ("sys.modules['polars'] = None\n", 2, "polars"),
        ("import atexit; atexit.register(lambda: 1 / 0)\n", 0, "ZeroDivisionError"),
        ("import threading; threading.Thread(target=lambda: 1 / 0).start()\n", 0, "ZeroDivisionError"),
        ("sys.setrecursionlimit(60)\n", 2, ""),
    ],
)
def test_a_process_ends_with_its_code(wide: Path, tmp_path: Path, before: str, code: int, says: str) -> None:
    words = ["gate", str(wide), "--max", "sentiment.negative group 0.99"]
    done = _process(START + before + CALL, words, tmp_path)
    assert done.returncode == code, done.stderr
    assert says in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize(("limit", "code"), [("0.99", 0), ("0.1", 1)])
def test_a_reader_that_goes_away_does_not_change_the_answer(
    wide: Path, tmp_path: Path, limit: str, code: int
) -> None:
    gate = f"{sys.executable} -m evenhand gate {shlex.quote(str(wide))} --github"
    for line in (
        f"{gate} --max 'sentiment.negative group {limit}' | true; exit ${{PIPESTATUS[0]}}",
        f"{gate} --max 'sentiment.negative group {limit}' 2>&1 | true; exit ${{PIPESTATUS[0]}}",
        f"{gate} --max 'sentiment.negative group {limit}' >&-",
        f"{gate} --max 'sentiment.negative group {limit}' 2>&-",
    ):
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert done.returncode == code, (line, done.stderr)
    helped = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m evenhand --help | true; exit ${{PIPESTATUS[0]}}"], check=False
    )
    assert helped.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_ctrl_c_ends_with_130(wide: Path, tmp_path: Path) -> None:
    stop = textwrap.dedent(
        f"""
        import os
        from evenhand.store.run import Run
        Run.open = lambda *_: os.kill(os.getpid(), {int(signal.SIGINT)})
        """
    )
    done = _process(START + stop + CALL, ["gate", str(wide), "--max", "* * 0.1"], tmp_path)
    assert done.returncode == 130


def test_completion_of_an_unknown_shell_is_an_error(tmp_path: Path) -> None:
    with mock.patch.dict(os.environ, _EVENHAND_COMPLETE="nothing"):
        assert program.run(cwd=tmp_path).returncode == 2


class _Fault:
    """Counts calls of evenhand's functions, and raises an error at one of them."""

    def __init__(self, error: BaseException | None, at: int) -> None:
        self.count, self._error, self._at = 0, error, at

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        path = frame.f_code.co_filename
        # Not in the entry itself: what it does after a fault is what is tested.
        if (
            event != "call"
            or not path.startswith(SOURCE)
            or path.endswith(("cli/entry.py", "cli/streams.py"))
        ):
            return
        self.count += 1
        if self.count == self._at and self._error is not None:
            raise self._error


def _with_fault(fault: _Fault, words: tuple[object, ...], folder: Path) -> int:
    sys.settrace(fault)
    try:
        return program.run(*words, cwd=folder).returncode
    finally:
        sys.settrace(None)


def _raising_in_commands(error: BaseException) -> Any:
    def invoke(*_: object, **__: object) -> None:
        raise error

    return mock.patch.object(typer.core.TyperCommand, "invoke", invoke)


def _leaves(command: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", None)
    if not children:
        return [(path, command)]
    return [leaf for name, child in children.items() for leaf in _leaves(child, (*path, name))]


def _process(code: str, words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _raise(error: BaseException) -> None:
    raise error


def _panic(number: int) -> None:
    raise pl.exceptions.PanicException("index out of bounds")
