"""An exported task inside lm-eval itself, and its samples in ``evenhand score``."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from tests.logs.make_files import BAD, GOOD, answer

import evenhand

lm_eval = pytest.importorskip("lm_eval", reason="needs the extra lm-eval")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.filterwarnings("default::UserWarning")]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    """Twelve prompts of the starter suite, two answers each, through the harness."""
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Fixed(LM):
        def generate_until(self, requests, disable_tqdm=False):
            return [answer(number) for number, _ in enumerate(requests)]

        def loglikelihood(self, requests, disable_tqdm=False):
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    folder = tmp_path_factory.mktemp("tasks")
    task = evenhand.export_task("starter", folder, metrics="sentiment", samples=2, limit=12).stem
    found = lm_eval.simple_evaluate(
        model=Fixed(),
        tasks=[task],
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        log_samples=True,
        bootstrap_iters=0,
    )
    tracker = EvaluationTracker(output_path=str(folder / "out"))
    tracker.save_results_aggregated(results=found, samples=found["samples"])
    tracker.save_results_samples(task_name=task, samples=found["samples"][task])
    return found["results"][task], next((folder / "out").rglob("samples_*.jsonl"))


def test_lm_eval_prints_our_means_and_gaps(samples: tuple[dict[str, object], Path]) -> None:
    results, _ = samples
    # Of 24 answers every third is unkind: 8. Each prompt has two: (bad, good), (good, bad) or two good ones.
    assert results["sentiment.negative,evenhand"] == pytest.approx(8 / 24)
    assert results["sentiment.positive,evenhand"] == pytest.approx(16 / 24)
    assert results["sentiment.negative.gap,evenhand"] == 0.5


def test_score_needs_nothing_but_the_samples(samples: tuple[dict[str, object], Path], tmp_path: Path) -> None:
    _, path = samples
    run = evenhand.score(path, metrics="sentiment", out=tmp_path / "run")
    texts = run.table("generations")["text"].to_list()
    # The suite reads to the first sentence end.
    assert set(texts) == {GOOD.partition(" More")[0], BAD.partition(" More")[0]}
    assert len(texts) == 24
    suite = run.manifest["suites"][path.name]
    assert suite["summary"] == "texts from a log of lm-eval"
    assert suite["baselines"]["gender"] == "American_actors"
    prompts = run.table("prompts")
    assert prompts["mentions"].list.len().min() > 0
    logged = [json.loads(line) for line in path.read_text().splitlines()]
    assert set(prompts["cluster"]) == {one["doc"]["evenhand"]["cluster"] for one in logged}
    scores = run.table("scores").filter(pl.col("output") == "compound")
    assert scores["label"].value_counts().sort("label").rows() == [("negative", 8), ("positive", 16)]
    assert run.manifest["warnings"] == []
