"""The GPT-2 architecture for reading and writing: plain torch over tensors in the Hub's layout.

The embedded model and GPT-2 folders from the Hub run through it alike. Rows are padded on the right and each
has its own positions, so that a finished row can give its place to another at any step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from evenhand.neural.batching import length_sorted
from evenhand.neural.engine import Output, Prefix
from evenhand.neural.gpt2_weights import Block, Shape, lay_out
from evenhand.neural.reading import next_log_probs, padded

_READ_ROWS, _READ_TOKENS = 64, 4096
"""Texts and tokens whose hidden states are held at once while texts are read."""

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, query, key, value), each rows x heads x length x size, to the attended values."""


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
        self._weights = lay_out(shape, tensors, device=self.device, dtype=dtype)

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
        # Row by row at once: on a GPU a view costs as much time as a small product.
        layers = [(key.unbind(), value.unbind()) for key, value in attend.seen]
        return [
            Prefix(
                len(row),
                tuple((keys[index][:, : len(row)], values[index][:, : len(row)]) for keys, values in layers),
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

    def output(self) -> tuple[Tensor, Tensor | None]:
        """The output table (vocabulary x width) and its bias, of which GPT-2 has none."""
        return self._weights.table, None

    @torch.no_grad()
    def hidden_states(self, rows: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """For each row, in order, its last hidden states (tokens x width); empty where it has no tokens."""
        for at in range(0, len(rows), _READ_ROWS // 2):
            some = rows[at : at + _READ_ROWS // 2]
            hidden = self.hidden(padded([row or [0] for row in some], device=self.device), _causal)
            yield from (hidden[index, : len(row)] for index, row in enumerate(some))

    def hidden(self, tokens: Tensor, attend: Attend, *, positions: Tensor | None = None) -> Tensor:
        """The hidden states after the last norm, rows x length x width."""
        weights = self._weights
        table = weights.positions
        places = table[: tokens.shape[1]] if positions is None else table[positions]
        x = F.embedding(tokens, weights.words) + places
        for layer, block in enumerate(weights.blocks):
            x = self._run(layer, block, x, attend)
        return weights.last(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """The next-token scores of hidden states, in float32."""
        return self._weights.head(hidden).float()

    def _run(self, layer: int, block: Block, x: Tensor, attend: Attend) -> Tensor:
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
        alike: dict[int, list[tuple[int, Prefix]]] = {}
        for row, prefix in zip(rows, prefixes, strict=True):
            self._lengths[row : row + 1] = [prefix.length]
            alike.setdefault(prefix.length, []).append((row, prefix))
        for length, group in alike.items():
            if length:
                self._fill(torch.tensor([row for row, _ in group], device=self._model.device), group, length)

    def _fill(self, rows: Tensor, group: Sequence[tuple[int, Prefix]], length: int) -> None:
        """Begin rows with prefixes of one length: two copies a layer, however many rows."""
        layers = zip(*(prefix.layers for _, prefix in group), strict=True)
        for table, seen in zip(self._tables, layers, strict=True):
            for cells, parts in zip(table, zip(*seen, strict=True), strict=True):
                cells[rows, :, :length] = torch.stack(parts)

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
        with _planless(self._model.device):
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


def _planless(device: torch.device) -> AbstractContextManager[None]:
    """Attention without cuDNN, which plans anew for every length: 80 ms a token in half precision."""
    kinds = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return sdpa_kernel(kinds) if device.type == "cuda" else nullcontext()


def _causal(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def _zeros(size: Sequence[int], device: torch.device, dtype: torch.dtype) -> Tensor:
    # Zeros, not uninitialised memory: a masked NaN would still poison a sum.
    return torch.zeros(size, device=device, dtype=dtype)
