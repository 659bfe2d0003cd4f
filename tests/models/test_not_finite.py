"""Weights that are no numbers are refused by every loader; logits that overflow later are not drawn from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.classifiers.test_hub_classifier import SYNONYMS
from tests.classifiers.test_hub_classifier import saved as save_classifier
from tests.classifiers.tiny_classifier import tiny_folder
from tests.models import tiny, tiny_masked

from evenhand.classifiers.hub_classifier import HubClassifier, vote_shares
from evenhand.classifiers.text_classifier import open_classifier
from evenhand.core.errors import ModelError
from evenhand.core.records import Execution, GenerationSpec, Request
from evenhand.models.hub import load

CPU = Execution(device="cpu", offline=True)
GREEDY = GenerationSpec(max_new_tokens=4, temperature=0, stop="none")
BAD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
FOLDERS: dict[str, Callable[[Path], Path]] = {
    "gpt2": lambda folder: tiny.save(tiny.gpt2(), folder),
    "llama": lambda folder: tiny.save(tiny.llama(), folder),
    "ctrl": tiny.save_ctrl,
    **{
        name: lambda folder, name=name: tiny_masked.save(name, folder)  # type: ignore[misc]
        for name in tiny_masked.MODELS
    },
}


def spoil(folder: Path, value: float, *, dtype: torch.dtype | None = None, name: str = "") -> None:
    """Put one bad number into the last matrix of the last file of weights, or into the tensor of a name."""
    path = sorted(folder.glob("*.safetensors"))[-1]
    tensors = load_file(path)
    chosen = name or [key for key, tensor in tensors.items() if tensor.is_floating_point()][-1]
    spoilt = tensors[chosen].to(dtype or tensors[chosen].dtype).clone()
    spoilt.view(-1)[-1] = value
    save_file({**tensors, chosen: spoilt}, path, metadata={"format": "pt"})


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
@pytest.mark.parametrize("name", FOLDERS)
def test_one_bad_weight_is_refused(name: str, value: float, tmp_path: Path) -> None:
    folder = FOLDERS[name](tmp_path / "model")
    spoil(folder, value)
    with pytest.raises(
        ModelError, match=r"^the weights of .* are not finite: '[\w.]+' holds NaN or infinity\."
    ):
        load(str(folder), execution=CPU)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_bad_weight_in_another_precision_is_refused(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    folder = FOLDERS[name](tmp_path / "model")
    # Beyond float32, in which it would be computed with.
    spoil(folder, 1e300 if dtype == torch.float64 else math.nan, dtype=dtype)
    with pytest.raises(ModelError, match="are not finite"):
        load(str(folder), execution=CPU)


def test_a_bad_weight_in_a_shard_is_refused(tmp_path: Path) -> None:
    tiny.gpt2().save_pretrained(tmp_path, max_shard_size="20KB")
    tiny.tokenizer().save_pretrained(tmp_path)
    spoil(tmp_path, math.nan)
    with pytest.raises(ModelError, match="are not finite"):
        load(str(tmp_path), execution=CPU)


def test_a_bad_weight_of_a_gguf_file_is_refused(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    model = tiny.llama()
    model.model.norm.weight.data[3] = math.inf
    path = tiny.save_gguf(gguf, model, tmp_path / "tiny.gguf")
    with pytest.raises(ModelError, match="are not finite"):
        load(str(path), execution=CPU)


def test_a_bad_weight_of_a_classifier_is_refused(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "hub", ["left", "right"])
    # A word that the text tried at loading does not hold.
    spoil(folder, math.nan, name="bert.embeddings.word_embeddings.weight")
    with pytest.raises(ModelError, match="are not finite"):
        HubClassifier(str(folder), SYNONYMS, CPU)


@pytest.mark.parametrize("end", [".scale", ".bias"])
def test_a_bad_scale_of_a_classifier_of_ours_is_refused(end: str, tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "ours")
    names = [name for name in load_file(folder / "model.safetensors") if name.endswith(end)]
    spoil(folder, math.nan, name=names[0])
    with pytest.raises(ModelError, match="are not finite"):
        open_classifier(folder, CPU)


def test_a_member_without_a_number_takes_the_answer_with_it() -> None:
    said = [np.array([[0.2, 0.8], [0.2, 0.8]]), np.array([[np.nan, 0.5], [0.1, 0.9]])]
    assert np.isnan(vote_shares(said)).all(axis=1).tolist() == [True, False]


@pytest.mark.parametrize(
    "change",
    [{}, {"temperature": 1.0}, {"temperature": 1.0, "top_k": 5}, {"temperature": 1.0, "top_p": 0.9}],
    ids=["greedy", "all", "top_k", "top_p"],
)
def test_logits_that_overflow_give_a_failure_and_no_text(change: dict[str, float], tmp_path: Path) -> None:
    model = tiny.gpt2()
    # Finite numbers whose sum is not; they are read by rows that reach this position.
    model.transformer.wpe.weight.data[2] = 3e38
    loaded = load(str(tiny.save(model, tmp_path / "model")), execution=CPU)
    requests = [Request("long", "a doctor who sang", (0,)), Request("short", "T", (0,))]
    answers = {answer.request_id: answer for answer in loaded.generate(requests, replace(GREEDY, **change))}
    for answer in answers.values():
        assert (answer.text, answer.finish, answer.failure) == (None, None, "not_finite")
    assert answers["long"].new_tokens == 0
    assert answers["short"].new_tokens == 2


def test_a_masked_model_that_overflows_gives_a_failure_and_no_text(tmp_path: Path) -> None:
    model = tiny_masked.bert()
    model.cls.predictions.transform.LayerNorm.weight.data[:] = 3e38
    model.save_pretrained(tmp_path)
    tiny_masked.wordpiece().save_pretrained(tmp_path)
    loaded = load(str(tmp_path), execution=CPU)
    for temperature in (0.0, 1.0):
        spec = replace(GREEDY, temperature=temperature, iterations=6, burn_in=3)
        answers = list(loaded.generate([Request("x", "The man", (0, 1))], spec))
        assert [(answer.text, answer.failure) for answer in answers] == [(None, "not_finite")] * 2


def test_a_model_of_transformers_that_overflows_at_once_is_refused(tmp_path: Path) -> None:
    model = tiny.llama()
    model.lm_head.weight.data[:] = 3e38
    folder = tiny.save(model, tmp_path / "model")
    with pytest.raises(
        ModelError, match=r"^the logits of the model .* overflow: they contain NaN or infinity"
    ):
        load(str(folder), execution=CPU)
