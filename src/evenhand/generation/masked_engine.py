"""What masked generation asks of a model: the scores of one place in each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel


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


class HubMasked:
    """A transformers model as a ``MaskedEngine``; its output layer runs over every place, as theirs do."""

    def __init__(self, model: PreTrainedModel) -> None:
        from evenhand.generation.hub_engine import context_length  # which imports transformers

        self._model = model
        self.device: torch.device = model.device
        self.context = context_length(model)

    @torch.no_grad()
    def logits(self, tokens: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        """What may stand at one place of each row, rows x vocabulary in float32."""
        mask = torch.arange(tokens.shape[1], device=self.device) < lengths[:, None]
        scores: Tensor = self._model(input_ids=tokens, attention_mask=mask.long()).logits
        return scores[torch.arange(len(tokens), device=self.device), places].float()
