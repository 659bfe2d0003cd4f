"""The log of answers: saving answers, and reading each person's latest ones."""

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
"""Rows kept per person, item and question, so that nobody can fill the disk."""


class SubmittedAnswer(NamedTuple):
    """One answer of one person; a label of None withdraws an earlier answer."""

    item_id: str
    question: str
    label: str | None


class LatestAnswer(NamedTuple):
    """A person's latest answer about an item."""

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
    """Store all answers or none; they are on disk when this returns.

    The client makes a ``mark`` for each submission: a submission sent twice is stored once, even if the
    answer changed in between. Without a mark, answers that change nothing are skipped. With ``handed``,
    an answer to an item that was not assigned to this person is an error. The last ``CHANGES`` answers of
    a person to a question are kept; further changes are always accepted, so the latest one counts.
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
            # Each dialect has its own insert; both can skip existing rows.
            dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
            insert = dialect.insert(answers).on_conflict_do_nothing()
            connection.execute(insert, [{**common, **answer._asdict()} for answer in new])
            _drop_oldest(connection, db, annotator, sorted({answer.item_id for answer in new}))

    db.write(work)


def latest_answers(db: Database, annotator: str | None = None) -> list[LatestAnswer]:
    """The latest answer of each annotator (or of one), item and question, without withdrawn ones."""
    return db.read(lambda connection: _read_latest(connection, db, annotator))


def _read_latest(connection: sa.Connection, db: Database, annotator: str | None) -> list[LatestAnswer]:
    columns = [answers.c[name] for name in LatestAnswer._fields]
    query = sa.select(*columns).where(is_given(db, annotator)).order_by(answers.c.id)
    return [LatestAnswer._make(row) for row in connection.execute(query)]


def is_given(db: Database, annotator: str | None = None) -> sa.ColumnElement[bool]:
    """Whether a row of the log is the latest of its annotator, item and question, and not withdrawn."""
    keys = (answers.c.annotator, answers.c.item_id, answers.c.question)
    last = sa.select(sa.func.max(answers.c.id)).where(db.own(answers, annotator)).group_by(*keys)
    return sa.and_(answers.c.id.in_(last), answers.c.label.is_not(None))


def utc_now() -> datetime:
    """The time in UTC as a naive datetime: SQLite stores no time zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def _require_claimed(
    connection: sa.Connection, db: Database, annotator: str, given: Sequence[SubmittedAnswer]
) -> None:
    # Lock the row until the answers are stored, so that the person is not erased in between.
    person = sa.select(people.c.number).where(db.own(people, annotator)).with_for_update(read=True)
    known = connection.execute(person).one_or_none()
    query = sa.select(claims.c.item_id).where(db.own(claims, annotator))
    held = set(connection.execute(query).scalars()) if known else set()
    if any(answer.item_id not in held for answer in given):
        raise InputError("an answer to a text that was not assigned to you")


def _drop_oldest(connection: sa.Connection, db: Database, annotator: str, items: Sequence[str]) -> None:
    """Delete all but the last ``CHANGES`` rows of a person for each of these items and each question."""
    question = (answers.c.item_id, answers.c.question)
    age = sa.func.row_number().over(partition_by=question, order_by=answers.c.id.desc())
    is_matching = sa.and_(db.own(answers, annotator), answers.c.item_id.in_(items))
    aged = sa.select(answers.c.id, age.label("age")).where(is_matching).subquery()
    old = sa.select(aged.c.id).where(aged.c.age > CHANGES)
    connection.execute(sa.delete(answers).where(answers.c.id.in_(old)))
