"""What happens between a person and a study, without HTTP: the next page, saving, where to go from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenhand.annotate import assignment
from evenhand.annotate.answer_log import LatestAnswer, SubmittedAnswer, read_answers, save_answers
from evenhand.annotate.assignment import ItemAssigner, ItemPage
from evenhand.annotate.database import Database
from evenhand.annotate.participants import Person
from evenhand.annotate.study import Study
from evenhand.core.errors import InputError


class ShownText(NamedTuple):
    """An item as its reader sees it."""

    prompt: str
    """The underlined beginning; empty where it is not set apart."""
    rest: str


@dataclass(frozen=True, slots=True)
class ItemCard:
    """An item on a page, with what its reader has answered."""

    item_id: str
    number: int
    text: ShownText
    answers: Mapping[str, str]
    """Question to label."""


@dataclass(frozen=True, slots=True)
class WorkPage:
    """One page of work."""

    cards: tuple[ItemCard, ...]
    page: int
    """From 0."""
    pages: int
    answered: int
    """Items this person has answered on all pages."""
    total: int
    """Those, the ones they hold, and what is left for them."""

    @property
    def percent(self) -> int:
        """How far the person is, in whole percent."""
        return 100 * self.answered // self.total if self.total else 100


def split_texts(study: Study) -> dict[str, ShownText]:
    """Item to what is shown of it; the prompt is set apart where the layout underlines it."""
    underlined = study.task.task.layout != "list"
    rows = study.items().select("item_id", "text", "prompt").iter_rows()
    return {item: _split_prompt(text, prompt if underlined else None) for item, text, prompt in rows}


def build_page(
    pages: Sequence[ItemPage],
    *,
    number: int,
    texts: Mapping[str, ShownText],
    given: Sequence[LatestAnswer],
    questions: int,
    left: int,
) -> WorkPage:
    """One of a person's pages with their answers on it."""
    said: dict[str, dict[str, str]] = {}
    for answer in given:
        said.setdefault(answer.item_id, {})[answer.question] = answer.label
    before = sum(len(page) for page in pages[:number])
    cards = tuple(
        ItemCard(item, before + place, texts[item], said.get(item, {}))
        for place, item in enumerate(pages[number], start=1)
    )
    held = [item for page in pages for item in page]
    answered = sum(len(said.get(item, ())) == questions for item in held)
    return WorkPage(cards, number, len(pages), answered, len(held) + left)


def first_unfinished(pages: Sequence[ItemPage], given: Sequence[LatestAnswer], questions: int) -> int | None:
    """The first page with something to answer; None where all is answered."""
    counts: dict[str, int] = {}
    for answer in given:
        counts[answer.item_id] = counts.get(answer.item_id, 0) + 1
    for number, page in enumerate(pages):
        if any(counts.get(item, 0) < questions for item in page):
            return number
    return None


def _split_prompt(text: str, prompt: str | None) -> ShownText:
    if prompt and text.startswith(prompt):
        return ShownText(prompt, text.removeprefix(prompt))
    return ShownText("", text)


class CompletionState(NamedTuple):
    """What somebody is told when there is nothing to do."""

    answered: int
    pages: int
    waiting: bool
    """Whether there may be more later: others hold items that they have not answered yet."""


class AnnotationService:
    """One study, and what its people ask of it."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.study = db.study
        self.assigner = ItemAssigner.of(db.study)
        self.texts = split_texts(db.study)

    def next_page(self, person: Person, asked: int | None) -> WorkPage | None:
        """The page asked for, else the first with something to do, else a new one; None if there is none."""
        pages = assignment.resume_pages(self.db, self.assigner, person)
        given = read_answers(self.db, person.annotator)
        questions = len(self.study.questions)
        number = asked if asked is not None and asked < len(pages) else None
        if number is None:
            number = first_unfinished(pages, given, questions)
        if number is None:
            number = len(pages)
            pages = assignment.claim_pages(self.db, self.assigner, person)
        if number >= len(pages):
            return None
        left = assignment.count_remaining(self.db, self.assigner, person.annotator)
        return build_page(pages, number=number, texts=self.texts, given=given, questions=questions, left=left)

    def completion_state(self, person: Person) -> CompletionState:
        """What to say to somebody who has done all there is."""
        pages = assignment.read_pages(self.db, person.annotator)
        held = {item for page in pages for item in page}
        mine = sum(item.id in held for item in self.assigner.items)
        share = self.study.task.task.per_person
        unfinished = assignment.unfinished_items(self.db, self.assigner) - held
        return CompletionState(len(held), len(pages), bool(unfinished) and not (share and mine >= share))

    def parse(self, fields: Mapping[str, str]) -> list[SubmittedAnswer]:
        """The answers in a form: ``a.ITEM.QUESTION`` = label, nothing where one is taken back."""
        codes = {question.name: question.codes for question in self.study.questions}
        found = []
        for name, label in fields.items():
            head, _, rest = name.partition(".")
            if head != "a":
                continue
            item, _, question = rest.partition(".")
            if question not in codes or (label and label not in codes[question]):
                raise InputError("an answer that this question does not have")
            found.append(SubmittedAnswer(item, question, label or None))
        return found

    def save(self, person: Person, given: Sequence[SubmittedAnswer], mark: str | None) -> None:
        """Store the answers, all or none; an error for an item that was not handed to this person."""
        save_answers(self.db, person.annotator, given, mark=mark, handed=True)

    def missing(self, person: Person, page: int) -> bool:
        """Whether something on a page is still to be answered."""
        pages = assignment.read_pages(self.db, person.annotator)[page : page + 1]
        given = read_answers(self.db, person.annotator)
        return first_unfinished(pages, given, len(self.study.questions)) is not None
