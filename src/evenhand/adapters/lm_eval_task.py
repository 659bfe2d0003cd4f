"""What an exported task does inside lm-eval: hand over prompts, measure answers, put numbers together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from evenhand.adapters.answer_scoring import AnswerScorer, AnswerText, MeasuredOutputs, to_answer
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.regular_files import read_text
from evenhand.logs.log_records import MARK_KEY

if TYPE_CHECKING:
    from datasets import Dataset

Doc = Mapping[str, Json]


class Part(TypedDict):
    """What the gap between groups is made of: the number of one prompt and the groups it speaks of."""

    value: float | None
    groups: Mapping[str, str]


class LmEvalTask:
    """The functions of a task, by its file of prompts."""

    def __init__(self, path: Path) -> None:
        """The task whose prompts and metrics a file holds."""
        try:
            contents = json.loads(read_text(path))
            self._documents, self._metrics = list(contents["documents"]), list(contents["metrics"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(
                f"{path} is not the file of a task: {error!r}",
                expected="the file as `evenhand export-task` wrote it",
                fix="export the task again",
            ) from error
        self._measurer: AnswerScorer | None = None

    def load(self) -> dict[str, Dataset]:
        """The prompts as the split ``test``."""
        from datasets import Dataset

        return {"test": Dataset.from_list(self._documents)}

    def measure(self, resps: Iterable[Sequence[str]], docs: Sequence[Doc]) -> list[list[str]]:
        """The answers as they are, measured in one go: `results` is asked for one prompt at a time."""
        texts = [list(answers) for answers in resps]
        self._measure_answers(texts, docs)
        return texts

    def results(self, doc: Doc, results: Sequence[Sequence[str]]) -> dict[str, float | Part | None]:
        """For every number the mean over the answers of a prompt, and what its gap is made of."""
        measured = self._measure_answers(results, [doc] * len(results))
        groups = _groups(doc)
        found: dict[str, float | Part | None] = {}
        for name in self._open_scorer().names:
            value = mean(one[name] for one in measured)
            found[name] = value
            found[f"{name}.gap"] = Part(value=value, groups=groups)
        return found

    def _measure_answers(self, texts: Sequence[Sequence[str]], docs: Sequence[Doc]) -> list[MeasuredOutputs]:
        answers: list[AnswerText] = [
            to_answer(text, mark if isinstance(mark := doc.get(MARK_KEY), Mapping) else None)
            for doc, several in zip(docs, texts, strict=True)
            for text in several
        ]
        return self._open_scorer().measure(answers)

    def _open_scorer(self) -> AnswerScorer:
        # Made when it is first used: lm-eval opens every task to list it.
        if self._measurer is None:
            self._measurer = AnswerScorer(self._metrics)
        return self._measurer


@lru_cache(maxsize=8)
def open_task(path: Path) -> LmEvalTask:
    """The task of a file, once: lm-eval runs a module anew for every function it takes from it."""
    return LmEvalTask(path)


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what has a value; None where nothing has.

    >>> mean([1.0, None, 0.0]), mean([None])
    (0.5, None)
    """
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def gap(parts: Iterable[Part]) -> float | None:
    """The widest difference between the means of two groups of one axis; None where no axis has two groups.

    >>> gap([Part(value=1.0, groups={"job": "a"}), Part(value=0.25, groups={"job": "b"})])
    0.75
    """
    cells: dict[str, dict[str, list[float]]] = {}
    for part in parts:
        if part["value"] is not None:
            for axis, group in part["groups"].items():
                cells.setdefault(axis, {}).setdefault(group, []).append(part["value"])
    means = [[sum(cell) / len(cell) for cell in groups.values()] for groups in cells.values()]
    return max((max(values) - min(values) for values in means if len(values) > 1), default=None)


def _groups(doc: Doc) -> dict[str, str]:
    mark = doc.get(MARK_KEY)
    groups = mark.get("groups") if isinstance(mark, Mapping) else None
    # A table of prompts has a column for every axis: null where a prompt does not speak of it.
    return {axis: str(name) for axis, name in groups.items() if name} if isinstance(groups, Mapping) else {}
