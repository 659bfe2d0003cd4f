"""Read a table of texts and labels that users supply, with clear errors for invalid tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.annotate.agreement import ConsensusRule
from evenhand.annotate.label_set import UNORDERED, LabelSet, read_label_set
from evenhand.annotate.validate import aggregate_texts
from evenhand.core.digests import digest
from evenhand.core.errors import InputError
from evenhand.stats.label_scales import KNOWN_SCALES, normalise_label
from evenhand.store.atomic_writes import write_text
from evenhand.store.cache import cache_folder
from evenhand.store.table_files import read_lines, read_table, spreadsheet_csv, unguard_table
from evenhand.text.data_splits import divide_texts, find_near_duplicates
from evenhand.training.options import TASKS, ClassificationTask
from evenhand.training.test_measures import HeldOutResult

LEAST: Final = 20
"""Minimum number of texts: fewer are too few to train and measure on."""


class LabelledTexts(NamedTuple):
    """Texts and the label of each."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    skipped: Mapping[str, int]
    """Rows left out, by reason."""

    def counts(self) -> Counter[str]:
        """The number of texts per label."""
        return Counter(self.labels)

    def select(self, places: Sequence[int]) -> LabelledTexts:
        """The texts at these indices."""
        texts, labels = (tuple(column[place] for place in places) for column in (self.texts, self.labels))
        return LabelledTexts(texts, labels, {})


class LabelledPart(NamedTuple):
    """Texts and their true labels: the number of the label, or a 0 or 1 for every label."""

    texts: Sequence[str]
    truth: NDArray[np.int64] | NDArray[np.float32]

    def any(self) -> NDArray[np.int64]:
        """1 if a text has at least one label, else 0."""
        return np.asarray(self.truth.max(1, initial=0), dtype=np.int64)


def read_labelled_texts(
    path: Path, task: ClassificationTask, *, text: str = "text", label: str = "label"
) -> LabelledTexts:
    """The texts of a table with their labels mapped to ours.

    A ``.tsv`` file whose first line is a label and a text has no header: the layout in which the
    regard study published its annotations. Rows without a text or without a label are left out and counted; a
    label that is unknown for the task is an error, since it more often means a wrong column than a typo.
    """
    table = _study_table(path, task, text, label)
    if table is None:
        table = read_table(path, {"--text": text, "--label": label})
    # Our own tables are guarded against formulas.
    texts = unguard_table(table.select(text))[text]
    rows: list[tuple[str, str]] = []
    skipped: Counter[str] = Counter()
    for number, (words, given) in enumerate(zip(texts, table[label], strict=True), start=1):
        if words is None or not words.strip():
            skipped["empty text"] += 1
        elif given is None or not given.strip():
            skipped["no label"] += 1
        elif (ours := task.map_label(given)) is None:
            raise InputError(
                f"{path} row {number} has the label {given!r}, which is unknown for {task.name}",
                expected=task.describe_labels(),
                fix="rename the label in the table, or name another column with --label",
            )
        else:
            rows.append((words, ours))
    return LabelledTexts(tuple(words for words, _ in rows), tuple(ours for _, ours in rows), dict(skipped))


def _study_table(path: Path, task: ClassificationTask, text: str, label: str) -> pl.DataFrame | None:
    """The lines of a file without a header, each a label and a text; None for any other file."""
    if path.suffix.lower() != ".tsv" or not path.is_file():
        return None
    rows = [line.split("\t", 1) for line in read_lines(path) if line.strip()]
    if not rows or len(rows[0]) != 2 or task.map_label(rows[0][0]) is None:
        return None
    cells = {label: [row[0] for row in rows], text: [row[1] if len(row) > 1 else None for row in rows]}
    return pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String))


def check_enough(data: LabelledTexts, path: Path) -> None:
    """Raise an error if too few texts, or only texts of one label, are left for training."""
    if len(data.texts) < LEAST:
        skipped = ", ".join(f"{count} rows with {reason}" for reason, count in data.skipped.items())
        raise InputError(
            f"{path} has {len(data.texts)} labelled texts" + (f" ({skipped} left out)" if skipped else ""),
            expected=f"at least {LEAST}",
            fix="label more texts; a few hundred per label are a good start",
        )
    if len(data.counts()) < 2:
        raise InputError(
            f"all texts of {path} have the label {data.labels[0]!r}",
            expected="texts of at least two labels",
            fix="add texts of the other labels, or name another column with --label",
        )


MASK: Final = "XYZ"


@dataclass(frozen=True, slots=True)
class LabelledExamples:
    """Training texts, test texts, and notes about them."""

    train: LabelledTexts
    held_out: LabelledTexts
    labels: tuple[str, ...]
    """The labels that occur, in the task's order."""
    notes: tuple[str, ...]
    test: LabelledTexts | None = None
    """Additional test texts."""

    def with_truth(self, data: LabelledTexts) -> LabelledPart:
        """Texts with the numbers of their labels."""
        return LabelledPart(data.texts, self.truth(data))

    def truth(self, data: LabelledTexts) -> NDArray[np.int64]:
        """The labels of the texts, as numbers."""
        return np.array([self.labels.index(label) for label in data.labels], dtype=np.int64)

    @property
    def majority_label(self) -> str:
        """The most frequent training label; on a tie, the first in the task's order."""
        counts = self.train.counts()
        return max(self.labels, key=lambda label: counts[label])

    def judge(self, part: str, probabilities: NDArray[np.floating]) -> HeldOutResult:
        """Evaluate predictions for the texts of an unseen part."""
        truth = self.truth(self.unseen_parts()[part])
        return HeldOutResult.of(probabilities, truth, self.labels, majority_label=self.majority_label)

    def unseen_parts(self) -> dict[str, LabelledTexts]:
        """The parts not used for training: ``dev`` and, if there is one, ``test``."""
        return {"dev": self.held_out} | ({"test": self.test} if self.test is not None else {})


def read_examples(
    data: Path,
    task: ClassificationTask,
    *,
    valid: Path | None,
    test: Path | None = None,
    text: str,
    label: str,
    seed: int,
) -> LabelledExamples:
    """The examples of a table: split by seed, or with ``valid`` held out; ``test`` is a third table."""
    read = partial(read_labelled_texts, task=task, text=text, label=label)
    source = read(data)
    check_enough(source, data)
    notes = [f"{count} rows left out: {reason}" for reason, count in source.skipped.items()]
    if valid is None:
        train, held_out = map(source.select, divide_texts(source.texts, source.labels, seed=seed))
    else:
        train, held_out = source, read(valid)
        notes += _check_unseen(train, held_out, valid, "held-out")
    further = read(test) if test else None
    if further is not None and test is not None:
        notes += _check_unseen(train, further, test, "test")
    unmasked = sum(MASK not in words for words in source.texts)
    if task.name == "regard" and unmasked:
        notes.append(
            f"{unmasked:,} of {len(source.texts):,} texts have no {MASK}: the classifier predicts regard for "
            f"{MASK}, so mask the person with it"
        )
    known = {*train.labels, *held_out.labels}
    labels = tuple(name for name in task.labels if name in known)
    return LabelledExamples(train, held_out, labels, tuple(notes), further)


def _check_unseen(train: LabelledTexts, unseen: LabelledTexts, path: Path, what: str) -> list[str]:
    """Notes on the test texts; an error if there are none, or if one has a label without training texts."""
    if not unseen.texts:
        raise InputError(f"{path} has no labelled texts", expected="at least one", fix="check the file")
    for label in unseen.counts():
        if label not in train.labels:
            raise InputError(
                f"{path} has the label {label!r}, which no training text has",
                expected=", ".join(train.counts()),
                fix="add texts of that label to the training data, or leave it out of the test",
            )
    twins = sum(find_near_duplicates(unseen.texts, train.texts))
    note = f"{twins} of the {len(unseen.texts)} {what} texts nearly repeat a training text"
    return [note] if twins else []


KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "toxicity": {
        **{name: name for name in ("toxic", "severe_toxic", "obscene", "threat", "insult")},
        **dict.fromkeys(("identity_hate", "identity_attack"), "identity_attack"),
    }
}
"""Task to its possible columns, and the names that its metric uses for them."""


class MultilabelExamples(NamedTuple):
    """Training and test texts, with labels that can occur together."""

    train: LabelledPart
    held_out: LabelledPart
    labels: tuple[str, ...]
    notes: tuple[str, ...]


def read_multilabel(
    data: Path, task: str, columns: Sequence[str], *, valid: Path | None, text: str, seed: int
) -> MultilabelExamples:
    """The examples of a table with a 0/1 column per label; a fifth is held out, or ``valid``."""
    known = KINDS.get(task, {})
    if unknown := [column for column in columns if column not in known]:
        raise InputError(
            f"{task} has no label {unknown[0]!r} that can occur with others",
            expected=", ".join(known) or f"one column of labels for {task}",
            fix="name columns with --label",
        )
    whole, skipped = _read_marks(data, columns, text)
    count, marked = len(whole.texts), int(whole.any().sum())
    if count < LEAST or marked in (0, count):
        raise InputError(
            f"{data} has {count} usable texts, {marked} of them with a label",
            expected=f"at least {LEAST}, some with and some without",
            fix="check the columns, or label more texts",
        )
    if valid is not None:
        train, held_out = whole, _read_marks(valid, columns, text)[0]
    else:
        split = divide_texts(whole.texts, ["yes" if one else "no" for one in whole.any()], seed=seed)
        train, held_out = (
            LabelledPart([whole.texts[place] for place in places], whole.truth[places]) for places in split
        )
    notes = (f"{skipped} rows left out: no text, or a label that is not 0 or 1.",) if skipped else ()
    return MultilabelExamples(train, held_out, tuple(dict.fromkeys(known[name] for name in columns)), notes)


def _read_marks(path: Path, columns: Sequence[str], text: str) -> tuple[LabelledPart, int]:
    """The texts whose labels are all 0 or 1, and the number of rows left out."""
    table = read_table(path, {"--text": text, **{f"--label {name}": name for name in columns}})
    values = {"0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0, "false": 0.0, "true": 1.0}
    marks = pl.col(*columns).str.strip_chars().str.to_lowercase()
    rows = table.select(text, marks.replace_strict(values, default=None, return_dtype=pl.Float32)).filter(
        pl.col(text).str.contains(r"\S"), pl.all_horizontal(pl.col(*columns).is_not_null())
    )
    truth = rows.drop(text).to_numpy(order="c")
    return LabelledPart(rows[text].to_list(), truth), table.height - rows.height


def resolve_training_data(
    task: str,
    data: tuple[Path, ...],
    study: Path | str | None,
    consensus: str | None,
    agreement: float | None,
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The training tables, given directly or from a study, and the plan's lines about the study."""
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
    rule = ConsensusRule(consensus or "majority", 0.5 if agreement is None else agreement, 1)
    path, texts, dropped = _tabulate_labels(study, TASKS[task], rule)
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(dropped.items())) or "none"
    return (path,), (f"study    {study}: {texts:,} texts with an agreed label; dropped: {reasons}",)


def _tabulate_labels(
    source: Path | str, task: ClassificationTask, rule: ConsensusRule
) -> tuple[Path, int, Counter[str]]:
    """A table of one label per text in a training task's terms, its texts, and the dropped texts by reason.

    Texts without a majority, and those that most people label mixed, opposing, sarcasm or nonsense, are left
    out as in the regard study (Sheng et al. 2019, section 4).
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
            expected=f"texts with the majority label {', '.join(task.labels)}",
            fix="collect more answers, or lower --agreement",
        )
    # Named by content: the same answers give the same training.
    content = spreadsheet_csv(table)
    path = cache_folder() / "study-labels" / f"{collected.name}-{digest(content, size=8)}.csv"
    if not path.is_file():
        write_text(path, content)
    return path, table.height, dropped


def _question(task: ClassificationTask, collected: LabelSet) -> str:
    """The question with the task's name; a file that names no question is assumed to match."""
    names = [question.name for question in collected.questions]
    if task.name in names or names == ["label"]:
        return task.name if task.name in names else "label"
    raise InputError(
        f"{collected.source} asks about {', '.join(names)}, not {task.name}",
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
            f"{collected.source} has the label {label!r}, which is unknown for {task.name}",
            expected=task.describe_labels(),
            fix="export the labels, rename them, and train on the table",
        )
    return known
