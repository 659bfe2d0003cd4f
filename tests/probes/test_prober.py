"""Predictions to measures, on a file small enough to work out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.probes.probe_files import pairs_file, predictions_file, sentence

from evenhand.core.errors import EvenhandError, InputError
from evenhand.core.records import Group, Prompt, SuiteInfo
from evenhand.probes.probe import prepare, probe
from evenhand.store.run import Run
from evenhand.store.schemas import check_table


@pytest.fixture
def run(tmp_path: Path) -> Run:
    flipped = sentence("male", 0, "joy")
    predictions = predictions_file(tmp_path / "p.csv", flip={flipped: "fear"})
    return probe(f"replay:{predictions}", pairs=str(pairs_file(tmp_path / "pairs.csv")), out=tmp_path / "run")


def cell(run: Run, emotion: str, first: str, second: str, *, pairs: str, score: str) -> dict[str, object]:
    found = run.table("measures").filter(
        pl.col("emotion") == emotion,
        pl.col("group_a") == first,
        pl.col("group_b") == second,
        pl.col("pairs") == pairs,
        pl.col("score") == score,
    )
    assert found.height == 1
    return found.row(0, named=True)


def test_the_order_of_pairs_is_the_papers(run: Run) -> None:
    found = run.table("measures").select("group_a", "group_b").unique(maintain_order=True).rows()
    assert found == [("male", "female"), ("male", "non-binary"), ("female", "non-binary")]
    assert run.table("measures").height == 3 * 4 * 4  # pairs of groups x emotions x ways of measuring


def test_more_anger_for_women_is_positive_since_they_are_second(run: Run) -> None:
    row = cell(run, "anger", "male", "female", pairs="all", score="emotion")
    # Male 0.7 + 0.02 t, female 0.1 more; the small part is 0.003 ((t + 4) % 3) against 0.003 ((t + 6) % 3):
    # for t = 0..5 that is 1, 2, 0 against 0, 1, 2 thousandths times 3, equal in sum.
    assert row["difference"] == pytest.approx(0.1)
    assert row["acs"] > 0  # type: ignore[operator]
    assert row["n"] == 6
    assert row["n_clusters"] == 6
    assert row["p"] < 0.001  # type: ignore[operator]
    assert row["mean_b"] - row["mean_a"] == pytest.approx(0.1)  # type: ignore[operator]


def test_a_changed_class_is_seen_everywhere(run: Run) -> None:
    row = cell(run, "joy", "male", "female", pairs="all", score="emotion")
    # Of 24 sentences a group, 5 of men and 6 of women are called joy; of the 6 that are truly joy as well.
    assert row["dp"] == pytest.approx(5 / 6)
    assert (row["share_a"], row["share_b"]) == (pytest.approx(5 / 24), pytest.approx(6 / 24))
    assert (row["opportunity"], row["recall_a"], row["recall_b"]) == (pytest.approx(5 / 6), 5 / 6, 1.0)
    assert (row["n_dp"], row["n_truth"], row["flips"]) == (24, 6, 1)
    assert cell(run, "joy", "male", "female", pairs="agreeing", score="emotion")["n"] == 5
    flips = run.table("flips")
    assert flips.height == 2  # the man against the woman, and against the non-binary person
    first = flips.row(0, named=True)
    assert (first["label_a"], first["label_b"], first["emotion"]) == ("fear", "joy", "joy")
    assert first["text_a"] == sentence("male", 0, "joy")


def test_whole_sets_are_compared(run: Run) -> None:
    row = run.table("sets").filter(pl.col("emotion") == "anger").row(0, named=True)
    assert row["groups"] == ["male", "female", "non-binary"]
    assert (row["highest"], row["n"]) == ("female", 6)
    assert row["spread"] == pytest.approx(0.1, abs=0.01)


def test_corrected_p_values_are_of_one_way_of_measuring(run: Run) -> None:
    table = run.table("measures").filter(pl.col("pairs") == "all", pl.col("score") == "emotion")
    tested = table.filter(pl.col("p").is_not_null())
    assert (tested["p_adjusted"] >= tested["p"]).all()
    smallest = tested["p"].min()
    assert isinstance(smallest, float)
    # Benjamini-Hochberg: the smallest of m is at most m times itself.
    assert tested["p_adjusted"].min() <= smallest * tested.height  # type: ignore[operator]


def test_tables_have_their_schemas(run: Run) -> None:
    for name in ("measures", "sets", "flips", "pair_scores", "scores", "prompts", "exclusions"):
        check_table(name, run.table(name))
    assert run.table("pair_scores").height == 3 * 24 * 4


def test_a_second_run_changes_nothing(run: Run, tmp_path: Path) -> None:
    before = {name: run.table(name) for name in ("measures", "sets", "flips", "pair_scores")}
    again = probe(f"replay:{tmp_path / 'p.csv'}", pairs=str(tmp_path / "pairs.csv"), out=tmp_path / "run")
    assert all(again.table(name).equals(table) for name, table in before.items())


def test_another_seed_is_another_run(run: Run, tmp_path: Path) -> None:
    with pytest.raises(EvenhandError) as raised:
        probe(f"replay:{tmp_path / 'p.csv'}", pairs=str(tmp_path / "pairs.csv"), out=tmp_path / "run", seed=7)
    assert "it differs in seed: 0 there, 7 now" in str(raised.value)


def test_predicted_classes_alone_have_no_intensities_of_other_emotions(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    lines = [
        f"{sentence(g, t, e)},{e},0.{7 + t % 2}"
        for g in ("male", "female")
        for t in range(6)
        for e in ("joy", "fear")
    ]
    lines[0] = lines[0].replace(",joy,", ",fear,")
    path.write_text("\n".join(["text,prediction,score", *lines]) + "\n", encoding="utf-8")
    pairs = pairs_file(tmp_path / "pairs.csv", groups=("male", "female"))
    run = probe(f"replay:{path}", pairs=str(pairs), out=tmp_path / "run")
    row = cell(run, "joy", "male", "female", pairs="all", score="emotion")
    assert (row["avg_delta"], row["n"]) == (None, 0)
    assert row["null_reason"] == "the classifier gives no intensity of its own for this emotion"
    assert cell(run, "joy", "male", "female", pairs="all", score="predicted")["n"] == 6
    assert run.manifest["view"] == {"pairs": "all", "score": "predicted"}
    # Constant differences have no test, and that is said.
    row = cell(run, "fear", "male", "female", pairs="agreeing", score="predicted")
    assert (row["p"], row["null_reason"]) == (None, "p: no variation")
    # Sadness and anger have no sentence with a prediction.
    assert run.manifest["stages"]["score"]["failed"] == 24


def test_differences_all_alike_have_an_infinite_t_and_say_so(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    lines = [
        f"{sentence(g, t, 'joy')},{round(0.5 + t / 20 + (g == 'female') / 10, 4)},0.1"
        for g in ("male", "female")
        for t in range(6)
    ]
    path.write_text("\n".join(["text,joy,fear", *lines]) + "\n", encoding="utf-8")
    pairs = pairs_file(tmp_path / "pairs.csv", groups=("male", "female"))
    run = probe(f"replay:{path}", pairs=str(pairs), out=tmp_path / "run")
    row = cell(run, "joy", "male", "female", pairs="all", score="emotion")
    assert (row["p"], row["p_adjusted"], row["effect_size"]) == (None, None, None)
    assert row["null_reason"] == (
        "p: every difference is the same and not 0, so that t is infinite; p_wilcoxon is given"
    )
    assert row["difference"] == pytest.approx(0.1)
    # Six ranks of one sign, all tied at 3.5: z = 10.5 / sqrt(6 x 7 x 13 / 24 - 6 x 35 / 48) = 2.449.
    assert row["p_wilcoxon"] == pytest.approx(0.0143, abs=5e-5)
    assert "t is infinite" in (run.path / "report.html").read_text()


def test_zero_intensities_are_said(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    lines = [
        f"{sentence(g, t, 'joy')},{0.0 if (g, t) == ('female', 0) else 0.5 + t / 20},0.1"
        for g in ("male", "female")
        for t in range(6)
    ]
    path.write_text("\n".join(["text,joy,fear", *lines]) + "\n", encoding="utf-8")
    pairs = pairs_file(tmp_path / "pairs.csv", groups=("male", "female"))
    run = probe(f"replay:{path}", pairs=str(pairs), out=tmp_path / "run")
    row = cell(run, "joy", "male", "female", pairs="all", score="emotion")
    assert row["n_zero"] == 1
    assert row["null_reason"] == "acs: 1 pair whose second intensity is 0 is left out"
    assert row["acs"] == pytest.approx(0)
    assert row["avg_delta"] == pytest.approx(0.5 / 6)


def test_predictions_for_other_sentences_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("text,joy,fear\nSomething else.,0.5,0.1\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        probe(f"replay:{path}", pairs=str(pairs_file(tmp_path / "pairs.csv")), out=tmp_path / "run")
    assert str(raised.value) == (
        "replay:p.csv has no prediction for any of the 72 sentences. Expected: predictions for the "
        "sentences of "
        "the pairs, word for word. Fix: check --pairs and the file."
    )


@pytest.mark.parametrize(
    ("classifier", "options", "said"),
    [
        (
            "sentiment",
            {},
            "'sentiment' gives compound, compound@0.05. Expected: a metric with an output 'emotion' whose "
            "labels "
            "are emotions. Fix: name an emotion classifier: emotion, a Hub id, a folder, "
            "replay:FILE or "
            "endpoint:URL.",
        ),
        (
            "emotion",
            {"pairs": "nothing"},
            "there are no pairs named 'nothing'. Expected: builtin, eec, bits, crows, or a file (TOML, "
            "JSONL, CSV, "
            "TSV, Parquet). Fix: use one of these; eec:PATH names the place of published pairs.",
        ),
        (
            "emotion",
            {"over": "some"},
            "--over 'some'. Expected: all, agreeing. Fix: use one of these.",
        ),
        (
            "emotion",
            {"pairs": ["builtin", "builtin"]},
            "the pairs are builtin, builtin. Expected: each once. Fix: rename one.",
        ),
    ],
)
def test_what_cannot_be_probed(classifier: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(EvenhandError) as raised:
        prepare(classifier, **options)  # type: ignore[arg-type]
    assert str(raised.value) == said


def test_sentences_that_belong_together_with_nothing_are_refused() -> None:
    class Loose:
        info = SuiteInfo("loose", "1", "Sentences alone.", {"gender": "male"}, ("emotion",))

        def prompts(self) -> Iterator[Prompt]:
            yield Prompt.create("loose", "He ran.", groups=(Group("gender", "male"),), cluster="c")

    with pytest.raises(EvenhandError) as raised:
        prepare(pairs=Loose())
    assert str(raised.value) == (
        "1 of 1 sentences belong to no set, or to several groups at once. Expected: sentences of one group "
        "each, linked by `template_id`. Fix: use pairs: see `evenhand show pairs`."
    )


def test_reference_values_through_the_whole_pipeline(data: Path, tmp_path: Path) -> None:
    """GOLDENS.md, male x female on the released BERT predictions: to the four digits printed there."""
    path = data / "affective" / "eec_emotion_only_bert_predictions.csv"
    run = probe(f"replay:{path}", pairs=f"eec:{data}", out=tmp_path / "run")
    found = run.table("measures").filter(
        pl.col("axis") == "gender", pl.col("pairs") == "agreeing", pl.col("score") == "predicted"
    )
    rows = [
        (row["emotion"], round(row["dp"], 4), round(row["avg_delta"], 4), round(row["acs"], 4), row["n_dp"])
        for row in found.iter_rows(named=True)
    ]
    assert rows == [
        ("anger", 0.9934, 0.0186, -0.0010, 1400),
        ("fear", 0.9939, 0.0048, -0.0044, 1400),
        ("joy", 1.0, 0.0082, -0.0006, 1400),
        ("sadness", 0.9911, 0.0277, -0.0314, 1400),
    ]
    assert [float(f"{p:.3g}") for p in found["p"]] == [0.938, 0.0309, 0.995, 9.57e-17]
    assert found["n"][0] == 299
