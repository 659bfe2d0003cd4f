"""``gate``: does a run keep its limits?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack, get_args

from evenhand.audits.analysis.gate_rules import (
    GateCheck,
    GateRule,
    GateVerdict,
    add_required_growth,
    check_changes,
    check_gaps,
    reversals,
)
from evenhand.audits.analysis.run_changes import RunComparer
from evenhand.audits.loaded_run import check_has_comparisons, load_run, pair_runs, read_comparisons
from evenhand.audits.options import GateOptions
from evenhand.audits.report.gate_formats import to_annotations, to_junit
from evenhand.config import resolve_config
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.store.atomic_writes import write_text
from evenhand.store.run import Run, run_errors

FAILED = 1
DEFAULT_MARGIN = 0.05
"""How much wider a share's gap may become against a baseline run where no limit says otherwise: 5 points."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """The answer of a gate: every check, and what follows from all of them."""

    run: Run
    checks: tuple[GateCheck, ...]
    strict: bool
    level: float
    warnings: tuple[str, ...] = ()

    @property
    def verdict(self) -> GateVerdict:
        """``fails`` where a check fails, else ``cannot tell`` where one cannot, else ``passes``."""
        counts = self.counts
        return "fails" if counts["fails"] else "cannot tell" if counts["cannot tell"] else "passes"

    @property
    def counts(self) -> Mapping[GateVerdict, int]:
        """How many checks have each answer."""
        counts = Counter(check.verdict for check in self.checks)
        return {verdict: counts[verdict] for verdict in get_args(GateVerdict)}

    @property
    def exit_code(self) -> int:
        """0, or 1 where the gate is not passed: one that cannot tell is passed unless it is strict."""
        fails = self.verdict == "fails" or (self.strict and self.verdict == "cannot tell")
        return FAILED if fails else 0

    @property
    def expected_false_failures(self) -> float:
        """Checks that would fail by chance at most, if every gap stood exactly at its limit."""
        return (1 - self.level) / 2 * len(self.checks)

    def junit(self) -> str:
        """The checks as JUnit XML."""
        return to_junit(self.checks, strict=self.strict, name=str(self.run.manifest["name"]))

    def annotations(self) -> list[str]:
        """The checks that do not pass as annotations of GitHub Actions."""
        return to_annotations(self.checks, strict=self.strict)


@checks_options
def gate(run: Run | Path | str, **options: Unpack[GateOptions]) -> GateResult:
    """Whether the gaps of a run keep their limits: each check passes, fails, or cannot tell.

    Limits are written ``METRIC[.OUTPUT] AXIS[=GROUP] LIMIT``. ``max`` limits the size of a gap; ``worse``
    limits how much wider it may be than in ``baseline_run``, on its present side. What is not given
    comes from ``[gate]`` of the settings file. A limit that no comparison falls under is an error.
    """
    with run_errors(run):
        return _run_gate(run, options)


def _run_gate(run: Run | Path | str, options: GateOptions) -> GateResult:
    opened = run if isinstance(run, Run) else Run.open(run)
    check_has_comparisons(opened)
    settings = resolve_config({"config": options["config"]}).options
    earlier = options.get("baseline_run") or settings["baseline_run"]
    rules = _rules(options.get("max") or settings["max"], options.get("worse") or settings["worse"], earlier)
    level = float(opened.manifest["identity"].get("compare", {}).get("level", 0.95))
    checks = check_gaps([rule for rule in rules if rule.kind == "gap"], read_comparisons(opened))
    warnings: tuple[str, ...] = ()
    loaded = None
    if earlier is not None:
        loaded = load_run(opened)
        joined = pair_runs([load_run(earlier if isinstance(earlier, Run) else Run.open(earlier)), loaded])
        changes = RunComparer(joined, level=level).list_changes()
        checks += check_changes([rule for rule in rules if rule.kind == "worse"], changes)
        warnings = (*joined.warnings, *reversals(checks))
    if any(check.verdict == "cannot tell" for check in checks):
        checks = add_required_growth(checks, loaded or load_run(opened), level=level)
    strict = settings["strict"] if options.get("strict") is None else options["strict"]
    result = GateResult(opened, tuple(checks), strict, level, warnings)
    if path := options["junit"]:
        write_text(Path(path), result.junit())
    return result


def _rules(limits: Sequence[str], worse: Sequence[str], earlier: object) -> list[GateRule]:
    if worse and earlier is None:
        raise InputError(
            f"--worse {worse[0]!r} was given without a baseline run",
            expected="--worse together with --baseline-run RUN",
            fix="name the run of the last release",
        )
    if earlier is not None and not worse:
        worse = limits or (f"* * {DEFAULT_MARGIN}",)
    if not limits and not worse:
        raise InputError(
            "the gate has no limit",
            expected="--max 'METRIC[.OUTPUT] AXIS LIMIT', [gate] in the settings file, or --baseline-run RUN",
            fix="say what the run must keep",
        )
    rules = [GateRule.parse(text) for text in limits] + [GateRule.parse(text, "worse") for text in worse]
    return list(dict.fromkeys(rules))
