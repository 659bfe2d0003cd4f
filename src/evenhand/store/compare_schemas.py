"""The tables of a comparison of runs: their columns."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

_TEXT, _REAL, _COUNT, _FLAG = pl.String(), pl.Float64(), pl.Int64(), pl.Boolean()

CHANGES: Mapping[str, pl.DataType] = {
    "suite": _TEXT,
    "run": _TEXT,
    "reference": _TEXT,
    "axis": _TEXT,
    "group": _TEXT,
    "baseline": _TEXT,
    "metric": _TEXT,
    "output": _TEXT,
    "effect": _TEXT,
    "estimate": _REAL,
    "low": _REAL,
    "high": _REAL,
    "p": _REAL,
    "p_adjusted": _REAL,
    "n": _COUNT,
    "n_reference": _COUNT,
    "n_clusters": _COUNT,
    "min_detectable": _REAL,
    "run_value": _REAL,
    "reference_value": _REAL,
    "widens": _REAL,
    "widens_low": _REAL,
    "widens_high": _REAL,
    "paired": _FLAG,
    "exploratory": _FLAG,
    "family": _TEXT,
    "family_size": _COUNT,
    "correction": _TEXT,
    "method": _TEXT,
    "null_reason": _TEXT,
}
"""A run against the reference: ``effect`` is ``gap`` (its gap minus the reference's) or ``value``.

``widens`` is the change of the gap's size, whatever its sign: positive where the group moved away from the
baseline. It is null for values.
"""

LEADERBOARD: Mapping[str, pl.DataType] = {
    "suite": _TEXT,
    "axis": _TEXT,
    "metric": _TEXT,
    "output": _TEXT,
    "run": _TEXT,
    "rank": _COUNT,
    "spread": _REAL,
    "low": _REAL,
    "high": _REAL,
    "tied_with": pl.List(_TEXT),
    "groups": _COUNT,
    "exploratory": _FLAG,
    "null_reason": _TEXT,
}
"""``spread`` is the typical gap between two groups, free of chance; ``rank`` 1 stands closest together."""

STANDINGS: Mapping[str, pl.DataType] = {
    "run": _TEXT,
    "rank": _COUNT,
    "narrower": _COUNT,
    "wider": _COUNT,
    "tied": _COUNT,
    "null": _COUNT,
}
"""Over all primary outputs and other runs: how often its groups stand closer together, wider, or tied."""

COMPARE_SCHEMAS: Mapping[str, Mapping[str, pl.DataType]] = {
    "changes": CHANGES,
    "leaderboard": LEADERBOARD,
    "standings": STANDINGS,
}
