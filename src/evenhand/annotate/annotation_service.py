"""What a person does in a study, without HTTP: the next page, saving, where to go from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenhand.annotate import assignment
from evenhand.annotate.answer_log import SubmittedAnswer, read_answers, save_answers
from evenhand.annotate.assignment import ItemAssigner, ItemPage
from evenhand.annotate.database import Database
from evenhand.annotate.participants import Person
from evenhand.annotate.study import Study
from evenhand.core.errors import InputError

_Answers = Mapping[str, Mapping[str, str]]
"""Item to question to label."""


class ShownText(NamedTuple):
    """An item as its reader sees it."""

    prompt: str
    """The underlined beginning; empty in layouts that do not underline it."""
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
    """Item to the text that is shown, with the prompt apart where the layout underlines it."""
    underlined = study.task.task.layout != "list"
    shown = {}
    for item, text, prompt in study.items().select("item_id", "text", "prompt").iter_rows():
        # A damaged file may hold items without a text.
        whole = text or ""
        beginning = prompt if underlined and prompt and whole.startswith(prompt) else ""
        shown[item] = ShownText(beginning, whole.removeprefix(beginning))
    return shown


class CompletionState(NamedTuple):
    """What the last page shows when there is nothing to do."""

    answered: int
    pages: int
    waiting: bool
    """Whether there may be more later: others hold items that they have not answered yet."""


class AnnotationService:
    """Serves the people of one study."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.study = db.study
        self.assigner = ItemAssigner.of(db.study)
        self.texts = split_texts(db.study)

    def next_page(self, person: Person, wanted: int | None) -> WorkPage | None:
        """The page with this number, else the first unfinished one, else a new one; None if none is left."""
        pages = assignment.resume_pages(self.db, self.assigner, person)
        given = self._answers(person)
        number = wanted if wanted is not None and wanted < len(pages) else None
        if number is None:
            number = self._first_unfinished(pages, given)
        if number is None:
            number = len(pages)
            pages = assignment.claim_pages(self.db, self.assigner, person)
        if number >= len(pages):
            return None
        before = sum(map(len, pages[:number]))
        cards = tuple(
            ItemCard(item, place, self.texts[item], given.get(item, {}))
            for place, item in enumerate(pages[number], start=before + 1)
        )
        held = [item for page in pages for item in page]
        answered = sum(self._is_answered(item, given) for item in held)
        left = assignment.count_remaining(self.db, self.assigner, person.annotator)
        return WorkPage(cards, number, len(pages), answered, len(held) + left)

    def completion_state(self, person: Person) -> CompletionState:
        """The state of somebody who has done everything."""
        pages = assignment.read_pages(self.db, person.annotator)
        held = {item for page in pages for item in page}
        own = sum(item.id in held for item in self.assigner.items)
        share = self.study.task.task.per_person
        unfinished = assignment.unfinished_items(self.db, self.assigner) - held
        return CompletionState(len(held), len(pages), bool(unfinished) and not (share and own >= share))

    def parse(self, fields: Mapping[str, str]) -> list[SubmittedAnswer]:
        """The answers in a form: ``a.ITEM.QUESTION`` = label, nothing where one is taken back."""
        codes = {question.name: question.codes for question in self.study.questions}
        answers = []
        for name, label in fields.items():
            head, _, rest = name.partition(".")
            if head != "a":
                continue
            item, _, question = rest.partition(".")
            if question not in codes or (label and label not in codes[question]):
                raise InputError("an answer that this question does not have")
            answers.append(SubmittedAnswer(item, question, label or None))
        return answers

    def save(self, person: Person, given: Sequence[SubmittedAnswer], mark: str | None) -> None:
        """Store the answers, all or none; an error for an item that was not handed to this person."""
        save_answers(self.db, person.annotator, given, mark=mark, handed=True)

    def missing(self, person: Person, page: int) -> bool:
        """Whether something on a page is still to be answered."""
        pages = assignment.read_pages(self.db, person.annotator)[page : page + 1]
        return self._first_unfinished(pages, self._answers(person)) is not None

    def _answers(self, person: Person) -> _Answers:
        given: dict[str, dict[str, str]] = {}
        for answer in read_answers(self.db, person.annotator):
            given.setdefault(answer.item_id, {})[answer.question] = answer.label
        return given

    def _is_answered(self, item: str, given: _Answers) -> bool:
        return len(given.get(item, ())) >= len(self.study.questions)

    def _first_unfinished(self, pages: Sequence[ItemPage], given: _Answers) -> int | None:
        """The first page with something to answer; None where everything is answered."""
        unfinished = (
            number
            for number, page in enumerate(pages)
            if not all(self._is_answered(item, given) for item in page)
        )
        return next(unfinished, None)
