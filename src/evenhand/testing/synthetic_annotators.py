"""Synthetic annotators of known accuracy, which agreement and Dawid and Skene's model must recover.

Each synthetic annotator gives the true label with their own probability, else one of the other labels,
chosen uniformly; given the truth, their errors are independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenhand.core.errors import InputError
from evenhand.core.registry import require_library

if TYPE_CHECKING:
    from evenhand.annotate.study import Study


class SyntheticRating(NamedTuple):
    """One synthetic rating."""

    item: str
    annotator: str
    label: str


def simulate_ratings(
    truth: Mapping[str, str],
    accuracies: Mapping[str, float],
    *,
    labels: Sequence[str],
    seed: int = 0,
    missing: float = 0.0,
) -> list[SyntheticRating]:
    """Each annotator's rating of each item; ``missing`` is the share of ratings left out."""
    for name, accuracy in accuracies.items():
        if not 0 <= accuracy <= 1:
            raise InputError(f"the accuracy of {name!r} is {accuracy:g}", expected="a share from 0 to 1")
    place = {label: at for at, label in enumerate(labels)}
    true = np.array([place[label] for label in truth.values()])
    ratings: list[SyntheticRating] = []
    for number, (name, accuracy) in enumerate(accuracies.items()):
        rng = np.random.default_rng([seed, number])
        other = (true + rng.integers(1, len(labels), true.size)) % len(labels)
        codes = np.where(rng.random(true.size) < accuracy, true, other)
        is_given = rng.random(true.size) >= missing
        ratings += [
            SyntheticRating(item, name, labels[code])
            for item, code, keep in zip(truth, codes, is_given, strict=True)
            if keep
        ]
    return ratings


def answer_study(
    study: Study,
    question: str,
    accuracies: Mapping[str, float],
    *,
    seed: int = 0,
    labels: Sequence[str] | None = None,
    database: str | None = None,
) -> dict[str, str]:
    """Answer a study as synthetic annotators would, and return the true label of each item.

    ``labels`` are the ones to use, by default all of the question. True labels cycle over the items, so
    that they are equally frequent; attention checks are answered correctly.
    """
    require_library("sqlalchemy", "an annotation study")
    from evenhand.annotate.database import Database, SubmittedAnswer

    answered = study.task.question(question)
    codes = list(labels or answered.codes)
    items = study.items().filter(~study.items()["is_check"])["item_id"].sort().to_list()
    truth = {item: codes[at % len(codes)] for at, item in enumerate(items)}
    given = simulate_ratings(truth, accuracies, labels=codes, seed=seed)
    with Database(study, database) as db:
        for name in accuracies:
            mine = [SubmittedAnswer(row.item, question, row.label) for row in given if row.annotator == name]
            db.save_answers(name, mine, mark=f"synthetic {seed} {name}")
    return truth
