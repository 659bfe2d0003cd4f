"""From a study to a table that ``train`` reads: one label a text, as people agreed on it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.annotate.agreement_tables import build_rule
from evenhand.annotate.label_mapping import UNORDERED
from evenhand.annotate.label_set import LabelSet, read_label_set
from evenhand.annotate.validate import aggregate_texts
from evenhand.core.digests import digest
from evenhand.core.errors import InputError
from evenhand.stats.label_scales import KNOWN_SCALES, normalise_label
from evenhand.store.atomic_writes import write_text
from evenhand.store.cache import cache_folder
from evenhand.store.table_files import spreadsheet_csv
from evenhand.training.options import TASKS, ClassificationTask


@dataclass(frozen=True, slots=True)
class StudyLabels:
    """The labels people agreed on, kept as a table by its content."""

    path: Path
    texts: int
    dropped: dict[str, int]
    """Texts left out, by reason."""

    def line(self) -> str:
        """What was kept and dropped, for a plan."""
        lost = ", ".join(f"{reason} {count}" for reason, count in self.dropped.items()) or "none"
        return f"{self.texts:,} texts people agree on; dropped: {lost}"


_FOLDER: Final = "study-labels"


def resolve_training_data(
    task: str,
    data: tuple[Path, ...],
    study: Path | str | None,
    consensus: str | None,
    agreement: float | None,
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The tables to train on, of data or of a study, and what a plan says of the study."""
    if (study is None) == (not data):
        came = "neither data nor a study" if study is None else "both data and a study"
        raise InputError(
            f"{came} to train {task} on",
            expected="a table, or --from STUDY",
            fix=f"evenhand train {task} DATA, or evenhand train {task} --from STUDY",
        )
    if study is None:
        return data, ()
    if task not in TASKS:
        raise InputError(
            f"{task} is not trained from a study", expected=", ".join(TASKS), fix="give a table instead"
        )
    share = 0.5 if agreement is None else agreement
    found = read_study_labels(study, TASKS[task], consensus=consensus or "majority", agreement=share)
    return (found.path,), (f"study    {study}: {found.line()}",)


def read_study_labels(
    source: Path | str,
    task: ClassificationTask,
    *,
    consensus: str = "majority",
    agreement: float = 0.5,
    least: int = 1,
    database: str | None = None,
) -> StudyLabels:
    """One label a text of a study or export, in the words of a training; others are dropped and counted.

    Texts without a majority, and those most people call mixed, opposing, sarcasm or nonsense, are left out as
    in the regard study (Sheng et al. 2019, section 4).
    """
    rule = build_rule(consensus, agreement, least)
    collected = read_label_set(source, database=database)
    collected = collected.select_questions([_question(task, collected)])
    settled = aggregate_texts(collected, rule)
    dropped = Counter(settled.filter(pl.col("human").is_null())["reason"].to_list())
    meant = {label: _label(label, task, collected) for label in settled["human"].drop_nulls().unique()}
    told = settled.drop_nulls("human").with_columns(
        pl.col("human").replace_strict(meant, return_dtype=pl.String, default=None).alias("label")
    )
    dropped.update(told.filter(pl.col("label").is_null())["human"].to_list())
    kept = told.drop_nulls("label").select(pl.col("item_id").alias("id"), "text", "label").sort("id")
    if kept.is_empty():
        raise InputError(
            f"{source} has no text with a label to learn: "
            + ", ".join(f"{reason} {count}" for reason, count in dropped.items()),
            expected=f"texts that most people call {', '.join(task.labels)}",
            fix="collect more answers, or lower --agreement",
        )
    return StudyLabels(_write_cached(kept, collected.name), kept.height, dict(sorted(dropped.items())))


def _question(task: ClassificationTask, collected: LabelSet) -> str:
    """The question of the task's name; a file that names none is taken at its word."""
    asked = [question.name for question in collected.questions]
    if task.name in asked or asked == ["label"]:
        return task.name if task.name in asked else "label"
    raise InputError(
        f"{collected.source} asks {', '.join(asked)}, not {task.name}",
        expected=f"answers to the question {task.name}",
        fix="name another study, or export its labels and train on the table",
    )


def _label(label: str, task: ClassificationTask, collected: LabelSet) -> str | None:
    plain = normalise_label(label)
    if plain in UNORDERED:
        return None
    known = task.map_label(plain)
    for scale in KNOWN_SCALES:
        found = scale.label_of(plain)
        if known is None and found in task.labels:
            known = found
    if known is None:
        raise InputError(
            f"{collected.source} has the label {label!r}, which {task.name} does not know",
            expected=task.describe_labels(),
            fix="export the labels, rename them, and train on the table",
        )
    return known


def _write_cached(table: pl.DataFrame, name: str) -> Path:
    """The table in the cache, by its content: the same answers are the same training."""
    text = spreadsheet_csv(table)
    path = cache_folder() / _FOLDER / f"{name}-{digest(text, size=8)}.csv"
    if not path.is_file():
        write_text(path, text)
    return path
