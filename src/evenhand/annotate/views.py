"""What a page shows, made ready for the templates: no template sees a group, a method or a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenhand.annotate.answers import Latest
from evenhand.annotate.assignment import Page
from evenhand.annotate.study import Study


class Shown(NamedTuple):
    """An item as its reader sees it."""

    prompt: str
    """The underlined beginning; empty where it is not set apart."""
    rest: str


@dataclass(frozen=True, slots=True)
class Card:
    """An item on a page, with what its reader has answered."""

    item_id: str
    number: int
    shown: Shown
    given: Mapping[str, str]
    """Question to label."""


@dataclass(frozen=True, slots=True)
class Work:
    """One page of work."""

    cards: tuple[Card, ...]
    page: int
    """From 0."""
    pages: int
    answered: int
    """Items this person has answered on all pages."""
    total: int
    """Those, the ones they hold, and what is left for them."""

    @property
    def percent(self) -> int:
        """How far the person is, in whole percent."""
        return 100 * self.answered // self.total if self.total else 100


def shown_texts(study: Study) -> dict[str, Shown]:
    """Item to what is shown of it; the prompt is set apart where the layout underlines it."""
    underlined = study.task.task.layout != "list"
    rows = study.items().select("item_id", "text", "prompt").iter_rows()
    return {item: _shown(text, prompt if underlined else None) for item, text, prompt in rows}


def work(
    pages: Sequence[Page],
    *,
    number: int,
    texts: Mapping[str, Shown],
    given: Sequence[Latest],
    questions: int,
    left: int,
) -> Work:
    """One of a person's pages with their answers on it."""
    said: dict[str, dict[str, str]] = {}
    for answer in given:
        said.setdefault(answer.item_id, {})[answer.question] = answer.label
    before = sum(len(page) for page in pages[:number])
    cards = tuple(
        Card(item, before + place, texts[item], said.get(item, {}))
        for place, item in enumerate(pages[number], start=1)
    )
    held = [item for page in pages for item in page]
    answered = sum(len(said.get(item, ())) == questions for item in held)
    return Work(cards, number, len(pages), answered, len(held) + left)


def first_unfinished(pages: Sequence[Page], given: Sequence[Latest], questions: int) -> int | None:
    """The first page with something to answer; None where all is answered."""
    counts: dict[str, int] = {}
    for answer in given:
        counts[answer.item_id] = counts.get(answer.item_id, 0) + 1
    for number, page in enumerate(pages):
        if any(counts.get(item, 0) < questions for item in page):
            return number
    return None


def _shown(text: str, prompt: str | None) -> Shown:
    if prompt and text.startswith(prompt):
        return Shown(prompt, text.removeprefix(prompt))
    return Shown("", text)
