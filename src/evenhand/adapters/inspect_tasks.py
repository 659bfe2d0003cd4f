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

from evenhand.adapters.answer_scoring import AnswerScorer, OutputChoice, to_answer, to_documents
from evenhand.audits.score import DEFAULT_METRICS
from evenhand.logs.log_records import MARK_KEY, read_mark, read_object
from evenhand.models.openai_format import INSTRUCTION

_GROUPS = "groups"


@metric
def by_group() -> Metric:
    """The mean of every group, named ``axis=group``; groups as the scorer was told, or as the suite says."""

    def measured(scores: list[SampleScore]) -> dict[str, float]:
        cells: dict[str, list[float]] = {}
        for one in scores:
            value = one.score.as_float()
            groups = cast("Mapping[str, str]", (one.score.metadata or {}).get(_GROUPS, {}))
            for axis, group in groups.items() if not math.isnan(value) else ():
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
        mark = read_mark(state.metadata)
        answer = to_answer("" if refused else text, mark)
        numbers = (await asyncio.to_thread(measurer.measure, [answer]))[0]
        # Axis to group: by the keys that were named, else as the mark of a suite's task says.
        groups = {} if keys else read_object(mark.get(_GROUPS))
        named = {**groups, **{axis: state.metadata.get(key) for axis, key in keys.items()}}
        return Score(
            value={name: math.nan if value is None else value for name, value in numbers.items()},
            answer=text,
            metadata={_GROUPS: {axis: str(name) for axis, name in named.items() if name is not None}},
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
        metrics: What is measured (default: the suite's own list).
        limit: So many prompts, spread over the groups.
        samples: Texts per prompt (default: the suite's own number).
    """
    info, rows = to_documents(suite, limit=limit)
    spec = info.spec
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
        epochs=Epochs(samples or spec.samples, "mean"),
        config=GenerateConfig(max_tokens=spec.max_new_tokens, temperature=spec.temperature, top_p=spec.top_p),
    )
