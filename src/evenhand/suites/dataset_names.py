"""How a data set and its columns are named: ``ORG/NAME@REVISION#CONFIG/SPLIT?prompt=..&group.AXIS=..``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple, NoReturn
from urllib.parse import parse_qsl

from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.file_names import user_path

ACCEPTED = (
    "hub:ORG/NAME[@REVISION][#CONFIG/SPLIT]?prompt=COLUMN&group.AXIS=COLUMN, or a folder or file instead"
)
_SINGLE = ("prompt", "cluster", "template", "mentions")


@dataclass(frozen=True, slots=True)
class PromptColumns:
    """Which column of a table of prompts holds what; ``a.b`` is the field b of the column a."""

    prompt: str
    groups: Mapping[str, str]
    baselines: Mapping[str, str]
    cluster: str | None = None
    template: str | None = None
    mentions: str | None = None
    strata: tuple[str, ...] = ()

    def identity(self) -> dict[str, Json]:
        """What the prompts depend on, beside the files."""
        return {name: value for name, value in asdict(self).items() if value}

    def named(self) -> dict[str, str]:
        """Every column, by the option that names it."""
        single = {key: getattr(self, key) for key in _SINGLE}
        return {
            **{key: column for key, column in single.items() if column},
            **{f"group.{axis}": column for axis, column in self.groups.items()},
            **{f"stratum {column}": column for column in self.strata},
        }


class DatasetName(NamedTuple):
    """A data set as it was asked for."""

    place: str
    """A Hub id, a folder or a file."""
    revision: str
    config: str
    split: str
    columns: PromptColumns

    def title(self) -> str:
        """What the suite is called in tables."""
        part = "/".join(name for name in (self.config, self.split) if name)
        return f"{self.place}#{part}" if part else self.place


def parse_name(name: str) -> DatasetName:
    """The parts of a name; an error where it names no place, no prompt or no group."""
    here = _here(name)
    source, _, query = name.removeprefix(here).partition("?")
    place, _, part = source.partition("#")
    config, slash, split = part.rpartition("/") if part else ("", "", "")
    if not here + place:
        _refuse("the name of the data set is empty")
    if slash and not (config and split):
        _refuse(f"#{part} is no part of a data set")
    identifier, _, revision = place.partition("@")
    return DatasetName(here + identifier, revision, config, split, _columns(query))


def _here(name: str) -> str:
    """The longest beginning of a name, up to a mark, that is a file or folder here: marks in it are none."""
    ends = (at for at in range(len(name) - 1, 0, -1) if name[at] in "?#@")
    return next((name[:end] for end in ends if os.path.exists(user_path(name[:end]))), "")


def _columns(query: str) -> PromptColumns:
    single: dict[str, str] = {}
    groups: dict[str, str] = {}
    baselines: dict[str, str] = {}
    strata: list[str] = []
    for key, value in parse_qsl(query, keep_blank_values=True):
        kind, _, axis = key.partition(".")
        if not value:
            _refuse(f"{key} names no column")
        if key in _SINGLE and key not in single:
            single[key] = value
        elif kind == "group" and axis and axis not in groups:
            groups[axis] = value
        elif kind == "baseline" and axis and axis not in baselines:
            baselines[axis] = value
        elif key == "stratum":
            strata.append(value)
        else:
            _refuse(f"{key}={value} is {'said twice' if key in single else 'not known'}")
    if "prompt" not in single or not groups:
        _refuse(f"{query or 'nothing'!r} names no {'group' if 'prompt' in single else 'prompt'} column")
    for axis in baselines:
        if axis not in groups:
            _refuse(f"baseline.{axis} is of an axis without a group column")
    prompt = single.pop("prompt")
    return PromptColumns(prompt, groups, baselines, strata=tuple(dict.fromkeys(strata)), **single)


def _refuse(came: str) -> NoReturn:
    raise InputError(
        came,
        accepted=ACCEPTED + "; also cluster=, template=, mentions=, stratum=, baseline.AXIS=GROUP",
        todo="quote the whole name: a shell reads ? and & itself",
    )
