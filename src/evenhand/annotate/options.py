"""The options of what is done with people's answers: studies, labels, agreement and validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from evenhand.core.options import Option, pairs
from evenhand.run_options import Columns, Configured, Intervals, Loading, Recording, Seeded

_reading = partial(Option, panel="Reading a file")
_label = partial(Option, panel="One label per text")
_column = partial(Option, panel="Columns of a file")
DATABASE_HELP = (
    "postgresql://USER:PASSWORD@HOST/NAME or sqlite:///FILE (default: the variable EVENHAND_DATABASE, else "
    "labels.db in the study). It is never stored."
)


class RatingColumns(TypedDict, total=False):
    """How ratings are read from a file."""

    question: Annotated[
        str | Sequence[str] | None, _reading("Questions to look at; repeatable (default: all).")
    ]
    item: Annotated[str | None, _reading("Column of the texts' ids (default: item_id, id, or the text).")]
    text: Annotated[str | None, _reading("Column of the texts (default text).")]
    annotator: Annotated[str | None, _reading("Column of the annotators (default annotator).")]
    label: Annotated[
        str | Sequence[str] | None,
        _reading(
            "Column of the labels (default: label, or the question's name); several: one per annotator."
        ),
    ]
    scale: Annotated[
        str | Sequence[str] | None,
        _reading("The labels, lowest first: LOW,..,HIGH (default: known scales).", flag_type=str),
    ]


class RatingSource(RatingColumns, total=False):
    """How ratings are read from a study or a file."""

    database: Annotated[str | None, _reading("Database of a study by URL (default: the study's own file).")]


class ConsensusOptions(TypedDict, total=False):
    """How several labels become one."""

    consensus: Annotated[
        str, _label("majority, or dawid-skene (models each annotator's error rates).", default="majority")
    ]
    agreement: Annotated[
        float,
        _label(
            "Share of ratings, or probability, a label needs; a majority is more than half anyway.",
            default=0.5,
        ),
    ]
    least: Annotated[int, _label("Ratings a text needs.", default=1)]


class AgreementOptions(RatingSource, ConsensusOptions, Intervals, Seeded, Recording, total=False):
    """The options of ``agreement``."""


class MethodRatingOptions(RatingSource, Intervals, Recording, total=False):
    """The options of ``ratings``."""

    baseline: Annotated[
        str | None, Option("The method the others are compared with (default: baseline, vanilla).")
    ]


class ExportOptions(RatingSource, total=False):
    """The options of ``export_labels``."""

    format: Annotated[str, Option("jsonl, csv, label-studio or argilla.", default="jsonl")]
    out: Annotated[Path | str | None, Option("The file (default NAME-labels.jsonl ..).")]


class ImportOptions(RatingColumns, total=False):
    """The options of ``import_labels``."""

    out: Annotated[Path | str | None, Option("The file (default NAME-labels.jsonl).")]


class ValidateOptions(AgreementOptions, Configured, Loading, total=False):
    """The options of ``validate``."""

    cluster: Annotated[str | None, Option("Column of what belongs together (default: a study's prompts).")]
    output: Annotated[
        str | Sequence[str] | None,
        Option("Outputs of the metric; repeatable (default: all that fit).", panel="Matching labels"),
    ]
    renamed: Annotated[
        Mapping[str, str],
        Option(
            "The metric's name of people's label: THEIRS=OURS; nothing after = leaves it out; repeatable.",
            default={},
            flag="map",
            panel="Matching labels",
            parse=pairs("--map", "THEIRS=OURS, or THEIRS= to leave it out", last=True),
        ),
    ]
    onto_card: Annotated[bool, Option("Keep the result for the metric's card (`evenhand show`).")]


class StudyOptions(Columns, Seeded, total=False):
    """The options of ``create_study``."""

    task: Annotated[
        str | Path,
        Option(
            "sentiment, regard, toxicity, gender, likert, or a TOML file of your own.",
            default="sentiment",
            flag_type=str,
        ),
    ]
    items: Annotated[int, Option("Texts to ask about.", default=100, ge=1)]
    annotators: Annotated[int, Option("People who answer each text.", default=3, ge=1)]
    layout: Annotated[
        Literal["list", "single", "side-by-side"] | None,
        Option("list, single or side-by-side (default: the task's)."),
    ]
    mask: Annotated[
        Literal["suite", "xyz", "none"] | None,
        Option("Hide group mentions: suite, xyz or none (default: the task's)."),
    ]
    method: Annotated[str | None, _column("Column of what wrote the text; never shown.")]
    score: Annotated[str | None, _column("Column of scores (default: the task's metric is run).")]


class StudyDatabase(TypedDict, total=False):
    """Where a study keeps its answers."""

    database: Annotated[str | None, Option(DATABASE_HELP)]


class Address(TypedDict, total=False):
    """Where people find a study."""

    base: Annotated[
        str | None, Option("The address people use, if it is not this machine's own: https://HOST.")
    ]


class InviteOptions(Address, StudyDatabase, total=False):
    """The options of ``invite_people``."""

    again: Annotated[str | None, Option("A new link for somebody who lost theirs: a1, a2, ...")]


class ServeOptions(Address, StudyDatabase, total=False):
    """The options of ``serve_study``."""

    host: Annotated[str, Option("Where to listen; the default is this machine alone.", default="127.0.0.1")]
    port: Annotated[int, Option("Port to listen at.", default=8765, ge=1, le=65535)]
    trusted_proxy: Annotated[
        str | Sequence[str],
        Option(
            "A proxy whose X-Forwarded-For counts: its address or network, such as 10.0.0.0/8; repeatable "
            "(default: none).",
            default=(),
        ),
    ]


class ForgetOptions(StudyDatabase, total=False):
    """The options of ``forget_person``."""

    answers_too: Annotated[
        bool, Option("Delete the answers as well; others are asked instead.", flag="answers")
    ]


class ItemOptions(Seeded, total=False):
    """The options of ``sample_items``."""

    per_prompt: Annotated[
        int, Option("Positive, and as many negative, texts per prompt, by VADER.", default=3)
    ]
    suite: Annotated[str, Option("For a file: the suite of its prompts.", default="regard")]
    cut: Annotated[float, Option("VADER's cut.", default=0.05)]
    out: Annotated[Path | str, Option("The table of chosen texts.", default="items.csv")]


class AggregateOptions(Seeded, total=False):
    """The options of ``settle_labels``."""

    question: Annotated[
        Sequence[str] | None, Option("regard, sentiment; repeatable (default: the columns of that name).")
    ]
    label: Annotated[str | None, Option("Column of the labels (default: the question's name).")]
    item: Annotated[str, Option("Column of the texts' ids.", default="id")]
    text: Annotated[str, Option("Column of the texts.", default="text")]
    annotator: Annotated[str, Option("Column of the annotators.", default="annotator")]
    out: Annotated[Path | str, Option("Folder for the tables.", default="labels")]
