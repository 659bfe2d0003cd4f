"""Who is shown what: everybody something new, every item enough people, no plan that needs them to come."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.annotate.study_parts import make_study

from evenhand.annotate.annotation_service import ItemAssigner
from evenhand.annotate.study import Study


class Room:
    """People at their desks, without a database: whoever is handed a page answers it at once."""

    def __init__(self, study: Study) -> None:
        self.rules = ItemAssigner(study)
        self.held: dict[int, list[str]] = {}
        self.pages: dict[int, list[tuple[str, ...]]] = {}

    def ask(self, person: int) -> bool:
        held = self.held.setdefault(person, [])
        load = Counter(item for other in self.held.values() for item in other)
        new = self.rules.next_pages(person=person, held=held, load=load)
        held += [item for page in new for item in page]
        self.pages.setdefault(person, []).extend(new)
        return bool(new)

    @property
    def counts(self) -> Counter[str]:
        checks = set(self.rules.checks)
        return Counter(item for held in self.held.values() for item in held if item not in checks)


def test_every_item_reaches_its_number_of_people(tmp_path: Path) -> None:
    room = Room(make_study(tmp_path / "s", items=25, annotators=3))
    while any(room.ask(person) for person in range(1, 6)):
        pass
    assert set(room.counts.values()) == {3}
    assert len(room.counts) == 25
    assert all(len(held) == len(set(held)) for held in room.held.values())


@settings(max_examples=20, deadline=None)
@given(visits=st.lists(st.integers(1, 6), max_size=40), seed=st.integers(0, 3))
def test_whoever_comes_whenever(tmp_path_factory, visits: list[int], seed: int) -> None:
    study = make_study(tmp_path_factory.mktemp("s") / "s", items=23, annotators=3, seed=seed)
    room = Room(study)
    for person in visits:
        room.ask(person)
    assert all(count <= 3 for count in room.counts.values())
    assert all(len(held) == len(set(held)) for held in room.held.values())
    assert all(len(page) <= 10 for pages in room.pages.values() for page in pages)
    # Three people who stay are always enough, whoever went before.
    while any(room.ask(person) for person in (7, 8, 9)):
        pass
    assert set(room.counts.values()) == {3}


def test_the_same_visits_give_the_same_pages(tmp_path: Path) -> None:
    rooms = [Room(make_study(tmp_path / name, items=30)) for name in "ab"]
    for room in rooms:
        for person in (1, 2, 1, 3, 2):
            room.ask(person)
    assert rooms[0].pages == rooms[1].pages
    other = Room(make_study(tmp_path / "c", items=30, seed=1))
    other.ask(1)
    assert other.pages[1] != rooms[0].pages[1][:1]


def test_begun_items_are_finished_first(tmp_path: Path) -> None:
    room = Room(make_study(tmp_path / "s", items=40, checks=False))
    for person in (1, 2, 3):
        room.ask(person)
    # All three got the same ten, each in another order: ten finished items, and not thirty begun ones.
    assert len(room.counts) == 10
    assert len({room.pages[person][0] for person in (1, 2, 3)}) == 3


def test_a_page_of_ten_has_its_check_among_them(tmp_path: Path) -> None:
    room = Room(make_study(tmp_path / "s", items=60))
    checks = set(room.rules.checks)
    for _ in range(6):
        room.ask(1)
    pages = room.pages[1]
    assert {len(page) for page in pages} == {10}
    # One in every twenty texts.
    found = [place for place, item in enumerate(room.held[1]) if item in checks]
    assert [place // 20 for place in found] == [0, 1, 2]
    room.ask(2)
    places = {place for place, item in enumerate(room.held[2]) if item in checks}
    assert places != set(found[:1])


def test_likert_gives_eight_two_a_method_of_eight_prompts(tmp_path: Path) -> None:
    methods = ("base", "cls", "emb", "glove")
    study = make_study(tmp_path / "s", task="likert", items=10, methods=methods)
    room = Room(study)
    assert room.ask(1)
    assert not room.ask(1)
    rules = room.rules
    assert {len(page) for page in room.pages[1]} == {1}
    real = [item for item in room.held[1] if item in rules.pairs]
    assert Counter(rules.methods[item] for item in real) == dict.fromkeys(methods, 2)
    assert len({rules.pairs[item] for item in real}) == 8
    assert len(room.held[1]) == 9  # and one check
    room.ask(2)
    orders = [[rules.methods.get(item) for item in room.held[person]] for person in (1, 2)]
    assert orders[0] != orders[1]


def test_side_by_side_keeps_a_prompt_together(tmp_path: Path) -> None:
    methods = ("base", "cls", "emb", "glove")
    study = make_study(tmp_path / "s", task="likert", items=5, methods=methods, layout="side-by-side")
    room = Room(study)
    room.ask(1)
    rules = room.rules
    whole = [page for page in room.pages[1] if page[0] in rules.pairs]
    assert [len(page) for page in whole] == [4, 4]
    assert all(len({rules.pairs[item] for item in page}) == 1 for page in whole)
    assert not room.ask(1)
    for person in range(2, 8):
        room.ask(person)
    # No method has a place of its own: in seven people's pages each stands first somewhere.
    pages = [page for pages in room.pages.values() for page in pages if len(page) == 4]
    assert {rules.methods[page[0]] for page in pages} == set(methods)


def test_side_by_side_with_more_methods_than_a_share(tmp_path: Path) -> None:
    methods = tuple(f"m{number}" for number in range(9))  # a likert share is eight texts
    study = make_study(tmp_path / "s", task="likert", items=2, methods=methods, layout="side-by-side")
    room = Room(study)
    assert room.ask(1)
    assert [len(page) for page in room.pages[1] if len(page) > 1] == [9]
    assert not room.ask(1)


def test_what_is_left_is_counted(tmp_path: Path) -> None:
    rules = ItemAssigner(make_study(tmp_path / "s", items=5, annotators=2, checks=False))
    ids = list(rules.pairs)
    assert rules.count_remaining(held=[], load={}) == 5
    assert rules.count_remaining(held=ids[:2], load={ids[0]: 1, ids[4]: 2}) == 2
