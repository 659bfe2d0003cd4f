"""What the metrics behind a classifier share: empty texts are null, all others are read in one go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from evenhand.core.records import MetricInfo, OutputInfo, Text, Value

if TYPE_CHECKING:
    from evenhand.classifiers.text_classifier import LabelReader

OutputRow = Mapping[str, Value]
EMPTY = Value(None, None, "empty")


def score_texts(
    texts: Sequence[Text], info: MetricInfo, row: Callable[..., OutputRow], *readers: LabelReader
) -> list[OutputRow]:
    """For each text its row of values; null with the reason ``empty`` where there is nothing to read.

    Args:
        texts: What is scored.
        info: The metric.
        row: Makes a row of what each reader answers: label to probability.
        readers: The classifiers.
    """
    strings = [text.text for text in texts]
    full = [string for string in strings if string.strip()]
    answers = zip(*(_read(reader, full) for reader in readers), strict=True)
    nothing = dict.fromkeys((output.name for output in info.outputs), EMPTY)
    return [row(*next(answers)) if string.strip() else nothing for string in strings]


def _read(reader: LabelReader, texts: Sequence[str]) -> list[dict[str, float]]:
    return [dict(zip(reader.labels, answer, strict=True)) for answer in reader.read(texts).tolist()]


def probability_outputs(labels: Sequence[str], larger_means: str, prefix: str = "p_") -> list[OutputInfo]:
    """An output in [0, 1] for each label, which stands for ``{label}`` in what larger values mean."""
    return [
        OutputInfo(f"{prefix}{label}", "continuous", larger_means.format(label=label), low=0.0, high=1.0)
        for label in labels
    ]
