"""evenhand's metrics on answers that another tool collects, read as ``evenhand score`` reads them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, NamedTuple

from evenhand.audits.run_setup import find_metrics
from evenhand.config import resolve_config
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric, Suite
from evenhand.core.records import Execution, Mention, SuiteInfo
from evenhand.logs.log_records import MARK_KEY, cut_answer, read_list
from evenhand.metrics.scorer import score_texts
from evenhand.store.ingest import parse_mention
from evenhand.store.prompt_rows import interleave_groups
from evenhand.text.rendering import render_text

OutputChoice = Literal["primary", "all"]
MeasuredOutputs = dict[str, float | None]
"""Such as ``{"sentiment.negative": 1.0}``; None if a metric has no value for the text."""


class AnswerText(NamedTuple):
    """A text, the prompt that it continues, and the words to mask in it."""

    text: str
    prompt: str = ""
    mentions: tuple[Mention, ...] = ()


def to_answer(text: str, mark: Mapping[str, Json]) -> AnswerText:
    """The answer to a prompt, with the data of the suite's mark; without a mark, the text alone."""
    words = tuple(map(parse_mention, read_list(mark.get("mentions"))))
    return AnswerText(cut_answer(text, mark), str(mark.get("prompt") or ""), words)


class AnswerScorer:
    """Metrics by name, with a cache of texts already measured."""

    def __init__(self, metrics: str | Sequence[str | Metric], *, outputs: OutputChoice = "primary") -> None:
        self._metrics = find_metrics(metrics, resolve_config({}))
        self._outputs = outputs
        self._known: dict[AnswerText, MeasuredOutputs] = {}
        # Scorers of other tools call from several threads, and our models are not thread-safe.
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers that every text gets."""
        names = []
        for spec, metric in self._metrics.items():
            outputs = metric.info.outputs
            means = [output.name for output in outputs if output.kind != "label"]
            shares = [name for output in outputs for name in output.shares().values()]
            chosen = metric.info.primary if self._outputs == "primary" else (*means, *shares)
            names += [f"{spec}.{name}" for name in chosen]
        return tuple(names)

    def measure(self, answers: Sequence[AnswerText]) -> list[MeasuredOutputs]:
        """One mapping per text, in order; all values of a text without letters are null."""
        with self._lock:
            fresh = [one for one in dict.fromkeys(answers) if one not in self._known and one.text.strip()]
            self._known.update(zip(fresh, self._score_new(fresh), strict=True))
            nothing: MeasuredOutputs = dict.fromkeys(self.names)
            return [dict(self._known.get(one, nothing)) for one in answers]

    def _score_new(self, answers: Sequence[AnswerText]) -> list[MeasuredOutputs]:
        rows: list[MeasuredOutputs] = [{} for _ in answers]
        for spec, metric in self._metrics.items():
            info = metric.info
            form: Any = {"scope": info.scope, "masking": info.masking}
            texts = [render_text(one.prompt, one.text, mentions=one.mentions, **form) for one in answers]
            for row, values in zip(rows, score_texts(spec, metric, texts).outputs, strict=True):
                for output in info.outputs:
                    value, label = values[output.name].value, values[output.name].label
                    row[f"{spec}.{output.name}"] = value
                    # Each label as 1 or 0.
                    for name, share in output.shares().items():
                        row[f"{spec}.{share}"] = None if label is None else float(label == name)
        names = self.names
        return [{name: row[name] for name in names} for row in rows]


Document = dict[str, Json]


def to_documents(
    suite: str | Suite, *, limit: int | None = None, offline: bool = False
) -> tuple[SuiteInfo, list[Document]]:
    """One document per prompt: its text, its id, and the mark with groups, cluster and words to mask.

    Args:
        suite: A name such as ``starter`` or ``templates:FILE``, or a suite.
        limit: Maximum number of prompts, spread over the groups.
        offline: Whether to avoid contacting the Hub.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}", expected="1 or more", fix="change it")
    if isinstance(suite, str):
        suite = registry.create_suite(suite, execution=Execution(offline=offline))
    info = suite.info
    # A prompt without text, such as five of BOLD's, cannot be sent to a model.
    prompts = interleave_groups([prompt for prompt in suite.prompts() if prompt.text.strip()])[:limit]
    if not prompts:
        raise InputError(f"suite {info.name!r} has no prompts", expected="at least one prompt")
    documents: list[Document] = []
    for prompt in prompts:
        mark: Json = {
            "suite": info.name,
            "version": info.version,
            "digest": info.digest,
            "prompt": prompt.text,
            "cluster": prompt.cluster,
            "template": prompt.template_id,
            "groups": {group.axis: group.name for group in prompt.groups},
            "baselines": dict(info.baselines),
            "mentions": [asdict(one) for one in prompt.mentions],
            "stop": info.spec.stop,
        }
        documents.append({"id": prompt.id, "prompt": prompt.text, MARK_KEY: mark})
    return info, documents
