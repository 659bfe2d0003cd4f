"""Writes ``docs/reference/python.md`` from the docstrings and signatures; a test fails when it is stale.

What an option means is declared once, with its type, and taken from there.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, ForwardRef

import click
import typer

import evenhand
from evenhand.cli.app import app
from evenhand.core.options import fields_of, options_of

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "reference" / "python.md"
WIDTH: Final = 100
LONGEST: Final = 80
"""Characters of a default that is shown."""

HEAD: Final = """\
# Python

Every command has a twin: `evenhand.NAME(...)` takes the arguments of the command and returns what it made.
An option that is left out, or None, has its default; a keyword that a function does not have is an error.
Public names are imported from `evenhand`; what authors of plug-ins need is in `evenhand.core` and
`evenhand.testing`. Everything else may change without notice.

This page is written by `scripts/write_python_reference.py` from the code.

Most functions and keywords have the name of the command and of its option. These differ:
"""

KEYWORDS: Final = (
    ("audit, score", "--stratum", "strata"),
    ("audit", "--mitigate-option", "mitigation_options"),
    ("debias, tradeoff", "--mitigate-option", "options"),
    ("score", "FILE", "texts"),
    ("probe", "--label", "labels"),
    ("report", "--format", "formats"),
    ("annotate init", "STUDY", "folder"),
    ("annotate init", "--from", "source"),
    ("annotate forget", "--answers", "answers_too"),
    ("validate", "--map", "renamed"),
    ("train", "--from", "study"),
)
"""Commands, an option or argument of theirs, and the keyword of the function."""

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Measure": ("audit", "score", "probe", "scan_corpus", "power"),
    "Compare and decide": ("compare", "gate", "merge", "render"),
    "Mitigate": ("debias", "tradeoff"),
    "Ask people": (
        "create_study",
        "invite_people",
        "serve_study",
        "forget_person",
        "agreement",
        "ratings",
        "sample_items",
        "settle_labels",
        "export_labels",
        "import_labels",
        "validate",
    ),
    "Train, build, replicate": ("train", "build", "export", "replicate"),
    "With other tools": ("frame_inputs", "score_predictions"),
    "What is there": ("available", "card"),
    "Results and errors": ("Run", "EvenhandError"),
}
"""Where a public name is told; one that is in none of these ends the page."""

AUTHORS: Final[Mapping[str, str]] = {
    "evenhand.core.protocols": "What a plug-in must be able to do; there is no base class to inherit.",
    "evenhand.core.records": "What passes between suites, models, metrics and tables.",
    "evenhand.core.errors": "The errors evenhand raises on purpose.",
    "evenhand.testing": "For tests of plug-ins and of models.",
}
COMMANDS: Final[Mapping[str, str]] = {
    "scan_corpus": "corpus",
    "render": "report",
    "available": "list",
    "card": "show",
    "create_study": "annotate init",
    "invite_people": "annotate invite",
    "serve_study": "annotate serve",
    "forget_person": "annotate forget",
    "agreement": "annotate agreement",
    "ratings": "annotate ratings",
    "sample_items": "annotate sample",
    "settle_labels": "annotate settle",
    "export_labels": "annotate export",
    "import_labels": "annotate import",
}
"""Functions whose command has another name."""
ALONE: Final[Mapping[str, str]] = {
    "progress": "Python alone: told of every step; silent by default.",
}
"""Parameters that are explained here."""


def page() -> str:
    """The page as it should be."""
    told = {name for names in SECTIONS.values() for name in names} | {"__version__"}
    rest = tuple(name for name in evenhand.__all__ if name not in told)
    parts = [HEAD, "| command | function |\n| --- | --- |"]
    parts += [f"| `{verb}` | `{name}` |" for name, verb in COMMANDS.items()]
    parts += ["\n| command | option | keyword |\n| --- | --- | --- |"]
    parts += [f"| `{verb}` | `{option}` | `{keyword}` |" for verb, option, keyword in KEYWORDS]
    parts += ["\n`--dry-run` belongs to the commands alone, and so does `gate --github`.\n"]
    for title, names in {**SECTIONS, **({"More": rest} if rest else {})}.items():
        parts += [f"## {title}\n", *(_public(name) for name in names)]
    parts.append("## For authors of plug-ins\n")
    for module, about in AUTHORS.items():
        parts += [f"### {module}\n\n{about}\n", *_members(module)]
    return "\n".join(parts).rstrip() + "\n"


def _public(name: str) -> str:
    found = getattr(evenhand, name)
    if inspect.isclass(found):
        return _class(name, found, level=3)
    verb = COMMANDS.get(name, name.replace("_", "-"))
    command = _COMMANDS.get(verb)
    lines = [f"### {name}\n", _code(f"evenhand.{name}{_signature(found)}"), _prose(found)]
    if fields_of(options_of(found)) or command:
        lines.append(_table(found, command))
    if command:
        lines.append(f"Command: [`evenhand {verb}`](command-line.md#evenhand-{verb.replace(' ', '-')}).\n")
    return "\n".join(lines)


def _commands() -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    root = typer.main.get_command(app)
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        found[name] = command
        found |= {f"{name} {sub}": inner for sub, inner in getattr(command, "commands", {}).items()}
    return found


_COMMANDS: Final = _commands()


def _table(function: Callable[..., object], command: click.Command | None) -> str:
    """Parameters that the command explains, and options."""
    help_of = {str(one.name): getattr(one, "help", None) or "" for one in command.params} if command else {}
    options, rows = options_of(function), []
    for one in inspect.signature(function).parameters.values():
        if about := help_of.get(one.name) or ALONE.get(one.name, ""):
            rows.append((one.name, str(one.annotation), about))
    for name, field in fields_of(options).items():
        rows.append((name, _kind(options.__annotations__[name]), field.text))
    cells = [f"| `{name}` | `{_cell(kind)}` | {_cell(about)} |" for name, kind, about in rows]
    return "\n".join(["| argument | type | |", "| --- | --- | --- |", *cells]) + "\n"


def _kind(annotation: ForwardRef) -> str:
    """The type in ``Annotated[type, Option(...)]``."""
    declared = ast.parse(annotation.__forward_arg__, mode="eval").body
    assert isinstance(declared, ast.Subscript)
    assert isinstance(declared.slice, ast.Tuple)
    return ast.unparse(declared.slice.elts[0])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _signature(function: Callable[..., object]) -> str:
    found = inspect.signature(function)
    parts, starred = [], False
    for one in found.parameters.values():
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or one.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL)
        parts.append(_parameter(one))
    result = f" -> {found.return_annotation}"
    line = f"({', '.join(parts)}){result}"
    return line if len(line) < WIDTH else "(\n    " + ",\n    ".join(parts) + f",\n){result}"


def _parameter(one: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(one.kind, "")
    if one.kind is inspect.Parameter.VAR_KEYWORD:
        return f"{stars}{one.name}"
    kind = "" if one.annotation is inspect.Parameter.empty else f": {one.annotation}"
    default = "" if one.default is inspect.Parameter.empty else f" = {_default(one.default)}"
    return f"{stars}{one.name}{kind}{default}"


def _default(value: object) -> str:
    shown = repr(value)
    # An object's address would change with every run; its class says as much.
    shown = f"{type(value).__name__}()" if " object at 0x" in shown else shown
    return shown if len(shown) <= LONGEST else "..."


def _class(name: str, kind: type, *, level: int) -> str:
    fields, methods = list(_fields(kind)), list(_methods(kind))
    lines = [f"{'#' * level} {name}\n", _prose(kind)]
    if fields:
        rows = [f"| `{field}` | `{_cell(type_)}` | {_cell(about)} |" for field, type_, about in fields]
        lines.append("\n".join(["| field | type | |", "| --- | --- | --- |", *rows]) + "\n")
    if methods:
        lines.append("\n".join(f"- `{signature}`: {about}" for signature, about in methods) + "\n")
    return "\n".join(lines)


def _fields(kind: type) -> Iterator[tuple[str, str, str]]:
    """Annotated fields with the string beneath each."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body  # type: ignore[attr-defined]
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            about = (
                after.value.value
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                else ""
            )
            yield node.target.id, ast.unparse(node.annotation), _plain(str(about))


def _methods(kind: type) -> Iterator[tuple[str, str]]:
    for name, member in vars(kind).items():
        if name.startswith("_") or not inspect.getdoc(member):
            continue
        if isinstance(member, property) and member.fget:
            result = inspect.signature(member.fget).return_annotation
            yield f"{name}: {result}", _plain(_first(inspect.getdoc(member) or ""))
        elif inspect.isfunction(member) or isinstance(member, classmethod):
            signature = _signature(getattr(kind, name)).replace("(self, ", "(").replace("(self)", "()")
            signature = " ".join(signature.split()).replace("( self, ", "(").replace(", )", ")")
            yield f"{name}{signature}", _plain(_first(inspect.getdoc(member) or ""))


def _members(module: str) -> Iterator[str]:
    """The classes and functions a module defines or names as public."""
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None) or [
        name
        for name, value in vars(found).items()
        if not name.startswith("_") and inspect.isclass(value) and value.__module__ == module
    ]
    for name in names:
        value = getattr(found, name)
        if inspect.isclass(value):
            yield _class(name, value, level=4)
        else:
            yield f"#### {name}\n\n{_code(f'{name}{_signature(value)}')}\n{_prose(value)}"


def _prose(found: object) -> str:
    """A docstring as Markdown: its arguments become a list, its examples code."""
    text = inspect.getdoc(found) or ""
    if text.startswith(f"{getattr(found, '__name__', '')}("):
        return ""  # what dataclasses write by themselves
    before, _, arguments = text.partition("\nArgs:\n")
    parts = [_examples(_plain(before))]
    if arguments:
        parts.append("\n" + _arguments(arguments))
    return "\n".join(parts).rstrip() + "\n"


def _arguments(text: str) -> str:
    block, _, rest = text.partition("\n\n")
    items = re.split(r"\n(?=\S)", textwrap.dedent(block))
    listed = [re.sub(r"^(\w+): ", r"- `\1`: ", " ".join(_plain(item).split())) for item in items]
    return "\n".join(listed) + (f"\n\n{_examples(_plain(textwrap.dedent(rest)))}" if rest else "")


def _examples(text: str) -> str:
    text = text.replace("  # doctest: +SKIP", "")
    return re.sub(
        r"(?m)((?:^ *>>> .*\n?(?:^(?! *>>>).+\n?)*)+)", lambda m: _code(m[1].rstrip(), "text"), text
    )


def _first(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _plain(text: str) -> str:
    return text.replace("``", "`").replace("<", "&lt;") if "`<" not in text else text.replace("``", "`")


def _code(text: str, language: str = "text") -> str:
    return f"```{language}\n{text}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
