"""Synthetic annotators of known accuracy: what agreement and Dawid and Skene's model must find again.

A synthetic annotator names the true label with a probability of their own, and else one of the other labels,
all alike; given the truth they err independently. What follows for agreement is in `expected_agreement`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenhand.core.errors import InputError

if TYPE_CHECKING:
    from evenhand.annotate.study import Study


class SyntheticRating(NamedTuple):
    """One synthetic rating."""

    item: str
    annotator: str
    label: str


@dataclass(frozen=True, slots=True)
class ExpectedAgreement:
    """What synthetic annotators give in the long run, if true labels are equally frequent."""

    agreement: float
    """Share of equal labels over all pairs of annotators."""
    kappa: float
    """Fleiss' kappa, and Krippendorff's nominal alpha of many texts."""


def simulate_ratings(
    truth: Mapping[str, str],
    accuracies: Mapping[str, float],
    *,
    labels: Sequence[str],
    seed: int = 0,
    missing: float = 0.0,
) -> list[SyntheticRating]:
    """What each annotator says of each item; ``missing`` is the share of answers that are not given."""
    for name, accuracy in accuracies.items():
        if not 0 <= accuracy <= 1:
            raise InputError(f"the accuracy of {name!r} is {accuracy:g}", expected="a share from 0 to 1")
    place = {label: at for at, label in enumerate(labels)}
    true = np.array([place[label] for label in truth.values()])
    ratings: list[SyntheticRating] = []
    for number, (name, accuracy) in enumerate(accuracies.items()):
        rng = np.random.default_rng([seed, number])
        other = (true + rng.integers(1, len(labels), true.size)) % len(labels)
        said = np.where(rng.random(true.size) < accuracy, true, other)
        given = rng.random(true.size) >= missing
        ratings += [
            SyntheticRating(item, name, labels[code])
            for item, code, keep in zip(truth, said, given, strict=True)
            if keep
        ]
    return ratings


def expected_agreement(accuracies: Sequence[float], labels: int) -> ExpectedAgreement:
    """The agreement and kappa that annotators of these accuracies have.

    Two agree if both are right, or both wrong in the same of the other labels:
    ``p q + (1 - p) (1 - q) / (labels - 1)``. Labels are then equally frequent, so chance agrees in one of
    ``labels``.

    >>> expected_agreement([1.0, 0.5], 2)
    ExpectedAgreement(agreement=0.5, kappa=0.0)
    """
    pairs = [p * q + (1 - p) * (1 - q) / (labels - 1) for p, q in combinations(accuracies, 2)]
    agreement = sum(pairs) / len(pairs)
    return ExpectedAgreement(agreement, (agreement - 1 / labels) / (1 - 1 / labels))


def answer_study(
    study: Study,
    question: str,
    accuracies: Mapping[str, float],
    *,
    seed: int = 0,
    labels: Sequence[str] | None = None,
    database: str | None = None,
) -> dict[str, str]:
    """Answers a study as synthetic annotators do, and returns the truth they were given, by item.

    ``labels`` are those that occur, by default all of the question. True labels go round the items, so that
    they are equally frequent; checks of attention are answered rightly.
    """
    from evenhand.annotate.answer_log import SubmittedAnswer, save_answers
    from evenhand.annotate.database import Database

    asked = study.task.question(question)
    known = list(labels or asked.codes)
    items = study.items().filter(~study.items()["is_check"])["item_id"].sort().to_list()
    truth = {item: known[at % len(known)] for at, item in enumerate(items)}
    given = simulate_ratings(truth, accuracies, labels=known, seed=seed)
    with Database(study, database) as db:
        for name in accuracies:
            mine = [SubmittedAnswer(row.item, question, row.label) for row in given if row.annotator == name]
            save_answers(db, name, mine, mark=f"synthetic {seed} {name}")
    return truth
