"""The pairs of a name: our own, or a file."""

from __future__ import annotations

from evenhand.suites.pairs.sets import PairSuite
from evenhand.suites.pairs.table_pairs import TablePairs
from evenhand.suites.pairs.template_pairs import TemplatePairs


def load(*, name: str = "") -> PairSuite:
    """Our own counterfactual sentences, or a user's: templates (TOML) or a table (JSONL, CSV, TSV, Parquet).

    Args:
        name: The file; without one our own.
    """
    is_table = name and not name.lower().endswith(".toml")
    return TablePairs(name=name) if is_table else TemplatePairs(name=name)
