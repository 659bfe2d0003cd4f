"""Labels that several people gave to the same items, as codes: what agreement and consensus are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.core.errors import InputError
from evenhand.stats._arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Ratings:
    """One place a rating in the three arrays, which hold places in the three tuples of names."""

    items: tuple[str, ...]
    annotators: tuple[str, ...]
    labels: tuple[str, ...]
    """The scale, lowest first where it has an order."""
    of_item: Ints
    of_annotator: Ints
    of_label: Ints

    @classmethod
    def from_rows(
        cls,
        items: Sequence[str],
        annotators: Sequence[str],
        labels: Sequence[str],
        *,
        scale: Sequence[str] | None = None,
    ) -> Ratings:
        """The ratings of a table in long form; names are sorted, so that the order of rows changes nothing.

        >>> Ratings.from_rows(["x", "x"], ["a", "b"], ["no", "yes"]).counts().tolist()
        [[1.0, 1.0]]
        """
        if len({len(items), len(annotators), len(labels)}) > 1:
            raise InputError(
                f"{len(items)} items came with {len(annotators)} annotators and {len(labels)} labels",
                accepted="one of each a rating",
            )
        order = tuple(dict.fromkeys(scale)) if scale is not None else tuple(sorted(set(labels)))
        unknown = sorted(set(labels) - set(order))
        if unknown:
            raise InputError(
                f"the label {unknown[0]!r} is not on the scale",
                accepted=", ".join(order),
                todo="correct the label, or add it to the scale",
            )
        item_names, of_item = _coded(items)
        annotator_names, of_annotator = _coded(annotators)
        place = {label: at for at, label in enumerate(order)}
        of_label = np.array([place[label] for label in labels], dtype=np.intp)
        return cls(item_names, annotator_names, order, of_item, of_annotator, of_label)

    def counts(self) -> Floats:
        """How many ratings of each label an item has: items x labels."""
        size = len(self.items) * len(self.labels)
        table = np.bincount(self.of_item * len(self.labels) + self.of_label, minlength=size)
        return table.reshape(len(self.items), len(self.labels)).astype(np.float64)

    def repeated(self) -> list[tuple[str, str]]:
        """The pairs of item and annotator that have two ratings or more."""
        pairs, times = np.unique(self.of_item * len(self.annotators) + self.of_annotator, return_counts=True)
        width = len(self.annotators)
        return [(self.items[pair // width], self.annotators[pair % width]) for pair in pairs[times > 1]]


def _coded(names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    found = tuple(sorted(set(names)))
    place = {name: at for at, name in enumerate(found)}
    return found, np.array([place[name] for name in names], dtype=np.intp)
