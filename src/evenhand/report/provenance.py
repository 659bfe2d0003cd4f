"""What was asked and how to ask it again: sentences and facts from the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath

import polars as pl

from evenhand.core.digests import Json
from evenhand.report.reading import mapping_at, number_at, objects_at, text_at, value_at
from evenhand.report.wording import count, listed, name, visible
from evenhand.store.run import Run


@dataclass(frozen=True, slots=True)
class Asked:
    """What the run asked, for the first screen."""

    question: str
    details: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the provenance."""

    name: str
    value: str
    is_code: bool = False


def asked(run: Run) -> Asked:
    """The question of a run, and how it was put."""
    groups = run.table("groups").select("suite", "axis", "group").unique().height
    prompts, texts = _height(run, "prompts"), _texts(run)
    between = count(groups, "group")
    if mapping_at(run.manifest, "stages", "generate"):
        model = model_name(run)
        question = f"Does {model} write differently about {between}?"
        alone = f"How does {model} write about one group?"
        if text_at(run.manifest, "identity", "model", "backend") == "replay":
            question = f"Do the texts in {model} differ between {between}?"
            alone = f"How do the texts in {model} score?"
        return Asked(alone if groups == 1 else question, _how_written(run, prompts, texts))
    source = visible(text_at(run.manifest, "name")) or "a file"
    return Asked(
        f"How do {count(texts, 'text')} of one group score?"
        if groups == 1
        else f"Do {count(texts, 'text')} differ between {between}?",
        f"The texts of {source} {_how_compared(run)}.",
    )


def model_name(run: Run) -> str:
    """The model as a reader knows it; of a file or folder the last part of its path."""
    named = text_at(run.manifest, "identity", "model", "name")
    is_path = named.startswith(("/", "./", "../", "~")) or "\\" in named
    return visible(PurePath(named.replace("\\", "/")).name if is_path else named) or "the model"


def is_hosted(model: Mapping[str, Json]) -> bool:
    """Whether a model answers elsewhere, so that its texts cannot be made again."""
    return value_at(model, "repeatable") is False or text_at(model, "backend") == "endpoint"


def facts(run: Run) -> list[Fact]:
    """Where the numbers come from; empty facts are left out."""
    return [fact for fact in _facts(run) if fact.value]


def asked_for(run: Run) -> Mapping[str, Json]:
    """The samples and the limit of the run as it last was carried on."""
    growth = objects_at(run.manifest, "growth")
    return growth[-1] if growth else {}


def _how_written(run: Run, prompts: int, texts: int) -> str:
    suites = listed([name(suite) for suite in mapping_at(run.manifest, "identity", "suites")])
    samples = int(number_at(asked_for(run), "samples") or 1)
    times = "once each" if samples == 1 else f"{samples} times each"
    opening = f"It continued {count(prompts, 'prompt')} of the suite {suites or 'given'}, {times}"
    return f"{opening}: {count(texts, 'text')}. They {_how_compared(run)}."


def _how_compared(run: Run) -> str:
    axes = run.table("groups")["axis"].unique(maintain_order=True).to_list()
    metrics = listed([name(metric) for metric in mapping_at(run.manifest, "metrics")])
    along = listed([name(axis) for axis in axes])
    return f"were scored for {metrics or 'nothing'} and compared by {along or 'nothing'}"


def _texts(run: Run) -> int:
    """How many texts were scored: those the model wrote, or those of the file."""
    written = _height(run, "generations")
    return written or int(run.scan("scores").select(pl.col("text_id").n_unique()).collect().item())


def _height(run: Run, table: str) -> int:
    return int(run.scan(table).select(pl.len()).collect().item())


def _facts(run: Run) -> Iterator[Fact]:
    manifest = run.manifest
    model = mapping_at(manifest, "identity", "model")
    yield Fact("Command to repeat", visible(text_at(manifest, "command")), is_code=True)
    yield Fact("Model", visible(text_at(model, "name")))
    yield Fact("Back-end", visible(text_at(model, "backend")))
    yield Fact("Revision", visible(text_at(model, "revision")), is_code=True)
    yield Fact("Model options", _pairs(mapping_at(model, "options")))
    yield Fact("Served by", _pairs(mapping_at(manifest, "served_by")))
    if is_hosted(model):
        day = text_at(manifest, "created")[:10] or "the day of the run"
        yield Fact("Repeatable", f"no: a hosted model may change; this is what it gave on {day}")
    for suite in mapping_at(manifest, "identity", "suites"):
        known = mapping_at(manifest, "identity", "suites", suite)
        yield Fact(f"Suite {name(suite)}", f"version {text_at(known, 'version')}")
        yield Fact("Suite digest", visible(text_at(known, "digest")), is_code=True)
        yield Fact("Sampling", _pairs(mapping_at(known, "sampling")))
    yield Fact("Samples a prompt", text_at(asked_for(run), "samples"))
    yield Fact("Inputs", _pairs(mapping_at(manifest, "identity", "inputs")))
    yield Fact("Comparison", _pairs(mapping_at(manifest, "identity", "compare")))
    yield from circumstances(manifest)


def circumstances(manifest: Mapping[str, Json]) -> Iterator[Fact]:
    """Version, times, machine and stages: what every run has."""
    yield Fact("evenhand", text_at(manifest, "package"))
    yield Fact("Started", text_at(manifest, "created"))
    yield Fact("Ended", text_at(manifest, "ended"))
    yield Fact("Execution", _pairs(mapping_at(manifest, "execution")))
    yield Fact("Machine", _pairs(mapping_at(manifest, "hardware")))
    for stage in mapping_at(manifest, "stages"):
        yield Fact(f"Stage {name(stage)}", _stage(mapping_at(manifest, "stages", stage)))


def _stage(record: Mapping[str, Json]) -> str:
    state = text_at(record, "state")
    amounts = [(key, number_at(record, key)) for key in record]
    counted = [f"{amount:,.0f} {name(key)}" for key, amount in amounts if amount is not None]
    seconds = _seconds(text_at(record, "started"), text_at(record, "ended"))
    return ", ".join(([] if state == "done" else [state]) + counted + seconds)


def _seconds(started: str, ended: str) -> list[str]:
    try:
        passed = datetime.fromisoformat(ended) - datetime.fromisoformat(started)
    except ValueError:
        return []
    return [f"{passed.total_seconds():,.0f} s"]


def _pairs(values: Mapping[str, Json]) -> str:
    known = [(key, value_at(values, key)) for key in values]
    shown = [f"{name(key)} {_word(value)}" for key, value in known if value not in (None, "", {}, [])]
    return ", ".join(shown)


def _word(value: Json) -> str:
    if isinstance(value, Mapping):
        return f"({_pairs(value)})"
    return f"{value:g}" if isinstance(value, float) else visible(str(value))
