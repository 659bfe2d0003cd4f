"""The options of commands on human answers: studies, labels, agreement and validation."""

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
    """How to read ratings from a file."""

    question: Annotated[
        str | Sequence[str] | None, _reading("Questions to analyse; repeatable (default: all).")
    ]
    item: Annotated[str | None, _reading("Column of the texts' ids (default: item_id, id, or the text).")]
    text: Annotated[str | None, _reading("Column of the texts (default text).")]
    annotator: Annotated[str | None, _reading("Column of the annotators (default annotator).")]
    label: Annotated[
        str | Sequence[str] | None,
        _reading(
            "Column of the labels (default: label, or the question's name); repeat for one per annotator."
        ),
    ]
    scale: Annotated[
        str | Sequence[str] | None,
        _reading("The labels, lowest first: LOW,..,HIGH (default: known scales).", flag_type=str),
    ]


class RatingSource(RatingColumns, total=False):
    """How to read ratings from a study or a file."""

    database: Annotated[str | None, _reading("Database of a study by URL (default: the study's own file).")]


class ConsensusOptions(TypedDict, total=False):
    """How several labels of a text become one."""

    consensus: Annotated[
        Literal["majority", "dawid-skene"],
        _label("majority, or dawid-skene (models each annotator's error rates).", default="majority"),
    ]
    agreement: Annotated[
        float,
        _label(
            "Minimum share of ratings, or probability, of a label; a majority always needs more than half.",
            default=0.5,
            ge=0,
            le=1,
        ),
    ]
    least: Annotated[int, _label("Minimum ratings per text.", default=1, ge=1)]


class AgreementOptions(RatingSource, ConsensusOptions, Intervals, Seeded, Recording, total=False):
    """The options of ``agreement``."""


class MethodRatingOptions(RatingSource, Intervals, Recording, total=False):
    """The options of ``ratings``."""

    baseline: Annotated[
        str | None, Option("The baseline method (default: baseline, vanilla, else the first).")
    ]


class ExportOptions(RatingSource, total=False):
    """The options of ``export_labels``."""

    format: Annotated[
        Literal["jsonl", "csv", "label-studio", "argilla"],
        Option("jsonl, csv, label-studio or argilla.", default="jsonl"),
    ]
    out: Annotated[Path | str | None, Option("Output file (default NAME-labels.jsonl ..).")]


class ImportOptions(RatingColumns, total=False):
    """The options of ``import_labels``."""

    out: Annotated[Path | str | None, Option("Output file (default NAME-labels.jsonl).")]


class ValidateOptions(AgreementOptions, Configured, Loading, total=False):
    """The options of ``validate``."""

    cluster: Annotated[str | None, Option("Column of clusters (default: a study's prompts).")]
    output: Annotated[
        str | Sequence[str] | None,
        Option("Outputs of the metric; repeatable (default: all that match).", panel="Matching labels"),
    ]
    renamed: Annotated[
        Mapping[str, str],
        Option(
            "Map a human label to the metric's: THEIRS=OURS; THEIRS= excludes it; repeatable.",
            default={},
            flag="map",
            panel="Matching labels",
            parse=pairs("--map", "THEIRS=OURS, or THEIRS= to leave it out", last=True),
        ),
    ]
    onto_card: Annotated[bool, Option("Save the result to the metric's card (`evenhand show`).")]


class StudyOptions(Columns, Seeded, total=False):
    """The options of ``create_study``."""

    task: Annotated[
        str | Path,
        Option(
            "sentiment, regard, toxicity, gender, likert, or your own TOML file.",
            default="sentiment",
            flag_type=str,
        ),
    ]
    items: Annotated[int, Option("Number of texts to annotate.", default=100, ge=1)]
    annotators: Annotated[int, Option("Annotators per text.", default=3, ge=1)]
    layout: Annotated[
        Literal["list", "single", "side-by-side"] | None,
        Option("list, single or side-by-side (default: as in the task)."),
    ]
    mask: Annotated[
        Literal["suite", "xyz", "none"] | None,
        Option("Mask of group mentions: suite, xyz or none (default: as in the task)."),
    ]
    method: Annotated[str | None, _column("Column of the model or mitigation; never shown.")]
    score: Annotated[str | None, _column("Column of scores (default: run the task's metric).")]


class StudyDatabase(TypedDict, total=False):
    """Where a study keeps its answers."""

    database: Annotated[str | None, Option(DATABASE_HELP)]


class Address(TypedDict, total=False):
    """The public address of a study."""

    base: Annotated[str | None, Option("Public address, if it is not that of this machine: https://HOST.")]


class InviteOptions(Address, StudyDatabase, total=False):
    """The options of ``invite_people``."""

    again: Annotated[str | None, Option("Annotator (a1, a2, ...) who needs a new link.")]


class ServeOptions(Address, StudyDatabase, total=False):
    """The options of ``serve_study``."""

    host: Annotated[str, Option("Address to listen on.", default="127.0.0.1")]
    port: Annotated[int, Option("Port to listen on.", default=8765, ge=1, le=65535)]
    trusted_proxy: Annotated[
        str | Sequence[str],
        Option(
            "Proxy whose X-Forwarded-For is trusted: address or network, such as 10.0.0.0/8; repeatable "
            "(default: none).",
            default=(),
        ),
    ]


class ForgetOptions(StudyDatabase, total=False):
    """The options of ``forget_person``."""

    answers_too: Annotated[bool, Option("Also delete the answers; others are asked instead.", flag="answers")]


class ItemOptions(Seeded, total=False):
    """The options of ``sample_items``."""

    per_prompt: Annotated[int, Option("Texts of each polarity per prompt, by VADER.", default=3, ge=1)]
    suite: Annotated[str, Option("Suite of the prompts of a file.", default="regard")]
    cut: Annotated[float, Option("VADER's threshold.", default=0.05)]
    out: Annotated[Path | str, Option("File for the selected texts.", default="items.csv")]


class AggregateOptions(Seeded, total=False):
    """The options of ``settle_labels``."""

    question: Annotated[
        Sequence[str] | None, Option("regard or sentiment; repeatable (default: the columns present).")
    ]
    label: Annotated[str | None, Option("Column of the labels (default: the question's name).")]
    item: Annotated[str, Option("Column of the texts' ids.", default="id")]
    text: Annotated[str, Option("Column of the texts.", default="text")]
    annotator: Annotated[str, Option("Column of the annotators.", default="annotator")]
    out: Annotated[Path | str, Option("Folder for the tables.", default="labels")]
