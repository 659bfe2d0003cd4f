"""What is compared: the means of a metric's outputs and the shares of its labels, as arrays over texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from evenhand.core.records import ALL, REST, MetricInfo, Prompt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Row = dict[str, Any]
"""A row of a table, by column; columns that it lacks are null."""
UNKNOWN = "not scored"
"""The reason of a text that has no score, where the metric gave none."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number per text; NaN marks a null, and never leaves this package."""

    metric: str
    output: str
    kind: Literal["share", "mean"]
    values: Floats
    is_primary: bool
    reasons: pl.Series | None = None
    """For each text why it has no value; null where the metric gives no reason."""

    def nulls(self, rows: Ints) -> Counter[str]:
        """How many of these texts have no value, by reason."""
        empty = rows[np.isnan(self.values[rows])]
        if self.reasons is None:
            return Counter({UNKNOWN: empty.size} if empty.size else {})
        return Counter(self.reasons.gather(empty).fill_null(UNKNOWN).to_list())


@dataclass(frozen=True, slots=True)
class Axis:
    """The texts of one axis of one suite."""

    suite: str
    name: str
    groups: tuple[str, ...]
    rows: Ints
    """Which texts belong to the axis."""
    codes: Ints
    """For each of these rows the number of its group."""
    clusters: Ints
    """For each of these rows the number of its cluster."""
    baseline: str = REST
    """The group that the others are compared with, or ``(rest)`` or ``(all)``."""
    exploratory: Collection[str] = ()
    """The metrics that are outside the primary family here."""

    def is_exploratory(self, quantity: Quantity) -> bool:
        """Whether comparisons of this output on this axis lie outside the primary family."""
        return not quantity.is_primary or quantity.metric in self.exploratory

    def select(self, chosen: Flags) -> Axis:
        """The axis with some of its rows; its groups stay, also those that lose every row."""
        return replace(self, rows=self.rows[chosen], codes=self.codes[chosen], clusters=self.clusters[chosen])


def name_columns(axis: Axis, quantity: Quantity) -> Row:
    """The columns that say which texts and which of their numbers a row is about."""
    return {"suite": axis.suite, "axis": axis.name, "metric": quantity.metric, "output": quantity.output}


def read_axes(
    prompt_ids: Sequence[str],
    prompts: Mapping[str, Prompt],
    suites: Mapping[str, Mapping[str, Any]] | None = None,
    baselines: Mapping[str, str] | None = None,
) -> list[Axis]:
    """Every axis of every suite, in the order the prompts name them; a text of two groups is there twice.

    ``suites``, described as a manifest does, declare baselines and exploratory metrics; ``baselines``, by
    axis, are the user's.
    """
    clusters: dict[tuple[str, str], int] = {}
    members: list[tuple[str, str, str, str, int]] = []
    # Prompts first, then texts as columns: a million texts have far fewer prompts, or one each at most.
    for key in dict.fromkeys(prompt_ids):
        prompt = prompts[key]
        cluster = clusters.setdefault((prompt.suite, prompt.cluster), len(clusters))
        members += [(key, prompt.suite, group.axis, group.name, cluster) for group in prompt.groups]
    names = dict.fromkeys(("prompt_id", "suite", "axis", "group"), pl.String())
    of_prompt = pl.DataFrame(members, {**names, "cluster": pl.Int64()}, orient="row")
    texts = pl.Series("prompt_id", prompt_ids, dtype=pl.String).to_frame().with_row_index("row")
    axes = []
    joined = texts.cast({"row": pl.Int64}).join(of_prompt, on="prompt_id", maintain_order="left_right")
    for part in joined.partition_by("suite", "axis", maintain_order=True):
        groups = part["group"].unique().sort()
        codes = part["group"].replace_strict(groups, range(len(groups)), return_dtype=pl.Int64)
        rows, of_row = part["row"].to_numpy(), part["cluster"].to_numpy()
        axis = Axis(part["suite"][0], part["axis"][0], tuple(groups), rows, codes.to_numpy(), of_row)
        card = (suites or {}).get(axis.suite, {})
        declared = {**card.get("baselines", {}), **(baselines or {})}
        exploratory = card.get("exploratory", {}).get(axis.name, ())
        axes.append(replace(axis, baseline=declared.get(axis.name, REST), exploratory=exploratory))
    return axes


def read_quantities(
    infos: Mapping[str, MetricInfo], scores: pl.LazyFrame, text_ids: pl.Series
) -> Iterator[Quantity]:
    """The quantities of every metric, by its spec, aligned with ``text_ids``."""
    frame = pl.DataFrame({"text_id": text_ids})
    for spec, info in infos.items():
        of_metric = scores.filter(pl.col("metric") == spec).collect()
        for output in info.outputs:
            columns = ("text_id", "value", "label", "null_reason")
            of_output = of_metric.filter(pl.col("output") == output.name).select(columns)
            aligned = frame.join(of_output, on="text_id", how="left", maintain_order="left")
            reasons, labels = aligned["null_reason"], aligned["label"]
            if output.kind != "label":
                values = aligned["value"].to_numpy().astype(np.float64)
                yield Quantity(spec, output.name, "mean", values, output.name in info.primary, reasons)
            for label, name in output.shares().items():
                shares = (labels == label).cast(pl.Float64).to_numpy().astype(np.float64)
                yield Quantity(spec, name, "share", shares, name in info.primary, reasons)


MOST_GROUPS = 100
"""Crossed groups beyond which an axis is left out: each would rest on a handful of texts."""
CROSS_SEPARATOR = " x "


def cross_axes(axes: Sequence[Axis], metrics: Collection[str] = ()) -> tuple[list[Axis], list[str]]:
    """Every two axes of one suite that cross, exploratory on all metrics, and a warning for each left out.

    Their baseline is that of both axes, else ``(rest)``.
    """
    crossed: list[Axis] = []
    left_out: list[str] = []
    # A text that belongs to two groups of an axis has no one crossed group.
    single = [axis for axis in axes if np.unique(axis.rows).size == axis.rows.size]
    for first, second in combinations(single, 2):
        if first.suite != second.suite:
            continue
        rows, of_first, of_second = np.intersect1d(first.rows, second.rows, return_indices=True)
        key = first.codes[of_first] * len(second.groups) + second.codes[of_second]
        cells, codes = np.unique(key, return_inverse=True)
        # Without texts that speak of both, or where one axis decides the other, nothing crosses.
        if cells.size <= max(len(first.groups), len(second.groups)):
            continue
        name = f"{first.name}{CROSS_SEPARATOR}{second.name}"
        if cells.size > MOST_GROUPS:
            left_out.append(f"{name} has {cells.size:,} crossed groups and is left out")
            continue
        pairs = [divmod(int(cell), len(second.groups)) for cell in cells]
        groups = tuple(f"{first.groups[a]}{CROSS_SEPARATOR}{second.groups[b]}" for a, b in pairs)
        both = CROSS_SEPARATOR.join([first.baseline, second.baseline])
        is_rest = both not in groups or not {REST, ALL}.isdisjoint((first.baseline, second.baseline))
        of_rows = (rows, codes.astype(np.int64), first.clusters[of_first])
        crossed.append(Axis(first.suite, name, groups, *of_rows, REST if is_rest else both, metrics))
    return crossed, left_out
