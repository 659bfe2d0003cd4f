"""The sizes and weights of BERT, RoBERTa and DistilBERT with their masked heads, laid out for running.

The three are one architecture (learned positions, normalised after each residual, exact GELU) under different
names; a checkpoint of another shape goes through transformers instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, cast

import torch
from torch import Tensor

from evenhand.neural.linear import Linear
from evenhand.neural.weights import Norm, WeightReader

Family = Literal["bert", "roberta", "distilbert"]


class _Names(NamedTuple):
    """Where a family keeps its weights; ``{}`` is a layer's number."""

    prefix: str
    layer: str
    query: str
    key: str
    value: str
    out: str
    out_norm: str
    up: str
    down: str
    down_norm: str
    head: str
    head_norm: str
    decoder: str
    head_bias: str


_BERT_LAYER: Final = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
_NAMES: Final[Mapping[Family, _Names]] = {
    "bert": _Names(
        "bert.",
        "encoder.layer.{}.",
        *_BERT_LAYER,
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.decoder.weight",
        "cls.predictions.bias",
    ),
    "roberta": _Names(
        "roberta.",
        "encoder.layer.{}.",
        *_BERT_LAYER,
        "lm_head.dense",
        "lm_head.layer_norm",
        "lm_head.decoder.weight",
        "lm_head.bias",
    ),
    "distilbert": _Names(
        "distilbert.",
        "transformer.layer.{}.",
        "attention.q_lin",
        "attention.k_lin",
        "attention.v_lin",
        "attention.out_lin",
        "sa_layer_norm",
        "ffn.lin1",
        "ffn.lin2",
        "output_layer_norm",
        "vocab_transform",
        "vocab_layer_norm",
        "vocab_projector.weight",
        "vocab_projector.bias",
    ),
}
_OLD: Final = {"weight": "gamma", "bias": "beta"}
"""Names of a norm's weights in the first checkpoints, still on the Hub."""


@dataclass(frozen=True, slots=True)
class BertShape:
    """The sizes of a BERT-like model."""

    family: Family
    vocabulary: int
    context: int
    """The longest row; RoBERTa's first positions stand for padding and are not counted."""
    layers: int
    width: int
    heads: int
    epsilon: float = 1e-12
    offset: int = 0
    """The position of a row's first token in the table."""

    @classmethod
    def of(cls, config: Mapping[str, object]) -> BertShape | None:
        """The shape a ``config.json`` describes, or None where it is not one of the plain three."""
        family = config.get("model_type")
        if family == "distilbert":
            return _distilbert(config)
        plain = (
            family in ("bert", "roberta")
            and config.get("hidden_act", "gelu") == "gelu"
            and config.get("position_embedding_type") in (None, "absolute")
            and not config.get("is_decoder", False)
            and config.get("embedding_size", config.get("hidden_size")) == config.get("hidden_size")
        )
        if not plain:
            return None
        offset = _size(config, "pad_token_id", 1) + 1 if family == "roberta" else 0
        return cls(
            family=cast(Family, family),
            vocabulary=_size(config, "vocab_size", 30522),
            context=_size(config, "max_position_embeddings", 512) - offset,
            layers=_size(config, "num_hidden_layers", 12),
            width=_size(config, "hidden_size", 768),
            heads=_size(config, "num_attention_heads", 12),
            epsilon=cast(float, config.get("layer_norm_eps", 1e-12)),
            offset=offset,
        )


class Layer(NamedTuple):
    """One layer; the query apart from key and value, for the last one is asked for a single place."""

    query: Linear
    key_value: Linear
    out: Linear
    out_norm: Norm
    up: Linear
    down: Linear
    down_norm: Norm


class BertWeights(NamedTuple):
    """All of a model's weights."""

    words: Tensor
    positions: Tensor
    """With the vector of the only segment added."""
    norm: Norm
    layers: tuple[Layer, ...]
    head: Linear
    head_norm: Norm
    decoder: Linear


def lay_out(
    shape: BertShape, tensors: Mapping[str, Tensor], *, device: torch.device, dtype: torch.dtype
) -> BertWeights:
    """The weights of a state dict in the Hub's names; the names of other heads are ignored."""
    names = _NAMES[shape.family]
    reader = _Reader(tensors, names.prefix, device, dtype, shape.epsilon, names)
    words = reader.table("embeddings.word_embeddings.weight", shape.vocabulary, shape.width)
    positions = reader.table(
        "embeddings.position_embeddings.weight", shape.context + shape.offset, shape.width
    )[shape.offset :]
    if shape.family != "distilbert":
        positions = positions + reader.tensor("embeddings.token_type_embeddings.weight")[0]
    # Most models share their input table; one that does not stores its own.
    decoder = reader.tensor(names.decoder) if names.decoder in tensors else words
    return BertWeights(
        words=words,
        positions=positions,
        norm=reader.norm("embeddings.LayerNorm"),
        layers=tuple(reader.layer(number) for number in range(shape.layers)),
        head=reader.linear(names.head),
        head_norm=reader.norm(names.head_norm),
        decoder=Linear(decoder, reader.tensor(names.head_bias)),
    )


@dataclass(frozen=True, slots=True)
class _Reader(WeightReader):
    """Lays the weights out for running."""

    names: _Names

    def spellings(self, name: str) -> tuple[str, ...]:
        stem, _, part = name.rpartition(".")
        return (name, f"{stem}.{_OLD.get(part, part)}")

    def linear(self, *names: str) -> Linear:
        """One product for all the names, their outputs side by side."""
        weight = torch.cat([self.tensor(f"{name}.weight") for name in names])
        return Linear(weight, torch.cat([self.tensor(f"{name}.bias") for name in names]))

    def layer(self, number: int) -> Layer:
        names = self.names
        at = names.layer.format(number)
        return Layer(
            query=self.linear(at + names.query),
            key_value=self.linear(at + names.key, at + names.value),
            out=self.linear(at + names.out),
            out_norm=self.norm(at + names.out_norm),
            up=self.linear(at + names.up),
            down=self.linear(at + names.down),
            down_norm=self.norm(at + names.down_norm),
        )


def _distilbert(config: Mapping[str, object]) -> BertShape | None:
    if config.get("activation", "gelu") != "gelu":
        return None
    return BertShape(
        family="distilbert",
        vocabulary=_size(config, "vocab_size", 30522),
        context=_size(config, "max_position_embeddings", 512),
        layers=_size(config, "n_layers", 6),
        width=_size(config, "dim", 768),
        heads=_size(config, "n_heads", 12),
    )


def _size(config: Mapping[str, object], name: str, default: int) -> int:
    value = config.get(name)
    return default if value is None else cast(int, value)
