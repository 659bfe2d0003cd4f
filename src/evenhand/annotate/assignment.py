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
from typing import NamedTuple

from evenhand.annotate.study import Study
from evenhand.core.seeds import generator


class Item(NamedTuple):
    """What assignment needs to know of an item."""

    id: str
    method: str
    pair: str


Page = tuple[str, ...]
"""The ids of the items on one page."""


@dataclass(frozen=True, slots=True)
class Assigner:
    """The rules of one study."""

    study: Study
    items: tuple[Item, ...]
    checks: tuple[str, ...]
    units: tuple[Page, ...]
    """What is handed out as a whole, an item or all texts of a prompt, in an order drawn by seed."""

    @classmethod
    def of(cls, study: Study) -> Assigner:
        """The rules of a study, with its items in an order drawn by its seed."""
        table = study.items()
        rows = table.filter(~table["is_check"]).sort("item_id").select("item_id", "method", "pair")
        items = tuple(Item(id, method or "", pair or id) for id, method, pair in rows.iter_rows())
        checks = tuple(table.filter(table["is_check"]).sort("item_id")["item_id"])
        return cls(study, items, checks, _units(study, items))

    def next_pages(self, *, person: int, held: Sequence[str], load: Mapping[str, int]) -> list[Page]:
        """The pages to hand to somebody who has done all of theirs; none where nothing is left for them.

        Args:
            person: The number of the invitation.
            held: What they were handed before, in order.
            load: For each item how many people answered it, or hold it since a short while.
        """
        units = self._share(set(held), load, self._room(held))
        if not units:
            return []
        rng = generator(self.study.settings.seed, "order", person, len(held))
        # Each person has their own order, of the units and of the texts inside them.
        units = [units[place] for place in rng.permutation(len(units)).tolist()]
        units = [tuple(unit[place] for place in rng.permutation(len(unit)).tolist()) for unit in units]
        return self._paged(self._with_checks(units, person, held))

    def left_for(self, *, held: Collection[str], load: Mapping[str, int]) -> int:
        """How many more items somebody could be handed."""
        room = self._room(held)
        if self.study.task.task.per_method:
            return sum(len(unit) for unit in self._share(set(held), load, room))
        free = sum(len(unit) for unit in self._open(set(held), load))
        return free if room is None else min(free, room)

    def still_wanted(self, items: Collection[str], *, load: Mapping[str, int]) -> set[str]:
        """Those of the items that still need somebody, and the checks among them where any does."""
        wanted = self.study.settings.annotators
        lacking = (unit for unit in self.units if min(load.get(item, 0) for item in unit) < wanted)
        found = {item for unit in lacking for item in unit} & set(items)
        return found | (set(self.checks) & set(items)) if found else set()

    def _room(self, held: Collection[str]) -> int | None:
        most = self.study.task.task.per_person
        return max(0, most - len(set(held) - set(self.checks))) if most else None

    def _share(self, held: set[str], load: Mapping[str, int], room: int | None) -> list[Page]:
        """What to hand out at once: a page, or all of one person's share where there is one."""
        found = self._open(held, load)
        if self.study.task.task.layout == "side-by-side":
            size = max((len(unit) for unit in found), default=1)
            # One prompt with more texts than a person's share is still one prompt to read.
            return found[: 1 if room is None else max(room // size, not held)]
        if self.study.task.task.per_method:
            return self._by_method(found, held)
        page = self.study.task.task.page
        return found[: page if room is None else min(page, room)]

    def _open(self, held: set[str], load: Mapping[str, int]) -> list[Page]:
        """Units that still need somebody and hold nothing this person has seen, the begun ones first."""
        wanted = self.study.settings.annotators
        busy = {unit: min(load.get(item, 0) for item in unit) for unit in self.units}
        free = [unit for unit in self.units if busy[unit] < wanted and held.isdisjoint(unit)]
        # Sorting keeps the drawn order among equals.
        return sorted(free, key=lambda unit: -busy[unit])

    def _by_method(self, found: Sequence[Page], held: Collection[str]) -> list[Page]:
        """As many of each method as one person gets, each of another prompt as far as there are enough."""
        known = {item.id: item for item in self.items}
        taken = Counter(known[id].method for id in held if id in known)
        seen = {known[id].pair for id in held if id in known}
        chosen: list[Page] = []
        for method in sorted({item.method for item in self.items}):
            free = [unit for unit in found if known[unit[0]].method == method]
            for _ in range(self.study.task.task.per_method - taken[method]):
                if not free:
                    break
                pick = min(free, key=lambda unit: (known[unit[0]].pair in seen, free.index(unit)))
                free.remove(pick)
                seen.add(known[pick[0]].pair)
                chosen.append(pick)
        return chosen

    def _with_checks(self, units: Sequence[Page], person: int, held: Sequence[str]) -> list[Page]:
        """The units with checks of attention among them, one in every ``check_every`` texts."""
        every = self.study.task.task.check_every if self.checks else 0
        unseen = [check for check in self._checks_for(person) if check not in held]
        shown = len(self.checks) - len(unseen)
        place = len(held)
        found: list[Page] = []
        for unit in [*units, ()]:
            if every and unseen and place >= shown * every + self._offset(person, shown):
                found.append((unseen.pop(0),))
                shown, place = shown + 1, place + 1
            if unit:
                found.append(unit)
                place += len(unit)
        return found

    def _offset(self, person: int, shown: int) -> int:
        every = self.study.task.task.check_every
        return int(generator(self.study.settings.seed, "check", person, shown).integers(every))

    def _checks_for(self, person: int) -> list[str]:
        order = generator(self.study.settings.seed, "checks", person).permutation(len(self.checks))
        return [self.checks[place] for place in order.tolist()]

    def _paged(self, units: Sequence[Page]) -> list[Page]:
        """A list joins its units into one page, and leaves what no longer fits; else each unit is a page."""
        if self.study.task.task.layout != "list":
            return list(units)
        return [tuple(id for unit in units for id in unit)[: self.study.task.task.page]]


def _units(study: Study, items: Sequence[Item]) -> tuple[Page, ...]:
    order = generator(study.settings.seed, "assignment").permutation(len(items)).tolist()
    together = study.task.task.layout == "side-by-side"
    found: dict[str, list[str]] = defaultdict(list)
    for item in (items[place] for place in order):
        found[item.pair if together else item.id].append(item.id)
    return tuple(tuple(unit) for unit in found.values())
