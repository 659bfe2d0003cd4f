"""What a steering is shown, and what it may change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from tests.models import tiny
from tests.models.loops import SAMPLED, both, codec, lean, requests, texts
from transformers import PreTrainedModel

from evenhand.core.errors import ModelError
from evenhand.core.protocols import Candidates, Step
from evenhand.core.records import Request
from evenhand.generation.engine import Engine
from evenhand.generation.hub_engine import HubEngine
from evenhand.generation.scheduler import SamplingLoop


class Pushing:
    """A steering that forces one token for even rows, and remembers who was asked."""

    def __init__(self, token: int) -> None:
        self.token = token
        self.seen: list[list[int]] = []

    def begin(self, *, keep: int) -> Pushing:
        self.keep = keep
        return self

    def __call__(self, step: Step) -> Candidates:
        hidden, logits, rows, last, uniforms = step
        assert uniforms.shape == last.shape == (len(rows),)
        assert hidden.shape == (len(rows), 32)
        assert logits.shape == (len(rows), 300)
        self.seen.append(list(rows))
        pushed = logits.clone()
        for index, row in enumerate(rows):
            if row % 2 == 0:
                pushed[index, self.token] = 1e4
        return Candidates(pushed)


def test_a_steering_sees_hidden_states_logits_and_rows() -> None:
    model = lean(tiny.gpt2(end=None))
    token = codec().encode(["e"])[0][0]
    steering = Pushing(token)
    loop = SamplingLoop(model, codec(frozenset()), batch=2, steering=steering)
    items = [Request("x", "The man", (0, 1, 2, 3))]
    spec = replace(SAMPLED, max_new_tokens=6)
    plain = texts(list(SamplingLoop(model, codec(frozenset()), batch=2).run(items, spec)))
    done = texts(list(loop.run(items, spec)))
    assert [done["x", sample] for sample in (0, 2)] == ["eeeeee", "eeeeee"]
    assert [done["x", sample] for sample in (1, 3)] == [plain["x", sample] for sample in (1, 3)]
    # Rows are never numbered twice, not even by a second call.
    list(loop.run(items, spec))
    assert {row for rows in steering.seen for row in rows} == set(range(8))


class Short:
    """A steering that offers three tokens a row, the last the likeliest, and says how many were asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def begin(self, *, keep: int) -> Short:
        self.asked.append(keep)
        return self

    def __call__(self, step: Step) -> Candidates:
        if self.asked[-1] == 0:
            return Candidates(step.logits)
        rows = step.rows
        tokens = torch.tensor([[5, 6, 70]]).expand(len(rows), 3)
        return Candidates(torch.tensor([[0.0, 1.0, 9.0]]).expand(len(rows), 3), tokens)


@pytest.mark.parametrize(
    ("change", "keep"),
    [({"top_k": 40}, 40), ({"top_k": 0}, 0), ({"temperature": 0}, 1), ({"repetition_penalty": 1.2}, 0)],
)
def test_a_steering_is_told_how_many_tokens_sampling_looks_at(change: dict[str, float], keep: int) -> None:
    steering = Short()
    spec = replace(SAMPLED, max_new_tokens=2, **change)  # type: ignore[arg-type]
    loop = SamplingLoop(lean(tiny.gpt2(end=None)), codec(frozenset()), steering=steering)
    list(loop.run(requests(), spec))
    assert steering.asked == [keep]


def test_candidates_are_tokens_of_their_own_row() -> None:
    steering = Short()
    loop = SamplingLoop(lean(tiny.gpt2(end=None)), codec(frozenset()), steering=steering)
    spec = replace(SAMPLED, max_new_tokens=3, temperature=0)
    done = next(iter(loop.run([Request("x", "The man", (0,))], spec)))
    assert done.text == codec().decode([70, 70, 70])


@both
def test_logits_are_hidden_states_times_the_output_table(
    make: Callable[[], PreTrainedModel], engine: Callable[[PreTrainedModel], Engine]
) -> None:
    made = engine(make())
    table, bias = made.lm_head()
    assert table.shape == (300, 32)
    assert bias is None
    batch = made.create_cache(1, 3)
    batch.fill([0], made.prefill([[7, 8]]))
    said = batch.step(torch.tensor([9]))
    assert torch.allclose(said.hidden @ table.T, said.logits, atol=1e-4)
    # Read at once, the last hidden state of a row is the one a step gives.
    states = list(made.hidden_states([[7, 8, 9], [], [7, 8]]))
    assert [state.shape for state in states] == [(3, 32), (0, 32), (2, 32)]
    assert torch.allclose(states[0][-1], said.hidden[0], atol=1e-4)
    assert torch.allclose(states[2], states[0][:2], atol=1e-4)


def test_a_model_that_caps_its_logits_cannot_be_steered() -> None:
    model = tiny.llama()
    head = model.lm_head.forward
    model.lm_head.forward = lambda x: torch.tanh(head(x))
    with pytest.raises(ModelError) as caught:
        HubEngine(model).lm_head()
    assert str(caught.value) == (
        "the logits of LlamaForCausalLM are not its hidden states times a matrix. "
        "Expected: models such as GPT-2, GPT-NeoX, Llama, Mistral, Qwen, OPT. "
        "Fix: use a mitigation that works on text: replacement."
    )
