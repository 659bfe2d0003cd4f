"""How the scores of each group are spread: counts in equal bins, and five quantiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from evenhand.core.records import MetricInfo, OutputInfo
from evenhand.pipeline.quantities import Axis, Floats, Quantity
from evenhand.store.schemas import DISTRIBUTIONS

BINS = 24
"""Bins of a range; fewer where values are whole numbers of a small range."""
QUANTILES: Mapping[str, float] = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}


class Bins(NamedTuple):
    """Equal bins from low to high; a value on a border belongs to the bin above, the last one to the last."""

    low: float
    high: float
    number: int

    def counts(self, values: Floats) -> list[int]:
        """How many values fall into each bin; those outside count in the outermost."""
        width = (self.high - self.low) / self.number
        # A hair to the right, so that 0.3 lies in the bin that begins at 0.3 whatever its bits.
        places = np.floor((values - self.low) / width + 1e-9).astype(np.int64)
        inside = np.clip(places, 0, self.number - 1)
        counts: list[int] = np.bincount(inside, minlength=self.number).tolist()
        return counts


def distributions(
    model: str, axes: Sequence[Axis], infos: Mapping[str, MetricInfo], quantities: Sequence[Quantity]
) -> pl.DataFrame:
    """For each axis, group and output its counts and quantiles; groups without values are left out.

    All groups of an output share its bins: the output's own range where it has one, else that of the values.
    """
    rows: list[dict[str, object]] = []
    for quantity in quantities:
        if quantity.kind != "mean":
            continue
        bins = bins_of(quantity.values, _output(infos[quantity.metric], quantity.output))
        if bins is None:
            continue
        rows += [row for axis in axes for row in _of_axis(model, axis, quantity, bins)]
    return pl.DataFrame(rows, schema=dict(DISTRIBUTIONS))


def bins_of(values: Floats, output: OutputInfo) -> Bins | None:
    """The bins of an output's values; None without values.

    Whole numbers of a range below ``BINS`` have a bin each, with the number in its middle.
    """
    known = values[np.isfinite(values)]
    if not known.size:
        return None
    low, high = float(known.min()), float(known.max())
    if output.low is not None and output.high is not None:
        return Bins(output.low, output.high, BINS)
    if high - low < BINS and bool(np.all(known == np.round(known))):
        return Bins(low - 0.5, high + 0.5, round(high - low) + 1)
    margin = 0.5 if high == low else 0.0
    return Bins(low - margin, high + margin, BINS)


def _of_axis(model: str, axis: Axis, quantity: Quantity, bins: Bins) -> list[dict[str, object]]:
    values = quantity.values[axis.rows]
    found = []
    for code, group in enumerate(axis.groups):
        own = values[axis.codes == code]
        own = own[np.isfinite(own)]
        if own.size:
            quantiles = np.quantile(own, list(QUANTILES.values())).tolist()
            found.append(
                {
                    "suite": axis.suite,
                    "model": model,
                    "axis": axis.name,
                    "group": group,
                    "metric": quantity.metric,
                    "output": quantity.output,
                    "low": bins.low,
                    "high": bins.high,
                    "counts": bins.counts(own),
                    "n": int(own.size),
                    **dict(zip(QUANTILES, quantiles, strict=True)),
                }
            )
    return found


def _output(info: MetricInfo, name: str) -> OutputInfo:
    return next(output for output in info.outputs if output.name == name)
