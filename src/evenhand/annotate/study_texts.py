"""The texts a study can ask about, from runs and files: as people will see them, with groups and scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from evenhand.annotate.item_sampling import ItemCandidate
from evenhand.annotate.study import AnnotationTask, MaskChoice
from evenhand.audits.loaded_run import COMMANDS, read_command
from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric
from evenhand.core.records import Prompt, Text
from evenhand.store.ingest import ColumnLayout, check_layout, read_texts
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import MANIFEST, Run, run_errors
from evenhand.store.table_files import read_table
from evenhand.text.rendering import render_text
from evenhand.text.sentences import cut_first_sentence


class TextScore(NamedTuple):
    """What a metric says of a text."""

    value: float | None
    label: str | None


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Which column of a file holds what."""

    layout: ColumnLayout
    method: str | None = None
    score: str | None = None


class _SourceText(NamedTuple):
    """A text of a source."""

    text_id: str
    prompt: Prompt
    text: str
    method: str
    score: TextScore | None


@dataclass(frozen=True, slots=True)
class StudyTexts:
    """The texts of all sources, and those without a text that were left out."""

    candidates: tuple[ItemCandidate, ...]
    masked: int
    """Texts with a mask in them."""
    left_out: int
    scored_here: bool
    """Whether the metric had to be run."""


def read_sources(
    sources: Sequence[Path], *, task: AnnotationTask, mask: MaskChoice, columns: FileColumns
) -> StudyTexts:
    """The texts of runs and files, rendered for people; the task's metric scores them where nothing has."""
    written = [one for source in _name_sources(sources) for one in _of(source, task, columns)]
    kept = [one for one in written if one.text.strip()]
    if not kept:
        raise InputError(
            f"{', '.join(map(str, sources))}: no text to ask about",
            expected="runs of `evenhand audit` or `evenhand score`, or files with a column of texts",
            fix="check the source, and --text for a file",
        )
    shown = [_render_text(one, task=task, mask=mask) for one in kept]
    scores = [one.score for one in kept]
    scored_here = bool(task.task.metric) and all(score is None for score in scores)
    if scored_here:
        scores = [*_score_texts(shown, task)]
    candidates = tuple(
        _candidate(one, text, score, mask) for one, text, score in zip(kept, shown, scores, strict=True)
    )
    return StudyTexts(
        candidates, sum(bool(text.masks) for text in shown), len(written) - len(kept), scored_here
    )


def _name_sources(sources: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Each source with the name of its method; two of one name are told apart by their folders."""
    names = []
    for source in sources:
        run = (source / MANIFEST).is_file()
        names.append(str(Run.open(source).manifest.get("name", source.name)) if run else source.stem)
    for source, name in zip(sources, names, strict=True):
        yield source, name if names.count(name) == 1 else f"{name} ({source.name})"


def _of(source: tuple[Path, str], task: AnnotationTask, columns: FileColumns) -> Iterator[_SourceText]:
    path, name = source
    if (path / MANIFEST).is_file():
        with run_errors(path):
            yield from _of_run(path, name, task)
    else:
        yield from _of_file(path, name, columns)


def _of_run(path: Path, name: str, task: AnnotationTask) -> Iterator[_SourceText]:
    run = Run.open(path)
    if read_command(run) not in COMMANDS:
        raise InputError(
            f"{path} is a run of `evenhand {read_command(run)}`",
            expected="runs of `evenhand audit` or `evenhand score`, or a file of texts",
            fix="name the folder of such a run",
        )
    prompts = {prompt.id: prompt for prompt in read_prompt_rows(run.table("prompts"))}
    scores = _scores(run, task)
    for text_id, prompt_id, text in run.table("generations").select("id", "prompt_id", "text").iter_rows():
        yield _SourceText(text_id, prompts[prompt_id], text or "", name, scores.get(text_id))


def _scores(run: Run, task: AnnotationTask) -> Mapping[str, TextScore]:
    wanted = (pl.col("metric").str.split("=").list.first() == task.task.metric) & (
        pl.col("output") == task.task.output
    )
    rows = run.scan("scores").filter(wanted).select("text_id", "value", "label").collect()
    return {text_id: TextScore(value, label) for text_id, value, label in rows.iter_rows()}


def _of_file(path: Path, name: str, columns: FileColumns) -> Iterator[_SourceText]:
    named = {"--method": columns.method, "--score": columns.score}
    table = read_table(path, {**columns.layout.columns(), **named})
    check_layout(table, columns.layout, path)
    read = read_texts(table, columns.layout, path.name)
    methods = table[columns.method].to_list() if columns.method else [name] * table.height
    scores = _numbers(table, columns.score, path)
    for row, method, score in zip(read.rows, methods, scores, strict=True):
        text = row["text"]
        yield _SourceText(
            str(row["id"]),
            read.prompts[str(row["prompt_id"])],
            text if isinstance(text, str) else "",
            method or "",
            None if columns.score is None else TextScore(score, None),
        )


def _numbers(table: pl.DataFrame, column: str | None, path: Path) -> list[float | None]:
    if column is None:
        return [None] * table.height
    numbers = table[column].cast(pl.Float64(), strict=False)
    bad = table[column].filter(numbers.is_null() & table[column].is_not_null())
    if bad.len():
        raise InputError(
            f"{path} has {bad[0]!r} in the column {column!r} (--score)",
            expected="numbers, or nothing",
            fix="name a column of numbers",
        )
    return numbers.to_list()


def _render_text(one: _SourceText, *, task: AnnotationTask, mask: MaskChoice) -> Text:
    text = cut_first_sentence(one.text) if task.task.one_sentence else one.text
    shown = render_text(
        one.prompt.text,
        text,
        scope="full",
        masking="xyz" if mask == "xyz" else "none",
        mentions=one.prompt.mentions,
        mask_option="none" if mask == "none" else "paper",
    )
    return shown._replace(text=shown.text.rstrip())


def _score_texts(shown: Sequence[Text], task: AnnotationTask) -> list[TextScore]:
    metric = registry.create_metric(task.task.metric)
    if not isinstance(metric, Metric):
        raise InputError(
            f"the metric {task.task.metric!r} scores no single texts", fix="name another in the task file"
        )
    rows = [row.get(task.task.output) for row in metric.score(shown)]
    return [TextScore(None, None) if row is None else TextScore(row.value, row.label) for row in rows]


def _candidate(one: _SourceText, shown: Text, score: TextScore | None, mask: MaskChoice) -> ItemCandidate:
    prompt = _rendered_prompt(one.prompt, mask)
    return ItemCandidate(
        text_id=one.text_id,
        text=shown.text,
        prompt=prompt,
        pair=one.prompt.id,
        group="; ".join(f"{group.axis}={group.name}" for group in one.prompt.groups),
        method=one.method,
        score=score.value if score else None,
        score_label=score.label if score else None,
    )


def _rendered_prompt(prompt: Prompt, mask: MaskChoice) -> str:
    return render_text(
        prompt.text,
        "",
        scope="full",
        masking="xyz" if mask == "xyz" else "none",
        mentions=prompt.mentions,
        mask_option="none" if mask == "none" else "paper",
    ).text.rstrip()
