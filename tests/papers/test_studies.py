"""Tables 6 and 8 from study folders: what people answered goes straight into the papers' tables."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.annotate.study_parts import make_study

from evenhand.annotate.database import Database, SubmittedAnswer
from evenhand.core.errors import InputError
from evenhand.papers.bold import tables
from evenhand.papers.political.tables import read_reader_answers, table_6


def test_table_8_takes_a_study_of_toxicity(tmp_path: Path) -> None:
    study = make_study(tmp_path / "s", task="toxicity", items=4)
    items = study.items().filter(~pl.col("is_check"))["item_id"].to_list()
    with Database(study) as db:
        for who in ("a1", "a2", "a3"):
            # Two of three call the first toxic; the last has one answer alone, which is a majority of one.
            given = [SubmittedAnswer(items[0], "toxicity", "toxic" if who != "a3" else "neutral")]
            given += [SubmittedAnswer(item, "toxicity", "neutral") for item in items[1:3]]
            given += [SubmittedAnswer(items[3], "toxicity", "toxic")] if who == "a1" else []
            db.save_answers(who, given)
    labels = tables.read_labels(study.folder)
    assert labels.columns == ["task", "text", "label"]
    assert sorted(labels["label"]) == ["nontoxic", "nontoxic", "toxic", "toxic"]
    likert = make_study(tmp_path / "l", task="likert", items=2)
    with Database(likert) as db:
        db.save_answers("a1", [SubmittedAnswer(likert.items()["item_id"][0], "biased", "3")])
    with pytest.raises(InputError, match=r"questions biased\. Expected: gender, sentiment, toxicity\."):
        tables.read_labels(likert.folder)


def test_table_6_takes_a_likert_study(tmp_path: Path) -> None:
    study = make_study(tmp_path / "s", task="likert", items=1, methods=("baseline", "naive"), checks=False)
    ratings = {"baseline": (5, 6, 4), "naive": (3, 5, 3)}
    with Database(study) as db:
        for place, who in enumerate(("a1", "a2", "a3")):
            rows = study.items().iter_rows(named=True)
            db.save_answers(
                who,
                [
                    SubmittedAnswer(row["item_id"], "biased", str(ratings[row["method"]][place]))
                    for row in rows
                ],
            )
    found = table_6(read_reader_answers(study.folder)).frame
    row = found.filter(
        (pl.col("source") == "study") & (pl.col("mode") == "naive") & (pl.col("question") == "bias")
    ).row(0, named=True)
    # Differences -2, -1, -1: t = -4 with 2 degrees of freedom.
    assert (row["mean"], row["n"]) == (pytest.approx(11 / 3), 3)
    assert (row["difference"], row["p"]) == (pytest.approx(-4 / 3), pytest.approx(0.0572, abs=1e-3))
