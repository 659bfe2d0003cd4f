"""The tables of a study, in SQLite or PostgreSQL, and the engine that reaches them.

Answers are a log: a change or an undo is one more row, so that nothing is overwritten. An annotator's answer
about an item is the last row of the three keys.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from stat import S_IMODE, S_ISREG
from typing import TYPE_CHECKING, Final, Self, TypeVar

from evenhand.core.errors import EvenhandError, InputError, MissingLibraryError

try:
    import sqlalchemy as sa
    from sqlalchemy.exc import ArgumentError, DataError, IntegrityError, SQLAlchemyError
except ImportError as error:
    raise MissingLibraryError(
        "the library sqlalchemy is not installed",
        expected="the extra `annotate`",
        fix="pip install 'evenhand[annotate]'",
    ) from error

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

    from evenhand.annotate.study import Study

VARIABLE: Final = "EVENHAND_DATABASE"
"""Names a database by URL; it may hold a password, so it is never written down."""
_BUSY: Final = 1.5
"""Seconds one attempt waits for another writer, or for a connection of the pool."""
_PATIENCE: Final = 8.0
"""Seconds after which attempts end with an error."""
_PAUSES: Final = (0.02, 0.1, 0.3, 0.8)
_PRIVATE: Final = 0o600
"""The mode of a database in a file: it holds who answered what."""

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
"""``token`` is the digest of a private link; it and ``number`` are null for somebody who was erased."""
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
"""Which items were handed to whom, in which order and on which page."""
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
"""``label`` is null where an answer was taken back; the sender makes the ``mark``, so that an answer that is
sent twice is stored once. Times are UTC."""


class DatabaseError(EvenhandError):
    """A database that is locked, gone or refuses; nothing was acknowledged."""


class Database:
    """A study's answers, wherever they are kept.

    Work is retried while the database is locked or gone, so it must be safe to do twice: a commit whose
    acknowledgement was lost is done again. After ``patience`` seconds a `DatabaseError` ends it.
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
        """Give every connection back."""
        self.engine.dispose()

    def read(self, work: Callable[[sa.Connection], _T]) -> _T:
        """The result of ``work`` in one transaction."""
        return self._retry(work, writes=False)

    def write(self, work: Callable[[sa.Connection], _T]) -> _T:
        """The result of ``work``, once all its changes are on the disk."""
        return self._retry(work, writes=True)

    def own(self, table: sa.Table, annotator: str | None = None) -> sa.ColumnElement[bool]:
        """Whether a row of a table is of this study, and of somebody in it."""
        is_own = table.c.study == self.study.id
        return is_own if annotator is None else sa.and_(is_own, table.c.annotator == annotator)

    def lock(self, connection: sa.Connection) -> None:
        """Wait until nobody else hands out items of this study; the end of the transaction lets go.

        In SQLite a writer is alone anyway.
        """
        if connection.dialect.name == "postgresql":
            key = sa.func.hashtext(f"evenhand:{self.study.id}")
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))

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
                # Waiting does not help where a file is no database, or a broken one.
                is_damaged = isinstance(error, UnicodeDecodeError) or (
                    isinstance(cause, sqlite3.DatabaseError)
                    and not isinstance(cause, sqlite3.OperationalError)
                )
                pause = next(pauses, _PAUSES[-1])
                if time.monotonic() + pause > deadline or is_damaged:
                    # The address is shown without its password.
                    address = self.engine.url.render_as_string(hide_password=True)
                    raise DatabaseError(
                        f"the database {address} cannot be used: {str(cause or error).splitlines()[0]}",
                        expected="a database that answers, and a user who may create tables in it",
                        fix=f"check that it runs, and the URL in {VARIABLE} or --database",
                    ) from error
            time.sleep(pause)


def has_labels(study: Study, url: str | None = None) -> bool:
    """Whether there can be answers: a database is named, or the study's own file is there."""
    return bool(url or os.environ.get(VARIABLE)) or study.labels_file.is_file()


def _engine(study: Study, given: str | None) -> Engine:
    if not given:
        return _sqlite(study.labels_file)
    try:
        url = sa.make_url(given)
        backend, problem = url.get_backend_name(), f"a database of the kind {url.drivername!r}"
    except ArgumentError:
        # The text itself may hold a password.
        backend, problem = "", "a database URL that cannot be read"
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
        fix=f"name one of these in {VARIABLE} or --database",
    )


def _sqlite(path: Path) -> Engine:
    # Not a URL as text: a folder may have a question mark in its name.
    url = sa.URL.create("sqlite", database=str(path))
    engine = sa.create_engine(url, connect_args={"timeout": _BUSY}, pool_size=8, pool_timeout=_BUSY)
    sa.event.listen(engine, "do_connect", partial(_keep_private, path))
    sa.event.listen(engine, "connect", _prepare)
    sa.event.listen(engine, "begin", _begin)
    return engine


def _keep_private(path: Path, *_connecting: object) -> None:
    """Let nobody but the owner read or write a database, even an existing one.

    SQLite gives the mode of the database to the files it creates next to it.
    """
    # Created here, since SQLite would apply the umask. An existing file is never opened: closing it would end
    # the locks that other connections of this process hold on it.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
    for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        # Somebody else's database, shared on purpose, stays as its owner left it.
        with suppress(FileNotFoundError, PermissionError):
            mode = file.stat().st_mode
            # A folder that was named by mistake would be locked.
            if S_ISREG(mode) and S_IMODE(mode) & ~_PRIVATE:
                file.chmod(_PRIVATE)


def _prepare(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    assert isinstance(connection, sqlite3.Connection)
    # Transactions are begun by `_begin`, not by the driver, which would begin them too late.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    # FULL: a commit is on the disk before it is acknowledged, also when the power fails.
    connection.execute("PRAGMA synchronous=FULL")


def _begin(connection: sa.Connection) -> None:
    # A reader that becomes a writer can be refused at once; a writer from the start waits for its turn.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
