"""A corpus and a classifier side by side, worked by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.probes.probe_files import pairs_file, predictions_file

from evenhand.audits.compare import associate, compare, normalise_group, prepare
from evenhand.core.errors import EvenhandError
from evenhand.corpus.scan import scan_corpus
from evenhand.probes.probe import probe
from evenhand.store.run import Run
from evenhand.store.schemas import EVERY_SCHEMA, check_table


def table(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    schema = EVERY_SCHEMA[name]
    whole = [{column: row.get(column) for column in schema} for row in rows]
    pl.DataFrame(whole, schema=dict(schema)).write_parquet(folder / f"{name}.parquet")


def corpus_run(folder: Path, percents: dict[tuple[str, str], float | None]) -> Run:
    table(
        folder,
        "cooccurrence",
        [
            {"corpus": "news", "axis": "gender", "group": group, "emotion": emotion, "percent": percent}
            for (group, emotion), percent in percents.items()
        ],
    )
    return Run(folder, {"identity": {"command": "corpus"}, "name": "news", "command": "c"})


def probe_run(folder: Path, acs: dict[tuple[str, str, str], float | None]) -> Run:
    table(
        folder,
        "measures",
        [
            {
                "corpus": "pairs",
                "model": "m",
                "axis": "gender",
                "group_a": first,
                "group_b": second,
                "emotion": emotion,
                "pairs": "all",
                "score": "emotion",
                "acs": value,
                "difference": value,
                "difference_low": None if value is None else value - 0.01,
                "difference_high": None if value is None else value + 0.01,
                "p_adjusted": 0.01,
            }
            for (first, second, emotion), value in acs.items()
        ],
    )
    view = {"pairs": "all", "score": "emotion"}
    return Run(folder, {"identity": {"command": "probe"}, "name": "m", "command": "p", "view": view})


def test_directions_by_hand(tmp_path: Path) -> None:
    corpus = corpus_run(
        tmp_path / "c",
        {
            ("male", "anger"): 20.0,
            ("female", "anger"): 30.0,
            ("NB", "anger"): 10.0,
            ("male", "joy"): 40.0,
            ("female", "joy"): 40.0,
            ("NB", "joy"): None,
        },
    )
    run = probe_run(
        tmp_path / "p",
        {
            ("male", "female", "anger"): 0.2,  # corpus +10: the same way
            ("male", "non-binary", "anger"): 0.1,  # corpus -10: opposite ways
            ("female", "non-binary", "anger"): -0.3,  # corpus -20: the same way
            ("male", "female", "joy"): 0.1,  # the corpus leans nowhere
            ("male", "non-binary", "joy"): 0.1,  # the corpus has no percent
        },
    )
    found = associate(corpus, run)
    cells = {
        (row["group_a"], row["group_b"], row["emotion"]): row
        for row in found["associations"].iter_rows(named=True)
    }
    assert [row["same_direction"] for row in cells.values()] == [True, False, True, None, None]
    assert [row["corpus_difference"] for row in cells.values()] == [10.0, -10.0, -20.0, 0.0, None]
    assert cells["male", "female", "joy"]["null_reason"] == "no association in the corpus"
    assert cells["male", "female", "anger"]["is_clear"]
    row = found["agreements"].row(0, named=True)
    assert (row["same"], row["n"], row["n_clusters"]) == (2, 3, 3)
    assert row["share"] == pytest.approx(2 / 3)
    # Corpus -20, -10, 10 and ACS -0.3, 0.1, 0.2 have the same ranks.
    assert row["rho"] == pytest.approx(1)
    for name, part in found.items():
        check_table(name, part)


def test_names_of_published_lists_are_understood() -> None:
    assert [normalise_group(name) for name in ("aa", "EA", "nb", "Jew", "Hispanic_and_Latino_American")] == [
        "african american",
        "european american",
        "non-binary",
        "jewish",
        "hispanic and latino american",
    ]


def test_runs_that_share_nothing_are_refused(tmp_path: Path) -> None:
    corpus = corpus_run(tmp_path / "c", {("robots", "anger"): 20.0})
    run = probe_run(tmp_path / "p", {("male", "female", "anger"): 0.2})
    with pytest.raises(EvenhandError) as raised:
        associate(corpus, run)
    assert str(raised.value) == (
        "the two runs share no pair of groups with an emotion. Expected: a corpus run and a probe run with "
        "groups "
        "and emotions of the same names. Fix: compare the `group` column of cooccurrence.parquet "
        "with that "
        "of measures.parquet."
    )
    with pytest.raises(EvenhandError) as raised:
        prepare(corpus, corpus, run)
    assert str(raised.value) == (
        "runs of corpus, corpus, probe. Expected: one corpus run and one probe run. Fix: compare several "
        "corpora "
        "by scanning them in one run."
    )


def test_compare_sets_a_real_corpus_beside_a_probe(tmp_path: Path) -> None:
    text = (
        "The man was furious. The woman was happy. A woman wept in sorrow. The man felt joy. He feared it.\n"
    )
    (tmp_path / "news.txt").write_text(text * 30, encoding="utf-8")
    corpus = scan_corpus(tmp_path / "news.txt", out=tmp_path / "corpus", workers=1)
    classifier = probe(
        f"replay:{predictions_file(tmp_path / 'p.csv')}",
        pairs=str(pairs_file(tmp_path / "pairs.csv")),
        out=tmp_path / "probe",
    )
    run = compare(corpus, classifier, out=tmp_path / "both")
    assert run.table("associations").height == 4 * 3  # emotions x pairs of genders
    assert (run.path / "report.html").read_text(encoding="utf-8").count("<ellipse") > 0
    again = prepare(classifier, corpus, out=tmp_path / "both")  # in whatever order
    assert again.plan().title == "compare a corpus and a classifier"
    assert again.run().table("agreements").equals(run.table("agreements"))
    report = (run.path / "report.md").read_text(encoding="utf-8")
    assert "both lean the same way in" in report
