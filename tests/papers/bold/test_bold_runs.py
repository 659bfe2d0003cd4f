"""Replications of BOLD that write and score: nine prompts in the place of BOLD's."""

import polars as pl
import pytest
from tests.models import tiny, tiny_masked
from tests.suites.small_bold import original

import evenhand
from evenhand.core.errors import InputError, RunFolderError
from evenhand.core.files import asset_path
from evenhand.papers.bold import replication
from evenhand.papers.replicate import prepare
from evenhand.suites.bold import BoldSuite


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Nine prompts in BOLD's layout in the place of BOLD."""
    suite = BoldSuite(name=str(original(tmp_path / "data")), subset=True)
    monkeypatch.setattr(replication.registry, "create_suite", lambda spec, execution=None: suite)
    monkeypatch.setattr(replication, "METRICS", ("sentiment", "gender_polarity", "norms"))
    return suite


def test_only_the_metrics_of_the_asked_tables_are_scored(small, tmp_path):
    run = evenhand.replicate("bold", tables="3,figure_4", model="a=stub", out=tmp_path / "r")
    inside = evenhand.Run.open(run.path / "runs" / "a")
    assert list(inside.manifest["metrics"]) == ["sentiment", "gender_polarity"]
    assert not (run.path / "claims.md").exists()
    # What is asked for later is added; the claims, which have a name too, need every metric.
    run = evenhand.replicate("bold", tables="claims", model="a=stub", out=tmp_path / "r")
    metrics = evenhand.Run.open(run.path / "runs" / "a").manifest["metrics"]
    assert sorted(metrics) == ["gender_polarity", "norms", "sentiment"]
    files = ["claims.parquet", "claims.md", "replication.md", "report.html"]
    assert run.manifest["stages"]["replicate"]["files"] == files


def test_the_model_wikipedia_is_the_human_sentences_of_data(small, tmp_path, monkeypatch):
    monkeypatch.delenv("EVENHAND_DATA", raising=False)
    monkeypatch.delenv("EVENHAND_BOLD", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    options = {"tables": "3,figure_4", "data": tmp_path / "data", "offline": True}
    run = evenhand.replicate("bold", model="wikipedia", **options, out=tmp_path / "r")
    assert pl.read_parquet(run.path / "figure_4.parquet")["source"].to_list() == ["WIKI"]
    with pytest.raises(
        InputError, match=r"^'people=wikipedia' names human sentences other than those of --data\."
    ):
        prepare("bold", model="people=wikipedia", **options)


def test_table_1_needs_no_texts(small, tmp_path, monkeypatch):
    monkeypatch.setattr(replication, "find_sources", None)  # no model is loaded
    prepared = prepare("bold", tables="1", out=tmp_path / "r")
    assert prepared.plan().lines == (
        f"bold    {small.info.digest}, metrics none",
        "texts   none needed, no model is run",
        "writes  table_1",
        f"folder  {tmp_path / 'r'}",
    )
    run = prepared.run()
    ours = pl.read_parquet(run.path / "table_1.parquet").filter(pl.col("source") == "this copy")
    assert ours.drop("source").rows()[-1] == ("total", 8, 9)
    assert not (run.path / "runs").exists()


def test_a_model_is_added_to_a_folder_and_the_others_are_reused(small, tmp_path):
    out, tables = tmp_path / "r", "figure_4"
    evenhand.replicate("bold", tables=tables, model="a=stub", out=out)
    shards = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("shards/**/*.parquet")}
    assert shards
    run = evenhand.replicate("bold", tables=tables, model="a=stub,b=stub", out=out)
    assert {path: path.stat().st_mtime_ns for path in shards} == shards
    assert pl.read_parquet(out / "figure_4.parquet")["source"].to_list() == ["WIKI", "a", "b"]
    assert list(run.manifest["sources"]) == ["WIKI", "a", "b"]
    # Fewer may be named: the tables hold what is named, the folder keeps the rest and says so.
    fewer = prepare("bold", tables=tables, model="b=stub", out=out)
    assert "kept    a: already there, and only in the tables if named too" in fewer.plan().lines
    assert fewer.run().manifest["stages"]["replicate"]["sources"] == ["WIKI", "b"]
    assert list(evenhand.Run.open(out).manifest["sources"]) == ["WIKI", "a", "b"]


def test_another_model_of_the_same_name_is_refused(small, tmp_path):
    file = tmp_path / "texts.csv"
    file.write_text("prompt,text\nSam Doe was born in,a town\n")
    out = tmp_path / "r"
    evenhand.replicate("bold", tables="figure_4", model="a=stub", out=out)
    with pytest.raises(RunFolderError, match=r"runs/a belongs to another configuration; it differs in model"):
        evenhand.replicate("bold", tables="figure_4", model=f"a=replay:{file}", out=out)


def test_the_plan_has_a_time_for_every_source(small, tmp_path):
    file = tmp_path / "texts.csv"
    file.write_text("prompt,text\nSam Doe was born in,a town\n")
    lines = prepare("bold", model=f"mine=replay:{file}", out=tmp_path / "r").plan().lines
    none = "time    none for generation: the texts exist already"
    assert f"WIKI: {none}" in lines
    assert f"mine: {none}" in lines
    assert "scoring 18 texts, about 0 s at 150 texts/s, as measured on two cores" in lines
    lexicon = asset_path("norms", "lexicon.tsv.xz")
    given = prepare("bold", model=f"mine=replay:{file}", metrics=f"norms={lexicon}", out=tmp_path / "r")
    assert "scoring 18 texts, in a time that is unknown before the first run here" in given.plan().lines


def test_three_kinds_of_model_write_as_the_paper_lets_them(small, tmp_path, monkeypatch):
    monkeypatch.setattr(tiny, "CONTEXT", 128)
    monkeypatch.setattr(tiny_masked, "CONTEXT", 128)
    folders = {
        "GPT-2": tiny.save(tiny.gpt2(), tmp_path / "gpt2"),
        "BERT": tiny_masked.save("bert", tmp_path / "bert"),
        "CTRL": tiny.save_ctrl(tmp_path / "ctrl", context=128),
    }
    specs = [f"{name}={folder}" for name, folder in folders.items()]
    options = {"tables": "figure_4", "model": specs, "device": "cpu", "max_new_tokens": 7}
    run = evenhand.replicate("bold", out=tmp_path / "r", **options)
    names = ["WIKI", "GPT-2", "BERT", "CTRL-Wikipedia", "CTRL-Opinion", "CTRL-Thoughts"]
    assert run.manifest["stages"]["replicate"]["sources"] == names
    settings = {name: evenhand.Run.open(run.path / "runs" / name).manifest["config"] for name in names[1:]}
    assert {name: found["generation"]["preset"] for name, found in settings.items()} == {
        "GPT-2": "bold-gpt2",
        "BERT": "bold-bert",
        "CTRL-Wikipedia": "bold-ctrl",
        "CTRL-Opinion": "bold-ctrl",
        "CTRL-Thoughts": "bold-ctrl",
    }
    assert settings["CTRL-Opinion"]["generation"]["control_code"] == "Opinion"
    # The length is the user's where the paper prints none, and 15 where it does.
    for name, length in (("GPT-2", 7), ("CTRL-Opinion", 7), ("BERT", 15)):
        written = evenhand.Run.open(run.path / "runs" / name).table("generations")["new_tokens"]
        assert written.max() == length
