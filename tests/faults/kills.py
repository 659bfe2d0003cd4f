"""A command that is killed at seeded moments, run again, and held against one that never was."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.faults.commands import CASES, Case
from tests.faults.nursery import Ended, Kill, Nursery
from tests.faults.trees import Tables, differences, leftovers, rows

from evenhand.core.errors import MissingLibraryError

STOPPED = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: -signal.SIGTERM, signal.SIGINT: 130}
"""How a command ends at each signal; at Ctrl-C it says so and ends with 130."""


@dataclass(frozen=True)
class Clean:
    """What a command reads, and what it leaves where nothing happens to it."""

    name: str
    before: Path
    after: Path
    ended: Ended

    @property
    def case(self) -> Case:
        return CASES[self.name]

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(shlex.split(self.case.arguments))


@dataclass(frozen=True)
class Trial:
    """How often a command was killed, and what was wrong in the end."""

    kills: int
    wrong: tuple[str, ...]


def installed(ended: Ended) -> Ended:
    """How a command ended; where it lacks an extra, the error that skips the test with ``--core``."""
    if ended.code == 2 and "is not installed" in ended.said:
        raise MissingLibraryError(ended.said)
    return ended


def clean(name: str, nursery: Nursery, folder: Path) -> Clean:
    """A command prepared and run to its end."""
    before, after = folder / f"{name}-before", folder / f"{name}-clean"
    before.mkdir()

    def call(command: str) -> None:
        ended = installed(nursery.run(tuple(shlex.split(command)), before))
        assert ended.code == 0, ended.said

    CASES[name].prepare(before, call)
    shutil.copytree(before, after)
    of = CASES[name]
    ended = installed(nursery.run(tuple(shlex.split(of.arguments)), after, smaller=of.smaller))
    assert ended.code == CASES[name].ends, ended.said
    assert not leftovers(after)
    return Clean(name, before, after, ended)


def moments(of: Clean, seed: int) -> list[Kill]:
    """One to three kills: at an event, a little after one, or by the clock; one in three is no SIGKILL."""
    rng = np.random.default_rng([seed, zlib.crc32(of.name.encode())])
    found = []
    for _ in range(1 + rng.binomial(2, 0.2)):
        sign = signal.Signals(rng.choice([signal.SIGKILL] * 4 + [signal.SIGTERM, signal.SIGINT]))
        way, at = rng.random(), int(rng.integers(1, max(1, of.ended.events) + 1))
        if way < 0.6 and of.ended.events:
            found.append(Kill(at, 0.0, sign))
        elif way < 0.8 and of.ended.events:
            found.append(Kill(at, float(rng.exponential(0.01)) + 1e-4, sign))
        else:
            found.append(Kill(0, float(rng.uniform(0.0, of.ended.seconds)) + 1e-4, sign))
    return found


def tried(of: Clean, kills: list[Kill], nursery: Nursery, folder: Path) -> Trial:
    """The command killed at each moment in turn, then run until it ends, and compared."""
    shutil.copytree(of.before, folder)
    died = 0
    for kill in kills:
        ended = nursery.run(of.arguments, folder, kill, smaller=of.case.smaller)
        if ended.code == STOPPED[signal.Signals(kill.signal)]:
            died += 1
        elif not _is_done(of, ended):
            return Trial(died, (f"at {kill} it ended with {ended.code}: {ended.said}",))
    ended = nursery.run(of.arguments, folder, smaller=of.case.smaller)
    if not _is_done(of, ended):
        return Trial(died, (f"after {kills} it ended with {ended.code}: {ended.said}",))
    wrong = _SPECIAL.get(of.name, _same)(of, folder)
    wrong += [f"{path} is left" for path in leftovers(folder)[_may_stay(of, died) :]]
    shutil.rmtree(folder)
    return Trial(died, tuple(wrong))


def _is_done(of: Clean, ended: Ended) -> bool:
    said_so = ended.code == 2 and bool(of.case.done_already) and of.case.done_already in ended.said
    return ended.code == of.case.ends or said_so


def _may_stay(of: Clean, kills: int) -> int:
    """A kill may leave one hidden file beside a lone file; in a run folder nothing may stay."""
    return 0 if (of.after / "run").is_dir() or of.name in _FOLDERS else kills


_FOLDERS = (
    *("audit-default-folder", "compare", "merge", "build", "replicate", "export-task"),
    *(name for name in CASES if name.startswith("train-")),
)


def _same(of: Clean, folder: Path) -> list[str]:
    return differences(of.after, folder)


def _invited(of: Clean, folder: Path) -> list[str]:
    """Links are made all or none: a kill after they were made, before they were shown, costs new ones."""
    made = len(rows(folder / "study" / "labels.db")["evenhand_people"])
    return [] if made in (3, 6, 9, 12) else [f"{made} people"]


def _forgotten(of: Clean, folder: Path) -> list[str]:
    """The same answers, people and pages; whoever was forgotten has a random name, once."""
    tables = [_nameless(rows(at / "study" / "labels.db")) for at in (of.after, folder)]
    return [] if tables[0] == tables[1] else [f"{tables[0]} != {tables[1]}"]


def _nameless(tables: Tables) -> Tables:
    """Tables with one word for every random name; times are clocks."""
    return {
        name: [
            tuple(
                _STRANGER.sub("(forgotten)", _DAY.sub("(day)", cell)) if isinstance(cell, str) else cell
                for cell in row
            )
            for row in found
        ]
        for name, found in tables.items()
    }


_STRANGER = re.compile(r"\bx[0-9a-f]{12}\b")
_DAY = re.compile(r"\d{4}-\d\d-\d\d 00:00:00[.0]*")
_SPECIAL: Mapping[str, Callable[[Clean, Path], list[str]]] = {
    "annotate-invite": _invited,
    "annotate-forget": _forgotten,
}
