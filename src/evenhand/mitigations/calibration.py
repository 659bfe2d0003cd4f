"""Reinforced calibration: a model is steered, token by token, towards text that neither side could claim.

Liu et al., "Mitigating Political Bias in Language Models Through Reinforced Calibration" (AAAI 2021), section
4. ADR 20 lists every choice the equations leave open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evenhand.core.errors import InputError
from evenhand.core.file_names import user_path
from evenhand.core.protocols import Model, SteerableModel
from evenhand.core.records import MitigationInfo
from evenhand.mitigations.settings import SIGMA, Mode, Pieces, Ratio, Scale, Settings, usual_rate

if TYPE_CHECKING:
    from evenhand.mitigations.calibrator import Calibrator
    from evenhand.mitigations.sides import Sides, SideVectors

VERSION: Final = "3"
EVERYDAY: Final = 64
"""Embedded example texts over which the usual distance between two lists is taken."""
_DEFAULT: Final = Settings()
_WORDS: Final = "ideology"


class Calibration:
    """Reinforced calibration of any causal model on this machine, for any two-sided attribute.

    Args:
        mode: ``embedding`` keeps away from two word lists; ``classifier`` keeps a classifier of the model's
            own hidden states undecided.
        words: ``ideology``, ``gender``, or a JSON file with two lists (embedding).
        calibrator: What ``evenhand train calibrator`` wrote for this model (classifier).
        strength: Lambda at the first token of a text; 0 leaves the model as it is.
        sigma: Target divergence a token in nats; 0.02 (embedding) or 0.05 (classifier) where not given.
        steps: Adam steps a token.
        rate: Adam's rate as a share of the hidden state's root mean square. Where not given 0.01 (embedding)
            or 0.03 (classifier), times the root of sigma over its default: as many steps then reach it.
        ratio: ``expected`` or ``sampled``: the policy ratio of eq. 4.
        scale: ``relative`` or ``nats``: the unit of the squared distances of eq. 5.
        balance: Weight of the last term of eq. 5.
        pieces: ``mean`` or ``first``: what stands for a word of several tokens.
        window: Earlier tokens whose gain counts too (classifier).
        gamma: Discount for each later token (classifier).
        carry: Begin a text with the strength the last ones ended with.
        support: The likeliest tokens that are calibrated one by one.
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
        scale: Scale = _DEFAULT.scale,
        balance: float = _DEFAULT.balance,
        pieces: Pieces = _DEFAULT.pieces,
        window: int = _DEFAULT.window,
        gamma: float = _DEFAULT.gamma,
        carry: bool = _DEFAULT.carry,
        support: int = _DEFAULT.support,
    ) -> None:
        target = SIGMA.get(mode, 1.0) if sigma is None else sigma
        self.settings = Settings(
            mode=mode,
            strength=strength,
            sigma=target,
            steps=steps,
            rate=usual_rate(mode, target) if rate is None else rate,
            ratio=ratio,
            scale=scale,
            balance=balance,
            pieces=pieces,
            window=window,
            gamma=gamma,
            carry=carry,
            support=support,
        )
        self._sides: Sides | None = None
        self._head: Calibrator | None = None
        if mode == "embedding":
            self._read_words(words, calibrator)
        else:
            self._read_head(calibrator, words)
        self.info = MitigationInfo(
            name="calibration",
            version=VERSION,
            summary="Steers a model's hidden states while it writes, towards neither of two sides.",
            requires="SteerableModel",
            options=self._identity(),
            citation="Liu et al. Mitigating Political Bias in Language Models. AAAI 2021, section 4.",
        )

    def apply(self, model: Model) -> Model:
        """The model with the calibration on; an error where its hidden states are out of reach."""
        if not isinstance(model, SteerableModel):
            raise InputError(
                f"the model {model.ref.name!r} cannot be steered: its hidden states are not on this machine",
                accepted="builtin, a folder, a Hub id or a .gguf file of a causal model",
                todo="use the mitigation replacement, which works on any model's text",
            )
        from evenhand.mitigations.calibrator import check_model
        from evenhand.mitigations.sides import side_vectors
        from evenhand.mitigations.steering import CalibrationSteering

        anatomy, settings = model.anatomy(), self.settings
        device = anatomy.table.device
        options = dict(self.info.options)
        if self._head is not None:
            check_model(self._head, model.ref, width=anatomy.table.shape[1])
            steering = CalibrationSteering(anatomy, settings, head=self._head.to(device))
        else:
            assert self._sides is not None
            vectors = side_vectors(self._sides, anatomy, pieces=settings.pieces)
            vectors = vectors._replace(centre=_everyday_gap(vectors, model))
            options["split_words"] = str(vectors.split)
            steering = CalibrationSteering(anatomy, settings, vectors=vectors)
        return model.steered(steering, name=f"calibration:{settings.mode}", options=options)

    def _identity(self) -> dict[str, str]:
        guide = (
            {"words": self._sides.digest}
            if self._sides is not None
            else {"calibrator": self._head.digest if self._head else ""}
        )
        return {"version": VERSION, **self.settings.identity(), **guide}

    def _read_words(self, words: str, calibrator: str | None) -> None:
        from evenhand.mitigations.sides import read_sides

        if calibrator is not None:
            raise InputError(
                "the mode embedding was given a calibrator",
                accepted="word lists; a calibrator is for the mode classifier",
                todo="leave the calibrator out, or choose the mode classifier",
            )
        self._sides = read_sides(str(words))

    def _read_head(self, calibrator: str | None, words: str) -> None:
        from evenhand.mitigations.calibrator import read_calibrator

        if words != _WORDS:
            raise InputError(
                f"the mode classifier was given the words {words}",
                accepted="a calibrator; word lists are for the mode embedding",
                todo="leave the words out, or choose the mode embedding",
            )
        if calibrator is None:
            raise InputError(
                "the mode classifier was given no calibrator",
                accepted="the folder that `evenhand train calibrator` wrote for this model",
                todo="evenhand train calibrator --model LM DATA --out DIR, then --calibrator DIR",
            )
        self._head = read_calibrator(user_path(str(calibrator)))


def _everyday_gap(vectors: SideVectors, model: SteerableModel) -> float:
    """How far apart the two lists usually are for this model, over the embedded example texts."""
    import csv

    import torch

    from evenhand.core.assets import asset
    from evenhand.mitigations.gains import usual_gap

    with asset("examples", "texts.csv").open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)][:EVERYDAY]
    states = torch.cat([rows.float() for rows in model.hidden_states(texts, longest=64)])
    return usual_gap(vectors, states)
