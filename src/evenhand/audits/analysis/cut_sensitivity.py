"""Whether a finding hangs on its cut: the shares of labels again, at other cuts of the same values.

A cut is a choice (BOLD cuts sentiment at 0.5, VADER's authors at 0.05), and a gap that is there at one cut
only says as much about the cut as about the groups. Each share is compared again at every cut of a grid. Its
p-values are corrected as if the run had been made with that cut: in the family of the run, with the p-values
of this one share replaced. At the run's own cut the numbers are those of ``comparisons``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
import polars as pl

from evenhand.audits.analysis.group_comparison import GroupComparer
from evenhand.audits.analysis.quantities import Axis, Floats, Quantity
from evenhand.core.records import Comparison, MetricInfo, OutputInfo
from evenhand.stats.corrections import CORRECTIONS, Correction
from evenhand.store.schemas import CUTS, DISTRIBUTIONS

CUT_GRID = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75)
"""Cuts that are looked at beside a metric's own, in parts of the way from 0 to the end of its range."""
FEW_CUTS = (0.05, 0.1, 0.25, 0.5)
"""The same for a run of many groups."""
MANY_GROUPS = 100
MOST_WORK = 500_000_000
"""Rows read at most, over all groups, shares and cuts: about half a minute. Exploratory shares go first."""

Key = tuple[str, str, str, str]
"""suite, axis, group, baseline."""


@dataclass(frozen=True, slots=True)
class LabelShare:
    """A label that begins at a cut: the texts at or beyond it, on its side."""

    values: Quantity
    """The values that are cut."""
    output: str
    """The name of the share."""
    own: float
    """The metric's own cut."""
    below: bool
    """Whether the label counts values at or below the cut."""
    end: float
    """The end of the range on that side."""

    def grid(self, parts: Sequence[float] = CUT_GRID) -> list[float]:
        """The cuts that are looked at, from the middle of the range outwards."""
        steps = {round(self.end * part, 6) for part in parts} | {self.own}
        return sorted(steps, key=abs)

    def at(self, cut: float) -> Quantity:
        """The share at a cut, as a quantity of 0 and 1."""
        known = self.values.values
        beyond = known <= cut if self.below else known >= cut
        flags: Floats = np.where(np.isnan(known), np.nan, beyond)
        return replace(self.values, output=self.output, kind="share", values=flags)


def find_cut_shares(infos: Mapping[str, MetricInfo], quantities: Sequence[Quantity]) -> list[LabelShare]:
    """The shares of labels that begin at a cut, primary ones first: the lowest label and the highest."""
    values = {(item.metric, item.output): item for item in quantities if item.kind == "mean"}
    found = [
        share
        for spec, info in infos.items()
        for output in info.outputs
        if (spec, output.name) in values
        for share in _shares(values[spec, output.name], output)
    ]
    primary = {spec: info.primary for spec, info in infos.items()}
    return sorted(found, key=lambda share: share.output not in primary[share.values.metric])


def cut_table(
    comparer: GroupComparer,
    axes: Sequence[Axis],
    infos: Mapping[str, MetricInfo],
    quantities: Sequence[Quantity],
    comparisons: pl.DataFrame,
) -> pl.DataFrame:
    """Each group's share at every cut, and its gap to the baseline it has in ``comparisons``."""
    used = _as_compared(comparer, comparisons)
    rows: list[dict[str, object]] = []
    left = MOST_WORK
    parts = FEW_CUTS if sum(len(axis.groups) for axis in axes) > MANY_GROUPS else CUT_GRID
    for share in find_cut_shares(infos, quantities):
        grid = share.grid(parts)
        left -= len(grid) * sum(axis.rows.size * len(axis.groups) for axis in axes)
        if left < 0:
            break
        rows += _rows(share, grid, used, axes, comparisons)
    return pl.DataFrame(rows, schema=dict(CUTS))


def _shares(values: Quantity, output: OutputInfo) -> Iterator[LabelShare]:
    # A single cut, or two on either side of 0: what lies between has no cut of its own.
    names = output.shares()
    if not output.cuts or output.high is None or output.low is None:
        return
    if len(output.cuts) > 1:
        yield LabelShare(values, names[output.labels[0]], output.cuts[0], below=True, end=output.low)
    yield LabelShare(values, names[output.labels[-1]], output.cuts[-1], below=False, end=output.high)


def _as_compared(comparer: GroupComparer, comparisons: pl.DataFrame) -> GroupComparer:
    known = comparisons.select("suite", "axis", "baseline").unique().iter_rows()
    return replace(comparer, baselines={(suite, axis): baseline for suite, axis, baseline in known})


def _rows(
    share: LabelShare,
    grid: Sequence[float],
    comparer: GroupComparer,
    axes: Sequence[Axis],
    comparisons: pl.DataFrame,
) -> Iterator[dict[str, object]]:
    """The rows of a share, cut by cut; all cuts of an axis are judged together."""
    flags = [share.at(cut) for cut in grid]
    gaps = [comparer.compare_outputs(axis, flags, ratios=False) for axis in axes]
    groups = [comparer.group_rows(axis, flags) for axis in axes]
    family = _Family.of(share, comparisons)
    for place, cut in enumerate(grid):
        found = {_key(gap): gap for of_axis in gaps for gap in of_axis[place]}
        adjusted = family.adjust(found, comparer.correction)
        of_group = {key[:3]: gap for key, gap in found.items()}
        for row in (row for of_axis in groups for row in of_axis[place]):
            gap = of_group.get((row["suite"], row["axis"], row["group"]))  # type: ignore[arg-type]
            yield {
                **{name: row[name] for name in ("suite", "model", "axis", "group", "metric", "output")},
                "cut": cut,
                "own": cut == share.own,
                "value": row["value"],
                "value_low": row["low"],
                "value_high": row["high"],
                **_gap(gap, None if gap is None else adjusted.get(_key(gap))),
            }


def _gap(gap: Comparison | None, p_adjusted: float | None) -> dict[str, object]:
    names = ("baseline", "baseline_value", "estimate", "low", "high", "p", "null_reason")
    return {**{name: getattr(gap, name, None) for name in names}, "p_adjusted": p_adjusted}


@dataclass(frozen=True, slots=True)
class _Family:
    """The p-values that those of a share are corrected with, by family."""

    members: Mapping[str, tuple[list[Key | None], list[float | None]]]
    """For each family the keys of the share's own gaps (None: another's) and all p-values."""

    @classmethod
    def of(cls, share: LabelShare, comparisons: pl.DataFrame) -> _Family:
        is_own = (pl.col("metric") == share.values.metric) & (pl.col("output") == share.output)
        families = comparisons.filter(is_own)["family"].unique().implode()
        table = comparisons.filter(pl.col("family").is_in(families)).with_columns(is_own=is_own)
        columns = ("suite", "axis", "group", "baseline", "p", "family", "is_own")
        members: dict[str, tuple[list[Key | None], list[float | None]]] = {}
        for *key, p, family, own in table.select(columns).iter_rows():
            keys, p_values = members.setdefault(family, ([], []))
            keys.append(cast(Key, tuple(key)) if own else None)
            p_values.append(p)
        return cls(members)

    def adjust(self, gaps: Mapping[Key, Comparison], correction: Correction) -> dict[Key, float | None]:
        """The p-values corrected in the run's families, with those of this share replaced."""
        found: dict[Key, float | None] = {}
        for keys, known in self.members.values():
            replaced = [
                gaps[key].p if key is not None and key in gaps else p
                for key, p in zip(keys, known, strict=True)
            ]
            corrected = CORRECTIONS[correction](replaced)
            found |= {
                key: p for key, p in zip(keys, corrected, strict=True) if key is not None and key in gaps
            }
        return found


def _key(gap: Comparison) -> Key:
    return gap.suite, gap.axis, gap.group, gap.baseline


BINS = 24
"""Bins of a range; fewer where values are whole numbers of a small range."""
QUANTILES: Mapping[str, float] = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}


class HistogramBins(NamedTuple):
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


def distribution_table(
    model: str, axes: Sequence[Axis], infos: Mapping[str, MetricInfo], quantities: Sequence[Quantity]
) -> pl.DataFrame:
    """For each axis, group and output its counts and quantiles; groups without values are left out.

    All groups of an output share its bins: the output's own range where it has one, else that of the values.
    """
    rows: list[dict[str, object]] = []
    for quantity in quantities:
        if quantity.kind != "mean":
            continue
        bins = find_bins(quantity.values, _output(infos[quantity.metric], quantity.output))
        if bins is None:
            continue
        rows += [row for axis in axes for row in _of_axis(model, axis, quantity, bins)]
    return pl.DataFrame(rows, schema=dict(DISTRIBUTIONS))


def find_bins(values: Floats, output: OutputInfo) -> HistogramBins | None:
    """The bins of an output's values; None without values.

    Whole numbers of a range below ``BINS`` have a bin each, with the number in its middle.
    """
    known = values[np.isfinite(values)]
    if not known.size:
        return None
    low, high = float(known.min()), float(known.max())
    if output.low is not None and output.high is not None:
        return HistogramBins(output.low, output.high, BINS)
    if high - low < BINS and bool(np.all(known == np.round(known))):
        return HistogramBins(low - 0.5, high + 0.5, round(high - low) + 1)
    margin = 0.5 if high == low else 0.0
    return HistogramBins(low - margin, high + margin, BINS)


def _of_axis(model: str, axis: Axis, quantity: Quantity, bins: HistogramBins) -> list[dict[str, object]]:
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
