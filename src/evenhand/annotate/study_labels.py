"""Answers of a study as a table of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from evenhand.annotate.study import STUDY, Study
from evenhand.core.errors import InputError

LABEL_COLUMNS: Final[Mapping[str, pl.DataType]] = {
    "item_id": pl.String(),
    "annotator": pl.String(),
    "question": pl.String(),
    "label": pl.String(),
    "code": pl.Float64(),
    "is_check": pl.Boolean(),
    "at": pl.Datetime("us"),
}
"""``code`` is null for a label without a place on an ordinal scale; ``at`` is UTC."""


def read_labels(study: Study, url: str | None = None) -> pl.DataFrame:
    """The latest answer of each annotator, item and question, with the columns of ``LABEL_COLUMNS``.

    Answers that were taken back are left out. ``url`` names a database, else ``EVENHAND_DATABASE``, else
    the study's own ``labels.db``; a study nobody has answered gives an empty table.
    """
    # Imported here: a study without answers can be read without the extra `annotate`.
    from evenhand.annotate.database import Database, has_labels

    if not has_labels(study, url):
        return pl.DataFrame(schema=dict(LABEL_COLUMNS))
    from evenhand.annotate.answer_log import latest_answers

    with Database(study, url) as db:
        rows = latest_answers(db)
    names = ("annotator", "item_id", "question", "label", "at")
    table = pl.DataFrame(rows, schema={name: LABEL_COLUMNS[name] for name in names}, orient="row")
    _require_known(study, table)
    checks = study.items().select("item_id", "is_check")
    found = table.join(checks, on="item_id", how="inner").join(_codes(study), on=["question", "label"])
    return found.select(pl.col(name).cast(kind) for name, kind in LABEL_COLUMNS.items()).sort(
        "item_id", "question", "annotator"
    )


def _require_known(study: Study, table: pl.DataFrame) -> None:
    """An error where ``study.toml`` no longer has what people answered: nothing is left out in silence."""
    unknown = table.join(_codes(study), on=["question", "label"], how="anti")
    if unknown.is_empty():
        return
    question, label = unknown.select("question", "label").row(0)
    raise InputError(
        f"{unknown.height:,} answers, of which one says {question} = {label!r}, do not fit {STUDY}",
        expected="the questions and labels that people were asked",
        fix=f"put them back into {study.folder / STUDY}; wording may change, names and labels may not",
    )


def _codes(study: Study) -> pl.DataFrame:
    rows = [(q.name, label, code) for q in study.questions for label, code in q.codes.items()]
    return pl.DataFrame(
        rows,
        schema={"question": pl.String(), "label": pl.String(), "code": pl.Float64()},
        orient="row",
    )
