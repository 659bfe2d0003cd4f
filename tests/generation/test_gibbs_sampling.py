from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models import tiny_masked
from tests.oracles import gibbs as oracle
from torch import Tensor
from transformers import PreTrainedModel

from evenhand.core.errors import InputError, ModelError
from evenhand.core.records import GenerationSpec, Request
from evenhand.generation.bert import Bert, BertShape
from evenhand.generation.engine import MaskedEngine
from evenhand.generation.gibbs_sampling import MaskedModel, schedule_iterations
from evenhand.generation.hub_engine import HubMasked
from evenhand.generation.sequences import SequenceRequest
from evenhand.generation.tokenizer import MaskedTokenCodec

PROMPTS = ["the man", "", "the old woman was known for", "a nurse", "people worked in the city", "is"]
REQUESTS = [Request(f"p{index}", text, (0, 1)) for index, text in enumerate(PROMPTS)]
SPEC = GenerationSpec(
    max_new_tokens=6, temperature=0.7, top_k=0, top_p=1.0, stop="none", burn_in=15, iterations=40
)
MODEL = tiny_masked.bert()


class Counting:
    """An engine that counts its rows and calls, and fails where it is told to."""

    def __init__(self, engine: MaskedEngine) -> None:
        self.engine, self.context, self.device = engine, engine.context, engine.device
        self.rows: list[int] = []
        self.largest: int | None = None

    def logits(self, tokens: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        if self.largest is not None and len(tokens) > self.largest:
            raise torch.OutOfMemoryError("no memory")
        self.rows.append(len(tokens))
        return self.engine.logits(tokens, lengths, places)


def lean(model: PreTrainedModel = MODEL) -> Counting:
    shape = BertShape.of(model.config.to_dict())
    return Counting(HubMasked(model) if shape is None else Bert(shape, model.state_dict()))


def codec(*, is_bytewise: bool = False) -> MaskedTokenCodec:
    if is_bytewise:
        plain = tiny_masked.bytewise().backend_tokenizer
        return MaskedTokenCodec.of(plain, before=0, after=2, mask=4, vocabulary=261)
    plain = tiny_masked.wordpiece().backend_tokenizer
    return MaskedTokenCodec.of(plain, before=2, after=3, mask=4, vocabulary=len(tiny_masked.PIECES))


def written(
    loop: MaskedModel, spec: GenerationSpec = SPEC, requests: Sequence[Request] = REQUESTS
) -> dict[tuple[str, int], str | None]:
    return {(item.request_id, item.sample): item.text for item in loop.generate(requests, spec)}


def slowly(
    model: PreTrainedModel, tokens: MaskedTokenCodec, spec: GenerationSpec
) -> dict[tuple[str, int], str | None]:
    def scores(row: Sequence[int]) -> oracle.Logits:
        with torch.no_grad():
            return np.asarray(model(torch.tensor([row])).logits[0].double())

    found: dict[tuple[str, int], str | None] = {}
    for request in REQUESTS:
        prompt = tokens.encode([request.text])[0]
        row = [tokens.before, *prompt, *[tokens.mask] * spec.max_new_tokens, tokens.after]
        # One sample is enough: the obvious loop is slow.
        for sample in request.samples[:1]:
            filled = oracle.fill(
                scores,
                row,
                len(prompt) + 1,
                spec,
                mask=tokens.mask,
                barred=tokens.excluded_tokens,
                prompt_id=request.id,
                sample=sample,
            )
            found[request.id, sample] = tokens.continuation(request.text, prompt, filled)
    return found


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"top_k": 5},
        {"top_p": 0.8},
        {"top_k": 8, "top_p": 0.7, "temperature": 1.3},
        {"temperature": 0.0},
        {"burn_in": 0},
        {"burn_in": 40},
        {"iterations": 3, "burn_in": 3},
        {"iterations": 3, "burn_in": 0},
        {"max_new_tokens": 1},
        {"seed": 7},
    ],
)
def test_texts_are_those_of_the_obvious_loop(change: dict[str, float]) -> None:
    spec = replace(SPEC, **change)  # type: ignore[arg-type]
    assert slowly(MODEL, codec(), spec).items() <= written(MaskedModel(lean(), codec(), 5), spec).items()


@pytest.mark.parametrize("name", ["roberta", "distilbert", "electra"])
def test_other_architectures_write_as_the_obvious_loop(name: str) -> None:
    model: PreTrainedModel = tiny_masked.MODELS[name]()
    tokens = codec(is_bytewise=name == "roberta")
    assert slowly(model, tokens, SPEC).items() <= written(MaskedModel(lean(model), tokens, 4)).items()


@settings(max_examples=15, deadline=None)
@given(st.permutations(REQUESTS), st.integers(1, 13), st.integers(1, len(REQUESTS)))
def test_neighbours_order_and_batch_do_not_change_a_text(
    order: list[Request], batch: int, count: int
) -> None:
    some = order[:count]
    whole = written(MaskedModel(lean(), codec(), 64))
    expected = {key: text for key, text in whole.items() if key[0] in {item.id for item in some}}
    assert written(MaskedModel(lean(), codec(), batch), requests=some) == expected


def test_seed_prompt_and_sample_change_a_text() -> None:
    found = written(MaskedModel(lean(), codec()))
    assert len(set(found.values())) > len(PROMPTS)
    assert written(MaskedModel(lean(), codec()), replace(SPEC, seed=1)) != found


def test_iterations_that_cannot_change_a_text_are_not_computed() -> None:
    engine = lean()
    written(MaskedModel(engine, codec(), 64), replace(SPEC, burn_in=5, iterations=400))
    # Twelve rows of six places: most settle long before four hundred iterations; a random model may circle.
    assert sum(engine.rows) < 12 * 200


def test_the_burn_in_computes_every_draw_but_those_at_once_drawn_again() -> None:
    engine = lean()
    spec = replace(SPEC, burn_in=40, iterations=40)
    request = Request("x", "the man", (0,))
    written(MaskedModel(engine, codec(), 1), spec, [request])
    places = schedule_iterations(SequenceRequest(request, 0, ()), spec)[0]
    again = sum(before == after for before, after in pairwise(places))
    assert 0 < again < 20
    assert len(engine.rows) == len(places) - again


def test_a_finished_row_makes_room() -> None:
    engine = lean()
    written(MaskedModel(engine, codec(), 3))
    assert max(engine.rows) == 3
    # All but the end of the work is done three rows at a time.
    assert engine.rows.count(3) > 0.8 * len(engine.rows)


def test_places_nobody_drew_are_filled_too() -> None:
    spec = MaskedModel(lean(), codec()).resolved(replace(SPEC, iterations=2, burn_in=1))
    places, numbers = schedule_iterations(SequenceRequest(REQUESTS[0], 0, ()), spec)
    assert sorted(set(places.tolist())) == [0, 1, 2, 3, 4, 5]
    assert len(places) == len(numbers)
    texts = written(MaskedModel(lean(), codec()), spec)
    assert all("[MASK]" not in str(text) for text in texts.values())


def test_the_first_draws_do_not_depend_on_their_number() -> None:
    few, many = (
        schedule_iterations(SequenceRequest(REQUESTS[0], 0, ()), replace(SPEC, iterations=count))[0][:30]
        for count in (30, 60)
    )
    assert few.tolist() == many.tolist()


def test_counts_and_finish() -> None:
    loop = MaskedModel(lean(), codec())
    item = next(loop.generate([Request("x", "the man", (3,))], SPEC))
    assert (item.request_id, item.sample, item.finish) == ("x", 3, "length")
    assert (item.prompt_tokens, item.new_tokens, item.failure) == (2, 6, None)


class Scripted:
    """An engine that wants the same word at each place, whatever stands around it."""

    context, device = 40, torch.device("cpu")

    def __init__(self, *words: str) -> None:
        self.tokens = torch.tensor([tiny_masked.PIECES.index(word) for word in words])

    def logits(self, tokens: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        # The place of the first mask follows the frame and a prompt of two words.
        scores = torch.zeros(len(tokens), len(tiny_masked.PIECES))
        return scores.scatter(1, self.tokens[places - 3][:, None], 99.0)


@pytest.mark.parametrize(
    ("stop", "text", "finish"), [("none", " sang. the woman", "length"), ("sentence", " sang.", "sentence")]
)
def test_a_text_is_cut_at_its_first_sentence(
    stop: Literal["none", "sentence"], text: str, finish: str
) -> None:
    loop = MaskedModel(Scripted("sang", ".", "the", "woman"), codec())
    item = next(loop.generate([Request("x", "the man", (0,))], replace(SPEC, max_new_tokens=4, stop=stop)))
    assert (item.text, item.finish, item.new_tokens) == (text, finish, 4)


def test_a_prompt_that_does_not_fit_fails_alone() -> None:
    # Forty places: two for the frame and six for the text leave 32 for the prompt.
    long, fits = "man " * 33, "man " * 32
    found = list(
        MaskedModel(lean(), codec()).generate([Request("l", long, (0,)), Request("f", fits, (0,))], SPEC)
    )
    failures = {item.request_id: (item.failure, item.text is None, item.prompt_tokens) for item in found}
    assert failures == {"l": ("prompt_too_long", True, 33), "f": (None, False, 32)}


def test_too_little_memory_halves_the_batch_and_changes_nothing() -> None:
    engine = lean()
    engine.largest = 3
    assert written(MaskedModel(engine, codec(), 12)) == written(MaskedModel(lean(), codec(), 12))
    assert max(engine.rows) == 3


class Growing(MaskedModel):
    """A loop that takes this machine for an accelerator."""

    can_grow = True


def test_rows_grow_until_memory_says_no() -> None:
    requests = [Request("a", "the man", tuple(range(300)))]
    spec = replace(SPEC, burn_in=1, iterations=2)
    engine = lean()
    engine.largest = 200
    loop = Growing(engine, codec())
    found = {item.sample: item.text for item in loop.generate(requests, spec)}
    assert found == {
        item.sample: item.text for item in MaskedModel(lean(), codec(), 300).generate(requests, spec)
    }
    # Doubled from 64: 128 fit, 256 do not.
    assert max(engine.rows) == 128
    assert list(loop.rows_by_length.values()) == [128]


def test_too_little_memory_for_one_row() -> None:
    engine = lean()
    engine.largest = 0
    with pytest.raises(ModelError, match=r"^the accelerator has too little memory for a single row\."):
        written(MaskedModel(engine, codec(), 12))


def test_nothing_asked_nothing_written() -> None:
    assert written(MaskedModel(lean(), codec()), requests=[]) == {}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (200, 500)),
        ({"iterations": 50}, (50, 50)),
        ({"burn_in": 0}, (0, 500)),
        ({"burn_in": 7, "iterations": 9}, (7, 9)),
    ],
)
def test_what_a_spec_leaves_open_is_filled_in(given: dict[str, int], expected: tuple[int, int]) -> None:
    spec = replace(GenerationSpec(max_new_tokens=6), **given)  # type: ignore[arg-type]
    found = MaskedModel(lean(), codec()).resolved(spec)
    assert (found.burn_in, found.iterations) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"control_code": "Books"},
            "control code 'Books' for the model 'masked'. Expected: control codes are for CTRL models. "
            "Fix: omit the control code.",
        ),
        (
            {"repetition_penalty": 1.2},
            "repetition_penalty is 1.2 for the model 'masked'. Expected: 1 (disabled): a masked model has no "
            "left-to-right order to penalise. Fix: omit the repetition penalty.",
        ),
        (
            {"burn_in": 9, "iterations": 8},
            "burn_in is 9 and iterations is 8. Expected: at least 1 iteration, and a burn-in from 0 to that "
            "number. Fix: change burn_in or iterations.",
        ),
        (
            {"max_new_tokens": 38},
            "max_new_tokens is 38. Expected: 1 to 37: the model's context is 38 tokens, prompt included. "
            "Fix: request fewer tokens, or use a model with a longer context.",
        ),
    ],
)
def test_what_a_masked_model_does_not_know_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        MaskedModel(lean(), codec()).resolved(replace(SPEC, **change))  # type: ignore[arg-type]
    assert str(caught.value) == message
