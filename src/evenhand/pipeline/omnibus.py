"""One answer an axis and output: do its groups differ at all?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from evenhand.pipeline.comparison import Comparer
from evenhand.pipeline.families import by_family
from evenhand.pipeline.quantities import Axis, Quantity
from evenhand.stats.contrasts import clustered_omnibus
from evenhand.stats.hypothesis_tests import chi_square
from evenhand.store.schemas import OMNIBUS


def omnibus(comparer: Comparer, axes: Iterable[Axis], quantities: Sequence[Quantity]) -> pl.DataFrame:
    """The table of omnibus tests, corrected as families apart from the single comparisons."""
    rows = [
        _row(comparer, axis, quantity) for axis in axes if len(axis.groups) > 1 for quantity in quantities
    ]
    families = [_family(row) for row in rows]
    p_values = [row["p"] if isinstance(row["p"], float) else None for row in rows]
    adjusted = by_family(p_values, families, comparer.correction)
    for row, p in zip(rows, adjusted, strict=True):
        row.update(p_adjusted=p.adjusted, family=p.family, family_size=p.size)
    return pl.DataFrame(rows, schema=dict(OMNIBUS))


def _family(row: dict[str, object]) -> str:
    role = "exploratory omnibus" if row["exploratory"] else "omnibus"
    return f"{row['suite']} / {row['model']} / {role}"


def _row(comparer: Comparer, axis: Axis, quantity: Quantity) -> dict[str, object]:
    values = quantity.values[axis.rows]
    known = ~np.isnan(values)
    codes, clusters = axis.codes[known], axis.clusters[known]
    found = _chi_square if comparer.test == "chi-square" and quantity.kind == "share" else _clustered
    return {
        "suite": axis.suite,
        "model": comparer.model,
        "axis": axis.name,
        "metric": quantity.metric,
        "output": quantity.output,
        "exploratory": comparer.is_exploratory(axis, quantity),
        "correction": comparer.correction,
        **found(values[known], codes, clusters),
    }


def _clustered(values: np.ndarray, codes: np.ndarray, clusters: np.ndarray) -> dict[str, object]:
    found = clustered_omnibus(values, codes, clusters)
    return {
        "statistic": found.statistic,
        "df_between": found.df_between,
        "df_error": found.df_error,
        "p": found.p,
        "n": found.n,
        "n_clusters": found.n_clusters,
        "n_groups": found.n_groups,
        "groups_left_out": found.groups_left_out,
        "method": found.method,
        "null_reason": found.null_reason,
    }


def _chi_square(values: np.ndarray, codes: np.ndarray, clusters: np.ndarray) -> dict[str, object]:
    """The papers' test of groups by label: every text counts as independent."""
    size = int(codes.max(initial=-1)) + 1
    yes = np.bincount(codes, weights=values, minlength=size)
    counts = np.stack([yes, np.bincount(codes, minlength=size) - yes], axis=1)
    found = chi_square(counts)
    return {
        "statistic": found.statistic,
        "df_between": found.df,
        "df_error": None,
        "p": found.p,
        "n": found.n,
        "n_clusters": np.unique(clusters).size,
        "n_groups": int(np.count_nonzero(counts.sum(axis=1))),
        "groups_left_out": 0,
        "method": found.method if found.warning is None else f"{found.method}; {found.warning}",
        "null_reason": found.null_reason,
    }
