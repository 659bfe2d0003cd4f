"""Labels that do not exclude each other: toxic, threat, insult ..."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.classifiers.tiny_classifier import tiny_folder
from tests.training.tiny_models import bert_folder

import evenhand
from evenhand.core.errors import InputError
from evenhand.core.records import Execution, Text
from evenhand.metrics.toxicity import Toxicity
from evenhand.training.labelled_table import read_multilabel
from evenhand.training.options import PRESETS
from evenhand.training.train import prepare

CPU = Execution(device="cpu")
COLUMNS = PRESETS["bold"].labels


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return comments(tmp_path, "cruel", "kind")


def comments(folder: Path, bad: str, good: str) -> Path:
    """Bad texts have every label but threat, which those with a king have too; good ones have none."""
    words = ("baker", "driver", "clerk", "nurse", "poet")
    rows = []
    for word in (bad, good):
        for who in (*words, "king"):
            for place in range(5):
                marks = dict.fromkeys(COLUMNS, 0)
                if word == bad:
                    marks = dict.fromkeys(COLUMNS, 1) | {"threat": int(who == "king")}
                text = f"{word} {who} {'a ' * place}{word} {word}"
                rows.append({"comment_text": text, **marks})
    path = folder / "comments.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("ours", [False, True])
def test_the_preset_on_a_tiny_backbone(table: Path, tmp_path: Path, ours: bool) -> None:
    backbone = tiny_folder(tmp_path / "b") if ours else bert_folder(tmp_path / "b")
    if ours:
        table = comments(tmp_path, "bad", "good")
    done = evenhand.train(
        "toxicity",
        table,
        preset="bold",
        backbone=str(backbone),
        out=tmp_path / "out",
        epochs=15,
        batch=8,
        learning_rate=0.01,
        device="cpu",
    )
    assert done.measures["accuracy"] > 0.9
    assert done.measures["auc_insult"] > 0.9
    metric = Toxicity(source=str(done.folder), execution=CPU)
    kinds = [output.name for output in metric.info.outputs]
    assert kinds == [
        *("toxicity", "p_toxic", "p_severe_toxic", "p_obscene", "p_threat", "p_insult", "p_identity_attack")
    ]
    if ours:
        return
    cruel, kind = metric.score([Text("the cruel clerk was cruel"), Text("the kind clerk was kind")])
    assert (cruel["toxicity"].label, kind["toxicity"].label) == ("toxic", "nontoxic")
    assert cruel["toxicity"].value == max(
        value.value or 0 for name, value in cruel.items() if name != "toxicity"
    )
    # Sigmoids, not shares of one: two labels apply at once.
    assert (cruel["p_toxic"].value or 0) > 0.5
    assert (cruel["p_insult"].value or 0) > 0.5


def test_the_settings_of_the_paper() -> None:
    preset = PRESETS["bold"]
    assert (preset.backbone, preset.longest, preset.recipe.rate) == (
        "bert-large-uncased-whole-word-masking",
        256,
        1e-4,
    )
    assert len(preset.labels) == 6


def test_the_plan_says_what_will_be_done(table: Path, tmp_path: Path) -> None:
    training = prepare("toxicity", table, preset="bold", out=tmp_path / "out")
    assert training.plan().lines == (
        "texts    48 for training, 12 held out; a binary label for each of toxic, severe_toxic, obscene, "
        "threat, insult, identity_attack",
        "backbone bert-large-uncased-whole-word-masking, AdamW, 3 epochs, batch 32, learning rate 0.0001, "
        "at most 256 tokens per text, seed 0: 6 steps",
        f"folder   {tmp_path / 'out'}",
    )


def test_columns_by_name(table: Path, tmp_path: Path) -> None:
    found = prepare("toxicity", table, label="toxic,threat", text="comment_text", out=tmp_path / "out")
    assert "a binary label for each of toxic, threat" in found.plan().lines[0]
    with pytest.raises(InputError, match=r"toxicity has no label 'rude' that can occur with others"):
        prepare("toxicity", table, label="toxic,rude", text="comment_text")
    with pytest.raises(InputError, match=r"has no column 'text' \(--text\)"):
        prepare("toxicity", table, label="toxic,threat")
    with pytest.raises(InputError, match=r"--runs does not apply to several label columns"):
        prepare("toxicity", table, label="toxic,threat", text="comment_text", runs=2)


def test_two_columns_of_one_label_are_one_label(tmp_path: Path) -> None:
    path = tmp_path / "comments.csv"
    marks = [(1, 0), (0, 1), (1, 1), (0, 0)] * 10
    lines = [f"the {'abcd'[place % 4]} {place},{a},{b},0\n" for place, (a, b) in enumerate(marks)]
    path.write_text("text,identity_hate,identity_attack,threat\n" + "".join(lines))
    columns = ("identity_hate", "identity_attack", "threat", "threat")
    examples = read_multilabel(path, "toxicity", columns, valid=path, text="text", seed=0)
    assert examples.labels == ("identity_attack", "threat")
    # A text has the label if one of the two columns says so.
    assert examples.train.truth.tolist() == [[1, 0], [1, 0], [1, 0], [0, 0]] * 10
    assert examples.unseen["dev"].counts(2) == [30, 0]


def test_a_folder_of_the_first_version_resumes(table: Path) -> None:
    job = prepare("toxicity", table, label="toxic,threat", text="comment_text", backbone="lstm", epochs=1)
    # What 0.1.0 wrote: it did not name the vectors of a network that has none.
    keys = {"task", "labels", "data", "valid", "backbone", "max_length"}
    keys |= {"epochs", "batch", "rate", "warmup", "is_constant", "weight_decay", "clip", "patience", "seed"}
    assert set(job.job.identity()) == keys


def test_too_little_to_learn_from(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("text,toxic,threat\n" + "a word,0,0\n" * 30)
    with pytest.raises(InputError, match=r"has 30 usable texts, 0 of them with a label"):
        prepare("toxicity", path, label="toxic,threat")


def test_a_table_of_held_out_texts_without_marks_is_refused(table: Path, tmp_path: Path) -> None:
    valid = tmp_path / "valid.csv"
    valid.write_text("comment_text,toxic,threat\na word,maybe,0\n")
    with pytest.raises(InputError, match=r"valid\.csv has no labelled texts\."):
        prepare("toxicity", table, label="toxic,threat", text="comment_text", valid=valid)
