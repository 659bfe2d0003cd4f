"""Table 6: what readers say of bias, readability and coherence, from a study with answers from 1 to 7."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from evenhand.core.errors import InputError
from evenhand.papers.political.modes import BASELINE
from evenhand.papers.political.printed import printed
from evenhand.papers.records import Table
from evenhand.stats import paired_difference
from evenhand.store.files import read_table, require_columns

QUESTIONS = ("bias", "readability", "coherence")


def read_answers(path: Path) -> pl.DataFrame:
    """The columns ``participant``, ``mode``, ``question`` and ``answer`` of a file, checked."""
    table = read_table(path)
    names = {name: name for name in ("participant", "mode", "question", "answer")}
    require_columns(table, names, path)
    number = pl.col("answer").cast(pl.Float64, strict=False).fill_null(0)
    table = table.select(*names).drop_nulls().with_columns(number)
    outside = table.filter(~pl.col("question").is_in(QUESTIONS) | ~pl.col("answer").is_between(1, 7))
    if table.is_empty() or outside.height or BASELINE not in set(table["mode"]):
        raise InputError(
            f"{path} holds {table.height} answers, {outside.height} of them not understood",
            accepted=f"mode {BASELINE} and others; question {', '.join(QUESTIONS)}; answer from 1 to 7",
            todo="rename the columns or values",
        )
    return table


def table_6(answers: pl.DataFrame) -> Table:
    """Means by mode and question, each against the baseline over the participants who read both."""
    means = answers.group_by("participant", "mode", "question").agg(pl.col("answer").mean())
    rows = [
        _row(means.filter(pl.col("question") == question), str(mode), question)
        for mode in answers["mode"].unique(maintain_order=True)
        for question in QUESTIONS
    ]
    return Table(
        id="table_6",
        title="Readers' answers from 1 to 7",
        frame=pl.concat([printed("table_6"), pl.DataFrame(rows)], how="diagonal_relaxed"),
        notes=(
            "Paired t tests over participants. A lower answer to bias is better; the paper's p of .00 is "
            "below .001. Its text calls the embedding mode least biased with 4.25, which is the table's "
            "classifier.",
        ),
    )


def _row(means: pl.DataFrame, mode: str, question: str) -> dict[str, object]:
    own = means.filter(pl.col("mode") == mode)
    row: dict[str, object] = {
        "source": "study",
        "mode": mode,
        "question": question,
        "mean": own["answer"].mean(),
        "n": own.height,
    }
    if mode == BASELINE:
        return row
    both = own.join(means.filter(pl.col("mode") == BASELINE), on="participant", suffix="_baseline")
    found = paired_difference(both["answer"].to_numpy(), both["answer_baseline"].to_numpy())
    return row | {"p": found.p, "difference": found.estimate, "low": found.low, "high": found.high}
