"""Pairs from a user's table, with one row per pair (wide) or one row per sentence (long)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.records import RESERVED_GROUPS
from evenhand.store.table_files import read_table
from evenhand.suites.pairs.pair_sets import EMOTIONS, PairSet, PairSuite, distinct_sets, sort_groups
from evenhand.suites.pairs.template_pairs import TemplatePairs

WIDE: Final = ("text_a", "text_b", "group_a", "group_b")
LONG: Final = ("set", "group", "text")
OPTIONAL: Final = ("axis", "emotion", "template")
AXIS: Final = "group"
"""The axis of a table without that column."""
_ACCEPTED: Final = (
    f"columns {', '.join(WIDE)} (one row per pair) or {', '.join(LONG)} (one row per sentence); "
    f"optional: {', '.join(OPTIONAL)}"
)

Row = Mapping[str, str | None]


class TablePairs(PairSuite):
    """Pairs from a JSONL, CSV, TSV or Parquet file.

    Sets that lack a side, have the same sentence for every group, or repeat another are left out and
    counted in the suite's notes. Cluster = the column ``template``, else the set itself.

    Args:
        name: The file.
    """

    def __init__(self, *, name: str) -> None:
        path = Path(name)
        table = read_table(path)
        is_wide = set(WIDE) <= set(table.columns)
        if not is_wide and not set(LONG) <= set(table.columns):
            raise InputError(
                f"{path} has the columns {', '.join(table.columns)}",
                expected=_ACCEPTED,
                fix="rename the columns",
            )
        listed = list(_read_sets(table, path, is_wide=is_wide))
        whole = [one for one in listed if len(one.sentences) > 1]
        sides = Counter(next(iter(one.sentences), "") for one in listed if len(one.sentences) < 2)
        sets, left_out = distinct_sets(whole)
        if not sets:
            raise InputError(
                f"{path} has no set with two sides" + (" that differ" if whole else ""),
                expected="two groups per set",
                fix="check the file",
            )
        super().__init__(
            path.stem,
            sets,
            summary="Pairs from a file.",
            digest=file_digest(path),
            notes=(*_one_sided(sides), *left_out, *_find_uneven(sets)),
        )


def _read_sets(table: pl.DataFrame, path: Path, *, is_wide: bool) -> Iterator[PairSet]:
    sides = (("group_a", "text_a"), ("group_b", "text_b")) if is_wide else (("group", "text"),)
    sets: dict[tuple[str, str], tuple[int, Row, dict[str, str]]] = {}
    for number, row in enumerate(table.iter_rows(named=True), start=1):
        name = str(number) if is_wide else row["set"] or ""
        if not name:
            raise InputError(
                f"{path} row {number} names no set", expected="a set for each row", fix="name one"
            )
        texts = sets.setdefault((row.get("axis") or AXIS, name), (number, row, {}))[2]
        for column, text in sides:
            group = _group(row, column, path, number)
            if group in texts:
                raise InputError(
                    f"{path} row {number} has a second sentence of {group!r} in set {name!r}",
                    expected="one sentence per group and set",
                    fix="name the other group, or give the sentence a set of its own",
                )
            texts[group] = row[text] or ""
    for (_, name), (number, first, texts) in sets.items():
        yield _set(name, first, texts, path, number)


def _set(name: str, row: Row, texts: Mapping[str, str], path: Path, number: int) -> PairSet:
    emotion = (row.get("emotion") or "").strip().lower() or None
    if emotion is not None and emotion not in EMOTIONS:
        raise InputError(
            f"{path} row {number} has the emotion {emotion!r}",
            expected=f"{', '.join(EMOTIONS)}, or nothing",
            fix="rename it, or leave it empty",
        )
    whole = {group: texts[group] for group in sort_groups(texts) if texts[group].strip()}
    axis = (row.get("axis") or AXIS).strip()
    return PairSet(name, axis, (row.get("template") or "").strip() or name, whole, emotion)


def _group(row: Row, column: str, path: Path, number: int) -> str:
    name = (row[column] or "").strip()
    if not name or name in RESERVED_GROUPS:
        raise InputError(
            f"{path} row {number} has the group {name!r} in column {column!r}",
            expected="a name, and not (rest) or (all)",
            fix="name the group that the sentence is about",
        )
    return name


def _one_sided(sides: Counter[str]) -> Iterator[str]:
    for group, count in sides.items():
        lack = "set lacks a side and is" if count == 1 else "sets lack a side and are"
        yield f"{count} {lack} left out: {f'only {group} has' if group else 'no group has'} a sentence"


def _find_uneven(sets: list[PairSet]) -> Iterator[str]:
    """The groups that are not in every set."""
    groups = Counter((one.axis, group) for one in sets for group in one.sentences)
    totals = Counter(one.axis for one in sets)
    for (axis, group), count in groups.items():
        if count < totals[axis]:
            yield f"{axis}: {group} is in {count} of {totals[axis]} sets; only those form its pairs"


def load(*, name: str = "") -> PairSuite:
    """The built-in sentences, or a user's: templates (TOML) or a table (JSONL, CSV, TSV, Parquet).

    Args:
        name: The file; empty for the built-in sentences.
    """
    is_table = name and not name.lower().endswith(".toml")
    return TablePairs(name=name) if is_table else TemplatePairs(name=name)
