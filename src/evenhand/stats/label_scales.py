"""The scales on which people label texts, by the names of their labels, and what else those are called."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from evenhand.core.errors import InputError
from evenhand.stats._arrays import Floats, Ints, check_lengths, cross_tabulate


@dataclass(frozen=True, slots=True)
class LabelScale:
    """Labels, lowest first, each with its place in order, or None where it has none."""

    name: str
    places: Mapping[str, float | None]
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other spellings, lower-case, to ours."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, lowest first, those without a place last."""
        return tuple(self.places)

    @property
    def is_ordered(self) -> bool:
        """Whether two labels or more stand at different places."""
        return len({place for place in self.places.values() if place is not None}) > 1

    def sort(self) -> LabelScale:
        """The same, lowest first, labels without a place last."""
        places = sorted(self.places.items(), key=lambda pair: (pair[1] is None, pair[1] or 0.0))
        return replace(self, places=dict(places))

    def label_of(self, said: str) -> str | None:
        """Our label for a given one, ignoring case and white space; None if the scale has none.

        >>> POLARITY.label_of(" Positive"), POLARITY.label_of("opposing sides"), POLARITY.label_of("angry")
        ('positive', 'opposing', None)
        """
        plain = normalise_label(said)
        return plain if plain in self.places else self.aliases.get(plain)


POLARITY: Final = LabelScale(
    "polarity",
    {
        **{"negative": -1.0, "neutral": 0.0, "positive": 1.0},
        # No side, or both: they stand with neutral; the last two stand nowhere (Sheng et al. 2019, A.2).
        **dict.fromkeys(("mixed", "opposing", "sarcasm"), 0.0),
        **dict.fromkeys(("nonsense", "other")),
    },
    {
        "opposing sides": "opposing",
        "mixed (opposing sides)": "opposing",
        "no impact": "neutral",
        "neither": "neutral",
    },
)
GENDER: Final = LabelScale("gender", {"male": -1.0, "neutral": 0.0, "female": 1.0})
TOXICITY: Final = LabelScale(
    "toxicity",
    {"nontoxic": 0.0, "toxic": 1.0},
    dict.fromkeys(("not toxic", "non-toxic", "neutral"), "nontoxic"),
)
IDEOLOGY: Final = LabelScale(
    "ideology", {"liberal": 0.0, "conservative": 1.0}, {"left": "liberal", "right": "conservative"}
)
PRESENCE: Final = LabelScale("presence", {"absent": 0.0, "present": 1.0})
YES_NO: Final = LabelScale("yes or no", {"no": 0.0, "yes": 1.0}, {"false": "no", "true": "yes"})
KNOWN_SCALES: Final = (POLARITY, GENDER, TOXICITY, IDEOLOGY, PRESENCE, YES_NO)


def normalise_label(said: str) -> str:
    """A label without what writing adds: white space, case, and the ``.0`` of a number read as a fraction.

    >>> normalise_label(" Positive "), normalise_label("-1.0")
    ('positive', '-1')
    """
    return " ".join(said.split()).casefold().removesuffix(".0")


def number_or_none(label: str) -> float | None:
    """The number a label is, or None."""
    try:
        number = float(label)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def find_scale(labels: Collection[str]) -> LabelScale:
    """The scale that plain labels are on: numbers, a known one, or one without order.

    A known scale is taken where two of its labels or more are used and make up half of all, so that a
    misspelt label is found by not being on it.
    """
    numbers = {label: number_or_none(label) for label in labels}
    if all(number is not None for number in numbers.values()):
        return LabelScale(
            "numbers", dict(sorted(numbers.items(), key=lambda pair: (pair[1] or 0.0, pair[0])))
        )
    counts = [sum(scale.label_of(label) is not None for label in labels) for scale in KNOWN_SCALES]
    if max(counts) >= 2 and 2 * max(counts) >= len(labels):
        return KNOWN_SCALES[counts.index(max(counts))]
    return LabelScale("labels", dict.fromkeys(sorted(labels)))


@dataclass(frozen=True, slots=True)
class RatingCodes:
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
    ) -> RatingCodes:
        """The ratings of a table in long form; names are sorted, so that the order of rows changes nothing.

        >>> RatingCodes.from_rows(["x", "x"], ["a", "b"], ["no", "yes"]).counts().tolist()
        [[1.0, 1.0]]
        """
        check_lengths("one of each a rating", items=items, annotators=annotators, labels=labels)
        order = tuple(dict.fromkeys(scale)) if scale is not None else tuple(sorted(set(labels)))
        if unknown := sorted(set(labels) - set(order)):
            raise InputError(
                f"the label {unknown[0]!r} is not on the scale",
                expected=", ".join(order),
                fix="correct the label, or add it to the scale",
            )
        names = (tuple(sorted(set(items))), tuple(sorted(set(annotators))), order)
        return cls(*names, *map(_encode, names, (items, annotators, labels)))

    def counts(self) -> Floats:
        """How many ratings of each label an item has: items x labels."""
        return cross_tabulate(self.of_item, self.of_label, (len(self.items), len(self.labels)))


def _encode(names: Sequence[str], given: Sequence[str]) -> Ints:
    place = {name: at for at, name in enumerate(names)}
    return np.array([place[name] for name in given], dtype=np.intp)
