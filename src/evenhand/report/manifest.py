"""Values out of a run's manifest, typed at the border: a missing or odd value is empty, never an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath

import polars as pl

from evenhand.core.digests import Json
from evenhand.report.wording import format_count, format_name, join_words, show_control_characters
from evenhand.store.run import Run


def read_value(source: Mapping[str, Json], *path: str) -> Json:
    """The value at a path of keys, or None where the path ends early."""
    value: Json = source
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def read_text(source: Mapping[str, Json], *path: str) -> str:
    """The value at a path as words; empty where there is none."""
    value = read_value(source, *path)
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(item) for item in value)
    return str(value)


def read_mapping(source: Mapping[str, Json], *path: str) -> Mapping[str, Json]:
    """The object at a path; empty where there is none."""
    value = read_value(source, *path)
    return value if isinstance(value, Mapping) else {}


def read_objects(source: Mapping[str, Json], *path: str) -> list[Mapping[str, Json]]:
    """The objects in the list at a path."""
    value = read_value(source, *path)
    if not isinstance(value, Sequence):
        return []
    return [item for item in value if isinstance(item, Mapping)]


def read_texts(source: Mapping[str, Json], *path: str) -> list[str]:
    """The list of words at a path; a single word is a list of one."""
    value = read_value(source, *path)
    if isinstance(value, str):
        return [value] if value else []
    return [str(item) for item in value] if isinstance(value, Sequence) else []


def read_numbers(source: Mapping[str, Json], *path: str) -> list[float]:
    """The numbers in the list at a path."""
    value = read_value(source, *path)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [float(item) for item in value if isinstance(item, int | float) and not isinstance(item, bool)]


def read_number(source: Mapping[str, Json], *path: str) -> float | None:
    """The number at a path, or None."""
    value = read_value(source, *path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


@dataclass(frozen=True, slots=True)
class RunQuestion:
    """What the run asked, for the first screen."""

    question: str
    details: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the provenance."""

    name: str
    value: str
    is_code: bool = False


def describe_question(run: Run) -> RunQuestion:
    """The question of a run, and how it was put."""
    groups = run.table("groups").select("suite", "axis", "group").unique().height
    prompts, texts = _height(run, "prompts"), _texts(run)
    between = format_count(groups, "group")
    if read_mapping(run.manifest, "stages", "generate"):
        model = format_model_name(run)
        question = f"Does {model} write differently about {between}?"
        alone = f"How does {model} write about one group?"
        if read_text(run.manifest, "identity", "model", "backend") == "replay":
            question = f"Do the texts in {model} differ between {between}?"
            alone = f"How do the texts in {model} score?"
        return RunQuestion(alone if groups == 1 else question, _how_written(run, prompts, texts))
    source = show_control_characters(read_text(run.manifest, "name")) or "a file"
    return RunQuestion(
        f"How do {format_count(texts, 'text')} of one group score?"
        if groups == 1
        else f"Do {format_count(texts, 'text')} differ between {between}?",
        f"The texts of {source} {_how_compared(run)}.",
    )


def format_model_name(run: Run) -> str:
    """The model as a reader knows it; of a file or folder the last part of its path."""
    named = read_text(run.manifest, "identity", "model", "name")
    is_path = named.startswith(("/", "./", "../", "~")) or "\\" in named
    return (
        show_control_characters(PurePath(named.replace("\\", "/")).name if is_path else named) or "the model"
    )


def is_hosted(model: Mapping[str, Json]) -> bool:
    """Whether a model answers elsewhere, so that its texts cannot be made again."""
    return read_value(model, "repeatable") is False or read_text(model, "backend") == "endpoint"


def list_facts(run: Run) -> list[Fact]:
    """Where the numbers come from; empty facts are left out."""
    return [fact for fact in _facts(run) if fact.value]


def requested_size(run: Run) -> Mapping[str, Json]:
    """The samples and the limit of the run as it last was carried on."""
    growth = read_objects(run.manifest, "growth")
    return growth[-1] if growth else {}


def _how_written(run: Run, prompts: int, texts: int) -> str:
    suites = join_words([format_name(suite) for suite in read_mapping(run.manifest, "identity", "suites")])
    samples = int(read_number(requested_size(run), "samples") or 1)
    times = "once each" if samples == 1 else f"{samples} times each"
    opening = f"It continued {format_count(prompts, 'prompt')} of the suite {suites or 'given'}, {times}"
    return f"{opening}: {format_count(texts, 'text')}. They {_how_compared(run)}."


def _how_compared(run: Run) -> str:
    axes = run.table("groups")["axis"].unique(maintain_order=True).to_list()
    metrics = join_words([format_name(metric) for metric in read_mapping(run.manifest, "metrics")])
    along = join_words([format_name(axis) for axis in axes])
    return f"were scored for {metrics or 'nothing'} and compared by {along or 'nothing'}"


def _texts(run: Run) -> int:
    """How many texts were scored: those the model wrote, or those of the file."""
    written = _height(run, "generations")
    return written or int(run.scan("scores").select(pl.col("text_id").n_unique()).collect().item())


def _height(run: Run, table: str) -> int:
    return int(run.scan(table).select(pl.len()).collect().item())


def _facts(run: Run) -> Iterator[Fact]:
    manifest = run.manifest
    model = read_mapping(manifest, "identity", "model")
    yield Fact("Command to repeat", show_control_characters(read_text(manifest, "command")), is_code=True)
    yield Fact("Model", show_control_characters(read_text(model, "name")))
    yield Fact("Back-end", show_control_characters(read_text(model, "backend")))
    yield Fact("Revision", show_control_characters(read_text(model, "revision")), is_code=True)
    yield Fact("Model options", _pairs(read_mapping(model, "options")))
    yield Fact("Served by", _pairs(read_mapping(manifest, "served_by")))
    if is_hosted(model):
        day = read_text(manifest, "created")[:10] or "the day of the run"
        yield Fact("Repeatable", f"no: a hosted model may change; this is what it gave on {day}")
    for suite in read_mapping(manifest, "identity", "suites"):
        known = read_mapping(manifest, "identity", "suites", suite)
        yield Fact(f"Suite {format_name(suite)}", f"version {read_text(known, 'version')}")
        yield Fact("Suite digest", show_control_characters(read_text(known, "digest")), is_code=True)
        yield Fact("Sampling", _pairs(read_mapping(known, "sampling")))
    yield Fact("Samples per prompt", read_text(requested_size(run), "samples"))
    yield Fact("Inputs", _pairs(read_mapping(manifest, "identity", "inputs")))
    yield Fact("Comparison", _pairs(read_mapping(manifest, "identity", "compare")))
    yield from list_circumstances(manifest)


def list_commands(run: Run, parts: Iterable[Fact] = ()) -> Iterator[Fact]:
    """The command of the run, and facts on the runs it was made from; empty ones are left out."""
    command = show_control_characters(read_text(run.manifest, "command"))
    yield from (fact for fact in (Fact("Command to repeat", command, is_code=True), *parts) if fact.value)


def list_circumstances(manifest: Mapping[str, Json]) -> Iterator[Fact]:
    """Version, times, machine and stages: what every run has; empty facts are left out."""
    return (fact for fact in _circumstances(manifest) if fact.value)


def _circumstances(manifest: Mapping[str, Json]) -> Iterator[Fact]:
    yield Fact("evenhand", read_text(manifest, "package"))
    yield Fact("Started", read_text(manifest, "created"))
    yield Fact("Ended", read_text(manifest, "ended"))
    yield Fact("Execution", _pairs(read_mapping(manifest, "execution")))
    yield Fact("Machine", _pairs(read_mapping(manifest, "hardware")))
    for stage in read_mapping(manifest, "stages"):
        yield Fact(f"Stage {format_name(stage)}", _stage(read_mapping(manifest, "stages", stage)))


def _stage(record: Mapping[str, Json]) -> str:
    state = read_text(record, "state")
    amounts = [(key, read_number(record, key)) for key in record]
    counted = [f"{amount:,.0f} {format_name(key)}" for key, amount in amounts if amount is not None]
    seconds = _seconds(read_text(record, "started"), read_text(record, "ended"))
    return ", ".join(([] if state == "done" else [state]) + counted + seconds)


def _seconds(started: str, ended: str) -> list[str]:
    try:
        passed = datetime.fromisoformat(ended) - datetime.fromisoformat(started)
    except ValueError:
        return []
    return [f"{passed.total_seconds():,.0f} s"]


def _pairs(values: Mapping[str, Json]) -> str:
    known = [(key, read_value(values, key)) for key in values]
    shown = [f"{format_name(key)} {_word(value)}" for key, value in known if value not in (None, "", {}, [])]
    return ", ".join(shown)


def _word(value: Json) -> str:
    if isinstance(value, Mapping):
        return f"({_pairs(value)})"
    return f"{value:g}" if isinstance(value, float) else show_control_characters(str(value))
