"""Any masked language model of transformers as an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from evenhand.neural.hub_engine import context_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class HubMasked:
    """A transformers model as a ``MaskedEngine``; its output layer runs over every place, as theirs do."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self.device: torch.device = model.device
        self.context = context_of(model)

    @torch.no_grad()
    def logits(self, tokens: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        """What may stand at one place of each row, rows x vocabulary in float32."""
        mask = torch.arange(tokens.shape[1], device=self.device) < lengths[:, None]
        scores: Tensor = self._model(input_ids=tokens, attention_mask=mask.long()).logits
        return scores[torch.arange(len(tokens), device=self.device), places].float()
