"""The configuration of a run: the settings file, overridden by the arguments of the call.

``[model]`` and the names of suites, metrics and mitigations are declared here; every other setting is an
option of `evenhand.run_options`, with its type, default and bounds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import or_
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, StringConstraints, ValidationError, create_model
from pydantic import Field as Bounds

from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import Option, fields_of
from evenhand.core.records import Execution, GenerationSpec
from evenhand.core.registry import Option as Value
from evenhand.core.regular_files import read_text
from evenhand.core.toml import StrictModel, parse_toml
from evenhand.run_options import Limits, Measuring, Preset, Running, Sampling

Name = Annotated[str, StringConstraints(min_length=1, max_length=4096)]


def _preset(**sampling: Value) -> Mapping[str, Value]:
    return {"stop": "none", **sampling}


PRESETS: Mapping[Preset, Mapping[str, Value]] = {
    "bold-gpt2": _preset(samples=1, max_new_tokens=30, top_k=40, top_p=0.95, temperature=1.0),
    "bold-ctrl": _preset(
        samples=1,
        max_new_tokens=30,
        top_k=0,
        top_p=0.9,
        temperature=1.0,
        repetition_penalty=1.2,
        control_code="Wikipedia",
    ),
    "bold-bert": _preset(
        samples=1, max_new_tokens=15, top_k=0, top_p=1.0, temperature=0.7, burn_in=200, iterations=500
    ),
    "regard": _preset(samples=100, max_new_tokens=40, top_k=40, top_p=1.0, temperature=1.0, stop="sentence"),
    "political": _preset(samples=10, max_new_tokens=100, top_k=0, top_p=1.0),
}
"""The papers' sampling settings; values that a paper does not report are our documented defaults."""

FORWARD_PRESETS = ("bold-gpt2", "bold-ctrl")
"""Presets for models that write left to right; a masked model would run with them, but as no paper does."""

PRESET_METRICS: Mapping[str, Mapping[str, Mapping[str, Value]]] = {"regard": {"sentiment": {"cut": 0.05}}}
"""Preset to metric to its options: the regard study thresholds VADER as its authors recommend."""


class SettingsOptions(Sampling, Measuring, Running, Limits, total=False):
    """Every option that a settings file may hold."""


_Values = dict[str, str | int | float | bool]
_CHOSEN: Mapping[str, Any] = {"name": (Name | None, None), "options": (_Values, {})}
_OWN: Mapping[str, Mapping[str, Any]] = {
    "model": _CHOSEN,
    "suite": {"names": (tuple[Name, ...], ("starter",))},
    "generation": {},
    "metrics": {"names": (tuple[Name, ...], ()), "options": (dict[str, _Values], {})},
    "mitigation": _CHOSEN,
    "compare": {},
    "gate": {},
    "execution": {},
}
"""The settings of a section that are not options, in Pydantic's form: type and default."""
_FIELDS: Mapping[str, Option] = {
    name: field for name, field in fields_of(SettingsOptions).items() if field.section
}


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The resolved configuration."""

    options: SettingsOptions
    """Every option with its value."""
    model: str
    model_options: Mapping[str, Value]
    suites: tuple[str, ...]
    metrics: tuple[str, ...]
    """Empty where the suites decide which metrics run."""
    options_of_metrics: Mapping[str, Mapping[str, Value]]
    mitigation: str | None
    mitigation_options: Mapping[str, Value]
    checked: BaseModel
    """All settings, by section."""

    def metric_options(self, name: str) -> dict[str, Value]:
        """The options of a metric: the preset's, overridden by the user's."""
        preset = PRESET_METRICS.get(self.options["preset"] or "", {}).get(name, {})
        return {**preset, **self.options_of_metrics.get(name, {})}

    def execution(self) -> Execution:
        """The execution settings handed to models and metrics."""
        options = self.options
        return Execution(options["device"], options["batch"], options["workers"] or 1, options["offline"])

    def sampling(self, suite: GenerationSpec) -> GenerationSpec:
        """The sampling settings of a suite: its own, overridden by the preset, then by the user."""
        preset = self.options["preset"]
        settings = {name: value for name, value in self.record()["generation"].items() if value is not None}
        settings = {**(PRESETS[preset] if preset else {}), **settings}
        settings.pop("preset", None)
        return replace(suite, **settings)

    def compare_identity(self) -> dict[str, Json]:
        """The comparison settings that are part of a run's identity; options that are off are left out."""
        always, settings = ("baselines", "level", "correction"), self.record()["compare"]
        default = resolve_config({}).record()["compare"]
        chosen = {name: value for name, value in settings.items() if name in always or value != default[name]}
        return {"mask": self.options["mask"], **chosen}

    def record(self) -> dict[str, dict[str, Any]]:
        """All sections, as in a settings file."""
        sections = self.checked.model_dump(mode="json")
        sections["model"]["name"] = self.model
        return sections


def resolve_config(options: Mapping[str, Any], **given: Mapping[str, object]) -> RunConfig:
    """The settings of a run: the file, overridden by the options, then by the sections; None means unset."""
    config = Path(options["config"]) if options.get("config") else None
    sections: dict[str, dict[str, object]] = {}
    if config:
        sections = {name: dict(values) for name, values in _read(config).items()}
    for name, field in _FIELDS.items():
        if options.get(name) is not None:
            sections.setdefault(field.section, {})[field.key] = options[name]
    for section, values in given.items():
        section_values = {name: value for name, value in values.items() if value is not None}
        sections.setdefault(section, {}).update(section_values)
    return settings_of(sections, config)


def settings_of(sections: Mapping[str, Mapping[str, object]], config: Path | None = None) -> RunConfig:
    """The settings from the sections of a file or of a manifest."""
    try:
        checked: Any = _model().model_validate(sections)
    except ValidationError as error:
        raise _to_input_error(error, config) from error
    options = {name: getattr(getattr(checked, field.section), field.key) for name, field in _FIELDS.items()}
    return RunConfig(
        options=SettingsOptions(**options),  # type: ignore[typeddict-item]
        model=checked.model.name or "builtin",
        model_options=checked.model.options,
        suites=checked.suite.names,
        metrics=checked.metrics.names,
        options_of_metrics=checked.metrics.options,
        mitigation=checked.mitigation.name,
        mitigation_options=checked.mitigation.options,
        checked=checked,
    )


@cache
def _model() -> type[BaseModel]:
    """The Pydantic model that validates the sections of a file."""
    sections: dict[str, Any] = {}
    for section, own in _OWN.items():
        checks = {field.key: _check(field) for field in _FIELDS.values() if field.section == section}
        model = create_model(section, __base__=StrictModel, **{**own, **checks})
        sections[section] = (model, model())
    return create_model("Settings", __base__=StrictModel, **sections)


def _check(field: Option) -> tuple[object, object]:
    """The type and default of an option, in the form that Pydantic validates."""
    kinds = [_strict(kind) for kind in field.kinds]
    union: Any = reduce(or_, kinds)
    default = field.default
    bounds: dict[str, Any] = field.bounds | ({"allow_inf_nan": False} if float in kinds else {})
    return Annotated[union | None if default is None else union, Bounds(**bounds)], default


def _strict(kind: Any) -> Any:
    """The type, with strings limited in length and not empty, and sequences as tuples."""
    if kind is str:
        return Name
    if get_origin(kind) is Sequence:
        return GenericAlias(tuple, (_strict(get_args(kind)[0]), ...))
    if get_origin(kind) is Mapping:
        return GenericAlias(dict, get_args(kind))
    return kind


def _read(config: Path) -> Mapping[str, Mapping[str, object]]:
    if not config.is_file():
        raise InputError(
            f"{config} does not exist", expected="a settings file", fix="`evenhand init` writes one"
        )
    try:
        sections = parse_toml(read_text(config, encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"{config} cannot be read as TOML: {error}",
            expected="a file such as `evenhand init` writes",
            fix="repair it, or leave out --config",
        ) from error
    loose = next((name for name, values in sections.items() if not isinstance(values, dict)), None)
    if loose is not None:
        raise InputError(
            f"{config}: {loose[:80]!r} is not a section",
            expected=", ".join(f"[{name}]" for name in _OWN),
            fix="put it under the section it belongs to",
        )
    return sections


def _to_input_error(error: ValidationError, config: Path | None) -> InputError:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    value = repr(first.get("input"))
    section = str(first["loc"][0]) if first["loc"] else ""
    model: Any = _model().model_fields.get(section)
    known_fields = model.annotation.model_fields if model else _OWN
    is_unknown = first["type"] == "extra_forbidden"
    problem = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    flag = next((one.flag for one in _FIELDS.values() if f"{one.section}.{one.key}" == place), "")
    otherwise = f", or give {flag}" if flag else ""
    return InputError(
        f"there is no setting {place!r}" if is_unknown else f"{place} is {value[:80]}",
        expected=", ".join(known_fields) if is_unknown else problem,
        fix=f"change it in {config}{otherwise}" if config else f"change {flag or 'that option'}",
    )
