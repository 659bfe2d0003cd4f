"""Finished runs, loaded for another look: prompts, texts and what was measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import polars as pl

from evenhand.audits.analysis.quantities import Quantity, read_quantities
from evenhand.core.errors import InputError
from evenhand.core.records import MetricInfo, OutputInfo, Prompt
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import Run

COMMANDS = ("audit", "score")
"""The commands whose runs hold prompts, texts, scores and comparisons."""
PROBE, EMOTION = "probe", "emotion"
"""The command whose runs hold sentences and the scores of one classifier."""
FILES = "texts"
"""What the suite of scored files is called where several files are compared."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run in memory."""

    run: Run
    prompts: Mapping[str, Prompt]
    prompt_ids: tuple[str, ...]
    """The prompt of each text."""
    quantities: tuple[Quantity, ...]
    """Aligned with the texts."""
    infos: Mapping[str, MetricInfo]

    @property
    def is_probe(self) -> bool:
        """Whether the run is of a classifier: then the metric is what is compared, not what compares."""
        return read_command(self.run) == PROBE


def load_run(run: Run) -> FinishedRun:
    """The texts and quantities of a finished run of ``audit``, ``score`` or ``probe``."""
    check_finished(run)
    is_probe = read_command(run) == PROBE
    prompts = {prompt.id: prompt for prompt in read_prompt_rows(run.table("prompts"))}
    # The sentences of a probe are their own prompts.
    ids = pl.Series("id", list(prompts), dtype=pl.String)
    prompt_ids = tuple(prompts)
    if not is_probe:
        generations = run.scan("generations").select("id", "prompt_id").collect()
        ids, prompt_ids = generations["id"], tuple(generations["prompt_id"])
    infos = {spec: parse_metric_info(card) for spec, card in run.manifest["metrics"].items()}
    quantities = tuple(
        replace(item, metric=comparable_name(run, item.metric))
        for item in read_quantities(infos, run.scan("scores"), ids)
    )
    named = {comparable_name(run, spec): info for spec, info in infos.items()}
    return FinishedRun(run, prompts, prompt_ids, quantities, named)


def read_command(run: Run) -> str:
    """The command that made a run."""
    return str(run.manifest["identity"].get("command"))


def comparable_name(run: Run, spec: str) -> str:
    """What a metric is called where runs are joined: of classifiers, what they classify."""
    return EMOTION if read_command(run) == PROBE else spec


def check_has_comparisons(run: Run) -> None:
    """An error for a run that holds no comparisons of scored texts, or is not finished."""
    if read_command(run) not in COMMANDS:
        raise InputError(
            f"{run.path} is a run of `evenhand {read_command(run)}`",
            expected="runs of `evenhand audit` or `evenhand score`",
            fix="name the folder of such a run",
        )
    check_finished(run)


def check_finished(run: Run) -> None:
    """An error for a run whose last stage is not done."""
    last = "measure" if read_command(run) == PROBE else "compare"
    state = run.manifest["stages"].get(last, {}).get("state")
    if state != "done":
        raise InputError(
            f"{run.path} is not finished ({state or 'not compared yet'})",
            expected="a finished run",
            fix="rerun the command that made it: finished shards are kept",
        )


def parse_metric_info(card: Mapping[str, Any]) -> MetricInfo:
    """The description of a metric, as a manifest keeps it."""
    outputs = tuple(OutputInfo(**_known_fields(OutputInfo, output)) for output in card["outputs"])
    return MetricInfo(**{**_known_fields(MetricInfo, card), "outputs": outputs})


def _known_fields(record: type[MetricInfo | OutputInfo], card: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record in a part of a manifest, with tuples where JSON has lists."""
    known = {field.name: card[field.name] for field in fields(record) if field.name in card}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
