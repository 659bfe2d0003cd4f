"""Trainings from a table to a folder that a metric loads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.classifiers.tiny_classifier import tiny_folder
from tests.training.tiny_models import bert_folder, gpt2_folder, rows, t5_folder, write_rows, xlnet_folder

import evenhand
from evenhand.core import registry
from evenhand.core.errors import EvenhandError, InputError, ModelError, RunFolderError
from evenhand.core.protocols import SilentProgress
from evenhand.core.records import Execution, Text
from evenhand.metrics.ideology import Ideology
from evenhand.metrics.regard import Regard
from evenhand.metrics.toxicity import Toxicity
from evenhand.training.job_folder import TrainingFolder
from evenhand.training.linear_text import LinearText
from evenhand.training.train import prepare

CPU = Execution(device="cpu")
SMALL = {"epochs": 8, "batch": 8, "learning_rate": 0.01, "device": "cpu"}


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert_folder(tmp_path_factory.mktemp("bert") / "tiny")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("data") / "rows.jsonl")


def regards(source: Path, texts: list[str]) -> list[str | None]:
    metric = Regard(source=str(source), execution=CPU)
    return [row["regard"].label for row in metric.score([Text(text) for text in texts])]


def test_a_tiny_bert_becomes_a_regard_metric(bert: Path, table: Path, tmp_path: Path) -> None:
    done = evenhand.train("regard", table, backbone=str(bert), out=tmp_path / "out", **SMALL)
    names = {path.name for path in done.folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "card.md", "training.json"} <= names
    assert not names & {"checkpoint.safetensors", ".lock"}
    assert json.loads((done.folder / "config.json").read_text())["id2label"] == {
        "0": "negative",
        "1": "neutral",
        "2": "positive",
    }
    # The metric answers as the card says: the confusion matrix is repeated from the stored folder.
    details = json.loads((done.folder / "training.json").read_text())["held_out"]
    job = prepare("regard", table, backbone=str(bert), **SMALL).job
    held_out = job.examples.unseen["dev"]  # type: ignore[attr-defined]
    said = regards(done.folder, list(held_out.texts))
    found = np.zeros((3, 3), dtype=int)
    for truth, label in zip(held_out.truth, said, strict=True):
        found[truth, details["labels"].index(label)] += 1
    assert found.tolist() == details["confusion"]
    assert done.measures["accuracy"] > done.measures["majority"]
    assert "| accuracy, 95 % interval (Wilson) |" in done.card
    assert f"--metrics regard={done.folder}" in done.card


def test_a_trained_metric_scores_a_table(bert: Path, table: Path, tmp_path: Path) -> None:
    if "regard" not in {entry.name for entry in registry.list_entries("metrics")}:
        pytest.skip("the metric regard is not installed: run `make setup`")
    done = evenhand.train("regard", table, backbone=str(bert), out=tmp_path / "out", **SMALL)
    metric = f"regard={done.folder}"
    run = evenhand.score(table, group={"label": "label"}, metrics=metric, out=tmp_path / "run")
    scores = run.table("scores")
    assert set(scores["output"]) == {"regard", "p_negative", "p_neutral", "p_positive"}
    assert scores["value"].null_count() == 0


def test_the_masked_model_can_be_tuned(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.jsonl", rows(("positive", "negative")))
    done = evenhand.train(
        "regard",
        data,
        backbone="builtin:masked",
        out=tmp_path / "out",
        epochs=3,
        batch=8,
        max_length=12,
        device="cpu",
        learning_rate=3e-4,
    )
    assert done.measures["accuracy"] == 1.0
    assert regards(done.folder, ["xyz was kind poet kind", "xyz was cruel clerk cruel"]) == [
        "positive",
        "negative",
    ]


@pytest.mark.parametrize("build", [gpt2_folder, t5_folder, xlnet_folder])
def test_other_architectures_can_be_tuned(build: Callable[[Path], Path], table: Path, tmp_path: Path) -> None:
    backbone = build(tmp_path / "backbone")
    how = SMALL | {"epochs": 12}
    done = evenhand.train("regard", table, backbone=str(backbone), out=tmp_path / "out", **how)
    assert done.measures["accuracy"] > 0.9
    assert regards(done.folder, ["xyz was kind poet kind"]) == ["positive"]


def test_an_encoder_of_ours_stores_two_labels_as_one(tmp_path: Path) -> None:
    words = {"toxic": "bad", "nontoxic": "good"}
    found = [
        {"text": f"the {words[label]} {'a ' * place}{words[label]} {'xyz ' * more}", "label": label}
        for label in words
        for place in range(5)
        for more in range(5)
    ]
    data = write_rows(tmp_path / "rows.jsonl", found)
    ours = tiny_folder(tmp_path / "ours")
    done = evenhand.train(
        "toxicity", data, backbone=str(ours), out=tmp_path / "out", epochs=12, batch=4, learning_rate=0.02
    )
    assert json.loads((done.folder / "config.json").read_text())["heads"] == [
        {"name": "toxicity", "labels": ["toxic"], "kind": "each"}
    ]
    metric = Toxicity(source=str(done.folder), execution=CPU)
    said = [row["toxicity"].label for row in metric.score([Text("the bad a bad"), Text("the good a good")])]
    assert done.measures["accuracy"] > 0.9
    assert said == ["toxic", "nontoxic"]


def test_an_encoder_of_ours_keeps_two_labels_of_regard_apart(tmp_path: Path) -> None:
    words = {"negative": "bad", "positive": "good"}
    found = [
        {"text": f"the {words[label]} {'a ' * place}{words[label]} {'xyz ' * more}", "label": label}
        for label in words
        for place in range(5)
        for more in range(5)
    ]
    data = write_rows(tmp_path / "rows.jsonl", found)
    ours = tiny_folder(tmp_path / "ours")
    how = {"epochs": 12, "batch": 4, "learning_rate": 0.02, "device": "cpu"}
    done = evenhand.train("regard", data, backbone=str(ours), out=tmp_path / "out", **how)
    assert regards(done.folder, ["the bad a bad", "the good a good"]) == ["negative", "positive"]


def test_ideology_keeps_its_sign(bert: Path, tmp_path: Path) -> None:
    names = {"positive": "right", "negative": "0"}
    found = [row | {"label": names[row["label"]]} for row in rows(("positive", "negative"))]
    data = write_rows(tmp_path / "rows.jsonl", found)
    done = evenhand.train("ideology", data, backbone=str(bert), out=tmp_path / "out", **SMALL)
    metric = Ideology(source=str(done.folder), scope="full", execution=CPU)
    right, left = metric.score([Text("xyz was kind poet kind"), Text("xyz was cruel poet cruel")])
    assert (right["ideology"].label, left["ideology"].label) == ("conservative", "liberal")


def test_the_linear_yardstick_is_stored_and_read_again(table: Path, tmp_path: Path) -> None:
    done = evenhand.train("regard", table, backbone="linear", out=tmp_path / "out")
    assert done.measures["accuracy"] == 1.0
    again = LinearText.load(done.folder)
    assert again.labels == ("negative", "neutral", "positive")
    said = again.probabilities(["xyz was cruel poet", "never seen words"])
    assert said.argmax(1)[0] == 0
    assert np.allclose(said.sum(1), 1)
    assert "not a metric" in done.card


def test_the_test_file_is_used_and_twins_are_counted(table: Path, tmp_path: Path) -> None:
    test = write_rows(
        tmp_path / "test.jsonl",
        [
            {"text": "xyz was kind baker kind", "label": "1"},
            {"text": "quite another thing here", "label": "0"},
        ],
    )
    training = prepare("regard", table, backbone="linear", valid=test)
    assert "note     1 of the 2 held-out texts nearly repeat a training text" in training.plan().lines
    write_rows(test, [{"text": "mixed", "label": "other"}])
    with pytest.raises(InputError) as raised:
        prepare("regard", table, backbone="linear", valid=test)
    assert str(raised.value) == (
        f"{test} has the label 'other', which no training text has. "
        "Expected: positive, negative, neutral. "
        "Fix: add texts of that label to the training data, or leave it out of the test."
    )


def test_a_finished_training_is_not_done_again(table: Path, tmp_path: Path) -> None:
    first = evenhand.train("regard", table, backbone="linear", out=tmp_path / "out")
    (tmp_path / "out" / "model.safetensors").write_bytes(b"untouched")
    again = evenhand.train("regard", table, backbone="linear", out=tmp_path / "out")
    assert (first.was_done, again.was_done) == (False, True)
    assert (again.folder, again.measures) == (first.folder, first.measures)
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == b"untouched"
    with pytest.raises(RunFolderError) as raised:
        evenhand.train("regard", table, backbone="linear", out=tmp_path / "out", seed=1)
    assert str(raised.value) == (
        f"{tmp_path / 'out'} belongs to another training: seed is 0 there. "
        "Expected: the same data and settings, or another folder. "
        "Fix: choose another folder with --out, or start again with --fresh."
    )
    evenhand.train("regard", table, backbone="linear", out=tmp_path / "out", seed=1, fresh=True)
    assert (tmp_path / "out" / "model.safetensors").read_bytes() != b"untouched"


def test_foreign_and_busy_folders_are_refused(tmp_path: Path) -> None:
    with (
        TrainingFolder(tmp_path / "busy", identity={}),
        pytest.raises(RunFolderError, match="another process"),
    ):
        TrainingFolder(tmp_path / "busy", identity={})
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(RunFolderError, match="is not empty and not a training folder"):
        TrainingFolder(tmp_path, identity={}, fresh=True)
    assert (tmp_path / "mine.txt").read_text() == "precious"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"backbone": "linear", "epochs": 3},
            "--epochs does not apply to linear. Fix: remove --epochs.",
        ),
        (
            {"epochs": 0},
            "--epochs 0 is out of range. Expected: 1 or more. Fix: give --epochs a larger number.",
        ),
        (
            {"learning_rate": 2.0},
            "--learning-rate 2 is out of range. "
            "Expected: above 0 and at most 1. Fix: give --learning-rate another number.",
        ),
    ],
)
def test_options_that_cannot_be_meant_are_refused(
    table: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        prepare("regard", table, **options)  # type: ignore[arg-type]
    assert str(raised.value) == message


def test_a_folder_that_is_no_classifier_is_named(table: Path, bert: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match="a pickle, which can run code"):
        evenhand.train("regard", table, backbone=str(bad), out=tmp_path / "out")
    with pytest.raises(EvenhandError, match="there is no training task 'sarcasm'"):
        evenhand.train("sarcasm", table)


def test_norms_become_a_lexicon(tmp_path: Path) -> None:
    from evenhand.metrics.norms import Norms
    from evenhand.text.lexicons import NORMS
    from evenhand.text.word_vectors import save_vectors
    from evenhand.training.norm_prediction import NormNetworkConfig, NormTraining

    rng = np.random.default_rng(0)
    words = [f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(60)]
    matrix = rng.normal(size=(60, 6)).astype(np.float32)
    save_vectors(words, matrix, tmp_path / "v.safetensors")
    ratings = tmp_path / "r.tsv"
    lines = [
        "\t".join([word, *(f"{(low + high) / 2 + np.tanh(row[0]):.2f}" for low, high in NORMS.values())])
        for word, row in zip(words, matrix, strict=True)
    ]
    ratings.write_text("\n".join(["\t".join(["word", *NORMS]), *lines]) + "\n")
    recipe = NormNetworkConfig(
        hidden=(8, 8), steps=150, rows=32, networks=1, folds=2, rate=0.02, hidden_dropout=0.0
    )
    job = NormTraining((ratings,), tmp_path / "v.safetensors", recipe)
    with TrainingFolder(tmp_path / "out", identity=job.identity()) as folder:
        measures = job.run(folder, SilentProgress())
    assert measures["words"] == 60
    assert measures["r_valence"] > 0.5
    assert Norms(source=str(tmp_path / "out" / "lexicon.tsv")).info.name == "norms"
    assert "| valence |" in (tmp_path / "out" / "card.md").read_text()
    ratings.write_text("\n".join(["word\tvalence", *(f"{word}\t5" for word in words)]) + "\n")
    with pytest.raises(
        InputError, match=r"too few rated words have a vector: arousal \(0\), dominance \(0\)"
    ):
        job.run(folder, SilentProgress())


def test_texts_become_word_vectors(tmp_path: Path) -> None:
    from evenhand.metrics.gender_polarity import GenderPolarity
    from evenhand.training.embeddings import WordVectorConfig, WordVectorTraining

    path = tmp_path / "texts.txt"
    path.write_text(
        "\n\n".join(f"Text {n}: she is a queen and he is a king, as a woman and a man." for n in range(40))
    )
    job = WordVectorTraining((path,), WordVectorConfig(words=50, width=8, epochs=1))
    with TrainingFolder(tmp_path / "out", identity=job.identity()) as folder:
        measures = job.run(folder, SilentProgress())
    assert measures["words"] >= 10
    names = {entry.name for entry in (tmp_path / "out").iterdir()}
    assert names == {"vectors.safetensors", "card.md", "training.json"}
    assert GenderPolarity(source=str(tmp_path / "out" / "vectors.safetensors"), debias=False).info.name
