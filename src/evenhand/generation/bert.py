"""BERT, RoBERTa and DistilBERT as masked language models: plain torch over tensors in the Hub's layout.

One place of each row is asked for, so the last layer's query and everything after it, the output table above
all, are computed there alone; the other places of that layer give only their keys and values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from evenhand.generation.weight_reader import LayerNormWeights, WeightReader
from evenhand.tensors.linear_layer import PackedLinear

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


class BertLayerWeights(NamedTuple):
    """One layer; the query apart from key and value, for the last one is asked for a single place."""

    query: PackedLinear
    key_value: PackedLinear
    out: PackedLinear
    out_norm: LayerNormWeights
    up: PackedLinear
    down: PackedLinear
    down_norm: LayerNormWeights


class BertWeights(NamedTuple):
    """All of a model's weights."""

    words: Tensor
    positions: Tensor
    """With the vector of the only segment added."""
    norm: LayerNormWeights
    layers: tuple[BertLayerWeights, ...]
    head: PackedLinear
    head_norm: LayerNormWeights
    decoder: PackedLinear


def load_weights(
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
        decoder=PackedLinear(decoder, reader.tensor(names.head_bias)),
    )


@dataclass(frozen=True, slots=True)
class _Reader(WeightReader):
    """Lays the weights out for running."""

    names: _Names

    def spellings(self, name: str) -> tuple[str, ...]:
        stem, _, part = name.rpartition(".")
        return (name, f"{stem}.{_OLD.get(part, part)}")

    def linear(self, *names: str) -> PackedLinear:
        """One product for all the names, their outputs side by side."""
        weight = torch.cat([self.tensor(f"{name}.weight") for name in names])
        return PackedLinear(weight, torch.cat([self.tensor(f"{name}.bias") for name in names]))

    def layer(self, number: int) -> BertLayerWeights:
        names = self.names
        at = names.layer.format(number)
        return BertLayerWeights(
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


class Bert:
    """A BERT-like model ready to run: a ``MaskedEngine``.

    Args:
        shape: Its sizes.
        tensors: Its weights under the Hub's names; the names of other heads are ignored.
        device: Where it runs.
        dtype: What it computes in; logits are float32 always.
    """

    def __init__(
        self,
        shape: BertShape,
        tensors: Mapping[str, Tensor],
        *,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.shape = shape
        self.device = device or torch.device("cpu")
        self.dtype = dtype
        self._weights = load_weights(shape, tensors, device=self.device, dtype=dtype)

    @property
    def context(self) -> int:
        """The longest row in tokens."""
        return self.shape.context

    @torch.no_grad()
    def logits(self, tokens: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        """What may stand at one place of each row, rows x vocabulary in float32."""
        weights, layout = self._weights, _Layout.of(tokens, lengths)
        columns = torch.arange(tokens.shape[1], device=self.device).expand_as(tokens)
        x = F.embedding(layout.pack(tokens), weights.words) + weights.positions[layout.pack(columns)]
        x = weights.norm(x)
        for layer in weights.layers[:-1]:
            x = self._run_everywhere(layer, x, layout)
        x = self._run_at_positions(weights.layers[-1], x, layout, places)
        return weights.decoder(weights.head_norm(F.gelu(weights.head(x)))).float()

    def _run_everywhere(self, layer: BertLayerWeights, x: Tensor, layout: _Layout) -> Tensor:
        """The layer's output at every place."""
        query = self._heads(layout.spread(layer.query(x)))
        return _finish_layer(layer, x, layout.pack(self._attend(query, layer.key_value(x), layout)))

    def _run_at_positions(
        self, layer: BertLayerWeights, x: Tensor, layout: _Layout, places: Tensor
    ) -> Tensor:
        """The layer's output at one place of each row."""
        asked = layout.spread(x)[torch.arange(layout.rows, device=self.device), places]
        query = self._heads(layer.query(asked)[:, None])
        return _finish_layer(layer, asked, self._attend(query, layer.key_value(x), layout)[:, 0])

    def _attend(self, query: Tensor, key_value: Tensor, layout: _Layout) -> Tensor:
        key, value = (self._heads(part) for part in layout.spread(key_value).chunk(2, dim=-1))
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=layout.mask)
        return mixed.transpose(1, 2).flatten(2)

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.shape.heads, -1).transpose(1, 2)


def _finish_layer(layer: BertLayerWeights, x: Tensor, mixed: Tensor) -> Tensor:
    """What a layer makes of states and what they attended to."""
    x = layer.out_norm(x + layer.out(mixed))
    return layer.down_norm(x + layer.down(F.gelu(layer.up(x))))


class _Layout(NamedTuple):
    """Rows laid end to end: on a CPU padding would cost as much as text, and only attention needs rows."""

    rows: int
    columns: int
    cells: Tensor | None
    """Where the tokens lie among rows x columns; None where all cells are computed."""
    mask: Tensor | None
    """False where a row has ended, rows x 1 x 1 x columns; None where every row is full."""

    @classmethod
    def of(cls, tokens: Tensor, lengths: Tensor) -> _Layout:
        rows, columns = tokens.shape
        there = torch.arange(columns, device=tokens.device) < lengths[:, None]
        # An accelerator has room to spare, and would have to be waited for.
        if tokens.device.type != "cpu":
            return cls(rows, columns, None, there[:, None, None])
        if there.all():
            return cls(rows, columns, None, None)
        return cls(rows, columns, there.flatten().nonzero()[:, 0], there[:, None, None])

    def pack(self, padded: Tensor) -> Tensor:
        """Rows x columns (x width) end to end."""
        cells = padded.flatten(0, 1)
        return cells if self.cells is None else cells.index_select(0, self.cells)

    def spread(self, packed: Tensor) -> Tensor:
        """States end to end as rows x columns x width, zero where a row has ended."""
        if self.cells is not None:
            empty = packed.new_zeros((self.rows * self.columns, packed.shape[1]))
            packed = empty.index_copy_(0, self.cells, packed)
        return packed.view(self.rows, self.columns, -1)
