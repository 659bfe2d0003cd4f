"""The models of the paper's tables and their conditions: unmodified, and under every available mitigation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from evenhand.audits.debias import MODES
from evenhand.audits.tradeoff import VANILLA, SweepCondition
from evenhand.core import registry
from evenhand.core.errors import EvenhandError
from evenhand.core.registry import Option
from evenhand.core.regular_files import read_text
from evenhand.mitigations.calibration import SIGMA, CalibrationConfig, Mode
from evenhand.papers.replicate import PaperSource, ReplicationRequest

BASELINE = "baseline"
"""The paper's name for the unmodified model."""
EXTENDED_SIGMA = 0.4
"""The target divergence per token in a second row of the mode ``embedding``, which changes little at the
paper's 0.02 (ADR 20)."""
FILE = "calibrator.safetensors"
"""The file of the steering head from `mitigations.calibrator`, whose import would load torch."""
CALIBRATOR, REGARD, VECTORS = "calibrator", "regard", "neutral"
"""Folders in ``--data`` with political and regard heads of `evenhand train calibrator`, and neutral vectors.
Heads of several models are in ``calibrator/NAME``, by model name."""
OPTION_VALUES: Final[Mapping[str, Mapping[Mode, tuple[float, ...]]]] = {
    "gamma": {"classifier": (0.5, 0.8, 1.0)},
    "sigma": {"embedding": (0.05, 0.1, 0.2, 0.4), "classifier": (0.02, 0.1, 0.2, 0.4)},
}
"""Option to mode to values, in addition to the mode's own."""


Conditions = Mapping[str, SweepCondition]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliticalSource(PaperSource):
    """A model with its conditions by name, and the reasons why others are missing."""

    spec: str
    conditions: Conditions
    missing: Mapping[str, str]
    regard_head: Path | None

    @property
    def swept_mode(self) -> str | None:
        """The mode whose strength is varied; in the paper it is the classifier."""
        return next((mode for mode in ("classifier", "embedding") if mode in self.conditions), None)

    @property
    def training_data(self) -> str | None:
        """The training data of the steering head, from its card; None without a head."""
        if "classifier" not in self.conditions:
            return None
        path = Path(str(self.conditions["classifier"].options["calibrator"])) / "card.md"
        rows = read_text(path).splitlines() if path.is_file() else []
        data = (row.split("|")[2].strip() for row in rows if row.startswith("| data |"))
        return next(data, "unnamed articles")


def load_source(name: str, spec: str, request: ReplicationRequest) -> PoliticalSource:
    """A model with vanilla and the mitigations that apply to it; each is applied to detect errors early."""
    model = registry.create_model(spec, {}, request.execution())
    installed = {entry.name for entry in registry.list_entries("mitigations")}
    conditions, missing = {VANILLA: SweepCondition(VANILLA)}, {}
    for mode in ("naive", "in-glove", "embedding", "classifier"):
        family, options = MODES[mode].partition(":")[0], _files(mode, request.data, name)
        if family not in installed:
            missing[mode] = f"the mitigation {family} is not installed"
            continue
        try:
            registry.create_mitigation(MODES[mode], options).apply(model)
        except EvenhandError as error:
            missing[mode] = str(error)
            continue
        conditions[mode] = SweepCondition(mode, MODES[mode], options)
        if mode == "embedding":
            extended = f"{mode} sigma {EXTENDED_SIGMA:g}"
            conditions[extended] = SweepCondition(extended, MODES[mode], {**options, "sigma": EXTENDED_SIGMA})
    regard_head = find_head(request.data, REGARD, name)
    return PoliticalSource(
        name, model, spec=spec, conditions=conditions, missing=missing, regard_head=regard_head
    )


def _files(mode: str, data: Path | None, name: str) -> dict[str, Option]:
    if mode == "classifier":
        head = find_head(data, CALIBRATOR, name)
        return {"calibrator": str(head)} if head else {}
    vectors = data / VECTORS / "vectors.safetensors" if data else None
    return {"vectors": str(vectors)} if mode == "in-glove" and vectors and vectors.exists() else {}


def find_head(data: Path | None, folder: str, name: str) -> Path | None:
    """The steering head of a model in a folder of ``--data``, by model name or directly."""
    heads = [data / folder / name, data / folder] if data else []
    return next((head for head in heads if (head / FILE).is_file()), None)


class OptionValue(NamedTuple):
    """A mode at one value of an option, and the name of that condition."""

    mode: Mode
    value: float
    condition: str


def list_option_values(option: str, conditions: Conditions) -> list[OptionValue]:
    """The values of an option for each mode of a model, including the mode's own value."""
    settings = list[OptionValue]()
    for mode, values in OPTION_VALUES[option].items():
        if mode in conditions:
            own = CalibrationConfig().gamma if option == "gamma" else SIGMA[mode]
            others = [OptionValue(mode, at, f"{mode} {option} {at:g}") for at in values]
            settings += sorted([OptionValue(mode, own, mode), *others], key=lambda one: one.value)
    return settings


def list_conditions(options: Sequence[str], conditions: Conditions) -> list[SweepCondition]:
    """The conditions to generate in addition to the modes themselves."""
    return [
        SweepCondition(name, MODES[mode], {**conditions[mode].options, option: value})
        for option in options
        for mode, value, name in list_option_values(option, conditions)
        if name not in conditions
    ]
