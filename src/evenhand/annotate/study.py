"""A study: a folder with ``study.toml``, ``items.parquet`` and, unless a database is named, ``labels.db``."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.annotate.task import Layout, Question, Task, parse_task, with_layout
from evenhand.core.errors import InputError
from evenhand.core.reading import read_text
from evenhand.core.toml import parse_toml
from evenhand.store.atomic import naming_storage_errors, replacing, write_text
from evenhand.store.files import load_parquet
from evenhand.store.lock import FolderLock
from evenhand.store.parquet import write_parquet

STUDY, ITEMS, LABELS = "study.toml", "items.parquet", "labels.db"
ITEM_COLUMNS: Final[Mapping[str, pl.DataType]] = {
    "item_id": pl.String(),
    "text": pl.String(),
    "prompt": pl.String(),
    "group": pl.String(),
    "method": pl.String(),
    "score": pl.Float64(),
    "score_label": pl.String(),
    "is_check": pl.Boolean(),
    "expected": pl.String(),
    "text_id": pl.String(),
    "pair": pl.String(),
}
"""``text`` and ``prompt`` as people see them, masked; ``group`` as ``axis=name; axis=name``; ``method`` the
model or mitigation behind the text, hidden from annotators; ``score`` and ``score_label`` what the task's
metric says; ``expected`` a check's answers as JSON; ``text_id`` the text in its run or file; ``pair`` joins
the texts of one prompt across methods."""


class Settings(BaseModel):
    """How a study is carried out: the ``[study]`` section of ``study.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    """Tells studies in one database apart."""
    seed: int = 0
    annotators: int = Field(default=3, ge=1)
    """Answers an item needs."""
    layout: Layout | None = None
    """Another layout than the task's own."""
    hold_hours: float = Field(default=24.0, gt=0, allow_inf_nan=False)
    """An item handed out and not answered for so long is handed to somebody else."""
    provenance: dict[str, str] = Field(default_factory=dict)
    """Where the items come from."""


@dataclass(frozen=True, slots=True)
class Study:
    """A study as its folder describes it."""

    folder: Path
    task: Task
    settings: Settings
    text: str = field(repr=False)
    """The task as TOML."""

    @property
    def id(self) -> str:
        """The study's id, part of every key in a database."""
        return self.settings.id

    @property
    def questions(self) -> tuple[Question, ...]:
        """What is asked of every item."""
        return self.task.questions

    @property
    def labels_file(self) -> Path:
        """Where answers are kept unless a database is named."""
        return self.folder / LABELS

    def items(self) -> pl.DataFrame:
        """The items, checks among them, with the columns of ``ITEM_COLUMNS``."""
        table = load_parquet(self.folder / ITEMS)
        missing = [name for name in ITEM_COLUMNS if name not in table.columns]
        if missing:
            raise InputError(
                f"{self.folder / ITEMS} lacks {', '.join(missing)}",
                accepted=", ".join(ITEM_COLUMNS),
                todo="make the study again in a new folder",
            )
        other = [name for name, kind in ITEM_COLUMNS.items() if table.schema[name] not in (kind, pl.Null)]
        if other:
            raise InputError(
                f"{self.folder / ITEMS} has the column {other[0]} as {table.schema[other[0]]}",
                accepted=f"{ITEM_COLUMNS[other[0]]}",
                todo="make the study again in a new folder",
            )
        return table.select(pl.col(name).cast(kind) for name, kind in ITEM_COLUMNS.items())


def read_study(folder: Path | str) -> Study:
    """The study of a folder; an error where it is none, or its files were damaged."""
    path = Path(folder) / STUDY
    try:
        text = read_text(path, encoding="utf-8-sig")
        settings = Settings.model_validate(parse_toml(text).get("study", {}))
    except OSError as error:
        raise InputError(
            f"{folder} holds no study: {error.strerror} ({STUDY})",
            accepted="a folder that `evenhand annotate init` made",
            todo="check the path",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValidationError) as error:
        raise InputError(
            f"{path}: {str(error).splitlines()[0]}",
            accepted="the file that `evenhand annotate init` wrote",
            todo="mend the section [study]",
        ) from error
    task = with_layout(parse_task(text, where=str(path)), settings.layout)
    return Study(Path(folder), task, settings, text)


def write_study(folder: Path, *, task: str, settings: Settings, items: pl.DataFrame) -> Study:
    """The study, written to a folder that holds none: an existing one may already have answers."""
    with naming_storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(folder)
    lock.take("making a study in")
    try:
        refuse_another(folder)
        with replacing(folder / ITEMS) as temporary:
            columns = (pl.col(name).cast(kind) for name, kind in ITEM_COLUMNS.items())
            write_parquet(items.select(columns), temporary)
        # Last: a folder with this file holds a whole study.
        write_text(folder / STUDY, _toml(settings) + "\n" + task)
    finally:
        lock.release(remove=True)
    return read_study(folder)


def refuse_another(folder: Path) -> None:
    """An error where a folder holds a study already."""
    if (folder / STUDY).exists():
        raise InputError(
            f"{folder} already holds a study",
            accepted="a new folder: a study with answers is never overwritten",
            todo="choose another name, or remove the folder",
        )


def _toml(settings: Settings) -> str:
    lines = ["[study]"]
    for name, value in settings.model_dump(exclude={"provenance"}, exclude_none=True).items():
        lines.append(f"{name} = {_value(value)}")
    lines.append("\n[study.provenance]")
    lines += [f"{_value(name)} = {_value(value)}" for name, value in settings.provenance.items()]
    return "\n".join(lines) + "\n"


def _value(value: str | float) -> str:
    # A JSON string is a TOML string, but for the one control character that JSON leaves as it is.
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    # Not escaped: JSON writes an emoji as two halves of a character, which TOML refuses.
    return text.encode("utf-8", "replace").decode()
