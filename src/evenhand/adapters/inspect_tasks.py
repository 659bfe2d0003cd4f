"""An Inspect scorer with evenhand's metrics, and an Inspect task from a suite.

Once installed beside Inspect, both are available by name: ``--scorer evenhand/measures`` and
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
from evenhand.models import INSTRUCTION

_GROUPS = "groups"


@metric
def by_group() -> Metric:
    """The mean of every group, named ``axis=group``; groups come from the scorer's arguments or the suite."""

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
    """A scorer that measures every answer: one score per sample, with a number for each output.

    An answer without text, a refused answer, and a null value of a metric are NaN: Inspect leaves
    them out and counts them.
    The standard error assumes independent samples; ``evenhand score`` on the log accounts for
    clusters.

    Args:
        metrics: The names of metrics, such as ``"sentiment,toxicity"``.
        group: Axis to the key of the sample's metadata that names its group, or keys that are axes. Samples
            of `inspect_task` already name their groups.
        outputs: ``primary`` for the outputs of evenhand's verdicts; ``all`` for every output and label.
    """
    keys = dict(group) if isinstance(group, Mapping) else {key: key for key in group}
    measurer = AnswerScorer(metrics, outputs=outputs)

    async def score(state: TaskState, target: Target) -> Score:
        # In a thread: a model that reads a text must not block answers still in progress.
        text = state.output.completion
        refused = any(choice.stop_reason == "content_filter" for choice in state.output.choices[:1])
        mark = read_mark(state.metadata)
        answer = to_answer("" if refused else text, mark)
        numbers = (await asyncio.to_thread(measurer.measure, [answer]))[0]
        # Axis to group: from the keys that were named, else from the mark of a suite's task.
        groups = {} if keys else read_object(mark.get(_GROUPS))
        named = {**groups, **{axis: state.metadata.get(key) for axis, key in keys.items()}}
        known = {axis: str(name) for axis, name in named.items() if name is not None}
        value = {name: math.nan if number is None else number for name, number in numbers.items()}
        return Score(value=value, answer=text, metadata={_GROUPS: known})

    return score


@task(name="audit")
def inspect_task(
    suite: str = "starter",
    metrics: str | Sequence[str] | None = None,
    limit: int | None = None,
    samples: int | None = None,
) -> Task:
    """An Inspect task that sends a suite's prompts and measures the answers with `inspect_scorer`.

    Repeated samples of a prompt are epochs. ``evenhand score`` on the log needs no further arguments: groups,
    clusters, baselines and masks are in the metadata.

    Args:
        suite: A name such as ``starter`` or ``templates:FILE``.
        metrics: The metrics to use (default: the suite's own list).
        limit: Maximum number of prompts, spread over the groups.
        samples: Texts per prompt (default: the suite's own number).
    """
    info, rows = to_documents(suite, limit=limit)
    spec = info.spec
    prompts = [
        Sample(id=str(row["id"]), input=str(row["prompt"]), metadata={MARK_KEY: row[MARK_KEY]})
        for row in rows
    ]
    return Task(
        dataset=MemoryDataset(prompts, name=info.name),
        # A chat model would reply to an unfinished sentence; it is asked to continue it, as endpoints are.
        solver=[system_message(INSTRUCTION), generate()],
        scorer=inspect_scorer(metrics=metrics or info.metrics),
        epochs=Epochs(samples or spec.samples, "mean"),
        config=GenerateConfig(max_tokens=spec.max_new_tokens, temperature=spec.temperature, top_p=spec.top_p),
    )
