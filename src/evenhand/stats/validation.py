"""How well a metric's labels agree with people's: accuracy, precision, recall and F1, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import Floats, RandomSource, checked_level
from evenhand.stats.results import NO_VALUES

_METHOD = "bootstrap (percentile)"


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """Agreement on one label; what a label nobody predicts or nobody gives lacks is null."""

    label: str
    precision: Estimate
    """Of the texts the metric gives the label, the share people give it too."""
    recall: Estimate
    """Of the texts people give the label, the share the metric finds."""
    f1: Estimate


@dataclass(frozen=True, slots=True)
class Validation:
    """Agreement over all labels; precision, recall and F1 are weighted by how often people give a label."""

    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Rows: what people say; columns: what the metric says."""
    accuracy: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate
    by_label: tuple[LabelAgreement, ...]


def validate_labels(
    predicted: Sequence[str],
    human: Sequence[str],
    *,
    labels: Sequence[str],
    rng: RandomSource,
    resamples: int = 2_000,
    level: float = 0.95,
) -> Validation:
    """How far predicted labels are people's, who are taken as right (BOLD, section 6.3 and Table 8).

    Resampling texts moves only the counts of the confusion matrix, so that it is the matrix that is drawn.
    A label without any text on a side counts 0 in the weighted means, as is usual, and is null by itself.
    """
    counts = confusion(predicted, human, labels=labels)
    n = int(counts.sum())
    generator = np.random.default_rng(rng)
    drawn = (
        generator.multinomial(n, counts.ravel() / n, size=resamples) if n else np.zeros((0, counts.size), int)
    )
    tables = np.concatenate([counts[None], drawn.reshape(-1, *counts.shape)]).astype(np.float64)
    spread = _Spread(n, checked_level(level))
    hits, said, true = np.einsum("bii->bi", tables), tables.sum(axis=1), tables.sum(axis=2)
    precision, recall, f1 = _share(hits, said), _share(hits, true), _share(2 * hits, said + true)
    weights = _share(true, np.full_like(true, max(n, 1)))
    return Validation(
        labels=tuple(labels),
        confusion=tuple(tuple(int(cell) for cell in row) for row in counts),
        accuracy=spread.estimate(hits.sum(axis=1) / max(n, 1)),
        precision=spread.estimate((np.nan_to_num(precision) * weights).sum(axis=1)),
        recall=spread.estimate((np.nan_to_num(recall) * weights).sum(axis=1)),
        f1=spread.estimate((np.nan_to_num(f1) * weights).sum(axis=1)),
        by_label=tuple(
            LabelAgreement(label, *(spread.estimate(part[:, place]) for part in (precision, recall, f1)))
            for place, label in enumerate(labels)
        ),
    )


def confusion(predicted: Sequence[str], human: Sequence[str], *, labels: Sequence[str]) -> np.ndarray:
    """Texts by what people say (rows) and what the metric says (columns).

    >>> confusion(["a", "b", "b"], ["a", "a", "b"], labels=["a", "b"]).tolist()
    [[1, 1], [0, 1]]
    """
    if len(predicted) != len(human):
        raise InputError(
            f"{len(predicted)} labels came with {len(human)} human ones", accepted="as many of both"
        )
    place = {label: at for at, label in enumerate(labels)}
    unknown = sorted({*predicted, *human} - set(place))
    if unknown:
        raise InputError(f"the label {unknown[0]!r} is not known", accepted=", ".join(labels))
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(counts, ([place[label] for label in human], [place[label] for label in predicted]), 1)
    return counts


@dataclass(frozen=True, slots=True)
class _Spread:
    """Turns a number and its resamples (the first one is the number) into an estimate."""

    n: int
    level: float

    def estimate(self, values: Floats) -> Estimate:
        value, resampled = float(values[0]), values[1:][~np.isnan(values[1:])]
        if not self.n or np.isnan(value):
            return Estimate(None, None, None, self.level, _METHOD, self.n, 0, self.n, NO_VALUES)
        low, high = np.quantile(resampled, [(1 - self.level) / 2, (1 + self.level) / 2])
        return Estimate(value, float(low), float(high), self.level, _METHOD, self.n, 0, self.n)


def _share(part: Floats, whole: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)
