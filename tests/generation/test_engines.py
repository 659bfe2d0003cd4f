"""Both engines against transformers: reading at once, writing step by step, places given to new rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.models import tiny
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    CTRLConfig,
    CTRLLMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
)

from evenhand.core.errors import ModelError
from evenhand.generation import gpt2
from evenhand.generation.engine import Engine
from evenhand.generation.gpt2 import Gpt2, Gpt2Shape
from evenhand.generation.hub_engine import HubEngine, check_cache

PROMPTS = [
    [5, 9, 17, 4, 250],
    [40, 41, 42, 43, 44, 45, 46, 47, 48],
    [7],
    [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8],
]
Made = tuple[PreTrainedModel, Engine]


def lean() -> Made:
    model = tiny.gpt2(end=None)
    shape = Gpt2Shape.of(model.config.to_dict())
    assert shape is not None
    return model, Gpt2(shape, model.state_dict())


def generic(model: PreTrainedModel) -> Made:
    return model, HubEngine(model)


def llama() -> Made:
    model = tiny.llama()
    model.generation_config.eos_token_id = None
    return generic(model)


def neox() -> Made:
    config = GPTNeoXConfig(
        vocab_size=300,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        bos_token_id=None,
        eos_token_id=None,
    )
    return generic(tiny.randomised(GPTNeoXForCausalLM(config), seed=1, spread=0.25))


def ctrl() -> Made:
    config = CTRLConfig(vocab_size=300, n_positions=64, n_embd=32, dff=48, n_layer=2, n_head=4)
    return generic(tiny.randomised(CTRLLMHeadModel(config), seed=1, spread=0.25))


def bloom() -> Made:
    config = BloomConfig(vocab_size=300, hidden_size=32, n_layer=2, n_head=4, eos_token_id=None)
    return generic(tiny.randomised(BloomForCausalLM(config), seed=1, spread=0.25))


def sliding() -> Made:
    config = MistralConfig(
        vocab_size=300,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=6,
        eos_token_id=None,
    )
    return generic(tiny.randomised(MistralForCausalLM(config), seed=1, spread=0.25))


ENGINES = [lean, lambda: generic(tiny.gpt2(end=None)), llama, neox, ctrl, bloom, sliding]
NAMES = ["lean", "gpt2", "llama", "neox", "ctrl", "bloom", "sliding"]


@pytest.mark.parametrize("make", ENGINES, ids=NAMES)
def test_rows_come_and_go_and_each_is_written_as_if_alone(make: Callable[[], Made]) -> None:
    model, engine = make()
    prefixes = engine.prefill([prompt[:-1] for prompt in PROMPTS])
    batch = engine.create_cache(3, 40)
    batch.fill([0, 1, 2], prefixes[:3])
    tokens = torch.tensor([prompt[-1] for prompt in PROMPTS[:3]])
    written: list[list[int]] = [[], [], [], []]

    def write(count: int, rows: list[int]) -> None:
        nonlocal tokens
        for _ in range(count):
            tokens = batch.step(tokens).logits.argmax(-1)
            for row, token in zip(rows, tokens.tolist(), strict=True):
                written[row].append(token)

    write(4, [0, 1, 2])
    batch.fill([1], [prefixes[3]])
    tokens[1] = PROMPTS[3][-1]
    write(6, [0, 3, 2])
    batch.keep([0, 2])
    tokens = tokens[[0, 2]]
    write(5, [0, 2])
    for prompt, row, count in zip(PROMPTS, written, (15, 4, 15, 6), strict=True):
        alone = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=count,
            do_sample=False,
            pad_token_id=0,
        )
        assert row == alone[0, len(prompt) :].tolist()


@pytest.mark.parametrize("make", ENGINES, ids=NAMES)
def test_log_probabilities_are_those_of_the_whole_row(make: Callable[[], Made]) -> None:
    model, engine = make()
    rows = [PROMPTS[0], PROMPTS[3], PROMPTS[1]]
    for row, found in zip(rows, engine.log_probs(rows), strict=True):
        with torch.no_grad():
            scores = model(torch.tensor([row])).logits[0, :-1].log_softmax(-1)
        expected = [scores[index, token].item() for index, token in enumerate(row[1:])]
        assert found.tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("make", ENGINES[:3], ids=NAMES[:3])
def test_rows_of_one_token_need_no_reading(make: Callable[[], Made]) -> None:
    model, engine = make()
    batch = engine.create_cache(2, 8)
    batch.fill([0, 1], engine.prefill([[], []]))
    logits = batch.step(torch.tensor([7, 9])).logits
    with torch.no_grad():
        expected = model(torch.tensor([[7], [9]])).logits[:, 0]
    assert torch.allclose(logits, expected, atol=1e-4)


def test_the_hidden_state_is_what_the_output_table_sees() -> None:
    for make in (lean, llama):
        model, engine = make()
        batch = engine.create_cache(1, 8)
        batch.fill([0], engine.prefill([[5, 6]]))
        output = batch.step(torch.tensor([8]))
        table = model.get_output_embeddings().weight
        assert torch.allclose(output.hidden @ table.T, output.logits, atol=1e-4)


def test_a_state_space_model_is_refused() -> None:
    model = MambaForCausalLM(MambaConfig(vocab_size=300, hidden_size=32, num_hidden_layers=2)).eval()
    tiny.randomised(model, seed=0, spread=0.5)
    with pytest.raises(ModelError, match=r"the model 'mamba' does not run with a key-value cache"):
        check_cache(HubEngine(model), "mamba")


def test_attention_models_pass_the_check() -> None:
    for make in (llama, neox, ctrl, bloom, sliding):
        model = make()[0]
        check_cache(HubEngine(model), "any")


def test_only_plain_gpt2_has_a_shape() -> None:
    config = tiny.gpt2().config.to_dict()
    assert Gpt2Shape.of(config) == Gpt2Shape(300, 64, 2, 32, 4)
    assert Gpt2Shape.of({"model_type": "gpt2"}) == Gpt2Shape(50257, 1024, 12, 768, 12)
    assert Gpt2Shape.of({**config, "model_type": "llama"}) is None
    assert Gpt2Shape.of({**config, "activation_function": "relu"}) is None
    assert Gpt2Shape.of({**config, "scale_attn_by_inverse_layer_idx": True}) is None


def test_missing_and_misshapen_weights_are_named() -> None:
    model = tiny.gpt2()
    tensors = dict(model.state_dict())
    del tensors["transformer.h.1.mlp.c_fc.weight"]
    with pytest.raises(ModelError, match=r"the weights have no 'h\.1\.mlp\.c_fc\.weight'\."):
        Gpt2(Gpt2Shape(300, 64, 2, 32, 4), tensors)
    with pytest.raises(ModelError, match=r"'wte\.weight' is 300 x 32, not 301 x 32"):
        Gpt2(Gpt2Shape(301, 64, 2, 32, 4), model.state_dict())


@pytest.mark.parametrize("untied", [False, True])
def test_rows_of_zeros_below_the_output_table_are_not_seen(
    monkeypatch: pytest.MonkeyPatch, untied: bool
) -> None:
    model = tiny.gpt2()
    tensors = dict(model.state_dict())
    if untied:
        tensors["lm_head.weight"] = tensors["lm_head.weight"].flip(0)
    engines = []
    for multiple in (1, 64):
        # 300 tokens, so 20 rows of zeros.
        monkeypatch.setattr(gpt2, "_MULTIPLE", {"cpu": multiple})
        engines.append(Gpt2(Gpt2Shape(300, 64, 2, 32, 4), tensors))
    for found in zip(*(engine.log_probs([[1, 2, 3]]) for engine in engines), strict=True):
        assert torch.allclose(*found, atol=1e-5)
    for engine in engines:
        batch = engine.create_cache(1, 3)
        batch.fill([0], engine.prefill([[7]]))
        said = batch.step(torch.tensor([9]))
        assert said.logits.shape == (1, 300)
        assert engine.lm_head()[0].shape == (300, 32)
        assert engine.lm_head()[0].is_contiguous()
        assert torch.allclose(said.hidden @ engine.lm_head()[0].T, said.logits, atol=1e-4)


def test_an_untied_head_is_used() -> None:
    model = tiny.gpt2()
    tensors = {**model.state_dict(), "lm_head.weight": torch.zeros(300, 32)}
    engine = Gpt2(Gpt2Shape(300, 64, 2, 32, 4), tensors)
    assert engine.log_probs([[1, 2]])[0].tolist() == pytest.approx([-torch.log(torch.tensor(300.0)).item()])
