"""One label per item from several annotators: majority vote, or a model of each annotator's error rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import Floats, RandomSource, weighted_counts
from evenhand.stats.bootstrap import PERCENTILE, percentile_estimate
from evenhand.stats.label_scales import RatingCodes

SMOOTHING = 0.01
"""Ratings added to each cell of a confusion matrix, so that unobserved events are rare, not impossible."""
_WORK = 20_000_000
"""Maximum number of ratings processed over all resamples."""
NO_MAJORITY = "no majority"
TOO_FEW = "too few ratings"
TOO_LITTLE_AGREEMENT = "too little agreement"


@dataclass(frozen=True, slots=True)
class Consensus:
    """One label per item, in the order of the ratings' items, or the reason for a missing label."""

    labels: tuple[str | None, ...]
    shares: tuple[float | None, ...]
    """The share of ratings for the leading label (or its probability); null without ratings."""
    reasons: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class DawidSkene:
    """The fitted model of Dawid and Skene (1979)."""

    posteriors: Floats
    """Items x labels: the probability of each label."""
    prior: Floats
    """The frequency of each label."""
    confusion: Floats
    """Annotators x true label x given label: the probability of the given label."""
    log_likelihood: float
    """Of the ratings, without the contribution of the smoothing."""
    iterations: int
    converged: bool

    @property
    def accuracies(self) -> Floats:
        """The probability that each annotator names the true label."""
        diagonal: Floats = np.einsum("acc->ac", self.confusion) @ self.prior
        return diagonal

    def consensus(self, ratings: RatingCodes, *, probability: float = 0.5) -> Consensus:
        """The most probable label of each item, if its probability exceeds ``probability``."""
        top = self.posteriors.argmax(axis=1)
        best = self.posteriors[np.arange(len(top)), top]
        is_clear = best > probability
        return Consensus(
            tuple(ratings.labels[at] if clear else None for at, clear in zip(top, is_clear, strict=True)),
            tuple(map(float, best)),
            tuple(None if clear else TOO_LITTLE_AGREEMENT for clear in is_clear),
        )


def majority_vote(ratings: RatingCodes, *, agreement: float = 0.5, least: int = 1) -> Consensus:
    """The label chosen by more than half of an item's annotators and by at least the share ``agreement``.

    Items with fewer than ``least`` ratings get no label. A tie is not a majority.
    """
    if not 0 <= agreement <= 1:
        raise InputError(f"an agreement of {agreement:g}", expected="a share from 0 to 1, such as 0.66")
    counts = ratings.counts()
    total, top = counts.sum(axis=1), counts.argmax(axis=1)
    best = counts[np.arange(len(top)), top]
    # With a tolerance, so that two of three reach 0.6667 despite rounding.
    failed = [total < max(least, 1), 2 * best <= total, best < (agreement - 5e-3) * total]
    codes = np.select(failed, [0, 1, 2], 3)
    reasons = tuple((TOO_FEW, NO_MAJORITY, TOO_LITTLE_AGREEMENT, None)[code] for code in codes)
    labels = (None if reason else ratings.labels[at] for at, reason in zip(top, reasons, strict=True))
    shares = tuple(float(most / n) if n else None for n, most in zip(total, best, strict=True))
    return Consensus(tuple(labels), shares, reasons)


def dawid_skene(
    ratings: RatingCodes, *, smoothing: float = SMOOTHING, tolerance: float = 1e-8, iterations: int = 1_000
) -> DawidSkene:
    """Maximum-likelihood true labels and annotator error rates, by EM starting from the vote shares.

    Each item has one true label; given it, annotators err independently, each with their own confusion matrix
    (Dawid and Skene 1979). Annotators may skip items or rate an item more than once. EM stops when no
    probability changes by more than ``tolerance``.
    """
    if not ratings.of_item.size:
        raise InputError("there are no ratings", expected="one rating or more")
    if smoothing < 0:
        raise InputError(f"a smoothing of {smoothing:g}", expected="0 or more, such as 0.01")
    counts = ratings.counts()
    weights = np.ones(len(ratings.items))
    return _run_em(
        ratings, counts / counts.sum(axis=1, keepdims=True), weights, smoothing, tolerance, iterations
    )


def annotator_accuracy(
    ratings: RatingCodes,
    fitted: DawidSkene,
    *,
    rng: RandomSource,
    resamples: int = 200,
    level: float = 0.95,
    smoothing: float = SMOOTHING,
) -> list[Estimate]:
    """The probability that each annotator names the true label, with an interval over resampled items.

    n counts the annotator's ratings, n_clusters the items they rated; there is no interval below two.

    The model is refitted to every resample, starting from the fit to all items. With very many ratings
    fewer resamples are drawn, at least 50: their intervals are narrow.
    """
    people, items = len(ratings.annotators), len(ratings.items)
    n = np.bincount(ratings.of_annotator, minlength=people)
    pairs = np.unique(ratings.of_item * people + ratings.of_annotator)
    rated = np.bincount(pairs % people, minlength=people)
    generator, draws = np.random.default_rng(rng), []
    for _ in range(max(min(resamples, 50), min(resamples, _WORK // ratings.of_item.size))):
        if rated.max() < 2:
            break
        weights = generator.multinomial(items, np.full(items, 1 / items)).astype(np.float64)
        draws.append(_run_em(ratings, fitted.posteriors, weights, smoothing, 1e-4, 20).accuracies)
    by_annotator = np.array(draws).reshape(-1, people).T
    method = f"Dawid-Skene, {PERCENTILE}"
    # Only an annotator's own items carry information on them: few items make a wide interval.
    counts = zip(n.tolist(), [0] * people, rated.tolist(), strict=True)
    missing = [Estimate(None, None, None, level, method, *sizes) for sizes in counts]
    return [
        percentile_estimate(value, own, unknown, may_be_constant=True)
        for value, own, unknown in zip(fitted.accuracies.tolist(), by_annotator, missing, strict=True)
    ]


def _run_em(
    ratings: RatingCodes, start: Floats, weights: Floats, smoothing: float, tolerance: float, iterations: int
) -> DawidSkene:
    posteriors, change, steps = start, np.inf, 0
    while steps < iterations and change > tolerance:
        prior, confusion = _maximise(ratings, posteriors, weights, smoothing)
        log_joint = _log_joint(ratings, prior, confusion)
        top = log_joint.max(axis=1, keepdims=True)
        shares = np.exp(log_joint - top)
        total = shares.sum(axis=1, keepdims=True)
        change = float(np.abs(shares / total - posteriors).max())
        posteriors, steps = shares / total, steps + 1
    likelihood = float(weights @ (top[:, 0] + np.log(total[:, 0])))
    return DawidSkene(posteriors, prior, confusion, likelihood, steps, change <= tolerance)


def _maximise(
    ratings: RatingCodes, posteriors: Floats, weights: Floats, smoothing: float
) -> tuple[Floats, Floats]:
    """The label frequencies and each annotator's confusion matrix, given the labels' probabilities."""
    people, labels = len(ratings.annotators), len(ratings.labels)
    weighted = posteriors * weights[:, None]
    given = ratings.of_annotator * labels + ratings.of_label
    cells = given[:, None] + np.arange(labels) * people * labels
    counts = weighted_counts(cells.ravel(), weighted[ratings.of_item].ravel(), people * labels**2)
    counts = counts.reshape(labels, people, labels)
    confusion = counts.transpose(1, 0, 2) + smoothing
    total = confusion.sum(axis=2, keepdims=True)
    # Without smoothing, a label that an annotator never encountered gives no information on them.
    confusion = np.divide(confusion, total, out=np.full_like(confusion, 1 / labels), where=total > 0)
    return weighted.sum(axis=0) / weights.sum(), confusion


def _log_joint(ratings: RatingCodes, prior: Floats, confusion: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(confusion, 1e-300))
        joint = np.tile(np.log(np.maximum(prior, 1e-300)), (len(ratings.items), 1))
    for true in range(len(ratings.labels)):
        rating_logs = logs[ratings.of_annotator, true, ratings.of_label]
        joint[:, true] += np.bincount(ratings.of_item, weights=rating_logs, minlength=len(ratings.items))
    return joint
