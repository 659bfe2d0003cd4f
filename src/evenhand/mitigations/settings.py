"""How a calibration is carried out: strength, budget, steps; checked before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final, Literal, get_args

from evenhand.core.errors import InputError

Mode = Literal["embedding", "classifier"]
Ratio = Literal["expected", "sampled"]
Scale = Literal["relative", "nats"]
Pieces = Literal["mean", "first"]

SIGMA: Final[dict[Mode, float]] = {"embedding": 0.02, "classifier": 0.05}
"""Target divergence a token by mode (section 5 of the paper)."""
RATE: Final[dict[Mode, float]] = {"embedding": 0.01, "classifier": 0.03}
"""Adam's rate by mode, which the paper does not print: large enough to reach the target in 15 steps."""
BETA1: Final = 0.9
BETA2: Final = 0.999
EPSILON: Final = 1e-8
"""Adam's own numbers, as published; every kernel that steps takes them from here."""
_MOST_SIGMA: Final = 10.0
LEAST, MOST = 2.0**-20, 2.0**20
"""What a strength is held between: halving or doubling at every token would end at 0 or infinity."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides a calibration besides its words or its classifier. ADR 20 says why each is as it is."""

    mode: Mode = "embedding"
    strength: float = 0.6
    """Lambda at the first token of a text; 0 leaves the model as it is."""
    sigma: float = SIGMA["embedding"]
    """Target divergence a token, in nats: lambda is halved at twice it, doubled at half of it."""
    steps: int = 15
    """Adam steps a token."""
    rate: float = RATE["embedding"]
    """Adam's rate as a share of the hidden state's root mean square."""
    ratio: Ratio = "expected"
    """The policy ratio of eq. 4: its expectation under the vanilla policy, or its value at the one token the
    vanilla policy would have written."""
    scale: Scale = "relative"
    """Distances of eq. 5 squared: relative to the vanilla policy's, or in nats."""
    balance: float = 100.0
    """Weight of the last term of eq. 5, which keeps the two sides equally far."""
    pieces: Pieces = "mean"
    """A word of several tokens counts as the mean of its tokens, or as its first one."""
    window: int = 5
    """Earlier tokens whose gain counts too (classifier)."""
    gamma: float = 0.95
    """Discount of a token's gain for each later token of the window (classifier)."""
    carry: bool = False
    """A text begins with the strength the last ones ended with; texts then depend on their order."""
    support: int = 128
    """The likeliest tokens that are calibrated one by one; the rest moves as one."""

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        for name, fits, accepted in _RANGES:
            value = getattr(self, name)
            if not fits(value):
                raise InputError(
                    f"{name} is {value!r}", accepted=accepted, todo=f"change the mitigation's option {name}"
                )

    def identity(self) -> dict[str, str]:
        """What goes into a model's identity."""
        return {field.name: f"{getattr(self, field.name)}" for field in fields(self)}


def usual_rate(mode: Mode, sigma: object) -> float:
    """Adam's rate that reaches a target: a divergence grows with the square of the step.

    >>> round(usual_rate("embedding", 0.02), 3), round(usual_rate("embedding", 0.08), 3)
    (0.01, 0.02)
    """
    if mode not in RATE or not isinstance(sigma, int | float) or not 0 < sigma <= _MOST_SIGMA:
        return 1.0  # what is out of range is refused by name, not by what would follow from it
    return RATE[mode] * math.sqrt(sigma / SIGMA[mode])


def _between(low: float, high: float, *, with_low: bool = True) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and (low < value or (with_low and low == value))
        and value <= high
    )


def _whole(low: int, high: int) -> Callable[[object], bool]:
    inside = _between(low, high)
    return lambda value: isinstance(value, int) and inside(value)


def _one_of(literal: object) -> tuple[Callable[[object], bool], str]:
    known = get_args(literal)
    return (lambda value: value in known), ", ".join(known)


_RANGES: Final[tuple[tuple[str, Callable[..., bool], str], ...]] = (
    ("mode", *_one_of(Mode)),
    ("strength", _between(0, 1000), "0 (none) to 1000; the paper uses 0.1 to 0.9"),
    (
        "sigma",
        _between(0, _MOST_SIGMA, with_low=False),
        "above 0, at most 10 nats; the paper uses 0.02 and 0.05",
    ),
    ("steps", _whole(1, 1000), "1 to 1000"),
    ("rate", _between(0, 1, with_low=False), "above 0, at most 1"),
    ("ratio", *_one_of(Ratio)),
    ("scale", *_one_of(Scale)),
    ("balance", _between(0, 1000), "0 to 1000"),
    ("pieces", *_one_of(Pieces)),
    ("window", _whole(0, 1000), "0 to 1000"),
    ("gamma", _between(0, 1, with_low=False), "above 0, at most 1"),
    ("carry", lambda value: isinstance(value, bool), "true or false"),
    ("support", _whole(1, 1 << 20), "1 or more"),
)
