"""Where published pair files are: a path, the folder of data sets, or the Hub."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.core.errors import InputError
from evenhand.core.reading import read_bytes
from evenhand.core.records import Execution
from evenhand.store.files import read_table

FOLDER: Final = "affective"
"""The folder of ``EVENHAND_DATA`` these files are in."""
HUB: Final = "hub:"


class AbsentError(InputError):
    """Files that are not there, as against those that are and cannot be used."""


def find(given: str, *, suite: str, files: Sequence[str], execution: Execution | None = None) -> list[Path]:
    """The files of a published set of pairs.

    ``given`` is a file, a folder that holds them, ``hub:ORG/NAME@REVISION/FILE``, or empty: then the folder
    ``affective`` of ``EVENHAND_DATA``.
    """
    if given.startswith(HUB):
        return [download(given.removeprefix(HUB), offline=execution is not None and execution.offline)]
    path = Path(given) if given else _data_folder(suite, files)
    if path.is_file():
        return [path]
    places = (path, path / FOLDER)
    found = next((folder for folder in places if all((folder / name).is_file() for name in files)), None)
    if found is None:
        raise AbsentError(
            f"{path} has no {' and '.join(files)}" if path.is_dir() else f"{path} is not there",
            accepted=f"the file of {suite}, or a folder that holds {', '.join(files)}",
            todo=f"name it with --pairs {suite}:PATH",
        )
    return [found / name for name in files]


def download(place: str, *, offline: bool = False) -> Path:
    """A file of a data set on the Hub: ``ORG/NAME[@REVISION]/FILE``; offline, the one in the Hub's cache."""
    parts = place.split("/", 2)
    if len(parts) != 3 or not all(parts):
        raise InputError(
            f"{HUB}{place}", accepted=f"{HUB}ORG/NAME@REVISION/FILE", todo="name the file in the data set"
        )
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    name, _, revision = parts[1].partition("@")
    try:
        found = hf_hub_download(
            f"{parts[0]}/{name}",
            parts[2],
            repo_type="dataset",
            revision=revision or None,
            local_files_only=offline,
        )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise InputError(
            f"{HUB}{place} cannot be had: {(str(error).strip() or type(error).__name__).splitlines()[0]}",
            accepted=f"{HUB}ORG/NAME@REVISION/FILE of a public data set",
            todo="check the name and the network, or download the file and name its path",
        ) from error
    return Path(found)


def table(path: Path, columns: Sequence[str]) -> pl.DataFrame:
    """The rows of a file that must have these columns."""
    found = read_table(path)
    missing = [name for name in columns if name not in found.columns]
    if missing:
        raise InputError(
            f"{path} has no column {missing[0]!r}",
            accepted=", ".join(columns),
            todo="name the file as it was published",
        )
    return found


def bare_rows(path: Path) -> list[list[str]]:
    """The rows of a CSV file without a header."""
    text = read_bytes(path).decode("utf-8-sig", "replace")
    return [row for row in csv.reader(StringIO(text, newline="")) if row]


def _data_folder(suite: str, files: Sequence[str]) -> Path:
    named = os.environ.get("EVENHAND_DATA")
    if not named:
        raise AbsentError(
            f"the pairs {suite!r} are published by others and are not part of this package",
            accepted=f"--pairs {suite}:PATH, or EVENHAND_DATA naming a folder with {FOLDER}/{files[0]}",
            todo="download them (see the how-to on probing), or leave --pairs out to use our own",
        )
    return Path(named)
