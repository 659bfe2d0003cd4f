"""What was handed to whom: pages are claimed once, under a lock, and stay as they are."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa

from evenhand.annotate.answers import is_last, utc_now
from evenhand.annotate.assignment import Assigner, Page
from evenhand.annotate.database import Database, answers, claims
from evenhand.annotate.people import Person


class Progress(NamedTuple):
    """How far a study is."""

    items: int
    finished: int
    """Items that everybody wanted has answered."""
    begun: int
    """Items that somebody has answered, the finished ones too."""
    answers: int


class _Handed(NamedTuple):
    """An item, the page it was handed out on, and when."""

    page: int
    item_id: str
    at: datetime


def pages_of(db: Database, annotator: str, *, now: datetime | None = None) -> list[Page]:
    """The pages somebody was handed, in order, without what they left so long that it is no longer theirs."""
    since = _still_held(db, now or utc_now())
    return db.read(lambda connection: _shown(*_state(connection, db, annotator), since))


def resume(db: Database, assigner: Assigner, person: Person, *, now: datetime | None = None) -> list[Page]:
    """The same for somebody who comes back: what they left too long is theirs again where it is still wanted.

    What others have answered or hold instead is shown no more, so that no item gets an answer too many.
    """
    at = now or utc_now()
    since = _still_held(db, at)
    handed, done = db.read(lambda connection: _state(connection, db, person.annotator))
    if _left_behind(handed, done, since):

        def work(connection: sa.Connection) -> tuple[list[_Handed], set[str]]:
            db.lock(connection)
            _hold_again(connection, db, assigner, person, at)
            return _state(connection, db, person.annotator)

        handed, done = db.write(work)
    return _shown(handed, done, since)


def claim(db: Database, assigner: Assigner, person: Person, *, now: datetime | None = None) -> list[Page]:
    """Hand out the next pages and return all of this person's.

    Safe to call twice: who still has an unanswered page gets nothing new.
    """
    at = now or utc_now()

    def work(connection: sa.Connection) -> list[Page]:
        db.lock(connection)
        _hold_again(connection, db, assigner, person, at)
        since = _still_held(db, at)
        handed, done = _state(connection, db, person.annotator)
        pages = _shown(handed, done, since)
        if any(item not in done for page in pages for item in page):
            return pages
        held = [one.item_id for one in handed]
        load = _load(connection, db, since=since)
        new = assigner.next_pages(person=person.number, held=held, load=load)
        _record(connection, db, person, new, handed, at)
        return pages + new

    return db.write(work)


def left_for(db: Database, assigner: Assigner, annotator: str) -> int:
    """How many items, beyond those they hold, somebody could still be handed."""

    def work(connection: sa.Connection) -> int:
        held = {one.item_id for one in _handed(connection, db, annotator)}
        load = _load(connection, db, since=_still_held(db, utc_now()))
        return assigner.left_for(held=held, load=load)

    return db.read(work)


def progress(db: Database, assigner: Assigner) -> Progress:
    """How far the study is; checks are not counted."""
    load = db.read(lambda connection: _load(connection, db, since=None))
    counts = [load[item.id] for item in assigner.items if item.id in load]
    wanted = db.study.settings.annotators
    return Progress(len(assigner.items), sum(count >= wanted for count in counts), len(counts), sum(counts))


def unfinished(db: Database, assigner: Assigner) -> set[str]:
    """Items that still lack answers."""
    load = db.read(lambda connection: _load(connection, db, since=None))
    return {item.id for item in assigner.items if load.get(item.id, 0) < db.study.settings.annotators}


def _handed(connection: sa.Connection, db: Database, annotator: str) -> list[_Handed]:
    query = (
        sa.select(claims.c.page, claims.c.item_id, claims.c.at)
        .where(claims.c.study == db.study.id, claims.c.annotator == annotator)
        .order_by(claims.c.position)
    )
    return [_Handed._make(row) for row in connection.execute(query)]


def _state(connection: sa.Connection, db: Database, annotator: str) -> tuple[list[_Handed], set[str]]:
    """What somebody was handed, and what of it they have answered."""
    return _handed(connection, db, annotator), _finished_by(connection, db, annotator)


def _left_behind(handed: list[_Handed], done: set[str], since: datetime) -> set[str]:
    return {one.item_id for one in handed if one.item_id not in done and one.at <= since}


def _shown(handed: list[_Handed], done: set[str], since: datetime) -> list[Page]:
    gone = _left_behind(handed, done, since)
    pages: dict[int, list[str]] = defaultdict(list)
    for one in handed:
        if one.item_id not in gone:
            pages[one.page].append(one.item_id)
    return [tuple(items) for items in pages.values()]


def _hold_again(
    connection: sa.Connection, db: Database, assigner: Assigner, person: Person, now: datetime
) -> None:
    """Begin the time anew for what somebody left too long and nobody else took."""
    since = _still_held(db, now)
    gone = _left_behind(*_state(connection, db, person.annotator), since)
    if not gone:
        return
    wanted = assigner.still_wanted(gone, load=_load(connection, db, since=since))
    theirs = sa.and_(claims.c.study == db.study.id, claims.c.annotator == person.annotator)
    change = sa.update(claims).where(theirs, claims.c.item_id.in_(sorted(wanted)))
    connection.execute(change.values(at=now))


def _still_held(db: Database, now: datetime) -> datetime:
    """What was handed out before this time and is not answered is handed to somebody else."""
    return now - timedelta(hours=db.study.settings.hold_hours)


def _finished(db: Database, annotator: str | None = None) -> sa.Select[str, str]:
    """Selects (annotator, item) where every question is answered."""
    return (
        sa.select(answers.c.annotator, answers.c.item_id)
        .where(is_last(db.study.id, annotator), answers.c.label.is_not(None))
        .group_by(answers.c.annotator, answers.c.item_id)
        .having(sa.func.count() == len(db.study.questions))
    )


def _finished_by(connection: sa.Connection, db: Database, annotator: str) -> set[str]:
    return {str(row[1]) for row in connection.execute(_finished(db, annotator))}


def _load(connection: sa.Connection, db: Database, *, since: datetime | None) -> dict[str, int]:
    """Item to the people who answered it, or were handed it after ``since`` and may still."""
    held = sa.select(claims.c.annotator, claims.c.item_id).where(
        claims.c.study == db.study.id, claims.c.at > since if since else sa.false()
    )
    both = sa.union(_finished(db), held).subquery()
    query = sa.select(both.c.item_id, sa.func.count()).group_by(both.c.item_id)
    return {str(row[0]): int(row[1]) for row in connection.execute(query)}


def _record(
    connection: sa.Connection,
    db: Database,
    person: Person,
    new: list[Page],
    before: list[_Handed],
    now: datetime,
) -> None:
    first = len(before)
    next_page = before[-1].page + 1 if before else 0
    flat = [(next_page + number, item) for number, page in enumerate(new) for item in page]
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
