"""Finished runs, loaded for another look: prompts, texts and what was measured of them; alone or paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import polars as pl

from evenhand.audits.analysis.quantities import Axis, Ints, Quantity, read_axes, read_quantities
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.records import MetricInfo, OutputInfo, Prompt
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import Manifest, Run

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
    def name(self) -> str:
        """What the run is of: a model, or a file."""
        return str(self.run.manifest["name"])

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
    scores, infos = run.table("scores"), dict[str, MetricInfo]()
    quantities: list[Quantity] = []
    for spec, card in run.manifest["metrics"].items():
        name, info = comparable_name(run, spec), parse_metric_info(card)
        infos[name] = info
        of_metric = scores.filter(pl.col("metric") == spec)
        quantities += [replace(item, metric=name) for item in read_quantities(spec, info, of_metric, ids)]
    return FinishedRun(run, prompts, prompt_ids, tuple(quantities), infos)


def read_axis_settings(
    manifest: Manifest,
) -> tuple[dict[tuple[str, str], str], dict[tuple[str, str], tuple[str, ...]]]:
    """(suite, axis) to its baseline, and to the metrics that are exploratory there."""
    given = manifest["identity"].get("compare", {}).get("baselines", {})
    baselines: dict[tuple[str, str], str] = {}
    exploratory: dict[tuple[str, str], tuple[str, ...]] = {}
    for suite, info in manifest["suites"].items():
        for axis, baseline in info["baselines"].items():
            baselines[suite, axis] = given.get(axis, baseline)
        for axis, metrics in info.get("exploratory", {}).items():
            exploratory[suite, axis] = tuple(metrics)
    return baselines, exploratory


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
    names = {field.name for field in fields(MetricInfo)}
    known = {name: value for name, value in card.items() if name in names}
    outputs = tuple(OutputInfo(**_with_tuples(output)) for output in card["outputs"])
    return MetricInfo(**{**_with_tuples(known), "outputs": outputs})


def _with_tuples(card: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a manifest with tuples where JSON has lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in card.items()}


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """The texts of several runs, joined: prompts that all runs have, each paired with itself."""

    names: tuple[str, ...]
    run: Ints
    """For each text the number of its run."""
    axes: tuple[Axis, ...]
    quantities: tuple[Quantity, ...]
    paired: Mapping[str, bool]
    """For each suite whether its runs share their prompts."""
    baselines: Mapping[tuple[str, str], str]
    exploratory: Mapping[tuple[str, str], tuple[str, ...]]
    warnings: tuple[str, ...]

    def rows_of_run(self, axis: Axis, number: int) -> Axis:
        """The rows of an axis that one run wrote."""
        return axis.select(self.run[axis.rows] == number)


def pair_runs(loaded: Sequence[FinishedRun]) -> PairedRuns:
    """The runs joined; what they do not share is left out and listed in the warnings."""
    names = _list_names(loaded)
    manifest, files = loaded[0].run.manifest, all(read_command(run.run) == "score" for run in loaded)
    if files:
        manifest = {**manifest, "suites": {FILES: next(iter(manifest["suites"].values()))}}
    keyed = [
        _key_prompts(run) if files else {key: (key, run.prompts[key]) for key in run.prompts}
        for run in loaded
    ]
    suites = [{prompt.suite for _, prompt in prompts.values()} for prompts in keyed]
    common = sorted(set.intersection(*suites))
    if not common:
        listed = "; ".join(
            f"{name}: {', '.join(sorted(own))}" for name, own in zip(names, suites, strict=True)
        )
        raise InputError(
            f"the runs have no suite in common ({listed})",
            expected="runs of the same suite",
            fix="audit the models on one suite",
        )
    texts = pl.concat(
        [
            _list_texts(run.prompt_ids, prompts).with_columns(run=pl.lit(number))
            for number, (run, prompts) in enumerate(zip(loaded, keyed, strict=True))
        ]
    )
    known = texts.filter(pl.col("suite").is_in(common)).with_columns(
        is_shared=pl.col("run").n_unique().over("key") == len(loaded)
    )
    known = known.with_columns(is_paired=pl.col("is_shared").any().over("suite"))
    # Prompts of a suite that is not paired are those of their run alone.
    kept = known.filter(pl.col("is_shared") | ~pl.col("is_paired")).with_columns(
        id=pl.when("is_paired").then("key").otherwise(pl.format("{}:{}", "run", "key"))
    )
    prompts: dict[str, Prompt] = {}
    for name, number, prompt_id, is_paired in (
        kept.unique("id", maintain_order=True).select("id", "run", "prompt_id", "is_paired").iter_rows()
    ):
        prompt = keyed[number][prompt_id][1]
        prompts[name] = prompt if is_paired else replace(prompt, cluster=f"{number}:{prompt.cluster}")
    paired_suites = set(kept.filter("is_paired")["suite"])
    notes = [
        f"{suite}: the runs share no prompt, so that they are compared as they are, unpaired"
        for suite in common
        if suite not in paired_suites
    ]
    rows = [kept.filter(pl.col("run") == number)["row"].to_numpy() for number in range(len(loaded))]
    for name, run, chosen in zip(names, loaded, rows, strict=True):
        if lost := len(run.prompt_ids) - chosen.size:
            notes.append(
                f"{name}: {lost:,} of {len(run.prompt_ids):,} texts have prompts that not all runs have"
            )
    metrics, doubts = _find_common_metrics(loaded, names)
    outputs = [{(item.metric, item.output): item for item in run.quantities} for run in loaded]
    baselines, exploratory = read_axis_settings(manifest)
    return PairedRuns(
        names=names,
        run=kept["run"].cast(pl.Int64).to_numpy(),
        axes=tuple(read_axes(kept["id"].to_list(), prompts)),
        quantities=tuple(
            Quantity(
                item.metric,
                item.output,
                item.kind,
                np.concatenate([of_run[key].values[at] for of_run, at in zip(outputs, rows, strict=True)]),
                item.is_primary,
            )
            for key, item in outputs[0].items()
            if item.metric in metrics
        ),
        paired={suite: suite in paired_suites for suite in common},
        baselines=baselines,
        exploratory=exploratory,
        warnings=(*notes, *doubts),
    )


def _key_prompts(loaded: FinishedRun) -> dict[str, tuple[str, Prompt]]:
    """For each prompt of a file what it says, by which files are paired, and the prompt."""
    prompts: dict[str, tuple[str, Prompt]] = {}
    for prompt_id, prompt in loaded.prompts.items():
        groups: Json = [[group.axis, group.name] for group in prompt.groups]
        # A row number pairs nothing: without a prompt column a text has no twin in another file.
        is_row = prompt.cluster.startswith("row ") and not prompt.text and "cue" not in prompt.meta
        own: Json = prompt.id if is_row else None
        parts = [prompt.text, prompt.meta.get("cue"), groups, prompt.cluster, prompt.template_id, own]
        prompts[prompt_id] = digest(parts), replace(prompt, suite=FILES)
    return prompts


def _list_texts(prompt_ids: Sequence[str], prompts: Mapping[str, tuple[str, Prompt]]) -> pl.DataFrame:
    """For each text of a run its row, its prompt, by which it is paired, and its suite."""
    named = {prompt_id: prompts[prompt_id] for prompt_id in prompt_ids}
    rows = [(prompt_id, key, prompt.suite) for prompt_id, (key, prompt) in named.items()]
    of_prompt = pl.DataFrame(rows, dict.fromkeys(("prompt_id", "key", "suite"), pl.String), orient="row")
    texts = pl.DataFrame({"prompt_id": prompt_ids}, {"prompt_id": pl.String}).with_row_index("row")
    return texts.join(of_prompt, on="prompt_id", how="left", maintain_order="left")


def _find_common_metrics(loaded: Sequence[FinishedRun], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The metrics that every run has in the same version, and a note on the others."""
    common = [spec for spec in loaded[0].infos if all(spec in run.infos for run in loaded)]
    # Two classifiers are meant to differ; two runs of one metric must not.
    differ = all(run.is_probe for run in loaded)
    same = [
        spec for spec in common if differ or len({digest(run.infos[spec].identity()) for run in loaded}) == 1
    ]
    if not same:
        raise InputError(
            f"no metric is the same in all of {', '.join(names)}",
            expected="runs with at least one metric of the same version in common",
            fix="score them again with the same metrics",
        )
    doubts = [
        f"{spec} is left out: not all runs used the same version of it" for spec in common if spec not in same
    ]
    others = sorted({spec for run in loaded for spec in run.infos} - set(common))
    return same, [*doubts, *(f"{spec} is left out: not all runs have it" for spec in others)]


def _list_names(loaded: Sequence[FinishedRun]) -> tuple[str, ...]:
    """The runs by what they are of; a name that occurs twice is followed by its folder."""
    names = [run.name for run in loaded]
    own = [
        f"{name} ({run.run.path.resolve().name})" if names.count(name) > 1 else name
        for name, run in zip(names, loaded, strict=True)
    ]
    doubled = sorted({name for name in own if own.count(name) > 1})
    if doubled:
        raise InputError(
            f"{doubled[0]!r} was given twice", expected="different runs", fix="name each run once"
        )
    return tuple(own)
