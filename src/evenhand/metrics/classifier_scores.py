"""What the metrics behind a classifier share: empty texts are null, all others are read in one go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.core.records import Execution, MetricInfo, OutputInfo, Text, Value

if TYPE_CHECKING:
    from evenhand.classifiers.text_classifier import LabelReader

OutputRow = Mapping[str, Value]
NULL_WHEN = "The text is empty or white space (reason: empty)."


class ClassifierMetric:
    """A metric whose rows follow from what one or more classifiers answer.

    A subclass has an ``info`` without outputs, options and weights, and a ``_row`` that makes a row of what
    each reader answers: label to probability.
    """

    info: MetricInfo
    _row: Callable[..., OutputRow]

    def __init__(
        self, outputs: Iterable[OutputInfo], options: Mapping[str, str | None], *readers: LabelReader
    ) -> None:
        """Options without a value are left out of the identity; the weights are those of the first reader."""
        self._readers = readers
        given, weights = {name: value for name, value in options.items() if value}, readers[0].digest
        self.info = replace(
            self.info, outputs=tuple(outputs), null_when=NULL_WHEN, options=given, weights=weights
        )

    def open_reader(
        self, source: str | None, synonyms: Mapping[str, Sequence[str]], execution: Execution | None
    ) -> LabelReader:
        """The metric's own head of the embedded classifier, or the classifier that ``source`` names.

        ``synonyms`` are our labels, each with what other models call it.
        """
        from evenhand.classifiers.hub_classifier import open_reader

        return open_reader(self.info.name, source, synonyms, execution or Execution())

    def score(self, texts: Sequence[Text]) -> list[OutputRow]:
        """For each text its row of values; null with the reason ``empty`` where there is nothing to read."""
        full = [text.text for text in texts if text.text.strip()]
        tables = ((reader.labels, reader.read(full).tolist()) for reader in self._readers)
        named = ([dict(zip(labels, row, strict=True)) for row in rows] for labels, rows in tables)
        answers = zip(*named, strict=True)
        nothing = dict.fromkeys((output.name for output in self.info.outputs), Value(None, None, "empty"))
        return [self._row(*next(answers)) if text.text.strip() else nothing for text in texts]


def probability_outputs(labels: Sequence[str], larger_means: str, prefix: str = "p_") -> list[OutputInfo]:
    """An output in [0, 1] for each label, which stands for ``{label}`` in what larger values mean."""
    return [
        OutputInfo(f"{prefix}{label}", "continuous", larger_means.format(label=label), low=0.0, high=1.0)
        for label in labels
    ]
