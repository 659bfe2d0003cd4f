"""Metrics that are given as objects are used as they are, whatever the registry knows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copytree

import pytest
from tests.audits.texts import table

from evenhand import gate, score
from evenhand.audits.report.measures import read_measures
from evenhand.core.errors import InputError
from evenhand.core.records import MetricInfo, OutputInfo, Text, Value
from evenhand.stats.contrasts import MEANS, SHARES
from evenhand.testing import check_metric


class Toxic:
    """A metric whose label is named like the output it is cut from."""

    info = MetricInfo(
        name="mine",
        version="1",
        outputs=(
            OutputInfo("toxic", "continuous", "more toxic", low=0.0, high=1.0, labels=("fine", "toxic")),
        ),
        summary="Whether a text is a bad one.",
        primary=("toxic",),
    )

    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        return [
            {"toxic": Value(0.9, "toxic") if "awful" in text.text else Value(0.2, "fine")} for text in texts
        ]


def test_a_metric_that_a_run_held_before_is_kept(tmp_path: Path) -> None:
    file, out = tmp_path / "t.csv", tmp_path / "run"
    table({"women": 0.7, "men": 0.2}, prompts=4).write_csv(file)
    for metric in ("sentiment", Toxic()):
        run = score(file, group={"gender": "group"}, metrics=[metric], out=out)
    assert sorted(run.manifest["metrics"]) == ["mine", "sentiment"]


def test_a_label_named_like_its_output_is_compared_once(tmp_path: Path) -> None:
    table({"women": 0.7, "men": 0.2}, prompts=40).write_csv(tmp_path / "t.csv")
    run = score(
        tmp_path / "t.csv",
        text="text",
        prompt="prompt",
        group=["group"],
        baseline={"group": "men"},
        metrics=[Toxic()],
        out=tmp_path / "run",
    )
    comparisons = run.table("comparisons").select("output", "method", "exploratory", "family_size")
    assert comparisons.rows() == [
        ("toxic", MEANS, False, 1),
        ("toxic.fine", SHARES, True, 2),
        ("toxic.toxic", SHARES, True, 2),
    ]
    assert run.table("groups").select("group", "output").is_unique().all()
    assert [check.output for check in gate(run, max=["mine group 0.01"]).checks] == ["toxic"]
    assert [check.output for check in gate(run, max=["mine.toxic group 0.01"]).checks] == ["toxic"]
    (check,) = gate(run, max=["mine.toxic.toxic group 0.01"]).checks
    assert check.is_share
    before = copytree(run.path, tmp_path / "before")
    assert [check.output for check in gate(run, baseline_run=before).checks] == ["toxic"]
    titles = {measure.output: measure.title for measure in read_measures(run).values()}
    assert titles == {"toxic": "mean toxic", "toxic.fine": "fine", "toxic.toxic": "toxic"}
    tables = json.loads((run.path / "report.json").read_text())
    assert len({(row["group"], row["output"]) for row in tables["comparisons"]}) == len(tables["comparisons"])
    check_metric(Toxic())


def test_two_metrics_of_one_name_are_refused(tmp_path: Path) -> None:
    """One of them would be measured, under the name of both."""
    table({"women": 0.7, "men": 0.2}, prompts=4).write_csv(tmp_path / "t.csv")
    for metrics in ([Toxic(), Toxic()], [Toxic(), "mine"]):
        with pytest.raises(InputError, match="two metrics are called 'mine'"):
            score(tmp_path / "t.csv", group=["group"], metrics=metrics, out=tmp_path / "run")
    mine = Toxic()
    score(tmp_path / "t.csv", group=["group"], metrics=[mine, mine, "sentiment"], out=tmp_path / "run")
