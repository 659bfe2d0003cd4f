"""The BERT architecture with its masked head in plain torch; its state dict is the Hub's layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenhand.models.hub_layout import PAD
from tools.assets.layers import LayerNorm, Linear, Table, attend, token_loss
from tools.assets.train_tokenizer import VOCABULARY

_EPS = 1e-12
_TYPES = 2


@dataclass(frozen=True, slots=True)
class MaskedShape:
    """Size of a masked model. The defaults are the embedded one: 9.05 M parameters."""

    vocabulary: int = VOCABULARY
    context: int = 128
    layers: int = 6
    width: int = 256
    heads: int = 4

    def hub_config(self) -> dict[str, object]:
        """Return the `config.json` that `BertForMaskedLM` reads."""
        return {
            "model_type": "bert",
            "architectures": ["BertForMaskedLM"],
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.context,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": 4 * self.width,
            "hidden_act": "gelu",
            "layer_norm_eps": _EPS,
            "type_vocab_size": _TYPES,
            "tie_word_embeddings": True,
            "pad_token_id": PAD,
        }


class Embeddings(nn.Module):
    """Words plus positions, normalised. Segment types are zeros: the model is trained on one segment."""

    def __init__(self, shape: MaskedShape) -> None:
        super().__init__()
        self.word_embeddings = Table(shape.vocabulary, shape.width)
        self.position_embeddings = Table(shape.context, shape.width)
        self.token_type_embeddings = Table(_TYPES, shape.width, trained=False)
        self.LayerNorm = LayerNorm(shape.width, eps=_EPS)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the input of the first layer, in float32."""
        x = F.embedding(ids, self.word_embeddings.weight) + self.position_embeddings.weight[: ids.shape[1]]
        normed: Tensor = self.LayerNorm(x)
        return normed


class SelfAttention(nn.Module):
    """Query, key and value."""

    def __init__(self, shape: MaskedShape) -> None:
        super().__init__()
        self.query = Linear(shape.width, shape.width)
        self.key = Linear(shape.width, shape.width)
        self.value = Linear(shape.width, shape.width)
        self.heads = shape.heads

    def forward(self, x: Tensor) -> Tensor:
        """Return the attended input; the three products run as one."""
        parts = (self.query, self.key, self.value)
        weight = torch.cat([part.weight for part in parts]).to(x.dtype)
        bias = torch.cat([part.bias for part in parts]).to(x.dtype)
        return attend(F.linear(x, weight, bias), self.heads, causal=False)


class Output(nn.Module):
    """A product whose result is added to a residual and normalised."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.dense = Linear(inputs, width)
        self.LayerNorm = LayerNorm(width, eps=_EPS)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        """Return norm(residual + product)."""
        normed: Tensor = self.LayerNorm(residual + self.dense(x))
        return normed


class Attention(nn.Module):
    """Self-attention and its output."""

    def __init__(self, shape: MaskedShape) -> None:
        super().__init__()
        self.self = SelfAttention(shape)
        self.output = Output(shape.width, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sublayer's output."""
        mixed: Tensor = self.output(self.self(x), x)
        return mixed


class Intermediate(nn.Module):
    """The widening product and the exact GELU."""

    def __init__(self, shape: MaskedShape) -> None:
        super().__init__()
        self.dense = Linear(shape.width, 4 * shape.width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the widened input."""
        return F.gelu(self.dense(x))


class Layer(nn.Module):
    """Attention and feed-forward, each normalised after its residual."""

    def __init__(self, shape: MaskedShape) -> None:
        super().__init__()
        self.attention = Attention(shape)
        self.intermediate = Intermediate(shape)
        self.output = Output(4 * shape.width, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        x = self.attention(x)
        changed: Tensor = self.output(self.intermediate(x), x)
        return changed


class Encoder(nn.Module):
    """The layers."""

    def __init__(self, shape: MaskedShape) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(shape) for _ in range(shape.layers))


class Trunk(nn.Module):
    """Embeddings and layers."""

    def __init__(self, shape: MaskedShape) -> None:
        super().__init__()
        self.embeddings = Embeddings(shape)
        self.encoder = Encoder(shape)


class Transform(nn.Module):
    """The head's own layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = Linear(width, width)
        self.LayerNorm = LayerNorm(width, eps=_EPS)

    def forward(self, x: Tensor) -> Tensor:
        """Return what the output table is applied to."""
        normed: Tensor = self.LayerNorm(F.gelu(self.dense(x)))
        return normed


class Predictions(nn.Module):
    """The head: a layer, then the input table and a bias a token."""

    def __init__(self, shape: MaskedShape) -> None:
        super().__init__()
        self.transform = Transform(shape.width)
        self.bias = nn.Parameter(torch.zeros(shape.vocabulary))


class Head(nn.Module):
    """The Hub's name for where the predictions live."""

    def __init__(self, shape: MaskedShape) -> None:
        super().__init__()
        self.predictions = Predictions(shape)


class MaskedModel(nn.Module):
    """A masked language model whose output table is its input table."""

    def __init__(self, shape: MaskedShape) -> None:
        super().__init__()
        self.shape = shape
        self.bert = Trunk(shape)
        self.cls = Head(shape)
        self._layer: Callable[[nn.Module, Tensor], Tensor] = _run
        self._loss: Callable[[Predictions, Tensor, Tensor, Tensor], Tensor] = _loss

    def blocks(self) -> nn.ModuleList:
        """Return the layers, whose matrices Muon trains."""
        return self.bert.encoder.layer

    def compile_parts(self) -> None:
        """Compile one layer, shared by all, and the loss: quicker than compiling the whole graph."""
        self._layer = torch.compile(_run, dynamic=False)
        self._loss = torch.compile(_loss, dynamic=False)

    def compute_hidden(self, ids: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the last layer's output. There is no padding: every row is full."""
        x: Tensor = self.bert.embeddings(ids).to(dtype)
        for layer in self.bert.encoder.layer:
            x = self._layer(layer, x)
        return x

    def logits_at(self, ids: Tensor, positions: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return token scores at `positions` (rows, places), of shape (rows, places, vocabulary)."""
        head = self.cls.predictions
        hidden: Tensor = head.transform(_gather(self.compute_hidden(ids, dtype=dtype), positions))
        return F.linear(hidden, self._table().to(dtype), head.bias.to(dtype))

    def loss(
        self, ids: Tensor, positions: Tensor, targets: Tensor, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """Return the mean loss, in nats, of predicting `targets` at `positions`."""
        hidden = _gather(self.compute_hidden(ids, dtype=dtype), positions)
        return self._loss(self.cls.predictions, hidden, self._table(), targets)

    def _table(self) -> Tensor:
        return self.bert.embeddings.word_embeddings.weight


def _gather(hidden: Tensor, positions: Tensor) -> Tensor:
    return hidden.gather(1, positions[..., None].expand(-1, -1, hidden.shape[-1]))


def _run(layer: nn.Module, x: Tensor) -> Tensor:
    changed: Tensor = layer(x)
    return changed


def _loss(head: Predictions, hidden: Tensor, table: Tensor, targets: Tensor) -> Tensor:
    return token_loss(head.transform(hidden), table, head.bias, targets)
