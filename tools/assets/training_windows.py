"""Draw training windows from one long token array, on the device that holds it."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.models.hub_layout import CLS, END, MASK, SEP, SPECIAL_TOKENS
from tools.assets.train_tokenizer import SentenceTables

RANDOM_SHARE: Final = 0.1
KEPT_SHARE: Final = 0.1
"""Of the positions to predict, the shares that hold a random token and their own; the rest hold [MASK]."""


class MaskedBatch(NamedTuple):
    """Input of one masked step."""

    inputs: Tensor
    """(rows, length) token ids with [CLS], [SEP] and [MASK] in place."""
    positions: Tensor
    """(rows, targets) places to predict."""
    targets: Tensor
    """(rows, targets) the tokens that stood there."""


class Windows:
    """Random windows of a corpus held on one device."""

    def __init__(self, tokens: NDArray[np.uint16], tables: SentenceTables, *, device: str, seed: int) -> None:
        """Move the tokens to `device` and find where sentences start."""
        self.generator = torch.Generator(device=device).manual_seed(seed)
        self.tokens = torch.from_numpy(tokens.astype(np.int32)).to(device)
        self.vocabulary = len(tables.bare)
        self._bare = torch.from_numpy(tables.bare.astype(np.int32)).to(device)
        self.starts = torch.from_numpy(sentence_starts(tokens, tables)).to(device)

    def causal(self, rows: int, length: int) -> Tensor:
        """Return (rows, length + 1) tokens to read and predict.

        Half of the windows start anywhere. The other half start with a sentence, written as a text begins (no
        leading space), every second one after end-of-text: the two ways a prompt reaches the model.
        """
        places = self._uniform(rows // 2, self.tokens.numel() - length)
        first = self._rows(places, length + 1)
        second = self._from_sentence(rows - rows // 2, length + 1)
        told = second[::2]
        second[::2] = torch.cat([torch.full_like(told[:, :1], END), told[:, :-1]], dim=1)
        return torch.cat([first, second]).long()

    def masked(self, rows: int, length: int, targets: int) -> MaskedBatch:
        """Return windows `[CLS] text [SEP]` with `targets` of their tokens to predict.

        Half of the windows start with a sentence, half end with one. Four in five of the positions hold
        [MASK], one in ten a random token, one in ten their own.
        """
        inner = length - 2
        text = torch.cat([self._from_sentence(rows // 2, inner), self._to_sentence(rows - rows // 2, inner)])
        whole = torch.nn.functional.pad(text, (1, 1), value=SEP).long()
        whole[:, 0] = CLS
        draw = torch.rand(whole.shape, generator=self.generator, device=whole.device)
        positions = draw.masked_fill(whole < len(SPECIAL_TOKENS), -1.0).topk(targets, dim=1).indices
        answers = whole.gather(1, positions)
        return MaskedBatch(whole.scatter(1, positions, self._corrupted(answers)), positions, answers)

    def _corrupted(self, answers: Tensor) -> Tensor:
        fate = torch.rand(answers.shape, generator=self.generator, device=answers.device)
        other = torch.randint(
            len(SPECIAL_TOKENS),
            self.vocabulary,
            answers.shape,
            generator=self.generator,
            device=answers.device,
        )
        held = torch.where(fate < RANDOM_SHARE, other, answers)
        return torch.where(fate < RANDOM_SHARE + KEPT_SHARE, held, MASK)

    def _from_sentence(self, rows: int, length: int) -> Tensor:
        at = self.starts[self._uniform(rows, self.starts.numel())].clamp(max=self.tokens.numel() - length)
        text = self._rows(at, length)
        text[:, 0] = self._bare[text[:, 0]]
        return text

    def _to_sentence(self, rows: int, length: int) -> Tensor:
        at = self.starts[self._uniform(rows, self.starts.numel())] - length
        return self._rows(at.clamp(min=0), length)

    def _uniform(self, rows: int, limit: int) -> Tensor:
        return torch.randint(limit, (rows,), generator=self.generator, device=self.tokens.device)

    def _rows(self, at: Tensor, length: int) -> Tensor:
        return self.tokens[at[:, None] + torch.arange(length, device=at.device)]


def sentence_starts(tokens: NDArray[np.uint16], tables: SentenceTables) -> NDArray[np.int64]:
    """Return where sentences start: at a capital after a line break, or after a stop and a space."""
    before, here = tokens[:-1], tokens[1:]
    opens = tables.capital[here] & (tables.breaks[before] | (tables.stops[before] & tables.spaced[here]))
    return np.flatnonzero(opens) + 1
