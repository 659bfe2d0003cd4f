"""Reinforced calibration: steers a model, token by token, towards text that favours neither side.

Liu et al., "Mitigating Political Bias in Language Models Through Reinforced Calibration" (AAAI 2021), section
4. ADR 20 lists the choices that the equations leave open.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from evenhand.core.errors import InputError
from evenhand.core.files import asset_path, user_path
from evenhand.core.protocols import Model, SteerableModel
from evenhand.core.records import MitigationInfo

if TYPE_CHECKING:
    from evenhand.mitigations.calibrator import Calibrator
    from evenhand.mitigations.word_lists import WordLists, WordListVectors


Mode = Literal["embedding", "classifier"]
Ratio = Literal["expected", "sampled"]
GainScale = Literal["relative", "nats"]
PiecePolicy = Literal["mean", "first"]

SIGMA: Final[dict[Mode, float]] = {"embedding": 0.02, "classifier": 0.05}
"""Target divergence per token by mode (section 5 of the paper)."""
RATE: Final[dict[Mode, float]] = {"embedding": 0.01, "classifier": 0.03}
"""Adam's learning rate by mode, not given in the paper: large enough to reach the target in 15 steps."""
BETA1: Final = 0.9
BETA2: Final = 0.999
EPSILON: Final = 1e-8
"""Adam's published constants, shared by all kernels."""
REACH: Final = 512
"""Number of tokens whose mean direction represents the rest if the whole matrix is not read (ADR 20)."""
FOLLOW: Final = 0.25
"""How far tokens beyond the reach follow those within it, orthogonally to the hidden state."""
NOTHING: Final = -80.0
"""The log of a share that is negligible in every sum."""
_MOST_SIGMA: Final = 10.0


@dataclass(frozen=True, slots=True)
class CalibrationConfig:
    """Options of a calibration besides its words or classifier. ADR 20 explains the defaults."""

    mode: Mode = "embedding"
    strength: float = 0.6
    """Lambda at the first token of a text; 0 disables the calibration."""
    sigma: float = SIGMA["embedding"]
    """Target divergence per token in nats: at twice it or more lambda is halved, at half or less doubled."""
    steps: int = 15
    """Adam steps per token."""
    rate: float = RATE["embedding"]
    """Adam's learning rate relative to the root mean square of the hidden state."""
    ratio: Ratio = "expected"
    """The policy ratio of eq. 4: its expectation under the vanilla policy, or its value at the token sampled
    from the vanilla policy."""
    scale: GainScale = "relative"
    """Unit of the squared distances of eq. 5: relative to the vanilla policy's, or nats."""
    balance: float = 100.0
    """Weight of the last term of eq. 5, which keeps the two sides equally distant."""
    pieces: PiecePolicy = "mean"
    """Multi-token words count as the mean of their tokens, or as the first token."""
    window: int = 5
    """Number of earlier tokens whose gain also counts (classifier)."""
    gamma: float = 0.95
    """Discount of a token's gain for each later token of the window (classifier)."""
    carry: bool = False
    """Whether a text starts with the final strength of earlier ones; texts then depend on their order."""
    support: int = 128
    """Number of most likely tokens calibrated individually; all others are treated as one."""

    def __post_init__(self) -> None:
        """Reject values out of range."""
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name in _CHOICES:
                known = get_args(_CHOICES[name])
                fits, accepted = value in known, ", ".join(known)
            elif name in _RANGES:
                fits, accepted = _RANGES[name].holds(value), _RANGES[name].accepted
            else:
                fits, accepted = isinstance(value, bool), "true or false"
            if not fits:
                raise InputError(
                    f"{name} is {value!r}", expected=accepted, fix=f"change the mitigation's option {name}"
                )

    def identity(self) -> dict[str, str]:
        """The options as part of a model's identity."""
        return {field.name: f"{getattr(self, field.name)}" for field in fields(self)}


def default_rate(mode: Mode, sigma: object) -> float:
    """Adam's learning rate for a target: the divergence grows with the square of the step.

    >>> round(default_rate("embedding", 0.02), 3), round(default_rate("embedding", 0.08), 3)
    (0.01, 0.02)
    """
    if mode not in RATE or not isinstance(sigma, int | float) or not 0 < sigma <= _MOST_SIGMA:
        return 1.0  # values out of range raise an error that names the option, not this derived rate
    return RATE[mode] * math.sqrt(sigma / SIGMA[mode])


class _Range(NamedTuple):
    """The accepted numbers of an option, from ``low`` (exclusive if ``above`` is set) to ``high``."""

    low: float
    high: float
    accepted: str
    above: bool = False
    whole: bool = False

    def holds(self, value: object) -> bool:
        """Whether a value is in the range."""
        if not isinstance(value, int if self.whole else int | float) or isinstance(value, bool):
            return False
        return self.low <= value <= self.high and not (self.above and value == self.low)


_CHOICES: Final = {"mode": Mode, "ratio": Ratio, "scale": GainScale, "pieces": PiecePolicy}
_RANGES: Final = {
    "strength": _Range(0, 1000, "0 (off) to 1000; the paper uses 0.1 to 0.9"),
    "sigma": _Range(0, _MOST_SIGMA, "above 0, at most 10 nats; the paper uses 0.02 and 0.05", above=True),
    "steps": _Range(1, 1000, "1 to 1000", whole=True),
    "rate": _Range(0, 1, "above 0, at most 1", above=True),
    "balance": _Range(0, 1000, "0 to 1000"),
    "window": _Range(0, 1000, "0 to 1000", whole=True),
    "gamma": _Range(0, 1, "above 0, at most 1", above=True),
    "support": _Range(1, 1 << 20, "1 or more", whole=True),
}


VERSION: Final = "3"
EVERYDAY_TEXT_COUNT: Final = 64
"""Embedded example texts for the typical gap between two lists."""
_DEFAULT: Final = CalibrationConfig()
_WORDS: Final = "ideology"


class Calibration:
    """Reinforced calibration of any local causal model, for any two-sided attribute.

    Args:
        mode: ``embedding`` steers away from two word lists; ``classifier`` keeps a classifier of the model's
            own hidden states undecided.
        words: ``ideology``, ``gender``, or a JSON file with two lists (embedding).
        calibrator: The output of ``evenhand train calibrator`` for this model (classifier).
        strength: Lambda at the first token of a text; 0 disables the calibration.
        sigma: Target divergence per token in nats (default: 0.02 for embedding, 0.05 for classifier).
        steps: Adam steps per token.
        rate: Adam's learning rate relative to the root mean square of the hidden state. Default: 0.01
            (embedding) or 0.03 (classifier), times the square root of sigma over its default.
        ratio: ``expected`` or ``sampled``: the policy ratio of eq. 4.
        scale: ``relative`` or ``nats``: the unit of the squared distances of eq. 5.
        balance: Weight of the last term of eq. 5.
        pieces: ``mean`` or ``first``: the representation of multi-token words.
        window: Number of earlier tokens whose gain also counts (classifier).
        gamma: Discount per later token (classifier).
        carry: Start a text with the final strength of earlier ones.
        support: Number of most likely tokens calibrated individually.
    """

    def __init__(  # noqa: PLR0913 (one parameter an option: the registry reads them)
        self,
        *,
        mode: Mode = "embedding",
        words: str = _WORDS,
        calibrator: str | None = None,
        strength: float = _DEFAULT.strength,
        sigma: float | None = None,
        steps: int = _DEFAULT.steps,
        rate: float | None = None,
        ratio: Ratio = _DEFAULT.ratio,
        scale: GainScale = _DEFAULT.scale,
        balance: float = _DEFAULT.balance,
        pieces: PiecePolicy = _DEFAULT.pieces,
        window: int = _DEFAULT.window,
        gamma: float = _DEFAULT.gamma,
        carry: bool = _DEFAULT.carry,
        support: int = _DEFAULT.support,
    ) -> None:
        target = SIGMA.get(mode, 1.0) if sigma is None else sigma
        self.settings = CalibrationConfig(
            mode=mode,
            strength=strength,
            sigma=target,
            steps=steps,
            rate=default_rate(mode, target) if rate is None else rate,
            ratio=ratio,
            scale=scale,
            balance=balance,
            pieces=pieces,
            window=window,
            gamma=gamma,
            carry=carry,
            support=support,
        )
        self._sides: WordLists | None = None
        self._head: Calibrator | None = None
        if mode == "embedding":
            self._read_words(words, calibrator)
        else:
            self._read_head(calibrator, words)
        self.info = MitigationInfo(
            name="calibration",
            version=VERSION,
            summary="Steers a model's hidden states during generation, towards neither of two sides.",
            requires="SteerableModel",
            options=self._identity(),
            citation="Liu et al. Mitigating Political Bias in Language Models. AAAI 2021, section 4.",
        )

    def apply(self, model: Model) -> Model:
        """The calibrated model; an error if its hidden states are not accessible."""
        if not isinstance(model, SteerableModel):
            raise InputError(
                f"the model {model.ref.name!r} cannot be steered: its hidden states are not on this machine",
                expected="builtin, a folder, a Hub id or a .gguf file of a causal model",
                fix="use the mitigation replacement, which works on any model's text",
            )
        from evenhand.mitigations.calibration_steering import CalibrationSteering
        from evenhand.mitigations.calibrator import check_model
        from evenhand.mitigations.word_lists import word_list_vectors

        lm_head, settings = model.anatomy(), self.settings
        device = lm_head.table.device
        options = dict(self.info.options)
        if self._head is not None:
            check_model(self._head, model.ref, width=lm_head.table.shape[1])
            steering = CalibrationSteering(lm_head, settings, head=self._head.to(device))
        else:
            assert self._sides is not None
            vectors = word_list_vectors(self._sides, lm_head, pieces=settings.pieces)
            vectors = vectors._replace(centre=_typical_gap(vectors, model))
            options["split_words"] = str(vectors.split)
            steering = CalibrationSteering(lm_head, settings, vectors=vectors)
        return model.steered(steering, name=f"calibration:{settings.mode}", options=options)

    def _identity(self) -> dict[str, str]:
        guide = (
            {"words": self._sides.digest}
            if self._sides is not None
            else {"calibrator": self._head.digest if self._head else ""}
        )
        return {"version": VERSION, **self.settings.identity(), **guide}

    def _read_words(self, words: str, calibrator: str | None) -> None:
        from evenhand.mitigations.word_lists import read_word_lists

        if calibrator is not None:
            raise InputError(
                "the mode embedding does not use a calibrator",
                expected="word lists; a calibrator is for the mode classifier",
                fix="omit the calibrator, or choose the mode classifier",
            )
        self._sides = read_word_lists(str(words))

    def _read_head(self, calibrator: str | None, words: str) -> None:
        from evenhand.mitigations.calibrator import read_calibrator

        if words != _WORDS:
            raise InputError(
                f"the mode classifier does not use the words {words}",
                expected="a calibrator; word lists are for the mode embedding",
                fix="omit the words, or choose the mode embedding",
            )
        if calibrator is None:
            raise InputError(
                "the mode classifier needs a calibrator",
                expected="the output folder of `evenhand train calibrator` for this model",
                fix="evenhand train calibrator --model LM DATA --out DIR, then --calibrator DIR",
            )
        self._head = read_calibrator(user_path(str(calibrator)))


def _typical_gap(vectors: WordListVectors, model: SteerableModel) -> float:
    """The typical gap between the two lists for this model, over the embedded example texts."""
    import torch

    from evenhand.mitigations.objective import typical_gap

    with asset_path("examples", "texts.csv").open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)][:EVERYDAY_TEXT_COUNT]
    states = torch.cat([rows.float() for rows in model.hidden_states(texts, longest=64)])
    return typical_gap(vectors, states)
