"""Ratings from tables of every kind, and what is refused."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.annotate.study_parts import make_study

from evenhand.annotate.database import Database, SubmittedAnswer
from evenhand.annotate.label_set import AGGREGATED, read_label_set
from evenhand.core.errors import InputError

HEAD = "id,text,annotator,label"


def table(path: Path, *rows: str, head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_row_a_rating(tmp_path: Path) -> None:
    found = read_label_set(
        table(tmp_path / "r.csv", "1,One,a,positive", "1,One,b,negative", "2,Two,a,neutral")
    )
    assert found.rows.select("item_id", "annotator", "label", "code").rows() == [
        ("1", "a", "positive", 1.0),
        ("1", "b", "negative", -1.0),
        ("2", "a", "neutral", 0.0),
    ]
    (question,) = found.questions
    # Lowest first, whatever the order of rows.
    assert question.labels == ("negative", "neutral", "positive")
    assert found.texts() == {"1": "One", "2": "Two"}


def test_case_and_white_space_make_no_label(tmp_path: Path) -> None:
    found = read_label_set(
        table(tmp_path / "r.csv", "1,One,a, Positive ", "1,One,b,POSITIVE", "2,Two,a,negative")
    )
    assert set(found.rows["label"]) == {"positive", "negative"}
    assert any("is read as 'positive'" in note for note in found.notes)


def test_a_misspelt_label_is_found_by_its_scale(tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", "1,One,a,positive", "1,One,b,negative", "2,Two,a,postive")
    with pytest.raises(
        InputError, match=r"has the label 'postive' for 'label'\. Expected: negative, neutral"
    ):
        read_label_set(path)
    # A scale of the user's own decides, and orders.
    found = read_label_set(path, {"scale": ("negative", "postive", "positive")})
    assert found.rows["code"].to_list() == [2.0, 0.0, 1.0]


def test_labels_that_are_no_scale_have_no_order(tmp_path: Path) -> None:
    found = read_label_set(table(tmp_path / "r.csv", "1,One,a,cat", "1,One,b,dog"))
    assert not found.questions[0].is_ordered
    assert found.rows["code"].null_count() == 2


def test_numbers_are_their_own_order(tmp_path: Path) -> None:
    found = read_label_set(table(tmp_path / "r.csv", "1,One,a,10", "1,One,b,9.0", "2,Two,a,2"))
    assert found.questions[0].labels == ("2", "9", "10")


def test_questions_in_columns_and_annotators_in_columns(tmp_path: Path) -> None:
    by_question = table(
        tmp_path / "q.csv", "1,One,a,positive,neutral", head="id,text,annotator,regard,sentiment"
    )
    assert {q.name for q in read_label_set(by_question).questions} == {"regard", "sentiment"}
    by_person = table(tmp_path / "p.csv", "One,yes,no,yes", "Two,no,no,", head="text,ann,bob,cyd")
    found = read_label_set(by_person, {"label": ("ann", "bob", "cyd")})
    assert found.rows.height == 5  # Cyd did not rate the second
    assert set(found.rows["annotator"]) == {"ann", "bob", "cyd"}
    assert "1 rating left out: no label" in found.notes


def test_one_label_a_text_without_names(tmp_path: Path) -> None:
    found = read_label_set(table(tmp_path / "r.csv", "One,toxic", "Two,nontoxic", head="text,label"))
    assert set(found.rows["annotator"]) == {AGGREGATED}
    assert found.rows["item_id"].to_list() == ["One", "Two"]


def test_one_person_and_text_have_one_rating(tmp_path: Path) -> None:
    same = read_label_set(table(tmp_path / "s.csv", "1,One,a,yes", "1,One,a,YES", "1,One,b,no"))
    assert (same.rows.height, same.notes[-1]) == (2, "1 identical repeated ratings left out")
    other = table(tmp_path / "o.csv", "1,One,a,yes", "1,One,a,no")
    with pytest.raises(InputError, match=r"'a' gives two labels for label of '1': 'yes' and 'no'\."):
        read_label_set(other)
    timed = table(
        tmp_path / "t.csv",
        "1,One,a,yes,2026-01-02",
        "1,One,a,no,2026-01-01",
        head="id,text,annotator,label,at",
    )
    assert read_label_set(timed).rows["label"].to_list() == ["yes"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ["1,One,,yes", ",One,a,yes"],
            r"has no rating: 1 rating left out: no item; 1 rating left out: no annot",
        ),
        (["1,One,a,yes", "1,Two,b,no"], r"the item '1' has two texts\. Expected: one text per item\."),
    ],
)
def test_what_cannot_be_ratings(tmp_path: Path, rows: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_label_set(table(tmp_path / "r.csv", *rows))


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", "One,yes", head="text,answer")
    with pytest.raises(InputError, match=r"has no column of labels; it has text, answer\."):
        read_label_set(path)
    with pytest.raises(InputError, match=r"has no column 'who' \(--annotator\)\. Expected: text, answer\."):
        read_label_set(path, {"annotator": "who", "label": "answer"})
    with pytest.raises(InputError, match=r"has no answers to the question 'regard'\. Expected: answer\."):
        read_label_set(path, {"label": "answer", "question": "regard"})


def test_a_study_brings_texts_codes_and_checks(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study")
    with pytest.raises(InputError, match=r"^nobody has answered the study"):
        read_label_set(study.folder)
    items = study.items()
    question = study.questions[0]
    label = next(iter(question.codes))
    with Database(study) as db:
        for who in ("a1", "a2"):
            db.save_answers(who, [SubmittedAnswer(item, question.name, label) for item in items["item_id"]])
    found = read_label_set(study.folder)
    assert found.rows.height == 2 * items.height
    assert found.rows["text"].null_count() == 0
    assert found.questions[0].places[label] == question.codes[label]
    plain = found.of(question.name)
    assert plain.height == 2 * items.filter(~pl.col("is_check")).height
