"""Ratings of several methods by the same people: means, and each method against a baseline over people.

The paired t tests of the political paper's Table 6: a participant's ratings of one method are averaged first,
so that a participant is one witness however many texts they read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats.hypothesis_tests import paired_difference
from evenhand.stats.intervals import clustered_mean
from evenhand.stats.results import Difference


@dataclass(frozen=True, slots=True)
class MethodRating:
    """One method's mean over participants, and its difference from the baseline."""

    method: str
    mean: Estimate
    """n counts participants."""
    difference: Difference | None
    """Method minus baseline over the participants who rated both; null for the baseline itself."""
    ratings: int


def compare_methods(
    participants: Sequence[str],
    methods: Sequence[str],
    ratings: Sequence[float],
    *,
    baseline: str,
    level: float = 0.95,
) -> list[MethodRating]:
    """The mean rating of every method with a t interval, and its paired difference from ``baseline``.

    Methods are in the order of their first rating, the baseline first.
    """
    if len({len(participants), len(methods), len(ratings)}) > 1:
        raise InputError(
            f"{len(ratings)} ratings came with {len(participants)} participants and {len(methods)} methods",
            expected="one of each a rating",
        )
    by_method: dict[str, dict[str, list[float]]] = {baseline: defaultdict(list)}
    for person, method, rating in zip(participants, methods, ratings, strict=True):
        by_method.setdefault(method, defaultdict(list))[person].append(float(rating))
    if not by_method[baseline]:
        raise InputError(
            f"nobody rated the baseline {baseline!r}",
            expected=", ".join(sorted(set(methods))) or "a rating or more",
            fix="name another baseline",
        )
    means = {
        method: {person: float(np.mean(given)) for person, given in sorted(people.items())}
        for method, people in by_method.items()
    }
    return [
        MethodRating(
            method,
            clustered_mean(list(own.values()), level=level),
            None if method == baseline else _paired_difference(own, means[baseline], level),
            sum(map(len, by_method[method].values())),
        )
        for method, own in means.items()
    ]


def _paired_difference(own: Mapping[str, float], other: Mapping[str, float], level: float) -> Difference:
    both = [person for person in own if person in other]
    return paired_difference(
        [own[person] for person in both], [other[person] for person in both], level=level
    )
