"""Texts as rows of token ids: kept flat, moved to a device once, handed out in batches of like length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.classifiers.encoder import PAD, START

_STEP = 8
"""Lengths are padded to a multiple of this, which suits the matrix units."""


class Batch(NamedTuple):
    """Some rows, padded to one length."""

    places: Tensor
    """Which rows."""
    ids: Tensor
    """(rows, length) token ids."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Token ids of many texts."""

    tokens: Tensor
    """All ids, one text after the other, on the device that trains."""
    starts: Tensor
    lengths: NDArray[np.int64]
    """Ids in each text; on the host, where batches are planned."""

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def from_flat(cls, tokens: NDArray[np.uint16], device: torch.device | str = "cpu") -> Rows:
        """Rows of a flat array in which every text opens with START."""
        starts = np.flatnonzero(tokens == START)
        lengths = np.diff(np.append(starts, len(tokens)))
        flat = torch.from_numpy(tokens.astype(np.int32)).to(device)
        return cls(flat, torch.from_numpy(starts).to(device), lengths)

    @classmethod
    def from_lists(cls, rows: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> Rows:
        """Rows of encoded texts."""
        return cls.from_flat(np.concatenate([np.asarray(row, dtype=np.uint16) for row in rows]), device)

    def batches(
        self, rng: np.random.Generator | None, *, tokens: int, places: NDArray[np.int64] | None = None
    ) -> Iterator[Batch]:
        """All rows, or those at ``places``, in batches of at most ``tokens`` ids, like lengths together.

        With a generator both the neighbours in a batch and the order of batches are random; without, the
        rows come shortest first. A row longer than ``tokens`` is a batch of its own.
        """
        chosen = np.arange(len(self)) if places is None else places
        jitter = np.zeros(len(chosen)) if rng is None else rng.uniform(0, _STEP, len(chosen))
        ordered = chosen[np.argsort(self.lengths[chosen] + jitter, kind="stable")]
        padded = -(-self.lengths[ordered] // _STEP) * _STEP
        cuts = _cuts(np.maximum.accumulate(padded), tokens)
        on_device = torch.from_numpy(ordered).to(self.tokens.device)
        for index in range(len(cuts) - 1) if rng is None else rng.permutation(len(cuts) - 1):
            start, end = cuts[index], cuts[index + 1]
            some = on_device[start:end]
            yield Batch(some, self._padded(some, int(padded[start:end].max())))

    def endless(self, seed: int, *, tokens: int, places: NDArray[np.int64] | None = None) -> Iterator[Batch]:
        """Batches for ever, shuffled anew each time round."""
        rng = np.random.default_rng(seed)
        while True:
            yield from self.batches(rng, tokens=tokens, places=places)

    def _padded(self, places: Tensor, length: int) -> Tensor:
        offset = torch.arange(length, device=self.tokens.device)[None]
        # The next row opens with START, so a row ends where the second START stands.
        ids = self.tokens[(self.starts[places][:, None] + offset).clamp(max=len(self.tokens) - 1)]
        beyond = ((ids == START).cumsum(1) > 1) | (self.starts[places][:, None] + offset >= len(self.tokens))
        return ids.masked_fill(beyond, PAD).long()


def autocast(device: torch.device) -> torch.autocast:
    """bfloat16 products on a GPU, plain float32 elsewhere."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")


def _cuts(lengths: NDArray[np.int64], tokens: int) -> list[int]:
    """Where batches begin and end, so that rows times the longest row stays within ``tokens``."""
    cuts = [0]
    while cuts[-1] < len(lengths):
        start = cuts[-1]
        ahead = lengths[start : start + tokens // _STEP]
        within = np.searchsorted(ahead * np.arange(1, len(ahead) + 1), tokens, "right")
        cuts.append(start + max(int(within), 1))
    return cuts
