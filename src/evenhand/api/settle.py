"""``settle_labels``: several people's labels to one a text, with agreement and parts to train on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import polars as pl

from evenhand.api.parts import Plan
from evenhand.api.people_options import SettleOptions
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.store.atomic import write_text
from evenhand.store.files import column_names
from evenhand.store.spreadsheets import spreadsheet_csv
from evenhand.training.annotations import (
    QUESTIONS,
    Agreement,
    Annotations,
    Question,
    Settled,
    agreement,
    parts,
    read_annotations,
    settle,
)


@dataclass(frozen=True, slots=True)
class Labels:
    """What was settled."""

    folder: Path
    """``QUESTION_train.csv``, ``_dev.csv``, ``_test.csv`` (id, text, label) and ``agreement.csv``;
    ``QUESTION_all.csv`` for a question whose texts could not be divided."""
    agreement: tuple[Agreement, ...]
    settled: Mapping[str, Settled]
    sizes: Mapping[str, Mapping[str, int]]
    """Question to part to texts."""
    undivided: Mapping[str, str]
    """Question to the reason why its texts are in no parts."""

    def lines(self) -> list[str]:
        """What was found, a line each."""
        found = [
            f"{row.question:<10} {row.statistic.replace('_', ' ')} over {row.categories} categories: "
            + _shown(row)
            for row in self.agreement
        ]
        for question, settled in self.settled.items():
            sizes = ", ".join(f"{part} {size}" for part, size in self.sizes[question].items())
            dropped = ", ".join(f"{reason} {count}" for reason, count in settled.dropped.items()) or "none"
            found.append(f"{question:<10} {len(settled.items)} texts kept ({sizes}); dropped: {dropped}")
        return [*found, f"tables: {self.folder}"]


@dataclass(frozen=True, slots=True)
class Settling:
    """Annotations that are read and checked."""

    source: str
    questions: tuple[Annotations, ...]
    seed: int
    out: Path

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        lines = [
            f"{found.question:<8} {len(found.ratings):,} ratings of {len(found.texts):,} texts by "
            f"{len({rating.annotator for rating in found.ratings}):,} annotators"
            for found in self.questions
        ]
        return Plan(f"settle {self.source}", (*lines, f"folder   {self.out}"), self.out)

    def notes(self) -> list[str]:
        """What is odd about the table: rows left out, texts without the mask."""
        found = []
        for question in self.questions:
            found += [f"{count} rows left out: {reason}" for reason, count in question.skipped.items()]
            if question.unmasked:
                found.append(
                    f"{question.unmasked:,} of {len(question.texts):,} texts have no XYZ: their readers knew "
                    "the demographic"
                )
        return list(dict.fromkeys(found))

    def run(self) -> Labels:
        """Settle, divide, write."""
        rows = [row for found in self.questions for row in agreement(found, seed=self.seed)]
        settled: dict[str, Settled] = {found.question: settle(found) for found in self.questions}
        divided, undivided = self._divided(settled)
        for question, places in divided.items():
            for part, chosen in places.items():
                _write(_table(settled[question], chosen), self.out / f"{question}_{part}.csv")
        _write(_agreement_table(rows), self.out / "agreement.csv")
        sizes = {
            question: {part: len(chosen) for part, chosen in places.items()}
            for question, places in divided.items()
        }
        return Labels(self.out, tuple(rows), settled, sizes, undivided)

    def _divided(
        self, settled: Mapping[str, Settled]
    ) -> tuple[dict[str, dict[str, list[int]]], dict[str, str]]:
        """The parts of every question, ``all`` alone where they cannot be made, and then why."""
        divided, undivided = {}, {}
        for question, found in settled.items():
            try:
                divided[question] = parts(found, seed=self.seed)
            except InputError as error:
                # Agreement and labels are worth having where there is too little to train on.
                divided[question] = {"all": list(range(len(found.items)))}
                undivided[question] = error.came
        return divided, undivided


@checks_options
def settle_labels(file: Path | str, **options: Unpack[SettleOptions]) -> Labels:
    """One label for each text from a table with a row a text and annotator; arguments as ``annotate settle``.

    Agreement is Fleiss' kappa and Spearman's rho, over all six categories and over the original three. The
    label is what more than half of the annotators chose; texts without one, or whose label is mixed,
    opposing, sarcasm or nonsense, are dropped and counted (Sheng et al. 2019, section 4).
    """
    return prepare(file, **options).run()


@checks_options
def prepare(file: Path | str, **options: Unpack[SettleOptions]) -> Settling:
    """The annotations read and checked, so that ``plan`` can be shown before ``run``."""
    path = Path(file)
    questions = tuple(
        read_annotations(
            path,
            question,
            label=options["label"],
            item=options["item"],
            text=options["text"],
            annotator=options["annotator"],
        )
        for question in _questions(path, options)
    )
    return Settling(path.name, questions, options["seed"], Path(options["out"]))


def _questions(path: Path, options: SettleOptions) -> list[Question]:
    given = options["question"]
    unknown = [name for name in given or () if name not in QUESTIONS]
    if unknown:
        raise InputError(
            f"--question {unknown[0]!r}", accepted=", ".join(QUESTIONS), todo="name one of these"
        )
    columns = given or column_names(path)
    found: list[Question] = [question for question in QUESTIONS if question in columns]
    if not found:
        raise InputError(
            f"{path} has no column of labels",
            accepted=f"a column {' or '.join(QUESTIONS)}",
            todo="name the question and its column with --question and --label",
        )
    return found


def _table(settled: Settled, places: Sequence[int]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "id": [settled.items[place] for place in places],
            "text": [settled.texts[place] for place in places],
            "label": [settled.labels[place] for place in places],
        },
        schema=dict.fromkeys(("id", "text", "label"), pl.String()),
    )


def _agreement_table(rows: Sequence[Agreement]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "question": row.question,
                "categories": row.categories,
                "statistic": row.statistic,
                "value": row.estimate.value,
                "low": row.estimate.low,
                "high": row.estimate.high,
                "ratings": row.estimate.n,
                "texts": row.estimate.n_clusters,
                "texts_left_out": row.estimate.n_null,
                "null_reason": row.estimate.null_reason,
            }
            for row in rows
        ],
        infer_schema_length=None,
    )


def _shown(row: Agreement) -> str:
    found = row.estimate
    if found.value is None:
        return f"none ({found.null_reason})"
    spread = "" if found.low is None else f" ({found.low:.2f} to {found.high:.2f})"
    return f"{found.value:.2f}{spread}"


def _write(table: pl.DataFrame, path: Path) -> None:
    write_text(path, spreadsheet_csv(table))
