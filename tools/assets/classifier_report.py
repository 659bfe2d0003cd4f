"""What stands on the classifiers' cards: how right they are on held-out texts, and how groups move them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evenhand.classifiers.encoder import EMOTION, INTENSITY, REGARD, Head, head_columns
from evenhand.core.files import asset_path
from evenhand.training.labelled_data import Example
from evenhand.training.test_measures import (
    Floats,
    MeasuredValue,
    bootstrap_measure,
    calibration_error,
    macro_f1,
    roc_auc,
)

ROUNDS: Final = 1000
"""Times texts are drawn anew for an interval."""
_PRONOUNS: Mapping[str, tuple[str, str]] = {"he": ("him", "his"), "she": ("her", "her")}


def accuracy(predicted: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """The share of texts with the correct label."""
    return float((predicted == truth).mean())


def pearson(predicted: Floats, truth: Floats) -> float:
    """The linear correlation, -1 to 1."""
    return float(np.corrcoef(predicted, truth)[0, 1])


class Answering(Protocol):
    """A classifier of ours."""

    heads: tuple[Head, ...]

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row a text, the labels of all heads side by side."""
        ...


@dataclass(frozen=True, slots=True)
class Answered:
    """Texts, what people said of them, and what a classifier said."""

    examples: Sequence[Example]
    said: Floats
    heads: tuple[Head, ...]

    @classmethod
    def of(cls, classifier: Answering, examples: Sequence[Example]) -> Answered:
        """The answers of a classifier."""
        said = classifier.probabilities([example.text for example in examples])
        return cls(examples, said.astype(np.float64), classifier.heads)

    def head(self, name: str) -> Floats:
        """The columns of one head."""
        return self.said[:, head_columns(name, self.heads)]

    def truth(self, name: str, label: int) -> Floats:
        """The target of one label; NaN where nobody said."""
        found = [example.targets.get(name, (None,) * (label + 1))[label] for example in self.examples]
        return np.array([np.nan if value is None else value for value in found])

    def classes(self, name: str) -> NDArray[np.int64]:
        """The label people chose; -1 where nobody said."""
        chosen = [example.targets.get(name) for example in self.examples]
        return np.array([-1 if row is None else int(np.argmax([v or 0.0 for v in row])) for row in chosen])


def regard_figures(answers: Answered, *, rounds: int = ROUNDS) -> dict[str, MeasuredValue]:
    """Accuracy with four labels (``other`` by majority only), and among the three of the published data."""
    measure = partial(bootstrap_measure, rounds=rounds)
    said, truth = answers.head("regard"), answers.classes("regard")
    three = said[:, :3].argmax(1)
    four = np.where(said[:, REGARD.labels.index("other")] >= 0.5, 3, three)
    right = said.argmax(1) == truth
    return {
        "accuracy": measure(accuracy, four, truth),
        "accuracy of three labels": measure(accuracy, three, truth),
        "macro-F1 of three labels": measure(macro_f1, three, truth),
        "ECE": measure(calibration_error, said.max(1), right.astype(np.float64)),
    }


def yes_or_no_figures(answers: Answered, head: str, *, rounds: int = ROUNDS) -> dict[str, MeasuredValue]:
    """ROC-AUC, macro-F1 at 0.5 and calibration of a head's first label."""
    measure = partial(bootstrap_measure, rounds=rounds)
    said, truth = answers.head(head)[:, 0], answers.truth(head, 0)
    yes = truth > 0.5
    return {
        "ROC-AUC": measure(roc_auc, said, yes),
        "macro-F1": measure(macro_f1, (said >= 0.5).astype(np.int64), yes.astype(np.int64)),
        "ECE": measure(calibration_error, said, truth),
    }


def emotion_figures(answers: Answered, *, rounds: int = ROUNDS) -> dict[str, MeasuredValue]:
    """Per emotion ROC-AUC of its presence and correlation with its grade; accuracy of the leading emotion.

    The leading emotion, one of four, is asked of tweets in which just one emotion was graded highest; then of
    those that were graded for one emotion only.
    """
    measure = partial(bootstrap_measure, rounds=rounds)
    found: dict[str, MeasuredValue] = {}
    for place, kind in enumerate(INTENSITY.labels):
        truth = answers.truth("intensity", place)
        known = ~np.isnan(truth)
        said, grade = answers.head("intensity")[known, place], truth[known]
        found[f"{kind}: ROC-AUC"] = measure(roc_auc, said, grade > 0)
        found[f"{kind}: Pearson r"] = measure(pearson, said, grade)
        found[f"{kind}: ECE"] = measure(calibration_error, said, grade)
    classes = answers.classes("emotion")
    leading = answers.head("emotion")[:, : len(EMOTION.labels) - 1].argmax(1)
    graded = np.array([_graded(example) for example in answers.examples])
    for name, chosen in (("one leads", classes >= 0), ("one graded", (classes >= 0) & (graded == 1))):
        found[f"accuracy, {name}"] = measure(accuracy, leading[chosen], classes[chosen])
    return found


class Gap(NamedTuple):
    """How much a group moves an answer."""

    axis: str
    group: str
    baseline: str
    output: str
    difference: float
    """Mean over templates of group minus baseline."""
    low: float
    high: float
    largest: float
    """The template moved most, with its sign."""


def group_gaps(classifier: Answering, *, path: Path | None = None) -> list[Gap]:
    """Differences of every answer between two groups in the same sentences, with intervals over templates."""
    data = json.loads((path or asset_path("classifiers", "pairs.json")).read_text(encoding="utf-8"))
    said = {
        name: classifier.probabilities([fill(text, who, pronoun) for text in data["templates"]]).astype(float)
        for name, (who, pronoun) in data["people"].items()
    }
    outputs = [f"{head.name}.{label}" for head in classifier.heads for label in head.labels]
    return [
        gap
        for axis, group, baseline in data["pairs"]
        for gap in _gaps((axis, group, baseline), outputs, said[group] - said[baseline])
    ]


def fill(template: str, who: str, pronoun: str) -> str:
    """The template about a person.

    >>> fill("{Who} lost {their} hat.", "the man", "he")
    'The man lost his hat.'
    """
    them, their = _PRONOUNS[pronoun]
    return template.format(who=who, Who=who[0].upper() + who[1:], they=pronoun, them=them, their=their)


def _gaps(place: tuple[str, str, str], outputs: Sequence[str], differences: Floats) -> Iterator[Gap]:
    templates = len(differences)
    drawn = np.random.default_rng(0).integers(0, templates, (ROUNDS, templates))
    low, high = np.quantile(differences[drawn].mean(1), [0.025, 0.975], axis=0)
    largest = differences[np.abs(differences).argmax(0), np.arange(len(outputs))]
    for column, output in enumerate(outputs):
        mean = float(differences[:, column].mean())
        yield Gap(*place, output, mean, float(low[column]), float(high[column]), float(largest[column]))


def _graded(example: Example) -> int:
    return sum(value is not None for value in example.targets.get("intensity", ()))
