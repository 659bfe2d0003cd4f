"""For plug-in authors and for us: a stub model and contract checks. Nothing in evenhand imports it."""

from evenhand.testing.checks import ContractError, check_metric, check_model, check_suite
from evenhand.testing.stub import StubModel

__all__ = ["ContractError", "StubModel", "check_metric", "check_model", "check_suite"]
