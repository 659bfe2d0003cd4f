"""What happens between a person and a study, without HTTP: the next page, saving, where to go from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evenhand.annotate import claims, views
from evenhand.annotate.answers import Answer, answers_of, save
from evenhand.annotate.assignment import Assigner
from evenhand.annotate.database import Database
from evenhand.annotate.people import Person
from evenhand.core.errors import InputError


class Ending(NamedTuple):
    """What somebody is told when there is nothing to do."""

    answered: int
    pages: int
    waiting: bool
    """Whether there may be more later: others hold items that they have not answered yet."""


class Desk:
    """One study, and what its people ask of it."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.study = db.study
        self.assigner = Assigner.of(db.study)
        self.texts = views.shown_texts(db.study)

    def work(self, person: Person, asked: int | None) -> views.Work | None:
        """The page asked for, else the first with something to do, else a new one; None if there is none."""
        pages = claims.resume(self.db, self.assigner, person)
        given = answers_of(self.db, person.annotator)
        questions = len(self.study.questions)
        number = asked if asked is not None and asked < len(pages) else None
        if number is None:
            number = views.first_unfinished(pages, given, questions)
        if number is None:
            number = len(pages)
            pages = claims.claim(self.db, self.assigner, person)
        if number >= len(pages):
            return None
        left = claims.left_for(self.db, self.assigner, person.annotator)
        return views.work(pages, number=number, texts=self.texts, given=given, questions=questions, left=left)

    def ending(self, person: Person) -> Ending:
        """What to say to somebody who has done all there is."""
        pages = claims.pages_of(self.db, person.annotator)
        held = {item for page in pages for item in page}
        mine = sum(item.id in held for item in self.assigner.items)
        share = self.study.task.task.per_person
        unfinished = claims.unfinished(self.db, self.assigner) - held
        return Ending(len(held), len(pages), bool(unfinished) and not (share and mine >= share))

    def parse(self, fields: Mapping[str, str]) -> list[Answer]:
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
            found.append(Answer(item, question, label or None))
        return found

    def save(self, person: Person, given: Sequence[Answer], mark: str | None) -> None:
        """Store the answers, all or none; an error for an item that was not handed to this person."""
        save(self.db, person.annotator, given, mark=mark, handed=True)

    def missing(self, person: Person, page: int) -> bool:
        """Whether something on a page is still to be answered."""
        pages = claims.pages_of(self.db, person.annotator)[page : page + 1]
        given = answers_of(self.db, person.annotator)
        return views.first_unfinished(pages, given, len(self.study.questions)) is not None
