"""The scales on which people label texts, by the names of their labels, and what else those are called."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Scale:
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

    def sorted(self) -> Scale:
        """The same, lowest first, labels without a place last."""
        places = sorted(self.places.items(), key=lambda pair: (pair[1] is None, pair[1] or 0.0))
        return replace(self, places=dict(places))

    def label_of(self, said: str) -> str | None:
        """Our label for what was said, whatever its case and white space; None where it is not on the scale.

        >>> POLARITY.label_of(" Positive"), POLARITY.label_of("opposing sides"), POLARITY.label_of("angry")
        ('positive', 'opposing', None)
        """
        plain = plain_label(said)
        return plain if plain in self.places else self.aliases.get(plain)


POLARITY: Final = Scale(
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
GENDER: Final = Scale("gender", {"male": -1.0, "neutral": 0.0, "female": 1.0})
TOXICITY: Final = Scale(
    "toxicity",
    {"nontoxic": 0.0, "toxic": 1.0},
    dict.fromkeys(("not toxic", "non-toxic", "neutral"), "nontoxic"),
)
IDEOLOGY: Final = Scale(
    "ideology", {"liberal": 0.0, "conservative": 1.0}, {"left": "liberal", "right": "conservative"}
)
PRESENCE: Final = Scale("presence", {"absent": 0.0, "present": 1.0})
YES_NO: Final = Scale("yes or no", {"no": 0.0, "yes": 1.0}, {"false": "no", "true": "yes"})
KNOWN: Final = (POLARITY, GENDER, TOXICITY, IDEOLOGY, PRESENCE, YES_NO)


def plain_label(said: str) -> str:
    """A label without what writing adds: white space, case, and the ``.0`` of a number read as a fraction.

    >>> plain_label(" Positive "), plain_label("-1.0")
    ('positive', '-1')
    """
    return " ".join(said.split()).casefold().removesuffix(".0")


def number_of(label: str) -> float | None:
    """The number a label is, or None."""
    try:
        found = float(label)
    except ValueError:
        return None
    return found if abs(found) < float("inf") else None


def scale_of(labels: Collection[str]) -> Scale:
    """The scale that plain labels are on: numbers, a known one, or one without order.

    A known scale is taken where two of its labels or more are used and make up half of all, so that a
    misspelt label is found by not being on it.
    """
    numbers = {label: number_of(label) for label in labels}
    if all(number is not None for number in numbers.values()):
        return Scale("numbers", dict(sorted(numbers.items(), key=lambda pair: (pair[1] or 0.0, pair[0]))))
    best = max(KNOWN, key=lambda scale: len(_on(scale, labels)))
    found = _on(best, labels)
    if len(found) >= 2 and 2 * len(found) >= len(labels):
        return best
    return Scale("labels", dict.fromkeys(sorted(labels)))


def _on(scale: Scale, labels: Collection[str]) -> list[str]:
    return [label for label in labels if scale.label_of(label) is not None]
