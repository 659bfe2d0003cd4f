"""The texts behind each bar of the report: the most extreme ones and some drawn by seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from evenhand.core.records import MetricInfo, Prompt
from evenhand.core.seeds import generator
from evenhand.pipeline.quantities import Axis
from evenhand.store.schemas import EXAMPLES

A_BAR = 40
"""Texts a bar at most: half of them extreme, half drawn. The rest is in the tables."""
A_RUN = 8_000
"""Texts a run at most, so that the report of 500 groups still opens at once."""


def examples(
    model: str,
    axes: Sequence[Axis],
    infos: Mapping[str, MetricInfo],
    scores: pl.LazyFrame,
    generations: pl.DataFrame,
    prompts: Mapping[str, Prompt],
    *,
    seed: int,
) -> pl.DataFrame:
    """For each axis, group and metric up to ``A_BAR`` texts with the score of the metric's first output."""
    cells = sum(len(axis.groups) for axis in axes) * max(len(infos), 1)
    share = max(2, min(A_BAR, A_RUN // max(cells, 1)) // 2)
    found: list[dict[str, object]] = []
    for spec, info in infos.items():
        output = info.outputs[0].name
        of_output = scores.filter((pl.col("metric") == spec) & (pl.col("output") == output))
        aligned = generations.select(text_id="id", text="text", prompt_id="prompt_id").join(
            of_output.select("text_id", "value", "label").collect(),
            on="text_id",
            how="left",
            maintain_order="left",
        )
        for axis in axes:
            for row in _of_axis(axis, aligned, spec, share, seed):
                prompt = prompts[str(row.pop("prompt_id"))]
                found.append(
                    {
                        **row,
                        "suite": axis.suite,
                        "model": model,
                        "axis": axis.name,
                        "metric": spec,
                        "output": output,
                        "prompt": prompt.text,
                    }
                )
    return pl.DataFrame(found, schema=dict(EXAMPLES))


def _of_axis(
    axis: Axis, aligned: pl.DataFrame, spec: str, share: int, seed: int
) -> Iterator[dict[str, object]]:
    values = aligned["value"].to_numpy()[axis.rows]
    for code, group in enumerate(axis.groups):
        places = np.flatnonzero((axis.codes == code) & ~np.isnan(values.astype(float)))
        rng = generator(seed, "examples", axis.suite, axis.name, group, spec)
        for why, place in _chosen(places, values[places], share, rng):
            row = aligned.row(int(axis.rows[place]), named=True)
            yield {**row, "group": group, "why": why}


def _chosen(
    places: np.ndarray, values: np.ndarray, share: int, rng: np.random.Generator
) -> Iterator[tuple[str, int]]:
    order = places[np.argsort(values, kind="stable")]
    ends = min(share // 2, order.size // 2)
    low, high = order[:ends], order[order.size - ends :][::-1]
    middle = order[ends : order.size - ends]
    drawn = rng.choice(middle, size=min(share, middle.size), replace=False) if middle.size else middle
    for why, part in (("lowest", low), ("highest", high), ("drawn", np.sort(drawn))):
        yield from ((why, int(place)) for place in part)
