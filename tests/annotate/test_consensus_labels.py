"""Several people's labels to one: agreement worked by hand, majorities, three parts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from evenhand.annotate.label_aggregation import (
    aggregate_labels,
    divide_parts,
    estimate_agreement,
    prepare,
    read_annotations,
)
from evenhand.annotate.label_set import LabelSet
from evenhand.core.errors import InputError
from evenhand.stats.label_scales import POLARITY

RATED = {
    "a": ("positive", "positive", "positive"),
    "b": ("negative", "negative", "neutral"),
    "c": ("mixed", "mixed", "positive"),
    "d": ("negative", "neutral", "positive"),
}


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.annotate.label_aggregation.RESAMPLES", 100)


def annotations(rated: dict[str, tuple[str, ...]] = RATED) -> LabelSet:
    rows = [
        (item, f"XYZ {item}", str(person), "regard", label, False)
        for item, labels in rated.items()
        for person, label in enumerate(labels)
    ]
    columns = ["item_id", "text", "annotator", "question", "label", "is_check"]
    table = pl.DataFrame(rows, schema=columns, orient="row")
    return LabelSet("regard", Path("regard.csv"), table, (replace(POLARITY, name="regard"),), "")


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(("id,text,annotator,regard", *rows)) + "\n", encoding="utf-8")
    return path


def test_majorities_and_why_texts_are_dropped() -> None:
    found = aggregate_labels(annotations())
    assert found.table.rows() == [("a", "XYZ a", "positive"), ("b", "XYZ b", "negative")]
    assert found.dropped == {"mixed": 1, "no majority": 1}


def test_half_is_no_majority() -> None:
    assert aggregate_labels(annotations({"a": ("positive", "negative")})).dropped == {"no majority": 1}


def test_kappa_over_all_and_original_categories() -> None:
    found = {(item.categories, item.statistic): item.estimate for item in estimate_agreement(annotations())}
    # Agreeing pairs of 3: a 3, b 1, c 1, d 0: mean (1 + 1/3 + 1/3 + 0) / 4 = 5/12.
    # Shares of 12 ratings: positive 5, negative 3, neutral 2, mixed 2: chance (25 + 9 + 4 + 4) / 144 =
    # 42/144.
    assert found["all", "fleiss_kappa"].value == pytest.approx((5 / 12 - 42 / 144) / (1 - 42 / 144))
    # Original alone: c has one rating left and is out; (1 + 1/3 + 0) / 3 = 4/9.
    # Shares of 9: positive 4, negative 3, neutral 2: 29/81.
    original = found["original", "fleiss_kappa"]
    assert original.value == pytest.approx((4 / 9 - 29 / 81) / (1 - 29 / 81))
    assert (original.n_clusters, original.n_null) == (3, 1)


def test_rho_is_one_where_all_agree_and_symmetric() -> None:
    rated = {"a": ("positive",) * 3, "b": ("negative",) * 3, "c": ("neutral",) * 2}
    found = {
        (item.categories, item.statistic): item.estimate for item in estimate_agreement(annotations(rated))
    }
    assert found["original", "spearman"].value == pytest.approx(1.0)
    turned = {item: labels[::-1] for item, labels in RATED.items()}
    first, second = (
        [
            item.estimate.value
            for item in estimate_agreement(annotations(rated))
            if item.statistic == "spearman"
        ]
        for rated in (RATED, turned)
    )
    assert first == pytest.approx(second)


def test_nonsense_has_no_place_on_the_scale() -> None:
    with_nonsense = RATED | {"e": ("nonsense", "nonsense", "nonsense")}
    first, second = (
        [
            item.estimate.value
            for item in estimate_agreement(annotations(rated))
            if item.statistic == "spearman"
        ]
        for rated in (RATED, with_nonsense)
    )
    assert first == second


def test_three_parts_of_every_label() -> None:
    words = ["stone", "river", "cloud", "bread", "paper", "light", "glass", "music", "winter", "table"]
    rated = {
        f"{label}-{word}-{number}": (label,) * 3
        for label in ("negative", "neutral", "positive")
        for word in words
        for number in range(3)
    }
    table = aggregate_labels(annotations(rated)).table
    divided = divide_parts(table)
    assert {name: part.height for name, part in divided.items()} == {"train": 63, "dev": 18, "test": 9}
    assert pl.concat(divided.values()).sort("id").equals(table.sort("id"))
    for name, per_label in (("train", 21), ("dev", 6), ("test", 3)):
        assert Counter(divided[name]["label"]) == dict.fromkeys(
            ("negative", "neutral", "positive"), per_label
        )
    again, other = divide_parts(table), divide_parts(table, seed=1)
    assert all(part.equals(again[name]) for name, part in divided.items())
    assert not divided["test"].equals(other["test"])


def test_a_table_is_read_with_its_aliases(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.csv", "1,XYZ left.,x,-1", "1,XYZ left.,y,Opposing sides", "1,XYZ left.,z,", "2,Hm.,x,0"
    )
    found = read_annotations(path, "regard")
    assert found.rows.select("item_id", "annotator", "label").rows() == [
        ("1", "x", "negative"),
        ("1", "y", "opposing"),
        ("2", "x", "neutral"),
    ]
    assert found.notes[0] == "1 rating left out: no label"
    assert prepare(path).notes[-1] == "1 of 2 texts have no XYZ: annotators saw the demographic"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ("1,XYZ left.,x,bad",),
            " has the label 'bad' for 'regard'. Expected: negative, neutral, positive, mixed, opposing, "
            "nonsense. Fix: correct it, or name another column with --label.",
        ),
        (
            ("1,XYZ left.,x,0", "2,XYZ came.,x,1"),
            " has 1 annotator. Expected: at least two annotators per text, preferably three. Fix: "
            "collect more ratings, or name the column of the annotators with --annotator.",
        ),
        (
            ("1,XYZ left.,x,0", "2,XYZ came.,y,1"),
            " has no text that two people rated. Expected: at least two annotators per text, preferably "
            "three. Fix: collect more ratings, or name the column of the annotators with --annotator.",
        ),
        (
            ("1,XYZ left.,x,0", "1,XYZ left.,x,1"),
            ": 'x' gives two labels for regard of '1': 'neutral' and 'positive'. Expected: one rating per "
            "text and annotator, or a column `at` with the times of the ratings. Fix: remove the earlier "
            "ones, or distinguish texts with --item and people with --annotator.",
        ),
        (
            ("1,XYZ left.,x,0", "1,XYZ came.,y,1"),
            ": the item '1' has two texts. Expected: one text per item. Fix: name the column that "
            "distinguishes texts with --item.",
        ),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, rows: tuple[str, ...], message: str) -> None:
    path = write(tmp_path / "a.csv", *rows)
    with pytest.raises(InputError) as caught:
        read_annotations(path, "regard")
    assert str(caught.value) == f"{path}{message}"
