"""Samples the next token of each row: penalty, temperature, top-k, top-p, inverse CDF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from evenhand.core.records import GenerationSpec
from evenhand.generation.decode_attention import topk

NO_TOKEN: Final = -1
"""Replaces a token if a row's logits contain NaN or positive infinity, or are all negative infinity: there is
no distribution to sample from."""

_NUCLEUS = 1024
"""Number of most likely tokens to try before sorting a row's whole vocabulary."""


@torch.no_grad()
def choose_tokens(logits: Tensor, uniforms: Tensor, spec: GenerationSpec) -> Tensor:
    """Choose one token per row: the most likely at temperature 0, else by inverse CDF of its uniform number.

    Each row depends only on its own logits and number; a row without a valid distribution gets ``NO_TOKEN``.
    The order is that of transformers: temperature, the ``top_k`` most likely tokens, then the fewest tokens
    whose total probability reaches ``top_p``.

    Args:
        logits: Rows x vocabulary; half precision is converted to float32 where it matters.
        uniforms: One number in [0, 1) per row, in float64.
        spec: Temperature, top-k and top-p.
    """
    if spec.temperature == 0:
        return likeliest_of(logits)
    if 0 < spec.top_k < logits.shape[-1]:
        likeliest, tokens = topk(logits, spec.top_k)
        return _draw_sorted((likeliest.float() / spec.temperature).softmax(-1), tokens, uniforms, spec.top_p)
    scores = logits.float() / spec.temperature
    if spec.top_p < 1:
        return _draw_nucleus(scores.softmax(-1), uniforms, spec.top_p)
    return _draw(scores.softmax(-1), uniforms)


def likeliest_of(logits: Tensor) -> Tensor:
    """The most likely token of each row, or ``NO_TOKEN``."""
    # NaN counts as the largest value, so it is detected too.
    tokens = logits.argmax(-1)
    peaks = logits.gather(-1, tokens[:, None])[:, 0]
    return tokens.masked_fill(~peaks.isfinite(), NO_TOKEN)


def at_drawn(tokens: Tensor, drawn: Tensor) -> Tensor:
    """The token of each row at the sampled index; ``NO_TOKEN`` stays."""
    token = tokens.gather(-1, drawn.clamp(min=0)[:, None])[:, 0]
    return token.masked_fill(drawn == NO_TOKEN, NO_TOKEN)


def is_fixed_sampling(spec: GenerationSpec) -> bool:
    """Whether `choose_tokens` runs the same operations for all logits, so that it can be captured."""
    is_cut = spec.temperature == 0 or 0 < spec.top_k <= _NUCLEUS or spec.top_p == 1
    return is_cut and spec.repetition_penalty == 1


@torch.no_grad()
def apply_repetition_penalty(logits: Tensor, histories: Sequence[Sequence[int]], penalty: float) -> Tensor:
    """Penalise every token of a row's history (less likely for a penalty above 1).

    Positive logits are divided by the penalty and negative ones multiplied (Keskar et al. 2019, section 4.1,
    as in transformers); the history is prompt and continuation, each token counted once.
    """
    longest = max(map(len, histories))
    # Rows are padded with their own first token: a repeated entry is written with the same value.
    filled = [[*history, *[history[0]] * (longest - len(history))] for history in histories]
    penalised = torch.tensor(filled, device=logits.device)
    scores = logits.gather(-1, penalised)
    return logits.scatter(-1, penalised, torch.where(scores < 0, scores * penalty, scores / penalty))


def _draw_nucleus(probabilities: Tensor, uniforms: Tensor, top_p: float) -> Tensor:
    """Sample from the nucleus; only rows with a wide nucleus need a sort of the vocabulary."""
    likeliest, tokens = probabilities.topk(min(_NUCLEUS, probabilities.shape[-1]))
    choice = _draw_sorted(likeliest, tokens, uniforms, top_p)
    if tokens.shape == probabilities.shape:
        return choice
    wide = likeliest.double().sum(-1) < top_p
    if wide.any():
        likeliest, tokens = probabilities[wide].sort(-1, descending=True)
        choice[wide] = _draw_sorted(likeliest, tokens, uniforms[wide], top_p)
    return choice


def _draw_sorted(probabilities: Tensor, tokens: Tensor, uniforms: Tensor, top_p: float) -> Tensor:
    """Sample from tokens sorted by descending probability, truncated at ``top_p``."""
    if top_p < 1:
        before = probabilities.double().cumsum(-1) - probabilities
        # The most likely token always stays, whatever top_p is.
        beyond = before >= top_p
        beyond[:, 0] = False
        probabilities = probabilities.masked_fill(beyond, 0)
    return at_drawn(tokens, _draw(probabilities, uniforms))


def _draw(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """The first index whose cumulative probability exceeds the uniform number; never of probability 0."""
    cumulative = probabilities.double().cumsum(-1)
    total = cumulative[:, -1:]
    choice = torch.searchsorted(cumulative, uniforms[:, None] * total, right=True)
    # The softmax of an invalid row is NaN in all its entries.
    return choice.clamp(max=probabilities.shape[-1] - 1).masked_fill(total.isnan(), NO_TOKEN)[:, 0]
