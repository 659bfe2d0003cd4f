"""``agreement`` and ``ratings`` as functions."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from tests.annotate.rated_files import of, rated
from tests.annotate.study_parts import make_study

import evenhand
from evenhand.annotate.agreement import prepare
from evenhand.annotate.database import Database, SubmittedAnswer
from evenhand.core.errors import InputError


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.annotate.agreement.RESAMPLES", 100)


def test_every_table_and_report(tmp_path: Path) -> None:
    run = evenhand.agreement(of(tmp_path / "r.csv", "nnn", "ppn", "mmu", "uux", "ppp"), out=tmp_path / "out")
    rows = run.table("agreement")
    # mixed stands with neutral, nonsense nowhere: labels with a place of their own are looked at again.
    assert set(rows["categories"]) == {"all", "ordered"}
    assert set(rows["statistic"]) == {"fleiss_kappa", "alpha_nominal", "alpha_ordinal", "spearman"}
    items = {row["item_id"]: row for row in run.table("items").iter_rows(named=True)}
    assert (items["1"]["label"], items["1"]["said"]) == ("positive", "negative 1, positive 2")
    assert items["2"]["label"] == "mixed"
    assert run.table("dissents").select("annotator", "said", "others").rows() == [
        ("c", "negative", "positive"),
        ("c", "neutral", "mixed"),
        ("c", "nonsense", "neutral"),
    ]
    for kind in ("html", "json", "md"):
        assert (run.path / f"report.{kind}").is_file()
    body = json.loads((run.path / "report.json").read_text())
    assert body["annotators"][0]["skill_null"] == "not asked for"


def test_a_higher_bar_leaves_texts_without_a_label(tmp_path: Path) -> None:
    path = of(tmp_path / "r.csv", "nnn", "ppn", "npu")
    run = evenhand.agreement(path, agreement=0.9, out=tmp_path / "out")
    reasons = {row["item_id"]: row["null_reason"] for row in run.table("items").iter_rows(named=True)}
    assert reasons == {"0": None, "1": "too little agreement", "2": "no majority"}


def test_checks_are_not_ratings_and_are_counted(tmp_path: Path) -> None:
    study = make_study(tmp_path / "s", items=6)
    expected = {
        row["item_id"]: json.loads(row["expected"])["sentiment"]
        for row in study.items().iter_rows(named=True)
        if row["is_check"]
    }
    with Database(study) as db:
        for who in ("a1", "a2"):
            given = [
                SubmittedAnswer(item, "sentiment", "neutral")
                for item in study.items()["item_id"]
                if item not in expected
            ]
            checks = [
                SubmittedAnswer(item, "sentiment", label if who == "a1" else "neutral")
                for item, label in expected.items()
            ]
            db.save_answers(who, given + checks)
    run = evenhand.agreement(study.folder, out=tmp_path / "out")
    people = {row["annotator"]: row for row in run.table("annotators").iter_rows(named=True)}
    assert (people["a1"]["checks_passed"], people["a1"]["n"]) == (len(expected), 6)
    wrong = sum(label != "neutral" for label in expected.values())
    assert people["a2"]["checks_passed"] == len(expected) - wrong
    # Everybody says neutral: agreement beyond chance cannot be told, and is not called 0 or 1.
    kappa = run.table("agreement").row(0, named=True)
    assert (kappa["value"], kappa["null_reason"]) == (None, "no variation")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [("1", "a", "positive"), ("2", "a", "negative")],
            r"has 1 annotator\. Expected: at least two annotators",
        ),
        ([("1", "a", "positive"), ("2", "b", "negative")], r"has no text that two people rated\."),
    ],
)
def test_too_few_people(tmp_path: Path, rows: list[tuple[str, str, str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepare(rated(tmp_path / "r.csv", rows))


def test_one_text_has_no_interval(tmp_path: Path) -> None:
    run = evenhand.agreement(of(tmp_path / "r.csv", "npp"), out=tmp_path / "out")
    told = (run.path / "report.md").read_text()
    assert "too few texts for an interval" in told
    assert "none: one cluster" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"consensus": "vote"}, r"^--consensus 'vote'\. Expected: majority, dawid-skene\."),
        ({"agreement": 2.0}, r"^--agreement 2 is out of range\. Expected: from 0 and at most 1\."),
        ({"least": 0}, r"^--least 0 is out of range\. Expected: 1 or more\."),
        ({"level": 1.0}, r"^--level 1 is out of range\. Expected: above 0.5 and below 1\."),
        ({"question": "joy"}, r"has no answers to the question 'joy'\. Expected: regard\."),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepare(of(tmp_path / "r.csv", "nnn", "ppn"), **options)


def test_methods_are_paired_over_people(tmp_path: Path) -> None:
    study = make_study(tmp_path / "s", task="likert", items=2, methods=("baseline", "steered"), checks=False)
    items = study.items()
    with Database(study) as db:
        for number, who in enumerate(("a1", "a2", "a3", "a4")):
            db.save_answers(
                who,
                [
                    SubmittedAnswer(
                        row["item_id"],
                        "biased",
                        str(5 + number % 2 - 2 * (row["method"] == "steered") + (number == 3)),
                    )
                    for row in items.iter_rows(named=True)
                ],
            )
    run = evenhand.ratings(study.folder, out=tmp_path / "out")
    base, steered = run.table("methods").to_dicts()
    # a1 5, a2 6, a3 5, a4 7 against 3, 4, 3, 5: always two lower, so the difference has no spread.
    assert (base["mean"], steered["mean"], steered["difference"]) == (5.75, 3.75, -2.0)
    assert steered["p"] is None
    assert "every difference is the same" in steered["null_reason"]
    told = (run.path / "report.md").read_text()
    assert "lower than baseline for each of 4 participants" in told
    with pytest.raises(InputError, match=r"^no text has the method 'x'\. Expected: baseline, steered\."):
        evenhand.ratings(study.folder, baseline="x")


def test_ratings_need_methods(tmp_path: Path) -> None:
    path = of(tmp_path / "r.csv", "nnn", "ppn")
    with pytest.raises(InputError, match=r"has texts of 0 methods\. Expected: texts of at least two methods"):
        evenhand.ratings(path)


def test_texts_without_two_ordered_labels_are_counted(tmp_path: Path) -> None:
    run = evenhand.agreement(of(tmp_path / "r.csv", "npp", "nnp", "mmm", "pmm"), out=tmp_path / "out")
    ordered = run.table("agreement").filter(pl.col("categories") == "ordered")
    assert ordered.select("n_items", "n_left_out").unique().rows() == [(2, 2)]
