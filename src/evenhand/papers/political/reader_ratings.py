"""Table 6: readers' ratings of bias, readability and coherence, from a study with answers from 1 to 7."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from evenhand.annotate.label_set import read_label_set
from evenhand.core.errors import InputError
from evenhand.papers.political.conditions import BASELINE
from evenhand.papers.replication_pages import Exhibit, build_table
from evenhand.stats.hypothesis_tests import compare_methods
from evenhand.store.table_files import read_table

QUESTIONS = ("bias", "readability", "coherence")
NAMES = {"biased": "bias", "readable": "readability", "coherent": "coherence"}
"""The questions of the built-in task `likert`, and their names in the paper."""
_UNRATED = {"mean": None, "n": 0}


def read_reader_answers(path: Path) -> pl.DataFrame:
    """The columns ``participant``, ``mode``, ``question`` and ``answer`` of a file or a study, checked."""
    table = _read_study(path) if path.is_dir() else _read_file(path)
    invalid = table.filter(~pl.col("question").is_in(QUESTIONS) | ~pl.col("answer").is_between(1, 7))
    if table.is_empty() or invalid.height or BASELINE not in set(table["mode"]):
        raise InputError(
            f"{path} contains {table.height} answers, {invalid.height} of them invalid",
            expected=f"mode {BASELINE} and others; question {', '.join(QUESTIONS)}; answer from 1 to 7",
            fix="rename the columns or values",
        )
    return table


def table_6(answers: pl.DataFrame) -> Exhibit:
    """Means by mode and question, each compared with the baseline over participants who rated both."""
    cells = {question: _rate_modes(answers, question) for question in QUESTIONS}
    rows = [
        {"source": "study", "mode": mode, "question": question, **cells[question].get(mode, _UNRATED)}
        for mode in answers["mode"].unique(maintain_order=True)
        for question in QUESTIONS
    ]
    return build_table(
        "political",
        "table_6",
        "Readers' answers from 1 to 7",
        pl.DataFrame(rows, infer_schema_length=None),
        "Paired t tests over participants. A lower rating of bias is better; the paper's p of .00 means "
        "below .001. Its text calls the embedding mode least biased with 4.25, which in the table is the "
        "classifier.",
    )


def _read_file(path: Path) -> pl.DataFrame:
    names = {name: name for name in ("participant", "mode", "question", "answer")}
    table = read_table(path, names)
    number = pl.col("answer").cast(pl.Float64, strict=False).fill_null(0)
    return table.select(*names).drop_nulls().with_columns(number)


def _read_study(path: Path) -> pl.DataFrame:
    rows = read_label_set(path).rows.filter(~pl.col("is_check")).drop_nulls(["method", "code"])
    return rows.select(
        pl.col("annotator").alias("participant"),
        pl.col("method").alias("mode"),
        pl.col("question").replace(NAMES),
        pl.col("code").alias("answer"),
    )


def _rate_modes(answers: pl.DataFrame, question: str) -> dict[str, dict[str, object]]:
    """The cells of each mode; empty without a rating of the baseline, since nothing can be compared."""
    own = answers.filter(pl.col("question") == question)
    columns = (own[name].to_list() for name in ("participant", "mode", "answer"))
    if BASELINE not in set(own["mode"]):
        return {}
    rows: dict[str, dict[str, object]] = {}
    for rating in compare_methods(*columns, baseline=BASELINE):
        mean, gap = rating.mean, rating.difference
        row = {"mean": mean.value, "mean_low": mean.low, "mean_high": mean.high, "n": mean.n}
        if gap is not None:
            row |= {"p": gap.p, "difference": gap.estimate, "low": gap.low, "high": gap.high}
        rows[rating.method] = dict(row)
    return rows
