"""Runs side by side: the same prompts under several models, as one set of texts with a run a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.audits.analysis.quantities import Axis, Ints, Quantity, read_axes
from evenhand.audits.loaded_run import FinishedRun
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.records import Prompt

FILES = "texts"
"""What the suite of scored files is called where several files are compared."""


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
    files = all(run.run.manifest["identity"]["command"] == "score" for run in loaded)
    keyed = [_key_prompts(run, files=files) for run in loaded]
    paired, rows, notes = _select_common(keyed, names)
    ids, prompts = _join_prompts(keyed, rows, paired)
    metrics, doubts = _find_common_metrics(loaded, names)
    outputs = [{(item.metric, item.output): item for item in run.quantities} for run in loaded]
    quantities = [
        Quantity(
            item.metric,
            item.output,
            item.kind,
            np.concatenate([of_run[key].values[at] for of_run, at in zip(outputs, rows, strict=True)]),
            item.is_primary,
        )
        for key, item in outputs[0].items()
        if item.metric in metrics
    ]
    first = loaded[0]
    return PairedRuns(
        names=names,
        run=np.repeat(np.arange(len(rows)), [at.size for at in rows]),
        axes=tuple(read_axes(ids, prompts)),
        quantities=tuple(quantities),
        paired=paired,
        baselines={
            (FILES if files else suite, axis): name for (suite, axis), name in first.baselines.items()
        },
        exploratory={
            (FILES if files else suite, axis): specs for (suite, axis), specs in first.exploratory.items()
        },
        warnings=(*notes, *doubts),
    )


@dataclass(frozen=True, slots=True)
class _KeyedRun:
    """A run whose prompts are known by what they say, not by which file they came from."""

    keys: tuple[str, ...]
    """The prompt of each text."""
    prompts: Mapping[str, Prompt]


def _key_prompts(loaded: FinishedRun, *, files: bool) -> _KeyedRun:
    key: dict[str, str] = {}
    prompts: dict[str, Prompt] = {}
    for prompt_id, prompt in loaded.prompts.items():
        key[prompt_id] = prompt.id
        if files:
            groups: Json = [[group.axis, group.name] for group in prompt.groups]
            # A row number pairs nothing: without a prompt column a text has no twin in another file.
            is_row = prompt.cluster.startswith("row ") and not prompt.text and "cue" not in prompt.meta
            own: Json = prompt.id if is_row else None
            parts = [prompt.text, prompt.meta.get("cue"), groups, prompt.cluster, prompt.template_id, own]
            key[prompt_id] = digest(parts)
        prompts[key[prompt_id]] = replace(prompt, suite=FILES) if files else prompt
    return _KeyedRun(tuple(key[prompt_id] for prompt_id in loaded.prompt_ids), prompts)


def _select_common(
    keyed: Sequence[_KeyedRun], names: Sequence[str]
) -> tuple[dict[str, bool], list[Ints], list[str]]:
    """Which suites pair, which texts of each run stay, and what is left out."""
    suites = [{prompt.suite for prompt in run.prompts.values()} for run in keyed]
    common = set.intersection(*suites)
    if not common:
        listed = "; ".join(
            f"{name}: {', '.join(sorted(own))}" for name, own in zip(names, suites, strict=True)
        )
        raise InputError(
            f"the runs have no suite in common ({listed})",
            expected="runs of the same suite",
            fix="audit the models on one suite",
        )
    paired: dict[str, bool] = {}
    used: set[str] = set()
    notes: list[str] = []
    for suite in sorted(common):
        of_run = [{key for key in set(run.keys) if run.prompts[key].suite == suite} for run in keyed]
        shared = set.intersection(*of_run)
        paired[suite] = bool(shared)
        used |= shared or set.union(*of_run)
        if not shared:
            notes.append(
                f"{suite}: the runs share no prompt, so that they are compared as they are, unpaired"
            )
    rows = [np.flatnonzero(np.array([key in used for key in run.keys], dtype=np.bool_)) for run in keyed]
    for name, run, chosen in zip(names, keyed, rows, strict=True):
        if lost := len(run.keys) - chosen.size:
            notes.append(f"{name}: {lost:,} of {len(run.keys):,} texts have prompts that not all runs have")
    return paired, rows, notes


def _join_prompts(
    keyed: Sequence[_KeyedRun], rows: Sequence[Ints], paired: Mapping[str, bool]
) -> tuple[list[str], dict[str, Prompt]]:
    """The prompt of each text of all runs, and the prompts."""
    ids: list[str] = []
    prompts: dict[str, Prompt] = {}
    for number, (run, chosen) in enumerate(zip(keyed, rows, strict=True)):
        keys = [run.keys[row] for row in chosen.tolist()]
        own: dict[str, str] = {}
        for key in dict.fromkeys(keys):
            prompt, own[key] = run.prompts[key], key
            if not paired[prompt.suite]:
                own[key] = f"{number}:{key}"
                prompt = replace(prompt, cluster=f"{number}:{prompt.cluster}")
            prompts.setdefault(own[key], prompt)
        ids += map(own.__getitem__, keys)
    return ids, prompts


def _find_common_metrics(loaded: Sequence[FinishedRun], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The metrics that every run has in the same version, and a note on the others."""
    common = [spec for spec in loaded[0].infos if all(spec in run.infos for run in loaded)]
    # Two classifiers are meant to differ; two runs of one metric must not.
    same = [
        spec
        for spec in common
        if all(run.is_probe for run in loaded)
        or len({digest(run.infos[spec].identity()) for run in loaded}) == 1
    ]
    if not same:
        raise InputError(
            f"no metric is the same in all of {', '.join(names)}",
            expected="runs with at least one metric of the same version in common",
            fix="score them again with the same metrics",
        )
    others = sorted({spec for run in loaded for spec in run.infos} - set(common))
    return same, [
        *(
            f"{spec} is left out: not all runs used the same version of it"
            for spec in common
            if spec not in same
        ),
        *(f"{spec} is left out: not all runs have it" for spec in others),
    ]


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
