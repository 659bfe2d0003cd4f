"""Emotion with other classifiers behind it: four architectures, a file, a URL, and labels named anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.models.host import Reply, serving
from tests.training import tiny_models

from evenhand.core.errors import EvenhandError
from evenhand.core.records import Text
from evenhand.metrics.emotion import Emotion, label_synonyms
from evenhand.training.backbones import HubBackbone

EMOTIONS = ("anger", "fear", "joy", "sadness")
TEXTS = [
    Text("the nurse was kind ."),
    Text("king"),
    Text("a plain baker in the town . the town ."),
    Text(" "),
]


@pytest.mark.parametrize(
    "made",
    [tiny_models.bert_folder, tiny_models.gpt2_folder, tiny_models.xlnet_folder, tiny_models.t5_folder],
    ids=["bert", "gpt2", "xlnet", "t5"],
)
def test_heads_of_four_architectures_are_read(tmp_path: Path, made: Callable[[Path], Path]) -> None:
    backbone = HubBackbone(made(tmp_path / "base"), tiny_models.fit_for(EMOTIONS))
    backbone.save(tmp_path / "classifier")
    metric = Emotion(source=str(tmp_path / "classifier"))
    rows = metric.score(TEXTS)
    alone = [metric.score([text])[0] for text in TEXTS]
    for row, single in zip(rows[:3], alone, strict=False):
        values = [row[name].value or 0.0 for name in EMOTIONS]
        assert sum(values) == pytest.approx(1, abs=1e-5)  # a softmax over the four
        assert row["emotion"].label == EMOTIONS[int(np.argmax(values))]
        assert values == pytest.approx([single[name].value for name in EMOTIONS], abs=1e-5)
    assert rows[3]["joy"].null_reason == "empty"


def test_a_gpt2_without_a_padding_token_is_read_in_batches(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2ForSequenceClassification

    folder = tiny_models.gpt2_folder(tmp_path / "m")
    config = GPT2Config.from_pretrained(folder)
    config.id2label = dict(enumerate(EMOTIONS))
    config.label2id = {label: number for number, label in enumerate(EMOTIONS)}
    GPT2ForSequenceClassification(config).save_pretrained(folder)
    metric = Emotion(source=str(folder))
    whole, alone = metric.score(TEXTS[:3]), metric.score(TEXTS[1:2])[0]
    assert whole[1]["joy"].value == pytest.approx(alone["joy"].value, abs=1e-5)


def test_labels_of_another_model_are_named_by_the_user(tmp_path: Path) -> None:
    backbone = HubBackbone(
        tiny_models.bert_folder(tmp_path / "base"), tiny_models.fit_for(("l_0", "l_1", "l_2"))
    )
    backbone.save(tmp_path / "m")
    with pytest.raises(EvenhandError) as raised:
        Emotion(source=str(tmp_path / "m"))
    assert str(raised.value).startswith(f"the labels of {tmp_path / 'm'} are l_0, l_1, l_2. Expected: anger:")
    assert str(raised.value).endswith("map its labels (`evenhand probe --label THEIRS=OURS`).")
    metric = Emotion(source=str(tmp_path / "m"), labels="L_0=joy,L_1=anger,L_2=")
    row = metric.score(TEXTS[:1])[0]
    assert set(row) == {"anger", "joy", "emotion"}
    assert (row["anger"].value or 0) + (row["joy"].value or 0) < 1
    assert metric.info.options["labels"] == "L_0=joy,L_1=anger,L_2="


def test_a_label_can_be_given_another_meaning() -> None:
    assert "love" in label_synonyms(None)["joy"]
    moved = label_synonyms('{"love": "sadness", "pride": ""}')
    assert "love" not in moved["joy"]
    assert "pride" not in moved["joy"]
    assert "love" in moved["sadness"]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (
            "L=glee",
            "a label is mapped to 'glee'. Expected: anger, fear, joy, sadness, neutral, or nothing to "
            "leave it "
            "out. Fix: use one of these after the =.",
        ),
        (
            "L",
            "the label 'L' has no mapping. Expected: THEIRS=OURS, such as LABEL_0=anger. "
            "Fix: add = and one of our labels.",
        ),
        (
            '{"L": 1}',
            'the labels are \'{"L": 1}\'. Expected: {"THEIRS": "OURS", ..}. Fix: repair the JSON.',
        ),
    ],
)
def test_labels_that_mean_nothing(labels: str, said: str) -> None:
    with pytest.raises(EvenhandError) as raised:
        label_synonyms(labels)
    assert str(raised.value) == said


def test_predictions_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("text,prediction,score\nking,1,0.75\n", encoding="utf-8")
    known, unknown = Emotion(source=f"replay:{path}").score([Text("king"), Text("queen")])
    assert (known["emotion"].label, known["emotion"].value, known["fear"].value) == ("fear", 0.75, 0.75)
    assert known["anger"].null_reason == "not_in_file"
    assert unknown["emotion"].null_reason == "not_in_file"


def test_a_classifier_behind_a_url() -> None:
    with serving() as host:
        host.answer = lambda asked: Reply(
            body=json.dumps(
                {
                    "labels": ["Happiness", "Love", "Anger"],
                    "scores": [[0.2, 0.3, 0.5]] * len(asked.body["texts"]),  # type: ignore[arg-type]
                }
            ).encode()
        )
        row = Emotion(source=f"endpoint:{host.url}").score([Text("king")])[0]
    # Happiness and love are joy: 0.2 + 0.3
    assert row["joy"].value == pytest.approx(0.5)
    assert row["anger"].value == pytest.approx(0.5)
