"""What is measured of a condition besides its run: what it changes, and whole texts in the judge's eyes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from evenhand.core.file_names import file_name
from evenhand.core.protocols import Progress
from evenhand.core.records import Execution
from evenhand.papers.political.texts import changes, with_prompts
from evenhand.pipeline.distances import CHANGES
from evenhand.pipeline.price import VANILLA
from evenhand.pipeline.processes import in_processes
from evenhand.store.kept import kept_table, run_key
from evenhand.store.run import Run
from evenhand.store.schemas import DISTANCES

FULL: Mapping[str, pl.DataType] = {"condition": pl.String(), **DISTANCES, "reads": pl.String()}


class Task(NamedTuple):
    """A condition to be measured."""

    condition: str
    run: Path
    vanilla: Path
    folder: Path
    """Where what was measured is kept: a second start finds it."""
    is_read_whole: bool
    """Whether the judge reads its prompts and texts together too."""
    seed: int
    execution: Execution


class Found(NamedTuple):
    """What came out for one condition, or for several."""

    changed: pl.DataFrame
    """How much bias changed from vanilla."""
    full: pl.DataFrame
    """Distances of prompts and texts together."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """How conditions are measured: how many at once, and with what."""

    jobs: int
    seed: int
    execution: Execution

    def measured(
        self, runs: Mapping[str, Run], whole: Sequence[str], folder: Path, progress: Progress
    ) -> Found:
        """What every run changes, and the whole texts of those that are named."""
        tasks = [
            Task(name, run.path, runs[VANILLA].path, folder, name in whole, self.seed, self.execution)
            for name, run in runs.items()
        ]
        found = in_processes(measure, tasks, jobs=self.jobs, progress=progress, label="changes")
        empty = pl.DataFrame(schema={**CHANGES, "condition": pl.String(), "reads": pl.String()})
        return Found(
            pl.concat([empty, *(one.changed for one in found)]),
            pl.concat([pl.DataFrame(schema=dict(FULL)), *(one.full for one in found)]),
        )


def measure(task: Task) -> Found:
    """The two tables of a condition; vanilla changes nothing."""
    run, vanilla, name = Run.open(task.run), Run.open(task.vanilla), file_name(task.condition, "condition")
    key = [*run_key(run), task.seed]
    changed, full = pl.DataFrame(schema=dict(CHANGES)), pl.DataFrame(schema=dict(FULL))
    if task.condition != VANILLA:
        both = [*key, *run_key(vanilla)]
        changed = kept_table(
            task.folder / "changes", name, both, lambda: changes(vanilla, run, seed=task.seed)
        )
    if task.is_read_whole:
        full = kept_table(
            task.folder / "full",
            name,
            key,
            lambda: with_prompts(run, task.condition, task.seed, task.execution),
        )
    known = {"condition": task.condition, "reads": "continuation"}
    return Found(changed.with_columns(pl.lit(value).alias(at) for at, value in known.items()), full)
