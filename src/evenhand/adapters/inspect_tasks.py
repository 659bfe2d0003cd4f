"""An Inspect scorer with evenhand's metrics, and an Inspect task from a suite.

Installed beside Inspect, both have names of their own: ``--scorer evenhand/measures`` and
``inspect eval evenhand/audit -T suite=starter``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import cast

from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, mean, metric, scorer, stderr
from inspect_ai.solver import TaskState, generate, system_message

from evenhand.adapters.answer_scoring import (
    AnswerScorer,
    AnswerText,
    MeasuredOutputs,
    OutputChoice,
    to_answer,
    to_documents,
)
from evenhand.audits.score import DEFAULT_METRICS
from evenhand.core.digests import Json
from evenhand.core.protocols import Suite
from evenhand.core.records import GenerationSpec
from evenhand.logs.log_records import MARK_KEY
from evenhand.models.openai_format import INSTRUCTION

_GROUPS = "groups"


@metric
def by_group() -> Metric:
    """The mean of every group, named ``axis=group``; groups as the scorer was told, or as the suite says."""

    def measured(scores: list[SampleScore]) -> dict[str, float]:
        cells: dict[str, list[float]] = {}
        for one in scores:
            value = one.score.as_float()
            for axis, group in _groups(one).items() if not math.isnan(value) else ():
                cells.setdefault(f"{axis}={group}", []).append(value)
        return {name: sum(values) / len(values) for name, values in sorted(cells.items())}

    return cast(Metric, measured)


@scorer(metrics={"*": [mean(), stderr(), by_group()]}, name="measures")
def inspect_scorer(
    metrics: str | Sequence[str] = DEFAULT_METRICS,
    group: Mapping[str, str] | Sequence[str] = (),
    outputs: OutputChoice = "primary",
) -> Scorer:
    """A scorer that measures every answer: one score a sample, with a number for each output.

    An answer without text, one that a host refused, and a number a metric cannot give, is NaN: Inspect leaves
    it out and counts it.
    The standard error is that of independent samples; ``evenhand score`` on the log knows which belong
    together.

    Args:
        metrics: The names of metrics, such as ``"sentiment,toxicity"``.
        group: Axis to the key of the sample's metadata that names its group, or keys that are axes. Samples
            of `inspect_task` name their groups themselves.
        outputs: ``primary`` is what evenhand's verdicts are about; ``all`` has every output and label.
    """
    keys = dict(group) if isinstance(group, Mapping) else {key: key for key in group}
    measurer = AnswerScorer(metrics, outputs=outputs)

    async def score(state: TaskState, target: Target) -> Score:
        # In a thread: a model that reads a text must not hold up the answers that are under way.
        text = state.output.completion
        refused = any(choice.stop_reason == "content_filter" for choice in state.output.choices[:1])
        answer = _answer("" if refused else text, state.metadata)
        measured = (await asyncio.to_thread(measurer.measure, [answer]))[0]
        return Score(
            value=_value(measured), answer=text, metadata={_GROUPS: _read_groups(state.metadata, keys)}
        )

    return score


@task(name="audit")
def inspect_task(
    suite: str = "starter",
    metrics: str | Sequence[str] | None = None,
    limit: int | None = None,
    samples: int | None = None,
) -> Task:
    """An Inspect task that asks a suite's prompts and measures the answers with `inspect_scorer`.

    Samples of one prompt are epochs. ``evenhand score`` on the log needs no further argument: groups,
    clusters, baselines and masks are in the metadata.

    Args:
        suite: A name such as ``starter`` or ``templates:FILE``.
        metrics: What is measured; the suite's own list where it is not given.
        limit: So many prompts, spread over the groups.
        samples: Texts a prompt; the suite's own number where it is not given.
    """
    return _task(suite, metrics, limit, samples)


def _task(
    suite: str | Suite, metrics: str | Sequence[str] | None, limit: int | None, samples: int | None
) -> Task:
    info, rows = to_documents(suite, limit=limit)
    dataset = MemoryDataset(
        [
            Sample(id=str(row["id"]), input=str(row["prompt"]), metadata={MARK_KEY: row[MARK_KEY]})
            for row in rows
        ],
        name=info.name,
    )
    return Task(
        dataset=dataset,
        # A chat model answers a sentence that breaks off; it is asked to go on instead, as endpoints are.
        solver=[system_message(INSTRUCTION), generate()],
        scorer=inspect_scorer(metrics=metrics or info.metrics),
        epochs=Epochs(samples or info.spec.samples, "mean"),
        config=_config(info.spec),
    )


def _config(spec: GenerationSpec) -> GenerateConfig:
    return GenerateConfig(max_tokens=spec.max_new_tokens, temperature=spec.temperature, top_p=spec.top_p)


def _answer(text: str, metadata: Mapping[str, Json]) -> AnswerText:
    mark = metadata.get(MARK_KEY)
    return to_answer(text, mark if isinstance(mark, Mapping) else None)


def _value(measured: MeasuredOutputs) -> dict[str, float]:
    return {name: float("nan") if value is None else value for name, value in measured.items()}


def _read_groups(metadata: Mapping[str, Json], keys: Mapping[str, str]) -> dict[str, str]:
    """Axis to group: by the keys that were named, else as the mark of a suite's task says."""
    mark = metadata.get(MARK_KEY)
    own = mark.get(_GROUPS) if not keys and isinstance(mark, Mapping) else None
    found: Mapping[str, Json] = own if isinstance(own, Mapping) else {}
    named = {**found, **{axis: metadata.get(key) for axis, key in keys.items()}}
    return {axis: str(name) for axis, name in named.items() if name is not None}


def _groups(one: SampleScore) -> Mapping[str, str]:
    return cast("Mapping[str, str]", (one.score.metadata or {}).get(_GROUPS, {}))
