"""BERT, RoBERTa and DistilBERT as masked language models: plain torch over tensors in the Hub's layout.

Only one position of each row is needed, so the last layer's query and everything after it, above all the
output projection, are computed for that position; other positions only provide keys and values in that layer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from evenhand.tensors.checkpoints import WeightReader, config_number
from evenhand.tensors.linear_layer import LayerNormWeights, PackedLinear

Family = Literal["bert", "roberta", "distilbert"]


_RENAMED: Final[Mapping[Family, Mapping[str, str]]] = {
    "bert": {},
    "roberta": {
        "cls.predictions.transform.dense": "lm_head.dense",
        "cls.predictions.transform.LayerNorm": "lm_head.layer_norm",
        "cls.predictions": "lm_head",
    },
    "distilbert": {
        "encoder.layer": "transformer.layer",
        "attention.self.query": "attention.q_lin",
        "attention.self.key": "attention.k_lin",
        "attention.self.value": "attention.v_lin",
        "attention.output.dense": "attention.out_lin",
        "attention.output.LayerNorm": "sa_layer_norm",
        "intermediate.dense": "ffn.lin1",
        "output.dense": "ffn.lin2",
        "output.LayerNorm": "output_layer_norm",
        "cls.predictions.transform.dense": "vocab_transform",
        "cls.predictions.transform.LayerNorm": "vocab_layer_norm",
        "cls.predictions.decoder": "vocab_projector",
        "cls.predictions": "vocab_projector",
    },
}
"""Parts of BERT's weight names, and their names in another family; the first match counts."""
_OLD: Final = {"weight": "gamma", "bias": "beta"}
"""Names of a norm's weights in the first checkpoints, which are still on the Hub."""


@dataclass(frozen=True, slots=True)
class BertShape:
    """The sizes of a BERT-like model."""

    family: Family
    vocabulary: int
    context: int
    """The maximum row length; RoBERTa's first positions are padding and are not counted."""
    layers: int
    width: int
    heads: int
    epsilon: float = 1e-12
    offset: int = 0
    """The index of the first token in the position embeddings."""

    @classmethod
    def of(cls, config: Mapping[str, object]) -> BertShape | None:
        """The shape in a ``config.json``, or None if it is not a plain model of these three families."""
        family = config.get("model_type")
        distil = family == "distilbert"
        plain = (
            family in _RENAMED
            and config.get("activation" if distil else "hidden_act", "gelu") == "gelu"
            and config.get("position_embedding_type") in (None, "absolute")
            and not config.get("is_decoder", False)
            and config.get("embedding_size", config.get("hidden_size")) == config.get("hidden_size")
        )
        if not plain:
            return None
        offset = config_number(config, "pad_token_id", 1) + 1 if family == "roberta" else 0
        return cls(
            family=cast(Family, family),
            vocabulary=config_number(config, "vocab_size", 30522),
            context=config_number(config, "max_position_embeddings", 512) - offset,
            layers=config_number(config, "n_layers" if distil else "num_hidden_layers", 6 if distil else 12),
            width=config_number(config, "dim" if distil else "hidden_size", 768),
            heads=config_number(config, "n_heads" if distil else "num_attention_heads", 12),
            epsilon=1e-12 if distil else cast(float, config.get("layer_norm_eps", 1e-12)),
            offset=offset,
        )


class BertLayerWeights(NamedTuple):
    """One layer; the query is separate from key and value: the last layer needs it at one position only."""

    query: PackedLinear
    key_value: PackedLinear
    out: PackedLinear
    out_norm: LayerNormWeights
    up: PackedLinear
    down: PackedLinear
    down_norm: LayerNormWeights


@dataclass(frozen=True, slots=True)
class _Reader(WeightReader):
    """Arranges the weights for inference."""

    renamed: Mapping[str, str]

    def spellings(self, name: str) -> tuple[str, ...]:
        if self.renamed:
            name = re.sub("|".join(map(re.escape, self.renamed)), lambda part: self.renamed[part[0]], name)
        stem, _, last = name.rpartition(".")
        return (name, f"{stem}.{_OLD.get(last, last)}")

    def linear(self, *names: str) -> PackedLinear:
        """One linear layer for all the names, with concatenated outputs."""
        weight = torch.cat([self.tensor(f"{name}.weight") for name in names])
        return PackedLinear(weight, torch.cat([self.tensor(f"{name}.bias") for name in names]))

    def layer(self, number: int) -> BertLayerWeights:
        at = f"encoder.layer.{number}."
        return BertLayerWeights(
            query=self.linear(f"{at}attention.self.query"),
            key_value=self.linear(f"{at}attention.self.key", f"{at}attention.self.value"),
            out=self.linear(f"{at}attention.output.dense"),
            out_norm=self.norm(f"{at}attention.output.LayerNorm"),
            up=self.linear(f"{at}intermediate.dense"),
            down=self.linear(f"{at}output.dense"),
            down_norm=self.norm(f"{at}output.LayerNorm"),
        )


class Bert:
    """A BERT-like model ready for inference.

    Args:
        shape: Its sizes.
        tensors: Its weights under the Hub's names; the weights of other heads are ignored.
        device: The device it runs on.
        dtype: The dtype of the computation; logits are always float32.
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
        renamed = _RENAMED[shape.family]
        reader = _Reader(tensors, f"{shape.family}.", self.device, dtype, shape.epsilon, renamed)
        self._words = reader.table("embeddings.word_embeddings.weight", shape.vocabulary, shape.width)
        entries = shape.context + shape.offset
        positions = reader.table("embeddings.position_embeddings.weight", entries, shape.width)
        self._positions = positions[shape.offset :]
        if shape.family != "distilbert":
            # The embedding of the only segment.
            self._positions = self._positions + reader.tensor("embeddings.token_type_embeddings.weight")[0]
        self._norm = reader.norm("embeddings.LayerNorm")
        self._layers = [reader.layer(number) for number in range(shape.layers)]
        self._head = reader.linear("cls.predictions.transform.dense")
        self._head_norm = reader.norm("cls.predictions.transform.LayerNorm")
        # Most models tie input and output embeddings; untied ones store their own.
        decoder = "cls.predictions.decoder.weight"
        is_own = any(name in tensors for name in reader.spellings(decoder))
        table = reader.tensor(decoder) if is_own else self._words
        self._decoder = PackedLinear(table, reader.tensor("cls.predictions.bias"))

    @property
    def context(self) -> int:
        """The maximum row length in tokens."""
        return self.shape.context

    @torch.no_grad()
    def logits(self, tokens: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        """The logits at one position of each row, rows x vocabulary in float32.

        Args:
            tokens: Rows x columns; cells beyond a row's length are not read.
            lengths: The number of tokens of each row.
            places: The column of each row for which to compute logits.
        """
        layout = _Layout.of(tokens, lengths)
        columns = torch.arange(tokens.shape[1], device=self.device).expand_as(tokens)
        x = F.embedding(layout.pack(tokens), self._words) + self._positions[layout.pack(columns)]
        x = self._norm(x)
        for layer in self._layers[:-1]:
            x = self._run_everywhere(layer, x, layout)
        x = self._run_at_positions(self._layers[-1], x, layout, places)
        return self._decoder(self._head_norm(F.gelu(self._head(x)))).float()

    def _run_everywhere(self, layer: BertLayerWeights, x: Tensor, layout: _Layout) -> Tensor:
        """The layer's output at every position."""
        query = self._heads(layout.spread(layer.query(x)))
        return _finish_layer(layer, x, layout.pack(self._attend(query, layer.key_value(x), layout)))

    def _run_at_positions(
        self, layer: BertLayerWeights, x: Tensor, layout: _Layout, places: Tensor
    ) -> Tensor:
        """The layer's output at one position of each row."""
        states = layout.spread(x)[torch.arange(layout.rows, device=self.device), places]
        query = self._heads(layer.query(states)[:, None])
        return _finish_layer(layer, states, self._attend(query, layer.key_value(x), layout)[:, 0])

    def _attend(self, query: Tensor, key_value: Tensor, layout: _Layout) -> Tensor:
        key, value = (self._heads(part) for part in layout.spread(key_value).chunk(2, dim=-1))
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=layout.mask)
        return mixed.transpose(1, 2).flatten(2)

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.shape.heads, -1).transpose(1, 2)


def _finish_layer(layer: BertLayerWeights, x: Tensor, mixed: Tensor) -> Tensor:
    """The output of a layer from its input and the result of attention."""
    x = layer.out_norm(x + layer.out(mixed))
    return layer.down_norm(x + layer.down(F.gelu(layer.up(x))))


class _Layout(NamedTuple):
    """Packed rows: on a CPU padding would cost as much as text, and only attention needs separate rows."""

    rows: int
    columns: int
    cells: Tensor | None
    """Indices of the tokens among rows x columns; None if all cells are computed."""
    mask: Tensor | None
    """The attention mask, False for padding, rows x 1 x 1 x columns; None if no row is padded."""

    @classmethod
    def of(cls, tokens: Tensor, lengths: Tensor) -> _Layout:
        rows, columns = tokens.shape
        there = torch.arange(columns, device=tokens.device) < lengths[:, None]
        # A GPU has capacity to spare, and packing would need a synchronisation.
        if tokens.device.type != "cpu":
            return cls(rows, columns, None, there[:, None, None])
        if there.all():
            return cls(rows, columns, None, None)
        return cls(rows, columns, there.flatten().nonzero()[:, 0], there[:, None, None])

    def pack(self, padded: Tensor) -> Tensor:
        """Pack rows x columns (x width)."""
        cells = padded.flatten(0, 1)
        return cells if self.cells is None else cells.index_select(0, self.cells)

    def spread(self, packed: Tensor) -> Tensor:
        """Unpack states to rows x columns x width, with zeros as padding."""
        if self.cells is not None:
            empty = packed.new_zeros((self.rows * self.columns, packed.shape[1]))
            packed = empty.index_copy_(0, self.cells, packed)
        return packed.view(self.rows, self.columns, -1)
