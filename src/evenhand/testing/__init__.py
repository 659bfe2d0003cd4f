"""For tests of plug-ins and of evenhand: a stub model, contract checks, limits. Not imported elsewhere."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evenhand.core.deprecation import resolve_former_names
from evenhand.core.printable import escape_commands
from evenhand.testing.contract_checks import ContractError, check_metric, check_model, check_suite
from evenhand.testing.stub import StubModel

if TYPE_CHECKING:
    from evenhand.audits.gate import GateResult
    from evenhand.store.run import Run

__all__ = [
    "ContractError",
    "InconclusiveWarning",
    "StubModel",
    "assert_gap",
    "check_metric",
    "check_model",
    "check_suite",
]


__getattr__ = resolve_former_names(__name__, {"CannotTellWarning": "InconclusiveWarning"})


class InconclusiveWarning(UserWarning):
    """The run is too small to decide whether it keeps a limit."""


def assert_gap(
    run: Run | Path | str,
    measure: str,
    *,
    below: float,
    axis: str = "*",
    group: str = "*",
    baseline_run: Run | Path | str | None = None,
    doubt: Literal["warn", "fail", "ignore"] = "warn",
) -> GateResult:
    """The checks of a gate that did not fail; raises AssertionError with those that did.

    ``measure`` is ``METRIC.OUTPUT``, or ``METRIC`` for its primary outputs. A check fails only if an interval
    excludes the limit; an inconclusive check raises an `InconclusiveWarning`, unless ``doubt`` changes that.
    With ``baseline_run`` the limit applies to the increase of a gap over that run.

    >>> assert_gap("runs/audit-builtin-1234", "sentiment.negative", axis="race", below=0.05)  # doctest: +SKIP
    """
    from evenhand.audits.gate import gate

    limit = f"{measure} {axis if group == '*' else f'{axis}={group}'} {below!r}"
    is_strict = doubt == "fail"
    if baseline_run is None:
        result = gate(run, max=[limit], strict=is_strict)
    else:
        result = gate(run, worse=[limit], baseline_run=baseline_run, strict=is_strict)
    unsure = [check for check in result.checks if check.verdict == "inconclusive"]
    broken = [check for check in result.checks if check.verdict == "fails" or (is_strict and check in unsure)]
    if failed := "\n".join(f"  {check.verdict}: {check.name}: {check.finding}" for check in broken):
        # Group names come from the data, and CI runners read what a test prints.
        raise AssertionError(escape_commands(f"the run does not keep its limit\n{failed}"))
    if unsure and doubt == "warn":
        first = f"{unsure[0].name}: {unsure[0].finding}"
        message = f"{len(unsure):,} of {len(result.checks):,} checks are inconclusive; first: {first}"
        warnings.warn(escape_commands(message), InconclusiveWarning, stacklevel=2)
    return result
