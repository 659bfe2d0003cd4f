"""``export_task``: a suite as a task that lm-evaluation-harness runs with ``--include_path``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

from evenhand.adapters.answer_scoring import AnswerScorer, to_documents
from evenhand.audits.run_setup import RunPlan, metric_names
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Suite
from evenhand.core.records import GenerationSpec
from evenhand.run_options import TaskOptions
from evenhand.store.atomic_writes import remove_temporary, storage_errors, write_text

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
    """A task that is ready to be written: three files of one name in a folder."""

    def __init__(self, suite: str | Suite, folder: Path | str, options: TaskOptions) -> None:
        """The task of a suite; see `export_task`."""
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder} is a file", expected="a folder", fix="name another one")
        self._info, self._rows = to_documents(suite, limit=options["limit"], offline=options["offline"])
        self._metrics = metric_names(options["metrics"]) or self._info.metrics
        self._names = AnswerScorer(self._metrics).names
        self._samples = options["samples"] or self._info.spec.samples
        self.name = f"evenhand_{re.sub(r'[^A-Za-z0-9]+', '_', self._info.name).strip('_')}"

    def plan(self) -> RunPlan:
        """What will be written."""
        return RunPlan(
            title=f"export-task {self._info.name}",
            lines=(
                f"task    {self.name}: {len(self._rows):,} prompts, {self._samples} texts each",
                f"metrics {', '.join(self._metrics)}",
                f"folder  {self.folder}",
                f"then    lm_eval --include_path {self.folder} --tasks {self.name} --log_samples "
                "--output_path OUT",
                f"        evenhand score OUT/*/samples_{self.name}_*.jsonl",
            ),
            folder=self.folder,
        )

    def run(self) -> Path:
        """The YAML file, written with its prompts and functions beside it."""
        with storage_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.name}.yaml"
        contents: Json = {"metrics": list(self._metrics), "documents": self._rows}
        remove_temporary(self.folder)
        write_text(path.with_suffix(".json"), json.dumps(contents, ensure_ascii=False))
        write_text(path.with_suffix(".py"), _MODULE)
        # Last: lm-eval finds a task by this file, and a task that is found is whole.
        write_text(path, self._yaml())
        return path

    def _yaml(self) -> str:
        # JSON is YAML, and needs no library to be written; functions have a tag of lm-eval's own.
        functions = {key: f"!function {self.name}.{key}" for key in ("load", "measure", "results")}
        listed = "".join(
            f"  - {{metric: {json.dumps(name + end)}, aggregation: !function {self.name}.{how}, "
            f"higher_is_better: false}}\n"
            for name in self._names
            for end, how in (("", "mean"), (".gap", "gap"))
        )
        return (
            f"task: {self.name}\n"
            f"custom_dataset: {functions['load']}\n"
            "test_split: test\n"
            "output_type: generate_until\n"
            'doc_to_text: "{{prompt}}"\n'
            'doc_to_target: ""\n'
            'target_delimiter: ""\n'
            "num_fewshot: 0\n"
            f"repeats: {self._samples}\n"
            f"generation_kwargs: {_to_yaml_json(_sampling(self._info.spec))}\n"
            "filter_list:\n"
            f"  - name: evenhand\n"
            f"    filter: [{{function: custom, filter_fn: {functions['measure']}}}]\n"
            f"process_results: {functions['results']}\n"
            f"metric_list:\n{listed}"
            f"metadata: {{version: {json.dumps(self._info.version)}}}\n"
        )


@checks_options
def export_task(suite: str | Suite, folder: Path | str, **options: Unpack[TaskOptions]) -> Path:
    """The YAML file of an lm-eval task that asks a suite's prompts and measures the answers.

    lm-eval then prints the mean of every number, and as ``.gap`` the widest difference between two groups of
    one axis: a first look, without an interval. ``evenhand score`` on the samples it logs gives intervals,
    tests and a report; groups, clusters, baselines and masks are in the samples.

    Args:
        suite: A name such as ``starter`` or ``templates:FILE``, or a suite.
        folder: Where the files go; a task of the same suite in it is replaced.
        options: Those of ``evenhand export-task``.
    """
    return prepare(suite, folder, **options).run()


@checks_options
def prepare(suite: str | Suite, folder: Path | str, **options: Unpack[TaskOptions]) -> LmEvalExport:
    """A task with its prompts read, so that ``plan`` can be shown before ``run``."""
    return LmEvalExport(suite, folder, options)


def _sampling(spec: GenerationSpec) -> dict[str, Json]:
    """The suite's sampling in lm-eval's words."""
    greedy: dict[str, Json] = {"do_sample": False}
    sampled: dict[str, Json] = {
        "do_sample": True,
        "temperature": spec.temperature,
        "top_k": spec.top_k,
        "top_p": spec.top_p,
    }
    chosen = sampled if spec.temperature > 0 else greedy
    return {"until": [], "max_gen_toks": spec.max_new_tokens, **chosen}


def _to_yaml_json(values: Mapping[str, Json]) -> str:
    """A mapping as JSON that YAML reads alike: to YAML 1.1, ``1e-05`` without a point is no number."""
    return f"{{{', '.join(f'{json.dumps(key)}: {_scalar(value)}' for key, value in values.items())}}}"


def _scalar(value: Json) -> str:
    text = json.dumps(value)
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text
