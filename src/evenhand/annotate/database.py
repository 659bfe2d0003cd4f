"""The database of a study in SQLite or PostgreSQL: participants with private links, and their answers.

Answers are a log: a change or an undo appends a row, and nothing is overwritten. An annotator's answer about
an item is the last row of its annotator, item and question.

A link contains only 192 random bits, and the database stores only its digest, so reading the database does
not give access to a link. No names or addresses are stored: an annotator is ``a1``, ``a2``, ...
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex, token_urlsafe
from stat import S_IMODE, S_ISREG
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DataError, IntegrityError, SQLAlchemyError

from evenhand.core.errors import EvenhandError, InputError

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

    from evenhand.annotate.study import Study

VARIABLE: Final = "EVENHAND_DATABASE"
"""Environment variable with a database URL; it may contain a password, so it is never stored."""
_BUSY: Final = 1.5
"""Seconds one attempt waits for another writer, or for a connection from the pool."""
_PATIENCE: Final = 8.0
"""Seconds of retries before an error."""
_PAUSES: Final = (0.02, 0.1, 0.3, 0.8)
_PRIVATE: Final = 0o600
"""The file mode of a SQLite database: it records who answered what."""

CHANGES: Final = 20
"""Rows kept per person, item and question, so that nobody can fill the disk."""

_T = TypeVar("_T")

metadata = sa.MetaData()
people = sa.Table(
    "evenhand_people",
    metadata,
    sa.Column("study", sa.String(64), primary_key=True),
    sa.Column("annotator", sa.String(32), primary_key=True),
    sa.Column("number", sa.Integer, nullable=True),
    sa.Column("token", sa.String(64), nullable=True),
    sa.UniqueConstraint("study", "token"),
    sa.UniqueConstraint("study", "number"),
)
"""``token`` is the digest of a private link; it and ``number`` are null for an erased person."""
claims = sa.Table(
    "evenhand_claims",
    metadata,
    sa.Column("study", sa.String(64), primary_key=True),
    sa.Column("annotator", sa.String(32), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("item_id", sa.String(128), nullable=False),
    sa.Column("page", sa.Integer, nullable=False),
    sa.Column("at", sa.DateTime, nullable=False),
    sa.UniqueConstraint("study", "annotator", "item_id"),
)
"""Which items were assigned to whom, in which order and on which page."""
answers = sa.Table(
    "evenhand_answers",
    metadata,
    sa.Column(
        "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True
    ),
    sa.Column("study", sa.String(64), nullable=False),
    sa.Column("annotator", sa.String(32), nullable=False),
    sa.Column("item_id", sa.String(128), nullable=False),
    sa.Column("question", sa.String(40), nullable=False),
    sa.Column("label", sa.String(40), nullable=True),
    sa.Column("mark", sa.String(64), nullable=False),
    sa.Column("at", sa.DateTime, nullable=False),
    sa.UniqueConstraint("study", "annotator", "item_id", "question", "mark"),
)
"""``label`` is null if an answer was withdrawn; the client makes the ``mark``, so an answer sent twice is
stored once. Times are UTC."""


class DatabaseError(EvenhandError):
    """The database is locked, unreachable or refuses the request; nothing was acknowledged."""


class Person(NamedTuple):
    """A participant with a private link."""

    annotator: str
    number: int
    """The order of invitation, from 1; part of the seed of their assignment."""
    token: str = ""
    """The secret of the link. It is not stored: copy that of a new link now or it is lost."""
    link: str = ""
    """The full URL; empty if the address of the study is unknown."""


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


class Database:
    """A study's people and answers, in its own SQLite file or in a given database.

    Work is retried while the database is locked or unreachable, so it must be idempotent: a commit whose
    acknowledgement was lost is repeated. After ``patience`` seconds a `DatabaseError` is raised.
    """

    def __init__(self, study: Study, url: str | None = None, *, patience: float = _PATIENCE) -> None:
        self.study = study
        self.patience = patience
        self.engine = _engine(study, url or os.environ.get(VARIABLE))

    def __enter__(self) -> Self:
        self.write(metadata.create_all)
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def read(self, work: Callable[[sa.Connection], _T]) -> _T:
        """Run ``work`` in one transaction and return its result."""
        return self._retry(work, writes=False)

    def write(self, work: Callable[[sa.Connection], _T]) -> _T:
        """Run ``work`` and return its result once all its changes are on disk."""
        return self._retry(work, writes=True)

    def own(self, table: sa.Table, annotator: str | None = None) -> sa.ColumnElement[bool]:
        """Whether a row of a table belongs to this study, and to this annotator if one is given."""
        is_own = table.c.study == self.study.id
        return is_own if annotator is None else sa.and_(is_own, table.c.annotator == annotator)

    def lock(self, connection: sa.Connection) -> None:
        """Lock the assignment of this study's items until the end of the transaction.

        SQLite allows only one writer anyway.
        """
        if connection.dialect.name == "postgresql":
            key = sa.func.hashtext(f"evenhand:{self.study.id}")
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))

    def create_invitations(self, count: int) -> list[Person]:
        """Create links for ``count`` more people."""
        if not 1 <= count <= 10_000:
            raise InputError(f"{count} people", expected="1 to 10,000", fix="give --people a number")
        tokens = [token_urlsafe(24) for _ in range(count)]

        def work(connection: sa.Connection) -> list[Person]:
            self.lock(connection)
            # Erased people have no number, and their numbers must not be reused.
            query = sa.select(sa.func.max(people.c.number), sa.func.count()).where(self.own(people))
            highest, known = connection.execute(query).one()
            numbered = enumerate(tokens, start=int(max(highest or 0, known)) + 1)
            invited = [Person(f"a{number}", number, token) for number, token in numbered]
            study, columns = self.study.id, ("study", "annotator", "number", "token")
            rows = [(study, one.annotator, one.number, self.token_digest(one.token)) for one in invited]
            connection.execute(sa.insert(people), [dict(zip(columns, row, strict=True)) for row in rows])
            return invited

        return self.write(work)

    def renew_link(self, annotator: str) -> Person:
        """Create a new link for a person who lost theirs; the old link stops working."""
        token = token_urlsafe(24)
        has_link = sa.and_(self.own(people, annotator), people.c.number.is_not(None))

        def work(connection: sa.Connection) -> int | None:
            connection.execute(sa.update(people).where(has_link).values(token=self.token_digest(token)))
            return connection.execute(sa.select(people.c.number).where(has_link)).scalar_one_or_none()

        # In one transaction: after a failure the old link must still work, since nobody has the new one.
        if (number := self.write(work)) is None:
            raise self._unknown_person(annotator)
        return Person(annotator, number, token)

    def find_person(self, token: str) -> Person | None:
        """The holder of a link; None for an unknown link, an erased person, or a link of another study."""
        has_token = people.c.token == self.token_digest(token)
        query = sa.select(people.c.annotator, people.c.number).where(self.own(people), has_token)
        row = self.read(lambda connection: connection.execute(query).one_or_none())
        return Person(*row, token) if row else None

    def read_links(self) -> dict[str, str]:
        """The digest of each annotator's link, in the order of invitation."""
        has_link, pair = people.c.token.is_not(None), (people.c.annotator, people.c.token)
        query = sa.select(*pair).where(self.own(people), has_link).order_by(people.c.number)
        rows = self.read(lambda connection: connection.execute(query).all())
        return {str(who): str(token) for who, token in rows}

    def erase_person(self, annotator: str, *, answers_too: bool = False) -> str:
        """Unlink a person from their answers, and return the new id of the answers.

        The link stops working, the id becomes random, and times become today's date. With ``answers_too`` the
        answers are deleted as well, and their items go to others.
        """
        random_id = f"x{token_hex(6)}"
        today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
        person, claimed, answered = (self.own(table, annotator) for table in (people, claims, answers))

        def work(connection: sa.Connection) -> bool:
            update = sa.update(people).where(person, people.c.number.is_not(None))
            if not connection.execute(update.values(annotator=random_id, token=None, number=None)).rowcount:
                return False
            connection.execute(sa.delete(claims).where(claimed))
            if answers_too:
                connection.execute(sa.delete(answers).where(answered))
            else:
                connection.execute(sa.update(answers).where(answered).values(annotator=random_id, at=today))
            return True

        if not self.write(work):
            raise self._unknown_person(annotator)
        return random_id

    def token_digest(self, token: str) -> str:
        """The digest of a link that the database stores. Plain SHA-256: 192 random bits need no slow hash."""
        return hashlib.sha256(f"{self.study.id}:{token}".encode()).hexdigest()

    def _unknown_person(self, annotator: str) -> InputError:
        known = list(self.read_links())
        shown = ", ".join(known[:20]) + (" ..." if len(known) > 20 else "")
        return InputError(
            f"no annotator {annotator!r} has a link to this study",
            expected=shown or "nobody has been invited yet",
            fix="name one of these",
        )

    def save_answers(
        self,
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
        log = {"mark": mark or token_hex(8), "at": utc_now()}
        common = {"study": self.study.id, "annotator": annotator, **log}

        def work(connection: sa.Connection) -> None:
            if handed:
                self._require_claimed(connection, annotator, given)
            new = given
            if mark is None:
                rows = self._read_latest(connection, annotator)
                known = {(row.item_id, row.question): row.label for row in rows}
                new = [answer for answer in given if known.get(answer[:2]) != answer.label]
            if new:
                # Each dialect has its own insert; both can skip existing rows.
                dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
                insert = dialect.insert(answers).on_conflict_do_nothing()
                connection.execute(insert, [{**common, **answer._asdict()} for answer in new])
                self._drop_oldest(connection, annotator, sorted({answer.item_id for answer in new}))

        self.write(work)

    def latest_answers(self, annotator: str | None = None) -> list[LatestAnswer]:
        """The latest answer of each annotator (or of one), item and question, without withdrawn ones."""
        return self.read(lambda connection: self._read_latest(connection, annotator))

    def _read_latest(self, connection: sa.Connection, annotator: str | None) -> list[LatestAnswer]:
        columns = [answers.c[name] for name in LatestAnswer._fields]
        query = sa.select(*columns).where(self.is_given(annotator)).order_by(answers.c.id)
        return [LatestAnswer._make(row) for row in connection.execute(query)]

    def is_given(self, annotator: str | None = None) -> sa.ColumnElement[bool]:
        """Whether a row of the log is the latest of its annotator, item and question, and not withdrawn."""
        keys = (answers.c.annotator, answers.c.item_id, answers.c.question)
        last = sa.select(sa.func.max(answers.c.id)).where(self.own(answers, annotator)).group_by(*keys)
        return sa.and_(answers.c.id.in_(last), answers.c.label.is_not(None))

    def _require_claimed(
        self, connection: sa.Connection, annotator: str, given: Sequence[SubmittedAnswer]
    ) -> None:
        # Lock the row until the answers are stored, so that the person is not erased in between.
        person = sa.select(people.c.number).where(self.own(people, annotator)).with_for_update(read=True)
        known = connection.execute(person).one_or_none()
        query = sa.select(claims.c.item_id).where(self.own(claims, annotator))
        held = set(connection.execute(query).scalars()) if known else set()
        if any(answer.item_id not in held for answer in given):
            raise InputError("an answer to a text that was not assigned to you")

    def _drop_oldest(self, connection: sa.Connection, annotator: str, items: Sequence[str]) -> None:
        """Delete all but the last ``CHANGES`` rows of a person for each of these items and each question."""
        question = (answers.c.item_id, answers.c.question)
        age = sa.func.row_number().over(partition_by=question, order_by=answers.c.id.desc())
        is_matching = sa.and_(self.own(answers, annotator), answers.c.item_id.in_(items))
        aged = sa.select(answers.c.id, age.label("age")).where(is_matching).subquery()
        old = sa.select(aged.c.id).where(aged.c.age > CHANGES)
        connection.execute(sa.delete(answers).where(answers.c.id.in_(old)))

    def _retry(self, work: Callable[[sa.Connection], _T], *, writes: bool) -> _T:
        deadline = time.monotonic() + self.patience
        pauses = iter(_PAUSES)
        while True:
            try:
                with self.engine.connect().execution_options(writes=writes) as connection, connection.begin():
                    return work(connection)
            except (IntegrityError, DataError):
                raise
            except (SQLAlchemyError, OSError, UnicodeDecodeError) as error:
                cause = getattr(error, "orig", error)
                # Retrying does not help if a file is no database or a corrupt one.
                is_damaged = isinstance(error, UnicodeDecodeError) or (
                    isinstance(cause, sqlite3.DatabaseError)
                    and not isinstance(cause, sqlite3.OperationalError)
                )
                pause = next(pauses, _PAUSES[-1])
                if time.monotonic() + pause > deadline or is_damaged:
                    # The URL is shown without its password.
                    address = self.engine.url.render_as_string(hide_password=True)
                    raise DatabaseError(
                        f"the database {address} cannot be used: {str(cause or error).splitlines()[0]}",
                        expected="a reachable database, and a user who may create tables in it",
                        fix=f"check that it is running, and the URL in {VARIABLE} or --database",
                    ) from error
            time.sleep(pause)


def _engine(study: Study, given: str | None) -> Engine:
    if not given:
        return _sqlite(study.labels_file)
    try:
        url = sa.make_url(given)
        backend, problem = url.get_backend_name(), f"a database of type {url.drivername!r}"
    except ArgumentError:
        # The URL itself may contain a password.
        backend, problem = "", "an invalid database URL"
    if backend == "sqlite" and url.database and url.database != ":memory:":
        return _sqlite(Path(url.database))
    if backend == "postgresql":
        driver = url.set(drivername="postgresql+pg8000")
        return sa.create_engine(
            driver, pool_pre_ping=True, pool_size=8, pool_timeout=_BUSY, connect_args={"timeout": 10}
        )
    raise InputError(
        problem,
        expected="postgresql://USER:PASSWORD@HOST/NAME or sqlite:///FILE",
        fix=f"set one of these with {VARIABLE} or --database",
    )


def _sqlite(path: Path) -> Engine:
    # Not a URL string: a folder name may contain a question mark.
    url = sa.URL.create("sqlite", database=str(path))
    engine = sa.create_engine(url, connect_args={"timeout": _BUSY}, pool_size=8, pool_timeout=_BUSY)
    sa.event.listen(engine, "do_connect", partial(_keep_private, path))
    sa.event.listen(engine, "connect", _prepare)
    sa.event.listen(engine, "begin", _begin)
    return engine


def _keep_private(path: Path, *_connecting: object) -> None:
    """Allow only the owner to read or write a database, even an existing one.

    SQLite creates its companion files with the mode of the database.
    """
    # Created here because SQLite would apply the umask. An existing file is never opened: closing it would
    # release the locks that other connections of this process hold on it.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
    for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        # A database of another owner, shared on purpose, keeps its mode.
        with suppress(FileNotFoundError, PermissionError):
            mode = file.stat().st_mode
            # Otherwise a folder given by mistake would lose its access rights.
            if S_ISREG(mode) and S_IMODE(mode) & ~_PRIVATE:
                file.chmod(_PRIVATE)


def _prepare(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    assert isinstance(connection, sqlite3.Connection)
    # `_begin` starts transactions: the driver would start them too late.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    # FULL: a commit is on disk before it is acknowledged, so it survives a power failure.
    connection.execute("PRAGMA synchronous=FULL")


def _begin(connection: sa.Connection) -> None:
    # SQLite may reject a reader that becomes a writer at once; a transaction that starts as a writer waits.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def utc_now() -> datetime:
    """The time in UTC as a naive datetime: SQLite stores no time zone."""
    return datetime.now(UTC).replace(tzinfo=None)
