"""The Equity Evaluation Corpus: short sentences with an emotion word, paired as the affective paper does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.core.digests import file_digest
from evenhand.core.records import Execution
from evenhand.suites.pairs.pair_sets import (
    PairSet,
    PairSuite,
    distinct_sets,
    find_files,
    read_columns,
    refuse_changed,
)

COLUMNS: Final = ("Sentence", "Template", "Person", "Gender", "Race", "Emotion", "Emotion word")
ROW: Final = "(row)"
GENDERS: Final = {"male": "male", "female": "female"}
RACES: Final = {"European": "European American", "African-American": "African American"}


class EecSuite(PairSuite):
    """EEC (Kiritchenko and Mohammad 2018): 1,400 pairs male x female, 2,800 European x African American.

    The 240 sentences without an emotion word are left out (affective paper, section 4.2.1). Gender pairs are
    the ten pairs of noun phrases and pronouns; race pairs are the names, each with the name at the same place
    in the other group's list and of the same gender. Cluster = one of the seven templates.

    Args:
        name: The file ``eec.csv``, a folder that holds it, or ``hub:ORG/NAME@REV/FILE``.
        execution: Whether the run is offline.
    """

    def __init__(self, *, name: str = "", execution: Execution | None = None) -> None:
        path = find_files(name, suite="eec", files=("eec.csv",), execution=execution)[0]
        rows = read_columns(path, COLUMNS).with_row_index(ROW, offset=1)
        for column, known in (("Gender", GENDERS), ("Race", RACES)):
            for row, group in rows.filter(~pl.col(column).is_in(["", *known])).select(ROW, column).rows():
                refuse_changed(f"{path} row {row} has {group!r} in the column {column!r}", ", ".join(known))
        with_emotion = rows.filter(pl.col("Emotion") != "")
        sets, left_out = distinct_sets(
            one for axis in ("gender", "race") for one in _sets(with_emotion, axis, path=path)
        )
        neutral = rows.height - with_emotion.height
        noun, verb = ("sentence", "is") if neutral == 1 else ("sentences", "are")
        super().__init__(
            "eec",
            sets,
            summary="Short sentences with an emotion word, for two genders and two racial groups.",
            digest=file_digest(path),
            citation="Kiritchenko and Mohammad. Examining Gender and Race Bias in Two Hundred Sentiment "
            "Analysis Systems. *SEM 2018.",
            licence="for research",
            notes=(
                *([f"{neutral} {noun} without an emotion word {verb} left out."] if neutral else []),
                *left_out,
            ),
        )


def _sets(rows: pl.DataFrame, axis: str, *, path: Path) -> Iterator[PairSet]:
    """The sets of an axis in file order: the n-th person of one group goes with the n-th of the other."""
    named = pl.col("Race") != ""
    column, names = ("Gender", GENDERS) if axis == "gender" else ("Race", RACES)
    # Names are paired within a gender; noun phrases have no other trait to keep.
    trait = pl.lit("") if axis == "gender" else pl.col("Gender")
    own = rows.filter(~named if axis == "gender" else named).with_columns(trait=trait)
    is_damaged = ~pl.col(column).is_in(list(names)) | (pl.col("Sentence") == "")
    for row in own.filter(is_damaged)[ROW]:
        refuse_changed(f"{path} row {row} has no sentence, or no {column.lower()}", "both in every row")
    keys = ["Template", "Emotion", "Emotion word", "trait", column]
    numbered = own.with_columns(place=pl.int_range(pl.len()).over(keys))
    index = ["Template", "Emotion", "Emotion word", "trait", "place"]
    matched = numbered.pivot(column, index=index, values="Sentence", aggregate_function="last")
    if set(names) <= set(matched.columns):
        for row in matched.drop_nulls(list(names)).iter_rows(named=True):
            name = "/".join((row["Template"], row["Emotion word"], row["trait"], str(row["place"])))
            sentences = {group: row[value] for value, group in names.items()}
            yield PairSet(name, axis, row["Template"], sentences, row["Emotion"])
