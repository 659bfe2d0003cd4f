"""A report as JSON without NaN: tables as rows in ``report.json``, as compact columns in the page."""

from __future__ import annotations

import json

import polars as pl
import polars.selectors as cs

from evenhand.core.digests import Json
from evenhand.report.document import Report

FORMAT = 1
"""The version of the layout of ``report.json``."""
BAR_KEY = ("suite", "model", "axis", "group", "metric", "output")
"""The columns that name a group's number, a bar of a chart."""
GAP_KEY = ("suite", "model", "axis", "group", "baseline", "metric", "output")
"""The columns that name a comparison."""


def to_json(report: Report) -> str:
    """What the report says, then its keys of the manifest and its tables, as JSON text."""
    content: dict[str, Json] = {
        "format": FORMAT,
        **report.values,
        "manifest": {key: report.run.manifest.get(key) for key in report.manifest},
        **{name: to_rows(report.run.table(name)) for name in report.tables},
    }
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def null_non_finite(table: pl.DataFrame) -> pl.DataFrame:
    """The table with NaN and infinities as null."""
    reals = cs.float()
    return table.with_columns(pl.when(reals.is_finite()).then(reals).otherwise(None))


def to_rows(table: pl.DataFrame) -> list[dict[str, Json]]:
    """The table as a list of objects."""
    return null_non_finite(table).to_dicts()


def to_columns(table: pl.DataFrame) -> dict[str, Json]:
    """The table by columns; words are written once and referred to by number, a single one not even that.

    Numbers are rounded to 6 digits: more than the estimates hold, and half the bytes.
    """
    columns: dict[str, Json] = {}
    for series in null_non_finite(table):
        if series.dtype == pl.String:
            words = series.unique(maintain_order=True)
            numbers = {word: index for index, word in enumerate(words)}
            at = [numbers[word] for word in series] if len(words) > 1 else []
            columns[series.name] = {"words": words.to_list(), "at": at, "size": len(series)}
        elif series.dtype.is_float():
            columns[series.name] = series.round_sig_figs(6).to_list()
        else:
            columns[series.name] = series.to_list()
    return columns
