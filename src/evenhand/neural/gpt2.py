"""The GPT-2 architecture for reading and writing: plain torch over tensors in the Hub's layout.

The embedded model and GPT-2 folders from the Hub run through it alike. Rows are padded on the right and each
has its own positions, so that a finished row can give its place to another at any step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from evenhand.core.errors import ModelError
from evenhand.neural.batching import length_sorted
from evenhand.neural.engine import Output, Prefix
from evenhand.neural.linear import Linear
from evenhand.neural.reading import next_log_probs, padded

_N = TypeVar("_N", int, float)
_TANH_GELU = ("gelu_new", "gelu_pytorch_tanh")
# Variants of GPT-2 that a few checkpoints ask for; they go through transformers instead.
_VARIANTS = ("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention")

_READ_ROWS, _READ_TOKENS = 64, 4096
"""Texts and tokens whose hidden states are held at once while texts are read."""

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, query, key, value), each rows x heads x length x size, to the attended values."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a GPT-2 model."""

    vocabulary: int
    context: int
    layers: int
    width: int
    heads: int
    epsilon: float = 1e-5

    @classmethod
    def of(cls, config: Mapping[str, object]) -> Shape | None:
        """The shape a ``config.json`` describes, or None where it is not plain GPT-2."""
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


class Norm(NamedTuple):
    """Layer normalisation with its gain and bias."""

    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        """The normalised rows."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


class _Block(NamedTuple):
    before_attention: Norm
    attention: Linear
    projection: Linear
    before_feedforward: Norm
    up: Linear
    down: Linear


class Gpt2:
    """A GPT-2 model ready to run: an ``Engine``.

    Args:
        shape: Its sizes.
        tensors: Its weights under the Hub's names, with or without ``transformer.``; other names are ignored.
        device: Where it runs.
        dtype: What it computes in; logits are float32 always.
    """

    def __init__(
        self,
        shape: Shape,
        tensors: Mapping[str, Tensor],
        *,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.shape = shape
        self.device = device or torch.device("cpu")
        self.dtype = dtype
        reader = _Reader(tensors, self.device, dtype, shape.epsilon)
        self._words = reader.table("wte.weight", shape.vocabulary, shape.width)
        self._positions = reader.table("wpe.weight", shape.context, shape.width)
        self._blocks = [reader.block(f"h.{layer}.") for layer in range(shape.layers)]
        self._last = reader.norm("ln_f")
        self._head = Linear(reader.tensor("lm_head.weight") if "lm_head.weight" in tensors else self._words)

    @property
    def context(self) -> int:
        """The longest row in tokens."""
        return self.shape.context

    @torch.no_grad()
    def prefill(self, rows: Sequence[Sequence[int]]) -> list[Prefix]:
        """Read each row of tokens once; an empty row gives an empty prefix."""
        if not any(rows):
            return [Prefix(0, ()) for _ in rows]
        attend = _Remembering()
        self.hidden(padded(rows, device=self.device), attend)
        return [
            Prefix(
                len(row),
                tuple((key[index, :, : len(row)], value[index, :, : len(row)]) for key, value in attend.seen),
            )
            for index, row in enumerate(rows)
        ]

    def batch(self, rows: int, length: int) -> Gpt2Batch:
        """An empty batch for at most ``rows`` rows of at most ``length`` tokens."""
        return Gpt2Batch(self, rows, min(length, self.context))

    @torch.no_grad()
    def log_probs(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        """For each row of two tokens or more the natural log-probability of every token but the first."""
        found: dict[int, Tensor] = {}
        for indices in length_sorted([len(row) for row in rows], rows=_READ_ROWS, tokens=_READ_TOKENS):
            some = [rows[index] for index in indices]
            hidden = self.hidden(padded([row[:-1] for row in some], device=self.device), _causal)
            parts = next_log_probs(hidden, some, logits=self.logits, vocabulary=self.shape.vocabulary)
            found.update(zip(indices, parts, strict=True))
        return [found[index] for index in range(len(rows))]

    def hidden(self, tokens: Tensor, attend: Attend, *, positions: Tensor | None = None) -> Tensor:
        """The hidden states after the last norm, rows x length x width."""
        places = self._positions[: tokens.shape[1]] if positions is None else self._positions[positions]
        x = F.embedding(tokens, self._words) + places
        for layer, block in enumerate(self._blocks):
            x = self._run(layer, block, x, attend)
        return self._last(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """The next-token scores of hidden states, in float32."""
        return self._head(hidden).float()

    def _run(self, layer: int, block: _Block, x: Tensor, attend: Attend) -> Tensor:
        rows, length, width = x.shape
        mixed = block.attention(block.before_attention(x))
        parts = mixed.view(rows, length, 3, self.shape.heads, -1).permute(2, 0, 3, 1, 4)
        attended = attend(layer, parts[0], parts[1], parts[2]).transpose(1, 2).reshape(rows, length, width)
        x = x + block.projection(attended)
        return x + block.down(F.gelu(block.up(block.before_feedforward(x)), approximate="tanh"))


class Gpt2Batch:
    """Rows being written; every row has its place in tables allocated once."""

    def __init__(self, model: Gpt2, rows: int, length: int) -> None:
        shape = model.shape
        size = (rows, shape.heads, length, shape.width // shape.heads)
        self._model = model
        self._tables = [
            (_zeros(size, model.device, model.dtype), _zeros(size, model.device, model.dtype))
            for _ in range(shape.layers)
        ]
        self._lengths: list[int] = []
        self._columns = torch.arange(length, device=model.device)
        self._rows = torch.arange(rows, device=model.device)

    def fill(self, rows: Sequence[int], prefixes: Sequence[Prefix]) -> None:
        """Begin each of those rows with a prefix; a row just after the last one is added."""
        for row, prefix in zip(rows, prefixes, strict=True):
            self._lengths[row : row + 1] = [prefix.length]
            for table, layer in zip(self._tables, prefix.layers, strict=False):
                for cells, seen in zip(table, layer, strict=True):
                    cells[row, :, : prefix.length] = seen

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all rows but these, which are in increasing order."""
        longest = max(self._lengths, default=0)
        for new, old in enumerate(rows):
            if new != old:
                for table in self._tables:
                    for cells in table:
                        cells[new, :, :longest] = cells[old, :, :longest]
        self._lengths = [self._lengths[row] for row in rows]

    @torch.no_grad()
    def step(self, tokens: Tensor) -> Output:
        """Append one token to every row and say what may follow."""
        positions = torch.tensor(self._lengths, device=self._model.device)
        self._lengths = [length + 1 for length in self._lengths]
        attend = _Cached(
            self._tables, self._rows[: len(positions)], positions, self._mask(positions), max(self._lengths)
        )
        hidden = self._model.hidden(tokens[:, None], attend, positions=positions[:, None])[:, 0]
        return Output(hidden, self._model.logits(hidden))

    def _mask(self, positions: Tensor) -> Tensor:
        beyond = self._columns[: max(self._lengths)] > positions[:, None]
        mask = torch.zeros(beyond.shape, device=beyond.device, dtype=self._model.dtype)
        return mask.masked_fill_(beyond, -torch.inf)[:, None, None]


@dataclass(frozen=True, slots=True)
class _Cached:
    """Attention of each row's new token to all that the row holds."""

    tables: Sequence[tuple[Tensor, Tensor]]
    rows: Tensor
    positions: Tensor
    mask: Tensor
    longest: int

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys, values = self.tables[layer]
        keys[self.rows, :, self.positions] = key[:, :, 0]
        values[self.rows, :, self.positions] = value[:, :, 0]
        count = len(self.rows)
        seen = keys[:count, :, : self.longest], values[:count, :, : self.longest]
        return F.scaled_dot_product_attention(query, *seen, attn_mask=self.mask)


@dataclass(frozen=True, slots=True)
class _Remembering:
    """Causal attention that keeps the keys and values it saw."""

    seen: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        self.seen.append((key, value))
        return _causal(layer, query, key, value)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Finds weights by name and lays them out for running."""

    tensors: Mapping[str, Tensor]
    device: torch.device
    dtype: torch.dtype
    epsilon: float

    def tensor(self, name: str) -> Tensor:
        found = self.tensors.get(name, self.tensors.get(f"transformer.{name}"))
        if found is None:
            raise ModelError(
                f"the weights lack {name!r}",
                accepted="a complete GPT-2 checkpoint",
                todo="save or download the model again",
            )
        return found.to(self.device, self.dtype)

    def table(self, name: str, entries: int, width: int) -> Tensor:
        found = self.tensor(name)
        if found.shape != (entries, width):
            raise ModelError(
                f"{name!r} is {' x '.join(map(str, found.shape))}, not {entries} x {width}",
                accepted="weights of the sizes config.json names",
                todo="save or download the model again",
            )
        return found

    def norm(self, name: str) -> Norm:
        return Norm(self.tensor(f"{name}.weight"), self.tensor(f"{name}.bias"), self.epsilon)

    def linear(self, name: str) -> Linear:
        # GPT-2 stores inputs x outputs.
        return Linear(self.tensor(f"{name}.weight").T.contiguous(), self.tensor(f"{name}.bias"))

    def block(self, name: str) -> _Block:
        return _Block(
            self.norm(f"{name}ln_1"),
            self.linear(f"{name}attn.c_attn"),
            self.linear(f"{name}attn.c_proj"),
            self.norm(f"{name}ln_2"),
            self.linear(f"{name}mlp.c_fc"),
            self.linear(f"{name}mlp.c_proj"),
        )


def _number(config: Mapping[str, object], name: str, default: _N) -> _N:
    value = config.get(name)
    return default if value is None else cast(_N, value)


def _causal(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def _zeros(size: Sequence[int], device: torch.device, dtype: torch.dtype) -> Tensor:
    # Zeros, not uninitialised memory: a masked NaN would still poison a sum.
    return torch.zeros(size, device=device, dtype=dtype)
