"""The head that steers a language model, fitted: dense, tanh, dense over the model's own hidden states.

What stands for each token is accumulated with a discount, as it is while the model writes, and a few places
of every text become examples. So the head learns to judge a text that is only begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenhand.core.records import ModelRef
from evenhand.core.seeds import generator
from evenhand.mitigations.calibrator import Calibrator, States


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a head is trained."""

    epochs: int = 3
    batch: int = 512
    rate: float = 1e-3
    weight_decay: float = 0.1
    longest: int = 128
    """Tokens of a text that are read."""
    places: int = 16
    """Places of a text that become examples; the last is always one."""
    first: int = 4
    """Tokens before the first place: too little has been said earlier."""
    discount: float = 0.99
    """What a token counts less for each later one."""
    states: States = "written"
    """What stands for a token: its vector in the output table, or the hidden state it came from."""
    seed: int = 0


class Places(NamedTuple):
    """Accumulated states, the side of each, and which of them is the last of its text."""

    states: Tensor
    seconds: Tensor
    last: Tensor


def places_of(
    states: Iterable[Tensor],
    seconds: Sequence[bool],
    recipe: Recipe,
    *,
    on_text: Callable[[int], None] = lambda done: None,
) -> Places:
    """A few places of every text, from what stands for its tokens (tokens x width) and its side."""
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    for index, (row, second) in enumerate(zip(states, seconds, strict=True)):
        chosen = _chosen(len(row), index, recipe)
        kept = accumulated(row.float(), recipe.discount)[chosen].cpu()
        last = torch.tensor([place == len(row) - 1 for place in chosen], dtype=torch.bool)
        parts.append((kept, torch.full((len(chosen),), float(second)), last))
        on_text(1)
    kept, sides, last = (torch.cat(column) for column in zip(*parts, strict=True))
    return Places(kept, sides, last)


def accumulated(states: Tensor, discount: float) -> Tensor:
    """For each token the mean of the states up to it, each discounted by its age."""
    ages = torch.arange(len(states), device=states.device)
    age = (ages[:, None] - ages).clamp(min=0)
    weights = torch.where(ages[:, None] >= ages, discount**age, 0.0)
    return (weights / weights.sum(-1, keepdim=True)) @ states


def fit(places: Places, recipe: Recipe, *, labels: tuple[str, str], ref: ModelRef) -> Calibrator:
    """The head of least cross-entropy found; its inner layer takes the states as they are, not scaled."""
    states = places.states
    centre, spread = states.mean(0), states.std().clamp(min=1e-6)
    width = states.shape[1]
    random = torch.Generator().manual_seed(recipe.seed)
    inner, outer = nn.Linear(width, width), nn.Linear(width, 1)
    for layer in (inner, outer):
        nn.init.normal_(layer.weight, std=width**-0.5, generator=random)
        nn.init.zeros_(layer.bias)
    network = nn.Sequential(inner, nn.Tanh(), outer)
    optimiser = torch.optim.AdamW(network.parameters(), lr=recipe.rate, weight_decay=recipe.weight_decay)
    steps = max(1, recipe.epochs * len(states) // recipe.batch)
    for step, batch in enumerate(_batches(len(states), recipe, steps, random)):
        optimiser.param_groups[0]["lr"] = recipe.rate * (1 - step / steps)
        said = network((states[batch] - centre) / spread)[:, 0]
        loss = F.binary_cross_entropy_with_logits(said, places.seconds[batch])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    weight = inner.weight.detach() / spread
    return Calibrator(
        weight,
        inner.bias.detach() - weight @ centre,
        outer.weight.detach()[0],
        outer.bias.detach()[0],
        labels,
        ref.name,
        ref.revision,
        recipe.states,
        recipe.discount,
    )


def _chosen(length: int, index: int, recipe: Recipe) -> list[int]:
    """The places of a text that become examples; all of them where they are few."""
    able = list(range(min(recipe.first, max(0, length - 1)), length))
    if len(able) <= recipe.places:
        return able
    draw = generator(recipe.seed, "places", index)
    inner = draw.choice(len(able) - 1, size=recipe.places - 1, replace=False)
    return [*sorted(able[place] for place in inner), length - 1]


def _batches(count: int, recipe: Recipe, steps: int, random: torch.Generator) -> Iterator[Tensor]:
    for _ in range(steps):
        yield torch.randint(0, count, (min(recipe.batch, count),), generator=random)
