"""What a run is told: ``evenhand.toml``, then the arguments of the call, which win."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric
from evenhand.core.reading import read_text
from evenhand.core.records import Execution, GenerationSpec
from evenhand.core.registry import Option
from evenhand.core.toml import parse_toml
from evenhand.store.run import Run

Name = Annotated[str, StringConstraints(min_length=1, max_length=4096)]

PRESETS: Mapping[str, Mapping[str, Option]] = {
    "bold-gpt2": {
        "samples": 1,
        "max_new_tokens": 30,
        "temperature": 1.0,
        "top_k": 40,
        "top_p": 0.95,
        "stop": "none",
    },
    "bold-ctrl": {
        "samples": 1,
        "max_new_tokens": 30,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 0.9,
        "repetition_penalty": 1.2,
        "control_code": "Wikipedia",
        "stop": "none",
    },
    "bold-bert": {
        "samples": 1,
        "max_new_tokens": 15,
        "temperature": 0.7,
        "top_k": 0,
        "top_p": 1.0,
        "burn_in": 200,
        "iterations": 500,
        "stop": "none",
    },
    "regard": {
        "samples": 100,
        "max_new_tokens": 40,
        "temperature": 1.0,
        "top_k": 40,
        "top_p": 1.0,
        "stop": "sentence",
    },
    "political": {"samples": 10, "max_new_tokens": 100, "top_k": 0, "top_p": 1.0, "stop": "none"},
}
"""The papers' sampling settings; what a paper does not print is our default and said in the docs."""

FORWARD_PRESETS = ("bold-gpt2", "bold-ctrl")
"""Those of models that write from left to right: a masked model would write, and not as any paper has it."""

PRESET_METRICS: Mapping[str, Mapping[str, Mapping[str, Option]]] = {"regard": {"sentiment": {"cut": 0.05}}}
"""Preset to metric to its options: the regard study reads VADER at the cut its authors give."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSettings(_Section):
    """``[model]``."""

    name: Name = "builtin"
    options: dict[str, str | int | float | bool] = {}


class SuiteSettings(_Section):
    """``[suite]``."""

    names: tuple[Name, ...] = ("starter",)
    limit: int | None = Field(default=None, ge=1)
    mask: Literal["none", "paper"] = "paper"


class GenerationSettings(_Section):
    """``[generation]``; what is not given comes from the preset, then from the suite."""

    preset: Name | None = None
    samples: int | None = Field(default=None, ge=1)
    max_new_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    top_k: int | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    repetition_penalty: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    control_code: str | None = None
    stop: Literal["sentence", "none"] | None = None
    burn_in: int | None = Field(default=None, ge=0)
    iterations: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0)

    @field_validator("preset")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and value not in PRESETS:
            raise ValueError(f"one of {', '.join(PRESETS)}")
        return value

    def spec(self, suite: GenerationSpec) -> GenerationSpec:
        """The sampling of a suite: its own, changed by the preset, changed by what was given."""
        given = {
            **PRESETS.get(self.preset or "", {}),
            **self.model_dump(exclude_none=True, exclude={"preset"}),
        }
        fields = {name: getattr(suite, name) for name in GenerationSpec.__dataclass_fields__}
        return GenerationSpec(**{**fields, **given})


class MetricSettings(_Section):
    """``[metrics]``; without names the suite's own list."""

    names: tuple[Name, ...] = ()
    options: dict[str, dict[str, str | int | float | bool]] = {}


class MitigationSettings(_Section):
    """``[mitigation]``; without a name the model writes as it is."""

    name: Name | None = None
    options: dict[str, str | int | float | bool] = {}


class CompareSettings(_Section):
    """``[compare]``."""

    baselines: dict[str, str] = {}
    level: float = Field(default=0.95, gt=0.5, lt=1)
    correction: Literal["bh", "holm"] = "bh"
    test: Literal["cluster", "binomial", "chi-square", "paired-t", "wilcoxon"] = "cluster"
    strata: tuple[Name, ...] = ()
    pairs: bool = False
    intersections: bool = True
    check: Literal["auto", "all", "none"] = "auto"

    def identity(self) -> dict[str, Json]:
        """What belongs to a run's identity; an option that is off leaves no trace in it."""
        always = ("baselines", "level", "correction")
        plain, given = CompareSettings().model_dump(mode="json"), self.model_dump(mode="json")
        return {name: value for name, value in given.items() if name in always or value != plain[name]}


class GateSettings(_Section):
    """``[gate]``: what ``evenhand gate`` asks of a run."""

    max: tuple[Name, ...] = ()
    worse: tuple[Name, ...] = ()
    baseline_run: Name | None = None
    strict: bool = False


class ExecutionSettings(_Section):
    """``[execution]``: may change between two runs of the same command."""

    device: Name = "auto"
    batch: int | None = Field(default=None, ge=1)
    engine: Literal["local", "ray"] = "local"
    workers: int | None = Field(default=None, ge=1)
    address: Name | None = None
    offline: bool = False
    max_failures: float = Field(default=0.2, ge=0, le=1)

    def record(self) -> Execution:
        """The record handed to models and metrics."""
        return Execution(self.device, self.batch, self.workers or 1, self.offline)


class Settings(_Section):
    """All of ``evenhand.toml``."""

    model: ModelSettings = ModelSettings()
    suite: SuiteSettings = SuiteSettings()
    generation: GenerationSettings = GenerationSettings()
    metrics: MetricSettings = MetricSettings()
    mitigation: MitigationSettings = MitigationSettings()
    compare: CompareSettings = CompareSettings()
    gate: GateSettings = GateSettings()
    execution: ExecutionSettings = ExecutionSettings()

    def metric_options(self, name: str) -> dict[str, Option]:
        """The options of a metric: the preset's, changed by what was given."""
        preset = PRESET_METRICS.get(self.generation.preset or "", {}).get(name, {})
        return {**preset, **self.metrics.options.get(name, {})}


class Options(TypedDict, total=False):
    """The options every run shares, as arguments of a call; each is one setting of ``evenhand.toml``."""

    config: Path | str | None
    metrics: str | Sequence[str | Metric] | None
    limit: int | None
    mask: str | None
    preset: str | None
    samples: int | None
    max_new_tokens: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    repetition_penalty: float | None
    control_code: str | None
    stop: str | None
    burn_in: int | None
    iterations: int | None
    seed: int | None
    baseline: Mapping[str, str] | None
    level: float | None
    correction: str | None
    test: str | None
    strata: Sequence[str] | None
    pairs: bool | None
    intersections: bool | None
    check: str | None
    device: str | None
    batch: int | None
    engine: str | None
    workers: int | None
    address: str | None
    offline: bool | None
    max_failures: float | None
    out: Path | str | None
    fresh: bool
    retry_failed: bool
    command: str
    log: str | Sequence[str] | None
    log_texts: bool
    callbacks: Sequence[Callable[[Run], None]]
    log: str | Sequence[str] | None


_FIELDS: Mapping[str, tuple[str, str]] = {
    **{name: ("suite", name) for name in ("limit", "mask")},
    **{name: ("generation", name) for name in GenerationSettings.model_fields},
    "baseline": ("compare", "baselines"),
    **{name: ("compare", name) for name in CompareSettings.model_fields if name != "baselines"},
    **{name: ("execution", name) for name in ExecutionSettings.model_fields},
}
"""Option to the section and field it sets."""


def resolve(options: Options, **given: Mapping[str, object]) -> Settings:
    """The settings of a run: the file, then the options, then what is given by section; None is not given."""
    given_file = options.get("config")
    config = Path(given_file) if given_file else None
    sections: dict[str, dict[str, object]] = {name: dict(values) for name, values in _read(config).items()}
    for name, value in options.items():
        if name in _FIELDS and value is not None:
            section, field = _FIELDS[name]
            sections.setdefault(section, {})[field] = value
    for section, values in given.items():
        kept = {name: value for name, value in values.items() if value is not None}
        sections.setdefault(section, {}).update(kept)
    try:
        return Settings.model_validate(sections)
    except ValidationError as error:
        raise _readable(error, config) from error


def _read(config: Path | None) -> Mapping[str, Mapping[str, object]]:
    if config is None:
        return {}
    if not config.is_file():
        raise InputError(
            f"{config} is not there", accepted="a settings file", todo="`evenhand init` writes one"
        )
    try:
        found = parse_toml(read_text(config, encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"{config} cannot be read as TOML: {error}",
            accepted="a file such as `evenhand init` writes",
            todo="repair it, or leave out --config",
        ) from error
    loose = next((name for name, values in found.items() if not isinstance(values, dict)), None)
    if loose is not None:
        raise InputError(
            f"{config}: {loose[:80]!r} is no section",
            accepted=", ".join(f"[{name}]" for name in Settings.model_fields),
            todo="put it under the section it belongs to",
        )
    return found


def _readable(error: ValidationError, config: Path | None) -> InputError:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    value = repr(first.get("input"))
    section = str(first["loc"][0]) if first["loc"] else ""
    model = Settings.model_fields.get(section)
    fields = getattr(model.annotation, "model_fields", {}) if model else Settings.model_fields
    is_unknown = first["type"] == "extra_forbidden"
    said = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    options = {f"{section}.{field}": name for name, (section, field) in _FIELDS.items()}
    flag = f"--{options[place].replace('_', '-')}" if place in options else ""
    otherwise = f", or give {flag}" if flag else ""
    return InputError(
        f"there is no setting {place!r}" if is_unknown else f"{place} is {value[:80]}",
        accepted=", ".join(fields) if is_unknown else said,
        todo=f"change it in {config}{otherwise}" if config else f"change {flag or 'that option'}",
    )
