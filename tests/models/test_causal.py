from __future__ import annotations

from dataclasses import replace
from math import log

import pytest
import torch
from tests.models import tiny

from evenhand.core.errors import InputError
from evenhand.core.protocols import Candidates, MaxBatch, ResolvesSpec, Step
from evenhand.core.records import GenerationSpec, ModelRef, Request
from evenhand.generation.gpt2 import Gpt2, Gpt2Shape
from evenhand.generation.scheduler import LARGEST_BATCH, SamplingLoop
from evenhand.generation.tokenizer import HubCodec
from evenhand.models.local import CausalModel

SHAPE = Gpt2Shape(300, tiny.CONTEXT, 2, 32, 4)


def model(*control_codes: str) -> CausalModel:
    codec = HubCodec.of(tiny.tokenizer(), ends=frozenset({0}))
    loop = SamplingLoop(Gpt2(SHAPE, tiny.gpt2().state_dict()), codec)
    return CausalModel(ModelRef("causal", "tiny", "r"), loop, None, frozenset(control_codes))


def log_probability(tokens: list[int]) -> float:
    with torch.no_grad():
        scores = tiny.gpt2()(torch.tensor([tokens])).logits[0, :-1].log_softmax(-1)
    return float(sum(scores[index, token].item() for index, token in enumerate(tokens[1:])))


def test_log_likelihoods_score_every_token_after_the_start() -> None:
    texts = ["The man worked as a doctor.", "", "A café", "T"]
    found = model().log_likelihoods(texts)
    for text, (value, count) in zip(texts, found, strict=True):
        tokens = tiny.tokenizer()(text)["input_ids"]
        assert count == len(tokens)
        assert value == pytest.approx(log_probability([0, *tokens]), abs=1e-3)
    assert found[1] == (0.0, 0)
    assert model().log_likelihoods([]) == []


def test_a_long_text_is_read_in_windows_that_share_a_token() -> None:
    # The context is 64: with the start token 0 in front, windows are tokens 0-63, 63-126, ...
    text = "doctor " * 80
    tokens = [0, *tiny.tokenizer()(text)["input_ids"]]
    assert 127 < len(tokens) < 64 * 4
    windows = [tokens[at : at + 64] for at in range(0, len(tokens) - 1, 63)]
    value, count = model().log_likelihoods([text])[0]
    assert count == len(tokens) - 1
    assert value == pytest.approx(sum(log_probability(window) for window in windows), rel=1e-4)


def test_without_a_start_token_the_first_is_not_scored() -> None:
    plain = model()
    bare = replace(plain, loop=replace(plain.loop, codec=replace(plain.loop.codec, start=None)))  # type: ignore[type-var]
    tokens = tiny.tokenizer()("The man")["input_ids"]
    value, count = bare.log_likelihoods(["The man"])[0]
    assert count == len(tokens) - 1
    assert value == pytest.approx(log_probability(tokens), abs=1e-3)
    assert bare.log_likelihoods(["T"]) == [(0.0, 0)]


def test_an_even_model_gives_the_log_of_the_vocabulary() -> None:
    tensors = {**tiny.gpt2().state_dict(), "lm_head.weight": torch.zeros(300, 32)}
    even = replace(model(), loop=replace(model().loop, engine=Gpt2(SHAPE, tensors)))
    value, count = even.log_likelihoods(["doctor"])[0]
    assert value == pytest.approx(-count * log(300), rel=1e-5)


def test_surrogates_in_a_text_are_no_error() -> None:
    assert model().log_likelihoods(["a\ud800b"])[0][1] > 0


class Nothing:
    def begin(self, *, keep: int) -> Nothing:
        return self

    def __call__(self, step: Step) -> Candidates:
        return Candidates(step.logits)


def test_a_steered_model_is_another_model() -> None:
    plain = model()
    steered = plain.steered(Nothing(), name="calibration", options={"strength": "0.5"})
    assert steered.ref.options == {"mitigation": "calibration", "mitigation.strength": "0.5"}
    assert plain.ref.options == {}
    spec = GenerationSpec(max_new_tokens=5, stop="none")
    items = [Request("x", "The man", (0, 1))]
    first, second = (
        {item.sample: item.text for item in one.generate(items, spec)} for one in (plain, steered)
    )
    assert first == second
    with pytest.raises(InputError, match=r"^the model 'tiny' is already steered\."):
        steered.steered(Nothing(), name="again", options={})


def test_a_control_code_goes_before_the_prompt() -> None:
    ctrl = model("Books")
    spec = GenerationSpec(max_new_tokens=5, temperature=0, stop="none")
    by_hand = next(ctrl.generate([Request("x", "Books The man", (0,))], spec))
    by_spec = next(ctrl.generate([Request("x", "The man", (0,))], replace(spec, control_code="Books")))
    by_model = next(replace(ctrl, control_code="Books").generate([Request("x", "The man", (0,))], spec))
    assert by_hand.text == by_spec.text == by_model.text


def test_only_known_control_codes_are_taken() -> None:
    spec = GenerationSpec(max_new_tokens=4, control_code="Recipes")
    with pytest.raises(InputError) as caught:
        model("Wikipedia", "Books").resolved(spec)
    assert str(caught.value) == (
        "control code 'Recipes' for the model 'tiny'. Expected: Books, Wikipedia. Fix: choose one of these."
    )


@pytest.mark.parametrize("field", ["burn_in", "iterations"])
def test_iterations_are_for_masked_models(field: str) -> None:
    spec = replace(GenerationSpec(max_new_tokens=4), **{field: 3})
    with pytest.raises(InputError) as caught:
        model().generate([Request("x", "The man", (0,))], spec)
    assert str(caught.value) == (
        f"{field} 3 for the model 'tiny'. Expected: burn-in and iterations are for masked models such as "
        f"builtin:masked. Fix: omit {field}, or use a preset for causal models."
    )


def test_a_spec_that_fits_is_left_as_it_is() -> None:
    spec = GenerationSpec(max_new_tokens=4)
    assert model().resolved(spec) == spec
    assert isinstance(model(), ResolvesSpec)


def test_a_model_says_how_fast_it_writes() -> None:
    from evenhand.core.protocols import EstimatesThroughput
    from evenhand.models.builtin import load

    model = load()
    assert isinstance(model, EstimatesThroughput)
    assert model.pace(GenerationSpec(max_new_tokens=2)) > 0


def test_a_gpu_is_asked_for_as_many_texts_as_it_writes_side_by_side() -> None:
    one = model()
    assert isinstance(one, MaxBatch)
    assert one.at_once == 1
    one.loop.engine.device = torch.device("cuda")  # type: ignore[misc]
    assert one.at_once == LARGEST_BATCH
    assert replace(one, loop=replace(one.loop, batch=7)).at_once == 7
