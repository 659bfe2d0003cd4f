"""Masked generation in the obvious way: one prompt, every iteration, the whole model, the whole output layer.

Written from Wang and Cho (2019) and the settings of BOLD's appendix, with the numbers of the fast loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import numpy.typing as npt

from evenhand.core.records import GenerationSpec
from evenhand.core.seeds import row_uniforms

Logits = npt.NDArray[np.float64]
Model = Callable[[Sequence[int]], Logits]
"""A row of tokens to its scores, places x vocabulary."""


def fill(
    model: Model,
    row: Sequence[int],
    first: int,
    spec: GenerationSpec,
    *,
    mask: int,
    barred: Collection[int],
    prompt_id: str,
    sample: int,
) -> list[int]:
    """The tokens that stand from ``first`` on after all iterations; the row comes with its masks."""
    tokens = list(row)
    count, size = spec.iterations or 0, spec.max_new_tokens
    numbers = row_uniforms(spec.seed, prompt_id, sample, 2 * (count + size))
    iteration = 0
    while iteration < count or mask in tokens[first : first + size]:
        if iteration < count:
            place = first + int(numbers[2 * iteration] * size)
        else:
            place = first + tokens[first : first + size].index(mask)
        tokens[place] = mask
        scores = model(tokens)[place].copy()
        scores[list(barred)] = -np.inf
        if iteration < (spec.burn_in or 0) and spec.temperature > 0:
            tokens[place] = draw(scores, float(numbers[2 * iteration + 1]), spec)
        else:
            tokens[place] = int(scores.argmax())
        iteration += 1
    return tokens[first : first + size]


def draw(scores: Logits, number: float, spec: GenerationSpec) -> int:
    """The token a number in [0, 1) falls on, after temperature, top-k and top-p."""
    weights = np.exp((scores - scores.max()) / spec.temperature)
    order = list(range(len(weights)))
    if spec.top_k or spec.top_p < 1:
        order = sorted(order, key=lambda token: -weights[token])
    if spec.top_k:
        order = order[: spec.top_k]
    total, mass, kept = sum(weights[token] for token in order), 0.0, []
    for token in order:
        if mass >= spec.top_p and kept:
            break
        kept.append(token)
        mass += weights[token] / total
    goal, below = number * sum(weights[token] for token in kept), 0.0
    for token in kept:
        below += weights[token]
        if below > goal:
            return token
    return kept[-1]
