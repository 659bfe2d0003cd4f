"""How well a metric's labels agree with people's: accuracy, precision, recall and F1, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import Floats, Ids, RandomSource, checked_level, cluster_codes
from evenhand.stats.bootstrap import widened_tails
from evenhand.stats.intervals import clustered_proportion
from evenhand.stats.results import NO_VALUES, NO_VARIATION, ONE_CLUSTER

_METHOD = "bootstrap (percentile)"


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """Agreement on one label; what a label nobody predicts or nobody gives lacks is null."""

    label: str
    precision: Estimate
    """Of the texts the metric gives the label, which n counts, the share people give it too."""
    recall: Estimate
    """Of the texts people give the label, which n counts, the share the metric finds."""
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
    kappa: Estimate
    """Cohen's kappa: 1 is full agreement, 0 what the two shares of labels give by chance."""


def validate_labels(
    predicted: Sequence[str],
    human: Sequence[str],
    *,
    labels: Sequence[str],
    rng: RandomSource,
    clusters: Ids = None,
    resamples: int = 2_000,
    level: float = 0.95,
) -> Validation:
    """How far predicted labels are people's, who are taken as right (BOLD, section 6.3 and Table 8).

    Accuracy, which is also the weighted recall, and the precision and recall of a label are shares of texts,
    with `clustered_proportion`'s interval. The others are resampled: that moves only the counts of the
    confusion matrix, so that it is the matrix that is drawn; with ``clusters``, the matrices of whole
    clusters. A label without any text on a side counts 0 in the weighted means, as is usual, and is null by
    itself.
    """
    counts = confusion(predicted, human, labels=labels)
    n = int(counts.sum())
    generator = np.random.default_rng(rng)
    if clusters is None:
        whole = counts.ravel()
        drawn = generator.multinomial(n, whole / n, size=resamples) if n else np.zeros((0, whole.size), int)
        n_clusters = n
    else:
        cells = _cells(predicted, human, labels, clusters)
        drawn, n_clusters = _drawn(cells, generator, resamples), len(cells)
    tables = np.concatenate([counts[None], drawn.reshape(-1, *counts.shape)]).astype(np.float64)
    spread = _Spread(n, checked_level(level), n_clusters, is_clustered=clusters is not None)
    hits, said, true = np.einsum("bii->bi", tables), tables.sum(axis=1), tables.sum(axis=2)
    precision, f1 = _share(hits, said), _share(2 * hits, said + true)
    # Of the texts of each resample: with clusters of different sizes they are not as many as there are.
    weights = _share(true, true.sum(axis=1, keepdims=True))
    shares = _Shares(np.array(predicted, dtype=object), np.array(human, dtype=object), clusters, level)
    accuracy = shares.accuracy()
    return Validation(
        labels=tuple(labels),
        confusion=tuple(tuple(int(cell) for cell in row) for row in counts),
        accuracy=accuracy,
        precision=spread.estimate((np.nan_to_num(precision) * weights).sum(axis=1)),
        recall=accuracy,
        f1=spread.estimate((np.nan_to_num(f1) * weights).sum(axis=1)),
        by_label=tuple(
            LabelAgreement(
                label, shares.precision(label), shares.recall(label), spread.estimate(f1[:, place])
            )
            for place, label in enumerate(labels)
        ),
        kappa=spread.estimate(cohens_kappa(tables)),
    )


def cohens_kappa(tables: Floats) -> Floats:
    """Cohen's kappa of each confusion matrix (.. x labels x labels); NaN where both sides say one thing only.

    >>> round(float(cohens_kappa(np.array([[20.0, 5.0], [10.0, 15.0]]))), 2)
    0.4
    """
    n = tables.sum(axis=(-2, -1))
    agreeing = np.einsum("...ii->...", tables)
    chance = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n**2 > chance, (n * agreeing - chance) / (n**2 - chance), np.nan)


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
class _Shares:
    """Shares of texts on which both sides say the same."""

    predicted: np.ndarray
    human: np.ndarray
    clusters: Ids
    level: float

    def accuracy(self) -> Estimate:
        return self._same(np.ones(self.human.size, dtype=np.bool_))

    def precision(self, label: str) -> Estimate:
        return self._same(self.predicted == label)

    def recall(self, label: str) -> Estimate:
        return self._same(self.human == label)

    def _same(self, among: np.ndarray) -> Estimate:
        same = (self.predicted == self.human)[among].astype(np.float64)
        clusters = None if self.clusters is None else np.asarray(self.clusters)[among]
        return clustered_proportion(same, clusters, level=self.level)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Turns a number and its resamples (the first one is the number) into an estimate."""

    n: int
    level: float
    n_clusters: int
    is_clustered: bool = False

    def estimate(self, values: Floats) -> Estimate:
        value, resampled = float(values[0]), values[1:][~np.isnan(values[1:])]
        of = partial(
            Estimate,
            level=self.level,
            method="cluster bootstrap (percentile)" if self.is_clustered else _METHOD,
            n=self.n,
            n_null=0,
            n_clusters=self.n_clusters,
        )
        if not self.n or np.isnan(value):
            return of(None, None, None, null_reason=NO_VALUES)
        if self.n_clusters < 2 or not resampled.size:
            return of(value, None, None, null_reason=ONE_CLUSTER)
        if resampled.max() - resampled.min() <= 1e-12:
            # Full agreement stays full however it is drawn: that is no certainty.
            return of(value, None, None, null_reason=NO_VARIATION)
        low, high = np.quantile(resampled, widened_tails(self.level, self.n_clusters))
        return of(value, float(low), float(high))


def _cells(predicted: Sequence[str], human: Sequence[str], labels: Sequence[str], clusters: Ids) -> Floats:
    """The confusion matrix of every cluster, flat."""
    place, width = {label: at for at, label in enumerate(labels)}, len(labels)
    _, codes = np.unique(cluster_codes(clusters, len(human)), return_inverse=True)
    cells = np.zeros((int(codes.max(initial=-1)) + 1, width * width))
    at = [place[true] * width + place[said] for true, said in zip(human, predicted, strict=True)]
    np.add.at(cells, (codes, np.array(at, dtype=np.intp)), 1.0)
    return cells


def _drawn(cells: Floats, generator: np.random.Generator, resamples: int) -> Floats:
    """The matrix of every resample of clusters; clusters that look alike are drawn together."""
    if not len(cells):
        return np.zeros((0, cells.shape[1]))
    different, times = np.unique(cells, axis=0, return_counts=True)
    return generator.multinomial(len(cells), times / len(cells), size=resamples) @ different


def _share(part: Floats, whole: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)
