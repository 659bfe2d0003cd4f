"""What was handed to whom: pages are claimed once, under a lock, and stay as they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa

from evenhand.annotate.answers import last_answers, utc_now
from evenhand.annotate.assignment import Assigner, Page
from evenhand.annotate.database import Database, claims
from evenhand.annotate.people import Person


class Progress(NamedTuple):
    """How far a study is."""

    items: int
    finished: int
    """Items that everybody wanted has answered."""
    begun: int
    """Items that somebody has answered, the finished ones too."""
    answers: int


def pages_of(db: Database, annotator: str) -> list[Page]:
    """The pages somebody was handed, in order."""
    return db.read(lambda connection: _pages(connection, db, annotator))


def claim(db: Database, assigner: Assigner, person: Person, *, now: datetime | None = None) -> list[Page]:
    """Hand out the next pages and return all of this person's.

    Safe to call twice: who still has an unanswered page gets nothing new.
    """

    def work(connection: sa.Connection) -> list[Page]:
        db.lock(connection)
        pages = _pages(connection, db, person.annotator)
        answered = _answered(connection, db)
        mine = answered.get(person.annotator, set())
        if any(item not in mine for page in pages for item in page):
            return pages
        held = [item for page in pages for item in page]
        load = _load(connection, db, answered, now or utc_now())
        new = assigner.next_pages(person=person.number, held=held, load=load)
        _record(connection, db, person, new, pages, now or utc_now())
        return pages + new

    return db.write(work)


def left_for(db: Database, assigner: Assigner, annotator: str) -> int:
    """How many items, beyond those they hold, somebody could still be handed."""

    def work(connection: sa.Connection) -> int:
        held = {item for page in _pages(connection, db, annotator) for item in page}
        load = _load(connection, db, _answered(connection, db), utc_now())
        return assigner.left_for(held=held, load=load)

    return db.read(work)


def progress(db: Database, assigner: Assigner) -> Progress:
    """How far the study is; checks are not counted."""
    answered = db.read(lambda connection: _answered(connection, db))
    known = {item.id for item in assigner.items}
    counts = Counter(item for items in answered.values() for item in items if item in known)
    wanted = db.study.settings.annotators
    done = sum(count >= wanted for count in counts.values())
    return Progress(len(assigner.items), done, len(counts), counts.total())


def unfinished(db: Database, assigner: Assigner) -> set[str]:
    """Items that still lack answers."""
    answered = db.read(lambda connection: _answered(connection, db))
    counts = Counter(item for items in answered.values() for item in items)
    return {item.id for item in assigner.items if counts[item.id] < db.study.settings.annotators}


def _pages(connection: sa.Connection, db: Database, annotator: str) -> list[Page]:
    query = (
        sa.select(claims.c.page, claims.c.item_id)
        .where(claims.c.study == db.study.id, claims.c.annotator == annotator)
        .order_by(claims.c.position)
    )
    pages: dict[int, list[str]] = defaultdict(list)
    for page, item in connection.execute(query):
        pages[page].append(item)
    return [tuple(items) for items in pages.values()]


def _answered(connection: sa.Connection, db: Database) -> dict[str, set[str]]:
    """Annotator to the items of which they have answered every question."""
    counts: Counter[tuple[str, str]] = Counter()
    for answer in last_answers(connection, db.study.id):
        counts[answer.annotator, answer.item_id] += 1
    found: dict[str, set[str]] = defaultdict(set)
    for (annotator, item), count in counts.items():
        if count == len(db.study.questions):
            found[annotator].add(item)
    return found


def _load(
    connection: sa.Connection, db: Database, answered: Mapping[str, set[str]], now: datetime
) -> Counter[str]:
    """Item to the people who answered it, or hold it and may still."""
    since = now - timedelta(hours=db.study.settings.hold_hours)
    query = sa.select(claims.c.annotator, claims.c.item_id).where(
        claims.c.study == db.study.id, claims.c.at > since
    )
    pairs = {(annotator, item) for annotator, item in connection.execute(query)}
    pairs |= {(annotator, item) for annotator, items in answered.items() for item in items}
    return Counter(item for _, item in pairs)


def _record(
    connection: sa.Connection,
    db: Database,
    person: Person,
    new: list[Page],
    before: list[Page],
    now: datetime,
) -> None:
    first = sum(len(page) for page in before)
    flat = [(len(before) + number, item) for number, page in enumerate(new) for item in page]
    rows = [
        {
            "study": db.study.id,
            "annotator": person.annotator,
            "position": first + place,
            "page": page,
            "item_id": item,
            "at": now,
        }
        for place, (page, item) in enumerate(flat)
    ]
    if rows:
        connection.execute(sa.insert(claims), rows)
