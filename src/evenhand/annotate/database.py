"""The tables of a study in SQLite or PostgreSQL, and the engine that connects to them.

Answers are a log: a change or an undo appends a row, and nothing is overwritten. An annotator's answer about
an item is the last row of its annotator, item and question.
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
"""Environment variable with a database URL; it may contain a password, so it is never stored."""
_BUSY: Final = 1.5
"""Seconds one attempt waits for another writer, or for a connection from the pool."""
_PATIENCE: Final = 8.0
"""Seconds of retries before an error."""
_PAUSES: Final = (0.02, 0.1, 0.3, 0.8)
_PRIVATE: Final = 0o600
"""The file mode of a SQLite database: it records who answered what."""

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


class Database:
    """A study's answers in its own SQLite file or in a given database.

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


def has_labels(study: Study, url: str | None = None) -> bool:
    """Whether there can be answers: a database is given, or the study's own file exists."""
    return bool(url or os.environ.get(VARIABLE)) or study.labels_file.is_file()


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
