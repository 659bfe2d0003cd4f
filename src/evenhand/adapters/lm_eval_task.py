"""A suite as a task that lm-evaluation-harness runs: ``export_task`` writes it.

Inside lm-eval the task provides prompts, measures answers and aggregates the results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from evenhand.adapters.answer_scoring import AnswerScorer, MeasuredOutputs, to_answer, to_documents
from evenhand.audits.run_setup import RunPlan, metric_names
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Suite
from evenhand.core.regular_files import read_text
from evenhand.logs.log_records import read_mark, read_object
from evenhand.run_options import TaskOptions
from evenhand.store.atomic_writes import remove_temporary, storage_errors, write_text

if TYPE_CHECKING:
    from datasets import Dataset

Doc = Mapping[str, Json]


_MODULE = '''"""Functions of an lm-eval task; written by `evenhand export-task`."""

from pathlib import Path

from evenhand.adapters.lm_eval_task import gap, mean, open_task

_TASK = open_task(Path(__file__).with_suffix(".json"))


def load(**_):
    """The prompts."""
    return _TASK.load()


def measure(resps, docs):
    """The answers, measured all at once."""
    return _TASK.measure(resps, docs)


def results(doc, results):
    """The numbers of one prompt."""
    return _TASK.results(doc, results)
'''


class LmEvalExport:
    """A task that is ready to be written: three files with the same name in one folder."""

    def __init__(self, suite: str | Suite, folder: Path | str, options: TaskOptions) -> None:
        """The task of a suite; see `export_task`."""
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder} is a file", expected="a folder", fix="choose another path")
        self._info, self._rows = to_documents(suite, limit=options["limit"], offline=options["offline"])
        self._metrics = metric_names(options["metrics"]) or self._info.metrics
        self._names = AnswerScorer(self._metrics).names
        self._samples = options["samples"] or self._info.spec.samples
        self.name = f"evenhand_{re.sub(r'[^A-Za-z0-9]+', '_', self._info.name).strip('_')}"

    def plan(self) -> RunPlan:
        """What will be written."""
        command = f"lm_eval --include_path {self.folder} --tasks {self.name} --log_samples --output_path OUT"
        lines = (
            f"task    {self.name}: {len(self._rows):,} prompts, {self._samples} texts each",
            f"metrics {', '.join(self._metrics)}",
            f"folder  {self.folder}",
            f"then    {command}",
            f"        evenhand score OUT/*/samples_{self.name}_*.jsonl",
        )
        return RunPlan(title=f"export-task {self._info.name}", lines=lines)

    def run(self) -> Path:
        """Write the YAML file, with its prompts and functions beside it, and return its path."""
        with storage_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.name}.yaml"
        contents: Json = {"metrics": list(self._metrics), "documents": self._rows}
        remove_temporary(self.folder)
        write_text(path.with_suffix(".json"), json.dumps(contents, ensure_ascii=False))
        write_text(path.with_suffix(".py"), _MODULE)
        # Written last: lm-eval finds a task by this file, so a task that is found is complete.
        write_text(path, self._to_yaml())
        return path

    def _to_yaml(self) -> str:
        # JSON is valid YAML and needs no library to write; functions need lm-eval's own tag.
        function = f"!function {self.name}."
        metrics = "".join(
            f"  - {{metric: {json.dumps(name + end)}, aggregation: {function}{how}, "
            "higher_is_better: false}\n"
            for name in self._names
            for end, how in (("", "mean"), (".gap", "gap"))
        )
        spec = self._info.spec
        sampling: dict[str, Json] = {"until": [], "max_gen_toks": spec.max_new_tokens, "do_sample": False}
        if spec.temperature > 0:
            sampling["do_sample"] = True
            sampling |= {"temperature": spec.temperature, "top_k": spec.top_k, "top_p": spec.top_p}
        # In YAML 1.1, ``1e-05`` without a decimal point is not a number.
        settings = re.sub(r"(?<= )(\d+)e", r"\1.0e", json.dumps(sampling)[1:-1])
        return f"""\
task: {self.name}
custom_dataset: {function}load
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: ""
target_delimiter: ""
num_fewshot: 0
repeats: {self._samples}
generation_kwargs: {{{settings}}}
filter_list:
  - name: evenhand
    filter: [{{function: custom, filter_fn: {function}measure}}]
process_results: {function}results
metric_list:
{metrics}metadata: {{version: {json.dumps(self._info.version)}}}
"""


@checks_options
def export_task(suite: str | Suite, folder: Path | str, **options: Unpack[TaskOptions]) -> Path:
    """Write a suite as an lm-eval task that measures the answers; returns the YAML file.

    lm-eval then prints the mean of every number, and as ``.gap`` the largest difference between two groups of
    one axis: a first look, without an interval. ``evenhand score`` on its logged samples gives intervals,
    tests and a report; groups, clusters, baselines and masks are in the samples.

    Args:
        suite: A name such as ``starter`` or ``templates:FILE``, or a suite.
        folder: Folder for the files; an existing task of the same suite is replaced.
        options: Those of ``evenhand export-task``.
    """
    return prepare(suite, folder, **options).run()


@checks_options
def prepare(suite: str | Suite, folder: Path | str, **options: Unpack[TaskOptions]) -> LmEvalExport:
    """The task with its prompts read, so that ``plan`` can be shown before ``run``."""
    return LmEvalExport(suite, folder, options)


class Part(TypedDict):
    """One term of the gap between groups: the number of one prompt and the groups that it is about."""

    value: float | None
    groups: Mapping[str, str]


class LmEvalTask:
    """The functions of a task, loaded from its file of prompts."""

    def __init__(self, path: Path) -> None:
        """The task whose prompts and metrics are in a file."""
        try:
            contents = json.loads(read_text(path))
            self._documents, self._metrics = list(contents["documents"]), list(contents["metrics"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(
                f"{path} is not a task file: {error!r}",
                expected="the file as `evenhand export-task` wrote it",
                fix="export the task again",
            ) from error

    def load(self) -> dict[str, Dataset]:
        """The prompts as the split ``test``."""
        from datasets import Dataset

        return {"test": Dataset.from_list(self._documents)}

    def measure(self, resps: Iterable[Sequence[str]], docs: Sequence[Doc]) -> list[list[str]]:
        """The answers unchanged, but measured in one batch: lm-eval calls `results` prompt by prompt."""
        texts = [list(answers) for answers in resps]
        self._measure_answers(texts, docs)
        return texts

    def results(self, doc: Doc, results: Sequence[Sequence[str]]) -> dict[str, float | Part | None]:
        """For every number, the mean over the answers of a prompt, and its term of the gap."""
        measured = self._measure_answers(results, [doc] * len(results))
        # A table of prompts has a column for every axis: null if a prompt has no group on it.
        named = read_object(read_mark(doc).get("groups"))
        groups = {axis: str(name) for axis, name in named.items() if name}
        numbers: dict[str, float | Part | None] = {}
        for name in self._scorer.names:
            value = mean(one[name] for one in measured)
            numbers |= {name: value, f"{name}.gap": Part(value=value, groups=groups)}
        return numbers

    def _measure_answers(self, texts: Sequence[Sequence[str]], docs: Sequence[Doc]) -> list[MeasuredOutputs]:
        pairs = ((doc, text) for doc, answers in zip(docs, texts, strict=True) for text in answers)
        return self._scorer.measure([to_answer(text, read_mark(doc)) for doc, text in pairs])

    @cached_property
    def _scorer(self) -> AnswerScorer:
        # Created on first use: lm-eval opens every task to list it.
        return AnswerScorer(self._metrics)


open_task = lru_cache(maxsize=8)(LmEvalTask)
"""The task of a file, cached: lm-eval reruns a module for every function that it imports from it."""


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the non-null values; None if there are none.

    >>> mean([1.0, None, 0.0]), mean([None])
    (0.5, None)
    """
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def gap(parts: Iterable[Part]) -> float | None:
    """The largest difference between the means of two groups of one axis; None if no axis has two groups.

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
