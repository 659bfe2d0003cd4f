"""For plug-in authors, tests and us: a stub model, contract checks, limits. No other folder imports it."""

from evenhand.core.deprecation import resolve_former_names
from evenhand.testing.contract_checks import ContractError, check_metric, check_model, check_suite
from evenhand.testing.gap_assertions import InconclusiveWarning, assert_gap
from evenhand.testing.stub import StubModel

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
