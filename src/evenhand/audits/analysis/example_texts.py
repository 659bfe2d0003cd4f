"""The texts behind each bar of the report: the most extreme ones and some drawn by seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from evenhand.audits.analysis.quantities import Axis, Ints
from evenhand.core.protocols import ExplainsScores, Metric
from evenhand.core.records import MetricInfo, Prompt, Text
from evenhand.core.seeds import make_generator
from evenhand.store.schemas import EXAMPLES, EXPLANATIONS
from evenhand.text.rendering import MaskOption, render_text

PER_BAR = 40
"""Texts a bar at most: half of them extreme, half drawn. The rest is in the tables."""
PER_RUN = 32_000
"""Texts a run at most, counted once a bar, so that the report of 500 groups still opens at once."""


def example_table(
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
    outputs = [(spec, output) for spec, info in infos.items() for output in select_outputs(info)]
    share = _share(sum(len(axis.groups) for axis in axes) * len(outputs))
    drawn = {
        (place, code): _shuffle_rows(axis, code, seed)
        for place, axis in enumerate(axes)
        for code in range(len(axis.groups))
    }
    found: list[pl.DataFrame] = []
    for spec, output in outputs:
        aligned = _align_scores(spec, output, scores, generations, prompts)
        values = aligned["value"].to_numpy().astype(np.float64)
        for place, axis in enumerate(axes):
            for code, group in enumerate(axis.groups):
                whys, rows = _choose_examples(drawn[place, code], values, share)
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


def select_outputs(info: MetricInfo) -> list[str]:
    """The outputs whose values order texts; the first one where all are mere labels."""
    valued = [output.name for output in info.outputs if output.kind != "label"]
    return valued or [info.outputs[0].name]


def _share(bars: int) -> int:
    return max(2, min(PER_BAR, PER_RUN // max(bars, 1)) // 2)


def _shuffle_rows(axis: Axis, code: int, seed: int) -> Ints:
    """The texts of a group in an order that the seed alone decides."""
    rng = make_generator(seed, "examples", axis.suite, axis.name, axis.groups[code])
    rows: Ints = rng.permutation(axis.rows[axis.codes == code])
    return rows


def _align_scores(
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


def _choose_examples(rows: Ints, values: np.ndarray, share: int) -> tuple[list[str], list[int]]:
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


class _Read(NamedTuple):
    """A text with its prompt, as the generations table has it."""

    text: str
    prompt: Prompt


def explanation_table(
    metrics: Mapping[str, Metric],
    examples: pl.DataFrame,
    generations: pl.DataFrame,
    prompts: Mapping[str, Prompt],
    *,
    mask: MaskOption,
) -> pl.DataFrame:
    """For each example text of a metric that explains itself the string it read and its scored words.

    ``read`` has scope and masks applied, and all places count its characters.
    """
    wanted = examples.select("metric", "output", "text_id").unique(maintain_order=True)
    known = generations.select(pl.col("id").alias("text_id"), "text", "prompt_id")
    found = wanted.join(known, on="text_id", how="inner", maintain_order="left")
    rows = [
        row
        for spec, metric in metrics.items()
        if isinstance(metric, ExplainsScores)
        for row in _explain_texts(spec, metric, found.filter(pl.col("metric") == spec), prompts, mask)
    ]
    return pl.DataFrame(rows, schema=dict(EXPLANATIONS))


def _explain_texts(
    spec: str, metric: Metric, wanted: pl.DataFrame, prompts: Mapping[str, Prompt], mask: MaskOption
) -> Iterator[dict[str, object]]:
    assert isinstance(metric, ExplainsScores)
    for output, text_id, text, prompt_id in wanted.select(
        "output", "text_id", "text", "prompt_id"
    ).iter_rows():
        if text is None:
            continue
        read = _render_text(metric, _Read(text, prompts[prompt_id]), mask)
        words = [
            {"start": word.start, "end": word.end, "weight": float(word.weight)}
            for word in metric.explain(read, output)
        ]
        yield {
            "text_id": text_id,
            "metric": spec,
            "output": output,
            "read": read.text,
            "masks": [{"start": start, "end": end} for start, end in read.masks],
            "words": words,
        }


def _render_text(metric: Metric, read: _Read, mask: MaskOption) -> Text:
    return render_text(
        read.prompt.text,
        read.text,
        scope=metric.info.scope,
        masking=metric.info.masking,
        mentions=read.prompt.mentions,
        mask_option=mask,
    )
