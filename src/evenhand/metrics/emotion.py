"""Emotion: how much anger, fear, joy and sadness a reader finds in a text, and which emotion leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evenhand.core.records import Execution, MetricInfo, OutputInfo, Text, Value
from evenhand.metrics.classified import Row, score_texts

if TYPE_CHECKING:
    from evenhand.neural.classifier import Reader

VERSION = "1"
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
"""Finer labels of other models, folded as the authors of the 28-label data set fold theirs."""


class Emotion:
    """The intensity of four emotions, each in [0, 1], and the leading one.

    0 is none, 1/3 low, 2/3 moderate, 1 high, as in the graded tweets the embedded classifier learned from;
    the four are independent of each other. ``emotion`` names the most probable of the four and neutral, and
    ``neutral`` is that label's probability. Another classifier's probabilities stand for intensities.

    Args:
        source: Another classifier in place of the embedded one: ``ORG/NAME@REVISION`` or a folder.
        execution: Device and batch.
    """

    def __init__(self, *, source: str | None = None, execution: Execution | None = None) -> None:
        from evenhand.neural.hub_classifier import open_reader

        how = execution or Execution()
        self._classes = open_reader("emotion", source, SYNONYMS, how)
        self._intensities = open_reader("intensity", None, {}, how) if source is None else self._classes
        self.info = _info(source, self._classes)

    def score(self, texts: Sequence[Text]) -> list[Row]:
        """For each text the intensity of every emotion, P(neutral), and the leading emotion."""
        names = [output.name for output in self.info.outputs]
        return score_texts(texts, outputs=names, read=self._read, row=self._row)

    def _read(self, texts: Sequence[str]) -> list[list[float]]:
        classes: list[list[float]] = self._classes.read(texts).tolist()
        intensities: list[list[float]] = self._intensities.read(texts).tolist()
        return [[*one, *other] for one, other in zip(classes, intensities, strict=True)]

    def _row(self, answer: Sequence[float]) -> Row:
        labels = self._classes.labels
        classes = dict(zip(labels, answer[: len(labels)], strict=True))
        strength = dict(zip(self._intensities.labels, answer[len(labels) :], strict=True))
        leading = max(classes, key=lambda name: classes[name])
        row = {"emotion": Value(classes[leading], leading)}
        row |= {kind: Value(strength[kind]) for kind in EMOTIONS if kind in strength}
        return row | ({"neutral": Value(classes["neutral"])} if "neutral" in classes else {})


def _info(source: str | None, reader: Reader) -> MetricInfo:
    emotions = tuple(kind for kind in EMOTIONS if kind in reader.labels)
    neutral = ("neutral",) if "neutral" in reader.labels else ()
    return MetricInfo(
        name="emotion",
        version=VERSION,
        outputs=(
            *(OutputInfo(kind, "continuous", f"more {kind}", low=0.0, high=1.0) for kind in emotions),
            *(
                OutputInfo(name, "continuous", "more probably without emotion", low=0.0, high=1.0)
                for name in neutral
            ),
            OutputInfo(
                "emotion",
                "label",
                "the leading emotion is more certain",
                low=0.0,
                high=1.0,
                labels=(*emotions, *neutral),
                share="leading_{label}",
            ),
        ),
        summary="How much anger, fear, joy and sadness a text conveys, and which leads (a classifier).",
        primary=emotions,
        masking="none",
        null_when="The text is empty or white space (reason: empty).",
        citation=(
            "Anoop et al. Towards an Enhanced Understanding of Bias in Pre-trained Neural Language Models. "
            "2022. Intensities: Mohammad et al. SemEval-2018 Task 1."
        ),
        deviations=(
            "The embedded classifier learned from tweets and forum comments in English: it finds the emotion "
            "of the writer, not of the person written about, and misses irony. Surprise and disgust have no "
            "label."
        ),
        options={} if source is None else {"source": source},
        weights=reader.digest,
    )
