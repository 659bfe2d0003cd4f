"""Runs side by side: the same prompts under several models, as one set of texts with a run a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from evenhand.audits.analysis.quantities import Axis, Floats, Ints, Quantity, read_axes
from evenhand.audits.loaded_run import FinishedRun
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.records import Prompt

_T = TypeVar("_T")
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
    """The runs joined; what they do not share is left out and said."""
    names = _names(loaded)
    files = all(run.run.manifest["identity"]["command"] == "score" for run in loaded)
    keyed = [_key_prompts(run, files=files) for run in loaded]
    suites = _common_suites(keyed, names)
    paired, kept, notes = _select_common(keyed, suites, names)
    joined, prompts, run = _join_prompts(keyed, kept, paired)
    metrics, doubts = _common_metrics(loaded, names)
    quantities = _quantities(loaded, kept, metrics)
    return PairedRuns(
        names=names,
        run=run,
        axes=tuple(read_axes(joined, prompts)),
        quantities=quantities,
        paired=paired,
        baselines=_rename_suites(loaded[0].baselines, files=files),
        exploratory=_rename_suites(loaded[0].exploratory, files=files),
        warnings=(*notes, *doubts),
    )


@dataclass(frozen=True, slots=True)
class _KeyedRun:
    """A run whose prompts are known by what they say, not by which file they came from."""

    keys: tuple[str, ...]
    """The prompt of each text."""
    prompts: Mapping[str, Prompt]


def _key_prompts(loaded: FinishedRun, *, files: bool) -> _KeyedRun:
    key = {prompt_id: _key(prompt, files=files) for prompt_id, prompt in loaded.prompts.items()}
    prompts = {
        key[prompt_id]: replace(prompt, suite=FILES if files else prompt.suite)
        for prompt_id, prompt in loaded.prompts.items()
    }
    return _KeyedRun(tuple(key[prompt_id] for prompt_id in loaded.prompt_ids), prompts)


def _key(prompt: Prompt, *, files: bool) -> str:
    if not files:
        return prompt.id
    groups: Json = [[group.axis, group.name] for group in prompt.groups]
    # A row number pairs nothing: without a prompt column a text has no twin in another file.
    is_row = prompt.cluster.startswith("row ") and not prompt.text and "cue" not in prompt.meta
    own: Json = prompt.id if is_row else None
    return digest([prompt.text, prompt.meta.get("cue"), groups, prompt.cluster, prompt.template_id, own])


def _common_suites(keyed: Sequence[_KeyedRun], names: Sequence[str]) -> list[str]:
    of_run = [{prompt.suite for prompt in run.prompts.values()} for run in keyed]
    common = set.intersection(*of_run)
    if common:
        return sorted(common)
    listed = "; ".join(
        f"{name}: {', '.join(sorted(found))}" for name, found in zip(names, of_run, strict=True)
    )
    raise InputError(
        f"the runs have no suite in common ({listed})",
        expected="runs of the same suite",
        fix="audit the models on one suite",
    )


def _select_common(
    keyed: Sequence[_KeyedRun], suites: Sequence[str], names: Sequence[str]
) -> tuple[dict[str, bool], list[Ints], list[str]]:
    """Which suites pair, which texts of each run stay, and what is left out."""
    paired: dict[str, bool] = {}
    used: set[str] = set()
    notes: list[str] = []
    for suite in suites:
        of_run = [{key for key in set(run.keys) if run.prompts[key].suite == suite} for run in keyed]
        shared = set.intersection(*of_run)
        paired[suite] = bool(shared)
        used |= shared or set.union(*of_run)
        if not shared:
            notes.append(
                f"{suite}: the runs share no prompt, so that they are compared as they are, unpaired"
            )
    kept = [
        np.flatnonzero(np.fromiter(map(used.__contains__, run.keys), dtype=np.bool_, count=len(run.keys)))
        for run in keyed
    ]
    for name, run, rows in zip(names, keyed, kept, strict=True):
        if rows.size < len(run.keys):
            lost = len(run.keys) - rows.size
            notes.append(f"{name}: {lost:,} of {len(run.keys):,} texts have prompts that not all runs have")
    return paired, kept, notes


def _join_prompts(
    keyed: Sequence[_KeyedRun], kept: Sequence[Ints], paired: Mapping[str, bool]
) -> tuple[list[str], dict[str, Prompt], Ints]:
    """The prompt of each text of all runs, the prompts, and the run of each text."""
    ids: list[str] = []
    prompts: dict[str, Prompt] = {}
    for number, (run, rows) in enumerate(zip(keyed, kept, strict=True)):
        keys = [run.keys[row] for row in rows.tolist()]
        own: dict[str, str] = {}
        for key in dict.fromkeys(keys):
            prompt = run.prompts[key]
            if paired[prompt.suite]:
                own[key] = key
            else:
                own[key] = f"{number}:{key}"
                prompt = replace(prompt, cluster=f"{number}:{prompt.cluster}")
            prompts.setdefault(own[key], prompt)
        ids += map(own.__getitem__, keys)
    return ids, prompts, np.repeat(np.arange(len(kept)), [rows.size for rows in kept])


def _common_metrics(loaded: Sequence[FinishedRun], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The metrics that every run has in the same version, and a note on the others."""
    first = loaded[0].infos
    common = [spec for spec in first if all(spec in run.infos for run in loaded)]
    # Two classifiers are meant to differ; two runs of one metric must not.
    same = [
        spec
        for spec in common
        if all(run.is_probe for run in loaded)
        or len({digest(run.infos[spec].identity()) for run in loaded}) == 1
    ]
    notes = [
        f"{spec} is left out: not all runs used the same version of it" for spec in common if spec not in same
    ]
    others = sorted({spec for run in loaded for spec in run.infos} - set(common))
    notes += [f"{spec} is left out: not all runs have it" for spec in others]
    if same:
        return same, notes
    raise InputError(
        f"no metric is the same in all of {', '.join(names)}",
        expected="runs with at least one metric of the same version in common",
        fix="score them again with the same metrics",
    )


def _quantities(
    loaded: Sequence[FinishedRun], kept: Sequence[Ints], metrics: Iterable[str]
) -> tuple[Quantity, ...]:
    of_run = [{(item.metric, item.output): item for item in run.quantities} for run in loaded]
    wanted = set(metrics)
    return tuple(
        Quantity(item.metric, item.output, item.kind, _values(of_run, kept, key), item.is_primary)
        for key, item in of_run[0].items()
        if item.metric in wanted
    )


def _values(
    of_run: Sequence[Mapping[tuple[str, str], Quantity]], kept: Sequence[Ints], key: tuple[str, str]
) -> Floats:
    return np.concatenate([found[key].values[rows] for found, rows in zip(of_run, kept, strict=True)])


def _names(loaded: Sequence[FinishedRun]) -> tuple[str, ...]:
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


def _rename_suites(found: Mapping[tuple[str, str], _T], *, files: bool) -> dict[tuple[str, str], _T]:
    return {(FILES if files else suite, axis): value for (suite, axis), value in found.items()}
