"""Bias against perplexity: a stub whose words are replaced, from the sweep to the drawing."""

import xml.etree.ElementTree as ET

import polars as pl
import pytest

from evenhand.audits.tradeoff import prepare, sweep_conditions, tradeoff, tradeoff_markdown, tradeoff_svg
from evenhand.core.errors import InputError
from evenhand.store.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tradeoff(
        "stub",
        mode="naive",
        strengths=[1.0, 0.0],
        suite=["political"],
        samples=2,
        limit=36,
        device="cpu",
        batch=3,
        offline=True,
        out=tmp_path_factory.mktemp("sweep") / "out",
    )


def test_every_strength_has_its_bias_and_perplexity(run):
    table = pl.read_parquet(run.path / "tradeoff.parquet")
    assert table["strength"].unique().sort().to_list() == [0.0, 1.0]
    assert set(table["attribute"]) == {"gender", "location", "topic"}
    assert table["perplexity_ngrams"].null_count() == 0
    # The stub gives no log-probabilities: its own perplexity is missing, not zero.
    assert table["perplexity_model"].null_count() == table.height
    assert (table["corrected"] <= table["estimate"]).all()


def test_replaced_words_are_less_expected_and_training_text_more(run):
    price = pl.read_parquet(run.path / "price.parquet")
    both = price.filter((pl.col("output") == "perplexity") & (pl.col("metric") == "ngrams"))
    training = both.filter(pl.col("condition") == "vanilla (training half)")["value"].mean()
    held_out = both.filter(pl.col("condition") == "vanilla")["value"].mean()
    replaced = both.filter(pl.col("condition") == "naive 1")["value"].mean()
    assert training < held_out < replaced  # a model flatters the text it was trained on


def test_where_there_is_no_interval_the_reason_stands():
    numbers = ("low", "high", "perplexity_ngrams", "perplexity_model")
    row = {"attribute": "a", "bias": "indirect", "strength": 1.0, "corrected": 0.0, "p": 1.0}
    table = pl.DataFrame([row | dict.fromkeys(numbers) | {"null_reason": "one cluster"}])
    assert "| a | indirect | 1 | 0.0000 | one cluster | 1.000 |" in tradeoff_markdown(table)


def test_files(run):
    assert "| gender | indirect | 1 |" in (run.path / "tradeoff.md").read_text()
    assert ET.fromstring((run.path / "tradeoff.svg").read_text()).tag.endswith("svg")
    assert (run.path / "ngrams" / "topic.arpa").exists()
    assert Run.open(run.path).manifest["ended"]


def test_an_attribute_of_any_name_keeps_to_its_cell_and_a_panel_without_points_says_so():
    numbers = ("strength", "corrected", "low", "high", "p", "perplexity_ngrams", "perplexity_model")
    row = {"attribute": "a|<b>", "bias": "indirect", **dict.fromkeys(numbers), "strength": 0.5}
    table = pl.DataFrame([row])
    assert "| a\\|\\<b\\> | indirect | 0.5 |" in tradeoff_markdown(table)
    drawn = " ".join(ET.fromstring(tradeoff_svg(table)).itertext())
    assert "a|<b>" in drawn
    assert "Not drawn: bias or perplexity is not known." in drawn


def test_rounding_is_not_drawn_as_a_trend():
    rows = [
        {"attribute": "a", "bias": "indirect", "strength": at, "corrected": bias, "p": 1.0}
        | {"low": None, "high": None, "perplexity_ngrams": 8.0 + at, "perplexity_model": None}
        for at, bias in ((0.0, -1e-17), (1.0, 1e-17))
    ]
    table = pl.DataFrame(rows)
    heights = {point.get("cy") for point in ET.fromstring(tradeoff_svg(table)).iter() if point.get("cy")}
    assert len(heights) == 1
    assert "-0.0000" not in tradeoff_markdown(table)


def test_the_dial_is_lambda_or_a_share():
    assert [dict(at.options) for at in sweep_conditions("embedding", [0.3], {"steps": 5})] == [
        {},
        {"steps": 5, "strength": 0.3},
    ]
    assert sweep_conditions("in-glove", [1.0], {})[1].options == {"share": 1.0}


def test_bad_input():
    with pytest.raises(InputError, match="there is no mode 'magic'"):
        prepare("stub", mode="magic")
    with pytest.raises(InputError, match="the strengths are none"):
        prepare("stub", mode="naive", strengths=[])
    with pytest.raises(InputError, match="the strengths are -1"):
        prepare("stub", mode="naive", strengths=[-1])


@pytest.mark.parametrize(
    ("options", "todo"),
    [({"suite": "regard"}, "--suite political"), ({"metrics": "sentiment"}, "measure ideology")],
    ids=["suite", "metric"],
)
def test_a_sweep_without_a_bias_is_refused_before_anything_is_written(tmp_path, options, todo):
    with pytest.raises(InputError, match=f"there is no bias to draw: .*{todo}"):
        prepare("stub", mode="naive", strengths=[1.0], out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_metrics_and_perplexity_keep_to_the_machine_too(run):
    for folder in (run.path / "runs").iterdir():
        execution = Run.open(folder).manifest["execution"]
        assert (execution["device"], execution["batch"], execution["offline"]) == ("cpu", 3, True)


def test_strengths_may_be_text_as_on_the_command_line(tmp_path):
    prepared = prepare("stub", mode="naive", strengths="0.5, 0.1", limit=36, samples=2, out=tmp_path)
    assert [line.partition(":")[0] for line in prepared.plan().lines[:3]] == [
        "vanilla",
        "naive 0.1",
        "naive 0.5",
    ]
    with pytest.raises(InputError, match=r"--strengths is '0\.5,much'"):
        prepare("stub", mode="naive", strengths="0.5,much")
