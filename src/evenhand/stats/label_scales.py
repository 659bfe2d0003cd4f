"""The scales on which people label texts: the labels in order, and other spellings of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from evenhand.core.errors import InputError
from evenhand.stats._arrays import Floats, Ints, check_lengths, cross_tabulate


@dataclass(frozen=True, slots=True)
class LabelScale:
    """Labels in ascending order, each with its position, or None where it has no position."""

    name: str
    places: Mapping[str, float | None]
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other spellings, in lower case, mapped to our labels."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in ascending order; those without a position come last."""
        return tuple(self.places)

    @property
    def is_ordered(self) -> bool:
        """Whether at least two labels have different positions."""
        return len({place for place in self.places.values() if place is not None}) > 1

    def sort(self) -> LabelScale:
        """The same scale in ascending order; labels without a position come last."""
        places = sorted(self.places.items(), key=lambda pair: (pair[1] is None, pair[1] or 0.0))
        return replace(self, places=dict(places))

    def label_of(self, spelling: str) -> str | None:
        """Our label for a given spelling, ignoring case and white space; None if the scale has none.

        >>> POLARITY.label_of(" Positive"), POLARITY.label_of("opposing sides"), POLARITY.label_of("angry")
        ('positive', 'opposing', None)
        """
        plain = normalise_label(spelling)
        return plain if plain in self.places else self.aliases.get(plain)


POLARITY: Final = LabelScale(
    "polarity",
    {
        **{"negative": -1.0, "neutral": 0.0, "positive": 1.0},
        # No side, or both: the position of neutral; the last two have no position (Sheng et al. 2019, A.2).
        **dict.fromkeys(("mixed", "opposing", "sarcasm"), 0.0),
        **dict.fromkeys(("nonsense", "other")),
    },
    {
        **dict.fromkeys(("opposing sides", "mixed (opposing sides)"), "opposing"),
        **dict.fromkeys(("no impact", "neither"), "neutral"),
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


def normalise_label(label: str) -> str:
    """A label in lower case, without extra white space or the ``.0`` of a number read as a float.

    >>> normalise_label(" Positive "), normalise_label("-1.0")
    ('positive', '-1')
    """
    return " ".join(label.split()).casefold().removesuffix(".0")


def number_or_none(label: str) -> float | None:
    """The label as a finite number, or None."""
    try:
        number = float(label)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def find_scale(labels: Collection[str]) -> LabelScale:
    """The scale that normalised labels belong to: numbers, a known scale, or one without order.

    A known scale is chosen if at least two of its labels are used and they make up at least half of all
    labels, so that a misspelt label is reported as not being on the scale.
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
    """Ratings as three arrays with one entry per rating, each an index into a tuple of names."""

    items: tuple[str, ...]
    annotators: tuple[str, ...]
    labels: tuple[str, ...]
    """The scale, in ascending order where it has an order."""
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
        """The ratings of a table in long form; names are sorted, so the order of rows does not matter.

        >>> RatingCodes.from_rows(["x", "x"], ["a", "b"], ["no", "yes"]).counts().tolist()
        [[1.0, 1.0]]
        """
        check_lengths("one of each per rating", items=items, annotators=annotators, labels=labels)
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
        """The number of ratings of each label for each item: items x labels."""
        return cross_tabulate(self.of_item, self.of_label, (len(self.items), len(self.labels)))


def _encode(names: Sequence[str], values: Sequence[str]) -> Ints:
    index = {name: position for position, name in enumerate(names)}
    return np.array([index[value] for value in values], dtype=np.intp)
