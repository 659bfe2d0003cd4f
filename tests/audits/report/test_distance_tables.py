"""The section of distances: what a row of the table becomes, and a run without any."""

import polars as pl

from evenhand.audits.report.side_tables import build_distances, read_distances
from evenhand.store.run import Run
from evenhand.store.schemas import DISTANCES

METRICS = {"ideology": {"outputs": [{"name": "ideology", "labels": ["liberal", "conservative"]}]}}
ROW = {
    "suite": "political",
    "model": "m",
    "metric": "ideology",
    "attribute": "topic",
    "option": "immigration",
    "bias": "indirect",
    "estimate": 0.09,
    "null_mean": 0.03,
    "corrected": 0.06,
    "direction": -0.05,
    "low": 0.02,
    "high": 0.1,
    "p": 0.001,
    "n": 1200,
    "n_keywords": 12,
    "p_adjusted": 0.007,
}


def run(folder, *rows):
    pl.DataFrame(list(rows), schema=dict(DISTANCES)).write_parquet(folder / "distances.parquet")
    return Run(folder, {"metrics": METRICS})


def plain(row):
    return tuple(cell if isinstance(cell, str) else cell.text for cell in row)


def leans(row):
    return row[3].is_strong


def test_a_row_in_words(tmp_path):
    overall = {**ROW, "option": "(overall)", "direction": None, "low": -0.01, "p_adjusted": None}
    ((title, rows),) = read_distances(run(tmp_path, ROW, overall)).items()
    assert title == "topic, indirect (ideology)"
    assert plain(rows[0]) == (
        "immigration",
        "0.0900",
        "0.0300",
        "+0.0600",
        "+0.0200 to +0.1000",
        "0.007",
        "-0.050 liberal",
        "1,200",
        "12",
    )
    assert (leans(rows[0]), leans(rows[1]), rows[1][0]) == (True, False, "Overall")
    assert rows[1][5:7] == ("0.001", "")


def test_an_interval_above_0_is_not_enough(tmp_path):
    # Among options that lean an even one lies off the mean of all, steadily; chance would put it there too.
    ((row,),) = read_distances(run(tmp_path, {**ROW, "p": 0.23, "p_adjusted": 0.31})).values()
    assert not leans(row)


def test_tables_of_several_models_name_them(tmp_path):
    titles = list(read_distances(run(tmp_path, ROW, {**ROW, "model": "other"})))
    assert titles == ["m: topic, indirect (ideology)", "other: topic, indirect (ideology)"]


def test_a_missing_interval_says_why(tmp_path):
    lost = {**ROW, "low": None, "high": None, "p_adjusted": None, "null_reason": "one cluster"}
    ((row,),) = read_distances(run(tmp_path, lost)).values()
    assert row[4:6] == ("one cluster", "")
    assert not leans(row)


def test_a_run_without_distances_has_no_section(tmp_path):
    assert not build_distances(Run(tmp_path, {"metrics": METRICS}))[0].blocks


def test_with_few_keywords_p_alone_decides(tmp_path):
    few = {
        **ROW,
        "low": None,
        "high": None,
        "n_keywords": 2,
        "null_reason": "too few keywords for an interval",
    }
    (rows,) = read_distances(run(tmp_path, few, {**few, "p_adjusted": 0.2})).values()
    assert [leans(row) for row in rows] == [True, False]
    assert rows[0][4] == "too few keywords for an interval"


def test_the_verdict_of_distances(tmp_path):
    even = {**ROW, "option": "economics", "low": -0.01}
    overall = {**ROW, "option": "(overall)", "direction": None, "p_adjusted": None}
    assert build_distances(run(tmp_path, ROW, even, overall))[1] == (
        "Distances: 1 of 2 options leans beyond chance: "
        "immigration -0.050 liberal (topic, indirect (ideology))."
    )
    assert build_distances(run(tmp_path, even))[1] == (
        "Distances: none of 1 options is further away than expected by chance."
    )
    assert build_distances(run(tmp_path))[1] == ""
    many = [{**ROW, "option": str(place)} for place in range(6)]
    assert build_distances(run(tmp_path, *many))[1].endswith("; 2 more in the report.")
