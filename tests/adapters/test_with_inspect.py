"""The scorer and the task inside Inspect itself, and their logs in ``evenhand score``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.logs.make_files import BAD, GOOD, JOBS, PEOPLE, answer

import evenhand

inspect_ai = pytest.importorskip("inspect_ai", reason="needs the extra inspect")
pytestmark = pytest.mark.filterwarnings("ignore")


def run_task(task: object, folder: Path) -> object:
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def answers() -> Iterator[ModelOutput]:
        for number in range(1000):
            # The second answer is empty.
            output = ModelOutput.from_content("mockllm/model", "" if number == 1 else answer(number))
            output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
            yield output

    model = get_model("mockllm/model", custom_outputs=answers(), memoize=False)
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(folder), max_connections=1, display="none")
    assert log.status == "success", log.error
    return log


def numbers(log: object, name: str) -> dict[str, float]:
    (found,) = [one for one in log.results.scores if one.name == name]
    return {key.removeprefix("evenhand/"): metric.value for key, metric in found.metrics.items()}


def own_task(**arguments: object) -> object:
    from inspect_ai.dataset import Sample

    from evenhand.adapters import inspect_scorer

    samples = [
        Sample(id=f"{job}-{who}", input=f"The {who} who was a {job}", metadata={"gender": who})
        for job in JOBS
        for who in PEOPLE
    ]
    return inspect_ai.Task(dataset=samples, scorer=inspect_scorer("sentiment", group=["gender"]), **arguments)


def test_the_scorer_measures_by_group_and_leaves_out_what_is_empty(tmp_path: Path) -> None:
    log = run_task(own_task(), tmp_path)
    # Answers 0 and 3 of 0, 2, 3, 4, 5 are unkind; 1 is empty. Women have 0, 2, 4; men have 3, 5.
    assert numbers(log, "sentiment.negative") == {
        "mean": 0.4,
        "stderr": pytest.approx(0.245, abs=0.001),
        "by_group_gender=woman": pytest.approx(1 / 3),
        "by_group_gender=man": 0.5,
    }


def test_what_a_host_refused_has_no_value_here_and_in_the_log(tmp_path: Path) -> None:
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def answers() -> Iterator[ModelOutput]:
        # Six of twelve answers are refused, whichever samples and epochs they fall to.
        for stop in ["stop", "content_filter"] * 6:
            output = ModelOutput.from_content("mockllm/model", BAD, stop_reason=stop)
            output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
            yield output

    model = get_model("mockllm/model", custom_outputs=answers(), memoize=False)
    task = own_task(epochs=2)
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(tmp_path), max_samples=1, display="none")
    refused = [one.output.stop_reason == "content_filter" for one in log.samples]
    values = [one.scores["measures"].value["sentiment.negative"] for one in log.samples]
    assert sum(refused) == 6
    assert [value != value for value in values] == refused
    (path,) = tmp_path.glob("*.eval")
    run = evenhand.score(path, group={"gender": "metadata.gender"}, metrics="sentiment", out=tmp_path / "run")
    assert run.manifest["warnings"][0] == "6 of 12 texts are left out: content_filter"
    groups = run.table("groups").filter(pl.col("output") == "negative")
    found = numbers(log, "sentiment.negative")
    for group, value in zip(groups["group"], groups["value"], strict=True):
        assert found.get(f"by_group_gender={group}") == value


def test_the_scorer_goes_with_inspects_own_grouped(tmp_path: Path) -> None:
    from inspect_ai.scorer import grouped, mean

    log = run_task(own_task(metrics={"*": [grouped(mean(), "gender")]}), tmp_path)
    found = {key.removeprefix("grouped_"): value for key, value in numbers(log, "sentiment.negative").items()}
    assert found == {"woman": pytest.approx(1 / 3), "man": 0.5, "all": 0.4}


def test_score_reads_the_log_of_any_task(tmp_path: Path) -> None:
    run_task(own_task(), tmp_path)
    (path,) = tmp_path.glob("*.eval")
    run = evenhand.score(path, group={"gender": "metadata.gender"}, metrics="sentiment", out=tmp_path / "run")
    groups = run.table("groups").filter(pl.col("output") == "negative")
    assert dict(zip(groups["group"], groups["value"], strict=True)) == {
        "man": 0.5,
        "woman": pytest.approx(1 / 3),
    }
    assert run.manifest["warnings"] == ["1 of 6 texts are left out: empty_text"]


def test_a_suite_is_a_task_and_its_log_needs_no_columns(tmp_path: Path) -> None:
    from evenhand.adapters import inspect_task

    log = run_task(inspect_task(suite="starter", metrics="sentiment", limit=8, samples=2), tmp_path)
    assert log.results.scores[0].scored_samples == 8
    (path,) = tmp_path.glob("*.eval")
    run = evenhand.score(path, metrics="sentiment", out=tmp_path / "run")
    texts = set(run.table("generations")["text"])
    assert texts == {None, GOOD.partition(" More")[0], BAD.partition(" More")[0]}
    assert run.table("generations").height == 16
    assert run.manifest["suites"][path.name]["baselines"]["gender"] == "American_actors"


def test_both_are_found_by_name(tmp_path: Path) -> None:
    from inspect_ai._util.registry import registry_lookup

    import evenhand.adapters.inspect_tasks  # noqa: F401

    assert registry_lookup("scorer", "evenhand/measures") is not None
    assert registry_lookup("task", "evenhand/audit") is not None


def test_a_failed_evaluation_is_read_with_a_warning(tmp_path: Path) -> None:
    from inspect_ai.dataset import Sample
    from inspect_ai.solver import solver

    from evenhand.logs import read_log

    @solver
    def fails():
        async def solve(state, generate):
            raise ValueError("out of order")

        return solve

    task = inspect_ai.Task(dataset=[Sample(id=1, input="x")], solver=fails())
    inspect_ai.eval(task, model="mockllm/model", log_dir=str(tmp_path), display="none")
    (path,) = tmp_path.glob("*.eval")
    log = read_log(path)
    assert log is not None
    assert log.table["failure"].to_list() == ["sample_error"]
    assert log.warnings[0].startswith("the evaluation is not complete (status error: ")
