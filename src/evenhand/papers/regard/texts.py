"""All texts of a replication as one table: a model's samples with two labels, and what people said."""

from __future__ import annotations

from typing import Final

import polars as pl

from evenhand.papers.regard.published import LABELS, METRICS, Demographics, Published
from evenhand.pipeline.tables import prompts_from_table
from evenhand.store.run import Run
from evenhand.suites.regard import STRATUM, RegardSuite
from evenhand.text.rendering import render

ANNOTATED: Final = "annotated"
"""The source of texts whose labels people gave: row (3) of Figure 2."""
COLUMNS: Final = {
    **dict.fromkeys(
        ("source", "context", "axis", "group", "cluster", "prompt", "text", "regard", "sentiment"),
        pl.String(),
    ),
    "regard_value": pl.Float64(),
    "sentiment_value": pl.Float64(),
}
_OUTPUTS: Final = {"regard": "regard", "sentiment": "compound"}


def scored_texts(run: Run, source: str) -> pl.DataFrame:
    """The texts of an audit, masked, with the label and value of both metrics."""
    prompts = {prompt.id: prompt for prompt in prompts_from_table(run.table("prompts"))}
    rows = []
    for text_id, prompt_id, text in run.table("generations").select("id", "prompt_id", "text").iter_rows():
        prompt = prompts[prompt_id]
        shown = text and render(prompt.text, text, scope="full", masking="xyz", mentions=prompt.mentions).text
        for group in prompt.groups:
            rows.append(
                {
                    "text_id": text_id,
                    "source": source,
                    "context": prompt.meta.get(STRATUM, ""),
                    "axis": group.axis,
                    "group": group.name,
                    "cluster": prompt.cluster,
                    "prompt": prompt.text,
                    "text": shown,
                }
            )
    found = pl.DataFrame(rows, infer_schema_length=None)
    scores = run.table("scores")
    for metric, output in _OUTPUTS.items():
        labels = scores.filter((pl.col("metric") == metric) & (pl.col("output") == output)).select(
            "text_id", pl.col("label").alias(metric), pl.col("value").alias(f"{metric}_value")
        )
        found = found.join(labels, on="text_id", how="left", maintain_order="left")
    return found.select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())


def annotated_texts(published: Published, suite: RegardSuite, demographics: Demographics) -> pl.DataFrame:
    """The annotated texts that came from one demographic alone, with what people said."""
    said = {
        metric: {text: label for _, label, text in published.annotations(metric).iter_rows()}
        for metric in METRICS
    }
    placed = [
        (prompt, text)
        for text in dict.fromkeys(text for labels in said.values() for text in labels)
        if (prompt := demographics.only(text)) is not None
    ]
    order = {prompt.id: place for place, prompt in enumerate(suite.prompts())}
    rows = []
    for prompt, text in sorted(placed, key=lambda pair: order[pair[0].id]):
        row = {metric: said[metric].get(text) for metric in METRICS}
        rows.append(
            {
                "source": ANNOTATED,
                "context": prompt.meta[STRATUM],
                "axis": prompt.groups[0].axis,
                "group": prompt.groups[0].name,
                "cluster": prompt.cluster,
                "prompt": prompt.text,
                "text": text,
                **row,
                **{f"{metric}_value": _value(label) for metric, label in row.items()},
            }
        )
    return pl.DataFrame(rows, schema=COLUMNS, infer_schema_length=None)


def unplaced(published: Published, demographics: Demographics, metric: str) -> dict[str, int]:
    """How many annotated texts are ``ambiguous`` (samples of several prompts) or ``unmatched``."""
    counts = {"texts": 0, "ambiguous": 0, "unmatched": 0}
    for text in published.annotations(metric)["text"]:
        found = len(demographics.prompts.get(text, ()))
        counts["texts"] += 1
        counts["ambiguous"] += found > 1
        counts["unmatched"] += found == 0
    return counts


def _value(label: str | None) -> float | None:
    return None if label is None else float(LABELS.index(label) - 1)
