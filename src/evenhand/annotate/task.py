"""What people are asked: questions, their answers, guidelines, checks of attention.

TOML, as the shipped ``assets/annotate/*.toml`` show it::

    [task]
    name = "sentiment"
    title = "Which feeling does a text express?"
    intro = "Read each text and ..."      # shown above the guidelines
    notes = ["...", "..."]                # shown below them
    source = "BOLD, section 6.3"          # where the categories come from; not shown to annotators
    metric = "sentiment"                  # texts are spread over this metric's scores; empty for none
    output = "compound"
    mask = "suite"                        # or "xyz", "none"
    one_sentence = false                  # cut each text after its first sentence
    layout = "list"                       # or "single", "side-by-side"
    page = 10                             # texts a page
    per_person = 0                        # texts a person at most; 0 for no limit
    per_method = 0                        # of them from each method; 0 where methods play no part
    check_every = 20                      # one check of attention in so many texts; 0 for none

    [[questions]]
    name = "sentiment"
    ask = "Which feeling does the text express?"
    [[questions.choices]]
    label = "positive"
    title = "Positive"
    code = 1
    means = "Love, joy, praise, ..."
    examples = ["..."]
    unlike = ["... (neutral: it states a fact)"]

    [[questions]]                         # or a scale in place of choices
    name = "biased"
    ask = "How biased is the text?"
    scale = { low = 1, high = 7, low_title = "not at all", high_title = "extremely" }

    [[checks]]
    text = "..."
    answers = { sentiment = "negative" }
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from evenhand.core.assets import ROOT
from evenhand.core.errors import InputError, UnknownNameError
from evenhand.core.reading import read_text
from evenhand.core.toml import parse_toml

Layout = Literal["list", "single", "side-by-side"]
MaskWish = Literal["suite", "xyz", "none"]
LAYOUTS: Final[tuple[Layout, ...]] = ("list", "single", "side-by-side")
MASKS: Final[tuple[MaskWish, ...]] = ("suite", "xyz", "none")
MOST_CHOICES: Final = 9
"""Answers a question may have: one key each."""
_FOLDER: Final = ROOT / "annotate"
_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
_Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_ -]{0,39}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Choice(_Strict):
    """One answer a question accepts."""

    label: _Label
    """What is stored."""
    title: str
    """What is shown."""
    code: float | None = None
    """Its place on an ordinal scale; None where it has none."""
    means: str = ""
    examples: tuple[str, ...] = ()
    """Texts it is right for."""
    unlike: tuple[str, ...] = ()
    """Texts it looks right for and is not, with the reason in parentheses."""


class Scale(_Strict):
    """Whole numbers from ``low`` to ``high``, with words at both ends."""

    low: int = 1
    high: int = 7
    low_title: str
    high_title: str


class Question(_Strict):
    """A question about a text, with choices or a scale."""

    name: _Name
    ask: str
    help: str = ""
    choices: tuple[Choice, ...] = ()
    scale: Scale | None = None

    @cached_property
    def answers(self) -> tuple[Choice, ...]:
        """What may be answered, in the order of the keys 1, 2, ...; a scale's numbers are their own codes."""
        if self.scale is None:
            return self.choices
        numbers = range(self.scale.low, self.scale.high + 1)
        return tuple(Choice(label=str(number), title=str(number), code=float(number)) for number in numbers)

    @cached_property
    def codes(self) -> dict[str, float | None]:
        """Label to code."""
        return {choice.label: choice.code for choice in self.answers}


class Check(_Strict):
    """A text whose answers are beyond doubt: who misses it was not reading."""

    text: str
    answers: dict[str, str]
    """Question to label."""


class Terms(_Strict):
    """How a task is carried out."""

    name: _Name
    title: str
    intro: str = ""
    notes: tuple[str, ...] = ()
    source: str = ""
    metric: str = ""
    output: str = ""
    mask: MaskWish = "suite"
    one_sentence: bool = False
    layout: Layout = "list"
    page: int = Field(default=10, ge=1, le=50)
    per_person: int = Field(default=0, ge=0)
    per_method: int = Field(default=0, ge=0)
    check_every: int = Field(default=20, ge=0)


class Task(_Strict):
    """A task file."""

    task: Terms
    questions: tuple[Question, ...]
    checks: tuple[Check, ...] = ()

    def question(self, name: str) -> Question:
        """The question of that name."""
        for found in self.questions:
            if found.name == name:
                return found
        raise UnknownNameError(
            f"the task {self.task.name} asks no question {name!r}",
            accepted=", ".join(question.name for question in self.questions),
            todo="name one of these",
        )


def shipped_tasks() -> tuple[str, ...]:
    """The names of the tasks that come with the package."""
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
            accepted=f"{', '.join(shipped_tasks())}, or a TOML file",
            todo="name one of these, or copy a shipped file and change it",
        ) from error
    except UnicodeDecodeError as error:
        raise _error(str(name), f"byte {error.start + 1} is not UTF-8", "text in UTF-8") from error


def parse_task(text: str, *, where: str) -> Task:
    """The checked task of a TOML text; the first thing that does not fit is an error that names it."""
    try:
        values = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise _error(where, f"no valid TOML: {error}", "TOML 1.0") from error
    values.pop("study", None)
    try:
        task = Task.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _error(where, f"{place}: {first['msg']}", "the keys and types of the format") from error
    for came, accepted in _misfits(task):
        raise _error(where, came, accepted)
    return task


def with_layout(task: Task, layout: Layout | None) -> Task:
    """The task with another layout, or as it is."""
    terms = task.task.model_copy(update={"layout": layout} if layout else {})
    return task.model_copy(update={"task": terms})


def _misfits(task: Task) -> Iterator[tuple[str, str]]:
    """What does not fit together, with what would."""
    if not task.questions:
        yield "it asks no question", "one [[questions]] or more"
    for name, count in Counter(question.name for question in task.questions).items():
        if count > 1:
            yield f"two questions are called {name!r}", "a name for each"
    for question in task.questions:
        yield from _misfits_of(question)
    for number, check in enumerate(task.checks, start=1):
        if not check.answers:
            yield f"check {number} has no answer", "answers = { question = label }"
        for name, label in check.answers.items():
            labels = {q.name: tuple(q.codes) for q in task.questions}.get(name, ())
            if label not in labels:
                yield f"check {number} expects {name} = {label!r}", ", ".join(labels) or "a known question"


def _misfits_of(question: Question) -> Iterator[tuple[str, str]]:
    if bool(question.choices) == (question.scale is not None):
        yield f"{question.name} has {'both' if question.choices else 'neither'}", "choices or a scale"
    # Counted before they are made: a scale may reach to any number.
    scale = question.scale
    count = scale.high - scale.low + 1 if scale is not None else len(question.choices)
    if not 2 <= count <= MOST_CHOICES:
        yield f"{question.name} has {max(count, 0)} answers", f"2 to {MOST_CHOICES}"
    labels = [choice.label for choice in question.answers]
    if len(set(labels)) < len(labels):
        yield f"{question.name} has a label twice", "a label for each choice"


def _error(where: str, came: str, accepted: str) -> InputError:
    todo = "mend the file; the shipped tasks show the format"
    return InputError(f"{where}: {came}", accepted=accepted, todo=todo)
