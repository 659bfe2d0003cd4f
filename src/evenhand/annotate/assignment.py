"""Who is shown what next: every item reaches the wanted number of people, and nobody sees one twice.

Nothing is planned ahead, so people who never come leave no hole: each page is filled when somebody asks for
it, with items that were begun and are not finished first (a study that stops early then has many items with
all their answers, not all items with too few), and among equals in an order fixed by the seed. Given who
asked when, the outcome is always the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa

from evenhand.annotate.answer_log import is_latest, utc_now
from evenhand.annotate.database import Database, answers, claims
from evenhand.annotate.participants import Person
from evenhand.annotate.study import Study, TaskInfo
from evenhand.core.seeds import make_generator


class AssignedItem(NamedTuple):
    """What assignment needs to know of an item."""

    id: str
    method: str
    pair: str


ItemPage = tuple[str, ...]
"""The ids of the items on one page."""


@dataclass(frozen=True, slots=True)
class ItemAssigner:
    """The rules of one study."""

    study: Study
    items: tuple[AssignedItem, ...]
    checks: tuple[str, ...]
    units: tuple[ItemPage, ...]
    """What is handed out as a whole, an item or all texts of a prompt, in an order drawn by seed."""

    @classmethod
    def of(cls, study: Study) -> ItemAssigner:
        """The rules of a study, with its items in an order drawn by its seed."""
        table = study.items()
        rows = table.filter(~table["is_check"]).sort("item_id").select("item_id", "method", "pair")
        items = tuple(AssignedItem(id, method or "", pair or id) for id, method, pair in rows.iter_rows())
        checks = tuple(table.filter(table["is_check"]).sort("item_id")["item_id"])
        return cls(study, items, checks, _units(study, items))

    @property
    def _terms(self) -> TaskInfo:
        return self.study.task.task

    def next_pages(self, *, person: int, held: Sequence[str], load: Mapping[str, int]) -> list[ItemPage]:
        """The pages to hand to somebody who has done all of theirs; none where nothing is left for them.

        Args:
            person: The number of the invitation.
            held: What they were handed before, in order.
            load: For each item how many people answered it, or hold it since a short while.
        """
        units = self._share(set(held), load, self._room(held))
        if not units:
            return []
        rng = make_generator(self.study.settings.seed, "order", person, len(held))
        # Each person has their own order, of the units and of the texts inside them.
        units = [units[place] for place in rng.permutation(len(units)).tolist()]
        units = [tuple(unit[place] for place in rng.permutation(len(unit)).tolist()) for unit in units]
        return self._join_pages(self._with_checks(units, person, held))

    def count_remaining(self, *, held: Collection[str], load: Mapping[str, int]) -> int:
        """How many more items somebody could be handed."""
        room = self._room(held)
        if self._terms.per_method:
            return sum(len(unit) for unit in self._share(set(held), load, room))
        free = sum(len(unit) for unit in self._open_units(set(held), load))
        return free if room is None else min(free, room)

    def select_wanted(self, items: Collection[str], *, load: Mapping[str, int]) -> set[str]:
        """Those of the items that still need somebody, and the checks among them where any does."""
        wanted = self.study.settings.annotators
        lacking = (unit for unit in self.units if min(load.get(item, 0) for item in unit) < wanted)
        chosen = {item for unit in lacking for item in unit} & set(items)
        return chosen | (set(self.checks) & set(items)) if chosen else set()

    def _room(self, held: Collection[str]) -> int | None:
        most = self._terms.per_person
        return max(0, most - len(set(held) - set(self.checks))) if most else None

    def _share(self, held: set[str], load: Mapping[str, int], room: int | None) -> list[ItemPage]:
        """What to hand out at once: a page, or all of one person's share where there is one."""
        units, page = self._open_units(held, load), self._terms.page
        if self._terms.layout == "side-by-side":
            size = max((len(unit) for unit in units), default=1)
            # One prompt with more texts than a person's share is still one prompt to read.
            return units[: 1 if room is None else max(room // size, not held)]
        if self._terms.per_method:
            return self._by_method(units, held)
        return units[: page if room is None else min(page, room)]

    def _open_units(self, held: set[str], load: Mapping[str, int]) -> list[ItemPage]:
        """Units that still need somebody and hold nothing this person has seen, the begun ones first."""
        wanted = self.study.settings.annotators
        busy = {unit: min(load.get(item, 0) for item in unit) for unit in self.units}
        free = [unit for unit in self.units if busy[unit] < wanted and held.isdisjoint(unit)]
        # Sorting keeps the drawn order among equals.
        return sorted(free, key=lambda unit: -busy[unit])

    def _by_method(self, units: Sequence[ItemPage], held: Collection[str]) -> list[ItemPage]:
        """As many of each method as one person gets, each of another prompt as far as there are enough."""
        known = {item.id: item for item in self.items}
        counts = Counter(known[id].method for id in held if id in known)
        read_pairs = {known[id].pair for id in held if id in known}
        chosen: list[ItemPage] = []
        for method in sorted({item.method for item in self.items}):
            free = [unit for unit in units if known[unit[0]].method == method]
            for _ in range(min(len(free), self._terms.per_method - counts[method])):
                # The first of an unread prompt, else the first.
                unit = min(free, key=lambda unit: known[unit[0]].pair in read_pairs)
                free.remove(unit)
                read_pairs.add(known[unit[0]].pair)
                chosen.append(unit)
        return chosen

    def _with_checks(self, units: Sequence[ItemPage], person: int, held: Sequence[str]) -> list[ItemPage]:
        """The units with attention checks among them, one in every ``check_every`` texts."""
        every = self._terms.check_every if self.checks else 0
        seed = self.study.settings.seed
        order = make_generator(seed, "checks", person).permutation(len(self.checks)).tolist()
        unseen = [self.checks[place] for place in order if self.checks[place] not in held]
        shown, place = len(self.checks) - len(unseen), len(held)
        mixed: list[ItemPage] = []
        for unit in [*units, ()]:
            if every and unseen:
                offset = int(make_generator(seed, "check", person, shown).integers(every))
                if place >= shown * every + offset:
                    mixed.append((unseen.pop(0),))
                    shown, place = shown + 1, place + 1
            if unit:
                mixed.append(unit)
                place += len(unit)
        return mixed

    def _join_pages(self, units: Sequence[ItemPage]) -> list[ItemPage]:
        """A list joins its units into one page, and leaves what no longer fits; else each unit is a page."""
        if self._terms.layout != "list":
            return list(units)
        return [tuple(id for unit in units for id in unit)[: self._terms.page]]


def _units(study: Study, items: Sequence[AssignedItem]) -> tuple[ItemPage, ...]:
    order = make_generator(study.settings.seed, "assignment").permutation(len(items)).tolist()
    together = study.task.task.layout == "side-by-side"
    units: dict[str, list[str]] = defaultdict(list)
    for item in (items[place] for place in order):
        units[item.pair if together else item.id].append(item.id)
    return tuple(tuple(unit) for unit in units.values())


class StudyProgress(NamedTuple):
    """How far a study is."""

    items: int
    finished: int
    """Items that everybody wanted has answered."""
    begun: int
    """Items that somebody has answered, the finished ones too."""
    answers: int


class _ClaimedItem(NamedTuple):
    """An item, the page it was handed out on, and when."""

    page: int
    item_id: str
    at: datetime


class _Claims(NamedTuple):
    """What somebody was handed, and which of it they have answered."""

    items: list[_ClaimedItem]
    done: set[str]

    def expired(self, since: datetime) -> set[str]:
        return {one.item_id for one in self.items if one.item_id not in self.done and one.at <= since}

    def pages(self, since: datetime) -> list[ItemPage]:
        """The pages without what was left so long that it is no longer theirs."""
        gone = self.expired(since)
        pages: dict[int, list[str]] = defaultdict(list)
        for one in self.items:
            if one.item_id not in gone:
                pages[one.page].append(one.item_id)
        return [tuple(items) for items in pages.values()]


def read_pages(db: Database, annotator: str, *, now: datetime | None = None) -> list[ItemPage]:
    """The pages somebody was handed, in order, without what they left so long that it is no longer theirs."""
    since = _hold_expiry(db, now or utc_now())
    return db.read(lambda connection: _read_claims(connection, db, annotator)).pages(since)


def resume_pages(
    db: Database, assigner: ItemAssigner, person: Person, *, now: datetime | None = None
) -> list[ItemPage]:
    """The same for somebody who comes back: what they left too long is theirs again if it is still wanted.

    What others have answered or hold instead is shown no more, so that no item gets an answer too many.
    """
    at = now or utc_now()
    since = _hold_expiry(db, at)
    claimed = db.read(lambda connection: _read_claims(connection, db, person.annotator))
    if claimed.expired(since):
        claimed = db.write(lambda connection: _renew_hold(connection, db, assigner, person, at))
    return claimed.pages(since)


def claim_pages(
    db: Database, assigner: ItemAssigner, person: Person, *, now: datetime | None = None
) -> list[ItemPage]:
    """Hand out the next pages and return all of this person's.

    Safe to call twice: whoever still has an unanswered page gets nothing new.
    """
    at = now or utc_now()
    since = _hold_expiry(db, at)

    def work(connection: sa.Connection) -> list[ItemPage]:
        claimed = _renew_hold(connection, db, assigner, person, at)
        pages = claimed.pages(since)
        if any(item not in claimed.done for page in pages for item in page):
            return pages
        held = [one.item_id for one in claimed.items]
        load = _load(connection, db, since=since)
        new = assigner.next_pages(person=person.number, held=held, load=load)
        first_page = claimed.items[-1].page + 1 if claimed.items else 0
        flat = [(number, item) for number, page in enumerate(new, start=first_page) for item in page]
        common = {"study": db.study.id, "annotator": person.annotator, "at": at}
        rows = [
            {**common, "position": position, "page": page, "item_id": item}
            for position, (page, item) in enumerate(flat, start=len(held))
        ]
        if rows:
            connection.execute(sa.insert(claims), rows)
        return pages + new

    return db.write(work)


def count_remaining(db: Database, assigner: ItemAssigner, annotator: str) -> int:
    """How many items, beyond those they hold, somebody could still be handed."""

    def work(connection: sa.Connection) -> int:
        held = {one.item_id for one in _read_claims(connection, db, annotator).items}
        load = _load(connection, db, since=_hold_expiry(db, utc_now()))
        return assigner.count_remaining(held=held, load=load)

    return db.read(work)


def count_progress(db: Database, assigner: ItemAssigner) -> StudyProgress:
    """How far the study is; checks are not counted."""
    load = db.read(lambda connection: _load(connection, db, since=None))
    counts = [load[item.id] for item in assigner.items if item.id in load]
    wanted = db.study.settings.annotators
    return StudyProgress(
        len(assigner.items), sum(count >= wanted for count in counts), len(counts), sum(counts)
    )


def unfinished_items(db: Database, assigner: ItemAssigner) -> set[str]:
    """Items that still lack answers."""
    load = db.read(lambda connection: _load(connection, db, since=None))
    return {item.id for item in assigner.items if load.get(item.id, 0) < db.study.settings.annotators}


def _read_claims(connection: sa.Connection, db: Database, annotator: str) -> _Claims:
    query = (
        sa.select(claims.c.page, claims.c.item_id, claims.c.at)
        .where(claims.c.study == db.study.id, claims.c.annotator == annotator)
        .order_by(claims.c.position)
    )
    items = [_ClaimedItem._make(row) for row in connection.execute(query)]
    return _Claims(items, {str(row[1]) for row in connection.execute(_select_finished(db, annotator))})


def _renew_hold(
    connection: sa.Connection, db: Database, assigner: ItemAssigner, person: Person, now: datetime
) -> _Claims:
    """Hold again what somebody left too long and nobody else took; their claims after that."""
    db.lock(connection)
    since = _hold_expiry(db, now)
    claimed = _read_claims(connection, db, person.annotator)
    gone = claimed.expired(since)
    if not gone:
        return claimed
    wanted = assigner.select_wanted(gone, load=_load(connection, db, since=since))
    theirs = sa.and_(claims.c.study == db.study.id, claims.c.annotator == person.annotator)
    change = sa.update(claims).where(theirs, claims.c.item_id.in_(sorted(wanted)))
    connection.execute(change.values(at=now))
    return _read_claims(connection, db, person.annotator)


def _hold_expiry(db: Database, now: datetime) -> datetime:
    """What was handed out before this time and is not answered is handed to somebody else."""
    return now - timedelta(hours=db.study.settings.hold_hours)


def _select_finished(db: Database, annotator: str | None = None) -> sa.Select[str, str]:
    """Selects (annotator, item) where every question is answered."""
    query = sa.select(answers.c.annotator, answers.c.item_id)
    query = query.where(is_latest(db.study.id, annotator), answers.c.label.is_not(None))
    grouped = query.group_by(answers.c.annotator, answers.c.item_id)
    return grouped.having(sa.func.count() == len(db.study.questions))


def _load(connection: sa.Connection, db: Database, *, since: datetime | None) -> dict[str, int]:
    """Item to the people who answered it, or were handed it after ``since`` and may still."""
    held = sa.select(claims.c.annotator, claims.c.item_id).where(
        claims.c.study == db.study.id, claims.c.at > since if since else sa.false()
    )
    both = sa.union(_select_finished(db), held).subquery()
    query = sa.select(both.c.item_id, sa.func.count()).group_by(both.c.item_id)
    return {str(row[0]): int(row[1]) for row in connection.execute(query)}
