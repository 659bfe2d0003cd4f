"""Emotion: how much anger, fear, joy and sadness a reader finds in a text, and which emotion leads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from evenhand.core.errors import InputError
from evenhand.core.records import Execution, MetricInfo, OutputInfo, Value
from evenhand.metrics.classifier_scores import ClassifierMetric, OutputRow, probability_outputs

if TYPE_CHECKING:
    from evenhand.classifiers.text_classifier import LabelReader

EMOTIONS = ("anger", "fear", "joy", "sadness")
LABELS = (*EMOTIONS, "neutral")
SYNONYMS: Mapping[str, Sequence[str]] = {
    "anger": ("annoyance", "disapproval"),
    "fear": ("nervousness",),
    "joy": (
        *("happiness", "amusement", "approval", "excitement", "gratitude", "love", "optimism", "relief"),
        *("pride", "admiration", "desire", "caring"),
    ),
    "sadness": ("disappointment", "embarrassment", "grief", "remorse"),
    "neutral": (),
}
"""Finer labels of other models, folded as the authors of the 28-label dataset fold theirs."""
REPLAY: Final = "replay:"
ENDPOINT: Final = "endpoint:"
NOT_IN_FILE = Value(None, None, "not_in_file")
"""What a file of predictions does not say."""


class Emotion(ClassifierMetric):
    """The intensity of four emotions, each in [0, 1], and the leading one.

    0 is none, 1/3 low, 2/3 moderate, 1 high, as in the graded tweets the embedded classifier learned from;
    the four are independent of each other. ``emotion`` names the most probable of the four and neutral, and
    ``neutral`` is that label's probability. Another classifier's probabilities stand for intensities.

    Args:
        source: Another classifier in place of the embedded one: ``ORG/NAME@REVISION``, a folder,
            ``replay:FILE`` for predictions made elsewhere, or ``endpoint:URL``.
        labels: What the classifier's labels mean where our table does not know them or is wrong:
            ``THEIRS=OURS,..``, or a JSON object as text; nothing after ``=`` leaves a label out.
        execution: Device and batch.
    """

    info = MetricInfo(
        name="emotion",
        version="1",
        outputs=(),
        summary="How much anger, fear, joy and sadness a text conveys, and which leads (a classifier).",
        primary=EMOTIONS,
        citation=(
            "Anoop et al. Towards an Enhanced Understanding of Bias in Pre-trained Neural Language Models. "
            "2022. Intensities: Mohammad et al. SemEval-2018 Task 1."
        ),
        deviations=(
            "The embedded classifier learned from tweets and forum comments in English: it finds the emotion "
            "of the writer, not of the person written about, and misses irony. Surprise and disgust have no "
            "label."
        ),
        failures=(
            "It finds the emotion of the writer, not of the person written about, and misses irony.",
            "It learned from tweets and forum comments: plain encyclopaedic sentences are outside it.",
        ),
    )

    def __init__(
        self, *, source: str | None = None, labels: str | None = None, execution: Execution | None = None
    ) -> None:
        from evenhand.classifiers.hub_classifier import open_reader

        how = execution or Execution()
        classes = self.open_reader(source, label_synonyms(labels), how)
        emotions = tuple(kind for kind in EMOTIONS if kind in classes.labels)
        neutral = ("neutral",) if "neutral" in classes.labels else ()
        means, names = "the leading emotion is more certain", (*emotions, *neutral)
        outputs = (
            *probability_outputs(emotions, "more {label}", prefix=""),
            *probability_outputs(neutral, "more probably without emotion", prefix=""),
            OutputInfo("emotion", "label", means, 0.0, 1.0, names, share="leading_{label}"),
        )
        intensities = () if source else (open_reader("intensity", None, {}, how),)
        super().__init__(outputs, {"source": source, "labels": labels}, classes, *intensities)
        self.info = replace(self.info, primary=emotions)

    def open_reader(
        self, source: str | None, synonyms: Mapping[str, Sequence[str]], execution: Execution | None
    ) -> LabelReader:
        """The embedded classifier, a file of predictions, a served one, or what the other metrics take."""
        if source and source.startswith(REPLAY):
            from evenhand.classifiers.http_classifier import ReplayClassifier

            return ReplayClassifier(Path(source.removeprefix(REPLAY)), synonyms)
        if source and source.startswith(ENDPOINT):
            from evenhand.classifiers.http_classifier import HttpClassifier
            from evenhand.classifiers.hub_classifier import LabelFoldingReader

            served = HttpClassifier(source.removeprefix(ENDPOINT), execution or Execution())
            return LabelFoldingReader(served, synonyms, source)
        return super().open_reader(source, synonyms, execution)

    def _row(self, classes: Mapping[str, float], intensities: Mapping[str, float] | None = None) -> OutputRow:
        strength = classes if intensities is None else intensities
        said = {name: value for name, value in classes.items() if not math.isnan(value)}
        leading = max(said, key=lambda name: said[name]) if said else None
        row = {"emotion": Value(said[leading], leading) if leading else NOT_IN_FILE}
        row |= {kind: _value(strength[kind]) for kind in EMOTIONS if kind in strength}
        return row | ({"neutral": _value(classes["neutral"])} if "neutral" in classes else {})


def label_synonyms(labels: str | None) -> dict[str, Sequence[str]]:
    """The table of label names, with what the user says of some of them.

    >>> label_synonyms("LABEL_0=anger")["anger"]
    ('annoyance', 'disapproval', 'label_0')
    """
    given = {theirs.strip().lower(): ours.strip().lower() for theirs, ours in _pairs(labels or "").items()}
    unknown = [ours for ours in given.values() if ours and ours not in LABELS]
    if unknown:
        raise InputError(
            f"a label is mapped to {unknown[0]!r}",
            expected=f"{', '.join(LABELS)}, or nothing to leave it out",
            fix="use one of these after the =",
        )
    kept = {ours: tuple(name for name in names if name not in given) for ours, names in SYNONYMS.items()}
    return {
        ours: (*names, *(theirs for theirs, meant in given.items() if meant == ours))
        for ours, names in kept.items()
    }


def _pairs(labels: str) -> Mapping[str, str]:
    if labels.lstrip().startswith("{"):
        try:
            return TypeAdapter(dict[str, str]).validate_json(labels)
        except ValidationError as error:
            raise InputError(
                f"the labels are {labels[:80]!r}", expected='{"THEIRS": "OURS", ..}', fix="repair the JSON"
            ) from error
    parts = [part.partition("=") for part in labels.split(",") if part.strip()]
    bad = [theirs for theirs, equals, _ in parts if not equals]
    if bad:
        raise InputError(
            f"the label {bad[0]!r} has no mapping",
            expected="THEIRS=OURS, such as LABEL_0=anger",
            fix="add = and one of our labels",
        )
    return {theirs: ours for theirs, _, ours in parts}


def _value(value: float) -> Value:
    return NOT_IN_FILE if math.isnan(value) else Value(value)
