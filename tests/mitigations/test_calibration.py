"""The mitigation as a whole: what it is made of, what it refuses, what it does to a model's identity."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.protocols import Mitigation
from evenhand.core.records import GenerationSpec, Request
from evenhand.mitigations.calibration import Calibration
from evenhand.mitigations.calibrator import Calibrator, read_calibrator, save_calibrator
from evenhand.models.local import CausalModel
from evenhand.testing.stub import StubModel

SPEC = GenerationSpec(max_new_tokens=6, stop="none")


@pytest.fixture
def words(tmp_path: Path) -> str:
    path = tmp_path / "words.json"
    path.write_text(json.dumps({"one": ["man", "doctor"], "two": ["woman", "work"]}))
    return str(path)


def saved(folder: Path, *, width: int = 32, revision: str = "r1") -> str:
    head = Calibrator(
        torch.eye(width), torch.zeros(width), torch.ones(width), torch.zeros(()), ("a", "b"), "tiny", revision
    )
    save_calibrator(head, folder / "calibrator.safetensors")
    return str(folder)


def test_it_is_registered_and_modes_are_variants(words: str) -> None:
    found = registry.create_mitigation("calibration:embedding", {"words": words, "strength": 0.3})
    assert isinstance(found, Mitigation)
    assert found.info.options["mode"] == "embedding"
    assert found.info.options["strength"] == "0.3"
    assert found.info.requires == "SteerableModel"


def test_the_model_says_what_steers_it(small: CausalModel, words: str, tmp_path: Path) -> None:
    steered = Calibration(words=words).apply(small)
    options = steered.ref.options
    assert options["mitigation"] == "calibration:embedding"
    assert options["mitigation.sigma"] == "0.02"
    # "woman" and "work" are words of the tokenizer's texts; what is several tokens is counted.
    assert int(options["mitigation.split_words"]) >= 0
    assert len(options["mitigation.words"]) == 32
    headed = Calibration(mode="classifier", calibrator=saved(tmp_path)).apply(small)
    assert headed.ref.options["mitigation.sigma"] == "0.05"
    assert headed.ref.options["mitigation.calibrator"] == read_calibrator(tmp_path).digest
    assert steered.ref.identity() != headed.ref.identity() != small.ref.identity()


def test_another_strength_is_another_model(small: CausalModel, words: str) -> None:
    first = Calibration(words=words)
    second = Calibration(words=words, strength=0.1)
    assert second.info.options == {**first.info.options, "strength": "0.1"}
    assert first.settings.strength == 0.6
    off = Calibration(words=words, strength=0.0).apply(small)
    requests = [Request("x", "The man", (0, 1))]
    plain, same = ([c.text for c in one.generate(requests, SPEC)] for one in (small, off))
    assert plain == same


def test_a_prompt_longer_than_the_context_fails_as_it_does_without(small: CausalModel, words: str) -> None:
    steered = Calibration(words=words).apply(small)
    found = next(iter(steered.generate([Request("x", "doctor " * 80, (0,))], SPEC)))
    assert found.failure == "prompt_too_long"


def message(error: pytest.ExceptionInfo[InputError]) -> str:
    return str(error.value)


def test_a_model_behind_a_network_cannot_be_steered(words: str) -> None:
    with pytest.raises(InputError) as caught:
        Calibration(words=words).apply(StubModel())
    assert message(caught) == (
        "the model 'stub' cannot be steered: its hidden states are not on this machine. "
        "Expected: builtin, a folder, a Hub id or a .gguf file of a causal model. "
        "Fix: use the mitigation replacement, which works on any model's text."
    )


def test_the_classifier_mode_needs_its_head_and_the_other_has_none(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        Calibration(mode="classifier")
    assert message(caught) == (
        "the mode classifier needs a calibrator. "
        "Expected: the output folder of `evenhand train calibrator` for this model. "
        "Fix: evenhand train calibrator --model LM DATA --out DIR, then --calibrator DIR."
    )
    with pytest.raises(InputError) as caught:
        Calibration(calibrator=saved(tmp_path))
    assert message(caught) == (
        "the mode embedding does not use a calibrator. "
        "Expected: word lists; a calibrator is for the mode classifier. "
        "Fix: omit the calibrator, or choose the mode classifier."
    )
    with pytest.raises(InputError) as caught:
        Calibration(mode="classifier", calibrator=saved(tmp_path), words="sides.json")
    assert message(caught) == (
        "the mode classifier does not use the words sides.json. "
        "Expected: a calibrator; word lists are for the mode embedding. "
        "Fix: omit the words, or choose the mode embedding."
    )
    with pytest.raises(InputError) as caught:
        Calibration(mode="classifier", calibrator=str(tmp_path / "none"))
    assert message(caught) == (
        f"there is no calibrator at {tmp_path / 'none'}. "
        "Expected: a folder with calibrator.safetensors. "
        "Fix: train one: evenhand train calibrator --model LM DATA."
    )


def test_a_head_of_another_model_or_width_is_refused(small: CausalModel, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        Calibration(mode="classifier", calibrator=saved(tmp_path, width=8)).apply(small)
    assert message(caught) == (
        "the calibrator expects hidden states of width 8, those of 'tiny' have 32. "
        "Expected: a calibrator for 'tiny'. "
        "Fix: evenhand train calibrator --model tiny DATA."
    )
    with pytest.raises(InputError) as caught:
        Calibration(mode="classifier", calibrator=saved(tmp_path, revision="r2")).apply(small)
    assert message(caught) == (
        "the calibrator was trained on 'tiny' at r2, this is 'tiny' at r1. "
        "Expected: a calibrator for the same weights: hidden states of models are not comparable. "
        "Fix: evenhand train calibrator --model tiny DATA."
    )


def test_a_file_that_is_no_head_is_named(tmp_path: Path) -> None:
    path = tmp_path / "calibrator.safetensors"
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"^.*calibrator\.safetensors is not a calibrator: "):
        read_calibrator(tmp_path)


@pytest.mark.parametrize(
    ("kind", "value"),
    # The first is finite as it is stored, and infinite in the float32 it is used in.
    [(torch.float64, 1e300), (torch.float8_e4m3fn, torch.nan), (torch.int64, 1)],
    ids=str,
)
def test_a_weight_that_cannot_be_used_is_refused(tmp_path: Path, kind: torch.dtype, value: float) -> None:
    path = Path(saved(tmp_path)) / "calibrator.safetensors"
    tensors = load_file(path)
    tensors["outer.bias"] = torch.tensor(value, dtype=torch.float64).to(kind)
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
    save_file(tensors, path, metadata=about)
    with pytest.raises(InputError, match="a weight is not a finite number"):
        read_calibrator(path)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({"format": "evenhand-calibrator-9"}, "its format is 'evenhand-calibrator-9'"),
        ({"labels": ["a", "a"]}, r"the labels \['a', 'a'\]"),
        ({"revision": "\x1b[2J"}, "the name of its model cannot be printed"),
    ],
    ids=["format", "labels", "revision"],
)
def test_what_a_file_says_of_its_head_is_checked(tmp_path: Path, kept: dict[str, object], said: str) -> None:
    path = Path(saved(tmp_path)) / "calibrator.safetensors"
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
    changed = json.dumps(json.loads(about["calibrator"]) | kept)
    named = {"format": str(kept.get("format", about["format"])), "calibrator": changed}
    save_file(load_file(path), path, metadata=named)
    with pytest.raises(InputError, match=f"is not a calibrator: {said}"):
        read_calibrator(path)


def test_a_head_without_units_is_refused(tmp_path: Path) -> None:
    nothing = torch.zeros(0)
    empty = Calibrator(torch.zeros(0, 32), nothing, nothing, torch.zeros(()), ("a", "b"), "tiny", "r1")
    save_calibrator(empty, tmp_path / "calibrator.safetensors")
    with pytest.raises(InputError, match=r"is not a calibrator: matrices of \(0, 32\) and \(0,\)"):
        read_calibrator(tmp_path)


def test_a_head_survives_its_file(tmp_path: Path) -> None:
    saved(tmp_path)
    head = read_calibrator(tmp_path)
    assert (head.labels, head.model, head.states, head.width) == (("a", "b"), "tiny", "written", 32)
    states = torch.linspace(-1, 1, 32)[None]
    # Identity, tanh, sum of all.
    assert head.logit(states).item() == pytest.approx(float(torch.tanh(states).sum()), abs=1e-5)
    assert replace(head, outer_bias=torch.tensor(2.0)).logit(states).item() == pytest.approx(2.0, abs=1e-5)
