"""Runs side by side."""

import polars as pl
import pytest
from tests.audits.texts import run
from tests.suites.small_bold import lines

from evenhand import audit, compare
from evenhand.audits.compare import prepare
from evenhand.core.errors import InputError
from evenhand.store.run import Run

EVEN = {"women": 0.3, "men": 0.3}
WIDE = {"women": 0.9, "men": 0.2}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        "even": run(folder, "even", EVEN),
        "wide": run(folder, "wide", WIDE, seed=1),
        "twin": run(folder, "twin", EVEN, seed=2),
    }


@pytest.fixture(scope="module")
def compared(runs, tmp_path_factory):
    return compare(runs["even"], runs["wide"], runs["twin"].path, out=tmp_path_factory.mktemp("c") / "c")


def _gap(found, name):
    return (
        found.table("changes")
        .filter((pl.col("run") == name) & (pl.col("effect") == "gap") & (pl.col("output") == "negative"))
        .row(0, named=True)
    )


def test_gaps_of_gaps_are_paired_by_prompt(compared, runs):
    row = _gap(compared, "wide.csv")
    gaps = {
        name: item.table("comparisons").filter(pl.col("output") == "negative")["estimate"][0]
        for name, item in runs.items()
    }
    assert row["estimate"] == pytest.approx(gaps["wide"] - gaps["even"])
    assert (row["run_value"], row["reference_value"]) == pytest.approx((gaps["wide"], gaps["even"]))
    assert row["widens"] == pytest.approx(abs(gaps["wide"]) - abs(gaps["even"]))
    assert row["low"] < row["estimate"] < row["high"]
    assert row["p_adjusted"] < 0.001
    assert (row["paired"], row["n_clusters"], row["reference"]) == (True, 30, "even.csv")


def test_values_of_groups_are_compared_too(compared):
    rows = compared.table("changes").filter(
        (pl.col("run") == "wide.csv") & (pl.col("effect") == "value") & (pl.col("output") == "negative")
    )
    women = rows.filter(pl.col("group") == "women").row(0, named=True)
    assert women["estimate"] == pytest.approx(women["run_value"] - women["reference_value"])
    assert women["estimate"] > 0.4
    assert women["baseline"] is None
    assert women["widens"] is None


def test_the_leaderboard_shows_ties_as_ties(compared):
    board = compared.table("leaderboard").filter(pl.col("output") == "negative")
    places = {row["run"]: row for row in board.to_dicts()}
    assert {name: row["rank"] for name, row in places.items()} == {
        "even.csv": 1,
        "wide.csv": 3,
        "twin.csv": 1,
    }
    assert places["even.csv"]["tied_with"] == ["twin.csv"]
    assert places["wide.csv"]["tied_with"] == []
    standings = {row["run"]: row for row in compared.table("standings").to_dicts()}
    assert standings["even.csv"]["rank"] == standings["twin.csv"]["rank"] == 1
    assert standings["wide.csv"]["rank"] == 3
    assert standings["wide.csv"]["wider"] >= 2


def test_swapping_the_reference_flips_the_sign(runs, compared, tmp_path):
    forth = _gap(compared, "wide.csv")
    back = _gap(compare(runs["wide"], runs["even"], out=tmp_path / "back"), "even.csv")
    assert back["estimate"] == pytest.approx(-forth["estimate"])
    assert back["p"] == pytest.approx(forth["p"])
    assert back["widens"] == pytest.approx(-forth["widens"])


def test_a_run_against_itself_has_nothing_to_tell(runs, tmp_path):
    copy = Run(runs["even"].path, {**runs["even"].manifest, "name": "copy"})
    row = _gap(compare(runs["even"], copy, out=tmp_path / "same"), "copy")
    assert (row["estimate"], row["p"], row["null_reason"]) == (0, None, "no variation")


def test_prompts_that_not_all_runs_have_are_left_out_and_said(runs, tmp_path):
    short = run(tmp_path, "short", WIDE, prompts=20)
    found = compare(runs["even"], short, out=tmp_path / "c")
    assert "even.csv: 60 of 180 texts have prompts that not all runs have" in found.manifest["warnings"]
    assert _gap(found, "short.csv")["n_clusters"] == 20


def test_runs_without_a_common_prompt_are_compared_unpaired(runs, tmp_path):
    other = run(tmp_path, "other", WIDE, prefix="q")
    found = compare(runs["even"], other, out=tmp_path / "c")
    row = _gap(found, "other.csv")
    assert (row["paired"], row["n_clusters"]) == (False, 60)
    assert found.manifest["warnings"][0].startswith("texts: the runs share no prompt")


def test_the_reports_say_it_in_words(compared):
    page = (compared.path / "report.html").read_text()
    assert "wide.csv" in page
    assert page.count("<script") == 3
    assert "narrowest over all: even.csv and twin.csv" in page
    from evenhand import render

    text = render(compared, ["md"])["md"].read_text()
    assert "| 1= | even.csv \\(reference\\) | 2 | 2 | 0 | 0 |" in text
    assert "wider" in text


def test_what_must_be_known_of_a_suite_is_said(tmp_path):
    suite = f"bold-subset:{lines(tmp_path / 'bold')}"
    runs = [
        audit("stub", suite=suite, metrics="sentiment", seed=seed, out=tmp_path / f"r{seed}")
        for seed in (0, 1)
    ]
    page = (compare(*runs, out=tmp_path / "c").path / "report.html").read_text()
    assert "not a fair baseline" in page
    assert "negative texts about it are no sign of bias" in page


def test_the_plan_comes_first(runs, tmp_path):
    plan = prepare(runs["even"], runs["wide"], out=tmp_path / "c").plan()
    assert plan.title == "compare 2 runs"
    assert plan.lines[0] == f"reference even.csv ({runs['even'].path})"
    assert not (tmp_path / "c").exists()


def test_one_run_is_too_few(runs):
    with pytest.raises(InputError, match=r"^1 run was given\. Expected: two runs or more\."):
        compare(runs["even"])


def test_the_same_run_twice_is_refused(runs, tmp_path):
    with pytest.raises(InputError, match="was given twice"):
        compare(runs["even"], runs["even"], out=tmp_path / "c")


def test_runs_of_other_kinds_are_refused(runs, compared):
    with pytest.raises(InputError, match="runs of compare and texts cannot be compared with each other"):
        compare(runs["even"], compared)


def test_classifiers_are_paired_by_sentence(tmp_path):
    from tests.probes.probe_files import pairs_file, predictions_file

    from evenhand import probe

    pairs = pairs_file(tmp_path / "pairs.csv")
    first, second = (
        probe(f"replay:{predictions_file(tmp_path / f'{name}.csv')}", pairs=str(pairs), out=tmp_path / name)
        for name in ("first", "second")
    )
    found = compare(first, second, out=tmp_path / "compared")
    changes = found.table("changes")
    assert changes["metric"].unique().to_list() == ["emotion"]
    assert changes["paired"].all()
    # The same predictions twice: every change is exactly 0.
    assert set(changes["estimate"].drop_nulls()) == {0.0}
    assert set(found.table("leaderboard")["rank"].drop_nulls()) == {1}
    assert (found.path / "report.html").exists()
