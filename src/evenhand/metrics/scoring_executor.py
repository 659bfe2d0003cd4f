"""Asking a metric for scores, here or elsewhere: a text it fails on costs that text alone."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from evenhand.core.errors import EvenhandError, InputError
from evenhand.core.protocols import Metric
from evenhand.core.records import MetricInfo, Text, Value

Outputs = Mapping[str, Value]
_log = logging.getLogger(__name__)


class ScoredTexts(NamedTuple):
    """What a metric said of some texts."""

    outputs: Sequence[Outputs]
    errors: int = 0
    """Texts on which the metric itself failed."""


class ScoringExecutor(Protocol):
    """Where blocks of texts are scored."""

    def score_blocks(self, spec: str, blocks: Iterable[Sequence[Text]]) -> Iterator[tuple[int, ScoredTexts]]:
        """What the metric says of each block, with the block's place, as they are done."""
        ...


def score_blocks(
    spec: str, metric: Metric, blocks: Iterable[Sequence[Text]]
) -> Iterator[tuple[int, ScoredTexts]]:
    """What a metric of this process says of each block, one after the other."""
    return ((place, score_texts(spec, metric, texts)) for place, texts in enumerate(blocks))


def score_texts(spec: str, metric: Metric, texts: Sequence[Text]) -> ScoredTexts:
    """One mapping a text, in order; a text the metric fails on has nulls with the reason."""
    if not texts:
        return ScoredTexts(())
    try:
        outputs = metric.score(texts)
    except EvenhandError:
        raise
    except Exception as error:  # a plug-in may raise anything: find the texts it fails on
        if len(texts) == 1:
            _log.warning("metric %s failed on a text: %r", spec, error)
            return ScoredTexts([null_outputs(metric.info, f"metric_error: {type(error).__name__}")], 1)
        middle = len(texts) // 2
        first, second = score_texts(spec, metric, texts[:middle]), score_texts(spec, metric, texts[middle:])
        return ScoredTexts([*first.outputs, *second.outputs], first.errors + second.errors)
    if len(outputs) != len(texts):
        raise InputError(
            f"metric {spec!r} gave {len(outputs)} scores for {len(texts)} texts",
            expected="one mapping a text, in order",
            fix="run `evenhand.testing.check_metric` on it",
        )
    return ScoredTexts(outputs)


def null_outputs(info: MetricInfo, reason: str) -> Outputs:
    """Every output without a value, for a reason."""
    return {output.name: Value(None, None, reason) for output in info.outputs}
