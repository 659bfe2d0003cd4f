"""``available`` and ``card``: the installed plug-ins, and the card of each."""

from __future__ import annotations

import inspect
from dataclasses import asdict, is_dataclass
from difflib import get_close_matches
from pathlib import Path

from evenhand.core import registry
from evenhand.core.errors import InputError, UnknownNameError
from evenhand.core.files import ASSETS_FOLDER
from evenhand.core.options import checks_options
from evenhand.core.records import Execution, MetricInfo
from evenhand.core.registry import Entry, Kind
from evenhand.store.metric_evidence import format_evidence


@checks_options
def available(kind: Kind | None = None) -> tuple[Entry, ...]:
    """Every suite, model, metric and mitigation that is installed, without importing any of them."""
    kinds = registry.KINDS if kind is None else (kind,)
    return tuple(entry for each in kinds for entry in registry.list_entries(each))


@checks_options
def card(name: str) -> str:
    """The card of a suite, metric, mitigation, model or embedded asset, as Markdown."""
    parts = [text for text in (_describe(name), _read_written_card(name)) if text]
    if parts:
        return "\n\n".join(parts)
    names = sorted(
        {entry.name for entry in available()} | {path.parent.name for path in ASSETS_FOLDER.glob("*/card.md")}
    )
    near = get_close_matches(name, names, n=3, cutoff=0.6)
    raise UnknownNameError(
        f"nothing is named {name!r}",
        expected=", ".join(names),
        fix=f"did you mean {' or '.join(map(repr, near))}?" if near else "see `evenhand list`",
    )


def _describe(name: str) -> str:
    """The object's own description: its ``info``, or the docstring of what needs arguments."""
    entry = next((entry for entry in available() if entry.name == name), None)
    if entry is None:
        return ""
    factory = registry.load_factory(entry.kind, name)
    described = f"# {name}\n\n{inspect.getdoc(factory) or ''}"
    if entry.kind == "models" or registry.required_options(factory):
        return described
    try:
        plugin = registry.create_plugin(entry.kind, name, {}, Execution(offline=True))
    except InputError:
        return described  # a suite whose data is not on this machine still has a card
    info = getattr(plugin, "info", None)
    evidence = format_evidence(name, info) if isinstance(info, MetricInfo) else ""
    return "\n\n".join(part for part in (_as_markdown(name, info), evidence) if part)


def _read_written_card(name: str) -> str:
    name = name.replace(":", "-")  # builtin:masked is kept in a folder
    if name != Path(name).name:
        return ""
    folders = (
        ASSETS_FOLDER / "classifiers" / f"{name}.md",
        ASSETS_FOLDER / "suites" / f"{name}.md",
        ASSETS_FOLDER / name / "card.md",
    )
    return "\n\n".join(path.read_text(encoding="utf-8") for path in folders if path.is_file())


def _as_markdown(name: str, info: object) -> str:
    if not is_dataclass(info) or isinstance(info, type):
        return ""
    lines = [f"# {name}", ""]
    fields = asdict(info)
    outputs = fields.pop("outputs", ())
    for field, value in fields.items():
        if field != "name" and value not in ("", (), {}, None):
            lines.append(f"- **{field.replace('_', ' ')}**: {_format_field(value)}")
    for output in outputs:
        span = f"{output['low']} to {output['high']}" if output["low"] is not None else "unbounded"
        labels = f"; labels {', '.join(output['labels'])}" if output["labels"] else ""
        lines.append(f"- output `{output['name']}` ({span}): larger means {output['larger_means']}{labels}")
    return "\n".join(lines)


def _format_field(value: object) -> str:
    """A field in words: sentences follow each other, names are separated by commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "; ".join(
            f"{name} = {_format_field(each)}" for name, each in value.items() if each is not None
        )
    if isinstance(value, tuple | list):
        parts = [_format_field(each) for each in value]
        return (" " if any(part.endswith(".") for part in parts) else ", ").join(parts)
    return str(value)
