"""A demo study over a starter run: agreement and Dawid and Skene find again what was put in.

Tolerances are four standard errors. An accuracy over n texts has the standard error sqrt(p (1 - p) / n), half
as much again where the truth is inferred; a share of agreeing pairs has at most 0.5 / sqrt(n), and kappa with
three labels half as much again, 1 / (1 - 1/3).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenhand
from evenhand.annotate.label_set import read_label_set
from evenhand.core.errors import InputError
from evenhand.stats.agreement_coefficients import fleiss_kappa, krippendorff_alpha
from evenhand.stats.consensus import dawid_skene, majority_vote
from evenhand.stats.label_scales import RatingCodes
from evenhand.store.run import Run
from evenhand.testing.synthetic_annotators import answer_study, simulate_ratings

ACCURACIES = {"careful": 0.95, "good": 0.85, "fair": 0.75, "hasty": 0.55}
LABELS = ("negative", "neutral", "positive")
ITEMS = 200


def expected_kappa(accuracies: Sequence[float], labels: int) -> float:
    """Fleiss' kappa, and Krippendorff's nominal alpha of many texts, where true labels are equally frequent.

    Two agree if both are right, or both wrong in the same of the other labels:
    ``p q + (1 - p) (1 - q) / (labels - 1)``. Labels are then equally frequent, so chance agrees in one of
    ``labels``.
    """
    pairs = [p * q + (1 - p) * (1 - q) / (labels - 1) for p, q in combinations(accuracies, 2)]
    agreement = sum(pairs) / len(pairs)
    return (agreement - 1 / labels) / (1 - 1 / labels)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, dict[str, str]]:
    """The agreement run of a study over texts of the starter suite, and the truth behind its answers."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVENHAND_CACHE", str(folder / "cache"))
        patch.setattr("evenhand.annotate.agreement.RESAMPLES", 200)
        audited = evenhand.audit(
            "stub", suite="starter", limit=ITEMS, samples=2, metrics="sentiment", out=folder / "run"
        )
        study = evenhand.create_study(folder / "study", audited.path, task="sentiment", items=ITEMS)
        truth = answer_study(study, "sentiment", ACCURACIES, seed=1)
        run = evenhand.agreement(study.folder, consensus="dawid-skene", out=folder / "agreement")
    return run, truth


def test_agreement_is_what_the_accuracies_give(demo: tuple[Run, dict[str, str]]) -> None:
    run, truth = demo
    n, kappa = len(truth), expected_kappa(list(ACCURACIES.values()), 3)
    found = {row["statistic"]: row for row in run.table("agreement").iter_rows(named=True)}
    tolerance = 4 * 1.5 * 0.5 / n**0.5
    assert found["fleiss_kappa"]["value"] == pytest.approx(kappa, abs=tolerance)
    assert found["alpha_nominal"]["value"] == pytest.approx(kappa, abs=tolerance)
    assert found["fleiss_kappa"]["low"] < kappa < found["fleiss_kappa"]["high"]


def test_dawid_and_skene_find_the_accuracies_and_the_truth(demo: tuple[Run, dict[str, str]]) -> None:
    run, truth = demo
    for row in run.table("annotators").iter_rows(named=True):
        known = ACCURACIES[row["annotator"]]
        error = 1.5 * (known * (1 - known) / len(truth)) ** 0.5
        assert row["skill"] == pytest.approx(known, abs=4 * error)
        assert row["skill_low"] <= row["skill"] <= row["skill_high"]
    order = run.table("annotators").sort("skill", descending=True)["annotator"].to_list()
    assert order[-1] == "hasty"
    items = run.table("items")
    right = np.mean([truth[row["item_id"]] == row["label"] for row in items.iter_rows(named=True)])
    # The most careful alone is right in 95 %; four together are not worse than that.
    assert right > 0.95 - 4 * (0.95 * 0.05 / len(truth)) ** 0.5


def test_the_hasty_one_is_named(demo: tuple[Run, dict[str, str]]) -> None:
    run, _ = demo
    people = run.table("annotators").sort("agreement")
    assert people["annotator"][0] == "hasty"
    assert run.table("dissents")["annotator"].value_counts(sort=True)["annotator"][0] == "hasty"
    told = (run.path / "report.md").read_text()
    assert "Agreement with the others" in told


def test_a_study_is_exported_and_comes_back(demo: tuple[Run, dict[str, str]], tmp_path: Path) -> None:
    run, truth = demo
    study = run.path.parent / "study"
    (path,) = evenhand.export_labels(study, out=tmp_path / "labels.jsonl")
    again = read_label_set(path)
    assert again.rows.height == len(ACCURACIES) * len(truth)
    assert again.questions[0].places == {"negative": -1.0, "neutral": 0.0, "positive": 1.0}
    assert set(again.rows["label"]) == set(LABELS)


def test_the_long_run_of_many_texts() -> None:
    """20,000 texts: the formulas of `expected` hold within four standard errors, also where answers miss."""
    truth = {f"{n:05}": LABELS[n % 3] for n in range(20_000)}
    rows = simulate_ratings(truth, ACCURACIES, labels=LABELS, seed=3, missing=0.3)
    ratings = RatingCodes.from_rows(*zip(*rows, strict=True), scale=LABELS)
    expected = expected_kappa(list(ACCURACIES.values()), 3)
    n = sum(count >= 2 for count in ratings.counts().sum(axis=1))
    tolerance = 4 * 1.5 * 0.5 / n**0.5
    alpha = krippendorff_alpha(ratings.of_item, ratings.of_label, scale="nominal", rng=0, resamples=100)
    kappa = fleiss_kappa(ratings.of_item, ratings.of_label, rng=0, resamples=100)
    assert alpha.value == pytest.approx(expected, abs=tolerance)
    assert kappa.value == pytest.approx(expected, abs=tolerance)
    fitted = dawid_skene(ratings)
    given = np.bincount(ratings.of_annotator)
    for name, found, count in zip(ratings.annotators, fitted.accuracies, given, strict=True):
        known = ACCURACIES[name]
        assert found == pytest.approx(known, abs=4 * 1.5 * (known * (1 - known) / count) ** 0.5)
    settled = dict(zip(ratings.items, majority_vote(ratings).labels, strict=True))
    kept = {item: label for item, label in settled.items() if label is not None}
    votes = np.mean([truth[item] == label for item, label in kept.items()])
    by_model = np.mean(
        [
            LABELS[at] == truth[item]
            for item, at in zip(ratings.items, fitted.posteriors.argmax(1), strict=True)
        ]
    )
    assert votes > 0.8
    assert by_model > 0.85


def test_bad_input() -> None:
    with pytest.raises(InputError, match=r"^the accuracy of 'x' is 2\. Expected: a share from 0 to 1\.$"):
        simulate_ratings({"1": "a"}, {"x": 2.0}, labels=("a", "b"))
    assert pl.DataFrame(simulate_ratings({"1": "a"}, {"x": 1.0}, labels=("a", "b"))).rows() == [
        ("1", "x", "a")
    ]
