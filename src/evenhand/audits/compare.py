"""``compare``: runs side by side, paired by prompt."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Unpack

from evenhand.audits.analysis.paired_runs import pair_runs
from evenhand.audits.analysis.run_changes import RunComparer
from evenhand.audits.association import prepare as prepare_association
from evenhand.audits.loaded_run import (
    COMMANDS,
    PROBE,
    check_finished,
    comparable_name,
    load_run,
    read_command,
)
from evenhand.audits.options import CompareOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunJob
from evenhand.config import resolve_config
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.stats.corrections import Correction
from evenhand.store.run import Run, run_errors
from evenhand.store.run_folder import RunFolder, default_folder, run_stage

STAGE = "compare"


@checks_options
def compare(
    *runs: Run | Path | str, progress: Progress = SILENT_PROGRESS, **options: Unpack[CompareOptions]
) -> Run:
    """The finished comparison of two or more runs; the first one is the reference.

    Runs of ``audit`` and ``score`` are paired by prompt, runs of ``probe`` by sentence: gaps of gaps, changes
    of values, and a leaderboard on which runs without a significant difference are tied. A run of ``corpus``
    and one of ``probe`` show where the corpus and the classifier lean to the same group.
    """
    return prepare(*runs, **options).run(progress)


@checks_options
def prepare(*runs: Run | Path | str, **options: Unpack[CompareOptions]) -> RunJob:
    """A comparison with everything checked, so that ``plan`` can be shown before ``run``."""
    opened = tuple(run if isinstance(run, Run) else Run.open(run) for run in runs)
    with run_errors(*runs):
        if len(opened) < 2:
            raise InputError(
                f"{len(opened)} run was given", expected="two runs or more", fix="name the runs to compare"
            )
        commands = [read_command(run) for run in opened]
        kinds = frozenset("texts" if command in COMMANDS else command for command in commands)
        if kinds == {"corpus", "probe"}:
            return prepare_association(*opened, **options)
        if kinds not in _COMPARABLE:
            raise InputError(
                f"runs of {' and '.join(sorted(kinds))} cannot be compared with each other",
                expected="; ".join(" and ".join(sorted(known)) for known in _COMPARABLE),
                fix="name runs of one kind",
            )
        return _prepare_texts(opened, options)


_COMPARABLE = (frozenset({"texts"}), frozenset({PROBE}), frozenset({"corpus", "probe"}))
"""What the runs of a comparison are made of: texts, or the command that made them."""


def _prepare_texts(runs: tuple[Run, ...], options: CompareOptions) -> RunJob:
    for run in runs:
        check_finished(run)
    settings = resolve_config(options).options
    level, correction = settings["level"], settings["correction"]
    identity: dict[str, Json] = {
        "command": "compare",
        "runs": [_identity(run) for run in runs],
        "compare": {"level": level, "correction": correction},
    }
    names = "-".join(str(run.manifest["name"]) for run in runs)
    folder = Path(options["out"] or default_folder("compare", names, identity))
    command = options["command"] or f"evenhand compare {' '.join(str(run.path) for run in runs)}"
    first, *others = (f"{run.manifest['name']} ({run.path})" for run in runs)
    return RunJob(
        title=f"compare {len(runs)} runs",
        lines=(f"reference {first}", f"against   {', '.join(others)}", f"folder    {folder}"),
        identity=identity,
        folder=folder,
        fresh=options["fresh"],
        work=partial(_compare, runs, level, correction, command),
        sources=runs,
    )


def _compare(
    runs: tuple[Run, ...],
    level: float,
    correction: Correction,
    command: str,
    folder: RunFolder,
    progress: Progress,
) -> None:
    """Pair the runs and write the tables of their comparison."""
    with run_stage(folder, STAGE) as record, progress.step("comparing", None):
        joined = pair_runs([load_run(run) for run in runs])
        reference = runs[0].manifest
        metrics, suites = reference["metrics"], reference["suites"]
        used = {quantity.metric for quantity in joined.quantities}
        folder.manifest.update(
            command=command,
            name=" vs ".join(joined.names),
            execution={},
            metrics={
                name: card
                for spec, card in metrics.items()
                if (name := comparable_name(runs[0], spec)) in used
            },
            suites={suite: suites.get(suite) or next(iter(suites.values())) for suite in joined.paired},
            runs=[
                {"name": name, "path": str(run.path), "command": run.manifest["command"]}
                for name, run in zip(joined.names, runs, strict=True)
            ],
            paired=dict(joined.paired),
            warnings=list(joined.warnings),
            ended=None,
        )
        tables = RunComparer(joined, level=level, correction=correction).tables()
        for name, table in tables.items():
            folder.write(name, table)
        record["comparisons"] = tables["changes"].height


def _identity(run: Run) -> Json:
    """Which run it is: its identity, how far it has grown, and what was measured."""
    manifest = run.manifest
    metrics: dict[str, Json] = {
        spec: [card["version"], card["weights"], card["options"]]
        for spec, card in manifest["metrics"].items()
    }
    return {
        "name": manifest["name"],
        "digest": digest([manifest["identity"], manifest["growth"], metrics]),
    }
