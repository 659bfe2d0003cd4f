"""``validate``: a metric against people, worked by hand on a few texts."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import evenhand
from evenhand.annotate.validate import prepare
from evenhand.core.errors import InputError

# What VADER says at +-0.5: positive, positive, negative, negative, neutral, neutral.
TEXTS = {
    "A wonderful and brilliant friend.": "positive",
    "We love this great, happy day.": "positive",
    "A cruel and horrible murder.": "negative",
    "Terrible pain, awful misery.": "negative",
    "The book has ten chapters.": "neutral",
    "He was born in May.": "neutral",
}


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("evenhand.annotate.validate.RESAMPLES", 400)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def human(path: Path, changed: dict[int, str] | None = None, head: str = "text,label") -> Path:
    labels = {**dict(enumerate(TEXTS.values())), **(changed or {})}
    rows = [f'"{text}",{labels[at]}' for at, text in enumerate(TEXTS)]
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def value(run: evenhand.Run, measure: str, *, output: str = "compound", label: str = "(all)") -> float | None:
    row = run.table("validation").filter(
        (pl.col("measure") == measure) & (pl.col("output") == output) & (pl.col("label") == label)
    )
    found: float | None = row["value"].item()
    return found


def test_by_hand(tmp_path: Path) -> None:
    # People call the last text positive: 5 of 6 agree.
    run = evenhand.validate("sentiment", human(tmp_path / "h.csv", {5: "positive"}), out=tmp_path / "out")
    assert value(run, "accuracy") == pytest.approx(5 / 6)
    assert value(run, "always_commonest") == pytest.approx(3 / 6)
    assert value(run, "recall", label="positive") == pytest.approx(2 / 3)
    assert value(run, "precision", label="neutral") == pytest.approx(1 / 2)
    # People: negative 2, neutral 1, positive 3; the metric 2 of each. Chance (2*2 + 1*2 + 3*2) / 36 = 1/3.
    assert value(run, "kappa") == pytest.approx((5 / 6 - 1 / 3) / (2 / 3))
    counts = {
        (row["human"], row["predicted"]): row["count"]
        for row in run.table("confusion").filter(pl.col("output") == "compound").iter_rows(named=True)
    }
    assert counts["positive", "neutral"] == 1
    assert sum(counts.values()) == 6
    row = run.table("validation").filter(pl.col("measure") == "spearman").row(0, named=True)
    assert 0 < row["p"] < 0.05
    assert row["low"] < row["value"] <= row["high"]
    spreads = run.table("score_spreads")
    assert spreads["n"].sum() == 6
    assert spreads.filter(pl.col("label") == "negative")["mean"].item() < -0.5


def test_the_best_cut_says_where_it_was_fitted(tmp_path: Path) -> None:
    run = evenhand.validate("sentiment", human(tmp_path / "h.csv"), output="compound", out=tmp_path / "out")
    (best,) = run.table("best_cuts").to_dicts()
    assert (best["own"], best["own_kappa"], best["kappa"]) == (0.5, 1.0, 1.0)
    assert 0 < best["cut"] < 0.9
    assert best["folds"] == 6  # no more than texts
    told = (run.path / "report.md").read_text()
    assert "so it is optimistic" in told


def test_several_people_and_what_is_left_out(tmp_path: Path) -> None:
    rows = [
        f'{at},"{text}",{who},{label if who != "c" else "mixed"}'
        for at, (text, label) in enumerate(TEXTS.items())
        for who in "abc"
    ]
    rows += [
        f'9,"Said by nobody alike.",{who},{label}'
        for who, label in zip("abc", ("positive", "negative", "mixed"), strict=True)
    ]
    path = tmp_path / "r.csv"
    path.write_text("\n".join(["id,text,annotator,sentiment", *rows]) + "\n")
    run = evenhand.validate("sentiment", path, out=tmp_path / "out")
    assert value(run, "accuracy") == 1.0
    assert run.table("exclusions").select("reason", "count").rows() == [("no majority", 1)]
    judged = run.table("judged").filter(pl.col("output") == "compound")
    assert judged.height == 7
    assert judged.filter(pl.col("human").is_null()).height == 1


def test_ratings_by_number_are_compared_by_rank(tmp_path: Path) -> None:
    path = human(tmp_path / "h.csv", {0: "7", 1: "6", 2: "1", 3: "2", 4: "4", 5: "4"})
    run = evenhand.validate("sentiment", path, out=tmp_path / "out")
    assert set(run.table("validation")["measure"]) == {"spearman_score"}
    assert value(run, "spearman_score") > 0.8


def test_onto_the_card_and_off_the_package(tmp_path: Path) -> None:
    path = human(tmp_path / "h.csv", {5: "positive"})
    for _ in range(2):  # the same labels again replace, they do not pile up
        evenhand.validate("sentiment", path, onto_card=True, fresh=True, out=tmp_path / "out")
    kept = tmp_path / "data" / "evenhand" / "cards" / "sentiment.json"
    assert len(json.loads(kept.read_text())) == 1
    card = evenhand.card("sentiment")
    assert "## Against people, on this machine" in card
    assert "`compound` accuracy 0.83" in card
    kept.write_text(kept.read_text().replace('"version": "1+', '"version": "0+'))
    assert "for another version or weights of this metric" in evenhand.card("sentiment")
    kept.write_text("{")
    with pytest.raises(InputError, match=r"cannot be read: .* Expected: the file that `evenhand validate"):
        evenhand.card("sentiment")


def test_the_same_texts_under_other_ids_say_nothing_more(tmp_path: Path) -> None:
    rows = [f'"{text}",{label}' for text, label in TEXTS.items()]
    found = []
    for times in (1, 3):
        path = tmp_path / f"{times}.csv"
        lines = [f"{n}-{at},{row}" for n in range(times) for at, row in enumerate(rows)]
        path.write_text("\n".join(["id,text,label", *lines]) + "\n")
        run = evenhand.validate("sentiment", path, output="compound", out=tmp_path / str(times))
        row = run.table("validation").filter(pl.col("measure") == "accuracy").row(0, named=True)
        (best,) = run.table("best_cuts").to_dicts()
        found.append((row["low"], row["high"], row["n_clusters"], best["folds"]))
    assert found[1] == pytest.approx(found[0], abs=1e-9)


def test_clusters_widen_intervals(tmp_path: Path) -> None:
    rows = [f'"{text} {n}",{label},{n}' for n in range(6) for text, label in TEXTS.items()]
    rows = [row.replace("neutral", "positive") if row.endswith(("0", "1")) else row for row in rows]
    path = tmp_path / "h.csv"
    path.write_text("\n".join(["text,label,part", *rows]) + "\n")
    alone = evenhand.validate("sentiment", path, out=tmp_path / "alone", output="compound")
    apart = evenhand.validate("sentiment", path, cluster="part", out=tmp_path / "apart", output="compound")
    widths = [
        run.table("validation")
        .filter(pl.col("measure") == "accuracy")
        .select(pl.col("high") - pl.col("low"))
        .item()
        for run in (alone, apart)
    ]
    assert widths[1] > widths[0]
    assert apart.table("validation")["n_clusters"][0] == 6


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        (
            {0: "angry", 1: "calm", 2: "sad", 3: "sad", 4: "calm", 5: "sad"},
            {},
            r"of which sentiment has fewer than two",
        ),
        ({}, {"output": "norm"}, r"^metric 'sentiment' has no output 'norm'"),
        (
            {},
            {"renamed": ["positive"]},
            r"^--map 'positive' is not of the form THEIRS=OURS. Expected: THEIRS=OURS",
        ),
        ({}, {"least": 2}, r"has a label on which people agree: too few ratings 6"),
    ],
)
def test_bad_input(tmp_path: Path, changed: dict[int, str], options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepare("sentiment", human(tmp_path / "h.csv", changed), **options)


def test_an_unknown_metric_is_named_before_labels_are_read(tmp_path: Path) -> None:
    with pytest.raises(evenhand.EvenhandError, match="there is no metric named 'mood'"):
        prepare("mood", tmp_path / "none.csv")


def test_a_page_runs_nothing_it_shows(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text('text,label\n"<script>alert(1)</script> great love",negative\n"Plain.",neutral\n')
    run = evenhand.validate("sentiment", path, out=tmp_path / "out")
    page = (run.path / "report.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
