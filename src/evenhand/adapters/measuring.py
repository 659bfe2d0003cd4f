"""The metrics of evenhand over answers that another tool collects, read as ``evenhand score`` reads them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from evenhand.api.parts import find_metrics
from evenhand.api.settings import resolve
from evenhand.core.digests import Json
from evenhand.core.protocols import Metric
from evenhand.core.records import Mention, MetricInfo, Text, Value
from evenhand.logs.records import cut
from evenhand.pipeline.asking import ask
from evenhand.pipeline.reading import mention
from evenhand.text.rendering import render

Outputs = Literal["primary", "all"]
Measured = dict[str, float | None]
"""Such as ``{"sentiment.negative": 1.0}``; None where a metric has no value for the text."""


class Answer(NamedTuple):
    """A text, what it continues, and the words that are masked in it."""

    text: str
    prompt: str = ""
    mentions: tuple[Mention, ...] = ()


def answer_of(text: str, mark: Mapping[str, Json] | None) -> Answer:
    """The answer to a prompt of one of our suites, by the mark its task has; without one the text alone."""
    if not mark:
        return Answer(text)
    listed = mark.get("mentions")
    words = tuple(mention(word) for word in listed) if isinstance(listed, Sequence) else ()
    return Answer(cut(text, mark), str(mark.get("prompt") or ""), words)


class Measurer:
    """Metrics by name; a text that was measured before is not measured again."""

    def __init__(self, metrics: str | Sequence[str | Metric], *, outputs: Outputs = "primary") -> None:
        self._metrics = find_metrics(metrics, resolve({}))
        self._outputs = outputs
        self._known: dict[Answer, Measured] = {}
        # Scorers of other tools call from several threads, and our models are not made for that.
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The numbers every text gets."""
        infos = ((spec, metric.info) for spec, metric in self._metrics.items())
        return tuple(f"{spec}.{name}" for spec, info in infos for name in _names(info, self._outputs))

    def measure(self, answers: Sequence[Answer]) -> list[Measured]:
        """One mapping a text, in order; a text without letters is null throughout."""
        with self._lock:
            fresh = [one for one in dict.fromkeys(answers) if one not in self._known and one.text.strip()]
            self._known.update(zip(fresh, self._asked(fresh), strict=True))
            nothing: Measured = dict.fromkeys(self.names)
            return [dict(self._known.get(one, nothing)) for one in answers]

    def _asked(self, answers: Sequence[Answer]) -> list[Measured]:
        found: list[Measured] = [{} for _ in answers]
        for spec, metric in self._metrics.items():
            texts = [_rendered(one, metric.info) for one in answers]
            for measured, values in zip(found, ask(spec, metric, texts).outputs, strict=True):
                measured.update((f"{spec}.{name}", value) for name, value in _numbers(metric.info, values))
        names = self.names
        return [{name: measured[name] for name in names} for measured in found]


def _rendered(answer: Answer, info: MetricInfo) -> Text:
    return render(
        answer.prompt, answer.text, scope=info.scope, masking=info.masking, mentions=answer.mentions
    )


def _names(info: MetricInfo, outputs: Outputs) -> tuple[str, ...]:
    if outputs == "primary":
        return info.primary
    means = (output.name for output in info.outputs if output.kind != "label")
    return (*means, *(name for output in info.outputs for name in output.shares().values()))


def _numbers(info: MetricInfo, values: Mapping[str, Value]) -> Iterator[tuple[str, float | None]]:
    """Every output as a number, and every label as 1 or 0."""
    for output in info.outputs:
        found = values[output.name]
        yield output.name, found.value
        for label, name in output.shares().items():
            yield name, None if found.label is None else float(found.label == label)
