"""From a study to a table that ``train`` reads: one label a text, as people agreed on it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl

from evenhand.annotate.agreement import ConsensusRule, build_rule
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


def resolve_training_data(
    task: str,
    data: tuple[Path, ...],
    study: Path | str | None,
    consensus: str | None,
    agreement: float | None,
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The tables to train on, of data or of a study, and what a plan says of the study."""
    if (study is None) == (not data):
        given = "neither data nor a study" if study is None else "both data and a study"
        raise InputError(
            f"{given} to train {task} on",
            expected="a table, or --from STUDY",
            fix=f"evenhand train {task} DATA, or evenhand train {task} --from STUDY",
        )
    if study is None:
        return data, ()
    if task not in TASKS:
        raise InputError(
            f"{task} is not trained from a study", expected=", ".join(TASKS), fix="give a table instead"
        )
    rule = build_rule(consensus or "majority", 0.5 if agreement is None else agreement, 1)
    path, texts, dropped = _tabulate_labels(study, TASKS[task], rule)
    lost = ", ".join(f"{reason} {count}" for reason, count in sorted(dropped.items())) or "none"
    return (path,), (f"study    {study}: {texts:,} texts people agree on; dropped: {lost}",)


def _tabulate_labels(
    source: Path | str, task: ClassificationTask, rule: ConsensusRule
) -> tuple[Path, int, Counter[str]]:
    """A table of one label a text in the words of a training, its texts, and by reason those left out.

    Texts without a majority, and those most people call mixed, opposing, sarcasm or nonsense, are left out as
    in the regard study (Sheng et al. 2019, section 4).
    """
    collected = read_label_set(source)
    collected = collected.select_questions([_question(task, collected)])
    texts = aggregate_texts(collected, rule)
    ours = {label: _label(label, task, collected) for label in texts["human"].drop_nulls().unique()}
    labels = pl.col("human").replace_strict(ours, return_dtype=pl.String, default=None)
    texts = texts.with_columns(labels.alias("label"))
    lost = texts.filter(pl.col("label").is_null())
    dropped = Counter([*lost.filter(pl.col("human").is_null())["reason"], *lost["human"].drop_nulls()])
    table = texts.drop_nulls("label").select(pl.col("item_id").alias("id"), "text", "label").sort("id")
    if table.is_empty():
        raise InputError(
            f"{source} has no text with a label to learn: "
            + ", ".join(f"{reason} {count}" for reason, count in dropped.items()),
            expected=f"texts that most people call {', '.join(task.labels)}",
            fix="collect more answers, or lower --agreement",
        )
    # By its content: the same answers are the same training.
    content = spreadsheet_csv(table)
    path = cache_folder() / "study-labels" / f"{collected.name}-{digest(content, size=8)}.csv"
    if not path.is_file():
        write_text(path, content)
    return path, table.height, dropped


def _question(task: ClassificationTask, collected: LabelSet) -> str:
    """The question of the task's name; a file that names none is taken at its word."""
    names = [question.name for question in collected.questions]
    if task.name in names or names == ["label"]:
        return task.name if task.name in names else "label"
    raise InputError(
        f"{collected.source} asks {', '.join(names)}, not {task.name}",
        expected=f"answers to the question {task.name}",
        fix="name another study, or export its labels and train on the table",
    )


def _label(label: str, task: ClassificationTask, collected: LabelSet) -> str | None:
    plain = normalise_label(label)
    if plain in UNORDERED:
        return None
    others = (scale.label_of(plain) for scale in KNOWN_SCALES)
    known = task.map_label(plain) or next((other for other in others if other in task.labels), None)
    if known is None:
        raise InputError(
            f"{collected.source} has the label {label!r}, which {task.name} does not know",
            expected=task.describe_labels(),
            fix="export the labels, rename them, and train on the table",
        )
    return known
