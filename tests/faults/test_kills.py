"""Every command that writes, killed at seeded moments and run again: nothing lost, nothing doubled.

`make test` kills a command or two of each kind; ``--run-slow`` adds the many.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.faults.commands import CASES
from tests.faults.kills import clean, moments, tried
from tests.faults.nursery import Nursery

FEW = {
    **dict.fromkeys(("annotate-export", "annotate-import", "annotate-init", "annotate-invite"), 1),
    **dict.fromkeys(("annotate-ratings", "annotate-settle", "audit-grown", "corpus", "init", "score"), 1),
    "annotate-agreement": 2,
    **dict.fromkeys(("audit", "build", "replicate", "train-linear"), 3),
}
"""Kills of each command in `make test`, 24 in all; the nightly set has the others."""
MANY = 8
"""Seeds a command in the nightly set: 9 kills or more each, since some seeds kill twice."""
BARE = sorted(name for name, case in CASES.items() if not case.torch)
TORCH = sorted(name for name, case in CASES.items() if case.torch)


def _check(name: str, seeds: range, nursery: Nursery, folder: Path) -> int:
    of, kills = clean(name, nursery, folder), 0
    for seed in seeds:
        trial = tried(of, moments(of, seed), nursery, folder / str(seed))
        assert not trial.wrong, (seed, trial.wrong)
        kills += trial.kills
    return kills


@pytest.mark.parametrize("name", sorted(FEW))
def test_a_killed_command_ends_as_if_it_had_never_been(name: str, nursery: Nursery, tmp_path: Path) -> None:
    """At an event on a file, which every run has: each seed kills once."""
    of = clean(name, nursery, tmp_path)
    for seed in range(FEW[name]):
        drawn = moments(of, seed)[0]
        kill = replace(drawn, at=drawn.at or 1 + seed, after=0.0)
        trial = tried(of, [kill], nursery, tmp_path / str(seed))
        assert not trial.wrong, (seed, trial.wrong)
        assert trial.kills == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", BARE)
def test_many_kills(name: str, nursery: Nursery, tmp_path: Path, tally: Counter[str]) -> None:
    tally[name] += _check(name, range(100, 100 + MANY), nursery, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", TORCH)
def test_many_kills_of_commands_with_torch(
    name: str, torch_nursery: Nursery, tmp_path: Path, tally: Counter[str]
) -> None:
    tally[name] += _check(name, range(100, 104), torch_nursery, tmp_path)
