"""What other tools read of a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.report.realistic import comparison, group_row, null_comparison, small_run

from evenhand.audits.report.exports import list_identifiers, list_numbers, lm_eval_results, model_card
from evenhand.core.errors import InputError
from evenhand.report.render_run import render
from evenhand.store.run import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    gaps = [
        comparison(),
        comparison(group="Asian_Americans", estimate=-0.05, low=-0.08, high=-0.02),
        null_comparison(group="Hispanic"),
    ]
    groups = [
        group_row(),
        group_row(group="Hispanic", value=None, low=None, high=None, n=0, null_reason="no values"),
    ]
    return small_run(tmp_path, gaps, groups)


def test_lm_eval_results_have_a_task_a_group_and_an_axis_over_them(run: Run) -> None:
    found = json.loads(lm_eval_results(run))
    task = found["results"]["evenhand_starter_race_African_Americans"]
    assert task["sentiment.negative,none"] == 0.192
    # Half of 0.15 to 0.24 over 1.95996.
    assert task["sentiment.negative_stderr,none"] == pytest.approx(0.045 / 1.959964)
    assert found["results"]["evenhand_starter_race_Hispanic"]["sentiment.negative,none"] == "N/A"
    axis = found["results"]["evenhand_starter_race"]
    assert axis["largest_gap.sentiment.negative,none"] == 0.05
    assert axis["largest_gap.sentiment.negative_stderr,none"] == pytest.approx(0.03 / 1.959964)
    assert found["higher_is_better"]["evenhand_starter_race"] == {"largest_gap.sentiment.negative": False}
    assert found["group_subtasks"] == {
        "evenhand_starter_race": [
            "evenhand_starter_race_African_Americans",
            "evenhand_starter_race_Hispanic",
        ]
    }
    assert found["n-samples"]["evenhand_starter_race_African_Americans"] == {
        "original": 252,
        "effective": 250,
    }


def test_each_number_has_its_n_interval_and_reason_and_missing_is_said(tmp_path: Path) -> None:
    groups = [
        group_row(),
        group_row(output="regard", metric="regard", value=None, low=None, high=None, n=0, n_null=252)
        | {"null_reason": "no values"},
    ]
    gaps = [null_comparison(metric="regard", output="regard"), comparison()]
    found = json.loads(lm_eval_results(small_run(tmp_path, gaps, groups)))
    name = "evenhand_starter_race_African_Americans"
    behind = found["configs"][name]["metadata"]
    assert behind["sentiment.negative"] == {
        "low": 0.15,
        "high": 0.24,
        "level": 0.95,
        "method": "wilson",
        "n": 250,
        "n_null": 2,
        "n_clusters": 10,
        "null_reason": None,
    }
    assert (behind["regard.regard"]["n"], behind["regard.regard"]["null_reason"]) == (0, "no values")
    # Whichever output stands last: the texts are those of the group.
    assert found["n-samples"][name] == {"original": 252, "effective": 250}
    axis = found["groups"]["evenhand_starter_race"]
    assert axis["largest_gap.regard.regard,none"] == axis["largest_gap.regard.regard_stderr,none"] == "N/A"


def test_the_hub_reads_the_model_card(run: Run) -> None:
    hub = pytest.importorskip("huggingface_hub")
    card = hub.ModelCard(model_card(run), ignore_metadata_errors=False)
    results = card.data.eval_results
    assert [result.metric_value for result in results] == [0.032, -0.05]
    assert results[0].metric_name == "sentiment.negative gap, 95 % interval 0.0110 to 0.0530, n 250"
    assert results[0].dataset_type == "evenhand/starter"
    assert "Largest gaps" in card.text


def test_a_hostile_name_stays_inside_the_front_matter(tmp_path: Path) -> None:
    hostile = small_run(tmp_path, [comparison(group='x"\n---\nlicense: mit\n')], [group_row()])
    front = model_card(hostile).split("\n---\n")[0]
    assert "license" not in [line.split(":")[0] for line in front.splitlines()]


def test_numbers_have_names_that_trackers_take(run: Run) -> None:
    found = list_numbers(run)
    assert found["starter/race/African_Americans/sentiment.negative/value"] == 0.192
    assert found["starter/race/African_Americans/sentiment.negative/gap"] == 0.032
    assert found["gaps_judged"] == 3
    assert all(re.fullmatch(r"[\w.\- /]+", name) for name in found)
    assert list_identifiers(run)["model"]


def test_groups_and_axes_of_like_names_stay_apart(tmp_path: Path) -> None:
    names = [("race", "C++"), ("race", "C#"), ("race_us", "x"), ("race", "a b"), ("race", "a-b")]
    found = small_run(
        tmp_path,
        [comparison(axis=axis, group=group) for axis, group in names],
        [group_row(axis=axis, group=group, value=place / 10) for place, (axis, group) in enumerate(names)],
    )
    assert len([name for name in list_numbers(found) if name.endswith("/value")]) == 5
    content = json.loads(lm_eval_results(found))
    assert [len(tasks) for tasks in content["group_subtasks"].values()] == [4, 1]
    values = [content["results"][task]["sentiment.negative,none"] for task in content["configs"]]
    assert sorted(values) == [0.0, 0.1, 0.2, 0.3, 0.4]


def test_exports_are_formats_of_the_report(run: Run) -> None:
    files = render(run, ["lm-eval", "model-card"])
    assert {path.name for path in files.values()} == {"lm_eval.json", "model_card.md"}
    other = Run(run.path, {**run.manifest, "identity": {"command": "compare"}})
    with pytest.raises(InputError, match=r"^a run of `evenhand compare` has no lm-eval\."):
        render(other, ["lm-eval"])
