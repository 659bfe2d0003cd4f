"""The texts of a run with what the judge says of them, and the same read together with their prompts."""

from __future__ import annotations

import numpy as np
import polars as pl

from evenhand.core import registry
from evenhand.core.protocols import Metric
from evenhand.core.records import Execution, Text
from evenhand.pipeline.distances import Judged, Wanted, distance_changes, distances
from evenhand.pipeline.quantities import Quantity
from evenhand.pipeline.tables import prompts_from_table
from evenhand.store.run import Run

JUDGE = "ideology"


def judged_texts(run: Run) -> pl.DataFrame:
    """``text`` and ``label`` of what was written after prompts that name no side."""
    prompts = prompts_from_table(run.table("prompts"))
    indirect = [prompt.id for prompt in prompts if prompt.meta.get("kind") == "indirect"]
    texts = run.table("generations").filter(pl.col("prompt_id").is_in(indirect)).drop_nulls("text")
    scores = run.table("scores").filter(pl.col("metric") == JUDGE).drop_nulls("label")
    return (
        texts.join(scores, left_on="id", right_on="text_id")
        .select("text", "label")
        .filter(pl.col("text") != "")
    )


def changes(before: Run, after: Run, *, seed: int) -> pl.DataFrame:
    """How much the bias beyond chance changed from one run to another; see ``pipeline.distances``."""
    prompts = {prompt.id: prompt for prompt in prompts_from_table(before.table("prompts"))}
    wanted = next(Wanted(info["distances"], info["sides"]) for info in before.manifest["suites"].values())
    return distance_changes(_judged(before), _judged(after), wanted, prompts, seed=seed, level=0.95)


def _judged(run: Run) -> Judged:
    scores = run.table("scores").filter((pl.col("metric") == JUDGE) & (pl.col("output") == JUDGE))
    texts = run.table("generations").join(
        scores.select("text_id", "value"), left_on="id", right_on="text_id", how="left", maintain_order="left"
    )
    values = texts["value"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return Judged(texts["prompt_id"].to_list(), values)


def with_prompts(run: Run, condition: str, seed: int, execution: Execution) -> pl.DataFrame:
    """The distances where the judge reads prompt and text together."""
    judge = registry.metric(JUDGE, {"scope": "full"}, execution)
    assert isinstance(judge, Metric)
    prompts = {prompt.id: prompt for prompt in prompts_from_table(run.table("prompts"))}
    texts = run.table("generations").drop_nulls("text")
    ids = texts["prompt_id"].to_list()
    read = [Text(prompts[at].text + text) for at, text in zip(ids, texts["text"], strict=True)]
    scores = [row[JUDGE].value for row in judge.score(read)]
    values = np.array([np.nan if score is None else score for score in scores])
    wanted = {
        suite: Wanted(info["distances"], info["sides"]) for suite, info in run.manifest["suites"].items()
    }
    quantity = Quantity(JUDGE, JUDGE, "mean", values, True)
    name = str(run.manifest["name"])
    found = distances(name, wanted, ids, prompts, [quantity], seed=seed, level=0.95)
    return found.insert_column(0, pl.lit(condition).alias("condition")).with_columns(
        pl.lit("full").alias("reads")
    )
