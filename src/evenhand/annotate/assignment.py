"""Assigns items to people: every item gets the required number of annotators, and nobody sees one twice.

Nothing is planned ahead, so people who never show up leave no gap: each page is filled on request. Items that
have some but not all answers come first (a study that stops early then has many complete items, not only
incomplete ones); ties follow an order fixed by the seed. The same requests at the same times always give the
same assignment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from evenhand.annotate.study import Study, TaskInfo
from evenhand.core.seeds import make_generator


class AssignedItem(NamedTuple):
    """The properties of an item that assignment needs."""

    id: str
    method: str
    pair: str


ItemPage = tuple[str, ...]
"""The ids of the items on one page."""


@dataclass(frozen=True, slots=True)
class ItemAssigner:
    """The assignment rules of one study."""

    study: Study
    items: tuple[AssignedItem, ...]
    checks: tuple[str, ...]
    units: tuple[ItemPage, ...]
    """Units assigned as a whole (an item, or all texts of a prompt), in an order drawn by seed."""

    @classmethod
    def of(cls, study: Study) -> ItemAssigner:
        """The assignment rules of a study, with its items in an order drawn by its seed."""
        table = study.items().sort("item_id")
        rows = table.filter(~table["is_check"]).select("item_id", "method", "pair").iter_rows()
        items = tuple(AssignedItem(id, method or "", pair or id) for id, method, pair in rows)
        order = make_generator(study.settings.seed, "assignment").permutation(len(items)).tolist()
        units: dict[str, list[str]] = defaultdict(list)
        for item in (items[place] for place in order):
            units[item.pair if study.task.task.layout == "side-by-side" else item.id].append(item.id)
        checks = tuple(table.filter(table["is_check"])["item_id"])
        return cls(study, items, checks, tuple(map(tuple, units.values())))

    @property
    def _terms(self) -> TaskInfo:
        return self.study.task.task

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
        rng = make_generator(self.study.settings.seed, "order", person, len(held))
        # Each person has their own order of units and of the texts inside them.
        units = [units[place] for place in rng.permutation(len(units)).tolist()]
        units = [tuple(unit[place] for place in rng.permutation(len(unit)).tolist()) for unit in units]
        pages = self._with_checks(units, person, held)
        # The list layout joins units into one page and drops those that no longer fit.
        return [tuple(chain(*pages))[: self._terms.page]] if self._terms.layout == "list" else pages

    def count_remaining(self, *, held: Collection[str], load: Mapping[str, int]) -> int:
        """The number of items that could still be assigned to a person."""
        room = self._room(held)
        if self._terms.per_method:
            return sum(len(unit) for unit in self._share(set(held), load, room))
        free = sum(len(unit) for unit in self._open_units(set(held), load))
        return free if room is None else min(free, room)

    def select_wanted(self, items: Collection[str], *, load: Mapping[str, int]) -> set[str]:
        """The items that still need answers, plus the checks among them if there are any such items."""
        needed = self.study.settings.annotators
        lacking = (unit for unit in self.units if min(load.get(item, 0) for item in unit) < needed)
        chosen = {item for unit in lacking for item in unit} & set(items)
        return chosen | (set(self.checks) & set(items)) if chosen else set()

    def _room(self, held: Collection[str]) -> int | None:
        most = self._terms.per_person
        return max(0, most - len(set(held) - set(self.checks))) if most else None

    def _share(self, held: set[str], load: Mapping[str, int], room: int | None) -> list[ItemPage]:
        """The units to assign at once: one page, or a person's whole share if the task sets one."""
        units, page = self._open_units(held, load), self._terms.page
        if self._terms.layout == "side-by-side":
            size = max((len(unit) for unit in units), default=1)
            # A prompt with more texts than a person's share is still assigned whole.
            return units[: 1 if room is None else max(room // size, not held)]
        if self._terms.per_method:
            return self._by_method(units, held)
        return units[: page if room is None else min(page, room)]

    def _open_units(self, held: set[str], load: Mapping[str, int]) -> list[ItemPage]:
        """Units that still need answers and contain nothing this person has seen; started ones first."""
        needed = self.study.settings.annotators
        busy = {unit: min(load.get(item, 0) for item in unit) for unit in self.units}
        free = [unit for unit in self.units if busy[unit] < needed and held.isdisjoint(unit)]
        # The sort is stable, so ties keep the drawn order.
        return sorted(free, key=lambda unit: -busy[unit])

    def _by_method(self, units: Sequence[ItemPage], held: Collection[str]) -> list[ItemPage]:
        """A person's share of texts per method, each from a different prompt as far as possible."""
        known = {item.id: item for item in self.items}
        counts = Counter(known[id].method for id in held if id in known)
        read_pairs = {known[id].pair for id in held if id in known}
        chosen: list[ItemPage] = []
        for method in sorted({item.method for item in self.items}):
            free = [unit for unit in units if known[unit[0]].method == method]
            for _ in range(min(len(free), self._terms.per_method - counts[method])):
                # The first unit of an unread prompt, else the first unit.
                unit = min(free, key=lambda unit: known[unit[0]].pair in read_pairs)
                free.remove(unit)
                read_pairs.add(known[unit[0]].pair)
                chosen.append(unit)
        return chosen

    def _with_checks(self, units: Sequence[ItemPage], person: int, held: Sequence[str]) -> list[ItemPage]:
        """The units with attention checks inserted, one in every ``check_every`` texts."""
        every = self._terms.check_every if self.checks else 0
        seed = self.study.settings.seed
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
