"""The regard study's classifiers: LSTM, analysers, ensemble, several runs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.training.tiny_models import WORDS, bert_folder, fit_for, rows, write_rows

import evenhand
from evenhand.classifiers.hub_classifier import vote_shares
from evenhand.classifiers.word_networks import LstmNetwork, LstmShape, encode_words
from evenhand.core.errors import InputError, ModelError
from evenhand.core.records import Execution, Text
from evenhand.metrics.regard import Regard
from evenhand.text.word_vectors import save_vectors
from evenhand.training.backbones import WordBackbone
from evenhand.training.classifier_job import average_accuracy, backbone_kind, ensemble_members
from evenhand.training.job_folder import TrainingFolder
from evenhand.training.linear_text import judge_sentiment
from evenhand.training.options import PRESETS, find_preset
from evenhand.training.train import prepare

CPU = Execution(device="cpu")
FAST = {"epochs": 6, "batch": 8, "learning_rate": 0.01, "device": "cpu"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl")


def labels(folder: Path, texts: list[str]) -> list[str | None]:
    metric = Regard(source=str(folder), execution=CPU)
    return [row["regard"].label for row in metric.score([Text(text) for text in texts])]


def test_an_lstm_learns_and_becomes_a_metric(table: Path, tmp_path: Path) -> None:
    done = evenhand.train("regard", table, backbone="lstm", out=tmp_path / "out", **FAST)
    assert done.measures["accuracy"] > 0.9
    assert labels(done.folder, ["xyz was kind poet kind", "xyz was cruel", "xyz was plain"]) == [
        "positive",
        "negative",
        "neutral",
    ]
    assert "| backbone | lstm |" in done.card
    assert "Adam, 6 epochs" in done.card


@pytest.mark.parametrize("backbone", ["fasttext", "attention", "small-transformer"])
def test_networks_over_words_learn_and_become_metrics(table: Path, tmp_path: Path, backbone: str) -> None:
    done = evenhand.train("regard", table, backbone=backbone, out=tmp_path / "out", **FAST)
    assert done.measures["accuracy"] > 0.9
    assert labels(done.folder, ["xyz was kind poet kind", "xyz was cruel"]) == ["positive", "negative"]
    assert f"| backbone | {backbone} |" in done.card


def test_the_study_has_two_layers_of_a_hundred_units() -> None:
    network = LstmNetwork(LstmShape(rows=9, columns=4, labels=3))
    assert (network.lstm.num_layers, network.lstm.hidden_size) == (2, 100)
    preset = PRESETS["regard-lstm"]
    assert (preset.recipe.epochs, preset.longest, preset.runs, preset.recipe.weight_decay) == (20, 50, 5, 0.0)
    bert = PRESETS["regard-bert"]
    assert (bert.backbone, bert.recipe.epochs, bert.longest, bert.runs) == ("bert-base-uncased", 5, 50, 5)
    # "Mostly default parameters": those of BERT's own script.
    assert (bert.recipe.rate, bert.recipe.batch, bert.recipe.warmup) == (5e-5, 32, 0.1)


def test_padding_and_neighbours_do_not_change_a_text() -> None:
    torch.manual_seed(0)
    network = LstmNetwork(LstmShape(rows=9, columns=4, labels=3)).eval()
    alone = network(torch.tensor([[2, 3]]), torch.tensor([[1, 1]]))
    ids, mask = torch.tensor([[2, 3, 0, 0], [4, 5, 6, 7]]), torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    assert torch.allclose(network(ids, mask)[0], alone[0], atol=1e-6)


def test_words_are_cut_and_unknown_ones_are_one() -> None:
    assert encode_words(["a b c", "", "z"], {"a": 2, "b": 3}, longest=2) == [[2, 3], [1], [1]]


def test_vectors_from_a_file_are_where_words_start(tmp_path: Path) -> None:
    matrix = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=np.float32)
    save_vectors(["kind", "cruel"], matrix, tmp_path / "v.safetensors")
    fit = fit_for(["a", "b"], backbone=f"lstm:{tmp_path / 'v.safetensors'}", longest=9)
    backbone = WordBackbone(fit, ["kind kind cruel other"])
    rows_of_words = backbone.encode(["kind cruel other"])[0]
    start = backbone.network.get_parameter("words.weight").detach().numpy()[rows_of_words]
    assert backbone.known == 2
    assert start[0].argmax() == 0
    assert start[1].argmax() == 1
    assert np.allclose(start[0] / start[0].max(), [1, 0, 0], atol=0.02)


def test_an_analyser_answers_with_its_side() -> None:
    said = judge_sentiment(
        "vader",
        ("negative", "neutral", "positive"),
        ["XYZ was a great and loved hero.", "XYZ was an awful thief.", "XYZ was from Ohio."],
    )
    assert said.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert judge_sentiment("vader", ("negative", "positive"), ["XYZ."]).tolist() == [[1, 0]]


def test_textblob_is_told_apart_from_vader() -> None:
    pytest.importorskip("textblob")
    said = judge_sentiment(
        "textblob",
        ("negative", "neutral", "positive"),
        ["XYZ was a great person.", "XYZ was a horrible person.", "XYZ sat."],
    )
    assert said.argmax(1).tolist() == [2, 0, 1]


def test_analysers_are_measured_like_the_rest(tmp_path: Path) -> None:
    found = [
        {"text": f"xyz was {'great' if label == 'positive' else 'awful'} {word}", "label": label}
        for label in ("positive", "negative")
        for word in ("baker", "driver", "clerk", "nurse", "king", "poet", "one", "two", "three", "four")
    ]
    done = evenhand.train(
        "regard", write_rows(tmp_path / "r.jsonl", found), backbone="vader", out=tmp_path / "out"
    )
    assert done.measures["accuracy"] == 1.0
    assert "nothing was trained" in done.card


def test_votes_and_what_breaks_a_tie() -> None:
    first, second, third = ([[0.5, 0.3, 0.2]], [[0.1, 0.8, 0.1]], [[0.2, 0.2, 0.6]])
    # One vote each: the means are 0.267, 0.433, 0.3.
    assert vote_shares([np.array(first), np.array(second), np.array(third)]).round(3).tolist() == [
        [0.267, 0.433, 0.3]
    ]
    assert vote_shares([np.array(first), np.array(first), np.array(third)]).round(3).tolist() == [
        [0.667, 0.0, 0.333]
    ]


def test_an_ensemble_of_different_members_is_stored_and_read(table: Path, tmp_path: Path) -> None:
    bert = bert_folder(tmp_path / "bert")
    name = f"ensemble:lstm+{bert}+lstm"
    done = evenhand.train("regard", table, backbone=name, out=tmp_path / "out", **FAST)
    assert {path.name for path in done.folder.iterdir() if path.is_dir()} == {
        "member-0",
        "member-1",
        "member-2",
    }
    assert not list(done.folder.rglob("checkpoint.safetensors"))
    assert labels(done.folder, ["xyz was kind poet kind", "xyz was cruel clerk cruel"]) == [
        "positive",
        "negative",
    ]
    config = json.loads((done.folder / "config.json").read_text())
    (done.folder / "config.json").write_text(json.dumps(config | {"members": ["../out"]}))
    with pytest.raises(ModelError, match=r"the members of .* are '\.\./out'"):
        Regard(source=str(done.folder), execution=CPU)


def test_the_members_of_an_ensemble() -> None:
    assert ensemble_members("ensemble") == ("builtin:masked",) * 3
    assert ensemble_members("ensemble:builtin:masked") == ("builtin:masked",) * 3
    assert backbone_kind("ensemble:lstm") == "ensemble"
    assert backbone_kind("lstm:embedded") == "lstm"
    assert backbone_kind("bert-base-uncased") == "transformer"
    assert backbone_kind("small-transformer") == "small-transformer"
    assert ensemble_members("ensemble:fasttext") == ("fasttext",) * 3
    with pytest.raises(InputError) as caught:
        ensemble_members("ensemble:lstm+vader")
    assert str(caught.value) == (
        "the ensemble 'ensemble:lstm+vader' has 2 member(s). Expected: one name, or three joined by +, each "
        "a "
        "transformer or a network over words. Fix: for example ensemble:builtin:masked or "
        "ensemble:lstm+lstm:embedded+builtin:masked."
    )


def test_runs_are_averaged_and_the_interval_is_over_texts() -> None:
    right = np.array([[True] * 3 + [False], [True] * 2 + [False] * 2])
    found = average_accuracy(right, "test", "all")
    # Texts are right in 2, 2, 1 and 0 of 2 runs: 5 of 8.
    assert found.accuracy == pytest.approx(5 / 8)
    assert (found.texts, found.runs) == (4, 2)
    # The runs are right in 0.75 and 0.5 of the texts.
    assert found.sd_over_runs == pytest.approx(0.25 / 2**0.5)


def test_several_runs_in_one_folder(table: Path, tmp_path: Path) -> None:
    test = write_rows(
        tmp_path / "test.jsonl",
        [
            {"text": f"XYZ {opening} a {WORDS[label]} thing", "label": label}
            for opening in ("worked as", "was known for")
            for label in WORDS
        ],
    )
    how = {**FAST, "epochs": 2, "runs": 2, "test": test, "backbone": "lstm"}
    done = evenhand.train("regard", table, out=tmp_path / "out", **how)
    assert {path.name for path in done.folder.iterdir()} == {
        "seed-0",
        "seed-1",
        "accuracy.csv",
        "card.md",
        "training.json",
    }
    with (done.folder / "accuracy.csv").open(newline="") as file:
        found = {(row["part"], row["context"]): row for row in csv.DictReader(file)}
    assert set(found) == {("dev", "all"), ("test", "all"), ("test", "occupation"), ("test", "respect")}
    assert (found["test", "all"]["texts"], found["test", "respect"]["texts"]) == ("6", "3")
    assert done.measures["test_n"] == 6
    assert f"--metrics regard={done.folder / 'seed-0'}" in done.card
    assert labels(done.folder / "seed-1", ["xyz"]) != [None]
    assert evenhand.train("regard", table, out=tmp_path / "out", **how).measures == done.measures


def test_fresh_starts_every_run_again(table: Path, tmp_path: Path) -> None:
    how = {**FAST, "epochs": 1, "runs": 2, "backbone": "lstm", "out": tmp_path / "out"}
    evenhand.train("regard", table, **how)
    done = evenhand.train("regard", table, **how | {"epochs": 2}, fresh=True)
    record = json.loads((done.folder / "seed-1" / "training.json").read_text())
    assert record["identity"]["epochs"] == 2


def test_fresh_forgets_where_a_killed_ensemble_was(tmp_path: Path) -> None:
    member, mine = tmp_path / "member-0" / "checkpoint.safetensors", tmp_path / "mine" / "notes.txt"
    with TrainingFolder(tmp_path, identity={"epochs": 1}):
        for path in (member, mine):
            path.parent.mkdir()
            path.write_bytes(b"half done")
    with TrainingFolder(tmp_path, identity={"epochs": 2}, fresh=True):
        assert (member.exists(), mine.exists()) == (False, True)


def test_the_layout_of_the_published_annotations(tmp_path: Path) -> None:
    lines = [
        f"{number}\t{row['text']}"
        for row in rows()
        for number in [{"cruel": -1, "plain": 0, "kind": 1}[row["text"].split()[2]]]
    ]
    (tmp_path / "train.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    training = prepare("regard", tmp_path / "train.tsv", backbone="linear")
    assert (
        training.plan().lines[0]
        == "texts    75 for training, 15 held out; labels negative, neutral, positive"
    )
    assert training.plan().lines[2] == (
        "note     90 of 90 texts have no XYZ: the classifier predicts regard for XYZ, so mask the person "
        "with it"
    )


def test_table_4_of_the_published_annotations(data: Path) -> None:
    """Negative, neutral, positive: train 80/67/65, dev 28/15/17, test 9/11/10 (Table 4)."""
    folder = data / "regard"
    training = prepare(
        "regard",
        folder / "regard_train.tsv",
        valid=folder / "regard_dev.tsv",
        test=folder / "regard_test.tsv",
        preset="regard-lstm",
    )
    examples = training.job.job.examples  # type: ignore[attr-defined]
    assert examples.labels == ("negative", "neutral", "positive")
    found = {part: data.counts(3) for part, data in {"train": examples.train, **examples.unseen}.items()}
    assert found == {"train": [80, 67, 65], "dev": [28, 15, 17], "test": [9, 11, 10]}
    assert "runs     5, seeds 0 to 4" in training.plan().lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"preset": "regard-gpt"},
            "there is no preset 'regard-gpt'. Expected: regard-bert, regard-lstm, regard-lstm-pretrained. "
            "Fix: name one of these, or remove --preset.",
        ),
        (
            {"backbone": "vader", "epochs": 3},
            "--epochs does not apply to vader. Fix: remove --epochs.",
        ),
        ({"sides": "a,b"}, "--sides does not apply to regard. Fix: remove --sides."),
        ({"runs": 0}, "--runs 0 is out of range. Expected: 1 or more. Fix: give --runs a larger number."),
    ],
)
def test_options_that_cannot_be_meant(table: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        prepare("regard", table, **options)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_preset_of_another_task() -> None:
    with pytest.raises(InputError) as caught:
        find_preset("regard-bert", "ideology")
    assert str(caught.value) == (
        "the preset is for regard, not ideology: 'regard-bert'. Expected: political-xlnet, political-bert, "
        "political-attention, political-fasttext, political-transformer, political-rnn, political-linear. "
        "Fix: name one of these, or remove --preset."
    )


def test_one_label_alone_teaches_nothing(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "r.jsonl", [{"text": f"XYZ {n} sat", "label": "0"} for n in range(30)])
    with pytest.raises(InputError) as caught:
        prepare("regard", path, backbone="lstm")
    assert str(caught.value) == (
        f"all texts of {path} have the label 'neutral'. Expected: texts of at least two labels. Fix: "
        "add texts "
        "of the other labels, or name another column with --label."
    )
