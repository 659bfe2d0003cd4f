"""Any transformers language model as an engine; causal ones use their own key-value cache.

In that cache rows are left-padded and end at the same column, as transformers expects; a new row overwrites a
finished one, and columns that no row needs are removed.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from evenhand.core.errors import ModelError
from evenhand.generation.decode_attention import COLUMN_MULTIPLE, no_cudnn_sdpa
from evenhand.generation.engine import DecoderOutput, PrefillState, StaticKVCache
from evenhand.tensors.batching import MAX_LOGITS, map_by_length, pad_rows, token_log_probs
from evenhand.tensors.devices import to_device

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutputWithPast


_Layer = tuple[Tensor, Tensor]
_READ_ROWS = 32
_UNLIMITED = 1 << 20
_CONTEXT_FIELDS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")
_WINDOW_FIELDS = ("sliding_window", "attention_chunk_size")


class HubEngine:
    """A transformers model as an ``Engine``."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._accepted = inspect.signature(model.forward).parameters
        self.device: torch.device = model.device
        self.context = context_length(model)

    @torch.no_grad()
    def prefill(self, rows: Sequence[Sequence[int]]) -> list[PrefillState]:
        """Prefill each row of tokens once; an empty row gives an empty prefix."""
        if not any(rows):
            return [PrefillState(0, ()) for _ in rows]
        tokens = pad_rows(rows, device=self.device, left=True)
        cache = DynamicCache()
        self.forward(tokens, [len(row) for row in rows], cache)
        read = _tables(cache)
        return [PrefillState(len(row), read, index) for index, row in enumerate(rows)]

    def create_cache(self, rows: int, length: int) -> HubKVCache:
        """An empty cache that grows as rows are added."""
        return HubKVCache(self)

    def create_static_cache(self, rows: int, length: int) -> StaticKVCache | None:
        """An empty static cache.

        None if rows cannot have their own positions, or may exceed the attention window of a layer.
        """
        config = self._model.config.get_text_config()
        windows = [getattr(config, name, None) for name in _WINDOW_FIELDS]
        is_cut = any(window is not None and window < length for window in windows)
        if is_cut or "position_ids" not in self._accepted:
            return None
        return HubStaticKVCache(self, rows, min(length, self.context))

    @torch.no_grad()
    def log_probs(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        """The natural log-probability of every token but the first, for each row of at least two tokens."""
        budget = MAX_LOGITS // self._model.config.get_text_config().vocab_size
        return map_by_length(rows, self._read_states, rows=_READ_ROWS, tokens=budget)

    @torch.no_grad()
    def lm_head(self) -> tuple[Tensor, Tensor | None]:
        """The output matrix (vocabulary x width) and its bias.

        Raises an error if logits are scaled, capped or otherwise not a product of hidden states and matrix.
        """
        layer = self._model.get_output_embeddings()  # type: ignore[no-untyped-call]
        weight, bias = getattr(layer, "weight", None), getattr(layer, "bias", None)
        batch = self.create_cache(1, 2)
        batch.fill([0], self.prefill([[1]]))
        output = batch.step(torch.tensor([2], device=self.device))
        if weight is not None and weight.shape[-1] == output.hidden.shape[-1]:
            product = output.hidden @ weight.T + (0 if bias is None else bias)
            if (product.float() - output.logits).norm() <= 0.02 * output.logits.norm():
                return weight.detach(), None if bias is None else bias.detach()
        raise ModelError(
            f"the logits of {type(self._model).__name__} are not its hidden states times a matrix",
            expected="models such as GPT-2, GPT-NeoX, Llama, Mistral, Qwen, OPT",
            fix="use a mitigation that works on text: replacement",
        )

    @torch.no_grad()
    def hidden_states(self, rows: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """The last hidden states of each row, in order (tokens x width); empty if it has no tokens."""
        for start in range(0, len(rows), _READ_ROWS):
            batch = rows[start : start + _READ_ROWS]
            inputs = self._right_padded([row or [0] for row in batch])
            answer = self._model(**inputs, output_hidden_states=True)
            yield from (answer.hidden_states[-1][index, : len(row)] for index, row in enumerate(batch))

    @torch.no_grad()
    def last_logits(self, row: Sequence[int]) -> Tensor:
        """The logits after a row, computed in one pass without a cache."""
        tokens = torch.tensor([row], device=self.device)
        logits: Tensor = self._model(input_ids=tokens, use_cache=False).logits[0, -1].float()
        return logits

    def forward(
        self, tokens: Tensor, lengths: Sequence[int], cache: DynamicCache, *, hidden: bool = False
    ) -> CausalLMOutputWithPast:
        """Run the model on new tokens of right-aligned rows; each row then has ``length`` tokens."""
        size = tokens.shape[1]
        width = cache.get_seq_length() + size
        ends = to_device(torch.tensor(lengths), self.device)[:, None]
        # Counted from the right: rows are right-aligned.
        places = torch.arange(width, device=self.device) - width + ends
        mask = (places >= 0).long()
        return self.run(tokens, places[:, -size:].clamp(min=0), mask, cache, hidden=hidden)

    def run(
        self, tokens: Tensor, positions: Tensor, mask: Tensor, cache: DynamicCache, *, hidden: bool
    ) -> CausalLMOutputWithPast:
        """Run the model on new tokens at these positions."""
        # Not every architecture takes these; models without positions derive them from the mask.
        optional: dict[str, Tensor | int] = {"position_ids": positions, "logits_to_keep": 1}
        with no_cudnn_sdpa(self.device):
            answer: CausalLMOutputWithPast = self._model(
                input_ids=tokens,
                attention_mask=mask,
                past_key_values=cache,
                use_cache=True,
                output_hidden_states=hidden,
                **{name: value for name, value in optional.items() if name in self._accepted},
            )
        return answer

    def _read_states(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        inputs = self._right_padded(rows)
        logits, tokens = self._model(**inputs).logits.float(), inputs["input_ids"]
        return [
            token_log_probs(logits[index, : len(row) - 1], tokens[index, 1 : len(row)])
            for index, row in enumerate(rows)
        ]

    def _right_padded(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        tokens = pad_rows(rows, device=self.device)
        lengths = torch.tensor([len(row) for row in rows], device=self.device)
        mask = torch.arange(tokens.shape[1], device=self.device) < lengths[:, None]
        return {"input_ids": tokens, "attention_mask": mask.long()}


class HubKVCache:
    """A key-value cache with right-aligned rows."""

    def __init__(self, engine: HubEngine) -> None:
        self._engine = engine
        self._cache = DynamicCache()
        self._lengths: list[int] = []

    def fill(self, rows: Sequence[int], prefixes: Sequence[PrefillState]) -> None:
        """Start these rows from their prefixes; a row right after the last one is appended."""
        for row, prefix in zip(rows, prefixes, strict=True):
            self._lengths[row : row + 1] = [prefix.length]
        entries = [(row, prefix) for row, prefix in zip(rows, prefixes, strict=True) if prefix.length]
        if not self._cache.layers and entries:
            layers = cast("list[_Layer]", entries[0][1].read)
            self._cache = DynamicCache([_empty_tables(layer, len(self._lengths)) for layer in layers])
        tables = self._resize(_tables(self._cache))
        for index, table in enumerate(tables):
            for row, prefix in entries:
                for cells, read in zip(table, cast("list[_Layer]", prefix.read)[index], strict=True):
                    source = read[prefix.row, :, read.shape[2] - prefix.length :]
                    cells[row, :, cells.shape[2] - prefix.length :] = source

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only these rows, renumbered in this order."""
        self._lengths = [self._lengths[row] for row in rows]
        indices = torch.tensor(rows, dtype=torch.long, device=self._engine.device)
        self._resize([(keys[indices], values[indices]) for keys, values in _tables(self._cache)])

    @torch.no_grad()
    def step(self, tokens: Tensor) -> DecoderOutput:
        """Append one token to every row and return the next output."""
        self._lengths = [length + 1 for length in self._lengths]
        return last_output(self._engine.forward(tokens[:, None], self._lengths, self._cache, hidden=True))

    def _resize(self, tables: Sequence[_Layer]) -> list[_Layer]:
        """Store the tensors in the cache, cut or padded to the current rows and the longest of them."""
        rows, width = len(self._lengths), max(self._lengths, default=0)
        fitted = [
            (_resize_cells(keys, rows, width), _resize_cells(values, rows, width)) for keys, values in tables
        ]
        for layer, table in zip(cast("list[DynamicLayer]", self._cache.layers), fitted, strict=True):
            layer.keys, layer.values = table
        return fitted


class HubMasked:
    """A transformers model as a ``MaskedEngine``; its output layer runs over all positions."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self.device: torch.device = model.device
        self.context = context_length(model)

    @torch.no_grad()
    def logits(self, tokens: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        """The logits at one position of each row, rows x vocabulary in float32."""
        mask = torch.arange(tokens.shape[1], device=self.device) < lengths[:, None]
        scores: Tensor = self._model(input_ids=tokens, attention_mask=mask.long()).logits
        return scores[torch.arange(len(tokens), device=self.device), places].float()


def last_output(answer: CausalLMOutputWithPast) -> DecoderOutput:
    """The output of a model after the last token of each row."""
    states, logits = cast("tuple[Tensor, ...]", answer.hidden_states), cast(Tensor, answer.logits)
    return DecoderOutput(states[-1][:, -1], logits[:, -1].float())


def check_cache(engine: HubEngine, name: str) -> None:
    """Raise an error if stepwise decoding differs from a single pass, as in state-space models."""
    try:
        batch = engine.create_cache(2, 3)
        batch.fill([0, 1], engine.prefill([[1, 2], [1]]))
        stepwise = batch.step(torch.tensor([3, 2], device=engine.device)).logits
        at_once = torch.stack([engine.last_logits([1, 2, 3]), engine.last_logits([1, 2])])
    except Exception as error:
        # The exceptions of architectures without such a cache vary.
        raise _no_cache(name, str(error)) from error
    if not at_once.amax(-1).isfinite().all():
        raise ModelError(
            f"the logits of the model {name!r} overflow: they contain NaN or infinity",
            expected="a model with finite logits",
            fix="load it with another dtype: bfloat16 and float32 have a far larger range than float16",
        )
    # Far above the rounding error of half precision, far below the effect of a lost state.
    if (stepwise - at_once).norm() > 0.1 * at_once.norm():
        raise _no_cache(name, "its next tokens change when a text is processed step by step")


def _no_cache(name: str, reason: str) -> ModelError:
    return ModelError(
        f"the model {name!r} does not run with a key-value cache: {reason}",
        expected="attention models such as GPT-2, GPT-NeoX, Llama, Mistral, Qwen, OPT, CTRL",
        fix="serve the model elsewhere and use it as endpoint:URL#MODEL",
    )


def context_length(model: PreTrainedModel) -> int:
    """The context length of a model, in tokens."""
    config = model.config.get_text_config()
    sizes = [getattr(config, name, None) for name in _CONTEXT_FIELDS]
    return next((size for size in sizes if isinstance(size, int) and size > 0), _UNLIMITED)


def _tables(cache: DynamicCache) -> list[_Layer]:
    return [
        (cast(Tensor, layer.keys), cast(Tensor, layer.values))
        for layer in cast("list[DynamicLayer]", cache.layers)
    ]


def _empty_tables(layer: _Layer, rows: int) -> _Layer:
    """Empty keys and values with the sizes of a layer."""
    keys, values = (part.new_zeros((rows, part.shape[1], 0, part.shape[3])) for part in layer)
    return keys, values


def _resize_cells(cells: Tensor, rows: int, width: int) -> Tensor:
    """The tensor with this many rows and its last ``width`` columns, padded with zeros."""
    cells = cells[:, :, max(0, cells.shape[2] - width) :]
    missing = width - cells.shape[2], rows - cells.shape[0]
    return F.pad(cells, (0, 0, missing[0], 0, 0, 0, 0, missing[1])) if any(missing) else cells


class _StaticLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """A layer's keys and values; the position of the next ones is set before each step."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table = keys, values
        self.keys, self.values, self.is_initialized = keys, values, True
        self.dtype, self.device = keys.dtype, keys.device

    def set_position(self, rows: Tensor, positions: Tensor, longest: int) -> None:
        """Set the position of the next keys and values, and the number of columns to attend to."""
        self._rows, self._positions, self._longest = rows, positions, longest

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Write keys and values of one token per row; return all that may be attended to."""
        count, visible = len(self._rows), []
        for cells, new in zip(self.table, (key_states, value_states), strict=True):
            cells[self._rows, :, self._positions] = new[:, :, 0]
            visible.append(cells[:count, :, : self._longest])
        return visible[0], visible[1]

    def get_seq_length(self) -> int:
        """The number of past columns reported to the model."""
        return self._longest - 1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The number of columns to attend to, and the first one."""
        return self._longest, 0


class HubStaticKVCache:
    """A ``StaticKVCache`` with a separate position for each row."""

    def __init__(self, engine: HubEngine, rows: int, length: int) -> None:
        self._engine, self._columns = engine, torch.arange(length, device=engine.device)
        self._places = torch.arange(rows, device=engine.device)
        self._lengths: list[int] = []
        self._prefixes: dict[int, PrefillState] = {}
        # Prefilling one token shows the sizes of keys and values of each layer.
        sample = cast("list[tuple[Tensor, Tensor]]", engine.prefill([[0]])[0].read)
        self._layers = [
            _StaticLayer(*(part.new_zeros(rows, part.shape[1], length, part.shape[3]) for part in layer))
            for layer in sample
        ]
        self._cache = DynamicCache()
        self._cache.layers = list(self._layers)

    @property
    def bytes(self) -> int:
        """The memory of its tensors."""
        return sum(cells.nbytes for layer in self._layers for cells in layer.table)

    def fill(self, rows: Sequence[int], prefixes: Sequence[PrefillState]) -> None:
        """Start these rows from their prefixes; a row right after the last one is appended."""
        self._prefixes |= dict(zip(rows, prefixes, strict=True))
        groups: dict[tuple[int, int], list[tuple[int, PrefillState]]] = {}
        for row, prefix in zip(rows, prefixes, strict=True):
            self._lengths[row : row + 1] = [prefix.length]
            groups.setdefault((id(prefix.read), prefix.length), []).append((row, prefix))
        for (_, length), group in groups.items():
            if length:
                self._fill(group, length)

    def _fill(self, group: Sequence[tuple[int, PrefillState]], length: int) -> None:
        """Start rows from prefixes of one length that were prefilled together, right-aligned."""
        read = cast("list[tuple[Tensor, Tensor]]", group[0][1].read)
        places = torch.tensor([(row, prefix.row) for row, prefix in group])
        targets, sources = to_device(places, self._engine.device).unbind(1)
        for layer, parts in zip(self._layers, read, strict=True):
            for cells, part in zip(layer.table, parts, strict=True):
                cells[targets, :, :length] = part[sources, :, part.shape[2] - length :]

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only these rows, renumbered in this order."""
        longest = max(self._lengths, default=0)
        moves = [(new, old) for new, old in enumerate(rows) if new != old]
        if moves:
            targets, sources = to_device(torch.tensor(moves), self._engine.device).unbind(1)
            for layer in self._layers:
                for cells in layer.table:
                    cells[targets, :, :longest] = cells[sources, :, :longest]
        self._lengths = [self._lengths[row] for row in rows]

    @torch.no_grad()
    def step(self, tokens: Tensor) -> DecoderOutput:
        """Append one token to every row; uses the model's own cache while rows contain only prefixes."""
        prefixes, lengths = self._prefixes, self._lengths
        self.count_token()
        if all(row in prefixes and prefixes[row].length == length for row, length in enumerate(lengths)):
            plain = HubKVCache(self._engine)
            plain.fill(range(len(lengths)), [prefixes[row] for row in range(len(lengths))])
            return plain.step(tokens)
        positions = torch.tensor(lengths, device=self._engine.device)
        return self.advance(tokens, positions, longest=max(lengths) + 1)

    def padded_length(self, longest: int) -> int:
        """The next multiple of 64."""
        return min(-(-longest // COLUMN_MULTIPLE) * COLUMN_MULTIPLE, len(self._columns))

    @torch.no_grad()
    def advance(self, tokens: Tensor, positions: Tensor, *, longest: int) -> DecoderOutput:
        """Run a step of the first rows, with tokens at these positions, below ``longest``."""
        for layer in self._layers:
            layer.set_position(self._places[: len(tokens)], positions, longest)
        kind = self._layers[0].table[0].dtype
        beyond = self._columns[:longest] > positions[:, None]
        mask = torch.zeros(beyond.shape, device=beyond.device, dtype=kind)
        mask = mask.masked_fill_(beyond, torch.finfo(kind).min)[:, None, None]
        answer = self._engine.run(tokens[:, None], positions[:, None], mask, self._cache, hidden=True)
        return last_output(answer)

    def count_token(self) -> None:
        """Count one more token in every row."""
        self._prefixes = {}
        self._lengths = [length + 1 for length in self._lengths]
