"""Ratings from a table: of ours, or of others with a row a rating or a column an annotator.

Labels are read whatever their case and white space; what cannot be a rating is left out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from evenhand.core.errors import InputError
from evenhand.stats.label_scales import LabelScale, find_scale, normalise_label
from evenhand.store.table_files import require_columns

ROWS: Final[Mapping[str, pl.DataType]] = {
    "item_id": pl.String(),
    "text": pl.String(),
    "annotator": pl.String(),
    "question": pl.String(),
    "label": pl.String(),
    "code": pl.Float64(),
    "is_check": pl.Boolean(),
    "at": pl.String(),
    "prompt": pl.String(),
    "group": pl.String(),
    "method": pl.String(),
    "text_id": pl.String(),
    "pair": pl.String(),
    "cluster": pl.String(),
}
"""The columns of an export. ``code`` is a label's place in order, null where it has none."""
AGGREGATED: Final = "(settled)"
"""The annotator of a file that says one label a text and not who gave it."""
KEY: Final = ("item_id", "annotator", "question")
_NEEDED: Final = {
    "item_id": "no item",
    "text": "empty text",
    "annotator": "no annotator",
    "label": "no label",
}


@dataclass(frozen=True, slots=True)
class RatingFileColumns:
    """Which column of a file holds what; None looks for the usual names."""

    item: str | None = None
    text: str | None = None
    annotator: str | None = None
    labels: tuple[str, ...] = ()
    """Columns of labels: one, or one for each question or annotator."""
    cluster: str | None = None
    """Texts of one value belong together."""
    scale: tuple[str, ...] = ()
    """The labels, lowest first, where they are not a known scale."""


@dataclass(frozen=True, slots=True)
class RatedQuestion:
    """What was asked, and the scale of its answers."""

    name: str
    scale: LabelScale


class RatingTable(NamedTuple):
    """A checked table of ratings."""

    rows: pl.DataFrame
    """The columns of ``ROWS``."""
    questions: tuple[RatedQuestion, ...]
    notes: tuple[str, ...]


def read_ratings(table: pl.DataFrame, columns: RatingFileColumns, path: Path) -> RatingTable:
    """The ratings of a table: labels on one scale, one text an item, one rating a person and item.

    What does not fit is an error; rows without a text, a person or a label are left out and counted.
    """
    long, notes = _long(table, columns, path)
    long, dropped = _complete(long, path)
    long, read, questions = _with_scales(long, columns, path)
    long, repeated = _once(long, path)
    _check_texts(long, path)
    if "is_check" in long.columns:
        long = long.with_columns(pl.col("is_check").cast(pl.String) == "true")
    full = long.with_columns(
        pl.lit(None, kind).alias(column) for column, kind in ROWS.items() if column not in long.columns
    ).with_columns(pl.col("is_check").fill_null(value=False))
    rows = full.select(pl.col(column).cast(kind) for column, kind in ROWS.items())
    return RatingTable(rows, questions, (*notes, *dropped, *read, *repeated))


def _long(table: pl.DataFrame, columns: RatingFileColumns, path: Path) -> tuple[pl.DataFrame, list[str]]:
    """A row a rating, with the columns item_id, text, annotator, question and label."""
    text = columns.text or _usual(table, "text", "sentence", "content")
    item = columns.item or _usual(table, "item_id", "id")
    annotator = columns.annotator or _usual(table, "annotator", "worker", "user_id", "participant")
    labels = columns.labels or _label_columns(table, path)
    named = {"--text": text or "text", "--item": item, "--annotator": annotator, "--cluster": columns.cluster}
    require_columns(table.columns, {**named, **{f"--label {name}": name for name in labels}}, path)
    base = table.with_columns(
        pl.col(text or "text").alias("text"),
        (pl.col(item) if item else pl.col(text or "text")).alias("item_id"),
    )
    if columns.cluster:
        base = base.with_columns(pl.col(columns.cluster).alias("cluster"))
    if annotator is not None:
        return _per_person(base, annotator, labels), []
    if len(labels) > 1 and not _are_questions(labels):
        # A column an annotator: one question.
        wide = base.unpivot(
            labels, index=_other_columns(base, labels), variable_name="annotator", value_name="label"
        )
        return wide.with_columns(pl.lit("label").alias("question")), [
            f"annotators are the columns {', '.join(labels)}"
        ]
    return _per_person(base.with_columns(pl.lit(AGGREGATED).alias("annotator")), "annotator", labels), []


def _per_person(base: pl.DataFrame, annotator: str, labels: Sequence[str]) -> pl.DataFrame:
    table = base.with_columns(pl.col(annotator).alias("annotator"))
    asked = _usual(table, "question", "task")
    if list(labels) == ["label"] and asked:
        return table.with_columns(pl.col(asked).fill_null("label").alias("question"))
    if len(labels) == 1:
        return table.with_columns(pl.col(labels[0]).alias("label"), pl.lit(labels[0]).alias("question"))
    return table.unpivot(
        labels, index=_other_columns(table, labels), variable_name="question", value_name="label"
    )


def _other_columns(table: pl.DataFrame, labels: Sequence[str]) -> list[str]:
    return [name for name in ROWS if name in table.columns and name not in (*labels, "label", "question")]


_QUESTIONS: Final = ("sentiment", "regard", "toxicity", "gender", "biased", "readable", "coherent")
"""The questions of the shipped tasks: columns of these names hold labels."""


def _are_questions(labels: Sequence[str]) -> bool:
    return all(label in _QUESTIONS for label in labels)


def _label_columns(table: pl.DataFrame, path: Path) -> tuple[str, ...]:
    if "label" in table.columns:
        return ("label",)
    found = tuple(name for name in _QUESTIONS if name in table.columns)
    if found:
        return found
    raise InputError(
        f"{path} has no column of labels; it has {', '.join(table.columns)}",
        expected=f"label, or {', '.join(_QUESTIONS)}",
        fix="name the column with --label; several for a column an annotator",
    )


def _usual(table: pl.DataFrame, *names: str) -> str | None:
    return next((name for name in names if name in table.columns), None)


def _complete(long: pl.DataFrame, path: Path) -> tuple[pl.DataFrame, list[str]]:
    """Rows with everything a rating has; the others are counted by what they lack."""
    notes = []
    plain = pl.col(*_NEEDED).str.strip_chars()
    long = long.with_columns(pl.when(plain == "").then(None).otherwise(plain).name.keep())
    for column, reason in _NEEDED.items():
        missing = long[column].null_count()
        if missing:
            notes.append(f"{missing} ratings left out: {reason}")
            long = long.filter(pl.col(column).is_not_null())
    if long.is_empty():
        raise InputError(
            f"{path} has no rating: {'; '.join(notes) or 'no rows'}",
            expected="rows with a text, an annotator and a label",
            fix="check the columns named with --item, --text, --annotator and --label",
        )
    return long, notes


def _with_scales(
    long: pl.DataFrame, columns: RatingFileColumns, path: Path
) -> tuple[pl.DataFrame, list[str], tuple[RatedQuestion, ...]]:
    """Labels as their scale spells them, their codes, and the scale of every question."""
    questions, parts, notes = [], [], []
    for (name,), part in long.partition_by("question", as_dict=True, maintain_order=True).items():
        said = {label: normalise_label(label) for label in part["label"].unique().to_list()}
        if columns.scale:
            given = [normalise_label(label) for label in columns.scale]
            scale = LabelScale(str(name), {label: float(at) for at, label in enumerate(given)})
        else:
            scale = find_scale(set(said.values()))
        read = {raw: scale.label_of(plain) for raw, plain in said.items()}
        for raw, label in read.items():
            if label is None:
                raise InputError(
                    f"{path} has the label {raw!r} for {name!r}",
                    expected=", ".join(scale.labels),
                    fix="correct it, or name every label, lowest first, with --scale",
                )
        respelt = part.filter(pl.col("label") != pl.col("label").replace_strict(read, return_dtype=pl.String))
        if respelt.height:
            notes.append(
                f"{respelt.height} labels of {name} differ from the scale in case, white space or spelling: "
                f"{respelt['label'][0]!r} is read as {read[respelt['label'][0]]!r}"
            )
        # The file's own code wins: an export keeps what its study said.
        code = pl.col("label").replace_strict(dict(scale.places), default=None, return_dtype=pl.Float64)
        told = part.with_columns(pl.col("label").replace_strict(read, return_dtype=pl.String))
        if "code" in told.columns:
            told, scale = _with_codes(told, scale)
        else:
            told = told.with_columns(code.alias("code"))
        used = set(told["label"].unique())
        places = {label: place for label, place in scale.places.items() if columns.scale or label in used}
        questions.append(RatedQuestion(str(name), replace(scale, name=str(name), places=places)))
        parts.append(told)
    return pl.concat(parts, how="diagonal_relaxed"), notes, tuple(questions)


def _with_codes(told: pl.DataFrame, scale: LabelScale) -> tuple[pl.DataFrame, LabelScale]:
    table = told.with_columns(pl.col("code").cast(pl.Float64, strict=False))
    found = dict(table.select("label", "code").unique().sort("label").iter_rows())
    return table, replace(scale, places=found).sort()


def _once(long: pl.DataFrame, path: Path) -> tuple[pl.DataFrame, list[str]]:
    """One rating a person, item and question: repeats that say the same are one, others an error.

    Where the table says when, the last one counts.
    """
    if "at" in long.columns and not long["at"].null_count():
        kept = long.sort("at", maintain_order=True).unique(KEY, keep="last", maintain_order=True)
        extra = long.height - kept.height
        return kept, [f"{extra} earlier ratings of the same text and person left out"] if extra else []
    kept = long.unique([*KEY, "label"], keep="first", maintain_order=True)
    doubled = kept.filter(pl.struct(KEY).is_duplicated())
    if doubled.height:
        item, person, question, label = doubled.select(*KEY, "label").row(0)
        again = doubled.filter((pl.col("item_id") == item) & (pl.col("annotator") == person))["label"][1]
        who = "the text has" if person == AGGREGATED else f"{person!r} gives it"
        raise InputError(
            f"{path}: of {item[:60]!r} {who} two labels for {question}: {label!r} and {again!r}",
            expected="one rating a text and annotator, or a column `at` that says which is the last",
            fix="leave out the earlier ones, or tell texts apart with --item and people with --annotator",
        )
    extra = long.height - kept.height
    return kept, [f"{extra} repeated ratings that say the same left out"] if extra else []


def _check_texts(long: pl.DataFrame, path: Path) -> None:
    texts = long.select("item_id", "text").unique(maintain_order=True)
    twice = texts.filter(pl.col("item_id").is_duplicated())
    if twice.height:
        raise InputError(
            f"{path}: the item {twice['item_id'][0]!r} has two texts",
            expected="one text an item",
            fix="name the column that tells texts apart with --item",
        )
