"""The GPT-2 architecture for scoring and generation: plain torch over tensors in the Hub's layout.

Both the embedded model and GPT-2 folders from the Hub use it. Rows are padded on the right and each has its
own positions, so that a new row can take the slot of a finished one at any step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from evenhand.generation.decode_attention import (
    COLUMN_MULTIPLE,
    AddNorm,
    add_norm,
    decode_attention,
    fused_add_norm,
    no_cudnn_sdpa,
    supports_decode_attention,
)
from evenhand.generation.engine import DecoderOutput, PrefillState
from evenhand.tensors.batching import map_by_length, next_log_probs, pad_rows
from evenhand.tensors.checkpoints import WeightReader, config_number
from evenhand.tensors.devices import to_device
from evenhand.tensors.linear_layer import LayerNormWeights, PackedLinear

_READ_ROWS, _READ_TOKENS = 64, 4096
"""Maximum texts and tokens whose hidden states are held at once while scoring."""

AttentionFunction = Callable[[int, Tensor], Tensor]
"""(layer, concatenated queries, keys and values, rows x length x 3 width) to the attention output."""
_AT_ONCE = 1 << 28
"""Bytes of prefixes copied into the cache at once."""
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
            vocabulary=config_number(config, "vocab_size", 50257),
            context=config_number(config, "n_positions", 1024),
            layers=config_number(config, "n_layer", 12),
            width=config_number(config, "n_embd", 768),
            heads=config_number(config, "n_head", 12),
            epsilon=config_number(config, "layer_norm_epsilon", 1e-5),
        )


class Gpt2Block(NamedTuple):
    """One layer, without the norm before it."""

    attention: PackedLinear
    projection: PackedLinear
    before_feedforward: LayerNormWeights
    up: PackedLinear
    down: PackedLinear


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


class Gpt2:
    """A GPT-2 model ready for inference: an ``Engine``.

    Args:
        shape: Its sizes.
        tensors: Its weights under the Hub's names, with or without ``transformer.``; other names are ignored.
        device: The device it runs on.
        dtype: The dtype of the computation; logits are float32, except in captured steps.
    """

    def __init__(
        self,
        shape: Gpt2Shape,
        tensors: Mapping[str, Tensor],
        *,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.shape = shape
        self.device = device or torch.device("cpu")
        self.dtype = dtype
        reader = _Reader(tensors, "transformer.", self.device, dtype, shape.epsilon)
        words = reader.table("wte.weight", shape.vocabulary, shape.width)
        # Most models tie input and output embeddings; untied ones store their own.
        is_shared = "lm_head.weight" not in tensors
        rows = words if is_shared else reader.tensor("lm_head.weight")
        missing = -len(rows) % _MULTIPLE.get(self.device.type, 1)
        padded = F.pad(rows, (0, 0, 0, missing)) if missing else rows
        self._head, self._table = PackedLinear(padded), padded[: shape.vocabulary]
        self._words = self._table if is_shared else words
        self._positions = reader.table("wpe.weight", shape.context, shape.width)
        self._blocks = [reader.block(f"h.{layer}.") for layer in range(shape.layers)]
        names = [*(f"h.{layer}.ln_1" for layer in range(shape.layers)), "ln_f"]
        self._norms = [reader.norm(name) for name in names]

    @property
    def context(self) -> int:
        """The maximum row length in tokens."""
        return self.shape.context

    @torch.no_grad()
    def prefill(self, rows: Sequence[Sequence[int]]) -> list[PrefillState]:
        """Prefill each row of tokens once; an empty row gives an empty prefix."""
        if not any(rows):
            return [PrefillState(0, ()) for _ in rows]
        keys_and_values: list[Tensor] = []

        def attend(_layer: int, mixed: Tensor) -> Tensor:
            parts = _split_heads(mixed, self.shape.heads)
            keys_and_values.extend(parts[1:])
            return _merge_heads(F.scaled_dot_product_attention(*parts, is_causal=True))

        self.compute_hidden(pad_rows(rows, device=self.device), attend)
        read = torch.stack(keys_and_values)
        read = read.view(-1, 2, *read.shape[1:])
        return [PrefillState(len(row), read, index) for index, row in enumerate(rows)]

    def create_cache(self, rows: int, length: int) -> Gpt2KVCache:
        """An empty cache for at most ``rows`` rows of at most ``length`` tokens."""
        return Gpt2KVCache(self, rows, min(length, self.context))

    create_static_cache = create_cache
    """The same: its tensors are allocated once."""

    @torch.no_grad()
    def log_probs(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        """The natural log-probability of every token but the first, for each row of at least two tokens."""

        def read(batch: Sequence[Sequence[int]]) -> list[Tensor]:
            tokens = pad_rows([row[:-1] for row in batch], device=self.device)
            hidden = self.compute_hidden(tokens, self._causal)
            return next_log_probs(hidden, batch, logits=self.logits, vocabulary=self.shape.vocabulary)

        return map_by_length(rows, read, rows=_READ_ROWS, tokens=_READ_TOKENS)

    def lm_head(self) -> tuple[Tensor, Tensor | None]:
        """The output matrix (vocabulary x width) and its bias, which is None for GPT-2."""
        return self._table, None

    @torch.no_grad()
    def hidden_states(self, rows: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """The last hidden states of each row, in order (tokens x width); empty if it has no tokens."""
        for at in range(0, len(rows), _READ_ROWS // 2):
            batch = rows[at : at + _READ_ROWS // 2]
            hidden = self.compute_hidden(
                pad_rows([row or [0] for row in batch], device=self.device), self._causal
            )
            yield from (hidden[index, : len(row)] for index, row in enumerate(batch))

    def compute_hidden(
        self,
        tokens: Tensor,
        attend: AttentionFunction,
        *,
        positions: Tensor | None = None,
        add: AddNorm = add_norm,
    ) -> Tensor:
        """The hidden states after the last norm, rows x length x width."""
        places = self._positions[: tokens.shape[1]] if positions is None else self._positions[positions]
        x, normed = add(F.embedding(tokens, self._words), places, self._norms[0])
        with no_cudnn_sdpa(self.device):
            # Each layer ends with the first norm of the next one, fused with the preceding sum.
            for layer, (block, after) in enumerate(zip(self._blocks, self._norms[1:], strict=True)):
                mixed = block.projection(attend(layer, block.attention(normed)))
                x, normed = add(x, mixed, block.before_feedforward)
                x, normed = add(x, block.down(block.up.tanh_gelu(normed)), after)
        return normed

    def logits(self, hidden: Tensor) -> Tensor:
        """The next-token logits of hidden states, in float32."""
        # Sliced last, so that the rows of the product stay aligned for fast reads on a GPU.
        return self._head(hidden).float()[..., : self.shape.vocabulary]

    def raw_logits(self, hidden: Tensor) -> Tensor:
        """The same in the model's precision: sampling reads only a few logits, and converts only those."""
        return self._head(hidden)[..., : self.shape.vocabulary]

    def _causal(self, layer: int, mixed: Tensor) -> Tensor:
        parts = _split_heads(mixed, self.shape.heads)
        return _merge_heads(F.scaled_dot_product_attention(*parts, is_causal=True))


class Gpt2KVCache:
    """The key-value cache of a batch, with a slot for each row in tensors allocated once."""

    def __init__(self, model: Gpt2, rows: int, length: int) -> None:
        shape = model.shape
        self._model = model
        # Zeros, not uninitialised memory: a masked NaN would still propagate into a sum.
        self._tables = torch.zeros(
            (shape.layers, 2, rows, shape.heads, length, shape.width // shape.heads),
            device=model.device,
            dtype=model.dtype,
        )
        self._lengths: list[int] = []
        self._columns = torch.arange(length, device=model.device)
        self._rows = torch.arange(rows, device=model.device)

    @property
    def bytes(self) -> int:
        """The memory of its tensors."""
        return self._tables.nbytes

    def fill(self, rows: Sequence[int], prefixes: Sequence[PrefillState]) -> None:
        """Start these rows from their prefixes; a row right after the last one is appended."""
        together: dict[int, list[tuple[int, PrefillState]]] = {}
        for row, prefix in zip(rows, prefixes, strict=True):
            self._lengths[row : row + 1] = [prefix.length]
            if prefix.length:
                together.setdefault(id(prefix.read), []).append((row, prefix))
        for group in together.values():
            read = cast(Tensor, group[0][1].read)
            size = max(1, _AT_ONCE // (read[:, :, 0].nbytes))
            for at in range(0, len(group), size):
                self._copy(read, [(row, prefix.row) for row, prefix in group[at : at + size]], read.shape[4])

    def _copy(self, read: Tensor, places: Sequence[tuple[int, int]], length: int) -> None:
        """Copy rows (to, from) of all layers at once; the source rows are gathered first.

        A row shorter than ``length`` also gets columns beyond its end; it overwrites them before reading.
        """
        targets, sources = to_device(torch.tensor(places), self._model.device).unbind(1)
        self._tables[:, :, targets, :, :length] = read[:, :, sources, :, :length]

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only these rows, renumbered in this order."""
        longest = max(self._lengths, default=0)
        moves = [(new, old) for new, old in enumerate(rows) if new != old]
        if moves:
            self._copy(self._tables, moves, longest)
        self._lengths = [self._lengths[row] for row in rows]

    @torch.no_grad()
    def step(self, tokens: Tensor) -> DecoderOutput:
        """Append one token to every row and return the next output."""
        positions = torch.tensor(self._lengths, device=self._model.device)
        self.count_token()
        hidden = self._advance(tokens, positions, self._attention_over(positions, max(self._lengths)))
        return DecoderOutput(hidden, self._model.logits(hidden))

    def padded_length(self, longest: int) -> int:
        """All columns if the kernel stops at each row's end, else the next multiple of 64."""
        length = len(self._columns)
        if supports_decode_attention(self._tables):
            return length
        return min(-(-longest // COLUMN_MULTIPLE) * COLUMN_MULTIPLE, length)

    @torch.no_grad()
    def advance(self, tokens: Tensor, positions: Tensor, *, longest: int) -> DecoderOutput:
        """Run a step of the first rows, with tokens at these positions, below ``longest``."""
        if supports_decode_attention(self._tables):
            attend = partial(decode_attention, self._tables, positions, self._model.shape.heads)
            hidden = self._advance(tokens, positions, attend, add=fused_add_norm)
        else:
            hidden = self._advance(tokens, positions, self._attention_over(positions, longest))
        return DecoderOutput(hidden, self._model.raw_logits(hidden))

    def count_token(self) -> None:
        """Count one more token in every row."""
        self._lengths = [length + 1 for length in self._lengths]

    def _advance(
        self, tokens: Tensor, positions: Tensor, attend: AttentionFunction, add: AddNorm = add_norm
    ) -> Tensor:
        """The hidden states of the new tokens, rows x width."""
        return self._model.compute_hidden(tokens[:, None], attend, positions=positions[:, None], add=add)[
            :, 0
        ]

    def _attention_over(self, positions: Tensor, longest: int) -> AttentionFunction:
        """Attention of each row's new token to all tokens of the row."""
        beyond = self._columns[:longest] > positions[:, None]
        mask = torch.zeros(beyond.shape, device=beyond.device, dtype=self._model.dtype)
        mask = mask.masked_fill_(beyond, -torch.inf)[:, None, None]
        count, rows = len(positions), self._rows[: len(positions)]

        def attend(layer: int, mixed: Tensor) -> Tensor:
            query, key, value = _split_heads(mixed, self._model.shape.heads)
            keys, values = self._tables[layer].unbind()
            keys[rows, :, positions] = key[:, :, 0]
            values[rows, :, positions] = value[:, :, 0]
            past = keys[:count, :, :longest], values[:count, :, :longest]
            return _merge_heads(F.scaled_dot_product_attention(query, *past, attn_mask=mask))

        return attend


def _split_heads(mixed: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value, each rows x heads x length x size."""
    rows, length, _ = mixed.shape
    query, key, value = mixed.view(rows, length, 3, heads, -1).permute(2, 0, 3, 1, 4).unbind()
    return query, key, value


def _merge_heads(attended: Tensor) -> Tensor:
    """Concatenate the outputs of the heads: rows x length x width."""
    return attended.transpose(1, 2).flatten(2)
