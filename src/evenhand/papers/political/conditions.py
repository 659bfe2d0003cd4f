"""The conditions of the paper's tables: the model as it is, and every mitigation that can be had here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from evenhand.audits.debias import MODES
from evenhand.audits.mitigation_cost import VANILLA
from evenhand.audits.mitigation_sweep import SweepCondition
from evenhand.core import registry
from evenhand.core.errors import EvenhandError
from evenhand.core.protocols import Model
from evenhand.core.registry import Option
from evenhand.core.regular_files import read_text

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
    found, missing = [SweepCondition(VANILLA)], {}
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
            found.append(condition)
            if mode == "embedding":
                found.append(extend_condition(condition))
    return ModelConditions(tuple(found), missing)


def extend_condition(condition: SweepCondition) -> SweepCondition:
    """A calibration that may change more of the text than the paper's."""
    return replace(
        condition,
        name=f"{condition.name} sigma {EXTENDED_SIGMA:g}",
        options={**condition.options, "sigma": EXTENDED_SIGMA},
    )


def find_training_data(modes: ModelConditions) -> str | None:
    """What the head that steers has learned from, as its training says; None without a head."""
    found = {condition.name: condition.options for condition in modes.conditions}
    if "classifier" not in found:
        return None
    path = Path(str(found["classifier"]["calibrator"])) / "card.md"
    rows = read_text(path).splitlines() if path.is_file() else []
    said = [row.split("|")[2].strip() for row in rows if row.startswith("| data |")]
    return said[0] if said else "articles that are not named"


def _files(mode: str, data: Path | None, name: str) -> dict[str, Option]:
    if data is None:
        return {}
    if mode == "classifier":
        heads = [data / CALIBRATOR / name, data / CALIBRATOR] if name else [data / CALIBRATOR]
        return next(({"calibrator": str(head)} for head in heads if (head / FILE).is_file()), {})
    vectors = data / VECTORS / "vectors.safetensors"
    return {"vectors": str(vectors)} if mode == "in-glove" and vectors.exists() else {}
