"""Our own classifier: read from a folder, asked by several metrics, computed once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.classifiers.tiny_classifier import tiny_folder

from evenhand.classifiers import text_classifier as module
from evenhand.classifiers import wordpiece_tokenizer
from evenhand.classifiers.text_classifier import HeadReader, TextClassifier, open_classifier, read_format
from evenhand.core.errors import ModelError
from evenhand.core.records import Execution

CPU = torch.device("cpu")
TEXTS = ["a good day", "bad", "xyz was a good . the bad was good", "", "good"]


def test_answers_do_not_depend_on_neighbours_or_memory(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path)
    together = TextClassifier(folder, device=CPU).probabilities(TEXTS)
    fresh = TextClassifier(folder, device=CPU, rows=1)
    alone = np.concatenate([fresh.probabilities([text]) for text in TEXTS])
    assert np.allclose(together, alone, atol=1e-6)
    assert np.array_equal(fresh.probabilities(TEXTS[::-1]), alone[::-1])


def test_a_text_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = TextClassifier(tiny_folder(tmp_path), device=CPU)
    asked: list[str] = []
    compute = found._compute

    def counting(texts: Sequence[str]) -> module.Probabilities:
        asked.extend(texts)
        return compute(texts)

    monkeypatch.setattr(found, "_compute", counting)
    regard, ideology = HeadReader(found, "regard"), HeadReader(found, "ideology")
    assert regard.read(["good", "bad", "good"]).shape == (3, 4)
    assert ideology.read(["bad", "good", "the"]).shape == (3, 1)
    assert asked == ["good", "bad", "the"]


@pytest.mark.parametrize("room", [1, 2, 3])
def test_a_batch_that_memory_refuses_is_read_in_parts(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = TextClassifier(tiny_folder(tmp_path), device=CPU)
    wanted, vectors = found.probabilities(TEXTS), found.pooled_vectors(TEXTS, "regard")
    found._memo.clear()
    refused: list[int] = []
    encode = found._packed_encoder
    assert encode is not None

    def small(rows: Sequence[Sequence[int]]) -> Iterator[torch.Tensor]:
        if len(rows) > room:
            refused.append(len(rows))
            raise torch.OutOfMemoryError("no memory")
        return encode(rows)

    monkeypatch.setattr(found, "_packed_encoder", small)
    assert np.allclose(found.probabilities(TEXTS), wanted, atol=1e-6)
    assert np.allclose(found.pooled_vectors(TEXTS, "regard"), vectors, atol=1e-6)
    # Five texts at once, then two and three: what fits is not tried smaller.
    assert refused[0] == 5
    assert min(refused) > room


def test_a_gpu_reads_more_texts_at_once(tmp_path: Path) -> None:
    assert module._GPU_ROWS > module._ROWS
    assert TextClassifier(tiny_folder(tmp_path), device=CPU, rows=7)._rows == 7


def test_texts_read_part_by_part_have_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = TextClassifier(tiny_folder(tmp_path), device=CPU)
    wanted, vectors = found.probabilities(TEXTS), found.pooled_vectors(TEXTS, "regard")
    found._memo.clear()
    monkeypatch.setattr(module, "_AHEAD", 1)
    monkeypatch.setattr(found, "_device", torch.device("cuda"))
    assert np.allclose(found.probabilities(TEXTS), wanted, atol=1e-6)
    assert np.allclose(found.pooled_vectors(TEXTS, "regard"), vectors, atol=1e-6)


def test_padded_texts_have_the_answers_of_packed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = TextClassifier(tiny_folder(tmp_path), device=CPU)
    monkeypatch.setattr(module, "_pack_encoder", lambda encoder: None)
    padded = TextClassifier(tmp_path, device=CPU)
    assert np.allclose(padded.probabilities(TEXTS), packed.probabilities(TEXTS), atol=1e-6)
    assert np.allclose(
        padded.pooled_vectors(TEXTS, "regard"), packed.pooled_vectors(TEXTS, "regard"), atol=1e-6
    )


def test_a_gpu_is_given_texts_of_like_length_in_growing_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = TextClassifier(tiny_folder(tmp_path), device=CPU)
    assert [list(places) for places, _ in found._encode(TEXTS)] == [[0, 1, 2, 3, 4]]
    monkeypatch.setattr(module, "_AHEAD", 1)
    monkeypatch.setattr(module, "_AHEAD_AT_MOST", 3)
    # Of 10, 3, 33, 0 and 4 characters the longest first: one, two, and what is left.
    assert [list(part) for part in module._parts(TEXTS)] == [[2], [0, 4], [1, 3]]
    # Doubled from 1 to 2, then 3 at most; of 10 texts one is left.
    assert [len(part) for part in module._parts(["a"] * 10)] == [1, 2, 3, 3, 1]
    monkeypatch.setattr(found, "_device", torch.device("cuda"))
    parts = list(found._encode(TEXTS))
    assert [list(places) for places, _ in parts] == [[2], [0, 4], [1, 3]]
    expected = wordpiece_tokenizer.encode_texts(found._tokenizer, TEXTS, longest=found._longest)
    assert {place: row for places, rows in parts for place, row in zip(places, rows, strict=True)} == dict(
        enumerate(expected)
    )


def test_the_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHE_SIZE", 2)
    found = TextClassifier(tiny_folder(tmp_path), device=CPU)
    assert len(found.probabilities(TEXTS)) == 5
    assert len(found._memo) == 2


def test_no_texts_give_no_rows(tmp_path: Path) -> None:
    assert TextClassifier(tiny_folder(tmp_path), device=CPU).probabilities([]).shape == (0, 16)


def test_calibration_is_applied_before_the_softmax(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["scale"] = [0.0] * 16
    config["shift"] = [0.0] * 15 + [np.log(3.0)]
    (folder / "config.json").write_text(json.dumps(config))
    row = TextClassifier(folder, device=CPU).probabilities(["good"])[0]
    # Without logits four labels share alike, a sigmoid of 0 is a half, and one of ln 3 is 3 / (1 + 3).
    assert row[:4].tolist() == [0.25] * 4
    assert row[4] == 0.5
    assert row[-1] == pytest.approx(0.75)


def test_the_same_folder_is_opened_once_and_changes_with_its_files(tmp_path: Path) -> None:
    one = tiny_folder(tmp_path / "one", seed=0)
    other = tiny_folder(tmp_path / "other", seed=1)
    assert open_classifier(one, Execution()) is open_classifier(one, Execution())
    assert open_classifier(one, Execution()).digest != open_classifier(other, Execution()).digest
    assert read_format(one) == "evenhand-classifier"
    assert read_format(tmp_path) is None


def test_an_unknown_head_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as raised:
        HeadReader(TextClassifier(tiny_folder(tmp_path), device=CPU), "irony")
    assert str(raised.value) == (
        "the classifier has no head named 'irony'. Expected: regard, toxicity, emotion, intensity, ideology. "
        "Fix: train one with `evenhand train`, or name another source."
    )
