"""The texts a study can ask about, from runs and files: as people will see them, with groups and scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from evenhand.annotate.sampling import Candidate
from evenhand.annotate.task import MaskWish, Task
from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric
from evenhand.core.records import Prompt, Text
from evenhand.pipeline.loading import COMMANDS, command_of
from evenhand.pipeline.reading import Layout, check_layout, read_texts
from evenhand.pipeline.tables import prompts_from_table
from evenhand.store.files import read_table
from evenhand.store.run import MANIFEST, Run, naming_run
from evenhand.text.rendering import render
from evenhand.text.sentences import cut_first_sentence


class Score(NamedTuple):
    """What a metric says of a text."""

    value: float | None
    label: str | None


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Which column of a file holds what."""

    layout: Layout
    method: str | None = None
    score: str | None = None


class _Written(NamedTuple):
    """A text of a source."""

    text_id: str
    prompt: Prompt
    text: str
    method: str
    score: Score | None


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of all sources, and those without a text that were left out."""

    candidates: tuple[Candidate, ...]
    masked: int
    """Texts with a mask in them."""
    left_out: int
    scored_here: bool
    """Whether the metric had to be run."""


def read_sources(sources: Sequence[Path], *, task: Task, mask: MaskWish, columns: FileColumns) -> Texts:
    """The texts of runs and files, rendered for people; the task's metric scores them where nothing has."""
    written = [one for source in _named(sources) for one in _of(source, task, columns)]
    kept = [one for one in written if one.text.strip()]
    if not kept:
        raise InputError(
            f"{', '.join(map(str, sources))}: no text to ask about",
            accepted="runs of `evenhand audit` or `evenhand score`, or files with a column of texts",
            todo="check the source, and --text for a file",
        )
    shown = [_rendered(one, task=task, mask=mask) for one in kept]
    scores = [one.score for one in kept]
    scored_here = bool(task.task.metric) and all(score is None for score in scores)
    if scored_here:
        scores = [*_scored(shown, task)]
    candidates = tuple(
        _candidate(one, text, score, mask) for one, text, score in zip(kept, shown, scores, strict=True)
    )
    return Texts(candidates, sum(bool(text.masks) for text in shown), len(written) - len(kept), scored_here)


def _named(sources: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Each source with the name of its method; two of one name are told apart by their folders."""
    names = []
    for source in sources:
        run = (source / MANIFEST).is_file()
        names.append(str(Run.open(source).manifest.get("name", source.name)) if run else source.stem)
    for source, name in zip(sources, names, strict=True):
        yield source, name if names.count(name) == 1 else f"{name} ({source.name})"


def _of(source: tuple[Path, str], task: Task, columns: FileColumns) -> Iterator[_Written]:
    path, name = source
    if (path / MANIFEST).is_file():
        with naming_run(path):
            yield from _of_run(path, name, task)
    else:
        yield from _of_file(path, name, columns)


def _of_run(path: Path, name: str, task: Task) -> Iterator[_Written]:
    run = Run.open(path)
    if command_of(run) not in COMMANDS:
        raise InputError(
            f"{path} is a run of `evenhand {command_of(run)}`",
            accepted="runs of `evenhand audit` or `evenhand score`, or a file of texts",
            todo="name the folder of such a run",
        )
    prompts = {prompt.id: prompt for prompt in prompts_from_table(run.table("prompts"))}
    scores = _scores(run, task)
    for text_id, prompt_id, text in run.table("generations").select("id", "prompt_id", "text").iter_rows():
        yield _Written(text_id, prompts[prompt_id], text or "", name, scores.get(text_id))


def _scores(run: Run, task: Task) -> Mapping[str, Score]:
    wanted = (pl.col("metric").str.split("=").list.first() == task.task.metric) & (
        pl.col("output") == task.task.output
    )
    rows = run.scan("scores").filter(wanted).select("text_id", "value", "label").collect()
    return {text_id: Score(value, label) for text_id, value, label in rows.iter_rows()}


def _of_file(path: Path, name: str, columns: FileColumns) -> Iterator[_Written]:
    named = {"--method": columns.method, "--score": columns.score}
    table = read_table(path, {**columns.layout.columns(), **named})
    check_layout(table, columns.layout, path)
    read = read_texts(table, columns.layout, path.name)
    methods = table[columns.method].to_list() if columns.method else [name] * table.height
    scores = _numbers(table, columns.score, path)
    for row, method, score in zip(read.rows, methods, scores, strict=True):
        text = row["text"]
        yield _Written(
            str(row["id"]),
            read.prompts[str(row["prompt_id"])],
            text if isinstance(text, str) else "",
            method or "",
            None if columns.score is None else Score(score, None),
        )


def _numbers(table: pl.DataFrame, column: str | None, path: Path) -> list[float | None]:
    if column is None:
        return [None] * table.height
    numbers = table[column].cast(pl.Float64(), strict=False)
    bad = table[column].filter(numbers.is_null() & table[column].is_not_null())
    if bad.len():
        raise InputError(
            f"{path} has {bad[0]!r} in the column {column!r} (--score)",
            accepted="numbers, or nothing",
            todo="name a column of numbers",
        )
    return numbers.to_list()


def _rendered(one: _Written, *, task: Task, mask: MaskWish) -> Text:
    text = cut_first_sentence(one.text) if task.task.one_sentence else one.text
    shown = render(
        one.prompt.text,
        text,
        scope="full",
        masking="xyz" if mask == "xyz" else "none",
        mentions=one.prompt.mentions,
        mask_option="none" if mask == "none" else "paper",
    )
    return shown._replace(text=shown.text.rstrip())


def _scored(shown: Sequence[Text], task: Task) -> list[Score]:
    metric = registry.metric(task.task.metric)
    if not isinstance(metric, Metric):
        raise InputError(
            f"the metric {task.task.metric!r} scores no single texts", todo="name another in the task file"
        )
    rows = [row.get(task.task.output) for row in metric.score(shown)]
    return [Score(None, None) if row is None else Score(row.value, row.label) for row in rows]


def _candidate(one: _Written, shown: Text, score: Score | None, mask: MaskWish) -> Candidate:
    prompt = _rendered_prompt(one.prompt, mask)
    return Candidate(
        text_id=one.text_id,
        text=shown.text,
        prompt=prompt,
        pair=one.prompt.id,
        group="; ".join(f"{group.axis}={group.name}" for group in one.prompt.groups),
        method=one.method,
        score=score.value if score else None,
        score_label=score.label if score else None,
    )


def _rendered_prompt(prompt: Prompt, mask: MaskWish) -> str:
    return render(
        prompt.text,
        "",
        scope="full",
        masking="xyz" if mask == "xyz" else "none",
        mentions=prompt.mentions,
        mask_option="none" if mask == "none" else "paper",
    ).text.rstrip()
