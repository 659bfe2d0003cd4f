"""People of a study: private links instead of accounts, and forgetting.

A link holds 192 random bits and nothing else; the database keeps only its digest, so that whoever reads the
database cannot open a link. There are no names and no addresses: an annotator is ``a1``, ``a2``, ...
"""

from __future__ import annotations

import hashlib
import secrets
from typing import NamedTuple

import sqlalchemy as sa

from evenhand.annotate.answer_log import utc_now
from evenhand.annotate.database import Database, answers, claims, people
from evenhand.core.errors import InputError


class Person(NamedTuple):
    """Somebody with a link."""

    annotator: str
    number: int
    """The order of invitation, from 1; part of the seed of what they are shown."""


class Invitation(NamedTuple):
    """A new link. Its token is kept nowhere: what is not copied now is lost."""

    annotator: str
    token: str
    link: str = ""
    """The whole address; empty where the address of the study is unknown."""


def create_invitations(db: Database, count: int) -> list[Invitation]:
    """Links for ``count`` more people."""
    if not 1 <= count <= 10_000:
        raise InputError(f"{count} people", expected="1 to 10,000", fix="give --people a number")
    tokens = [secrets.token_urlsafe(24) for _ in range(count)]

    def work(connection: sa.Connection) -> list[Invitation]:
        db.lock(connection)
        # The forgotten have no number, and theirs must not come again.
        query = sa.select(sa.func.max(people.c.number), sa.func.count()).where(db.own(people))
        highest, known = connection.execute(query).one()
        first = int(max(highest or 0, known)) + 1
        study, numbered = db.study.id, list(enumerate(tokens, start=first))
        rows = [
            {"study": study, "annotator": f"a{number}", "number": number, "token": token_digest(study, token)}
            for number, token in numbered
        ]
        connection.execute(sa.insert(people), rows)
        return [Invitation(f"a{number}", token) for number, token in numbered]

    return db.write(work)


def renew_link(db: Database, annotator: str) -> Invitation:
    """A new link for somebody who lost theirs; the old one no longer opens."""
    invitation = Invitation(annotator, secrets.token_urlsafe(24))
    theirs = sa.and_(db.own(people, annotator), people.c.number.is_not(None))
    change = sa.update(people).where(theirs).values(token=token_digest(db.study.id, invitation.token))
    if not db.write(lambda connection: connection.execute(change).rowcount):
        raise _unknown_person(db, annotator)
    return invitation


def find_person(db: Database, token: str) -> Person | None:
    """The holder of a link; None for an unknown link, one of somebody forgotten, or one of another study."""
    has_token = people.c.token == token_digest(db.study.id, token)
    query = sa.select(people.c.annotator, people.c.number).where(db.own(people), has_token)
    row = db.read(lambda connection: connection.execute(query).one_or_none())
    return Person(*row) if row else None


def read_links(db: Database) -> dict[str, str]:
    """Everybody who has a link, in the order of invitation, and its digest."""
    invited = sa.select(people.c.annotator, people.c.token).where(db.own(people), people.c.token.is_not(None))
    query = invited.order_by(people.c.number)
    return db.read(lambda connection: {str(who): str(token) for who, token in connection.execute(query)})


def erase_person(db: Database, annotator: str, *, answers_too: bool = False) -> str:
    """Cut what ties somebody to their answers, and return the name the answers now have.

    The link stops working, the id becomes a random one, the times become today. With ``answers_too`` the
    answers go as well, and their items are handed to others.
    """
    stranger = f"x{secrets.token_hex(6)}"
    today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    person, claimed, answered = (db.own(table, annotator) for table in (people, claims, answers))

    def work(connection: sa.Connection) -> bool:
        gone = sa.update(people).where(person, people.c.number.is_not(None))
        if not connection.execute(gone.values(annotator=stranger, token=None, number=None)).rowcount:
            return False
        connection.execute(sa.delete(claims).where(claimed))
        if answers_too:
            connection.execute(sa.delete(answers).where(answered))
        else:
            connection.execute(sa.update(answers).where(answered).values(annotator=stranger, at=today))
        return True

    if not db.write(work):
        raise _unknown_person(db, annotator)
    return stranger


def token_digest(study: str, token: str) -> str:
    """What the database keeps of a link. Plain SHA-256: 192 random bits need no slow hash."""
    return hashlib.sha256(f"{study}:{token}".encode()).hexdigest()


def _unknown_person(db: Database, annotator: str) -> InputError:
    known = list(read_links(db))
    shown = ", ".join(known[:20]) + (" ..." if len(known) > 20 else "")
    return InputError(
        f"nobody called {annotator!r} has a link of this study",
        expected=shown or "nobody was invited yet",
        fix="name one of these",
    )
