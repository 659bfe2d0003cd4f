"""The cut of a score that agrees best with people, with what that cut is worth on texts it was not fitted on.

A rule with one number: two labels are parted at the cut, three at minus the cut and at the cut. Agreement is
Cohen's kappa, which a cut that gives every text the same label cannot win.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import (
    Floats,
    Ids,
    Ints,
    RandomSource,
    checked_level,
    checked_values,
    cluster_codes,
)
from evenhand.stats.bootstrap import resample_clusters, widened_tails
from evenhand.stats.results import NO_VALUES, NO_VARIATION, ONE_CLUSTER
from evenhand.stats.validation import cohens_kappa

CANDIDATES: Final = 200
"""Cuts that are tried at most, spread evenly over the texts."""
FOLDS: Final = 10
REPEATS: Final = 10
"""Times the texts are dealt to folds anew: how one deal falls must not decide the figure."""
_NAME: Final = "best cut by Cohen's kappa"


class CurvePoint(NamedTuple):
    """What one cut gives on the texts it was fitted on."""

    cut: float
    kappa: float | None
    accuracy: float


@dataclass(frozen=True, slots=True)
class BestCut:
    """The cut that agrees best, and how well; ``held_out`` is the honest part."""

    cut: Estimate
    """The interval is that of the best cut of resampled clusters."""
    kappa: Estimate
    """Over the texts the cut was fitted on: too good by construction."""
    accuracy: Estimate
    kappa_held_out: Estimate
    """Every text labelled by a cut that was fitted on the other folds; the mean over ten deals.

    Each resample goes through all of it once, so that the interval is rather too wide than too narrow."""
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
    folds: int = FOLDS,
    resamples: int = 500,
    level: float = 0.95,
) -> BestCut:
    """The best cut of ``values`` for people's labels, coded 0 .. ``labels`` - 1 from low to high.

    Folds and resamples are of whole clusters. Everything is null with a reason where values or labels do not
    vary.
    """
    scores, codes = checked_values(values, "values"), _checked_codes(human, labels)
    if scores.size != codes.size:
        raise InputError(f"{scores.size} values came with {codes.size} labels", accepted="as many of both")
    groups = np.unique(cluster_codes(clusters, scores.size), return_inverse=True)[1]
    cuts = candidate_cuts(scores, labels)
    if not cuts.size or np.unique(codes).size < 2:
        return _nothing(scores.size, int(groups.max(initial=-1)) + 1, checked_level(level))
    texts = _texts(cuts, scores, codes, groups, labels)
    generator = np.random.default_rng(rng)
    everything = texts.confusions(np.arange(scores.size))
    kappas, hits = cohens_kappa(everything), np.einsum("tii->t", everything) / scores.size
    predicted = texts.predicted(np.full(scores.size, _middle_of_best(kappas)))
    used = min(folds, int(groups.max()) + 1)
    held_out = [_cross_validated(texts, generator, used) for _ in range(REPEATS)]
    drawn = _resampled(texts, predicted, held_out, generator, used, resamples)
    return BestCut(
        cut=drawn.estimate(np.concatenate([[cuts[_middle_of_best(kappas)]], drawn.cuts]), level, _NAME),
        kappa=drawn.estimate(cohens_kappa(drawn.fitted), level, "Cohen's kappa"),
        accuracy=drawn.estimate(_accuracies(drawn.fitted), level, "share of equal labels"),
        kappa_held_out=drawn.estimate(drawn.kappas_held_out, level, "Cohen's kappa, cross-validated"),
        accuracy_held_out=drawn.estimate(
            drawn.hits_held_out, level, "share of equal labels, cross-validated"
        ),
        folds=used,
        curve=tuple(
            CurvePoint(float(cut), None if np.isnan(kappa) else float(kappa), float(hit))
            for cut, kappa, hit in zip(cuts, kappas, hits, strict=True)
        ),
    )


def candidate_cuts(values: Floats, labels: int) -> Floats:
    """Half-way points between different values (between different sizes for three labels), 200 at most.

    >>> candidate_cuts(np.array([0.0, 1.0, 1.0, 3.0]), 2).tolist()
    [0.5, 2.0]
    """
    known = np.unique(np.abs(values) if labels == 3 else values)
    if labels == 3:
        known = np.unique(np.concatenate([[0.0], known]))
    between: Floats = (known[1:] + known[:-1]) / 2
    if between.size <= CANDIDATES:
        return between
    chosen = np.unique(np.linspace(0, between.size - 1, CANDIDATES).round().astype(np.intp))
    kept: Floats = between[chosen]
    return kept


@dataclass(frozen=True, slots=True)
class _Texts:
    """Scores as the number of candidate cuts they reach, so that any set of rows is a small table."""

    cuts: Floats
    reached: Ints
    side: Ints
    """0 for scores below zero that go to the lowest of three labels, else 1."""
    human: Ints
    groups: Ints
    labels: int

    def confusions(self, rows: Ints) -> Floats:
        """The confusion matrix of every cut over some rows: cuts x human x predicted."""
        width = self.labels
        cells = (self.reached[rows] * 2 + self.side[rows]) * width + self.human[rows]
        table = np.bincount(cells, minlength=(self.cuts.size + 1) * 2 * width).reshape(-1, 2, width)
        beyond = np.cumsum(table[::-1], axis=0)[::-1][1:].astype(np.float64)
        total = table.sum(axis=(0, 1)).astype(np.float64)
        found = np.zeros((self.cuts.size, width, width))
        found[:, :, width - 1] = beyond[:, 1]
        if width == 3:
            found[:, :, 0] = beyond[:, 0]
        found[:, :, width - 2] = total - beyond.sum(axis=1)
        return found

    def of(self, rows: Ints) -> _Texts:
        """Some rows, with repeats in the cluster they come from."""
        parts = (self.reached[rows], self.side[rows], self.human[rows], self.groups[rows])
        return _Texts(self.cuts, *parts, self.labels)

    def table(self, predicted: Ints, rows: Ints) -> Floats:
        """The confusion matrix of predictions over some rows."""
        cells = self.human[rows] * self.labels + predicted[rows]
        counts = np.bincount(cells, minlength=self.labels**2).astype(np.float64)
        return counts.reshape(self.labels, self.labels)

    def predicted(self, cut: Ints) -> Ints:
        """The label of each row at the candidate cut of that row."""
        is_beyond = self.reached > cut
        if self.labels == 2:
            return is_beyond.astype(np.intp)
        return np.where(is_beyond, np.where(self.side == 0, 0, 2), 1).astype(np.intp)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What resamples of clusters gave."""

    n: int
    n_clusters: int
    cuts: Floats
    fitted: Floats
    """Confusion matrices of the best cut; here and below the first one is of all rows."""
    kappas_held_out: Floats
    hits_held_out: Floats

    def estimate(self, values: Floats, level: float, name: str) -> Estimate:
        value, draws = float(values[0]), values[1:][np.isfinite(values[1:])]
        of = partial(Estimate, level=checked_level(level), n=self.n, n_null=0, n_clusters=self.n_clusters)
        if np.isnan(value):
            return of(None, None, None, method=name, null_reason=NO_VARIATION)
        if self.n_clusters < 2 or draws.size < self.cuts.size / 2:
            return of(value, None, None, method=name, null_reason=ONE_CLUSTER)
        if draws.max() - draws.min() <= 1e-12:
            # Full agreement stays full however texts are drawn: that is no certainty.
            return of(value, None, None, method=name, null_reason=NO_VARIATION)
        low, high = np.quantile(draws, widened_tails(level, self.n_clusters))
        return of(value, float(low), float(high), method=f"{name}, cluster bootstrap (percentile)")


def _texts(cuts: Floats, scores: Floats, human: Ints, groups: Ints, labels: int) -> _Texts:
    sizes = np.abs(scores) if labels == 3 else scores
    side = np.where((scores < 0) & (labels == 3), 0, 1).astype(np.intp)
    return _Texts(cuts, np.searchsorted(cuts, sizes, side="right"), side, human, groups, labels)


def _resampled(
    texts: _Texts,
    predicted: Ints,
    held_out: Sequence[Ints],
    generator: np.random.Generator,
    folds: int,
    resamples: int,
) -> _Drawn:
    """Every resample fits its own cuts and is dealt to folds anew: fitting widens the intervals."""
    every = np.arange(texts.human.size)
    whole = np.stack([texts.table(labels, every) for labels in held_out])
    cuts, fitted, unseen = [], [texts.table(predicted, every)], []
    for rows in resample_clusters(texts.groups, rng=generator, resamples=resamples):
        cuts.append(texts.cuts[_middle_of_best(cohens_kappa(texts.confusions(rows)))])
        fitted.append(texts.table(predicted, rows))
        drawn = texts.of(rows)
        unseen.append(drawn.table(_cross_validated(drawn, generator, folds), np.arange(rows.size)))
    tables = np.stack(unseen)
    return _Drawn(
        texts.human.size,
        int(texts.groups.max()) + 1,
        np.array(cuts),
        np.stack(fitted),
        np.concatenate([[np.mean(cohens_kappa(whole))], cohens_kappa(tables)]),
        np.concatenate([[np.mean(_accuracies(whole))], _accuracies(tables)]),
    )


def _accuracies(tables: Floats) -> Floats:
    shares: Floats = np.einsum("bii->b", tables) / tables.sum(axis=(1, 2))
    return shares


def _cross_validated(texts: _Texts, generator: np.random.Generator, folds: int) -> Ints:
    """The label of every row at the cut that was best on the other folds of whole clusters."""
    clusters = int(texts.groups.max()) + 1
    fold = (generator.permutation(clusters) % folds)[texts.groups]
    whole, cut = texts.confusions(np.arange(fold.size)), np.zeros(fold.size, dtype=np.intp)
    for number in range(folds):
        rest = whole - texts.confusions(np.flatnonzero(fold == number))
        cut[fold == number] = _middle_of_best(cohens_kappa(rest))
    return texts.predicted(cut)


def _middle_of_best(kappas: Floats) -> int:
    """The middle of the cuts that agree best: the first of many equal ones would lean to one side."""
    known = np.nan_to_num(kappas, nan=-np.inf)
    best = np.flatnonzero(known >= known.max() - 1e-12)
    return int(best[(best.size - 1) // 2])


def _checked_codes(human: npt.ArrayLike, labels: int) -> Ints:
    codes = np.asarray(human, dtype=np.intp)
    if labels not in (2, 3) or (codes.size and (codes.min() < 0 or codes.max() >= labels)):
        raise InputError(
            f"{labels} labels with codes from {codes.min(initial=0)} to {codes.max(initial=0)}",
            accepted="2 or 3 labels, coded from 0 upwards",
        )
    return codes


def _nothing(n: int, clusters: int, level: float) -> BestCut:
    reason = NO_VARIATION if n else NO_VALUES
    none = Estimate(None, None, None, level, _NAME, n, 0, clusters, reason)
    return BestCut(none, none, none, none, none, 0, ())
