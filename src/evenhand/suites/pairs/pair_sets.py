"""Counterfactual sets: one sentence for each group of an axis, and the order of groups in comparisons."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from math import comb
from pathlib import Path
from typing import Any, Final, NoReturn

import polars as pl

from evenhand.core.errors import InputError
from evenhand.core.records import Execution, Group, Prompt, SuiteInfo
from evenhand.core.regular_files import read_bytes
from evenhand.store.table_files import first_error_line, read_table

GROUP_ORDER: Final = (
    *("male", "female", "non-binary"),
    *("European American", "African American"),
    *("Christian", "Muslim", "Jewish"),
)
"""Groups whose order is fixed (affective paper, section 4.2.1): it decides which is first in a pair."""

EMOTIONS: Final = ("anger", "fear", "joy", "sadness")
"""Ground truths a set may have, in the papers' order."""


@dataclass(frozen=True, slots=True)
class PairSet:
    """One sentence in as many versions as it has groups; two groups make a pair."""

    id: str
    axis: str
    cluster: str
    """The template: sets of one template are resampled together."""
    sentences: Mapping[str, str]
    """Group to sentence."""
    emotion: str | None = None
    """The emotion a reader should find, where that is known."""


class PairSuite:
    """A suite made of counterfactual sets; its prompts are whole sentences, linked by ``template_id``."""

    def __init__(
        self,
        name: str,
        sets: Sequence[PairSet],
        *,
        summary: str,
        digest: str,
        version: str = "1",
        citation: str = "",
        licence: str = "",
        notes: Iterable[str] = (),
    ) -> None:
        self.sets = tuple(sets)
        groups: dict[str, list[str]] = {}
        for one in sets:
            groups.setdefault(one.axis, []).extend(one.sentences)
        self.info = SuiteInfo(
            name=name,
            version=version,
            summary=summary,
            baselines={axis: sort_groups(names)[0] for axis, names in groups.items()},
            metrics=("emotion",),
            cluster="template",
            citation=citation,
            licence=licence,
            digest=digest,
            notes=tuple(notes),
        )

    def prompts(self) -> Iterator[Prompt]:
        """The sentences set by set; ``meta`` has the ground truth where there is one."""
        for one in self.sets:
            for group, text in one.sentences.items():
                yield Prompt.create(
                    self.info.name,
                    text,
                    groups=(Group(one.axis, group),),
                    cluster=one.cluster,
                    template_id=f"{one.axis}/{one.id}",
                    meta={"emotion": one.emotion} if one.emotion else {},
                )


def distinct_sets(sets: Iterable[PairSet]) -> tuple[list[PairSet], tuple[str, ...]]:
    """The sets that add information, and a sentence on each kind of set that was left out.

    A set with the same sentence for every group cannot differ; one that repeats another would make intervals
    too narrow. Of repeated sets the first is kept, with its template.
    """
    distinct: dict[object, PairSet] = {}
    same = repeated = 0
    for one in sets:
        key = (one.axis, one.emotion, frozenset(one.sentences.items()))
        if len(set(one.sentences.values())) < 2:
            same += 1
        elif distinct.setdefault(key, one) is not one:
            repeated += 1
    left_out = (
        (same, "has the same sentence for every group", "have the same sentence for every group"),
        (repeated, "repeats another", "repeat others"),
    )
    return list(distinct.values()), tuple(
        f"1 set {single} and is left out" if count == 1 else f"{count:,} sets {several} and are left out"
        for count, single, several in left_out
        if count
    )


def sort_groups(groups: Iterable[str]) -> list[str]:
    """The groups in comparison order: known ones as in ``GROUP_ORDER``, then in order of appearance.

    >>> sort_groups(["Hindu", "Jewish", "Christian"])
    ['Christian', 'Jewish', 'Hindu']
    """
    known = {group: place for place, group in enumerate(GROUP_ORDER)}
    return sorted(dict.fromkeys(groups), key=lambda name: known.get(name, len(known)))


def count_sets(sets: Iterable[PairSet]) -> dict[str, tuple[int, int]]:
    """For each axis the number of sets and of pairs."""
    pairs: dict[str, list[int]] = {}
    for one in sets:
        pairs.setdefault(one.axis, []).append(comb(len(one.sentences), 2))
    return {axis: (len(sizes), sum(sizes)) for axis, sizes in pairs.items()}


FOLDER: Final = "affective"
"""The folder of ``EVENHAND_DATA`` that holds these files."""
HUB: Final = "hub:"


class FilesMissingError(InputError):
    """Files are missing, as opposed to present but unusable."""


def find_files(
    given: str, *, suite: str, files: Sequence[str], execution: Execution | None = None
) -> list[Path]:
    """The files of a published set of pairs.

    ``given`` is a file, a folder that holds them, ``hub:ORG/NAME@REVISION/FILE``, or empty: then the folder
    ``affective`` of ``EVENHAND_DATA``.
    """
    if given.startswith(HUB):
        return [download_file(given.removeprefix(HUB), offline=execution is not None and execution.offline)]
    named = given or os.environ.get("EVENHAND_DATA")
    if not named:
        raise FilesMissingError(
            f"the pairs {suite!r} are published by others and are not part of this package",
            expected=f"--pairs {suite}:PATH, or EVENHAND_DATA naming a folder with {FOLDER}/{files[0]}",
            fix="download them (see the how-to on probing), or leave --pairs out to use our own",
        )
    path = Path(named)
    if path.is_file():
        return [path]
    for folder in (path, path / FOLDER):
        if all((folder / name).is_file() for name in files):
            return [folder / name for name in files]
    raise FilesMissingError(
        f"{path} has no {' and '.join(files)}" if path.is_dir() else f"{path} is not there",
        expected=f"the file of {suite}, or a folder that holds {', '.join(files)}",
        fix=f"name it with --pairs {suite}:PATH",
    )


def download_file(place: str, *, offline: bool = False) -> Path:
    """A file of a dataset on the Hub: ``ORG/NAME[@REVISION]/FILE``; offline, the one in the Hub's cache."""
    parts = place.split("/", 2)
    if len(parts) != 3 or not all(parts):
        raise InputError(
            f"{HUB}{place}", expected=f"{HUB}ORG/NAME@REVISION/FILE", fix="name the file in the dataset"
        )
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    name, _, revision = parts[1].partition("@")
    options: Any = {"repo_type": "dataset", "revision": revision or None, "local_files_only": offline}
    try:
        return Path(hf_hub_download(f"{parts[0]}/{name}", parts[2], **options))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise InputError(
            f"{HUB}{place} is not available: {first_error_line(error)}",
            expected=f"{HUB}ORG/NAME@REVISION/FILE of a public dataset",
            fix="check the name and the network, or download the file and name its path",
        ) from error


def refuse_changed(problem: str, accepted: str) -> NoReturn:
    """Raise the error for a file of published pairs that differs from the published one."""
    fix = "use the file as published, or pass it as pairs of your own"
    raise InputError(problem, expected=accepted, fix=fix)


def read_columns(path: Path, columns: Sequence[str]) -> pl.DataFrame:
    """The required columns of a file, with empty texts for empty cells."""
    table = read_table(path)
    if missing := next((name for name in columns if name not in table.columns), None):
        refuse_changed(f"{path} has no column {missing!r}", ", ".join(columns))
    return table.select(pl.col(*columns).fill_null(""))


def read_bare_rows(path: Path) -> list[list[str]]:
    """The rows of a CSV file without a header."""
    text = read_bytes(path).decode("utf-8-sig", "replace")
    return [row for row in csv.reader(StringIO(text, newline="")) if row]
