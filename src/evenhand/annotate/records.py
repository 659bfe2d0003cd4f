"""What the formats of other tools have in common: a record an item, and JSON that may hold anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from evenhand.annotate.collected import Collected
from evenhand.annotate.rating_tables import Question
from evenhand.core.digests import Json
from evenhand.stats.scales import number_of

ABOUT: Final = ("prompt", "group", "method", "text_id", "pair")
"""What goes along with a text."""
TEXT: Final = "text"


def by_item(collected: Collected) -> Iterator[tuple[dict[str, Json], list[dict[str, Json]]]]:
    """Every item's first row, and all of its rows."""
    for part in collected.rows.partition_by("item_id", maintain_order=True):
        rows = part.to_dicts()
        yield rows[0], rows


def about(row: Mapping[str, Json]) -> dict[str, Json]:
    """What is known of an item beside its text."""
    return {key: row[key] for key in ABOUT if row[key] is not None}


def is_numeric(question: Question) -> bool:
    """Whether answers are stars: whole numbers from 1."""
    numbers = [number_of(label) for label in question.scale.labels]
    return all(number is not None and number >= 1 and number == int(number) for number in numbers)


def objects(value: Json) -> list[Mapping[str, Json]]:
    """The objects of a list; empty for anything else."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def string(value: Json) -> str | None:
    """A plain value as text."""
    return None if value is None or isinstance(value, dict | list) else str(value)
