"""For plug-in authors, tests and us: a stub model, contract checks, limits. No other folder imports it."""

from evenhand.testing.checks import ContractError, check_metric, check_model, check_suite
from evenhand.testing.gaps import CannotTellWarning, assert_gap
from evenhand.testing.stub import StubModel

__all__ = [
    "CannotTellWarning",
    "ContractError",
    "StubModel",
    "assert_gap",
    "check_metric",
    "check_model",
    "check_suite",
]
