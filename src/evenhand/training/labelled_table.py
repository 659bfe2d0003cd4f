"""Read a table of texts and labels that users supply, with clear errors for invalid tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
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
from evenhand.training.options import TASKS, ClassificationTask, TrainOptions
from evenhand.training.test_measures import HeldOutResult, accuracy_ceiling

LEAST: Final = 20
"""Minimum number of texts: fewer are too few to train and measure on."""


class LabelledTexts(NamedTuple):
    """Texts and the label of each."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    skipped: Mapping[str, int]
    """Rows left out, by reason."""

    def select(self, places: Sequence[int]) -> LabelledTexts:
        """The texts at these indices."""
        texts, labels = (tuple(column[place] for place in places) for column in (self.texts, self.labels))
        return LabelledTexts(texts, labels, {})


class LabelledPart(NamedTuple):
    """Texts and their true labels: the number of the label, or a 0 or 1 for every label."""

    texts: Sequence[str]
    truth: NDArray[np.int64] | NDArray[np.float32]

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The number of each text's label."""
        return np.asarray(self.truth, dtype=np.int64)

    def any(self) -> NDArray[np.int64]:
        """1 if a text has at least one label, else 0."""
        return np.asarray(self.truth.max(1, initial=0), dtype=np.int64)

    def counts(self, labels: int) -> list[int]:
        """The number of texts with each label."""
        marks = self.truth if self.truth.ndim == 2 else np.eye(labels)[self.truth]
        return [int(count) for count in marks.sum(0)]


class LabelledExamples(NamedTuple):
    """Training texts, unseen texts, and notes about them."""

    train: LabelledPart
    unseen: Mapping[str, LabelledPart]
    """The held-out texts, ``dev``, and additional test texts, ``test``, if there are any."""
    labels: tuple[str, ...]
    """The labels that occur, in the task's order."""
    notes: tuple[str, ...]
    ceilings: Mapping[str, float] = MappingProxyType({})
    """The maximum possible accuracy of each unseen part in which some texts have several exclusive labels."""
    each: bool = False
    """Whether labels can occur together."""

    def judge(self, part: str, probabilities: NDArray[np.floating]) -> HeldOutResult:
        """Evaluate predictions for an unseen part; of labels that can occur together, whether any applies."""
        if self.each:
            worst, truth = probabilities.max(1), self.unseen[part].any()
            shares = np.stack([1 - worst, worst], axis=1)
            return HeldOutResult.of(shares, truth, ("none", "any"), majority_label="none")
        majority = self.labels[np.bincount(self.train.numbers).argmax()]
        return HeldOutResult.of(
            probabilities, self.unseen[part].numbers, self.labels, majority_label=majority
        )


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
    if len(set(data.labels)) < 2:
        raise InputError(
            f"all texts of {path} have the label {data.labels[0]!r}",
            expected="texts of at least two labels",
            fix="add texts of the other labels, or name another column with --label",
        )


MASK: Final = "XYZ"


def read_examples(
    data: Path, task: ClassificationTask, text: str, label: str, others: Mapping[str, Path | None], seed: int
) -> LabelledExamples:
    """The examples of a table, with other tables as ``dev`` and ``test``; without ``dev``, split by seed."""
    read = partial(read_labelled_texts, task=task, text=text, label=label)
    source = read(data)
    check_enough(source, data)
    notes = [f"{count} rows left out: {reason}" for reason, count in source.skipped.items()]
    train, unseen = source, dict[str, LabelledTexts]()
    if others["dev"] is None:
        train, unseen["dev"] = map(source.select, divide_texts(source.texts, source.labels, seed=seed))
    for part, path in others.items():
        if path is not None:
            unseen[part] = read(path)
            what = part.replace("dev", "held-out")
            notes += _check_unseen(train.texts, unseen[part].texts, path, what)
            _check_labels(train.labels, unseen[part].labels, path)
    unmasked = sum(MASK not in words for words in source.texts)
    if task.name == "regard" and unmasked:
        notes.append(
            f"{unmasked:,} of {len(source.texts):,} texts have no {MASK}: the classifier predicts regard for "
            f"{MASK}, so mask the person with it"
        )
    tops = {part: accuracy_ceiling(texts.texts, texts.labels) for part, texts in unseen.items()}
    ceilings = {f"{part}_ceiling".removeprefix("dev_"): top for part, top in tops.items() if top < 1}
    if tops["dev"] < 1:
        notes.append(
            "Some held-out texts have several labels: no classifier with one answer per text can be "
            f"correct on more than {tops['dev']:.3f} of them."
        )
    labels = tuple(name for name in task.labels if name in set(train.labels))
    train_part, *unseen_parts = (
        LabelledPart(part.texts, np.array([labels.index(label) for label in part.labels], dtype=np.int64))
        for part in (train, *unseen.values())
    )
    parts = dict(zip(unseen, unseen_parts, strict=True))
    return LabelledExamples(train_part, parts, labels, tuple(notes), ceilings)


def _check_unseen(known: Sequence[str], texts: Sequence[str], path: Path, what: str) -> list[str]:
    """A note on texts that nearly repeat a training text; an error if there are no texts at all."""
    if not texts:
        raise InputError(f"{path} has no labelled texts", expected="at least one", fix="check the file")
    twins = sum(find_near_duplicates(texts, known))
    return [f"{twins} of the {len(texts)} {what} texts nearly repeat a training text"] if twins else []


def _check_labels(known: Sequence[str], labels: Sequence[str], path: Path) -> None:
    """Raise an error that names a label without training texts."""
    if unknown := [label for label in dict.fromkeys(labels) if label not in dict.fromkeys(known)]:
        raise InputError(
            f"{path} has the label {unknown[0]!r}, which no training text has",
            expected=", ".join(dict.fromkeys(known)),
            fix="add texts of that label to the training data, or leave it out of the test",
        )


KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "toxicity": {
        **{name: name for name in ("toxic", "severe_toxic", "obscene", "threat", "insult")},
        **dict.fromkeys(("identity_hate", "identity_attack"), "identity_attack"),
    }
}
"""Task to its possible columns, and the names that its metric uses for them."""


def read_multilabel(
    data: Path, task: str, columns: Sequence[str], *, valid: Path | None, text: str, seed: int
) -> LabelledExamples:
    """The examples of a table with a 0/1 column per label; a fifth is held out, or ``valid``.

    A text has a label of two columns (``identity_hate`` and ``identity_attack``) if it has either.
    """
    known = KINDS.get(task, {})
    if unknown := [column for column in columns if column not in known]:
        raise InputError(
            f"{task} has no label {unknown[0]!r} that can occur with others",
            expected=", ".join(known) or f"one column of labels for {task}",
            fix="name columns with --label",
        )
    named: dict[str, list[str]] = {}
    for column in dict.fromkeys(columns):
        named.setdefault(known[column], []).append(column)
    whole, skipped = _read_marks(data, named, text)
    count, marked = len(whole.texts), int(whole.any().sum())
    if count < LEAST or marked in (0, count):
        raise InputError(
            f"{data} has {count} usable texts, {marked} of them with a label",
            expected=f"at least {LEAST}, some with and some without",
            fix="check the columns, or label more texts",
        )
    notes = [f"{skipped} rows left out: no text, or a label that is not 0 or 1."] if skipped else []
    if valid is not None:
        train, held_out = whole, _read_marks(valid, named, text)[0]
        notes += _check_unseen(train.texts, held_out.texts, valid, "held-out")
    else:
        split = divide_texts(whole.texts, ["yes" if one else "no" for one in whole.any()], seed=seed)
        train, held_out = (
            LabelledPart([whole.texts[place] for place in places], whole.truth[places]) for places in split
        )
    return LabelledExamples(train, {"dev": held_out}, tuple(named), tuple(notes), each=True)


def _read_marks(path: Path, named: Mapping[str, Sequence[str]], text: str) -> tuple[LabelledPart, int]:
    """The texts whose labels are all 0 or 1, and the number of rows left out; ``named`` has the columns."""
    columns = [column for columns in named.values() for column in columns]
    table = read_table(path, {"--text": text, **{f"--label {name}": name for name in columns}})
    values = {"0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0, "false": 0.0, "true": 1.0}
    marks = pl.col(*columns).str.strip_chars().str.to_lowercase()
    rows = table.select(text, marks.replace_strict(values, default=None, return_dtype=pl.Float32)).filter(
        pl.col(text).str.contains(r"\S"), pl.all_horizontal(pl.col(*columns).is_not_null())
    )
    truth = rows.select(pl.max_horizontal(columns).alias(label) for label, columns in named.items())
    return LabelledPart(rows[text].to_list(), truth.to_numpy(order="c")), table.height - rows.height


def resolve_training_data(
    task: str, data: tuple[Path, ...], options: TrainOptions
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The training tables, given directly or from a study, and the plan's lines about the study."""
    study, agreement = options["study"], options["agreement"]
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
    rule = ConsensusRule(options["consensus"] or "majority", 0.5 if agreement is None else agreement, 1)
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
    texts = texts.with_columns(label=labels, lost=pl.coalesce("human", "reason"))
    dropped = Counter(texts.filter(pl.col("label").is_null())["lost"])
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
