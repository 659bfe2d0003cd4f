"""The log of answers: saving them, and reading everybody's last ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from secrets import token_hex
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from evenhand.annotate.database import Database, answers, claims, people
from evenhand.core.errors import InputError

CHANGES: Final = 20
"""Rows that are kept of one person's answer to a question: a link cannot fill a disk."""


class SubmittedAnswer(NamedTuple):
    """One answer of one person; no label takes an earlier one back."""

    item_id: str
    question: str
    label: str | None


class LatestAnswer(NamedTuple):
    """Somebody's last answer about an item."""

    annotator: str
    item_id: str
    question: str
    label: str
    at: datetime


def save_answers(
    db: Database,
    annotator: str,
    given: Sequence[SubmittedAnswer],
    *,
    mark: str | None = None,
    handed: bool = False,
) -> None:
    """Store answers, all or none; when this returns they are on the disk.

    The sender makes a ``mark`` for each submission: one that is sent twice is stored once, even if the
    answer was changed in between. Without a mark, answers that change nothing are skipped. With ``handed``,
    an answer to an item that was not handed to this person is an error. The last ``CHANGES`` answers of a
    person to a question are kept: no number of changes is refused, so the last one always counts.
    """
    common = {"study": db.study.id, "annotator": annotator, "mark": mark or token_hex(8), "at": utc_now()}

    def work(connection: sa.Connection) -> None:
        if handed:
            _require_claimed(connection, db, annotator, given)
        new = given
        if mark is None:
            rows = _read_latest(connection, db, annotator)
            known = {(row.item_id, row.question): row.label for row in rows}
            new = [answer for answer in given if known.get(answer[:2]) != answer.label]
        if new:
            # Each dialect has its own insert; both can skip what is already there.
            dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
            insert = dialect.insert(answers).on_conflict_do_nothing()
            connection.execute(insert, [{**common, **answer._asdict()} for answer in new])
            _drop_oldest(connection, db, annotator, sorted({answer.item_id for answer in new}))

    db.write(work)


def latest_answers(db: Database, annotator: str | None = None) -> list[LatestAnswer]:
    """The last answer of each annotator (or of one), item and question, without those taken back."""
    return db.read(lambda connection: _read_latest(connection, db, annotator))


def _read_latest(connection: sa.Connection, db: Database, annotator: str | None) -> list[LatestAnswer]:
    columns = [answers.c[name] for name in LatestAnswer._fields]
    query = sa.select(*columns).where(is_given(db, annotator)).order_by(answers.c.id)
    return [LatestAnswer._make(row) for row in connection.execute(query)]


def is_given(db: Database, annotator: str | None = None) -> sa.ColumnElement[bool]:
    """Whether a row of the log is the last of its annotator, item and question, and not taken back."""
    keys = (answers.c.annotator, answers.c.item_id, answers.c.question)
    last = sa.select(sa.func.max(answers.c.id)).where(db.own(answers, annotator)).group_by(*keys)
    return sa.and_(answers.c.id.in_(last), answers.c.label.is_not(None))


def utc_now() -> datetime:
    """The time in UTC, without a zone: SQLite keeps none."""
    return datetime.now(UTC).replace(tzinfo=None)


def _require_claimed(
    connection: sa.Connection, db: Database, annotator: str, given: Sequence[SubmittedAnswer]
) -> None:
    # The row is kept from changing until the answers are in: nobody is forgotten in between.
    person = sa.select(people.c.number).where(db.own(people, annotator)).with_for_update(read=True)
    known = connection.execute(person).one_or_none()
    query = sa.select(claims.c.item_id).where(db.own(claims, annotator))
    held = set(connection.execute(query).scalars()) if known else set()
    if any(answer.item_id not in held for answer in given):
        raise InputError("an answer to a text that was not yours to answer")


def _drop_oldest(connection: sa.Connection, db: Database, annotator: str, items: Sequence[str]) -> None:
    """Delete what somebody said of these items before their last ``CHANGES`` rows of each question."""
    question = (answers.c.item_id, answers.c.question)
    age = sa.func.row_number().over(partition_by=question, order_by=answers.c.id.desc())
    theirs = sa.and_(db.own(answers, annotator), answers.c.item_id.in_(items))
    aged = sa.select(answers.c.id, age.label("age")).where(theirs).subquery()
    old = sa.select(aged.c.id).where(aged.c.age > CHANGES)
    connection.execute(sa.delete(answers).where(answers.c.id.in_(old)))
