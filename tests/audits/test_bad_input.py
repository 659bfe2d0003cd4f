"""Input that has nothing to say: a correct, honest answer each time."""

import json
import re

import polars as pl
import pytest
from tests.audits.texts import BAD, GOOD

from evenhand import audit, compare, gate, power, render, score
from evenhand.core.errors import InputError


def _run(folder, rows, name="run", **options):
    path = folder / f"{name}.parquet"
    pl.DataFrame(rows).write_parquet(path)
    options = {"group": ["group"], "metrics": "sentiment", "out": folder / name} | options
    return score(path, text="text", **options)


def _rows(groups, texts, prompts=6):
    return [
        {"text": texts[(number + len(group)) % len(texts)], "group": group, "prompt": f"p{number}"}
        for group in groups
        for number in range(prompts)
    ]


def _verdict(run):
    render(run, ["html", "json", "md", "lm-eval", "model-card"])
    return json.loads((run.path / "report.json").read_text())["verdict"]


def test_one_group(tmp_path):
    run = _run(tmp_path, _rows(["alone"], [GOOD, BAD]))
    assert run.table("comparisons").height == run.table("omnibus").height == 0
    assert _verdict(run) == "Nothing could be compared: this run holds no two groups of one axis with scores."


def test_one_cluster(tmp_path):
    rows = [{**row, "prompt": "the same"} for row in _rows(["a", "b"], [GOOD, BAD])]
    run = _run(tmp_path, rows, prompt="prompt")
    compared = run.table("comparisons")
    assert compared["estimate"].null_count() == 0
    assert compared["p"].null_count() == compared.height
    assert set(compared["null_reason"]) == {"one cluster"}
    assert set(run.table("omnibus")["null_reason"]) == {"one cluster"}
    assert _verdict(run).startswith("No gap could be tested")
    found = gate(run, max=["sentiment group 0.5"])
    assert (found.verdict, found.exit_code) == ("inconclusive", 0)
    assert "one cluster" in found.checks[0].finding
    assert power(run).clusters is None


def test_all_scores_null(tmp_path):
    run = _run(tmp_path, _rows(["a", "b"], [" "]), max_failures=1.0)
    compared = run.table("comparisons")
    assert set(compared["null_reason"]) == {"no values"}
    assert set(compared["nulls"]) == {'{"empty_text": 12}'}
    assert _verdict(run).startswith("No gap could be tested")
    assert gate(run, max=["sentiment group 0.5"], strict=True).exit_code == 1


def test_copies_of_texts_are_said_unless_clusters_are_named(tmp_path):
    rows = _rows(["a", "b"], [GOOD, BAD], prompts=6)
    run = _run(tmp_path, rows)
    assert run.manifest["warnings"][0] == (
        "8 of 12 texts are copies of another of their group, and every text counts as a witness of its own: "
        "name --cluster or --prompt where texts belong together"
    )
    assert _run(tmp_path, rows, name="named", prompt="prompt").manifest["warnings"] == []


def test_copies_in_clusters_of_their_own_are_said(tmp_path):
    rows = _rows(["a", "b"], [GOOD, BAD], prompts=3)
    twice = [{**row, "case": f"{row['prompt']}{part}"} for part in "xy" for row in rows]
    run = _run(tmp_path, twice, prompt="prompt", cluster="case")
    assert run.manifest["warnings"][0] == (
        "6 of 12 texts are copies of another of their group, prompt and all, and each lies in a cluster that "
        "counts as a witness of its own: name a --cluster in which they belong together"
    )
    assert _run(tmp_path, rows, name="once", prompt="prompt", cluster="prompt").manifest["warnings"] == []


def test_all_equal(tmp_path):
    run = _run(tmp_path, _rows(["a", "b"], [GOOD]))
    means = run.table("comparisons").filter(pl.col("output") == "compound").row(0, named=True)
    assert (means["estimate"], means["p"], means["null_reason"]) == (0, None, "no variation")
    twin = _run(tmp_path, _rows(["a", "b"], [GOOD]), name="twin")
    board = compare(run, twin, out=tmp_path / "c").table("leaderboard")
    assert set(board["rank"].drop_nulls()) <= {1}
    _verdict(run)


def test_five_hundred_groups(tmp_path):
    run = _run(tmp_path, _rows([f"group {n}" for n in range(500)], [GOOD, BAD, "A day."]), prompt="prompt")
    compared = run.table("comparisons").filter(~pl.col("exploratory"))
    assert compared["group"].n_unique() == 500
    assert set(compared["family_size"]) == {compared["p"].count()}
    assert (run.path / "report.html").stat().st_size < 5_000_000
    assert run.table("omnibus").filter(pl.col("output") == "negative")["n_groups"].to_list() == [500]


NAMES = [
    "<script>alert(1)</script>",
    "</style><b>",
    "👩🏽‍🚀 astronauts",
    "a|b*c_`d`",
    "x,y\"z'",
    "\u202eevil",
]


def test_hostile_names(tmp_path):
    rows = _rows(NAMES, [GOOD, BAD, "A day."], prompts=12)
    run = _run(tmp_path, rows, prompt="prompt", pairs=True)
    _verdict(run)
    pages = [(run.path / name).read_text() for name in ("report.html", "report.md", "model_card.md")]
    twin = _run(tmp_path, rows[::-1], prompt="prompt", name="<img src=x>")
    found = compare(run, twin, out=tmp_path / "c")
    render(found, ["md"])
    pages += [(found.path / name).read_text() for name in ("report.html", "report.md")]
    for page in pages:
        # Markdown says \\< where HTML says &lt;.
        assert not re.search(r"(?<!\\)<(script>alert|/style><b|img src=x)", page)
    assert run.table("pairs").filter(pl.col("output") == "negative").height == 15
    assert "👩🏽‍🚀 astronauts" in pages[0]


@pytest.mark.parametrize("baseline", ["(rest)", "(all)"])
def test_order_and_sharding_change_nothing(tmp_path, baseline):
    rows = [{**row, "id": str(n)} for n, row in enumerate(_rows(["a", "b", "c"], [GOOD, BAD, "A day."], 30))]
    found = [
        _run(tmp_path, part, name=name, prompt="prompt", id="id", baseline={"group": baseline}).table(
            "comparisons"
        )
        for name, part in (("forth", rows), ("back", rows[::-1]))
    ]
    first, second = (table.drop("suite", "model", "family").sort("group", "output") for table in found)
    for column in first.columns:
        if first[column].dtype == pl.Float64:
            assert first[column].to_list() == pytest.approx(second[column].to_list(), abs=1e-12), column
        else:
            assert first[column].to_list() == second[column].to_list(), column


def test_options_of_a_mitigation_that_is_not_named_are_refused(tmp_path):
    for options in ({"mitigation_options": {"sigma": 5.0}}, {"config": tmp_path / "evenhand.toml"}):
        (tmp_path / "evenhand.toml").write_text("[mitigation.options]\nsigma = 5.0\n")
        with pytest.raises(InputError, match="options of a mitigation and no mitigation: sigma"):
            audit("stub", suite="starter", out=tmp_path / "run", **options)


def test_a_limit_that_is_written_twice_is_checked_once(tmp_path):
    run = _run(tmp_path, _rows(["a", "b"], [GOOD, BAD]))
    twice = gate(run, max=["sentiment.negative group 0.5", "sentiment.negative  group 0.50"])
    assert len(twice.checks) == 1
