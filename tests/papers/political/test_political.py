"""The replication of the political paper: on a stub, by hand where a number can be, and as printed."""

import sys
from functools import partial

import numpy as np
import polars as pl
import pytest

from evenhand.core.errors import InputError
from evenhand.core.records import Execution
from evenhand.mitigations.word_lists import read_word_lists
from evenhand.papers.political import judge, replication
from evenhand.papers.political.judge import figure_2, silhouette
from evenhand.papers.political.tables import average_columns, read_reader_answers, table_6
from evenhand.papers.replicate import prepare, replicate
from evenhand.papers.replication_pages import load_published
from evenhand.stats import base_rates
from evenhand.text.word_vectors import save_vectors
from evenhand.training.train import train


def test_overall_cells_are_means_of_options_but_for_three():
    table = load_published("political", "table_2")
    keys = ["bias", "mode", "attribute"]
    cells = table.filter(pl.col("option") != "(overall)").group_by(keys).agg(pl.col("distance").mean())
    whole = table.filter(pl.col("option") == "(overall)").join(
        cells, on=keys, suffix="_mean", maintain_order="left"
    )
    off = whole.filter((pl.col("distance") - pl.col("distance_mean")).abs() > 0.0101)
    # 6.72 / 7, 9.762 / 7 and 2.36 / 7, all of topics.
    assert off.select("bias", "mode", "distance", pl.col("distance_mean").round(3)).rows() == [
        ("indirect", "embedding", 0.9, 0.96),
        ("direct", "baseline", 1.95, 1.395),
        ("direct", "embedding", 0.38, 0.337),
    ]


def test_printed_tables_are_whole():
    assert load_published("political", "table_3").height == 18
    assert load_published("political", "table_5")["mode"].to_list() == [
        "baseline",
        "naive",
        "in-glove",
        "embedding",
        "classifier",
    ]
    # Table 3 prints changes; at lambda 0.9 the indirect bias of topics is 0.781 - 0.42.
    row = load_published("political", "table_3").filter(
        (pl.col("attribute") == "topic") & (pl.col("lambda") == 0.9)
    )
    assert row["indirect_bias"][0] == pytest.approx(0.361)


def test_too_few_texts_to_project_are_not_blamed_on_a_package(monkeypatch):
    zeros = np.zeros((4, 3), np.float32)
    monkeypatch.setattr("evenhand.papers.political.judge._judge_vectors", lambda texts, execution: zeros)
    texts = pl.DataFrame({"text": ["a b"] * 4, "label": ["liberal", "conservative"] * 2})
    notes = figure_2({"vanilla": texts}, "m", Execution(), 0).notes
    assert "Not drawn: fewer than 10 texts per panel." in notes
    assert "umap" not in " ".join(notes)


def test_silhouette_by_hand():
    # Points 0, 1 and 4, 5. Of 0: own 1, other 4.5, (4.5 - 1) / 4.5; of 1: (3.5 - 1) / 3.5; the rest alike.
    points = np.array([[0.0], [1.0], [4.0], [5.0]], dtype=np.float32)
    expected = ((3.5 / 4.5) + (2.5 / 3.5)) / 2
    assert silhouette(points, ["a", "a", "b", "b"]) == pytest.approx(expected, abs=1e-6)
    assert silhouette(points, ["a", "a", "a", "a"]) is None


def test_an_average_of_intervals():
    # Means 1 and 3 with half-widths 3 and 4: mean 2, half-width sqrt(9 + 16) / 2.
    rows = pl.DataFrame({"x": [1.0, 3.0], "x_low": [-2.0, -1.0], "x_high": [4.0, 7.0]})
    assert rows.select(average_columns("x")).row(0) == pytest.approx((2.0, -0.5, 4.5))
    unknown = rows.with_columns(x_low=pl.lit(None, pl.Float64))
    assert unknown.select(average_columns("x")).row(0) == (None, None, None)


def answers(path, rows):
    pl.DataFrame(rows, schema=["participant", "mode", "question", "answer"], orient="row").write_csv(path)
    return path


def test_table_6_pairs_participants(tmp_path):
    given = [
        (person, mode, question, value)
        for question in ("bias", "readability", "coherence")
        for mode, values in {"baseline": (5, 6, 4), "embedding": (3, 5, 3)}.items()
        for person, value in enumerate(values)
    ]
    table = table_6(read_reader_answers(answers(tmp_path / "study.csv", given))).frame
    row = table.filter((pl.col("source") == "study") & (pl.col("mode") == "embedding")).row(0, named=True)
    # Differences -2, -1, -1: mean -4/3, t = -4/3 / (0.57735 / sqrt 3) = -4 with 2 degrees of freedom.
    assert row["mean"] == pytest.approx(11 / 3)
    assert row["difference"] == pytest.approx(-4 / 3)
    assert row["p"] == pytest.approx(0.0572, abs=1e-3)


def test_a_study_that_is_none(tmp_path):
    with pytest.raises(InputError, match="contains 1 answers, 1 of them invalid"):
        read_reader_answers(answers(tmp_path / "study.csv", [(1, "baseline", "bias", 9)]))


def test_only_the_study_needs_no_model(tmp_path):
    path = answers(tmp_path / "s.csv", [(p, m, "bias", 3 + p) for p in (0, 1) for m in ("baseline", "naive")])
    prepared = prepare("political", model="stub", tables="6", human=path, out=tmp_path / "out")
    assert "models  none: no requested table needs one" in prepared.plan().lines
    assert (prepared.run().path / "table_6.parquet").exists()


def in_haste(patch):
    """Few arrangements: what the tables hold is looked at, not how exact it is."""
    for name in ("base_rate_distances", "bias_change"):
        quick = partial(getattr(base_rates, name), permutations=40, resamples=40)
        patch.setattr(f"evenhand.audits.analysis.base_rate_distances.{name}", quick)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        in_haste(patch)
        patch.setattr(replication, "PROMPTS", 40)
        patch.setitem(sys.modules, "umap", None)  # as where it is not installed
        return replicate(
            "political", model="stub", tables="2,5,figure_2", out=tmp_path_factory.mktemp("p") / "out"
        )


def test_the_stub_has_its_tables(run):
    table = pl.read_parquet(run.path / "table_2.parquet")
    ours = table.filter(pl.col("source") == "stub")
    assert set(ours["mode"]) == {"baseline", "naive"}
    assert set(ours["reads"]) == {"continuation", "full"}
    assert {"indirect", "direct"} == set(ours["bias"])
    five = pl.read_parquet(run.path / "table_5.parquet").filter(pl.col("source") == "stub")
    assert five["mode"].to_list() == ["baseline", "naive"]
    assert five["on_training_text"][0] < five["perplexity"][0]


def test_the_figure_and_what_is_missing(run):
    figure = pl.read_parquet(run.path / "figure_2.parquet")
    assert figure["panel"].unique().sort().to_list() == ["(a) baseline, word vectors", "(b) baseline, judge"]
    assert figure["x"].null_count() == figure.height
    warnings = run.manifest["warnings"]
    assert [text.partition(":")[0] for text in warnings] == [
        "stub, without in-glove",
        "stub, without embedding",
        "stub, without classifier",
    ]
    page = (run.path / "replication.md").read_text()
    assert "never the steering classifier" in page
    assert "umap\\-learn is not installed" in page or "umap-learn is not installed" in page


def labelled(count=40):
    words = {"liberal": ("climate", "workers", "racism"), "conservative": ("border", "liberty", "radical")}
    return [
        {
            "text": f"Story {at} of {side[at % 3]} and {side[(at + 1) % 3]}.",
            "label": label,
            "outlet": label[:3],
        }
        for label, side in words.items()
        for at in range(count)
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What the modes need: a head for ``builtin``, and neutral vectors."""
    data = tmp_path_factory.mktemp("data")
    pl.DataFrame(labelled()).write_csv(data / "rows.csv")
    train("calibrator", data / "rows.csv", out=data / "calibrator" / "own", device="cpu")
    listed = [word for side in read_word_lists("ideology").words for word in side]
    words = (*listed, "alpha", "beta")
    (data / "neutral").mkdir()
    matrix = np.random.default_rng(0).normal(size=(len(words), 4)).astype(np.float32)
    save_vectors(words, matrix, data / "neutral" / "vectors.safetensors")
    return data


@pytest.fixture(scope="module")
def five(files, tmp_path_factory):
    """All five methods on the embedded model, at the smallest size."""
    with pytest.MonkeyPatch.context() as patch:
        in_haste(patch)
        smallest = {"PROMPTS": 9, "SAMPLES": 1, "TOKENS": 6, "SUITES": ("political",)}
        for name, value in smallest.items():
            patch.setattr(replication, name, value)
        patch.setitem(sys.modules, "umap", None)
        return replicate(
            "political",
            model="own=builtin",
            tables="2,5,figure_2",
            data=files,
            device="cpu",
            out=tmp_path_factory.mktemp("five") / "out",
        )


MODES = ["baseline", "naive", "in-glove", "embedding", "embedding sigma 0.4", "classifier"]


def test_all_methods_stand_side_by_side(five):
    table = pl.read_parquet(five.path / "table_5.parquet").filter(pl.col("source") == "own")
    assert table["mode"].to_list() == MODES
    for column in ("perplexity", "perplexity_times", "perplexity_model_times", "tokens_per_second"):
        assert table[column].null_count() == 0
    assert table.row(0, named=True)["perplexity_times"] == pytest.approx(1)
    ours = pl.read_parquet(five.path / "table_2.parquet").filter(pl.col("source") == "own")
    assert set(ours["mode"]) == set(MODES)
    # Both readings are there, what the model wrote first; its change is told, beside the baseline.
    assert ours["reads"].unique(maintain_order=True).to_list() == ["continuation", "full"]
    assert ours["reads"].is_sorted()
    told = ours.filter((pl.col("reads") == "continuation") & (pl.col("mode") != "baseline"))
    assert told.filter(pl.col("option") == "(overall)")["change"].null_count() == 0
    assert (
        ours.filter(pl.col("mode") == "baseline")["change"].null_count()
        == ours.filter(pl.col("mode") == "baseline").height
    )
    assert five.manifest["warnings"] == []


def test_a_second_start_does_nothing_again(five, files, monkeypatch):
    def refused(*_):
        raise AssertionError("done again")

    monkeypatch.setattr(replication, "PROMPTS", 9)
    monkeypatch.setattr(replication, "TOKENS", 6)
    monkeypatch.setattr(replication, "SUITES", ("political",))
    for done in (
        "evenhand.audits.audit.AuditJob.run",
        "evenhand.audits.tradeoff._costs_of_run",
        "evenhand.papers.political.conditions.bias_changes",
        "evenhand.papers.political.conditions.read_with_prompts",
        "evenhand.audits.tradeoff.MitigationSweep.measure_throughput",
    ):
        monkeypatch.setattr(done, refused)
    before = (five.path / "table_5.md").read_text()
    again = replicate("political", model="own=builtin", tables="2,5", data=files, device="cpu", out=five.path)
    assert (again.path / "table_5.md").read_text() == before


def test_the_page_says_what_came_out_first(five):
    page = (five.path / "replication.md").read_text()
    assert page.index("## Findings") < page.index("## Read this first")
    assert "own: indirect bias beyond chance" in page.replace("\\", "")


def test_the_figure_has_four_panels(five):
    figure = pl.read_parquet(five.path / "figure_2.parquet")
    assert figure["panel"].unique().sort().to_list() == [
        "(a) baseline, word vectors",
        "(b) baseline, judge",
        "(c) embedding, judge",
        "(d) classifier, judge",
    ]


def test_the_tables_say_what_the_steering_head_has_learned_from(five):
    page = (five.path / "table_5.md").read_text()
    assert "It is never the steering classifier." in page
    assert "that of own on rows.csv, BLAKE2b-128 " in page


def test_rivals_of_the_judge_stand_in_one_table(tmp_path, monkeypatch):
    (tmp_path / "articles").mkdir()
    for part, count in {"train": 30, "valid": 6, "test": 6}.items():
        pl.DataFrame(labelled(count)).write_csv(tmp_path / "articles" / f"{part}.csv")
    few = {name: {**how, "epochs": 4} for name, how in judge.JUDGES.items() if name != "TF-IDF, linear"}
    del few["masked model (builtin:masked)"]
    monkeypatch.setattr(judge, "JUDGES", {"TF-IDF, linear": {"preset": "political-linear"}, **few})
    done = replicate("political", tables="judges", data=tmp_path, device="cpu", out=tmp_path / "out")
    table = pl.read_parquet(done.path / "judges.parquet")
    assert table.row(0)[:4] == ("paper", "XLNet", "(all)", 0.984)
    whole = table.filter((pl.col("source") == "ours") & (pl.col("outlet") == "(all)"))
    assert set(whole["classifier"]) == {
        "TF-IDF, linear",
        "fastText-style",
        "RNN with attention",
        "transformer, from nothing",
    }
    assert whole["n"].to_list() == [12] * 4
    assert ((whole["low"] <= whole["f1"]) & (whole["f1"] <= whole["high"])).all()
    assert set(table["outlet"]) == {"(all)", "con", "lib"}


def test_articles_without_a_part_are_refused(tmp_path):
    (tmp_path / "articles").mkdir()
    with pytest.raises(InputError, match=r"articles has no train\.csv\. Expected: train\.csv, valid\.csv"):
        prepare("political", tables="judges", data=tmp_path)
