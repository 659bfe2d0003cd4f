"""Slow, obvious twins: Dawid and Skene's EM over dictionaries, and the best cut by trying every one."""

from __future__ import annotations

from collections.abc import Sequence

Rating = tuple[str, str, str]
"""item, annotator, label."""


def dawid_skene_slowly(
    ratings: Sequence[Rating], labels: Sequence[str], *, smoothing: float, rounds: int
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, dict[str, float]]]]:
    """Probabilities of labels by item, and confusion by annotator, after so many rounds."""
    items = sorted({item for item, _, _ in ratings})
    people = sorted({person for _, person, _ in ratings})
    truth = {item: _shares([label for at, _, label in ratings if at == item], labels) for item in items}
    confusion: dict[str, dict[str, dict[str, float]]] = {}
    for _ in range(rounds):
        prior = {label: sum(truth[item][label] for item in items) / len(items) for label in labels}
        for person in people:
            confusion[person] = {}
            for true in labels:
                counts = dict.fromkeys(labels, smoothing)
                for item, who, said in ratings:
                    if who == person:
                        counts[said] += truth[item][true]
                total = sum(counts.values())
                confusion[person][true] = {said: count / total for said, count in counts.items()}
        for item in items:
            joint = {}
            for true in labels:
                joint[true] = prior[true]
                for at, who, said in ratings:
                    if at == item:
                        joint[true] *= confusion[who][true][said]
            total = sum(joint.values())
            truth[item] = {label: value / total for label, value in joint.items()}
    return truth, confusion


def kappa_slowly(predicted: Sequence[int], human: Sequence[int]) -> float | None:
    """Cohen's kappa by its definition."""
    n = len(human)
    agreeing = sum(a == b for a, b in zip(predicted, human, strict=True)) / n
    chance = sum((predicted.count(k) / n) * (human.count(k) / n) for k in set(predicted) | set(human))
    return None if chance == 1 else (agreeing - chance) / (1 - chance)


def cut_slowly(values: Sequence[float], cut: float, labels: int) -> list[int]:
    """The label of each value at a cut: two labels parted at it, three at minus it and at it."""
    if labels == 2:
        return [int(value >= cut) for value in values]
    return [2 if value >= cut else 0 if value <= -cut else 1 for value in values]


def _shares(given: Sequence[str], labels: Sequence[str]) -> dict[str, float]:
    return {label: given.count(label) / len(given) for label in labels}
