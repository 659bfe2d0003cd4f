"""Answers in the formats of other tools: JSONL and CSV, Label Studio's tasks, Argilla's records.

Cells of a CSV that a spreadsheet would take for a formula are guarded with a quote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.annotate.argilla import of_record, write_argilla
from evenhand.annotate.collected import Collected
from evenhand.annotate.label_studio import of_task, write_label_studio
from evenhand.annotate.records import ABOUT
from evenhand.core.errors import InputError
from evenhand.core.reading import read_text
from evenhand.store.atomic import write_text
from evenhand.store.files import cell
from evenhand.store.spreadsheets import spreadsheet_csv

FORMATS: Final = ("jsonl", "csv", "label-studio", "argilla")


def write_labels(collected: Collected, path: Path, kind: str) -> list[Path]:
    """The files written: the answers, and for Label Studio the labelling configuration beside them."""
    writers: Mapping[str, Callable[[Collected, Path], list[Path]]] = {
        "jsonl": _write_jsonl,
        "csv": _write_csv,
        "label-studio": write_label_studio,
        "argilla": write_argilla,
    }
    if kind not in writers:
        raise InputError(
            f"the format {kind!r} is not known", accepted=", ".join(FORMATS), todo="name one with --format"
        )
    return writers[kind](collected, path)


def suffix_of(kind: str) -> str:
    """How the files of a format end."""
    return {"jsonl": ".jsonl", "csv": ".csv"}.get(kind, ".json")


def read_json(path: Path) -> pl.DataFrame:
    """The ratings in a JSON file of Label Studio or Argilla, a row each."""
    try:
        content = json.loads(read_text(path, encoding="utf-8-sig", most=1 << 30))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read: {error}",
            accepted="JSON of Label Studio or Argilla",
            todo="export it again",
        ) from error
    parts = content if isinstance(content, list) else [content]
    records = [part for part in parts if isinstance(part, dict)]
    if records and all("annotations" in part or "completions" in part for part in records):
        rows = [row for task in records for row in of_task(task)]
    elif records and all("responses" in part for part in records):
        rows = [row for record in records for row in of_record(record)]
    else:
        keys = ", ".join(list(records[0])[:8]) if records else type(content).__name__
        raise InputError(
            f"{path} holds {len(records)} objects of {keys or 'nothing'}",
            accepted="Label Studio's JSON (data, annotations) or Argilla's (fields, responses)",
            todo="export in one of these formats, or as JSONL or CSV",
        )
    columns = ("item_id", "text", "annotator", "question", "label", "at", *ABOUT)
    sound = [{name: cell(value) for name, value in row.items()} for row in rows]
    table = pl.DataFrame(sound, schema=dict.fromkeys(columns, pl.String), orient="row")
    if table.is_empty():
        raise InputError(
            f"{path} holds {len(records)} texts and no label",
            accepted="choices or ratings of whole texts",
            todo="export the annotations too",
        )
    # A column nobody fills would count as known.
    return table.select(name for name in table.columns if table[name].null_count() < table.height)


def _write_jsonl(collected: Collected, path: Path) -> list[Path]:
    write_text(path, collected.rows.write_ndjson())
    return [path]


def _write_csv(collected: Collected, path: Path) -> list[Path]:
    write_text(path, spreadsheet_csv(collected.rows))
    return [path]
