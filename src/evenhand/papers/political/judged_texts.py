"""The texts of a run with the judge's labels, and the same judged together with their prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from evenhand.audits.analysis.quantities import Quantity
from evenhand.audits.mitigation_sweep import VANILLA
from evenhand.audits.parallel import map_processes
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


def read_judged_texts(run: Run) -> pl.DataFrame:
    """``text`` and ``label`` of what was written after prompts that name no side."""
    prompts = read_prompt_rows(run.table("prompts"))
    indirect = [prompt.id for prompt in prompts if prompt.meta.get("kind") == "indirect"]
    texts = run.table("generations").filter(pl.col("prompt_id").is_in(indirect)).drop_nulls("text")
    scores = run.table("scores").filter(pl.col("metric") == JUDGE).drop_nulls("label")
    labelled = texts.join(scores, left_on="id", right_on="text_id").select("text", "label")
    return labelled.filter(pl.col("text") != "")


def bias_changes(before: Run, after: Run, *, seed: int) -> pl.DataFrame:
    """How much the bias beyond chance changed from one run to another."""
    prompts = {prompt.id: prompt for prompt in read_prompt_rows(before.table("prompts"))}
    wanted = next(iter(_distance_requests(before).values()))
    return distance_changes(_read_judged(before), _read_judged(after), wanted, prompts, seed=seed, level=0.95)


def _distance_requests(run: Run) -> dict[str, DistanceRequest]:
    """The distances that each suite asks for."""
    suites = run.manifest["suites"].items()
    return {name: DistanceRequest(info["distances"], info["sides"]) for name, info in suites}


def _read_judged(run: Run) -> JudgedTexts:
    scores = run.table("scores").filter((pl.col("metric") == JUDGE) & (pl.col("output") == JUDGE))
    texts = run.table("generations").join(
        scores.select("text_id", "value"), left_on="id", right_on="text_id", how="left", maintain_order="left"
    )
    values = texts["value"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return JudgedTexts(texts["prompt_id"].to_list(), values)


def read_with_prompts(run: Run, condition: str, seed: int, execution: Execution) -> pl.DataFrame:
    """The distances where the judge reads prompt and text together."""
    judge = registry.create_metric(JUDGE, {"scope": "full"}, execution)
    assert isinstance(judge, Metric)
    prompts = {prompt.id: prompt for prompt in read_prompt_rows(run.table("prompts"))}
    texts = run.table("generations").drop_nulls("text")
    ids = texts["prompt_id"].to_list()
    read = [Text(prompts[at].text + text) for at, text in zip(ids, texts["text"], strict=True)]
    scores = [row[JUDGE].value for row in judge.score(read)]
    values = np.array([np.nan if score is None else score for score in scores])
    quantity = Quantity(JUDGE, JUDGE, "mean", values, True)
    distances = distance_table(
        str(run.manifest["name"]),
        _distance_requests(run),
        ids,
        prompts,
        [quantity],
        seed=seed,
        level=0.95,
    )
    return distances.select(pl.lit(condition).alias("condition"), pl.all(), pl.lit("full").alias("reads"))


FULL: Mapping[str, pl.DataType] = {"condition": pl.String(), **DISTANCES, "reads": pl.String()}


class ConditionTask(NamedTuple):
    """A condition to be measured."""

    condition: str
    run: Path
    vanilla: Path
    folder: Path
    """Where its tables are kept: a second start reads them."""
    is_read_whole: bool
    """Whether the judge reads its prompts and texts together too."""
    seed: int
    execution: Execution


class ConditionTables(NamedTuple):
    """The tables of one condition, or of several."""

    changes: pl.DataFrame
    """How much bias changed from vanilla."""
    full: pl.DataFrame
    """Distances of prompts and texts together."""


def measure_conditions(
    runs: Mapping[str, Run],
    *,
    whole: Sequence[str],
    folder: Path,
    request: ReplicationRequest,
    progress: Progress,
) -> ConditionTables:
    """What every run changes, and the whole texts of those that ``whole`` names."""
    vanilla, seed, execution = runs[VANILLA].path, request.seed, request.execution()
    tasks = [
        ConditionTask(name, run.path, vanilla, folder, name in whole, seed, execution)
        for name, run in runs.items()
    ]
    tables = map_processes(measure_condition, tasks, jobs=request.jobs, progress=progress, label="changes")
    empty = pl.DataFrame(schema={**CHANGES, "condition": pl.String(), "reads": pl.String()})
    return ConditionTables(
        pl.concat([empty, *(one.changes for one in tables)]),
        pl.concat([pl.DataFrame(schema=dict(FULL)), *(one.full for one in tables)]),
    )


def measure_condition(task: ConditionTask) -> ConditionTables:
    """The two tables of a condition; vanilla changes nothing."""
    run, vanilla = Run.open(task.run), Run.open(task.vanilla)
    name, key = safe_file_name(task.condition, "condition"), [*run_key(run), task.seed]
    changes, full = pl.DataFrame(schema=dict(CHANGES)), pl.DataFrame(schema=dict(FULL))
    if task.condition != VANILLA:
        compute = partial(bias_changes, vanilla, run, seed=task.seed)
        changes = cached_table(task.folder / "changes", name, [*key, *run_key(vanilla)], compute)
    if task.is_read_whole:
        compute = partial(read_with_prompts, run, task.condition, task.seed, task.execution)
        full = cached_table(task.folder / "full", name, key, compute)
    known = {"condition": task.condition, "reads": "continuation"}
    return ConditionTables(changes.with_columns(pl.lit(value).alias(at) for at, value in known.items()), full)
