"""The texts behind each bar of the report: the most extreme ones and some drawn by seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from evenhand.core.records import MetricInfo, Prompt
from evenhand.core.seeds import generator
from evenhand.pipeline.quantities import Axis, Ints
from evenhand.store.schemas import EXAMPLES

A_BAR = 40
"""Texts a bar at most: half of them extreme, half drawn. The rest is in the tables."""
A_RUN = 32_000
"""Texts a run at most, counted once a bar, so that the report of 500 groups still opens at once."""


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
    """For each axis, group and output with values up to ``A_BAR`` texts with their scores.

    The drawn ones are the same for every output of a group, as far as they have a score and are not extreme.
    """
    outputs = [(spec, output) for spec, info in infos.items() for output in shown_outputs(info)]
    share = _share(sum(len(axis.groups) for axis in axes) * len(outputs))
    drawn = {
        (place, code): _shuffled(axis, code, seed)
        for place, axis in enumerate(axes)
        for code in range(len(axis.groups))
    }
    found: list[pl.DataFrame] = []
    for spec, output in outputs:
        aligned = _aligned(spec, output, scores, generations, prompts)
        values = aligned["value"].to_numpy().astype(np.float64)
        for place, axis in enumerate(axes):
            for code, group in enumerate(axis.groups):
                whys, rows = _chosen(drawn[place, code], values, share)
                texts = aligned[rows].with_columns(
                    pl.Series("why", whys, dtype=pl.String),
                    suite=pl.lit(axis.suite),
                    model=pl.lit(model),
                    axis=pl.lit(axis.name),
                    group=pl.lit(group),
                    metric=pl.lit(spec),
                    output=pl.lit(output),
                )
                found.append(texts.select(list(EXAMPLES)))
    return pl.concat([pl.DataFrame(schema=dict(EXAMPLES)), *found])


def shown_outputs(info: MetricInfo) -> list[str]:
    """The outputs whose values order texts; the first one where all are mere labels."""
    valued = [output.name for output in info.outputs if output.kind != "label"]
    return valued or [info.outputs[0].name]


def _share(bars: int) -> int:
    return max(2, min(A_BAR, A_RUN // max(bars, 1)) // 2)


def _shuffled(axis: Axis, code: int, seed: int) -> Ints:
    """The texts of a group in an order that the seed alone decides."""
    rng = generator(seed, "examples", axis.suite, axis.name, axis.groups[code])
    rows: Ints = rng.permutation(axis.rows[axis.codes == code])
    return rows


def _aligned(
    spec: str, output: str, scores: pl.LazyFrame, generations: pl.DataFrame, prompts: Mapping[str, Prompt]
) -> pl.DataFrame:
    of_output = scores.filter((pl.col("metric") == spec) & (pl.col("output") == output))
    texts = generations.select(
        pl.col("id").alias("text_id"),
        "text",
        pl.col("prompt_id")
        .replace_strict({key: prompt.text for key, prompt in prompts.items()}, return_dtype=pl.String)
        .alias("prompt"),
    )
    values = of_output.select("text_id", "value", "label").collect()
    return texts.join(values, on="text_id", how="left", maintain_order="left")


def _chosen(rows: Ints, values: np.ndarray, share: int) -> tuple[list[str], list[int]]:
    """Why each text is shown, and its row: lowest first, then highest first, then as drawn."""
    known = rows[~np.isnan(values[rows])]
    # Ties are broken by the order of the texts, not by the draw.
    order = np.sort(known)
    order = order[np.argsort(values[order], kind="stable")]
    ends = min(share // 2, order.size // 2)
    low, high = order[:ends], order[order.size - ends :][::-1]
    middle = known[~np.isin(known, np.concatenate([low, high]))]
    parts: Iterator[tuple[str, Ints]] = iter(
        (("lowest", low), ("highest", high), ("drawn", np.sort(middle[:share])))
    )
    chosen = [(why, int(row)) for why, part in parts for row in part]
    return [why for why, _ in chosen], [row for _, row in chosen]
