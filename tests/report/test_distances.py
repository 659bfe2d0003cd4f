"""The section of distances: what a row of the table becomes, and a run without any."""

import polars as pl

from evenhand.report.distances import distances
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


def test_a_row_in_words(tmp_path):
    overall = {**ROW, "option": "(overall)", "direction": None, "low": -0.01, "p_adjusted": None}
    (table,) = distances(run(tmp_path, ROW, overall)).tables
    assert table.title == "topic, indirect (ideology)"
    assert table.lines[0].cells == (
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
    assert (table.lines[0].is_found, table.lines[1].is_found, table.lines[1].is_overall) == (
        True,
        False,
        True,
    )
    assert table.lines[1].cells[5:7] == ("0.001", "")


def test_an_interval_above_0_is_not_enough(tmp_path):
    # Among options that lean an even one lies off the mean of all, steadily; chance would put it there too.
    (table,) = distances(run(tmp_path, {**ROW, "p": 0.23, "p_adjusted": 0.31})).tables
    assert not table.lines[0].is_found


def test_tables_of_several_models_name_them(tmp_path):
    titles = [table.title for table in distances(run(tmp_path, ROW, {**ROW, "model": "other"})).tables]
    assert titles == ["m: topic, indirect (ideology)", "other: topic, indirect (ideology)"]


def test_a_missing_interval_says_why(tmp_path):
    lost = {**ROW, "low": None, "high": None, "p_adjusted": None, "null_reason": "one cluster"}
    (table,) = distances(run(tmp_path, lost)).tables
    assert table.lines[0].cells[4:6] == ("one cluster", "")
    assert not table.lines[0].is_found


def test_a_run_without_distances_has_no_section(tmp_path):
    assert not distances(Run(tmp_path, {"metrics": METRICS}))
