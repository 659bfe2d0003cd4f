"""Reads a file of templates, TOML or CSV, as `template_format` describes it."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from evenhand.core.errors import InputError
from evenhand.core.reading import read_text
from evenhand.core.toml import parse_toml
from evenhand.suites.template_format import TemplateFile, misfits

_HEADER = ("kind", "axis", "name", "value")
_KINDS = "baseline, group, mask, slot, template, with"


def read_templates(path: Path) -> TemplateFile:
    """The checked contents of a template file; the first thing that does not fit is an error naming it."""
    reader = {".toml": _from_toml, ".csv": _from_csv}.get(path.suffix.lower())
    if reader is None:
        raise _error(path, f"the ending {path.suffix!r} is not known", "a file ending in .toml or .csv")
    try:
        file = _numbered(TemplateFile.model_validate(reader(_text(path), path)))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _error(path, f"{place}: {first['msg']}", "the keys and types of the format") from error
    for came, accepted in misfits(file):
        raise _error(path, came, accepted)
    return file


def _error(path: Path, came: str, accepted: str) -> InputError:
    todo = "mend the file; `evenhand show templates` shows the format"
    return InputError(f"{path.name}: {came}", accepted=accepted, todo=todo)


def _text(path: Path) -> str:
    try:
        return read_text(path, encoding="utf-8-sig")
    except OSError as error:
        raise _error(path, f"cannot be read ({error.strerror})", "a TOML or CSV file") from error
    except UnicodeDecodeError as error:
        raise _error(path, f"byte {error.start + 1} is not UTF-8", "text in UTF-8") from error


def _numbered(file: TemplateFile) -> TemplateFile:
    """The file with a number for each template that has no id."""
    templates = tuple(
        template if template.id else template.model_copy(update={"id": str(number)})
        for number, template in enumerate(file.templates, start=1)
    )
    return file.model_copy(update={"templates": templates})


def _from_toml(text: str, path: Path) -> Mapping[str, object]:
    try:
        return parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise _error(path, f"no valid TOML: {error}", "TOML 1.0") from error


class _Row(NamedTuple):
    line: int
    kind: str
    axis: str
    name: str
    value: str


@dataclass(slots=True)
class _Axis:
    settings: dict[str, str] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)
    agreeing: dict[str, dict[str, str]] = field(default_factory=dict)

    def contents(self) -> dict[str, object]:
        groups = [
            {"name": name, "words": self.words.get(name, []), "with": self.agreeing.get(name, {})}
            for name in dict.fromkeys((*self.words, *self.agreeing))
        ]
        return {**self.settings, "groups": groups}


def _from_csv(text: str, path: Path) -> Mapping[str, object]:
    axes: dict[str, _Axis] = {}
    slots: dict[str, list[str]] = {}
    templates: list[dict[str, str]] = []
    for row in _rows(text, path):
        match row.kind:
            case "template":
                templates.append({"id": row.name, "text": row.value})
            case "slot":
                slots.setdefault(row.name, []).append(row.value)
            case _:
                _take(axes.setdefault(row.axis, _Axis()), row, path)
    contents = {name: axis.contents() for name, axis in axes.items()}
    return {"axes": contents, "slots": slots, "templates": templates}


def _take(axis: _Axis, row: _Row, path: Path) -> None:
    """Add what one line says of an axis."""
    match row.kind:
        case "baseline" | "mask":
            axis.settings[row.kind] = row.value
        case "group":
            axis.words.setdefault(row.name, []).append(row.value)
        case "with":
            slot, sign, word = row.value.partition("=")
            if not sign:
                raise _error(path, f"line {row.line} says {row.value!r}", "slot=word, such as they=she")
            axis.agreeing.setdefault(row.name, {})[slot.strip()] = word
        case _:
            raise _error(path, f"line {row.line} is of kind {row.kind!r}", _KINDS)


def _rows(text: str, path: Path) -> Iterator[_Row]:
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        if tuple(cell.strip() for cell in header) != _HEADER:
            raise _error(path, f"the header is {','.join(header)!r}", ",".join(_HEADER))
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield _row(reader.line_num, cells, path)
    except csv.Error as error:
        raise _error(path, f"line {reader.line_num}: {error}", "CSV with quotes around commas") from error


def _row(line: int, cells: list[str], path: Path) -> _Row:
    if len(cells) != len(_HEADER):
        raise _error(path, f"line {line} has {len(cells)} cells", f"4 cells: {','.join(_HEADER)}")
    kind, axis, name, value = cells
    return _Row(line, kind.strip(), axis.strip(), name.strip(), value)
