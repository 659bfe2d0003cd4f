"""What people said, from a study or from a file, in one shape: a row for each item, person and question.

Files are our own exports, tables of others, and the JSON of Label Studio and Argilla.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from evenhand.annotate.rating_files import KEY, ROWS, RatedQuestion, RatingFileColumns, read_ratings
from evenhand.annotate.study import STUDY, Study, read_study
from evenhand.annotate.study_labels import read_labels
from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.stats.label_scales import LabelScale, RatingCodes
from evenhand.store.table_files import read_table, unguard_table


@dataclass(frozen=True, slots=True)
class LabelSet:
    """What people said."""

    name: str
    source: Path
    rows: pl.DataFrame
    """The columns of ``ROWS``."""
    questions: tuple[RatedQuestion, ...]
    digest: str
    notes: tuple[str, ...] = ()
    """What was left out or read in a special way, counted."""
    checks: Mapping[str, tuple[int, int]] | None = None
    """Annotator to checks of attention passed and met; None where there were none."""

    def of(self, question: str) -> pl.DataFrame:
        """The ratings of one question, checks left out."""
        return self.rows.filter((pl.col("question") == question) & ~pl.col("is_check"))

    def ratings(self, question: RatedQuestion) -> RatingCodes:
        """The ratings of one question as codes."""
        rows = self.of(question.name)
        return RatingCodes.from_rows(
            rows["item_id"].to_list(),
            rows["annotator"].to_list(),
            rows["label"].to_list(),
            scale=question.scale.labels,
        )

    def texts(self) -> dict[str, str]:
        """Item to its text."""
        return dict(self.rows.select("item_id", "text").unique(maintain_order=True).iter_rows())

    def select_questions(self, names: Sequence[str] | None) -> LabelSet:
        """The same with some questions only."""
        if not names:
            return self
        known = {question.name: question for question in self.questions}
        for name in names:
            if name not in known:
                raise InputError(
                    f"{self.source} has no answers to the question {name!r}",
                    expected=", ".join(known),
                    fix="name one of these with --question",
                )
        kept = tuple(known[name] for name in names)
        return replace(self, questions=kept, rows=self.rows.filter(pl.col("question").is_in(list(names))))


def read_label_set(
    source: Path | str, columns: RatingFileColumns | None = None, *, database: str | None = None
) -> LabelSet:
    """What people said, from a study folder or a file; ``database`` names a study's database by URL."""
    path = Path(source)
    if path.is_dir() or path.name == STUDY:
        return read_study_labels(read_study(path if path.is_dir() else path.parent), database)
    rated = read_ratings(_table(path), columns or RatingFileColumns(), path)
    stem = Path(path.name.removesuffix(".gz")).stem
    return LabelSet(stem, path, rated.rows, rated.questions, file_digest(path), rated.notes)


def read_study_labels(study: Study, database: str | None = None) -> LabelSet:
    """The answers of a study so far, with their texts; an error where there are none."""
    labels = read_labels(study, database)
    if labels.is_empty():
        raise InputError(
            f"nobody has answered the study {study.folder} yet",
            expected="a study with answers",
            fix="serve it with `evenhand annotate serve`, or name its database with --database",
        )
    items = study.items().drop("is_check", "score", "score_label")
    rows = labels.join(items, on="item_id", how="left").with_columns(
        pl.col("at").dt.strftime("%Y-%m-%dT%H:%M:%SZ"), pl.col("prompt").alias("cluster")
    )
    asked = {question.name: question for question in study.questions}
    present = labels["question"].unique().to_list()
    return LabelSet(
        name=study.folder.resolve().name,
        source=study.folder,
        rows=rows.select(pl.col(name).cast(kind) for name, kind in ROWS.items()),
        questions=tuple(
            RatedQuestion(name, LabelScale(name, asked[name].codes).sort())
            for name in asked
            if name in present
        ),
        digest=_digest(rows),
        checks=_checks(rows),
    )


def _table(path: Path) -> pl.DataFrame:
    ending = path.name.lower().removesuffix(".gz")
    if ending.endswith(".json"):
        from evenhand.annotate.label_formats import read_json

        return read_json(path)
    table = read_table(path)
    if ending.endswith((".csv", ".tsv")) and {"item_id", "annotator", "question"} <= set(table.columns):
        # An export of ours: its cells are guarded against formulas.
        return unguard_table(table)
    return table


def _checks(rows: pl.DataFrame) -> dict[str, tuple[int, int]] | None:
    """For each annotator the checks of attention passed and met."""
    met = rows.filter(pl.col("is_check") & pl.col("expected").is_not_null())
    if met.is_empty():
        return None
    right = pl.struct("expected", "question", "label").map_elements(_is_right, return_dtype=pl.Boolean)
    told = met.with_columns(right.alias("right")).filter(pl.col("right").is_not_null())
    found = told.group_by("annotator").agg(pl.col("right").sum(), pl.len()).sort("annotator")
    return {str(who): (int(passed), int(n)) for who, passed, n in found.iter_rows()}


def _is_right(answer: Mapping[str, str]) -> bool | None:
    expected = json.loads(answer["expected"]).get(answer["question"])
    return None if expected is None else bool(expected == answer["label"])


def _digest(rows: pl.DataFrame) -> str:
    return digest(rows.select(*KEY, "label").sort(KEY).write_csv())
