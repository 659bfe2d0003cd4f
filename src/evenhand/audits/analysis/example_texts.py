"""The texts of each bar in the report: the most extreme ones and some drawn by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl

from evenhand.audits.analysis.quantities import Axis, Ints
from evenhand.core.protocols import ExplainsScores, Metric
from evenhand.core.records import MetricInfo, Prompt
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
    """For each axis, group and output with values up to ``PER_BAR`` texts with their scores.

    The drawn ones are the same for every output of a group, as far as they have a score and are not extreme.
    """
    outputs = []
    for spec, info in infos.items():
        # The outputs whose values order texts; the first one where all are mere labels.
        valued = [output.name for output in info.outputs if output.kind != "label"]
        outputs += [(spec, name) for name in valued or [info.outputs[0].name]]
    bars = [(axis, code, group) for axis in axes for code, group in enumerate(axis.groups)]
    # The texts of each group in an order that the seed alone decides.
    drawn: list[Ints] = [
        make_generator(seed, "examples", axis.suite, axis.name, group).permutation(
            axis.rows[axis.codes == code]
        )
        for axis, code, group in bars
    ]
    # Texts of each kind: the lowest and highest ones together, and the drawn ones.
    share = max(2, min(PER_BAR, PER_RUN // max(len(bars) * len(outputs), 1)) // 2)
    prompt_texts = {key: prompt.text for key, prompt in prompts.items()}
    texts = generations.select(
        pl.col("id").alias("text_id"),
        "text",
        pl.col("prompt_id").replace_strict(prompt_texts, return_dtype=pl.String).alias("prompt"),
    )
    tables = [pl.DataFrame(schema=dict(EXAMPLES))]
    for spec, output in outputs:
        of_output = scores.filter((pl.col("metric") == spec) & (pl.col("output") == output))
        scored = of_output.select("text_id", "value", "label").collect()
        aligned = texts.join(scored, on="text_id", how="left", maintain_order="left")
        values = aligned["value"].to_numpy().astype(np.float64)
        for (axis, _, group), shuffled in zip(bars, drawn, strict=True):
            reasons, rows = _choose_examples(shuffled, values, share)
            place = {"suite": axis.suite, "model": model, "axis": axis.name, "group": group}
            place |= {"metric": spec, "output": output}
            known = {name: pl.lit(value) for name, value in place.items()}
            table = aligned[rows].with_columns(pl.Series("why", reasons, dtype=pl.String), **known)
            tables.append(table.select(list(EXAMPLES)))
    return pl.concat(tables)


def _choose_examples(rows: Ints, values: np.ndarray, share: int) -> tuple[list[str], list[int]]:
    """Why each text is shown, and its row: lowest first, then highest first, then as drawn."""
    known = rows[~np.isnan(values[rows])]
    # Ties are broken by the order of the texts, not by the draw.
    order = np.sort(known)
    order = order[np.argsort(values[order], kind="stable")]
    ends = min(share // 2, order.size // 2)
    low, high = order[:ends], order[order.size - ends :][::-1]
    drawn = np.sort(known[~np.isin(known, np.concatenate([low, high]))][:share])
    reasons = ["lowest"] * low.size + ["highest"] * high.size + ["drawn"] * drawn.size
    return reasons, np.concatenate([low, high, drawn]).tolist()


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
    known = generations.select(pl.col("id").alias("text_id"), "text", "prompt_id").drop_nulls("text")
    texts = wanted.join(known, on="text_id", how="inner", maintain_order="left")
    rows: list[dict[str, object]] = []
    for spec, metric in metrics.items():
        if not isinstance(metric, ExplainsScores):
            continue
        info = metric.info
        render = partial(render_text, scope=info.scope, masking=info.masking, mask_option=mask)
        of_metric = texts.filter(pl.col("metric") == spec).drop("metric")
        for output, text_id, text, prompt_id in of_metric.iter_rows():
            prompt = prompts[prompt_id]
            read = render(prompt.text, text, mentions=prompt.mentions)
            place = {"text_id": text_id, "metric": spec, "output": output, "read": read.text}
            masks = [{"start": start, "end": end} for start, end in read.masks]
            words = [
                {"start": word.start, "end": word.end, "weight": float(word.weight)}
                for word in metric.explain(read, output)
            ]
            rows.append({**place, "masks": masks, "words": words})
    return pl.DataFrame(rows, schema=dict(EXPLANATIONS))
