"""What users can name: functions, options, tables, keys. The tests hold it against what version 1 had.

Where the machinery behind it changes (another argument parser, say), this file is the one to follow: it says
how the surface is read, never what it should be.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import re
import sys
import tomllib
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.v1.commands import ROOT, WORK

import evenhand
from evenhand.core.options import fields_of, options_of

Tree = Mapping[str, Any]
MODULES: Final = (
    "evenhand",
    "evenhand.testing",
    "evenhand.core.protocols",
    "evenhand.core.records",
    "evenhand.core.errors",
    "evenhand.core.registry",
)
"""What the documentation tells authors of plug-ins and scripts to import from."""
GUARDS: Final = ("faults", "fuzz", "security")
"""Folders of tests none of which may be deleted."""


def collect() -> dict[str, Tree]:
    """The whole surface, by part."""
    return {
        "names": names(),
        "signatures": signatures(),
        "commands": commands(),
        "tables": tables(),
        "settings": settings(),
        "entry_points": entry_points(),
        "integrations": integrations(),
        "bars": bars(),
        "guards": guards(),
    }


def names() -> Tree:
    """Module to public name to what it has: fields and methods of a class."""
    return {module: _module(module) for module in MODULES}


def members(wanted: Mapping[str, Mapping[str, object]]) -> Tree:
    """The same of named modules and names alone, whether or not they are still listed."""
    modules = {name: (importlib.import_module(name), keys) for name, keys in wanted.items()}
    return {
        name: {key: _members(getattr(module, key)) for key in keys if hasattr(module, key)}
        for name, (module, keys) in modules.items()
    }


def _module(name: str) -> Tree:
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", None) or [
        key
        for key, value in vars(module).items()
        if not key.startswith("_") and getattr(value, "__module__", "") == name
    ]
    return {key: _members(getattr(module, key)) for key in sorted(listed)}


def _members(value: object) -> list[str]:
    if not inspect.isclass(value):
        return []
    own = {key for key in dir(value) if not key.startswith("_")} - set(dir(ValueError)) - set(dir(tuple))
    return sorted(own | set(getattr(value, "__annotations__", {})))


def signatures() -> Tree:
    """Function to argument to its default as JSON; null where there is none or it is an object."""
    functions = {name: getattr(evenhand, name) for name in evenhand.__all__}
    functions = {name: value for name, value in functions.items() if inspect.isfunction(value)}
    return {name: dict(_arguments(value)) for name, value in functions.items()}


def _arguments(function: Callable[..., object]) -> Iterator[tuple[str, object]]:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            for name, field in fields_of(options_of(function)).items():
                yield name, _plain(field.default)
        else:
            yield parameter.name, _plain(parameter.default)


def _plain(default: object) -> object:
    plain = list(default) if isinstance(default, tuple | list) else default
    return plain if isinstance(plain, str | int | float | list) else None


def commands() -> Tree:
    """Command to parameter to what it takes, as the reference has them, which is written from the program."""
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    parts = re.split(r"(?m)^#+ `evenhand ([\w -]+)`$", page)[1:]
    return {name: dict(_parameters(text)) for name, text in zip(parts[::2], parts[1::2], strict=True)}


_PARAMETER: Final = re.compile(
    r"(?m)^\* `(?P<name>-*[\w-]+)(?: / --[\w-]+)?(?:\.\.\.)?(?: <(?P<kind>[^>]*)>)?`:(?P<about>.*)$"
)


def _parameters(text: str) -> Iterator[tuple[str, Tree]]:
    for line in _PARAMETER.finditer(text.partition("**Commands**")[0]):
        default = re.search(
            r"\[default: ([^];]*)[^]]*\]$|\(default (.*?)\)\.$|(\S+) \(the default\)", line["about"]
        )
        shown = next(filter(None, default.groups()), "").replace(", ", ",") if default else None
        yield (
            line["name"] if line["name"].startswith("-") else line["name"].upper(),
            {
                "type": (line["kind"] or "flag").removesuffix(" range"),
                "required": line["about"].endswith("[required]"),
                "default": shown,
            },
        )


def tables(names: Iterable[str] | None = None) -> Tree:
    """Table to column to its type, of every table a run folder may hold."""
    run = evenhand.Run.open(WORK / "audit")
    wanted = _table_names() if names is None else names
    return {name: {key: str(kind) for key, kind in run.table(name).schema.items()} for name in wanted}


def _table_names() -> list[str]:
    """The tables that the reference names."""
    text = (ROOT / "docs" / "reference" / "run-folder.md").read_text(encoding="utf-8")
    return sorted(set(re.findall(r"`(\w+)\.parquet`", text)))


def settings(file: Path = WORK / "evenhand.toml") -> Tree:
    """Section to key to value, as ``evenhand init`` wrote them, those in comments included."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return tomllib.loads("\n".join(re.sub(r"^# (?=[\w.]+ = )", "", line) for line in lines))


def entry_points() -> Tree:
    """Group to names, as the package declares them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        **{group: sorted(points) for group, points in project["entry-points"].items()},
        "scripts": sorted(project["scripts"]),
        "extras": sorted(project["optional-dependencies"]),
    }


def integrations() -> Tree:
    """What other tools call: the GitHub Action, the hooks of pre-commit, the plug-in of pytest."""
    import yaml

    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    return {
        "action inputs": {name: about.get("default", "") for name, about in action["inputs"].items()},
        "action outputs": sorted(action["outputs"]),
        "hooks": {hook["id"]: hook["entry"] for hook in hooks},
    }


def bars() -> Tree:
    """Result and place in it to the bar, the committed figure, and which way is better."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = _load(ROOT / "benchmarks" / "bars.py")
    results = {path.stem: json.loads(path.read_text()) for path in module.RESULTS.glob("*.json")}
    return {
        " / ".join([bar.file, *bar.path]): {
            "work": bar.work,
            "against": bar.against,
            "bar": bar.bar,
            "at_most": bar.at_most,
            "unit": bar.unit,
            "machine": bar.machine,
            "figure": bar.figure(results.get(bar.file, {})),
        }
        for bar in module.BARS
    }


def _load(path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"v1_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def guards() -> Tree:
    """Folder to the names of its test functions."""
    return {folder: sorted(test_names(ROOT / "tests" / folder)) for folder in GUARDS}


def test_names(folder: Path) -> set[str]:
    """The names of all test functions in the files of a folder."""
    files = [path.read_text(encoding="utf-8") for path in folder.rglob("test_*.py")]
    return {name for text in files for name in re.findall(r"(?m)^ *(?:async )?def (test_\w+)", text)}


test_names.__test__ = False  # type: ignore[attr-defined]


def keys_of(value: object, path: str = "") -> list[str]:
    """Every path of keys in a JSON value; ``[]`` stands for the items of a list."""
    paths: set[str] = set()
    if isinstance(value, dict):
        for key, inner in value.items():
            paths |= {f"{path}.{key}".strip("."), *keys_of(inner, f"{path}.{key}")}
    elif isinstance(value, list):
        for inner in value:
            paths |= set(keys_of(inner, f"{path}[]"))
    return sorted(one.strip(".") for one in paths)
