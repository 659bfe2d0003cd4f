"""The metrics of evenhand over answers that another tool collects, read as ``evenhand score`` reads them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Literal, NamedTuple

from evenhand.audits.run_setup import find_metrics
from evenhand.config import resolve_config
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric, Suite
from evenhand.core.records import Execution, Mention, MetricInfo, Prompt, SuiteInfo, Text, Value
from evenhand.logs.log_records import MARK_KEY, cut_answer
from evenhand.metrics.scorer import score_texts
from evenhand.store.ingest import parse_mention
from evenhand.store.prompt_rows import interleave_groups
from evenhand.text.rendering import render_text

OutputChoice = Literal["primary", "all"]
MeasuredOutputs = dict[str, float | None]
"""Such as ``{"sentiment.negative": 1.0}``; None where a metric has no value for the text."""


class AnswerText(NamedTuple):
    """A text, what it continues, and the words that are masked in it."""

    text: str
    prompt: str = ""
    mentions: tuple[Mention, ...] = ()


def to_answer(text: str, mark: Mapping[str, Json] | None) -> AnswerText:
    """The answer to a prompt of one of our suites, by the mark its task has; without one the text alone."""
    if not mark:
        return AnswerText(text)
    listed = mark.get("mentions")
    words = tuple(parse_mention(word) for word in listed) if isinstance(listed, Sequence) else ()
    return AnswerText(cut_answer(text, mark), str(mark.get("prompt") or ""), words)


class AnswerScorer:
    """Metrics by name; a text that was measured before is not measured again."""

    def __init__(self, metrics: str | Sequence[str | Metric], *, outputs: OutputChoice = "primary") -> None:
        self._metrics = find_metrics(metrics, resolve_config({}))
        self._outputs = outputs
        self._known: dict[AnswerText, MeasuredOutputs] = {}
        # Scorers of other tools call from several threads, and our models are not made for that.
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The numbers every text gets."""
        infos = ((spec, metric.info) for spec, metric in self._metrics.items())
        return tuple(f"{spec}.{name}" for spec, info in infos for name in _names(info, self._outputs))

    def measure(self, answers: Sequence[AnswerText]) -> list[MeasuredOutputs]:
        """One mapping a text, in order; a text without letters is null throughout."""
        with self._lock:
            fresh = [one for one in dict.fromkeys(answers) if one not in self._known and one.text.strip()]
            self._known.update(zip(fresh, self._score_new(fresh), strict=True))
            nothing: MeasuredOutputs = dict.fromkeys(self.names)
            return [dict(self._known.get(one, nothing)) for one in answers]

    def _score_new(self, answers: Sequence[AnswerText]) -> list[MeasuredOutputs]:
        found: list[MeasuredOutputs] = [{} for _ in answers]
        for spec, metric in self._metrics.items():
            texts = [_render_text(one, metric.info) for one in answers]
            for measured, values in zip(found, score_texts(spec, metric, texts).outputs, strict=True):
                measured.update((f"{spec}.{name}", value) for name, value in _numbers(metric.info, values))
        names = self.names
        return [{name: measured[name] for name in names} for measured in found]


def _render_text(answer: AnswerText, info: MetricInfo) -> Text:
    return render_text(
        answer.prompt, answer.text, scope=info.scope, masking=info.masking, mentions=answer.mentions
    )


def _names(info: MetricInfo, outputs: OutputChoice) -> tuple[str, ...]:
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


Document = dict[str, Json]


class SuiteDocuments(NamedTuple):
    """The prompts of a suite as another tool takes them."""

    info: SuiteInfo
    rows: list[Document]


def to_documents(suite: str | Suite, *, limit: int | None = None, offline: bool = False) -> SuiteDocuments:
    """One document a prompt: its text, its id, and the mark with groups, cluster and words to mask.

    Args:
        suite: A name such as ``starter`` or ``templates:FILE``, or a suite.
        limit: So many prompts, spread over the groups.
        offline: Whether the Hub must not be asked.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}", expected="1 or more", fix="change it")
    found = (
        registry.create_suite(suite, execution=Execution(offline=offline))
        if isinstance(suite, str)
        else suite
    )
    # A harness has nothing to ask where a prompt has no text, as five of BOLD's.
    prompts = interleave_groups([prompt for prompt in found.prompts() if prompt.text.strip()])[:limit]
    if not prompts:
        raise InputError(f"suite {found.info.name!r} has no prompts", expected="at least one prompt")
    return SuiteDocuments(found.info, [_document(prompt, found.info) for prompt in prompts])


def _document(prompt: Prompt, info: SuiteInfo) -> Document:
    groups: Json = {group.axis: group.name for group in prompt.groups}
    mark: Json = {
        "suite": info.name,
        "version": info.version,
        "digest": info.digest,
        "prompt": prompt.text,
        "cluster": prompt.cluster,
        "template": prompt.template_id,
        "groups": groups,
        "baselines": dict(info.baselines),
        "mentions": [asdict(one) for one in prompt.mentions],
        "stop": info.spec.stop,
    }
    return {"id": prompt.id, "prompt": prompt.text, MARK_KEY: mark}
