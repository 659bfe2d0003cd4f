"""The annotation workflow without HTTP: assigning items, saving answers, choosing the next page.

Every item gets the required number of annotators, and nobody sees one twice. Nothing is planned ahead, so
people who never show up leave no gap: each page is filled on request. Items that have some but not all
answers come first (a study that stops early then has many complete items, not only incomplete ones); ties
follow an order fixed by the seed. The same requests at the same times always give the same assignment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain, count
from typing import NamedTuple

import sqlalchemy as sa

from evenhand.annotate.database import Database, Person, SubmittedAnswer, answers, claims, utc_now
from evenhand.annotate.study import Study
from evenhand.core.errors import InputError
from evenhand.core.seeds import make_generator

ItemPage = tuple[str, ...]
"""The ids of the items on one page."""


class ItemAssigner:
    """The assignment rules of one study.

    Units are assigned as a whole (an item, or all texts of a prompt), in an order drawn by seed.
    """

    def __init__(self, study: Study) -> None:
        self.settings, self.terms = study.settings, study.task.task
        table = study.items().sort("item_id")
        rows = table.filter(~table["is_check"]).select("item_id", "method", "pair").iter_rows()
        parts = [(item, method or "", pair or item) for item, method, pair in rows]
        self.methods = {item: method for item, method, _ in parts}
        self.pairs = {item: pair for item, _, pair in parts}
        self.checks = tuple(table.filter(table["is_check"])["item_id"])
        ids, units = list(self.pairs), defaultdict[str, list[str]](list)
        for place in make_generator(self.settings.seed, "assignment").permutation(len(ids)).tolist():
            item = ids[place]
            units[self.pairs[item] if self.terms.layout == "side-by-side" else item].append(item)
        self.units = [tuple(unit) for unit in units.values()]

    def next_pages(self, *, person: int, held: Sequence[str], load: Mapping[str, int]) -> list[ItemPage]:
        """The next pages for a person who has finished theirs; empty if nothing is left for them.

        Args:
            person: The number of the invitation.
            held: The items they were assigned before, in order.
            load: For each item, the number of people who answered it or hold an unexpired claim.
        """
        units = self._share(set(held), load, self._room(held))
        if not units:
            return []
        rng = make_generator(self.settings.seed, "order", person, len(held))
        # Each person has their own order of units and of the texts inside them.
        units = [units[place] for place in rng.permutation(len(units)).tolist()]
        units = [tuple(unit[place] for place in rng.permutation(len(unit)).tolist()) for unit in units]
        pages = self._with_checks(units, person, held)
        # The list layout joins units into one page and drops those that no longer fit.
        return [tuple(chain(*pages))[: self.terms.page]] if self.terms.layout == "list" else pages

    def count_remaining(self, *, held: Collection[str], load: Mapping[str, int]) -> int:
        """The number of items that could still be assigned to a person."""
        room = self._room(held)
        if self.terms.per_method:
            return sum(len(unit) for unit in self._share(set(held), load, room))
        free = sum(len(unit) for unit in self._open_units(set(held), load))
        return free if room is None else min(free, room)

    def select_wanted(self, items: Collection[str], *, load: Mapping[str, int]) -> set[str]:
        """The items that still need answers, plus the checks among them if there are any such items."""
        needed = self.settings.annotators
        lacking = (unit for unit in self.units if min(load.get(item, 0) for item in unit) < needed)
        chosen = {item for unit in lacking for item in unit} & set(items)
        return chosen | (set(self.checks) & set(items)) if chosen else set()

    def _room(self, held: Collection[str]) -> int | None:
        most = self.terms.per_person
        return max(0, most - len(set(held) - set(self.checks))) if most else None

    def _share(self, held: set[str], load: Mapping[str, int], room: int | None) -> list[ItemPage]:
        """The units to assign at once: one page, or a person's whole share if the task sets one."""
        units, page = self._open_units(held, load), self.terms.page
        if self.terms.layout == "side-by-side":
            size = max((len(unit) for unit in units), default=1)
            # A prompt with more texts than a person's share is still assigned whole.
            return units[: 1 if room is None else max(room // size, not held)]
        if self.terms.per_method:
            return self._by_method(units, held)
        return units[: page if room is None else min(page, room)]

    def _open_units(self, held: set[str], load: Mapping[str, int]) -> list[ItemPage]:
        """Units that still need answers and contain nothing this person has seen; started ones first."""
        needed = self.settings.annotators
        busy = {unit: min(load.get(item, 0) for item in unit) for unit in self.units}
        free = [unit for unit in self.units if busy[unit] < needed and held.isdisjoint(unit)]
        # The sort is stable, so ties keep the drawn order.
        return sorted(free, key=lambda unit: -busy[unit])

    def _by_method(self, units: Sequence[ItemPage], held: Collection[str]) -> list[ItemPage]:
        """A person's share of texts per method, each from a different prompt as far as possible."""
        own = [item for item in held if item in self.methods]
        counts, read_pairs = Counter(self.methods[item] for item in own), {self.pairs[item] for item in own}
        chosen: list[ItemPage] = []
        for method in sorted(set(self.methods.values())):
            free = [unit for unit in units if self.methods[unit[0]] == method]
            for _ in range(min(len(free), self.terms.per_method - counts[method])):
                # The first unit of an unread prompt, else the first unit.
                unit = min(free, key=lambda unit: self.pairs[unit[0]] in read_pairs)
                free.remove(unit)
                read_pairs.add(self.pairs[unit[0]])
                chosen.append(unit)
        return chosen

    def _with_checks(self, units: Sequence[ItemPage], person: int, held: Sequence[str]) -> list[ItemPage]:
        """The units with attention checks inserted, one in every ``check_every`` texts."""
        every = self.terms.check_every if self.checks else 0
        seed = self.settings.seed
        order = make_generator(seed, "checks", person).permutation(len(self.checks)).tolist()
        unseen = [self.checks[place] for place in order if self.checks[place] not in held]
        checks_shown, place = len(self.checks) - len(unseen), len(held)
        mixed: list[ItemPage] = []
        for unit in [*units, ()]:
            if every and unseen:
                offset = int(make_generator(seed, "check", person, checks_shown).integers(every))
                if place >= checks_shown * every + offset:
                    mixed.append((unseen.pop(0),))
                    checks_shown, place = checks_shown + 1, place + 1
            if unit:
                mixed.append(unit)
                place += len(unit)
        return mixed


class ItemCard(NamedTuple):
    """An item on a page, with the annotator's answers so far."""

    item_id: str
    number: int
    prompt: str
    """The underlined prompt; empty in layouts that do not underline it."""
    rest: str
    """The text after the underlined prompt."""
    answers: Mapping[str, str]
    """Labels by question."""


class WorkPage(NamedTuple):
    """One page of work."""

    cards: tuple[ItemCard, ...]
    page: int
    """Counted from 0."""
    answered: int
    """Items this person has answered, over all pages."""
    total: int
    """Items answered, currently assigned, or still available to this person."""


class CompletionState(NamedTuple):
    """What the final page shows when there is nothing left to do."""

    answered: int
    pages: int
    waiting: bool
    """Whether more items may come: others hold items that they have not answered yet."""


class StudyProgress(NamedTuple):
    """The progress of a study."""

    items: int
    finished: int
    """Items with all the answers they need."""
    begun: int
    """Items with at least one answer, including the finished ones."""
    answers: int
    links: int
    """Number of people with a link."""


class PageClaims(NamedTuple):
    """The items assigned to a person, in order, and which of them they have answered."""

    pages_of: Mapping[str, int]
    """The page of each assigned item."""
    done: set[str]
    expired: set[str]
    """Items left unanswered for so long that their assignment expired."""

    @property
    def pages(self) -> list[ItemPage]:
        """The pages without expired items."""
        pages: dict[int, list[str]] = defaultdict(list)
        for item, page in self.pages_of.items():
            if item not in self.expired:
                pages[page].append(item)
        return [tuple(items) for items in pages.values()]

    @property
    def first_unfinished(self) -> int | None:
        """The first page with an unanswered item; None if all are answered."""
        unfinished = (number for number, page in enumerate(self.pages) if not self.done.issuperset(page))
        return next(unfinished, None)


def split_texts(study: Study) -> dict[str, tuple[str, str]]:
    """The prompt that is underlined, if any, and the rest of the text of each item."""
    underlined = study.task.task.layout != "list"
    shown = {}
    for item, text, prompt in study.items().select("item_id", "text", "prompt").iter_rows():
        # A damaged file may contain items without a text.
        whole = text or ""
        beginning = prompt if underlined and prompt and whole.startswith(prompt) else ""
        shown[item] = (beginning, whole.removeprefix(beginning))
    return shown


class AnnotationService:
    """Serves the annotators of one study; ``now`` overrides the clock in tests."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.study = db.study
        self.assigner = ItemAssigner(db.study)
        self.texts = split_texts(db.study)

    @property
    def hold(self) -> timedelta:
        """After this time unanswered claims have expired and go to somebody else."""
        return timedelta(hours=self.study.settings.hold_hours)

    def read_claims(self, annotator: str, *, now: datetime | None = None) -> PageClaims:
        """The items assigned to a person."""
        at = now or utc_now()
        return self.db.read(lambda connection: self._select_claims(connection, annotator, at))

    def resume_claims(self, annotator: str, *, now: datetime | None = None) -> PageClaims:
        """The same for a returning person: their expired items are assigned again if still needed.

        Items that others answered or hold by now are no longer shown, so no item gets too many answers.
        """
        at = now or utc_now()
        claimed = self.read_claims(annotator, now=at)
        if claimed.expired:
            claimed = self.db.write(lambda connection: self._renew_hold(connection, annotator, at))
        return claimed

    def claim_pages(self, person: Person, *, now: datetime | None = None) -> list[ItemPage]:
        """Assign the next pages and return all pages of this person.

        Safe to call twice: a person with an unanswered page gets nothing new.
        """
        at = now or utc_now()

        def work(connection: sa.Connection) -> list[ItemPage]:
            claimed = self._renew_hold(connection, person.annotator, at)
            pages, held = claimed.pages, list(claimed.pages_of)
            if claimed.first_unfinished is not None:
                return pages
            load = self._load(connection, at)
            new = self.assigner.next_pages(person=person.number, held=held, load=load)
            common = {"study": self.study.id, "annotator": person.annotator, "at": at}
            position, first = count(len(held)), max(claimed.pages_of.values(), default=-1) + 1
            rows = [
                {**common, "position": next(position), "page": number, "item_id": item}
                for number, page in enumerate(new, start=first)
                for item in page
            ]
            if rows:
                connection.execute(sa.insert(claims), rows)
            return pages + new

        return self.db.write(work)

    def next_page(self, person: Person, wanted: int | None) -> WorkPage | None:
        """The page with this number, else the first unfinished page, else a new one; None if none is left."""
        claimed = self.resume_claims(person.annotator)
        pages = claimed.pages
        number = wanted if wanted is not None and wanted < len(pages) else claimed.first_unfinished
        if number is None:
            number, pages = len(pages), self.claim_pages(person)
        if number >= len(pages):
            return None
        labels: dict[str, dict[str, str]] = defaultdict(dict)
        for answer in self.db.latest_answers(person.annotator):
            labels[answer.item_id][answer.question] = answer.label
        before = sum(map(len, pages[:number]))
        cards = tuple(
            ItemCard(item, place, *self.texts[item], labels[item])
            for place, item in enumerate(pages[number], start=before + 1)
        )
        held = [item for page in pages for item in page]
        known, answered = {*claimed.pages_of, *held}, len(claimed.done.intersection(held))
        load = self.db.read(lambda connection: self._load(connection, utc_now()))
        remaining = self.assigner.count_remaining(held=known, load=load)
        return WorkPage(cards, number, answered, len(held) + remaining)

    def completion_state(self, person: Person) -> CompletionState:
        """The state of a person who has answered everything."""
        pages = self.read_claims(person.annotator).pages
        held = {item for page in pages for item in page}
        own = len(held & self.assigner.pairs.keys())
        load, share = self.db.read(self._load), self.study.task.task.per_person
        needed = self.study.settings.annotators
        unfinished = {item for item in self.assigner.pairs if load.get(item, 0) < needed} - held
        return CompletionState(len(held), len(pages), bool(unfinished) and not (share and own >= share))

    def count_progress(self) -> StudyProgress:
        """The progress of the study; attention checks are not counted."""
        load, needed = self.db.read(self._load), self.study.settings.annotators
        counts = [load[item] for item in self.assigner.pairs if item in load]
        finished, links = sum(number >= needed for number in counts), len(self.db.read_links())
        return StudyProgress(len(self.assigner.pairs), finished, len(counts), sum(counts), links)

    def parse(self, fields: Mapping[str, str]) -> list[SubmittedAnswer]:
        """Parse the answers of a form: ``a.ITEM.QUESTION`` = label; empty if the answer was withdrawn."""
        codes = {question.name: question.codes for question in self.study.questions}
        submitted = []
        for name, label in fields.items():
            head, _, rest = name.partition(".")
            if head != "a":
                continue
            item, _, question = rest.partition(".")
            if question not in codes or (label and label not in codes[question]):
                raise InputError("an answer that this question does not have")
            submitted.append(SubmittedAnswer(item, question, label or None))
        return submitted

    def is_missing(self, person: Person, page: int) -> bool:
        """Whether a page has an unanswered question."""
        claimed = self.read_claims(person.annotator)
        return not claimed.done.issuperset(chain(*claimed.pages[page : page + 1]))

    def _select_claims(self, connection: sa.Connection, annotator: str, at: datetime) -> PageClaims:
        columns = (claims.c.item_id, claims.c.page, claims.c.at)
        query = sa.select(*columns).where(self.db.own(claims, annotator)).order_by(claims.c.position)
        held = connection.execute(query).all()
        done = {str(item) for _, item in connection.execute(self._select_finished(annotator))}
        since = at - self.hold
        expired = {item for item, _, handed in held if item not in done and handed <= since}
        return PageClaims({item: page for item, page, _ in held}, done, expired)

    def _renew_hold(self, connection: sa.Connection, annotator: str, at: datetime) -> PageClaims:
        """Renew the expired claims that are still needed; return the updated claims."""
        self.db.lock(connection)
        claimed = self._select_claims(connection, annotator, at)
        if not claimed.expired:
            return claimed
        needed = self.assigner.select_wanted(claimed.expired, load=self._load(connection, at))
        is_renewed = sa.and_(self.db.own(claims, annotator), claims.c.item_id.in_(sorted(needed)))
        connection.execute(sa.update(claims).where(is_renewed).values(at=at))
        return self._select_claims(connection, annotator, at)

    def _select_finished(self, annotator: str | None = None) -> sa.Select[str, str]:
        """Select the (annotator, item) pairs with every question answered."""
        pair = (answers.c.annotator, answers.c.item_id)
        query = sa.select(*pair).where(self.db.is_given(annotator)).group_by(*pair)
        return query.having(sa.func.count() == len(self.study.questions))

    def _load(self, connection: sa.Connection, at: datetime | None = None) -> dict[str, int]:
        """The number of people per item who answered it or, given a time, still hold it then."""
        finished = self._select_finished()
        is_held = sa.and_(self.db.own(claims), claims.c.at > at - self.hold) if at else sa.false()
        held = sa.select(claims.c.annotator, claims.c.item_id).where(is_held)
        both = finished.union(held).subquery()
        query = sa.select(both.c.item_id, sa.func.count()).group_by(both.c.item_id)
        return {str(item): int(number) for item, number in connection.execute(query)}
