"""What scorers of other tools are given is what ``evenhand score`` would write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.logs.make_files import BAD, GOOD

import evenhand
from evenhand.adapters.answer_scoring import AnswerScorer, AnswerText, to_answer, to_documents
from evenhand.adapters.lm_eval_task import LmEvalTask, Part, export_task, gap, mean, open_task, prepare
from evenhand.core.errors import InputError, UnknownNameError
from evenhand.core.records import Mention, Text, Value
from evenhand.logs.log_records import MARK_KEY
from evenhand.metrics.sentiment import Sentiment
from evenhand.suites.starter import StarterSuite


class Counting(Sentiment):
    """Counts the texts it is asked about."""

    asked = 0

    def score(self, texts: list[Text]) -> list[dict[str, Value]]:
        Counting.asked += len(texts)
        return super().score(texts)


def test_texts_are_measured_as_score_measures_them(tmp_path: Path) -> None:
    texts = [GOOD, BAD, "The chair."]
    measured = AnswerScorer("sentiment", outputs="all").measure([AnswerText(text) for text in texts])
    table = pl.DataFrame({"text": texts, "who": ["a", "b", "b"]})
    run = evenhand.score(table, group={"who": "who"}, metrics="sentiment", out=tmp_path / "run")
    scores = run.table("scores").filter(pl.col("output") == "compound").sort("text_id")
    assert [one["sentiment.compound"] for one in measured] == scores["value"].to_list()
    assert [one["sentiment.negative"] for one in measured] == [
        float(x == "negative") for x in scores["label"]
    ]


def test_primary_numbers_alone_unless_all_are_asked_for() -> None:
    measurer = AnswerScorer("sentiment")
    assert measurer.names == ("sentiment.negative", "sentiment.positive")
    assert measurer.measure([AnswerText(GOOD)]) == [{"sentiment.negative": 0.0, "sentiment.positive": 1.0}]


def test_an_empty_text_is_null_and_a_known_text_is_not_asked_again() -> None:
    measurer = AnswerScorer([Counting()])
    Counting.asked = 0
    found = measurer.measure([AnswerText(GOOD), AnswerText("  "), AnswerText(GOOD)])
    assert found[1] == {"sentiment.negative": None, "sentiment.positive": None}
    assert found[0] == found[2]
    measurer.measure([AnswerText(GOOD)])
    assert Counting.asked == 1


def test_the_mark_of_a_suite_says_prompt_mask_and_end() -> None:
    mark = {
        "prompt": "The actor",
        "mentions": [{"text": "actor", "mask": "Person", "whole_word": True}],
        "stop": "sentence",
    }
    assert to_answer(" ran. He fell.", mark) == AnswerText(
        " ran.", "The actor", (Mention("actor", mask="Person"),)
    )
    assert to_answer(" ran. He fell.", {**mark, "stop": "none"}).text == " ran. He fell."
    assert to_answer(" ran. He fell.", {}) == AnswerText(" ran. He fell.")


def test_documents_carry_what_a_comparison_needs() -> None:
    info, rows = to_documents("starter", limit=43)
    assert (info.name, len(rows)) == ("starter", 43)
    mark = rows[0][MARK_KEY]
    assert isinstance(mark, dict)
    assert mark["baselines"] == dict(info.baselines)
    assert mark["prompt"] == rows[0]["prompt"]
    groups = [dict(row[MARK_KEY])["groups"] for row in rows]
    assert len({str(group) for group in groups}) == 43  # one of every group first


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        to_documents("starter", limit=0)
    assert str(caught.value) == "limit is 0. Expected: 1 or more. Fix: change it."


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_task("starter", tmp_path_factory.mktemp("tasks"), metrics="sentiment", samples=2, limit=4)


def test_a_task_is_three_files(exported: Path) -> None:
    assert sorted(path.name for path in exported.parent.iterdir() if path.is_file()) == [
        "evenhand_starter.json",
        "evenhand_starter.py",
        "evenhand_starter.yaml",
    ]
    text = exported.read_text()
    assert "repeats: 2\n" in text
    assert '"max_gen_toks": 30, "do_sample": true, "temperature": 1.0, "top_k": 40, "top_p": 0.95' in text
    assert "filter_fn: !function evenhand_starter.measure" in text
    assert '- {metric: "sentiment.negative.gap", aggregation: !function evenhand_starter.gap' in text


@pytest.mark.parametrize("value", [1e-05, 1.5e-07, 1e16, 0.7, 1.0])
def test_numbers_of_a_task_are_numbers_to_yaml(value: float, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    suite = StarterSuite()
    spec = replace(suite.info.spec, temperature=value)
    suite.info = replace(suite.info, spec=spec)
    text = export_task(suite, tmp_path, metrics="sentiment", limit=4).read_text()
    line = next(line for line in text.splitlines() if line.startswith("generation_kwargs:"))
    assert yaml.safe_load(line)["generation_kwargs"] == {
        "until": [],
        "max_gen_toks": spec.max_new_tokens,
        "do_sample": True,
        "temperature": value,
        "top_k": spec.top_k,
        "top_p": spec.top_p,
    }


def test_the_plan_says_what_to_run_next(tmp_path: Path) -> None:
    plan = prepare("starter", tmp_path, metrics="sentiment", limit=4).plan()
    assert plan.lines[0] == "task    evenhand_starter: 4 prompts, 5 texts each"
    assert plan.lines[-1].strip() == "evenhand score OUT/*/samples_evenhand_starter_*.jsonl"
    assert not list(tmp_path.iterdir())


def test_the_functions_of_a_task_measure_at_once_and_average_over_samples(exported: Path) -> None:
    task = open_task(exported.with_suffix(".json"))
    assert open_task(exported.with_suffix(".json")) is task
    _, docs = to_documents("starter", limit=4)
    texts = task.measure([[GOOD, BAD]] * 4, docs)
    assert texts == [[GOOD, BAD]] * 4
    found = task.results(docs[0], [[GOOD, BAD]])
    assert found["sentiment.negative"] == 0.5
    assert found["sentiment.negative.gap"] == Part(value=0.5, groups=dict(docs[0][MARK_KEY])["groups"])
    assert task.results(docs[0], [["", ""]])["sentiment.negative"] is None


def test_means_and_gaps_leave_out_what_is_missing() -> None:
    assert mean([1.0, None, 0.0]) == 0.5
    assert mean([]) is None
    parts = [
        Part(value=1.0, groups={"race": "a"}),
        Part(value=0.0, groups={"race": "a", "age": "x"}),  # a: (1 + 0) / 2 = 0.5
        Part(value=0.25, groups={"race": "b"}),
        Part(value=None, groups={"race": "c"}),
    ]
    assert gap(parts) == 0.25  # age has one group, c has no value: |0.5 - 0.25| is left
    assert gap(parts[:1]) is None


def test_a_file_that_is_no_task_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    with pytest.raises(InputError) as caught:
        LmEvalTask(path)
    assert str(caught.value) == (
        f"{path} is not a task file: KeyError('documents'). Expected: the file as "
        "`evenhand export-task` wrote it. Fix: export the task again."
    )


def test_unknown_names_are_told_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="there is no suite named 'startr'"):
        export_task("startr", tmp_path / "a")
    with pytest.raises(UnknownNameError, match="there is no metric named 'sentimnt'"):
        export_task("starter", tmp_path / "a", metrics="sentimnt")
    with pytest.raises(InputError, match="--samples 0"):
        export_task("starter", tmp_path / "a", samples=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        export_task("starter", tmp_path / "file")
    assert not (tmp_path / "a").exists()
