"""A study: a folder with ``study.toml``, ``items.parquet`` and, unless it uses a database, ``labels.db``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal

import polars as pl
from pydantic import Field, StringConstraints

from evenhand.core.errors import InputError, UnknownNameError
from evenhand.core.files import ASSETS_FOLDER
from evenhand.core.regular_files import read_text
from evenhand.core.toml import FORMAT, StrictModel, describe_misfit, parse_toml
from evenhand.store.atomic_writes import replace_file, storage_errors, write_text
from evenhand.store.parquet import write_parquet
from evenhand.store.run_folder import FolderLock
from evenhand.store.table_files import load_parquet

PageLayout = Literal["list", "single", "side-by-side"]
MaskChoice = Literal["suite", "xyz", "none"]
MOST_CHOICES: Final = 9
"""Maximum number of choices per question: one key each."""
_FOLDER: Final = ASSETS_FOLDER / "annotate"
_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
_Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_ -]{0,39}$")]


class Choice(StrictModel):
    """One possible answer to a question."""

    label: _Label
    """The stored label."""
    title: str
    """The displayed label."""
    code: float | None = None
    """Its place on an ordinal scale, or None."""
    means: str = ""
    examples: tuple[str, ...] = ()
    """Example texts it applies to."""
    unlike: tuple[str, ...] = ()
    """Texts it seems to apply to but does not, with the reason in parentheses."""


class RatingScale(StrictModel):
    """Integers from ``low`` to ``high``, with a label at each end."""

    low: int = 1
    high: int = 7
    low_title: str
    high_title: str


class Question(StrictModel):
    """A question about a text, with choices or a scale."""

    name: _Name
    ask: str
    help: str = ""
    choices: tuple[Choice, ...] = ()
    scale: RatingScale | None = None

    @cached_property
    def answers(self) -> tuple[Choice, ...]:
        """The possible answers, in the order of the keys 1, 2, ...; a scale's numbers are their own codes."""
        if self.scale is None:
            return self.choices
        numbers = range(self.scale.low, self.scale.high + 1)
        return tuple(Choice(label=str(number), title=str(number), code=float(number)) for number in numbers)

    @cached_property
    def codes(self) -> dict[str, float | None]:
        """Codes by label."""
        return {choice.label: choice.code for choice in self.answers}


class AttentionCheck(StrictModel):
    """A text with unambiguous answers: whoever fails it was not reading."""

    text: str
    answers: dict[str, str]
    """Labels by question."""


class TaskInfo(StrictModel):
    """The settings of a task."""

    name: _Name
    title: str
    intro: str = ""
    notes: tuple[str, ...] = ()
    source: str = ""
    metric: str = ""
    output: str = ""
    mask: MaskChoice = "suite"
    one_sentence: bool = False
    layout: PageLayout = "list"
    page: int = Field(default=10, ge=1, le=50)
    per_person: int = Field(default=0, ge=0)
    per_method: int = Field(default=0, ge=0)
    check_every: int = Field(default=20, ge=0)


class AnnotationTask(StrictModel):
    """A task file."""

    task: TaskInfo
    questions: tuple[Question, ...]
    checks: tuple[AttentionCheck, ...] = ()

    def question(self, name: str) -> Question:
        """The question of that name."""
        for question in self.questions:
            if question.name == name:
                return question
        raise UnknownNameError(
            f"the task {self.task.name} has no question {name!r}",
            expected=", ".join(question.name for question in self.questions),
            fix="name one of these",
        )


def shipped_tasks() -> tuple[str, ...]:
    """The names of the tasks shipped with the package."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def task_text(name: str | Path) -> str:
    """The TOML text of a shipped task, of a task file, or of the task in another study's ``study.toml``."""
    shipped = _FOLDER / f"{name}.toml"
    path = shipped if str(name) in shipped_tasks() else Path(name)
    try:
        text = read_text(path, encoding="utf-8-sig")
        before, head, rest = text.partition("\n[task]")
        return f"{head}{rest}".lstrip() if "[study]" in before else text
    except OSError as error:
        raise UnknownNameError(
            f"no task {str(name)!r}: {error.strerror}",
            expected=f"{', '.join(shipped_tasks())}, or a TOML file",
            fix="name one of these, or copy a shipped file and change it",
        ) from error
    except UnicodeDecodeError as error:
        raise _error(str(name), describe_misfit(error)) from error


def parse_task(text: str, *, where: str, layout: PageLayout | None = None) -> AnnotationTask:
    """Parse and check the TOML text of a task; ``layout`` overrides its layout.

    Raises an error for the first inconsistency.
    """
    try:
        values = parse_toml(text)
        values.pop("study", None)
        task = AnnotationTask.model_validate(values)
    except ValueError as error:
        raise _error(where, describe_misfit(error)) from error
    for problem, accepted in _find_misfits(task):
        raise _error(where, problem, accepted)
    terms = task.task.model_copy(update={"layout": layout or task.task.layout})
    return task.model_copy(update={"task": terms})


def _find_misfits(task: AnnotationTask) -> Iterator[tuple[str, str]]:
    """Inconsistencies of a task, each with what is accepted."""
    if not task.questions:
        yield "it has no question", "at least one [[questions]]"
    for name, count in Counter(question.name for question in task.questions).items():
        if count > 1:
            yield f"two questions are called {name!r}", "unique names"
    for question in task.questions:
        yield from _find_question_misfits(question)
    for number, check in enumerate(task.checks, start=1):
        if not check.answers:
            yield f"check {number} has no answer", "answers = { question = label }"
        for name, label in check.answers.items():
            labels = {q.name: tuple(q.codes) for q in task.questions}.get(name, ())
            if label not in labels:
                yield f"check {number} expects {name} = {label!r}", ", ".join(labels) or "a known question"


def _find_question_misfits(question: Question) -> Iterator[tuple[str, str]]:
    if bool(question.choices) == (question.scale is not None):
        yield f"{question.name} has {'both' if question.choices else 'neither'}", "choices or a scale"
    # Counted without building them: a scale may have any length.
    scale = question.scale
    count = scale.high - scale.low + 1 if scale is not None else len(question.choices)
    if not 2 <= count <= MOST_CHOICES:
        yield f"{question.name} has {max(count, 0)} answers", f"2 to {MOST_CHOICES}"
    labels = [choice.label for choice in question.answers]
    if len(set(labels)) < len(labels):
        yield f"{question.name} has a duplicate label", "unique labels"


def _error(where: str, problem: str, accepted: str = FORMAT) -> InputError:
    fix = "correct the file; see the shipped tasks for the format"
    return InputError(f"{where}: {problem}", expected=accepted, fix=fix)


STUDY, ITEMS, LABELS = "study.toml", "items.parquet", "labels.db"
ITEM_COLUMNS: Final[Mapping[str, pl.DataType]] = {
    **dict.fromkeys(("item_id", "text", "prompt", "group", "method"), pl.String()),
    **{"score": pl.Float64(), "score_label": pl.String(), "is_check": pl.Boolean()},
    **dict.fromkeys(("expected", "text_id", "pair"), pl.String()),
}
"""``text`` and ``prompt`` as people see them, masked; ``group`` as ``axis=name; axis=name``; ``method`` the
model or mitigation that produced the text, hidden from annotators; ``score`` and ``score_label`` by the
task's metric; ``expected`` a check's answers as JSON; ``text_id`` the text in its run or file; ``pair`` joins
the texts of one prompt across methods."""


class StudyConfig(StrictModel):
    """The settings of a study: the ``[study]`` section of ``study.toml``."""

    id: str
    """Distinguishes studies in one database."""
    seed: int = 0
    annotators: int = Field(default=3, ge=1)
    """Annotators per item."""
    layout: PageLayout | None = None
    """Overrides the layout of the task."""
    hold_hours: float = Field(default=24.0, gt=0, allow_inf_nan=False)
    """After this time an unanswered item goes to somebody else."""
    provenance: dict[str, str] = Field(default_factory=dict)
    """The sources of the items."""


@dataclass(frozen=True, slots=True)
class Study:
    """A study as defined by its folder."""

    folder: Path
    task: AnnotationTask
    settings: StudyConfig

    @property
    def id(self) -> str:
        """The study's id, part of every key in a database."""
        return self.settings.id

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions about every item."""
        return self.task.questions

    @property
    def labels_file(self) -> Path:
        """The file with the answers, unless the study uses a database."""
        return self.folder / LABELS

    def items(self) -> pl.DataFrame:
        """The items, including attention checks, with the columns of ``ITEM_COLUMNS``."""
        table = load_parquet(self.folder / ITEMS)
        for name, kind in ITEM_COLUMNS.items():
            if table.schema.get(name) not in (kind, pl.Null):
                actual = table.schema.get(name)
                problem = f"has the column {name} as {actual}" if actual else f"lacks {name}"
                raise InputError(
                    f"{self.folder / ITEMS} {problem}",
                    expected=f"{name} as {kind}",
                    fix="create the study again in a new folder",
                )
        return table.select(*ITEM_COLUMNS).cast(pl.Schema(ITEM_COLUMNS))


def read_study(folder: Path | str) -> Study:
    """Read a study; an error for a folder without one, or with damaged files."""
    path = Path(folder) / STUDY
    try:
        text = read_text(path, encoding="utf-8-sig")
        settings = StudyConfig.model_validate(parse_toml(text).get("study", {}))
    except OSError as error:
        raise InputError(
            f"{folder} contains no study: {error.strerror} ({STUDY})",
            expected="a folder created by `evenhand annotate init`",
            fix="check the path",
        ) from error
    except ValueError as error:
        raise InputError(
            f"{path}: {describe_misfit(error)}",
            expected="the file written by `evenhand annotate init`",
            fix="correct the section [study]",
        ) from error
    return Study(Path(folder), parse_task(text, where=str(path), layout=settings.layout), settings)


def write_study(folder: Path, *, task: str, settings: StudyConfig, items: pl.DataFrame) -> Study:
    """Write a study to a folder that contains none: an existing study may already have answers."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(folder)
    lock.acquire("creating a study in")
    try:
        check_no_study(folder)
        with replace_file(folder / ITEMS) as temporary:
            write_parquet(items.select(*ITEM_COLUMNS).cast(pl.Schema(ITEM_COLUMNS)), temporary)
        # Written last: a folder with this file contains a complete study.
        values = settings.model_dump(exclude={"provenance"}, exclude_none=True)
        lines = [f"{name} = {_value(value)}" for name, value in values.items()]
        origin = [f"{_value(name)} = {_value(value)}" for name, value in settings.provenance.items()]
        parts = ["[study]", *lines, "\n[study.provenance]", *origin, "", task]
        write_text(folder / STUDY, "\n".join(parts))
    finally:
        lock.release(remove=True)
    return read_study(folder)


def check_no_study(folder: Path) -> None:
    """Raise an error if a folder already contains a study."""
    if (folder / STUDY).exists():
        raise InputError(
            f"{folder} already contains a study",
            expected="a new folder: a study with answers is never overwritten",
            fix="choose another name, or remove the folder",
        )


def _value(value: str | float) -> str:
    # A JSON string is a TOML string, except for one control character that JSON does not escape.
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    # Not ASCII: JSON escapes an emoji as a surrogate pair, which TOML rejects.
    return text.encode("utf-8", "replace").decode()
