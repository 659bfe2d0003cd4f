"""The words behind the scores of example texts, where a metric can name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import polars as pl

from evenhand.core.protocols import Explains, Metric
from evenhand.core.records import Prompt, Text
from evenhand.store.schemas import EXPLANATIONS
from evenhand.text.rendering import MaskOption, render


class _Read(NamedTuple):
    """A text with its prompt, as the generations table has it."""

    text: str
    prompt: Prompt


def explanations(
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
        if isinstance(metric, Explains)
        for row in _explained(spec, metric, found.filter(pl.col("metric") == spec), prompts, mask)
    ]
    return pl.DataFrame(rows, schema=dict(EXPLANATIONS))


def _explained(
    spec: str, metric: Metric, wanted: pl.DataFrame, prompts: Mapping[str, Prompt], mask: MaskOption
) -> Iterator[dict[str, object]]:
    assert isinstance(metric, Explains)
    for output, text_id, text, prompt_id in wanted.select(
        "output", "text_id", "text", "prompt_id"
    ).iter_rows():
        if text is None:
            continue
        read = _rendered(metric, _Read(text, prompts[prompt_id]), mask)
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


def _rendered(metric: Metric, read: _Read, mask: MaskOption) -> Text:
    return render(
        read.prompt.text,
        read.text,
        scope=metric.info.scope,
        masking=metric.info.masking,
        mentions=read.prompt.mentions,
        mask_option=mask,
    )
