"""Work on studies and labels that is ready to run: its input was read and checked, its plan can be shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import polars as pl

from evenhand.annotate.label_set import LabelSet
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan, finish_run
from evenhand.core.digests import Json
from evenhand.core.protocols import Progress
from evenhand.core.records import Estimate
from evenhand.run_options import Recording
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder
from evenhand.store.schemas import EVERY_SCHEMA

T = TypeVar("T")
Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class PreparedJob(Generic[T]):
    """Work that is ready to run."""

    title: str
    lines: tuple[str, ...]
    """Of the plan."""
    work: Callable[[Progress], T]
    notes: Sequence[str] = ()
    """Warnings to show with the plan."""

    def plan(self) -> RunPlan:
        """The plan to show before the job runs."""
        return RunPlan(self.title, self.lines)

    def run(self, progress: Progress = SILENT_PROGRESS) -> T:
        """Run the job and return its result."""
        return self.work(progress)


def label_job(  # noqa: PLR0913 (the parts of a run)
    labels: LabelSet,
    options: Recording,
    identity: Mapping[str, Json],
    compute: Callable[[RunFolder, Progress], None],
    *,
    title: str,
    name: str,
    command: str,
    lines: Sequence[str],
    finish: Callable[[Run], object] | None = None,
) -> PreparedJob[Run]:
    """A run over human labels, of which ``compute`` writes the tables; ``finish`` gets the finished run.

    ``name`` is part of the default folder, ``command`` the command to record if the options have none, and
    ``lines`` those of the plan after the questions.
    """
    path = Path(options["out"] or default_folder(str(identity["command"]), name, identity))

    def work(progress: Progress) -> Run:
        with RunFolder(path, identity=identity, fresh=options["fresh"]) as folder:
            folder.manifest.update(
                command=options["command"] or command,
                name=labels.name,
                execution={},
                warnings=list(labels.notes),
                ended=None,
            )
            compute(folder, progress)
            run = finish_run(folder, ("html", "json", "md"))
        if finish:
            finish(run)
        return run

    return PreparedJob(title, (*describe_questions(labels), *lines, f"folder   {path}"), work)


def describe_questions(labels: LabelSet) -> list[str]:
    """One line per question: ratings, texts, people, and the scale."""
    lines = []
    for question in labels.questions:
        rows = labels.of(question.name)
        lines.append(
            f"{question.name:<8} {rows.height:,} ratings of {rows['item_id'].n_unique():,} texts by "
            f"{rows['annotator'].n_unique():,} people: {', '.join(question.labels)}"
        )
    return [*lines, *(f"note     {note}" for note in labels.notes)]


def write_tables(folder: RunFolder, tables: Mapping[str, pl.DataFrame], record: dict[str, Json]) -> None:
    """Write the tables and record how many rows each has."""
    for name, table in tables.items():
        folder.write(name, table)
        record[name] = table.height


def build_tables(rows: Mapping[str, Sequence[Row]]) -> dict[str, pl.DataFrame]:
    """The tables of a run over human labels, by name."""
    return {name: pl.DataFrame(part, schema=dict(EVERY_SCHEMA[name])) for name, part in rows.items()}


def flatten_estimates(fields: Mapping[str, object]) -> Row:
    """A row of these fields; each estimate becomes four columns that begin with its name."""
    row: Row = {}
    for name, value in fields.items():
        row[name] = value
        if isinstance(value, Estimate):
            row |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
            row[f"{name}_null"] = value.null_reason
    return row
