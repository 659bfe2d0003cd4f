"""A finished run, loaded for another look: its prompts, its texts and what was measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import polars as pl

from evenhand.core.errors import InputError
from evenhand.core.records import MetricInfo, OutputInfo, Prompt
from evenhand.pipeline.quantities import Quantity, quantities
from evenhand.pipeline.tables import prompts_from_table
from evenhand.store.run import Run

COMMANDS = ("audit", "score")
"""The commands whose runs hold prompts, texts and scores."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A run in memory."""

    run: Run
    prompts: Mapping[str, Prompt]
    prompt_ids: tuple[str, ...]
    """The prompt of each text."""
    quantities: tuple[Quantity, ...]
    """Aligned with the texts."""
    infos: Mapping[str, MetricInfo]

    @property
    def name(self) -> str:
        """What the run is of: a model, or a file."""
        return str(self.run.manifest["name"])

    @property
    def baselines(self) -> dict[tuple[str, str], str]:
        """The declared baseline of every suite and axis."""
        given = self.run.manifest["identity"].get("compare", {}).get("baselines", {})
        return {
            (suite, axis): given.get(axis, baseline)
            for suite, info in self.run.manifest["suites"].items()
            for axis, baseline in info["baselines"].items()
        }

    @property
    def exploratory(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """(suite, axis) to the metrics that are exploratory there."""
        return {
            (suite, axis): tuple(metrics)
            for suite, info in self.run.manifest["suites"].items()
            for axis, metrics in info.get("exploratory", {}).items()
        }


def load(run: Run) -> Loaded:
    """The texts and quantities of a finished run of ``audit`` or ``score``."""
    check_measured(run)
    generations = run.scan("generations").select("id", "prompt_id").collect()
    scores = run.table("scores")
    infos = {spec: metric_info(card) for spec, card in run.manifest["metrics"].items()}
    found = [
        quantity
        for spec, info in infos.items()
        for quantity in quantities(spec, info, scores.filter(pl.col("metric") == spec), generations["id"])
    ]
    prompts = {prompt.id: prompt for prompt in prompts_from_table(run.table("prompts"))}
    return Loaded(run, prompts, tuple(generations["prompt_id"].to_list()), tuple(found), infos)


def check_measured(run: Run) -> None:
    """An error for a run that holds no scored texts, or is not finished."""
    command = str(run.manifest["identity"].get("command"))
    if command not in COMMANDS:
        raise InputError(
            f"{run.path} is a run of `evenhand {command}`",
            accepted="runs of `evenhand audit` or `evenhand score`",
            todo="name the folder of such a run",
        )
    state = run.manifest["stages"].get("compare", {}).get("state")
    if state != "done":
        raise InputError(
            f"{run.path} is not finished ({state or 'not compared yet'})",
            accepted="a finished run",
            todo="run the command that made it again: finished shards are kept",
        )


def metric_info(card: Mapping[str, Any]) -> MetricInfo:
    """The description of a metric, as a manifest keeps it."""
    known = {field.name for field in fields(MetricInfo)}
    kept = {name: value for name, value in card.items() if name in known}
    outputs = tuple(OutputInfo(**{**output, "labels": tuple(output["labels"])}) for output in card["outputs"])
    return MetricInfo(**{**kept, "outputs": outputs, "primary": tuple(card["primary"])})
