"""The sizes and weights of a GPT-2 model, found by the Hub's names and arranged for inference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from evenhand.generation.weight_reader import LayerNormWeights, WeightReader
from evenhand.tensors.linear_layer import PackedLinear

_N = TypeVar("_N", int, float)
_TANH_GELU = ("gelu_new", "gelu_pytorch_tanh")
# Options of a few GPT-2 variants, which run through transformers instead.
_VARIANTS = ("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention")
_MULTIPLE: Final = {"cuda": 64}
"""The output matrix is padded to a multiple of this many rows: with 50,257 a GPU cannot use its fast matrix
products in half precision (1.1 ms of a step of 6.9 ms, at 1,024 rows of GPT-2-medium's sizes)."""


@dataclass(frozen=True, slots=True)
class Gpt2Shape:
    """The sizes of a GPT-2 model."""

    vocabulary: int
    context: int
    layers: int
    width: int
    heads: int
    epsilon: float = 1e-5

    @classmethod
    def of(cls, config: Mapping[str, object]) -> Gpt2Shape | None:
        """The shape in a ``config.json``, or None if it is not plain GPT-2."""
        plain = (
            config.get("model_type") == "gpt2"
            and config.get("activation_function", "gelu_new") in _TANH_GELU
            and config.get("scale_attn_weights", True)
            and not any(config.get(variant, False) for variant in _VARIANTS)
        )
        if not plain:
            return None
        return cls(
            vocabulary=_number(config, "vocab_size", 50257),
            context=_number(config, "n_positions", 1024),
            layers=_number(config, "n_layer", 12),
            width=_number(config, "n_embd", 768),
            heads=_number(config, "n_head", 12),
            epsilon=_number(config, "layer_norm_epsilon", 1e-5),
        )


class Gpt2Block(NamedTuple):
    """One layer, without the norm before it."""

    attention: PackedLinear
    projection: PackedLinear
    before_feedforward: LayerNormWeights
    up: PackedLinear
    down: PackedLinear


class Gpt2Weights(NamedTuple):
    """All of a model's weights."""

    words: Tensor
    positions: Tensor
    blocks: tuple[Gpt2Block, ...]
    norms: tuple[LayerNormWeights, ...]
    """The norms before each block and after the last one."""
    head: PackedLinear
    """The output projection, possibly padded with rows of zeros."""
    table: Tensor
    """The output matrix without padding, for access to single rows."""


def load_weights(
    shape: Gpt2Shape, tensors: Mapping[str, Tensor], *, device: torch.device, dtype: torch.dtype
) -> Gpt2Weights:
    """Load weights from a state dict, with or without the prefix ``transformer.``; others are ignored."""
    reader = _Reader(tensors, "transformer.", device, dtype, shape.epsilon)
    words = reader.table("wte.weight", shape.vocabulary, shape.width)
    # Most models tie input and output embeddings; untied ones store their own.
    is_shared = "lm_head.weight" not in tensors
    padded = pad_rows(words if is_shared else reader.tensor("lm_head.weight"), _MULTIPLE.get(device.type, 1))
    table = padded[: shape.vocabulary]
    return Gpt2Weights(
        words=table if is_shared else words,
        positions=reader.table("wpe.weight", shape.context, shape.width),
        blocks=tuple(reader.block(f"h.{layer}.") for layer in range(shape.layers)),
        norms=(*(reader.norm(f"h.{layer}.ln_1") for layer in range(shape.layers)), reader.norm("ln_f")),
        head=PackedLinear(padded),
        table=table,
    )


def pad_rows(table: Tensor, multiple: int) -> Tensor:
    """The table padded with rows of zeros to a multiple of ``multiple``."""
    missing = -len(table) % multiple
    return F.pad(table, (0, 0, 0, missing)) if missing else table


class _Reader(WeightReader):
    """Arranges the weights for inference."""

    __slots__ = ()

    def linear(self, name: str) -> PackedLinear:
        # GPT-2 stores matrices as inputs x outputs.
        return PackedLinear(self.tensor(f"{name}.weight").T.contiguous(), self.tensor(f"{name}.bias"))

    def block(self, name: str) -> Gpt2Block:
        return Gpt2Block(
            self.linear(f"{name}attn.c_attn"),
            self.linear(f"{name}attn.c_proj"),
            self.norm(f"{name}ln_2"),
            self.linear(f"{name}mlp.c_fc"),
            self.linear(f"{name}mlp.c_proj"),
        )


def _number(config: Mapping[str, object], name: str, default: _N) -> _N:
    value = config.get(name)
    return default if value is None else cast(_N, value)
