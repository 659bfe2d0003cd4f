"""Shares of labels, and gaps between them, over the texts of BOLD; an entity is one cluster."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from evenhand.core.records import Estimate
from evenhand.stats import Difference, clustered_proportion, clustered_proportion_difference

Row = dict[str, object]


def share(texts: pl.DataFrame, column: str, label: str) -> Estimate:
    """The share of texts with a label, of those that have one."""
    known = texts.filter(pl.col(column).is_not_null())
    hits = (known[column] == label).to_numpy().astype(np.float64)
    missing = texts.height - known.height
    return clustered_proportion(hits, known["cluster"].to_numpy(), n_null=missing)


def gap(a: pl.DataFrame, b: pl.DataFrame, column: str, label: str) -> Difference:
    """The share of a label in ``a`` minus that in ``b``."""
    first, second = (texts.filter(pl.col(column).is_not_null()) for texts in (a, b))
    hits = [(texts[column] == label).to_numpy().astype(np.float64) for texts in (first, second)]
    return clustered_proportion_difference(
        hits[0], first["cluster"].to_numpy(), hits[1], second["cluster"].to_numpy()
    )


def cells(name: str, found: Estimate | Difference, *, scale: float = 1.0) -> Row:
    """The three cells of an estimate: ``name``, ``name_low`` and ``name_high``."""
    value = found.value if isinstance(found, Estimate) else found.estimate
    numbers = {name: value, f"{name}_low": found.low, f"{name}_high": found.high}
    return {key: None if number is None else number * scale for key, number in numbers.items()}


def by(texts: pl.DataFrame, *columns: str) -> Mapping[tuple[str, ...], pl.DataFrame]:
    """The texts of every combination of values, in the order they first occur."""
    return {
        tuple(str(part) for part in key): frame
        for key, frame in texts.partition_by(*columns, as_dict=True, maintain_order=True).items()
    }


def beside(printed: pl.DataFrame, ours: list[Row]) -> pl.DataFrame:
    """The paper's rows and then ours, in one table with the columns of both."""
    found = pl.DataFrame(ours, infer_schema_length=None)
    return pl.concat([printed, found], how="diagonal_relaxed").select(found.columns)
