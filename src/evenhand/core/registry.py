"""Finds suites, models, metrics and mitigations by name, through entry points only.

Built-ins are registered in ``pyproject.toml`` exactly as plug-ins are. Names are listed without importing
anything; an object is imported when it is requested.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

from evenhand.core.deprecation import resolve_former_names
from evenhand.core.errors import InputError, MissingLibraryError, UnknownNameError
from evenhand.core.protocols import Metric, Mitigation, Model, SetMetric, Suite
from evenhand.core.records import Execution

Kind = Literal["suites", "models", "metrics", "mitigations"]
KINDS: tuple[Kind, ...] = ("suites", "models", "metrics", "mitigations")
Option = str | int | float | bool | None

EXTRAS: Mapping[str, str] = {
    library: extra
    for extra, libraries in {
        "models": "torch transformers tokenizers gguf huggingface_hub",
        "api": "httpx stamina",
        "ray": "ray",
        "train": "textblob",
        "corpus": "fsspec lemminflect mwparserfromhell zstandard",
        "viz": "umap",
        "lm-eval": "datasets",
        "inspect": "inspect_ai",
        "annotate": "sqlalchemy starlette uvicorn",
        "mlflow": "mlflow",
        "wandb": "wandb",
    }.items()
    for library in libraries.split()
}
"""Optional library to the extra that installs it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered name and its origin."""

    kind: Kind
    name: str
    package: str
    target: str

    @property
    def about(self) -> str:
        """The first line of its docstring, read without importing it; empty if there is none."""
        module, _, name = self.target.partition(":")
        try:
            spec = find_spec(module)
            source = Path(spec.origin).read_bytes() if spec and spec.origin else b""
            body = ast.parse(source).body
        except Exception:
            # A plug-in that is broken or has no source is still listed.
            return ""
        for item in body:
            if isinstance(item, ast.ClassDef | ast.FunctionDef) and item.name == name:
                text = ast.get_docstring(item) or ""
                return text.partition("\n")[0].replace("`", "").replace("*", "")
        return ""


def list_entries(kind: Kind) -> tuple[Entry, ...]:
    """All registered names of a kind, sorted, without importing any of them."""
    return tuple(
        Entry(kind, point.name, point.dist.name if point.dist else "?", point.value)
        for point in sorted(_entry_points(kind).values(), key=lambda point: point.name)
    )


def create_plugin(
    kind: Kind, name: str, options: Mapping[str, Option], execution: Execution | None = None
) -> object:
    """The object registered under ``name``, built with the options that its factory accepts.

    ``execution`` (device, batch) is passed to factories that accept it.
    """
    build = load_factory(kind, name)
    accepted = inspect.signature(build).parameters
    if unknown := next((option for option in options if option not in accepted), None):
        raise InputError(
            f"{kind[:-1]} {name!r} has no option {unknown!r}",
            expected=", ".join(one for one in accepted if one != "execution") or "no options",
            fix=f"see `evenhand show {name}`",
        )
    if missing := next((option for option in required_options(build) if option not in options), None):
        raise InputError(
            f"{kind[:-1]} {name!r} needs the option {missing}",
            expected=f"{name}:{missing.upper()}",
            fix=f"name one: see `evenhand show {name}`",
        )
    extra = {"execution": execution or Execution()} if "execution" in accepted else {}
    with _name_missing_library(f"{kind[:-1]} {name!r}"):
        return build(**options, **extra)


def load_factory(kind: Kind, name: str) -> Callable[..., object]:
    """The factory registered under ``name``."""
    points = _entry_points(kind)
    if name not in points:
        near = get_close_matches(name, points, n=3, cutoff=0.6)
        raise UnknownNameError(
            f"there is no {kind[:-1]} named {name!r}",
            expected=", ".join(sorted(points)) or "none is installed",
            fix=f"did you mean {' or '.join(map(repr, near))}?" if near else f"see `evenhand list {kind}`",
        )
    with _name_missing_library(f"{name!r}"):
        return cast("Callable[..., object]", points[name].load())


def required_options(build: Callable[..., object]) -> list[str]:
    """The options that a factory requires."""
    parameters = inspect.signature(build).parameters.values()
    return [item.name for item in parameters if item.default is item.empty and item.name != "execution"]


def create_suite(
    spec: str, options: Mapping[str, Option] | None = None, execution: Execution | None = None
) -> Suite:
    """The suite of a spec: ``starter``, or ``bold:FOLDER``, where ``FOLDER`` is passed as ``name``."""
    return cast(Suite, _create("suites", spec.partition(":"), "name", options, execution))


def create_metric(
    spec: str, options: Mapping[str, Option] | None = None, execution: Execution | None = None
) -> Metric | SetMetric:
    """The metric of a spec: ``sentiment``, or ``regard=ORG/NAME@REV`` for another model behind it."""
    return cast("Metric | SetMetric", _create("metrics", spec.partition("="), "source", options, execution))


def create_mitigation(spec: str, options: Mapping[str, Option] | None = None) -> Mitigation:
    """The mitigation of a spec: ``calibration``, or ``calibration:classifier`` to choose a mode."""
    return cast(Mitigation, _create("mitigations", spec.partition(":"), "mode", options))


def create_model(
    spec: str, options: Mapping[str, Option] | None = None, execution: Execution | None = None
) -> Model:
    """The model of a spec: ``backend``, ``backend:rest``, a ``.gguf`` file, a folder or a Hub id.

    A spec without a back-end is passed to ``hub``, which detects the architecture.
    """
    parts = spec.partition(":")
    is_named = parts[0] in _entry_points("models")
    return cast(
        Model, _create("models", parts if is_named else ("hub", ":", spec), "name", options, execution)
    )


def _create(
    kind: Kind,
    spec: tuple[str, str, str],
    option: str,
    options: Mapping[str, Option] | None,
    execution: Execution | None = None,
) -> object:
    """The object registered under the first part of a spec; the last part is passed as an option."""
    name, _, value = spec
    return create_plugin(kind, name, {**(options or {}), **({option: value} if value else {})}, execution)


def require_library(library: str, who: str = "this step") -> Any:
    """Import an optional library; raises an error that names the extra if it is not installed."""
    with _name_missing_library(who):
        return import_module(library)


@contextmanager
def _name_missing_library(who: str) -> Iterator[None]:
    """Turn the ImportError of an optional library into an error that names the extra."""
    try:
        yield
    except MissingLibraryError:
        raise
    except ImportError as error:
        top = (error.name or "").partition(".")[0]
        if top not in EXTRAS:
            raise
        raise MissingLibraryError(
            f"{who} needs the library {top!r}, which is not installed",
            expected=f"the extra `{EXTRAS[top]}` brings it",
            fix=f'pip install "evenhand[{EXTRAS[top]}]", or ".[{EXTRAS[top]}]" in a clone',
        ) from error


def _entry_points(kind: Kind) -> dict[str, EntryPoint]:
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=f"evenhand.{kind}"):
        other = points.setdefault(point.name, point)
        if other.value != point.value:
            raise InputError(
                f"the {kind[:-1]} name {point.name!r} is registered twice: {other.value} and {point.value}",
                expected="one package per name",
                fix="uninstall one of the two packages, or rename its entry point",
            )
    return points


__getattr__ = resolve_former_names(
    __name__,
    {
        "available": "list_entries",
        "create": "create_plugin",
        "factory": "load_factory",
        "metric": "create_metric",
        "mitigation": "create_mitigation",
        "model": "create_model",
        "need": "require_library",
        "required": "required_options",
        "suite": "create_suite",
    },
)
