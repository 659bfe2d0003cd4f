"""Participants of a study: private links instead of accounts, and erasure.

A link contains only 192 random bits, and the database stores only its digest, so reading the database does
not give access to a link. No names or addresses are stored: an annotator is ``a1``, ``a2``, ...
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
    """A participant with a link."""

    annotator: str
    number: int
    """The order of invitation, from 1; part of the seed of their assignment."""


class Invitation(NamedTuple):
    """A new link. Its token is not stored: copy it now or it is lost."""

    annotator: str
    token: str
    link: str = ""
    """The full URL; empty if the address of the study is unknown."""


def create_invitations(db: Database, count: int) -> list[Invitation]:
    """Create links for ``count`` more people."""
    if not 1 <= count <= 10_000:
        raise InputError(f"{count} people", expected="1 to 10,000", fix="give --people a number")
    tokens = [secrets.token_urlsafe(24) for _ in range(count)]

    def work(connection: sa.Connection) -> list[Invitation]:
        db.lock(connection)
        # Erased people have no number, and their numbers must not be reused.
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
    """Create a new link for a person who lost theirs; the old link stops working."""
    invitation = Invitation(annotator, secrets.token_urlsafe(24))
    has_link = sa.and_(db.own(people, annotator), people.c.number.is_not(None))
    change = sa.update(people).where(has_link).values(token=token_digest(db.study.id, invitation.token))
    if not db.write(lambda connection: connection.execute(change).rowcount):
        raise _unknown_person(db, annotator)
    return invitation


def find_person(db: Database, token: str) -> Person | None:
    """The holder of a link; None for an unknown link, an erased person, or a link of another study."""
    has_token = people.c.token == token_digest(db.study.id, token)
    query = sa.select(people.c.annotator, people.c.number).where(db.own(people), has_token)
    row = db.read(lambda connection: connection.execute(query).one_or_none())
    return Person(*row) if row else None


def read_links(db: Database) -> dict[str, str]:
    """The digest of each annotator's link, in the order of invitation."""
    invited = sa.select(people.c.annotator, people.c.token).where(db.own(people), people.c.token.is_not(None))
    query = invited.order_by(people.c.number)
    return db.read(lambda connection: {str(who): str(token) for who, token in connection.execute(query)})


def erase_person(db: Database, annotator: str, *, answers_too: bool = False) -> str:
    """Unlink a person from their answers, and return the new id of the answers.

    The link stops working, the id becomes random, and times become today's date. With ``answers_too`` the
    answers are deleted as well, and their items go to others.
    """
    random_id = f"x{secrets.token_hex(6)}"
    today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    person, claimed, answered = (db.own(table, annotator) for table in (people, claims, answers))

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

    if not db.write(work):
        raise _unknown_person(db, annotator)
    return random_id


def token_digest(study: str, token: str) -> str:
    """The digest of a link that the database stores. Plain SHA-256: 192 random bits need no slow hash."""
    return hashlib.sha256(f"{study}:{token}".encode()).hexdigest()


def _unknown_person(db: Database, annotator: str) -> InputError:
    known = list(read_links(db))
    shown = ", ".join(known[:20]) + (" ..." if len(known) > 20 else "")
    return InputError(
        f"no annotator {annotator!r} has a link to this study",
        expected=shown or "nobody has been invited yet",
        fix="name one of these",
    )
