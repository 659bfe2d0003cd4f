"""The replication of the political paper: on a stub, by hand where a number can be, and as printed."""

import sys

import numpy as np
import polars as pl
import pytest

from evenhand.core.errors import InputError
from evenhand.papers.political import replication
from evenhand.papers.political.figure import silhouette
from evenhand.papers.political.people import read_answers, table_6
from evenhand.papers.political.printed import printed
from evenhand.papers.political.tables import _averaged
from evenhand.papers.replicate import prepare, replicate


def test_overall_cells_are_means_of_options_but_for_three():
    table = printed("table_2")
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
    assert printed("table_3").height == 18
    assert printed("table_5")["mode"].to_list() == [
        "baseline",
        "naive",
        "in-glove",
        "embedding",
        "classifier",
    ]
    # Table 3 prints changes; at lambda 0.9 the indirect bias of topics is 0.781 - 0.42.
    row = printed("table_3").filter((pl.col("attribute") == "topic") & (pl.col("lambda") == 0.9))
    assert row["indirect_bias"][0] == pytest.approx(0.361)


def test_silhouette_by_hand():
    # Points 0, 1 and 4, 5. Of 0: own 1, other 4.5, (4.5 - 1) / 4.5; of 1: (3.5 - 1) / 3.5; the rest alike.
    points = np.array([[0.0], [1.0], [4.0], [5.0]], dtype=np.float32)
    expected = ((3.5 / 4.5) + (2.5 / 3.5)) / 2
    assert silhouette(points, ["a", "a", "b", "b"]) == pytest.approx(expected, abs=1e-6)
    assert silhouette(points, ["a", "a", "a", "a"]) is None


def test_an_average_of_intervals():
    # Means 1 and 3 with half-widths 3 and 4: mean 2, half-width sqrt(9 + 16) / 2.
    rows = pl.DataFrame({"corrected": [1.0, 3.0], "low": [-2.0, -1.0], "high": [4.0, 7.0]})
    assert _averaged(rows) == pytest.approx((2.0, -0.5, 4.5))
    assert _averaged(rows.with_columns(pl.lit(None, pl.Float64).alias("low"))) == (None, None, None)


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
    table = table_6(read_answers(answers(tmp_path / "study.csv", given))).frame
    row = table.filter((pl.col("source") == "study") & (pl.col("mode") == "embedding")).row(0, named=True)
    # Differences -2, -1, -1: mean -4/3, t = -4/3 / (0.57735 / sqrt 3) = -4 with 2 degrees of freedom.
    assert row["mean"] == pytest.approx(11 / 3)
    assert row["difference"] == pytest.approx(-4 / 3)
    assert row["p"] == pytest.approx(0.0572, abs=1e-3)


def test_a_study_that_is_none(tmp_path):
    with pytest.raises(InputError, match="holds 1 answers, 1 of them not understood"):
        read_answers(answers(tmp_path / "study.csv", [(1, "baseline", "bias", 9)]))


def test_only_the_study_needs_no_model(tmp_path):
    path = answers(tmp_path / "s.csv", [(p, m, "bias", 3 + p) for p in (0, 1) for m in ("baseline", "naive")])
    prepared = prepare("political", model="stub", tables="6", human=path, out=tmp_path / "out")
    assert "models  none: no table that needs one was asked for" in prepared.plan().lines
    assert (prepared.run().path / "table_6.parquet").exists()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
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
    assert "never the classifier that steers" in page
    assert "umap\\-learn is not installed" in page or "umap-learn is not installed" in page
