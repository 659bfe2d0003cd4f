"""``gate``: does a run keep its limits?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Unpack

from evenhand.api.result_options import GateOptions
from evenhand.api.settings import resolve
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.records import Comparison
from evenhand.pipeline.changes import RunComparer
from evenhand.pipeline.gates import (
    Check,
    Rule,
    Verdict,
    chance_of_failing,
    check_changes,
    check_gaps,
    counted,
    reversals,
    with_needs,
)
from evenhand.pipeline.loading import check_measured, load
from evenhand.pipeline.side_by_side import side_by_side
from evenhand.report.gate import github, junit
from evenhand.store.atomic import write_text
from evenhand.store.run import Run, naming_run

FAILED = 1
DEFAULT_MARGIN = 0.05
"""How much wider a share's gap may become against a baseline run where no limit says otherwise: 5 points."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The answer of a gate: every check, and what follows from all of them."""

    run: Run
    checks: tuple[Check, ...]
    strict: bool
    level: float
    warnings: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """``fails`` where a check fails, else ``cannot tell`` where one cannot, else ``passes``."""
        counts = self.counts
        return "fails" if counts["fails"] else "cannot tell" if counts["cannot tell"] else "passes"

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many checks have each answer."""
        return counted(self.checks)

    @property
    def exit_code(self) -> int:
        """0, or 1 where the gate is not passed: one that cannot tell is passed unless it is strict."""
        fails = self.verdict == "fails" or (self.strict and self.verdict == "cannot tell")
        return FAILED if fails else 0

    @property
    def by_chance(self) -> float:
        """Checks that would fail by chance at most, if every gap stood exactly at its limit."""
        return chance_of_failing(self.checks, level=self.level)

    def junit(self) -> str:
        """The checks as JUnit XML."""
        return junit(self.checks, strict=self.strict, name=str(self.run.manifest["name"]))

    def annotations(self) -> list[str]:
        """The checks that do not pass as annotations of GitHub Actions."""
        return github(self.checks, strict=self.strict)


@checks_options
def gate(run: Run | Path | str, **options: Unpack[GateOptions]) -> Gate:
    """Whether the gaps of a run keep their limits: each check passes, fails, or cannot tell.

    Limits are written ``METRIC[.OUTPUT] AXIS[=GROUP] LIMIT``. ``max`` limits the size of a gap; ``worse``
    limits how much wider it may be than in ``baseline_run``, on the side where it is now. What is not given
    comes from ``[gate]`` of the settings file. A limit that no comparison falls under is an error.
    """
    with naming_run(run):
        return _gated(run, options)


def _gated(run: Run | Path | str, options: GateOptions) -> Gate:
    opened = run if isinstance(run, Run) else Run.open(run)
    check_measured(opened)
    settings = resolve({"config": options["config"]}).options
    earlier = options.get("baseline_run") or settings["baseline_run"]
    limits = _rules(options.get("max") or settings["max"], options.get("worse") or settings["worse"], earlier)
    level = float(opened.manifest["identity"].get("compare", {}).get("level", 0.95))
    names = [field.name for field in fields(Comparison)]
    rows = [Comparison(**row) for row in opened.table("comparisons").select(names).iter_rows(named=True)]
    checks = check_gaps([rule for rule in limits if rule.kind == "gap"], rows)
    warnings: tuple[str, ...] = ()
    loaded = None
    if earlier is not None:
        loaded = load(opened)
        joined = side_by_side([load(earlier if isinstance(earlier, Run) else Run.open(earlier)), loaded])
        changes = RunComparer(joined, level=level).changes()
        checks += check_changes([rule for rule in limits if rule.kind == "worse"], changes)
        warnings = (*joined.warnings, *reversals(checks))
    if any(check.verdict == "cannot tell" for check in checks):
        checks = with_needs(checks, loaded or load(opened), level=level)
    strict = options.get("strict")
    found = Gate(opened, tuple(checks), settings["strict"] if strict is None else strict, level, warnings)
    if path := options["junit"]:
        write_text(Path(path), found.junit())
    return found


def _rules(limits: Sequence[str], worse: Sequence[str], earlier: object) -> list[Rule]:
    if worse and earlier is None:
        raise InputError(
            f"--worse {worse[0]!r} was given without a baseline run",
            accepted="--worse together with --baseline-run RUN",
            todo="name the run of the last release",
        )
    if earlier is not None and not worse:
        worse = limits or (f"* * {DEFAULT_MARGIN}",)
    rules = [Rule.parse(text) for text in limits] + [Rule.parse(text, "worse") for text in worse]
    if rules:
        return rules
    raise InputError(
        "the gate has no limit",
        accepted="--max 'METRIC[.OUTPUT] AXIS LIMIT', [gate] in the settings file, or --baseline-run RUN",
        todo="say what the run must keep",
    )
