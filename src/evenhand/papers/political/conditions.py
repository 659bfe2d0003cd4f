"""The conditions of the paper's tables: the model as it is, and every mitigation that can be had here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from evenhand.audits.debias import MODES
from evenhand.audits.mitigation_sweep import VANILLA, SweepCondition
from evenhand.core import registry
from evenhand.core.errors import EvenhandError
from evenhand.core.protocols import Model
from evenhand.core.registry import Option
from evenhand.core.regular_files import read_text
from evenhand.mitigations.calibration import SIGMA, CalibrationConfig, Mode

BASELINE = "baseline"
"""What the paper calls the model as it is."""
EXTENDED_SIGMA = 0.4
"""The divergence a token aims at in a second row of the mode ``embedding``: at the paper's 0.02 that mode
changes little (ADR 20)."""
FILE = "calibrator.safetensors"
"""The steering head, as `mitigations.calibrator` writes it; that file would load torch."""
CALIBRATOR, VECTORS = "calibrator", "neutral"
"""Folders of ``--data``: what `evenhand train calibrator` and the neutral vectors' training wrote. Heads of
several models stand in ``calibrator/NAME``, by the models' names."""


OPTION_VALUES: Final[Mapping[str, Mapping[Mode, tuple[float, ...]]]] = {
    "gamma": {"classifier": (0.5, 0.8, 1.0)},
    "sigma": {"embedding": (0.05, 0.1, 0.2, 0.4), "classifier": (0.02, 0.1, 0.2, 0.4)},
}
"""Option to mode to the values beside the mode's own."""


@dataclass(frozen=True, slots=True)
class ModelConditions:
    """The mitigations of a model, and why others are missing."""

    conditions: tuple[SweepCondition, ...]
    missing: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The conditions' names."""
        return tuple(condition.name for condition in self.conditions)

    @property
    def swept_mode(self) -> str | None:
        """The mode whose strength is varied: the paper's is the classifier."""
        return next((mode for mode in ("classifier", "embedding") if mode in self.names), None)

    def options(self, mode: str) -> Mapping[str, Option]:
        """What a mode is given."""
        return next(condition.options for condition in self.conditions if condition.name == mode)


def find_conditions(model: Model, data: Path | None, *, name: str = "") -> ModelConditions:
    """Vanilla and the mitigations that apply to a model; each is tried, so that a refusal is known now."""
    known = {entry.name for entry in registry.list_entries("mitigations")}
    conditions, missing = [SweepCondition(VANILLA)], {}
    for mode in ("naive", "in-glove", "embedding", "classifier"):
        family = MODES[mode].partition(":")[0]
        condition = SweepCondition(mode, MODES[mode], _files(mode, data, name))
        if family not in known:
            missing[mode] = f"the mitigation {family} is not installed"
            continue
        try:
            registry.create_mitigation(MODES[mode], condition.options).apply(model)
        except EvenhandError as error:
            missing[mode] = str(error)
        else:
            conditions.append(condition)
            if mode == "embedding":
                options = {**condition.options, "sigma": EXTENDED_SIGMA}
                extended = f"{mode} sigma {EXTENDED_SIGMA:g}"
                conditions.append(SweepCondition(extended, condition.mitigation, options))
    return ModelConditions(tuple(conditions), missing)


def find_training_data(modes: ModelConditions) -> str | None:
    """The training data of the head that steers, as its card names it; None without a head."""
    if "classifier" not in modes.names:
        return None
    path = Path(str(modes.options("classifier")["calibrator"])) / "card.md"
    rows = read_text(path).splitlines() if path.is_file() else []
    data = (row.split("|")[2].strip() for row in rows if row.startswith("| data |"))
    return next(data, "articles that are not named")


def _files(mode: str, data: Path | None, name: str) -> dict[str, Option]:
    if data is None:
        return {}
    if mode == "classifier":
        heads = [data / CALIBRATOR / name, data / CALIBRATOR] if name else [data / CALIBRATOR]
        return next(({"calibrator": str(head)} for head in heads if (head / FILE).is_file()), {})
    vectors = data / VECTORS / "vectors.safetensors"
    return {"vectors": str(vectors)} if mode == "in-glove" and vectors.exists() else {}


class OptionValue(NamedTuple):
    """A mode at one value of an option, and the condition that is."""

    mode: Mode
    value: float
    condition: str


def list_option_values(option: str, modes: ModelConditions) -> list[OptionValue]:
    """The values of an option for every mode a model has, the mode's own among them."""
    known, settings = modes.names, list[OptionValue]()
    for mode, values in OPTION_VALUES[option].items():
        if mode in known:
            own = CalibrationConfig().gamma if option == "gamma" else SIGMA[mode]
            others = [OptionValue(mode, at, f"{mode} {option} {at:g}") for at in values]
            settings += sorted([OptionValue(mode, own, mode), *others], key=lambda one: one.value)
    return settings


def list_conditions(options: Sequence[str], modes: ModelConditions) -> list[SweepCondition]:
    """What has to be written besides the modes themselves."""
    return [
        SweepCondition(one.condition, MODES[one.mode], {**modes.options(one.mode), option: one.value})
        for option in options
        for one in list_option_values(option, modes)
        if one.condition not in modes.names
    ]
