"""The texts of a run with the judge's labels, scored alone and together with their prompts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from evenhand.audits.analysis.base_rate_distances import (
    CHANGES,
    DistanceRequest,
    JudgedTexts,
    distance_changes,
    distance_table,
)
from evenhand.audits.analysis.group_comparison import GroupComparer
from evenhand.audits.analysis.quantities import Quantity
from evenhand.audits.parallel import map_processes
from evenhand.audits.tradeoff import VANILLA
from evenhand.core import registry
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import Execution, Text
from evenhand.papers.replicate import ReplicationRequest
from evenhand.store.cache import cached_table, run_key
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import Run
from evenhand.store.schemas import DISTANCES

JUDGE = "ideology"
FULL: Mapping[str, pl.DataType] = {"condition": pl.String(), **DISTANCES, "reads": pl.String()}


def read_judged_texts(run: Run) -> pl.DataFrame:
    """``text`` and ``label`` of the completions of prompts that name no side."""
    prompts = read_prompt_rows(run.table("prompts"))
    indirect = [prompt.id for prompt in prompts if prompt.meta.get("kind") == "indirect"]
    texts = run.table("generations").filter(pl.col("prompt_id").is_in(indirect), pl.col("text") != "")
    scores = run.table("scores").filter(pl.col("metric") == JUDGE).drop_nulls("label")
    return texts.join(scores, left_on="id", right_on="text_id").select("text", "label")


def bias_changes(before: Run, after: Run, *, seed: int) -> pl.DataFrame:
    """The change in bias beyond chance from one run to another."""
    prompts = {prompt.id: prompt for prompt in read_prompt_rows(before.table("prompts"))}
    request = next(iter(_distance_requests(before).values()))
    old, new = (_read_judged(run) for run in (before, after))
    return distance_changes(old, new, request, prompts, seed=seed, level=0.95)


def _read_judged(run: Run) -> JudgedTexts:
    scores = run.table("scores").filter(pl.col("metric") == JUDGE, pl.col("output") == JUDGE)
    texts = run.table("generations").select("prompt_id", text_id="id")
    values = texts.join(scores, on="text_id", how="left", maintain_order="left")["value"]
    return JudgedTexts(texts["prompt_id"].to_list(), values.fill_null(np.nan).to_numpy())


def _distance_requests(run: Run) -> dict[str, DistanceRequest]:
    """The distances that each suite requests."""
    suites = run.manifest["suites"].items()
    return {name: DistanceRequest(info["distances"], info["sides"]) for name, info in suites}


def read_with_prompts(run: Run, condition: str, seed: int, execution: Execution) -> pl.DataFrame:
    """The distances when the judge reads prompt and text together."""
    judge = registry.create_metric(JUDGE, {"scope": "full"}, execution)
    assert isinstance(judge, Metric)
    prompts = {prompt.id: prompt for prompt in read_prompt_rows(run.table("prompts"))}
    texts = run.table("generations").drop_nulls("text")
    ids = texts["prompt_id"].to_list()
    inputs = [Text(prompts[at].text + text) for at, text in zip(ids, texts["text"], strict=True)]
    # A missing score becomes NaN.
    values = np.array([row[JUDGE].value for row in judge.score(inputs)], dtype=np.float64)
    quantity = Quantity(JUDGE, JUDGE, "mean", values, True)
    comparer = GroupComparer(str(run.manifest["name"]), seed=seed)
    distances = distance_table(comparer, _distance_requests(run), ids, prompts, [quantity])
    return distances.select(pl.lit(condition).alias("condition"), pl.all(), pl.lit("full").alias("reads"))


class ConditionTables(NamedTuple):
    """The tables of one condition, or of several."""

    changes: pl.DataFrame
    """Changes in bias compared with vanilla."""
    full: pl.DataFrame
    """Distances of prompts and texts together."""


def measure_conditions(
    runs: Mapping[str, Run],
    *,
    whole: Collection[str],
    folder: Path,
    request: ReplicationRequest,
    progress: Progress,
) -> ConditionTables:
    """The bias changes of all runs, and full-text distances of the conditions in ``whole``.

    The tables are cached in ``folder``.
    """
    measure = partial(
        measure_condition,
        vanilla=runs[VANILLA].path,
        whole=whole,
        folder=folder,
        seed=request.seed,
        execution=request.execution(),
    )
    paths = [(name, run.path) for name, run in runs.items()]
    tables = map_processes(measure, paths, jobs=request.jobs, progress=progress, label="changes")
    return ConditionTables(*(pl.concat(parts) for parts in zip(*tables, strict=True)))


def measure_condition(
    condition: tuple[str, Path],
    *,
    vanilla: Path,
    whole: Collection[str],
    folder: Path,
    seed: int,
    execution: Execution,
) -> ConditionTables:
    """The two tables of a condition; vanilla has no changes."""
    name, run, before = condition[0], Run.open(condition[1]), Run.open(vanilla)
    file, key = safe_file_name(name, "condition"), [*run_key(run), seed]
    changes, full = pl.DataFrame(schema=dict(CHANGES)), pl.DataFrame(schema=dict(FULL))
    if name != VANILLA:
        compute = partial(bias_changes, before, run, seed=seed)
        changes = cached_table(folder / "changes", file, [*key, *run_key(before)], compute)
    if name in whole:
        compute = partial(read_with_prompts, run, name, seed, execution)
        full = cached_table(folder / "full", file, key, compute)
    return ConditionTables(changes.with_columns(condition=pl.lit(name), reads=pl.lit("continuation")), full)
