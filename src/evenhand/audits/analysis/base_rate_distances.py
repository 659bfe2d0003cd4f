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

from evenhand.audits.analysis.group_comparison import GroupComparer
from evenhand.audits.analysis.quantities import Floats, Quantity, Row
from evenhand.core.records import Prompt
from evenhand.core.seeds import make_generator
from evenhand.stats.base_rates import OVERALL, SideTexts, base_rate_distances, bias_change
from evenhand.stats.corrections import benjamini_hochberg
from evenhand.store.schemas import DISTANCES

KIND = "kind"
"""The key of ``Prompt.meta`` that says whether a prompt names a side."""
CHANGES: Mapping[str, pl.DataType] = {
    **dict.fromkeys(("attribute", "bias", "option"), pl.String()),
    **dict.fromkeys(("estimate", "low", "high"), pl.Float64()),
    "n_keywords": pl.Int64(),
    "null_reason": pl.String(),
}
"""Columns of a table of changes: corrected bias after minus before, with its interval."""


@dataclass(frozen=True, slots=True)
class DistanceRequest:
    """What a suite asks for: metrics with their outputs, and the kinds of its prompts that name a side."""

    metrics: Mapping[str, Sequence[str]]
    sides: Sequence[str] = ()


def distance_table(
    comparer: GroupComparer,
    wanted: Mapping[str, DistanceRequest],
    prompt_ids: Sequence[str],
    prompts: Mapping[str, Prompt],
    quantities: Sequence[Quantity],
) -> pl.DataFrame:
    """The table ``distances``: for each axis and group, and overall, its distance and that of chance.

    Suites of one family (``political:liberal`` and ``political:conservative``) are read together.
    """
    by_family = {_family(suite): request for suite, request in wanted.items()}
    rows: list[Row] = []
    for (family, axis), texts in _list_texts(prompt_ids, prompts, by_family).items():
        for metric, values in _values(by_family[family], quantities):
            for bias, sets in _by_kind(texts, values, by_family[family].sides).items():
                rng = make_generator(comparer.seed, "distances", family, axis, metric, bias)
                distances = base_rate_distances(sets, rng=rng, level=comparer.level)
                # The mean over options is no test of its own.
                tested = [option for option in distances if option != OVERALL]
                adjusted = benjamini_hochberg([distances[option].p for option in tested])
                p_adjusted = dict(zip(tested, adjusted, strict=True))
                known = {"suite": family, "model": comparer.model, "metric": metric}
                known |= {"attribute": axis, "bias": bias}
                rows += [
                    {**known, "option": option, **asdict(item), "p_adjusted": p_adjusted.get(option)}
                    for option, item in distances.items()
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
    two = [(_list_texts(run.prompt_ids, prompts, families), run.values[:, None]) for run in (before, after)]
    rows: list[Row] = []
    for family, axis in two[0][0].keys() & two[1][0].keys():
        parts = [_by_kind(texts[family, axis], values, wanted.sides) for texts, values in two]
        for bias in parts[0].keys() & parts[1].keys():
            rng = make_generator(seed, "distance changes", family, axis, bias)
            changes = bias_change(parts[0][bias], parts[1][bias], rng=rng, level=level)
            known = {"attribute": axis, "bias": bias}
            rows += [{**known, "option": option, **asdict(change)} for option, change in changes.items()]
    return pl.DataFrame(rows, schema=dict(CHANGES)).sort("attribute", "bias", "option")


def _by_kind(texts: pl.DataFrame, values: Floats, sides: Sequence[str]) -> dict[str, list[SideTexts]]:
    """The sets of texts for each kind of bias that can be measured; of texts with a value."""
    chosen = {"indirect": [~pl.col("kind").is_in(list(sides))]}
    if len(sides) == 2:
        chosen["direct"] = [pl.col("kind") == side for side in sides]
    kinds: dict[str, list[SideTexts]] = {}
    for bias, conditions in chosen.items():
        parts = [texts.filter(condition) for condition in conditions]
        if any(part.is_empty() for part in parts):
            continue
        kinds[bias] = []
        for part in parts:
            of_text = values[part["row"]]
            known = np.isfinite(of_text).all(axis=1)
            numbers = of_text[known, 0] if of_text.shape[1] == 1 else of_text[known]
            kinds[bias].append((numbers, np.array(part["group"])[known], np.array(part["cluster"])[known]))
    return kinds


def _list_texts(
    prompt_ids: Sequence[str], prompts: Mapping[str, Prompt], families: Mapping[str, DistanceRequest]
) -> dict[tuple[str, str], pl.DataFrame]:
    """The texts of each axis: their row, which kind of prompt they answer, their group and cluster."""
    members = [
        (key, _family(prompt.suite), group.axis, prompt.meta.get(KIND, ""), group.name, prompt.cluster)
        for key, prompt in ((key, prompts[key]) for key in dict.fromkeys(prompt_ids))
        for group in prompt.groups
        if _family(prompt.suite) in families
    ]
    columns = ("prompt_id", "family", "axis", "kind", "group", "cluster")
    of_prompt = pl.DataFrame(members, dict.fromkeys(columns, pl.String), orient="row")
    texts = pl.Series("prompt_id", prompt_ids, dtype=pl.String).to_frame().with_row_index("row")
    joined = texts.join(of_prompt, on="prompt_id", maintain_order="left_right")
    parts = joined.partition_by("family", "axis", maintain_order=True, as_dict=True)
    return {(str(family), str(axis)): part for (family, axis), part in parts.items()}


def _values(asked: DistanceRequest, quantities: Sequence[Quantity]) -> Iterator[tuple[str, Floats]]:
    """For each metric asked for, also in a variant such as ``ideology=FOLDER``, texts x outputs."""
    for metric in dict.fromkeys(quantity.metric for quantity in quantities):
        outputs = asked.metrics.get(metric.partition("=")[0], ())
        of_metric = {quantity.output: quantity for quantity in quantities if quantity.metric == metric}
        if outputs and all(output in of_metric for output in outputs):
            yield metric, np.column_stack([of_metric[output].values for output in outputs])


def _family(suite: str) -> str:
    return suite.partition(":")[0]
