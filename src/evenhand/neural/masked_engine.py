"""What masked generation asks of a model: the scores of one place in each row."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class MaskedEngine(Protocol):
    """A masked language model that fills places in rows of tokens."""

    @property
    def context(self) -> int:
        """The longest row in tokens, the special ones included."""
        ...

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        ...

    def logits(self, tokens: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        """What may stand at one place of each row, rows x vocabulary in float32.

        Args:
            tokens: Rows x columns; what lies beyond a row's length is not read.
            lengths: The tokens of each row.
            places: The column of each row that is asked for.
        """
        ...
