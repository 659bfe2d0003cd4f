"""How far the base rate of each group lies from that of its axis, where a suite asks for it.

Indirect bias is the distance under prompts that name no side; direct bias, where prompts of both sides are
there, is the gap between the distances under either side's prompts (Liu et al. 2021, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from evenhand.audits.analysis.quantities import Flags, Floats, Quantity
from evenhand.core.records import Prompt
from evenhand.core.seeds import make_generator
from evenhand.stats.base_rates import (
    OVERALL,
    SideTexts,
    base_rate_distances,
    bias_change,
)
from evenhand.stats.corrections import benjamini_hochberg
from evenhand.store.schemas import DISTANCES

KIND = "kind"
"""The key of ``Prompt.meta`` that says whether a prompt names a side."""
Row = dict[str, object]
CHANGES: Mapping[str, pl.DataType] = {
    "attribute": pl.String(),
    "bias": pl.String(),
    "option": pl.String(),
    "estimate": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "n_keywords": pl.Int64(),
    "null_reason": pl.String(),
}
"""Columns of a table of changes: corrected bias after minus before, with its interval."""


@dataclass(frozen=True, slots=True)
class DistanceRequest:
    """What a suite asks for: metrics with their outputs, and the kinds of its prompts that name a side."""

    metrics: Mapping[str, Sequence[str]]
    sides: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AxisTexts:
    """The texts of one axis, by row: which kind of prompt they answer, their group and cluster."""

    rows: np.ndarray
    kinds: np.ndarray
    groups: np.ndarray
    clusters: np.ndarray

    def select(self, values: Floats, chosen: Flags) -> SideTexts:
        """What the statistics read: texts with a value."""
        rows = self.rows[chosen]
        known = np.isfinite(values[rows]).all(axis=1)
        flat = values[rows[known]]
        shaped = flat[:, 0] if flat.shape[1] == 1 else flat
        return shaped, self.groups[chosen][known], self.clusters[chosen][known]


def distance_table(
    model: str,
    wanted: Mapping[str, DistanceRequest],
    prompt_ids: Sequence[str],
    prompts: Mapping[str, Prompt],
    quantities: Sequence[Quantity],
    *,
    seed: int,
    level: float,
) -> pl.DataFrame:
    """The table ``distances``: for each axis and group, and overall, its distance and that of chance.

    Suites of one family (``political:liberal`` and ``political:conservative``) are read together.
    """
    by_family: dict[str, DistanceRequest] = {_family(suite): asked for suite, asked in wanted.items()}
    rows: list[Row] = []
    for (family, axis), texts in _texts(prompt_ids, prompts, by_family).items():
        for metric, values in _values(by_family[family], quantities):
            for bias, sets in _by_kind(texts, values, by_family[family].sides).items():
                rng = make_generator(seed, "distances", family, axis, metric, bias)
                distances = base_rate_distances(sets, rng=rng, level=level)
                adjusted = iter(benjamini_hochberg([distances[key].p for key in distances if key != OVERALL]))
                known = {"suite": family, "model": model, "metric": metric, "attribute": axis, "bias": bias}
                rows += [
                    {
                        **known,
                        "option": option,
                        **asdict(distance),
                        "p_adjusted": None if option == OVERALL else next(adjusted),
                    }
                    for option, distance in distances.items()
                ]
    return pl.DataFrame(rows, schema=dict(DISTANCES))


class JudgedTexts(NamedTuple):
    """The texts of a run by their prompts, and one number a text; NaN where there is none."""

    prompt_ids: Sequence[str]
    values: Floats


def distance_changes(
    before: JudgedTexts,
    after: JudgedTexts,
    wanted: DistanceRequest,
    prompts: Mapping[str, Prompt],
    *,
    seed: int,
    level: float,
) -> pl.DataFrame:
    """For each axis, bias and group, and overall, how much the bias beyond chance changed; see ``CHANGES``.

    Both runs answer the same prompts of one family of suites.
    """
    families = {_family(prompts[at].suite): wanted for at in before.prompt_ids}
    two = [(_texts(run.prompt_ids, prompts, families), run.values[:, None]) for run in (before, after)]
    rows: list[Row] = []
    for family, axis in two[0][0].keys() & two[1][0].keys():
        parts = [_by_kind(texts[family, axis], values, wanted.sides) for texts, values in two]
        for bias in parts[0].keys() & parts[1].keys():
            rng = make_generator(seed, "distance changes", family, axis, bias)
            changes = bias_change(parts[0][bias], parts[1][bias], rng=rng, level=level)
            known = {"attribute": axis, "bias": bias}
            rows += [{**known, "option": option, **asdict(change)} for option, change in changes.items()]
    return pl.DataFrame(rows, schema=dict(CHANGES)).sort("attribute", "bias", "option")


def _by_kind(texts: AxisTexts, values: Floats, sides: Sequence[str]) -> dict[str, list[SideTexts]]:
    """The sets of texts for each kind of bias that can be measured."""
    flags = {"indirect": [~np.isin(texts.kinds, list(sides))]}
    if len(sides) == 2:
        flags["direct"] = [texts.kinds == side for side in sides]
    return {
        bias: [texts.select(values, chosen) for chosen in sets]
        for bias, sets in flags.items()
        if all(chosen.any() for chosen in sets)
    }


def _texts(
    prompt_ids: Sequence[str], prompts: Mapping[str, Prompt], families: Mapping[str, DistanceRequest]
) -> dict[tuple[str, str], AxisTexts]:
    members: dict[tuple[str, str], list[tuple[int, str, str, str]]] = {}
    for row, prompt_id in enumerate(prompt_ids):
        prompt = prompts[prompt_id]
        family = _family(prompt.suite)
        for group in prompt.groups if family in families else ():
            member = (row, prompt.meta.get(KIND, ""), group.name, prompt.cluster)
            members.setdefault((family, group.axis), []).append(member)
    return {
        key: AxisTexts(*(np.array(column) for column in zip(*rows, strict=True)))
        for key, rows in members.items()
    }


def _values(asked: DistanceRequest, quantities: Sequence[Quantity]) -> Iterator[tuple[str, Floats]]:
    """For each metric asked for, also in a variant such as ``ideology=FOLDER``, texts x outputs."""
    for metric in dict.fromkeys(quantity.metric for quantity in quantities):
        outputs = asked.metrics.get(metric.partition("=")[0], ())
        of_metric = {quantity.output: quantity for quantity in quantities if quantity.metric == metric}
        if outputs and all(output in of_metric for output in outputs):
            yield metric, np.column_stack([of_metric[output].values for output in outputs])


def _family(suite: str) -> str:
    return suite.partition(":")[0]
