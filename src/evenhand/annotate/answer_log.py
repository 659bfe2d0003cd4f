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
            _require_claimed(connection, db.study.id, annotator, given)
        new = given
        if mark is None:
            rows = select_latest(connection, db.study.id, annotator)
            known = {(row.item_id, row.question): row.label for row in rows}
            new = [answer for answer in given if known.get(answer[:2]) != answer.label]
        if new:
            # Each dialect has its own insert; both can skip what is already there.
            dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
            insert = dialect.insert(answers).on_conflict_do_nothing()
            connection.execute(insert, [{**common, **answer._asdict()} for answer in new])
            _drop_oldest(connection, db.study.id, annotator, sorted({answer.item_id for answer in new}))

    db.write(work)


def latest_answers(db: Database) -> list[LatestAnswer]:
    """The last answer of each annotator, item and question, without those taken back."""
    return db.read(lambda connection: select_latest(connection, db.study.id))


def read_answers(db: Database, annotator: str) -> list[LatestAnswer]:
    """The last answers of one person."""
    return db.read(lambda connection: select_latest(connection, db.study.id, annotator))


def select_latest(connection: sa.Connection, study: str, annotator: str | None = None) -> list[LatestAnswer]:
    """The last answers of one person or of everybody, inside a transaction."""
    keys = (answers.c.annotator, answers.c.item_id, answers.c.question)
    query = (
        sa.select(*keys, answers.c.label, answers.c.at)
        .where(is_latest(study, annotator), answers.c.label.is_not(None))
        .order_by(answers.c.id)
    )
    return [LatestAnswer._make(row) for row in connection.execute(query)]


def is_latest(study: str, annotator: str | None = None) -> sa.ColumnElement[bool]:
    """Whether a row of the log is the last of its annotator, item and question."""
    last = sa.select(sa.func.max(answers.c.id)).where(answers.c.study == study)
    if annotator is not None:
        last = last.where(answers.c.annotator == annotator)
    return answers.c.id.in_(last.group_by(answers.c.annotator, answers.c.item_id, answers.c.question))


def utc_now() -> datetime:
    """The time in UTC, without a zone: SQLite keeps none."""
    return datetime.now(UTC).replace(tzinfo=None)


def _require_claimed(
    connection: sa.Connection, study: str, annotator: str, given: Sequence[SubmittedAnswer]
) -> None:
    # The row is kept from changing until the answers are in: nobody is forgotten in between.
    person = sa.select(people.c.number).where(people.c.study == study, people.c.annotator == annotator)
    known = connection.execute(person.with_for_update(read=True)).one_or_none()
    query = sa.select(claims.c.item_id).where(claims.c.study == study, claims.c.annotator == annotator)
    held = set(connection.execute(query).scalars()) if known else set()
    if any(answer.item_id not in held for answer in given):
        raise InputError("an answer to a text that was not yours to answer")


def _drop_oldest(connection: sa.Connection, study: str, annotator: str, items: Sequence[str]) -> None:
    """Delete what somebody said of these items before their last ``CHANGES`` rows of each question."""
    age = sa.func.row_number().over(
        partition_by=(answers.c.item_id, answers.c.question), order_by=answers.c.id.desc()
    )
    theirs = sa.and_(answers.c.study == study, answers.c.annotator == annotator, answers.c.item_id.in_(items))
    aged = sa.select(answers.c.id, age.label("age")).where(theirs).subquery()
    old = sa.select(aged.c.id).where(aged.c.age > CHANGES)
    connection.execute(sa.delete(answers).where(answers.c.id.in_(old)))
