"""Runs as inputs of fairlearn's MetricFrame, and its inputs as a run: the rates are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.logs.make_files import BAD, GOOD

import evenhand
from evenhand.core.errors import EvenhandError, InputError
from evenhand.store.run import Run

TEXTS = [GOOD, BAD, GOOD, BAD, BAD, GOOD, GOOD, ""]
WHO = ["a", "a", "a", "a", "b", "b", "b", "b"]
TRUE = [0, 0, 1, 1, 0, 1, 1, 0]
PRED = [1, 0, 1, 0, 0, 1, 1, 0]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    table = pl.DataFrame({"text": TEXTS, "who": WHO, "id": [f"t{number}" for number in range(8)]})
    out = tmp_path_factory.mktemp("runs") / "texts"
    return evenhand.score(table, group={"who": "who"}, id="id", metrics="sentiment", out=out)


@pytest.fixture(scope="module")
def predicted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("runs") / "predictions"
    return evenhand.score_predictions(TRUE, PRED, sensitive_features={"who": WHO}, out=out)


def shares(run: Run, output: str) -> dict[str, float]:
    found = run.table("groups").filter(pl.col("output") == output)
    return dict(zip(found["group"], found["value"], strict=True))


def test_a_share_is_one_or_zero_a_text_and_a_text_without_a_value_is_left_out(run: Run) -> None:
    inputs = evenhand.frame_inputs(run, "sentiment.negative")
    assert inputs.y_pred.tolist() == [0, 1, 0, 1, 1, 0, 0]
    assert inputs.sensitive_features["who"].tolist() == WHO[:7]
    assert np.isnan(inputs.y_true).all()


def test_truth_is_found_by_text_id(run: Run) -> None:
    inputs = evenhand.frame_inputs(run.path, "sentiment.negative", axis="who", truth={"t1": 1.0, "t4": 0.0})
    assert inputs.y_true.tolist() == [1.0, 0.0]
    assert inputs.y_pred.tolist() == [1.0, 1.0]


def test_what_is_not_there_is_named(run: Run) -> None:
    with pytest.raises(EvenhandError) as caught:
        evenhand.frame_inputs(run, "sentiment.sad")
    assert str(caught.value).startswith(
        "the run has no output 'sentiment.sad'. Expected: sentiment.compound, "
    )
    assert str(caught.value).endswith("Fix: name one of these.")
    with pytest.raises(EvenhandError, match=r"the run has no axis 'age'\. Expected: who"):
        evenhand.frame_inputs(run, "sentiment.negative", axis="age")


def test_rates_of_predictions_are_worked_by_hand(predicted: Run) -> None:
    # a: true 0 0 1 1, predicted 1 0 1 0; b: true 0 1 1 0, predicted 0 1 1 0.
    assert shares(predicted, "selected") == {"a": 0.5, "b": 0.5}
    assert shares(predicted, "correct") == {"a": 0.5, "b": 1.0}
    assert shares(predicted, "false_positive") == {"a": 0.5, "b": 0.0}
    assert shares(predicted, "true_positive") == {"a": 0.5, "b": 1.0}
    gaps = predicted.table("comparisons").filter(pl.col("output") == "correct")
    assert gaps.select("group", "baseline", "estimate").rows() == [("a", "(rest)", -0.5)]
    nulls = predicted.table("scores").filter(pl.col("output") == "negatives")["null_reason"].to_list()
    assert nulls == [None, None, *["not a negative"] * 2, None, *["not a negative"] * 2, None]


def test_tables_columns_and_texts_are_taken_as_they_are(tmp_path: Path) -> None:
    run = evenhand.score_predictions(
        None,
        PRED,
        sensitive_features=pl.DataFrame({"who": WHO, "age": ["x", "y"] * 4}),
        texts=[f"text {number}" for number in range(8)],
        cluster=[0, 0, 1, 1, 2, 2, 3, 3],
        baseline={"who": "a"},
        out=tmp_path / "run",
    )
    assert set(run.table("groups")["axis"]) == {"who", "age", "who x age"}
    assert run.table("generations")["text"][3] == "row 3: text 3"
    assert set(run.table("scores")["output"]) == {"prediction"}
    assert set(run.table("comparisons").filter(pl.col("axis") == "who")["baseline"]) == {"a"}
    assert run.table("prompts")["cluster"].n_unique() == 4


def test_a_row_without_a_group_has_none(tmp_path: Path) -> None:
    features = {"who": ["a", None, float("nan"), "b"]}
    run = evenhand.score_predictions(None, [0, 1, 1, 0], sensitive_features=features, out=tmp_path / "run")
    assert set(run.table("groups")["group"]) == {"a", "b"}
    assert run.manifest["warnings"] == ["2 of 4 texts name no who"]


class _Unknown:
    """As pandas' NA: whether it equals itself cannot be told."""

    def __eq__(self, other: object) -> _Unknown:  # type: ignore[override]
        return self

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


def test_every_sign_of_a_missing_group_is_read_as_one(tmp_path: Path) -> None:
    missing = [_Unknown(), np.datetime64("NaT", "s"), np.float64("nan"), None]
    features = {"who": [*missing, "a", np.str_("b")]}
    run = evenhand.score_predictions(None, [0, 1] * 3, sensitive_features=features, out=tmp_path / "run")
    assert set(run.table("groups")["group"]) == {"a", "b"}
    assert run.manifest["warnings"] == ["4 of 6 texts name no who"]


def test_columns_of_an_array_are_axes_of_the_names_fairlearn_gives_them(tmp_path: Path) -> None:
    features = np.array([WHO, ["x", "y"] * 4]).T
    run = evenhand.score_predictions(None, PRED, sensitive_features=features, out=tmp_path / "run")
    axes = {"sensitive_feature_0", "sensitive_feature_1", "sensitive_feature_0 x sensitive_feature_1"}
    assert set(run.table("groups")["axis"]) == axes


def test_other_predictions_are_another_run(tmp_path: Path) -> None:
    evenhand.score_predictions(TRUE, PRED, sensitive_features={"who": WHO}, out=tmp_path / "run")
    with pytest.raises(EvenhandError, match="inputs"):
        evenhand.score_predictions(TRUE, TRUE, sensitive_features={"who": WHO}, out=tmp_path / "run")


BINARY = (
    "Expected: 0 or 1 for every row. Fix: compare one class with the rest, or apply a threshold to the "
    "scores."
)
ROWS = "Fix: check which rows belong together."


@pytest.mark.parametrize(
    ("y_true", "y_pred", "features", "message"),
    [
        (None, [0, 2], ["a", "b"], f"y_pred holds 2. {BINARY}"),
        (None, [], [], f"y_pred is not a list of numbers. {BINARY}"),
        (
            [0],
            [0, 1],
            ["a", "b"],
            f"y_true has 1 rows and y_pred 2. Expected: the same number of both. {ROWS}",
        ),
        (
            None,
            [0, 1],
            ["a"],
            "sensitive feature 'group' has 1 rows for 2 predictions. Expected: as many rows as "
            f"predictions. {ROWS}",
        ),
        (
            None,
            [0, 1],
            [["a", "x"], ["b", "x"]],
            "sensitive feature 'group' holds ['a', 'x'] in one row. Expected: one value per row. Fix: "
            "pass several features as a table, or as a mapping of axis to column.",
        ),
    ],
    ids=["class", "empty", "truth", "groups", "several"],
)
def test_bad_input_is_explained(y_true, y_pred, features, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        evenhand.score_predictions(y_true, y_pred, sensitive_features=features, out=tmp_path / "run")
    assert str(caught.value) == message


def test_fairlearn_agrees(run: Run, predicted: Run) -> None:
    metrics = pytest.importorskip("fairlearn.metrics", reason="needs fairlearn")
    inputs = evenhand.frame_inputs(run, "sentiment.negative")
    frame = metrics.MetricFrame(metrics=metrics.selection_rate, **inputs._asdict())
    assert frame.by_group.to_dict() == shares(run, "negative") == {"a": 0.5, "b": pytest.approx(1 / 3)}
    means = metrics.MetricFrame(
        metrics=metrics.mean_prediction, **evenhand.frame_inputs(run, "sentiment.compound")._asdict()
    )
    assert means.by_group.to_dict() == pytest.approx(shares(run, "compound"))
    theirs = metrics.MetricFrame(
        metrics={
            "selected": metrics.selection_rate,
            "false_positive": metrics.false_positive_rate,
            "true_positive": metrics.true_positive_rate,
        },
        y_true=TRUE,
        y_pred=PRED,
        sensitive_features={"who": WHO},
    )
    for output in theirs.by_group.columns:
        assert theirs.by_group[output].to_dict() == shares(predicted, output)


def test_metrics_that_need_the_truth_refuse_a_run_without_it(run: Run) -> None:
    metrics = pytest.importorskip("fairlearn.metrics", reason="needs fairlearn")
    with pytest.raises(ValueError, match="values must be from"):
        metrics.MetricFrame(
            metrics=metrics.true_positive_rate, **evenhand.frame_inputs(run, "sentiment.negative")._asdict()
        )
