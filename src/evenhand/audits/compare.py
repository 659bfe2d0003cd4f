"""``compare``: runs side by side, paired by prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Unpack

from evenhand.audits.analysis.paired_runs import PairedRuns, pair_runs
from evenhand.audits.analysis.run_changes import RunComparer
from evenhand.audits.loaded_run import (
    COMMANDS,
    PROBE,
    check_finished,
    comparable_name,
    load_run,
    read_command,
)
from evenhand.audits.measurement import finish_run
from evenhand.audits.result_options import CompareOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunJob, RunPlan
from evenhand.config import resolve_config
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.store.run import Run, run_errors
from evenhand.store.run_folder import RunFolder, default_folder, run_stage

STAGE = "compare"


@dataclass(frozen=True, slots=True)
class CompareJob:
    """Runs that are ready to be compared; the first one is the reference."""

    runs: tuple[Run, ...]
    level: float
    correction: Literal["bh", "holm"]
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        first, *others = (f"{run.manifest['name']} ({run.path})" for run in self.runs)
        return RunPlan(
            title=f"compare {len(self.runs)} runs",
            lines=(
                f"reference {first}",
                f"against   {', '.join(others)}",
                f"folder    {self.folder}",
            ),
            folder=self.folder,
        )

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Pair, compare and report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            with run_errors(*self.runs), run_stage(folder, STAGE) as record, progress.step("comparing", None):
                joined = pair_runs([load_run(run) for run in self.runs])
                self._begin(folder, joined)
                comparer = RunComparer(joined, level=self.level, correction=self.correction)
                tables = comparer.tables()
                for name, table in tables.items():
                    folder.write(name, table)
                record["comparisons"] = tables["changes"].height
            return finish_run(folder)

    def _begin(self, folder: RunFolder, joined: PairedRuns) -> None:
        reference = self.runs[0].manifest
        used = {quantity.metric for quantity in joined.quantities}
        folder.manifest.update(
            command=self.command,
            name=" vs ".join(joined.names),
            execution={},
            metrics={
                name: card
                for spec, card in reference["metrics"].items()
                if (name := comparable_name(self.runs[0], spec)) in used
            },
            suites={suite: _suite(reference, suite) for suite in joined.paired},
            runs=[
                {"name": name, "path": str(run.path), "command": run.manifest["command"]}
                for name, run in zip(joined.names, self.runs, strict=True)
            ],
            paired=dict(joined.paired),
            warnings=list(joined.warnings),
            ended=None,
        )


@checks_options
def compare(
    *runs: Run | Path | str, progress: Progress = SILENT_PROGRESS, **options: Unpack[CompareOptions]
) -> Run:
    """The finished comparison of two or more runs; the first one is the reference.

    Runs of ``audit`` and ``score`` are paired by prompt, runs of ``probe`` by sentence: gaps of gaps, changes
    of values, and a leaderboard on which runs that cannot be told apart are tied. A run of ``corpus`` and one
    of ``probe`` are set side by side: where the corpus and the classifier lean to the same group.
    """
    return prepare(*runs, **options).run(progress)


@checks_options
def prepare(*runs: Run | Path | str, **options: Unpack[CompareOptions]) -> RunJob:
    """A comparison with everything checked, so that ``plan`` can be shown before ``run``."""
    opened = tuple(run if isinstance(run, Run) else Run.open(run) for run in runs)
    with run_errors(*runs):
        return _build_job(opened, options)


def _build_job(opened: tuple[Run, ...], options: CompareOptions) -> RunJob:
    if len(opened) < 2:
        raise InputError(
            f"{len(opened)} run was given", expected="two runs or more", fix="name the runs to compare"
        )
    kinds = frozenset(_kind(run) for run in opened)
    if kinds not in _PREPARERS:
        raise InputError(
            f"runs of {' and '.join(sorted(kinds))} cannot be compared with each other",
            expected="; ".join(" and ".join(sorted(known)) for known in _PREPARERS),
            fix="name runs of one kind",
        )
    return _PREPARERS[kinds](opened, options)


def _kind(run: Run) -> str:
    """What a run is made of: ``texts``, or the command that made it."""
    command = read_command(run)
    return "texts" if command in COMMANDS else command


def _prepare_texts(runs: tuple[Run, ...], options: CompareOptions) -> RunJob:
    for run in runs:
        check_finished(run)
    settings = resolve_config(options).options
    identity: dict[str, Json] = {
        "command": "compare",
        "runs": [_identity(run) for run in runs],
        "compare": {"level": settings["level"], "correction": settings["correction"]},
    }
    names = "-".join(str(run.manifest["name"]) for run in runs)
    out = options["out"]
    return CompareJob(
        runs=runs,
        level=settings["level"],
        correction=settings["correction"],
        identity=identity,
        folder=Path(out) if out else default_folder("compare", names, identity),
        command=options["command"] or f"evenhand compare {' '.join(str(run.path) for run in runs)}",
        fresh=options["fresh"],
    )


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


def _suite(manifest: Mapping[str, Json], suite: str) -> Json:
    suites = manifest["suites"]
    assert isinstance(suites, Mapping)
    return suites.get(suite) or next(iter(suites.values()))


def _prepare_association(runs: tuple[Run, ...], options: CompareOptions) -> RunJob:
    from evenhand.audits.association import prepare as side_by_side_with_corpus

    return side_by_side_with_corpus(*runs, **options)


Preparer = Callable[[tuple[Run, ...], CompareOptions], RunJob]
_PREPARERS: dict[frozenset[str], Preparer] = {
    frozenset({"texts"}): _prepare_texts,
    frozenset({PROBE}): _prepare_texts,
    frozenset({"corpus", "probe"}): _prepare_association,
}
"""By the kinds of the runs: add a line for another kind."""
