"""The annotation workflow without HTTP: assigning pages, saving answers, choosing the next page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import chain, count
from typing import NamedTuple

import sqlalchemy as sa

from evenhand.annotate.answer_log import SubmittedAnswer, is_given, latest_answers, utc_now
from evenhand.annotate.assignment import ItemAssigner, ItemPage
from evenhand.annotate.database import Database, answers, claims
from evenhand.annotate.participants import Person
from evenhand.annotate.study import Study
from evenhand.core.errors import InputError


class ShownText(NamedTuple):
    """An item as the annotator sees it."""

    prompt: str
    """The underlined prompt; empty in layouts that do not underline it."""
    rest: str


class ItemCard(NamedTuple):
    """An item on a page, with the annotator's answers so far."""

    item_id: str
    number: int
    text: ShownText
    answers: Mapping[str, str]
    """Labels by question."""


class WorkPage(NamedTuple):
    """One page of work."""

    cards: tuple[ItemCard, ...]
    page: int
    """Counted from 0."""
    answered: int
    """Items this person has answered, over all pages."""
    total: int
    """Items answered, currently assigned, or still available to this person."""

    @property
    def percent(self) -> int:
        """The person's progress in whole percent."""
        return 100 * self.answered // self.total if self.total else 100


class CompletionState(NamedTuple):
    """What the final page shows when there is nothing left to do."""

    answered: int
    pages: int
    waiting: bool
    """Whether more items may come: others hold items that they have not answered yet."""


class StudyProgress(NamedTuple):
    """The progress of a study."""

    items: int
    finished: int
    """Items with all the answers they need."""
    begun: int
    """Items with at least one answer, including the finished ones."""
    answers: int


class PageClaims(NamedTuple):
    """The items assigned to a person, in order, and which of them they have answered."""

    pages_of: Mapping[str, int]
    """The page of each assigned item."""
    done: set[str]
    expired: set[str]
    """Items left unanswered for so long that their assignment expired."""

    @property
    def pages(self) -> list[ItemPage]:
        """The pages without expired items."""
        pages: dict[int, list[str]] = defaultdict(list)
        for item, page in self.pages_of.items():
            if item not in self.expired:
                pages[page].append(item)
        return [tuple(items) for items in pages.values()]

    @property
    def first_unfinished(self) -> int | None:
        """The first page with an unanswered item; None if all are answered."""
        unfinished = (number for number, page in enumerate(self.pages) if not self.done.issuperset(page))
        return next(unfinished, None)


def split_texts(study: Study) -> dict[str, ShownText]:
    """The text shown for each item; the prompt is separate if the layout underlines it."""
    underlined = study.task.task.layout != "list"
    shown = {}
    for item, text, prompt in study.items().select("item_id", "text", "prompt").iter_rows():
        # A damaged file may contain items without a text.
        whole = text or ""
        beginning = prompt if underlined and prompt and whole.startswith(prompt) else ""
        shown[item] = ShownText(beginning, whole.removeprefix(beginning))
    return shown


class AnnotationService:
    """Serves the annotators of one study; ``now`` overrides the clock in tests."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.study = db.study
        self.assigner = ItemAssigner.of(db.study)
        self.texts = split_texts(db.study)

    def read_claims(self, annotator: str, *, now: datetime | None = None) -> PageClaims:
        """The items assigned to a person."""
        at = now or utc_now()
        return self.db.read(lambda connection: self._select_claims(connection, annotator, at))

    def resume_claims(self, annotator: str, *, now: datetime | None = None) -> PageClaims:
        """The same for a returning person: their expired items are assigned again if still needed.

        Items that others answered or hold by now are no longer shown, so no item gets too many answers.
        """
        at = now or utc_now()
        claimed = self.read_claims(annotator, now=at)
        if claimed.expired:
            claimed = self.db.write(lambda connection: self._renew_hold(connection, annotator, at))
        return claimed

    def claim_pages(self, person: Person, *, now: datetime | None = None) -> list[ItemPage]:
        """Assign the next pages and return all pages of this person.

        Safe to call twice: a person with an unanswered page gets nothing new.
        """
        at = now or utc_now()

        def work(connection: sa.Connection) -> list[ItemPage]:
            claimed = self._renew_hold(connection, person.annotator, at)
            pages, held = claimed.pages, list(claimed.pages_of)
            if claimed.first_unfinished is not None:
                return pages
            load = self._load(connection, at)
            new = self.assigner.next_pages(person=person.number, held=held, load=load)
            common = {"study": self.study.id, "annotator": person.annotator, "at": at}
            position, first = count(len(held)), max(claimed.pages_of.values(), default=-1) + 1
            rows = [
                {**common, "position": next(position), "page": number, "item_id": item}
                for number, page in enumerate(new, start=first)
                for item in page
            ]
            if rows:
                connection.execute(sa.insert(claims), rows)
            return pages + new

        return self.db.write(work)

    def next_page(self, person: Person, wanted: int | None) -> WorkPage | None:
        """The page with this number, else the first unfinished page, else a new one; None if none is left."""
        claimed = self.resume_claims(person.annotator)
        pages = claimed.pages
        number = wanted if wanted is not None and wanted < len(pages) else claimed.first_unfinished
        if number is None:
            number, pages = len(pages), self.claim_pages(person)
        if number >= len(pages):
            return None
        labels: dict[str, dict[str, str]] = defaultdict(dict)
        for answer in latest_answers(self.db, person.annotator):
            labels[answer.item_id][answer.question] = answer.label
        before = sum(map(len, pages[:number]))
        cards = tuple(
            ItemCard(item, place, self.texts[item], labels[item])
            for place, item in enumerate(pages[number], start=before + 1)
        )
        held = [item for page in pages for item in page]
        known, answered = {*claimed.pages_of, *held}, len(claimed.done.intersection(held))
        load = self.db.read(lambda connection: self._load(connection, utc_now()))
        remaining = self.assigner.count_remaining(held=known, load=load)
        return WorkPage(cards, number, answered, len(held) + remaining)

    def completion_state(self, person: Person) -> CompletionState:
        """The state of a person who has answered everything."""
        pages = self.read_claims(person.annotator).pages
        held = {item for page in pages for item in page}
        own = sum(item.id in held for item in self.assigner.items)
        load, share = self.db.read(self._load), self.study.task.task.per_person
        needed = self.study.settings.annotators
        unfinished = {item.id for item in self.assigner.items if load.get(item.id, 0) < needed} - held
        return CompletionState(len(held), len(pages), bool(unfinished) and not (share and own >= share))

    def count_progress(self) -> StudyProgress:
        """The progress of the study; attention checks are not counted."""
        load, needed = self.db.read(self._load), self.study.settings.annotators
        counts = [load[item.id] for item in self.assigner.items if item.id in load]
        finished = sum(number >= needed for number in counts)
        return StudyProgress(len(self.assigner.items), finished, len(counts), sum(counts))

    def parse(self, fields: Mapping[str, str]) -> list[SubmittedAnswer]:
        """Parse the answers of a form: ``a.ITEM.QUESTION`` = label; empty if the answer was withdrawn."""
        codes = {question.name: question.codes for question in self.study.questions}
        submitted = []
        for name, label in fields.items():
            head, _, rest = name.partition(".")
            if head != "a":
                continue
            item, _, question = rest.partition(".")
            if question not in codes or (label and label not in codes[question]):
                raise InputError("an answer that this question does not have")
            submitted.append(SubmittedAnswer(item, question, label or None))
        return submitted

    def is_missing(self, person: Person, page: int) -> bool:
        """Whether a page has an unanswered question."""
        claimed = self.read_claims(person.annotator)
        return not claimed.done.issuperset(chain(*claimed.pages[page : page + 1]))

    def _select_claims(self, connection: sa.Connection, annotator: str, at: datetime) -> PageClaims:
        columns = (claims.c.item_id, claims.c.page, claims.c.at)
        query = sa.select(*columns).where(self.db.own(claims, annotator)).order_by(claims.c.position)
        held = connection.execute(query).all()
        done = {str(item) for _, item in connection.execute(self._select_finished(annotator))}
        since = self._hold_expiry(at)
        expired = {item for item, _, handed in held if item not in done and handed <= since}
        return PageClaims({item: page for item, page, _ in held}, done, expired)

    def _renew_hold(self, connection: sa.Connection, annotator: str, at: datetime) -> PageClaims:
        """Renew the expired claims that are still needed; return the updated claims."""
        self.db.lock(connection)
        claimed = self._select_claims(connection, annotator, at)
        if not claimed.expired:
            return claimed
        needed = self.assigner.select_wanted(claimed.expired, load=self._load(connection, at))
        is_renewed = sa.and_(self.db.own(claims, annotator), claims.c.item_id.in_(sorted(needed)))
        connection.execute(sa.update(claims).where(is_renewed).values(at=at))
        return self._select_claims(connection, annotator, at)

    def _hold_expiry(self, at: datetime) -> datetime:
        """The time before which unanswered claims have expired and go to somebody else."""
        return at - timedelta(hours=self.study.settings.hold_hours)

    def _select_finished(self, annotator: str | None = None) -> sa.Select[str, str]:
        """Select the (annotator, item) pairs with every question answered."""
        pair = (answers.c.annotator, answers.c.item_id)
        query = sa.select(*pair).where(is_given(self.db, annotator)).group_by(*pair)
        return query.having(sa.func.count() == len(self.study.questions))

    def _load(self, connection: sa.Connection, at: datetime | None = None) -> dict[str, int]:
        """The number of people per item who answered it or, given a time, still hold it then."""
        finished = self._select_finished()
        is_held = sa.and_(self.db.own(claims), claims.c.at > self._hold_expiry(at)) if at else sa.false()
        held = sa.select(claims.c.annotator, claims.c.item_id).where(is_held)
        both = finished.union(held).subquery()
        query = sa.select(both.c.item_id, sa.func.count()).group_by(both.c.item_id)
        return {str(item): int(number) for item, number in connection.execute(query)}
