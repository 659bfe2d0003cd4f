"""Tiny random models in the Hub's layout, and a tokenizer for them, made where a test needs them."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    CTRLConfig,
    CTRLLMHeadModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

M = TypeVar("M", bound=PreTrainedModel)
END = "<|endoftext|>"
CONTEXT = 64
TEXTS = ["The man worked as a doctor.", "The woman was known for her work. She sang.", "A café in Köln"]


def tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE of 300 tokens; token 0 ends a text."""
    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    plain.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=300, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
        ),
    )
    return PreTrainedTokenizerFast(tokenizer_object=plain, bos_token=END, eos_token=END)


def gpt2(*, seed: int = 0, end: int | None = 0, spread: float = 0.25) -> GPT2LMHeadModel:
    """A GPT-2 of two layers whose choices are far from even."""
    config = GPT2Config(
        vocab_size=300, n_positions=CONTEXT, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=end
    )
    return randomised(GPT2LMHeadModel(config), seed=seed, spread=spread)


def llama(*, seed: int = 0) -> LlamaForCausalLM:
    """A Llama of two layers with grouped keys."""
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        bos_token_id=0,
        eos_token_id=0,
    )
    return randomised(LlamaForCausalLM(config), seed=seed, spread=0.25)


def save_ctrl(folder: Path, *, context: int = 32) -> Path:
    """A CTRL of one layer and its tokenizer, which knows the published control codes, in a folder."""
    words = ["<unk>", "Wikipedia", "Books", "The", "man", "sang", "and", "danced"]
    letters = sorted({letter for word in words for letter in word})
    pieces = [*words, *letters, *(f"{letter}@@" for letter in letters)]
    config = CTRLConfig(vocab_size=len(pieces), n_positions=context, n_embd=16, dff=16, n_layer=1, n_head=2)
    randomised(CTRLLMHeadModel(config), seed=0, spread=0.3).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps({piece: index for index, piece in enumerate(pieces)}))
    (folder / "merges.txt").write_text("#version: 0.2\nT h\n")
    return folder


def randomised(model: M, *, seed: int, spread: float) -> M:
    """The model with matrices drawn from a seed, wide enough that no two logits are close."""
    generator = torch.Generator().manual_seed(seed)
    for weights in model.parameters():
        if weights.ndim == 2:
            weights.data = torch.randn(weights.shape, generator=generator) * spread
    return model.eval()


def save(model: PreTrainedModel, folder: Path) -> Path:
    """The model and the tokenizer in a folder."""
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def greedy(model: PreTrainedModel, prompt: list[int], count: int, **options: float) -> list[int]:
    """What ``generate()`` writes for one prompt by itself, the end token left out."""
    tokens = torch.tensor([prompt])
    written = model.generate(
        tokens,
        attention_mask=torch.ones_like(tokens),
        max_new_tokens=count,
        do_sample=False,
        pad_token_id=0,
        **options,
    )
    return [token for token in written[0, len(prompt) :].tolist() if token != 0]


def save_gguf(gguf: ModuleType, model: LlamaForCausalLM, path: Path) -> Path:
    """The Llama as a GGUF file in float32, with the tokenizer inside."""
    config = model.config
    heads, groups = config.num_attention_heads, config.num_key_value_heads
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(heads)
    writer.add_head_count_kv(groups)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // heads)
    writer.add_vocab_size(config.vocab_size)
    plain = json.loads(tokenizer().backend_tokenizer.to_str())["model"]
    tokens = sorted(plain["vocab"], key=plain["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3, *[1] * (len(tokens) - 1)])
    writer.add_token_merges([" ".join(merge) for merge in plain["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    for name, tensor in model.state_dict().items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            # GGUF keeps the halves of each head's rotation side by side.
            count = heads if "q_proj" in name else groups
            tensor = tensor.view(count, 2, -1, tensor.shape[-1]).transpose(1, 2).reshape(tensor.shape)
        writer.add_tensor(_gguf_name(name), tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


_GGUF = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers": "blk",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def _gguf_name(name: str) -> str:
    for ours, theirs in _GGUF.items():
        name = name.replace(ours, theirs)
    return name
