"""Training emotion as the affective paper did: its data, its settings, four architectures, the ceiling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.training import tiny_models

from evenhand.core.errors import InputError
from evenhand.core.records import Text
from evenhand.metrics.emotion import Emotion
from evenhand.store.table_files import read_table
from evenhand.training.finetuning import learning_rate_factor
from evenhand.training.options import PRESETS
from evenhand.training.semeval import prepare_tables, repair_utf7
from evenhand.training.test_measures import accuracy_ceiling
from evenhand.training.train import prepare, train

EMOTIONS = ("anger", "fear", "joy", "sadness")


def test_presets_are_the_papers() -> None:
    """Section 4.1: rates, batches and backbones; Adam at a constant rate for 100 epochs."""
    found = {
        name: (preset.backbone, preset.recipe.rate, preset.recipe.batch)
        for name, preset in PRESETS.items()
        if preset.task == "emotion"
    }
    assert found == {
        "affective-bert": ("bert-large-uncased", 1e-5, 80),
        "affective-gpt2": ("gpt2-medium", 1e-6, 64),
        "affective-xlnet": ("xlnet-large-cased", 1e-6, 80),
        "affective-t5": ("t5-large", 1e-6, 80),
    }
    for name in found:
        recipe = PRESETS[name].recipe
        assert (recipe.epochs, recipe.weight_decay, recipe.is_constant, recipe.patience) == (
            100,
            0.0,
            True,
            None,
        )


def test_a_constant_rate_stays() -> None:
    assert [learning_rate_factor(step, 10, 0.0, is_constant=True) for step in (0, 1, 5, 9)] == [
        1.0,
        1.0,
        1.0,
        1.0,
    ]
    assert [round(learning_rate_factor(step, 10, 0.0), 3) for step in (0, 1, 9)] == [1.0, 1.0, 0.111]


@pytest.mark.parametrize(
    ("preset", "made"),
    [
        ("affective-bert", tiny_models.bert_folder),
        ("affective-gpt2", tiny_models.gpt2_folder),
        ("affective-xlnet", tiny_models.xlnet_folder),
        ("affective-t5", tiny_models.t5_folder),
    ],
)
def test_four_architectures_learn_a_softmax_over_four_emotions(
    tmp_path: Path, preset: str, made: Callable[[Path], Path]
) -> None:
    words = dict(zip(EMOTIONS, ("kind", "cruel", "plain", "king"), strict=True))

    def rows(*jobs: str) -> list[dict[str, str]]:
        return [
            {"text": f"xyz was {word} {job} {word} {'in the town . ' * place}".strip(), "label": emotion}
            for job in jobs
            for place in range(4)
            for emotion, word in words.items()
        ]

    done = train(
        "emotion",
        tiny_models.write_rows(tmp_path / "data.jsonl", rows("baker", "driver", "clerk", "nurse")),
        valid=tiny_models.write_rows(tmp_path / "valid.jsonl", rows("poet")),
        preset=preset,
        backbone=str(made(tmp_path / "base")),
        epochs=60,
        batch=16,
        learning_rate=0.005,
        out=tmp_path / "out",
    )
    assert done.measures["accuracy"] > 0.5  # chance is 0.25
    assert "learning rate 0.005 kept" in done.card
    row = Emotion(source=str(tmp_path / "out")).score([Text("xyz was kind baker kind")])[0]
    assert sum(row[name].value or 0 for name in EMOTIONS) == pytest.approx(1, abs=1e-5)


def test_the_ceiling_stands_beside_the_score(tmp_path: Path) -> None:
    rows = [{"text": f"the {word} {n}", "label": word} for word in ("joy", "fear") for n in range(20)]
    data = tiny_models.write_rows(tmp_path / "data.jsonl", rows)
    # Four texts, one of them under both labels: 3 of 4 rows can be right, and with it 4 of 5.
    held = [{"text": "a", "label": "joy"}, {"text": "a", "label": "fear"}]
    held += [{"text": "b", "label": "joy"}, {"text": "c", "label": "fear"}, {"text": "d", "label": "joy"}]
    valid = tiny_models.write_rows(tmp_path / "valid.jsonl", held)
    done = train("emotion", data, valid=valid, backbone="linear", out=tmp_path / "out")
    assert done.measures["ceiling"] == pytest.approx(4 / 5)
    assert "no classifier with one answer per text can be correct on more than 0.800 of them" in done.card


def test_ceiling_by_hand() -> None:
    assert accuracy_ceiling(["a", "b"], ["joy", "fear"]) == 1.0
    assert accuracy_ceiling([], []) == 1.0
    assert accuracy_ceiling(["a", "a", "a", "b"], ["joy", "joy", "fear", "fear"]) == 0.75


def test_utf7_residue_is_repaired() -> None:
    assert repair_utf7("+AEA-me so +ACM-glad+ACE- 1+1-2") == "@me so #glad! 1+1-2"


def test_table_5_and_its_ceilings(data: Path) -> None:
    """8,566 tweets to learn from and 1,464 to validate on, by emotion as printed; ceilings of GOLDENS.md."""
    found = prepare_tables(data)
    train_table, valid_table = read_table(found.train), read_table(found.valid)
    assert Counter(train_table["label"]) == {"anger": 2089, "fear": 2641, "joy": 1906, "sadness": 1930}
    assert Counter(valid_table["label"]) == {"anger": 388, "fear": 389, "joy": 290, "sadness": 397}
    assert round(accuracy_ceiling(valid_table["text"].to_list(), valid_table["label"].to_list()), 3) == 0.902
    dev = read_table(data / "affective" / "semeval_val.csv")
    assert round(accuracy_ceiling(dev["Tweet"].to_list(), dev["label"].to_list()), 3) == 0.610
    assert not set(valid_table["text"]) & set(train_table["text"])


def test_dev_is_never_validated_on_when_it_is_learned_from(data: Path) -> None:
    prepared = prepare("emotion", data, backbone="linear")
    assert prepared.plan().lines[0].startswith("texts    8,566 for training, 1,464 held out")
    dev = data / "affective" / "semeval_val.csv"
    with pytest.raises(InputError) as raised:
        prepare("emotion", data, backbone="linear", valid=dev)
    assert str(raised.value) == (
        f"1022 of the 1464 texts of {dev} are training texts. Expected: unseen texts: "
        "semeval_test.csv. Fix: remove --valid."
    )


def test_a_folder_without_the_files_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        prepare("emotion", tmp_path)
    assert str(raised.value) == (
        f"{tmp_path} has 0 of the 8 EI-oc train and dev files and no semeval_test.csv. Expected: EI-oc "
        f"files of "
        "anger, fear, joy, sadness, train and dev, and semeval_test.csv. Fix: name a folder that "
        "contains them, or one table with the columns text and label."
    )
