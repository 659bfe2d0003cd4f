"""Agreement of a metric's labels with human labels: accuracy, precision, recall and F1, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import (
    Bools,
    Floats,
    Ids,
    Ints,
    RandomSource,
    check_lengths,
    check_level,
    check_values,
    cross_tabulate,
    divide,
    encode_clusters,
)
from evenhand.stats.bootstrap import PERCENTILE, percentile_estimate, resample_clusters
from evenhand.stats.intervals import clustered_proportion
from evenhand.stats.results import NO_VALUES, NO_VARIATION


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """Agreement on one label; null where it is undefined, as for a label never predicted or never given."""

    label: str
    precision: Estimate
    """Of the texts with this predicted label (n), the share with the same human label."""
    recall: Estimate
    """Of the texts with this human label (n), the share with the same predicted label."""
    f1: Estimate


@dataclass(frozen=True, slots=True)
class Validation:
    """Agreement over all labels; precision, recall and F1 are weighted by the frequency of human labels."""

    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Rows: human labels; columns: predicted labels."""
    accuracy: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate
    by_label: tuple[LabelAgreement, ...]
    kappa: Estimate
    """Cohen's kappa: 1 is full agreement, 0 chance level given both sides' shares of labels."""


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
    """Compare predicted labels with human labels as ground truth (BOLD, section 6.3 and Table 8).

    Accuracy, which is also the weighted recall, and the precision and recall of a label are shares of texts,
    with `clustered_proportion`'s interval. The others are bootstrapped: resampling changes only the counts of
    the confusion matrix, so the matrix itself is drawn; with ``clusters``, the matrices of whole clusters. A
    label without any text on one side counts as 0 in the weighted means, as is usual, and is null by
    itself.
    """
    check_lengths("equal numbers of both", labels=predicted, human_ones=human)
    if unknown := sorted({*predicted, *human} - set(labels)):
        raise InputError(f"unknown label {unknown[0]!r}", expected=", ".join(labels))
    index, size, n = {label: at for at, label in enumerate(labels)}, len(labels), len(human)
    true, given = (np.array([index[label] for label in side], dtype=np.intp) for side in (human, predicted))
    counts, method, n_clusters = cross_tabulate(true, given, (size, size)), "bootstrap (percentile)", n
    rows: Floats = np.eye(size**2)
    times: npt.NDArray[np.float64 | np.intp] = counts.ravel()
    if clusters is not None:
        names, codes = np.unique(encode_clusters(clusters, n), return_inverse=True)
        method, n_clusters = PERCENTILE, names.size
        # Clusters with the same matrix are drawn together.
        by_cluster = cross_tabulate(codes, true * size + given, (n_clusters, size**2))
        rows, times = np.unique(by_cluster, axis=0, return_counts=True)
    generator, drawn = np.random.default_rng(rng), np.zeros((0, size**2))
    if n:
        drawn = generator.multinomial(n_clusters, times / n_clusters, size=resamples) @ rows
    tables = np.concatenate([counts[None], drawn.reshape(-1, size, size)])

    missing = Estimate(None, None, None, level, method, n, 0, n_clusters, NO_VALUES)

    def estimate(values: Floats) -> Estimate:
        # Keep the interval however few resamples have the label.
        return percentile_estimate(float(values[0]) if n else None, values[1:], missing)

    def share_equal(rows: Bools) -> Estimate:
        own = None if clusters is None else np.asarray(clusters)[rows]
        return clustered_proportion((given == true)[rows], own, level=level)

    hits, n_given, n_true = np.einsum("bii->bi", tables), tables.sum(axis=1), tables.sum(axis=2)
    precision, f1 = divide(hits, n_given), divide(2 * hits, n_given + n_true)
    # By the texts of each resample: with clusters of different sizes their number varies.
    weights = divide(n_true, n_true.sum(axis=1, keepdims=True))
    accuracy = share_equal(np.ones(n, dtype=np.bool_))
    return Validation(
        labels=tuple(labels),
        confusion=tuple(map(tuple, counts.astype(int).tolist())),
        accuracy=accuracy,
        precision=estimate((np.nan_to_num(precision) * weights).sum(axis=1)),
        recall=accuracy,
        f1=estimate((np.nan_to_num(f1) * weights).sum(axis=1)),
        by_label=tuple(
            LabelAgreement(label, share_equal(given == at), share_equal(true == at), estimate(f1[:, at]))
            for at, label in enumerate(labels)
        ),
        kappa=estimate(cohens_kappa(tables)),
    )


def cohens_kappa(tables: Floats) -> Floats:
    """Cohen's kappa of each confusion matrix (.. x labels x labels); NaN if only one label occurs.

    >>> round(float(cohens_kappa(np.array([[20.0, 5.0], [10.0, 15.0]]))), 2)
    0.4
    """
    n = tables.sum(axis=(-2, -1))
    agreeing = np.einsum("...ii->...", tables)
    chance = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    return divide(n * agreeing - chance, n**2 - chance)


CANDIDATES: Final = 200
"""Maximum number of candidate cuts, spread evenly over the texts."""
FOLDS: Final = 10
REPEATS: Final = 10
"""Number of random splits into folds, so that no single split decides the result."""
_NAME: Final = "best cut by Cohen's kappa"


class CurvePoint(NamedTuple):
    """The agreement of one cut on the texts it was fitted on."""

    cut: float
    kappa: float | None
    accuracy: float


@dataclass(frozen=True, slots=True)
class BestCut:
    """The cut with the best agreement; the ``held_out`` estimates are not biased by the fit."""

    cut: Estimate
    """The interval is over the best cuts of resampled clusters."""
    kappa: Estimate
    """Over the texts the cut was fitted on: optimistic by construction."""
    accuracy: Estimate
    kappa_held_out: Estimate
    """Each text is labelled by a cut fitted on the other folds; the mean over ten splits.

    Each resample repeats the whole procedure once, so the interval is conservative."""
    accuracy_held_out: Estimate
    folds: int
    curve: tuple[CurvePoint, ...]


def best_cut(
    values: npt.ArrayLike,
    human: npt.ArrayLike,
    clusters: Ids = None,
    *,
    labels: int,
    rng: RandomSource,
    resamples: int = 500,
    level: float = 0.95,
) -> BestCut:
    """The best cut of ``values`` for human labels, coded 0 .. ``labels`` - 1 from low to high.

    Folds and resamples consist of whole clusters. All estimates are null with a reason if values or labels do
    not vary.
    """
    scores, codes = check_values(values, "values"), np.asarray(human, dtype=np.intp)
    if labels not in (2, 3) or (codes.size and not 0 <= codes.min() <= codes.max() < labels):
        raise InputError(
            f"{labels} labels with codes from {codes.min(initial=0)} to {codes.max(initial=0)}",
            expected="2 or 3 labels, coded from 0 upwards",
        )
    check_lengths("equal numbers of both", values=scores, labels=codes)
    groups = np.unique(encode_clusters(clusters, scores.size), return_inverse=True)[1]
    n_clusters, cuts = int(groups.max(initial=-1)) + 1, candidate_cuts(scores, labels)
    reason = NO_VARIATION if scores.size else NO_VALUES
    missing = Estimate(None, None, None, check_level(level), _NAME, scores.size, 0, n_clusters, reason)
    if not cuts.size or np.unique(codes).size < 2:
        return BestCut(*(missing,) * 5, 0, ())
    sizes = np.abs(scores) if labels == 3 else scores
    side = np.where((scores < 0) & (labels == 3), 0, 1).astype(np.intp)
    texts = _CodedTexts(cuts, np.searchsorted(cuts, sizes, side="right"), side, codes, groups, labels)
    generator, fits = np.random.default_rng(rng), texts.confusions()
    kappas, hits = cohens_kappa(fits), _accuracies(fits)
    best, folds = _middle_of_best(kappas), min(FOLDS, n_clusters)
    predicted = texts.predict(np.full(scores.size, best))
    held_out = np.stack([texts.table(_cross_validate(texts, generator, folds)) for _ in range(REPEATS)])
    # Every resample fits its own cuts on new folds, so the intervals include the uncertainty of fitting.
    drawn_cuts, fitted, unseen = [], [], []
    for rows in resample_clusters(groups, rng=generator, resamples=resamples):
        drawn = texts.of(rows)
        drawn_cuts.append(cuts[_middle_of_best(cohens_kappa(drawn.confusions()))])
        fitted.append(drawn.table(predicted[rows]))
        unseen.append(drawn.table(_cross_validate(drawn, generator, folds)))
    variants = {"": (fits[best], np.stack(fitted)), ", cross-validated": (held_out, np.stack(unseen))}

    def estimate(value: float, draws: Floats, name: str) -> Estimate:
        named = replace(missing, method=f"{name}, {PERCENTILE}")
        return percentile_estimate(value, draws, named, resamples=resamples)

    def compare(measure: Callable[[Floats], Floats], name: str) -> list[Estimate]:
        return [
            estimate(float(np.mean(measure(tables))), measure(draws), name + variant)
            for variant, (tables, draws) in variants.items()
        ]

    kappa, kappa_held_out = compare(cohens_kappa, "Cohen's kappa")
    accuracy, accuracy_held_out = compare(_accuracies, "share of equal labels")
    return BestCut(
        cut=estimate(float(cuts[best]), np.array(drawn_cuts), _NAME),
        kappa=kappa,
        accuracy=accuracy,
        kappa_held_out=kappa_held_out,
        accuracy_held_out=accuracy_held_out,
        folds=folds,
        curve=tuple(
            CurvePoint(cut, None if np.isnan(kappa) else kappa, hit)
            for cut, kappa, hit in np.stack([cuts, kappas, hits], axis=1).tolist()
        ),
    )


def candidate_cuts(values: Floats, labels: int) -> Floats:
    """Midpoints between distinct values (between distinct magnitudes for three labels), at most 200.

    >>> candidate_cuts(np.array([0.0, 1.0, 1.0, 3.0]), 2).tolist()
    [0.5, 2.0]
    """
    known = np.unique(np.append(np.abs(values), 0.0) if labels == 3 else values)
    between: Floats = (known[1:] + known[:-1]) / 2
    if between.size > CANDIDATES:
        between = between[np.linspace(0, between.size - 1, CANDIDATES).round().astype(np.intp)]
    return between


@dataclass(frozen=True, slots=True)
class _CodedTexts:
    """Scores encoded as the number of candidate cuts they reach, so that any set of rows is a small table."""

    cuts: Floats
    reached: Ints
    side: Ints
    """0 for scores below zero that go to the lowest of three labels, else 1."""
    human: Ints
    groups: Ints
    labels: int

    def confusions(self) -> Floats:
        """The confusion matrix of every cut: cuts x human x predicted."""
        width = self.labels
        cells = (self.reached * 2 + self.side) * width + self.human
        table = np.bincount(cells, minlength=(self.cuts.size + 1) * 2 * width).reshape(-1, 2, width)
        beyond = np.cumsum(table[::-1], axis=0)[::-1][1:].astype(np.float64)
        within = table.sum(axis=(0, 1)) - beyond.sum(axis=1)
        columns = (within, beyond[:, 1]) if width == 2 else (beyond[:, 0], within, beyond[:, 1])
        return np.stack(columns, axis=-1)

    def of(self, rows: Ints) -> _CodedTexts:
        """The given rows; repeated rows stay in their cluster."""
        columns = ("reached", "side", "human", "groups")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    def table(self, predicted: Ints) -> Floats:
        """The confusion matrix of predictions."""
        return cross_tabulate(self.human, predicted, (self.labels, self.labels))

    def predict(self, cut: Ints) -> Ints:
        """The label of each row at that row's candidate cut."""
        # Of two labels every text is on the side of the upper one.
        beyond = np.where(self.side == 0, 0, self.labels - 1)
        return np.where(self.reached > cut, beyond, self.labels - 2).astype(np.intp)


def _accuracies(tables: Floats) -> Floats:
    shares: Floats = np.einsum("...ii->...", tables) / tables.sum(axis=(-2, -1))
    return shares


def _cross_validate(texts: _CodedTexts, generator: np.random.Generator, folds: int) -> Ints:
    """The label of each row at the cut that is best on the other folds of whole clusters."""
    clusters = int(texts.groups.max()) + 1
    fold = (generator.permutation(clusters) % folds)[texts.groups]
    whole, cut = texts.confusions(), np.zeros(fold.size, dtype=np.intp)
    for number in range(folds):
        rest = whole - texts.of(np.flatnonzero(fold == number)).confusions()
        cut[fold == number] = _middle_of_best(cohens_kappa(rest))
    return texts.predict(cut)


def _middle_of_best(kappas: Floats) -> int:
    """The middle of the cuts with the best agreement: the first of many ties would be biased to one side."""
    known = np.nan_to_num(kappas, nan=-np.inf)
    best = np.flatnonzero(known >= known.max() - 1e-12)
    return int(best[(best.size - 1) // 2])
