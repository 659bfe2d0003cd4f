"""Any causal language model of transformers over tables that stay where they are (ADR 31).

Rows are padded on the right and each has its own positions, which the model is told together with a mask of
its own; not every architecture heeds both, so the first step is compared with a plain one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from evenhand.neural.attending import REACH
from evenhand.neural.devices import sent
from evenhand.neural.engine import Output, Prefix
from evenhand.neural.hub_engine import HubBatch, last_of

if TYPE_CHECKING:
    from evenhand.neural.hub_engine import HubEngine


class _Layer(DynamicLayer):  # type: ignore[no-untyped-call]
    """A layer's keys and values; where the next ones go is told before each step."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table = keys, values
        self.keys, self.values, self.is_initialized = keys, values, True
        self.dtype, self.device = keys.dtype, keys.device

    def aim(self, rows: Tensor, positions: Tensor, longest: int) -> None:
        """Say where the next keys and values go, and how many columns are looked at."""
        self._rows, self._positions, self._longest = rows, positions, longest

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Write keys and values of one token a row; all that may be looked at."""
        count, seen = len(self._rows), []
        for cells, new in zip(self.table, (key_states, value_states), strict=True):
            cells[self._rows, :, self._positions] = new[:, :, 0]
            seen.append(cells[:count, :, : self._longest])
        return seen[0], seen[1]

    def get_seq_length(self) -> int:
        """The columns before the new one, as far as the model must know."""
        return self._longest - 1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The columns that are looked at, from the first on."""
        return self._longest, 0


class HubFixedBatch:
    """Rows being written, each at its own position: a ``FixedBatch``."""

    def __init__(self, engine: HubEngine, rows: int, length: int) -> None:
        self._engine, self._columns = engine, torch.arange(length, device=engine.device)
        self._places = torch.arange(rows, device=engine.device)
        self._lengths: list[int] = []
        self._begun: dict[int, Prefix] = {}
        # A token is read to see how large keys and values are, layer by layer.
        seen = cast("list[tuple[Tensor, Tensor]]", engine.prefill([[0]])[0].read)
        self._layers = [
            _Layer(*(part.new_zeros(rows, part.shape[1], length, part.shape[3]) for part in layer))
            for layer in seen
        ]
        self._cache = DynamicCache()
        self._cache.layers = list(self._layers)

    @property
    def bytes(self) -> int:
        """The memory its tables take."""
        return sum(cells.nbytes for layer in self._layers for cells in layer.table)

    def fill(self, rows: Sequence[int], prefixes: Sequence[Prefix]) -> None:
        """Begin each of those rows with a prefix; a row just after the last one is added."""
        self._begun |= dict(zip(rows, prefixes, strict=True))
        groups: dict[tuple[int, int], list[tuple[int, Prefix]]] = {}
        for row, prefix in zip(rows, prefixes, strict=True):
            self._lengths[row : row + 1] = [prefix.length]
            groups.setdefault((id(prefix.read), prefix.length), []).append((row, prefix))
        for (_, length), group in groups.items():
            if length:
                self._fill(group, length)

    def _fill(self, group: Sequence[tuple[int, Prefix]], length: int) -> None:
        """Begin rows with prefixes of one length that were read together, where they end together."""
        read = cast("list[tuple[Tensor, Tensor]]", group[0][1].read)
        places = torch.tensor([(row, prefix.row) for row, prefix in group])
        to, of = sent(places, self._engine.device).unbind(1)
        for layer, seen in zip(self._layers, read, strict=True):
            for cells, part in zip(layer.table, seen, strict=True):
                cells[to, :, :length] = part[of, :, part.shape[2] - length :]

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all rows but these, the first of which becomes row 0, and so on."""
        longest = max(self._lengths, default=0)
        moved = [(new, old) for new, old in enumerate(rows) if new != old]
        if moved:
            to, of = sent(torch.tensor(moved), self._engine.device).unbind(1)
            for layer in self._layers:
                for cells in layer.table:
                    cells[to, :, :longest] = cells[of, :, :longest]
        self._lengths = [self._lengths[row] for row in rows]

    @torch.no_grad()
    def step(self, tokens: Tensor) -> Output:
        """Append one token to every row, by the model's own cache as long as rows only have prefixes."""
        begun, lengths = self._begun, self._lengths
        self.grow()
        if _is_begun(begun, lengths):
            plain = HubBatch(self._engine)
            plain.fill(range(len(lengths)), [begun[row] for row in range(len(lengths))])
            return plain.step(tokens)
        positions = torch.tensor(lengths, device=self._engine.device)
        return self.advance(tokens, positions, longest=max(lengths) + 1)

    def reach(self, longest: int) -> int:
        """The next multiple of 64."""
        return min(-(-longest // REACH) * REACH, len(self._columns))

    @torch.no_grad()
    def advance(self, tokens: Tensor, positions: Tensor, *, longest: int) -> Output:
        """A step of the first rows, whose tokens stand at these positions, below ``longest``."""
        for layer in self._layers:
            layer.aim(self._places[: len(tokens)], positions, longest)
        kind = self._layers[0].table[0].dtype
        beyond = self._columns[:longest] > positions[:, None]
        mask = torch.zeros(beyond.shape, device=beyond.device, dtype=kind)
        mask = mask.masked_fill_(beyond, torch.finfo(kind).min)[:, None, None]
        answer = self._engine.run(tokens[:, None], positions[:, None], mask, self._cache, hidden=True)
        return last_of(answer)

    def grow(self) -> None:
        """Count one more token in every row."""
        self._begun = {}
        self._lengths = [length + 1 for length in self._lengths]


def _is_begun(begun: Mapping[int, Prefix], lengths: Sequence[int]) -> bool:
    """Whether all rows still are as they began."""
    return all(row in begun and begun[row].length == length for row, length in enumerate(lengths))
