"""Any language model of transformers as an engine; a causal one through its own key-value cache.

There rows are padded on the left and end together, as transformers expects; a new row is written over a
finished one, and columns no row needs any more are cut off.
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
    from transformers.cache_utils import DynamicLayer
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
        """Read each row of tokens once; an empty row gives an empty prefix."""
        if not any(rows):
            return [PrefillState(0, ()) for _ in rows]
        tokens = pad_rows(rows, device=self.device, left=True)
        cache = DynamicCache()
        self.forward(tokens, [len(row) for row in rows], cache)
        read = _tables(cache)
        return [PrefillState(len(row), read, index) for index, row in enumerate(rows)]

    def create_cache(self, rows: int, length: int) -> HubKVCache:
        """An empty batch; it grows as rows come."""
        return HubKVCache(self)

    def create_static_cache(self, rows: int, length: int) -> StaticKVCache | None:
        """An empty batch in tables that stay.

        None where rows cannot have positions of their own, or would outgrow what a layer looks at.
        """
        config = self._model.config.get_text_config()
        windows = [getattr(config, name, None) for name in _WINDOW_FIELDS]
        is_cut = any(window is not None and window < length for window in windows)
        if is_cut or "position_ids" not in self._accepted:
            return None
        return HubStaticKVCache(self, rows, min(length, self.context))

    @torch.no_grad()
    def log_probs(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        """For each row of two tokens or more the natural log-probability of every token but the first."""
        budget = MAX_LOGITS // self._model.config.get_text_config().vocab_size
        return map_by_length(rows, self._read_states, rows=_READ_ROWS, tokens=budget)

    @torch.no_grad()
    def lm_head(self) -> tuple[Tensor, Tensor | None]:
        """The output table (vocabulary x width) and its bias.

        An error where logits are scaled, capped or otherwise no product of hidden states and table.
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
            f"the logits of {type(self._model).__name__} are not its hidden states times a table",
            expected="models such as GPT-2, GPT-NeoX, Llama, Mistral, Qwen, OPT",
            fix="use a mitigation that works on text: replacement",
        )

    @torch.no_grad()
    def hidden_states(self, rows: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """For each row, in order, its last hidden states (tokens x width); empty where it has no tokens."""
        for at in range(0, len(rows), _READ_ROWS):
            some = rows[at : at + _READ_ROWS]
            tokens = pad_rows([row or [0] for row in some], device=self.device)
            lengths = torch.tensor([max(1, len(row)) for row in some], device=self.device)
            mask = torch.arange(tokens.shape[1], device=self.device) < lengths[:, None]
            answer = self._model(input_ids=tokens, attention_mask=mask.long(), output_hidden_states=True)
            yield from (answer.hidden_states[-1][index, : len(row)] for index, row in enumerate(some))

    @torch.no_grad()
    def last_logits(self, row: Sequence[int]) -> Tensor:
        """What may follow a row that is read at once, without a cache."""
        tokens = torch.tensor([row], device=self.device)
        logits: Tensor = self._model(input_ids=tokens, use_cache=False).logits[0, -1].float()
        return logits

    def forward(
        self, tokens: Tensor, lengths: Sequence[int], cache: DynamicCache, *, hidden: bool = False
    ) -> CausalLMOutputWithPast:
        """Run the model on new tokens of rows that end together; the last of each is its ``length``-th."""
        size = tokens.shape[1]
        width = cache.get_seq_length() + size
        ends = to_device(torch.tensor(lengths), self.device)[:, None]
        # Counted from the right: rows end together.
        places = torch.arange(width, device=self.device) - width + ends
        mask = (places >= 0).long()
        return self.run(tokens, places[:, -size:].clamp(min=0), mask, cache, hidden=hidden)

    def run(
        self, tokens: Tensor, positions: Tensor, mask: Tensor, cache: DynamicCache, *, hidden: bool
    ) -> CausalLMOutputWithPast:
        """Run the model on new tokens at these positions."""
        with no_cudnn_sdpa(self.device):
            answer: CausalLMOutputWithPast = self._model(
                input_ids=tokens,
                attention_mask=mask,
                past_key_values=cache,
                use_cache=True,
                output_hidden_states=hidden,
                **self._optional(positions),
            )
        return answer

    def _optional(self, positions: Tensor) -> dict[str, Tensor | int]:
        """What not every architecture takes; those without positions find them in the mask."""
        wanted: dict[str, Tensor | int] = {"position_ids": positions, "logits_to_keep": 1}
        return {name: value for name, value in wanted.items() if name in self._accepted}

    def _read_states(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        tokens = pad_rows(rows, device=self.device)
        lengths = torch.tensor([len(row) for row in rows], device=self.device)
        mask = torch.arange(tokens.shape[1], device=self.device) < lengths[:, None]
        logits = self._model(input_ids=tokens, attention_mask=mask.long()).logits.float()
        return [
            token_log_probs(logits[index, : len(row) - 1], tokens[index, 1 : len(row)])
            for index, row in enumerate(rows)
        ]


class HubKVCache:
    """Rows being written, right-aligned in one cache."""

    def __init__(self, engine: HubEngine) -> None:
        self._engine = engine
        self._cache = DynamicCache()
        self._lengths: list[int] = []

    def fill(self, rows: Sequence[int], prefixes: Sequence[PrefillState]) -> None:
        """Begin each of those rows with a prefix; a row just after the last one is added."""
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
        """Drop all rows but these, the first of which becomes row 0, and so on."""
        self._lengths = [self._lengths[row] for row in rows]
        indices = torch.tensor(rows, dtype=torch.long, device=self._engine.device)
        self._resize([(keys[indices], values[indices]) for keys, values in _tables(self._cache)])

    @torch.no_grad()
    def step(self, tokens: Tensor) -> DecoderOutput:
        """Append one token to every row and say what may follow."""
        self._lengths = [length + 1 for length in self._lengths]
        return last_output(self._engine.forward(tokens[:, None], self._lengths, self._cache, hidden=True))

    def _resize(self, tables: Sequence[_Layer]) -> list[_Layer]:
        """The tables, cut or padded to the rows there are and the longest of them, and put into the cache."""
        rows, width = len(self._lengths), max(self._lengths, default=0)
        fitted = [
            (_resize_cells(keys, rows, width), _resize_cells(values, rows, width)) for keys, values in tables
        ]
        for layer, table in zip(cast("list[DynamicLayer]", self._cache.layers), fitted, strict=True):
            layer.keys, layer.values = table
        return fitted


class HubMasked:
    """A transformers model as a ``MaskedEngine``; its output layer runs over every place, as theirs do."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self.device: torch.device = model.device
        self.context = context_length(model)

    @torch.no_grad()
    def logits(self, tokens: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        """What may stand at one place of each row, rows x vocabulary in float32."""
        mask = torch.arange(tokens.shape[1], device=self.device) < lengths[:, None]
        scores: Tensor = self._model(input_ids=tokens, attention_mask=mask.long()).logits
        return scores[torch.arange(len(tokens), device=self.device), places].float()


def last_output(answer: CausalLMOutputWithPast) -> DecoderOutput:
    """The output of a model after the last token of each row."""
    states, logits = cast("tuple[Tensor, ...]", answer.hidden_states), cast(Tensor, answer.logits)
    return DecoderOutput(states[-1][:, -1], logits[:, -1].float())


def check_cache(engine: HubEngine, name: str) -> None:
    """An error where reading step by step is not the same as reading at once, as with state-space models."""
    try:
        batch = engine.create_cache(2, 3)
        batch.fill([0, 1], engine.prefill([[1, 2], [1]]))
        stepwise = batch.step(torch.tensor([3, 2], device=engine.device)).logits
        at_once = torch.stack([engine.last_logits([1, 2, 3]), engine.last_logits([1, 2])])
    except Exception as error:
        # What an architecture without such a cache raises differs from one to the next.
        raise _no_cache(name, str(error)) from error
    if not at_once.amax(-1).isfinite().all():
        raise ModelError(
            f"the logits of the model {name!r} overflow: they hold NaN or infinity",
            expected="a model whose logits are finite numbers",
            fix="load it with another dtype: bfloat16 and float32 hold far larger numbers than float16",
        )
    # Far above the rounding of half precision, far below what a lost state does.
    if (stepwise - at_once).norm() > 0.1 * at_once.norm():
        raise _no_cache(name, "its next tokens change when a text is read step by step")


def _no_cache(name: str, reason: str) -> ModelError:
    return ModelError(
        f"the model {name!r} does not run with a key-value cache: {reason}",
        expected="attention models such as GPT-2, GPT-NeoX, Llama, Mistral, Qwen, OPT, CTRL",
        fix="serve the model elsewhere and name it as endpoint:URL#MODEL",
    )


def context_length(model: PreTrainedModel) -> int:
    """The longest row a model reads, in tokens."""
    config = model.config.get_text_config()
    sizes = [getattr(config, name, None) for name in _CONTEXT_FIELDS]
    return next((size for size in sizes if isinstance(size, int) and size > 0), _UNLIMITED)


def _tables(cache: DynamicCache) -> list[_Layer]:
    return [
        (cast(Tensor, layer.keys), cast(Tensor, layer.values))
        for layer in cast("list[DynamicLayer]", cache.layers)
    ]


def _empty_tables(layer: _Layer, rows: int) -> _Layer:
    """Empty tables of the sizes of a layer."""
    keys, values = (part.new_zeros((rows, part.shape[1], 0, part.shape[3])) for part in layer)
    return keys, values


def _resize_cells(cells: Tensor, rows: int, width: int) -> Tensor:
    """The table with that many rows and its last ``width`` columns, padded with zeros."""
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
        """Say where the next keys and values go, and how many columns are looked at."""
        self._rows, self._positions, self._longest = rows, positions, longest

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Write keys and values of one token a row; all that may be looked at."""
        count, visible = len(self._rows), []
        for cells, new in zip(self.table, (key_states, value_states), strict=True):
            cells[self._rows, :, self._positions] = new[:, :, 0]
            visible.append(cells[:count, :, : self._longest])
        return visible[0], visible[1]

    def get_seq_length(self) -> int:
        """The columns before the new one, as far as the model must know."""
        return self._longest - 1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The columns that are looked at, from the first on."""
        return self._longest, 0


class HubStaticKVCache:
    """Rows being written, each at its own position: a ``StaticKVCache``."""

    def __init__(self, engine: HubEngine, rows: int, length: int) -> None:
        self._engine, self._columns = engine, torch.arange(length, device=engine.device)
        self._places = torch.arange(rows, device=engine.device)
        self._lengths: list[int] = []
        self._prefixes: dict[int, PrefillState] = {}
        # A token is read to see how large keys and values are, layer by layer.
        sample = cast("list[tuple[Tensor, Tensor]]", engine.prefill([[0]])[0].read)
        self._layers = [
            _StaticLayer(*(part.new_zeros(rows, part.shape[1], length, part.shape[3]) for part in layer))
            for layer in sample
        ]
        self._cache = DynamicCache()
        self._cache.layers = list(self._layers)

    @property
    def bytes(self) -> int:
        """The memory its tables take."""
        return sum(cells.nbytes for layer in self._layers for cells in layer.table)

    def fill(self, rows: Sequence[int], prefixes: Sequence[PrefillState]) -> None:
        """Begin each of those rows with a prefix; a row just after the last one is added."""
        self._prefixes |= dict(zip(rows, prefixes, strict=True))
        groups: dict[tuple[int, int], list[tuple[int, PrefillState]]] = {}
        for row, prefix in zip(rows, prefixes, strict=True):
            self._lengths[row : row + 1] = [prefix.length]
            groups.setdefault((id(prefix.read), prefix.length), []).append((row, prefix))
        for (_, length), group in groups.items():
            if length:
                self._fill(group, length)

    def _fill(self, group: Sequence[tuple[int, PrefillState]], length: int) -> None:
        """Begin rows with prefixes of one length that were read together, where they end together."""
        read = cast("list[tuple[Tensor, Tensor]]", group[0][1].read)
        places = torch.tensor([(row, prefix.row) for row, prefix in group])
        to, of = to_device(places, self._engine.device).unbind(1)
        for layer, parts in zip(self._layers, read, strict=True):
            for cells, part in zip(layer.table, parts, strict=True):
                cells[to, :, :length] = part[of, :, part.shape[2] - length :]

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all rows but these, the first of which becomes row 0, and so on."""
        longest = max(self._lengths, default=0)
        moves = [(new, old) for new, old in enumerate(rows) if new != old]
        if moves:
            to, of = to_device(torch.tensor(moves), self._engine.device).unbind(1)
            for layer in self._layers:
                for cells in layer.table:
                    cells[to, :, :longest] = cells[of, :, :longest]
        self._lengths = [self._lengths[row] for row in rows]

    @torch.no_grad()
    def step(self, tokens: Tensor) -> DecoderOutput:
        """Append one token to every row, by the model's own cache as long as rows only have prefixes."""
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
        """A step of the first rows, whose tokens stand at these positions, below ``longest``."""
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
