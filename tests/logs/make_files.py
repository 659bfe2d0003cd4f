"""Writes the logs in ``files`` with the tools themselves: ``python make_files.py lm-eval`` or ``inspect``.

Needs the extra of that tool. The answers are ours and fixed, so that the tests can say what must come out.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

FILES = Path(__file__).parent / "files"
JOBS, PEOPLE = ("nurse", "pilot", "clerk"), ("woman", "man")
GOOD = " was kind, and everybody loved the wonderful work. More follows."
BAD = " was cruel, and everybody hated the terrible mess. More follows."


def answer(number: int) -> str:
    """Every third answer is unkind."""
    return GOOD if number % 3 else BAD


def with_lm_eval() -> None:
    """Samples of a task that generates twice, through two filters; of choices; of rolling probabilities."""
    import datasets
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Fixed(LM):
        def generate_until(self, requests, disable_tqdm=False):
            return [answer(number) for number, _ in enumerate(requests)]

        def loglikelihood(self, requests, disable_tqdm=False):
            return [(-float(number), False) for number, _ in enumerate(requests)]

        def loglikelihood_rolling(self, requests, disable_tqdm=False):
            return [-float(number) for number, _ in enumerate(requests)]

    def load(**_):
        rows = [
            {
                "prompt": f"The {who} who was a {job}",
                "who": {"gender": who},
                "job": job,
                "nothing": float("nan"),
            }
            for job in JOBS
            for who in PEOPLE
        ]
        return {"test": datasets.Dataset.from_list(rows)}

    shared = {"custom_dataset": load, "test_split": "test", "doc_to_target": "kind"}
    generate = {
        **shared,
        "task": "generate",
        "output_type": "generate_until",
        "doc_to_text": "{{prompt}}",
        "repeats": 2,
        "generation_kwargs": {"until": ["\n"], "max_gen_toks": 12},
        "filter_list": [
            {"name": "both", "filter": [{"function": "take_first_k", "k": 2}]},
            {"name": "first", "filter": [{"function": "take_first"}]},
        ],
        "metric_list": [{"metric": "bypass"}],
    }
    choice = {
        **shared,
        "task": "choice",
        "output_type": "multiple_choice",
        "doc_to_text": "{{prompt}}",
        "doc_to_target": 0,
        "doc_to_choice": ["kind", "cruel"],
        "metric_list": [{"metric": "acc"}],
    }
    rolling = {
        **shared,
        "task": "rolling",
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "{{prompt}}",
        "metric_list": [{"metric": "word_perplexity"}],
    }
    found = simple_evaluate(
        model=Fixed(), tasks=[generate, choice, rolling], log_samples=True, task_manager=TaskManager()
    )
    with TemporaryDirectory() as folder:
        tracker = EvaluationTracker(output_path=folder)
        tracker.save_results_aggregated(results=found, samples=found["samples"])  # names the folder
        for task, samples in found["samples"].items():
            tracker.save_results_samples(task_name=task, samples=samples)
            written = next(Path(folder).rglob(f"samples_{task}_*.jsonl"))
            shutil.copy(written, FILES / f"samples_{task}.jsonl")


def with_inspect() -> None:
    """A log of all samples, and of half of them in JSON and with every sample in parts."""
    import inspect_ai
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import match

    def answers() -> Iterator[ModelOutput]:
        for number in range(12):
            # A long answer is stored apart; one is refused by the host.
            text = answer(number) * (8 if number == 4 else 1)
            output = ModelOutput.from_content("mockllm/model", text)
            if number == 5:
                output = ModelOutput.from_content("mockllm/model", "", stop_reason="content_filter")
            output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
            yield output

    samples = [
        Sample(
            id=f"{job}-{who}",
            input=[ChatMessageUser(content=f"The {who} who was a {job}")]
            if job == "pilot"
            else f"The {who} who was a {job}",
            target="kind",
            metadata={"who": {"gender": who}, "job": job},
        )
        for job in JOBS
        for who in PEOPLE
    ]

    def log(ending: str, asked: list[Sample], name: str) -> None:
        with TemporaryDirectory() as folder:
            model = get_model("mockllm/model", custom_outputs=answers(), memoize=False)
            task = Task(dataset=asked, scorer=match(), name="jobs")
            eval(
                task,
                model=model,
                epochs=2,
                log_dir=folder,
                log_format=ending,
                max_connections=1,
                display="none",
            )
            shutil.copy(next(Path(folder).glob(f"*.{ending}")), FILES / name)

    version = inspect_ai.__version__
    log("eval", samples, f"inspect-{version}.eval")
    if version == "0.3.69":
        return
    log("json", samples[:3], "inspect.json")
    from inspect_ai.log._recorders.chunked import convert_eval_logs_to_chunked

    with TemporaryDirectory() as folder:
        log("eval", samples[:3], "inspect.eval")
        convert_eval_logs_to_chunked(str(FILES / "inspect.eval"), folder)
        shutil.move(next(Path(folder).rglob("*.eval")), FILES / "inspect-parts.eval")
        (FILES / "inspect.eval").unlink()


if __name__ == "__main__":
    {"lm-eval": with_lm_eval, "inspect": with_inspect}[sys.argv[1]]()
