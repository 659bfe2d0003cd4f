"""How far people (or people and a metric) agree. Ratings come in long form: one row a rating."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import (
    Floats,
    Ids,
    Ints,
    RandomSource,
    checked_values,
    cluster_codes,
    weighted_counts,
)
from evenhand.stats._patterns import Patterns
from evenhand.stats._quantiles import t_two_sided
from evenhand.stats.bootstrap import bootstrap_interval
from evenhand.stats.results import NO_VARIATION

Scale: TypeAlias = Literal["nominal", "ordinal", "interval"]
_SINGLE = "no item has two ratings"
_MOST_LABELS = 20
"""Above this, ordinal ranks are not made anew for every resample: their square would fill the memory."""


class Correlation(NamedTuple):
    """A rank correlation and its p-value."""

    estimate: Estimate
    p: float | None
    """Two-sided, of no correlation: Student's t with two degrees of freedom fewer than clusters, and never
    below 2 / clusters!, the least that any order of them gives."""


def fleiss_kappa(
    items: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    rng: RandomSource,
    resamples: int = 2_000,
    level: float = 0.95,
) -> Estimate:
    """Fleiss' kappa of nominal labels: 1 is full agreement, 0 what chance gives, below 0 less than chance.

    Items may have different numbers of ratings, two at least; those with fewer are left out and counted in
    ``n_null``. An item's agreement is its share of agreeing pairs, chance agreement the sum of the squared
    shares of all labels. The interval resamples items; n counts ratings, n_clusters items.
    """
    counts, n_null = _counts(items, labels)
    ratings = counts.sum(axis=1)
    agreeing = ((counts**2).sum(axis=1) - ratings) / (ratings * (ratings - 1))
    rows = np.column_stack([agreeing, np.ones_like(agreeing), counts])
    return Patterns(rng, resamples, level).estimate(
        rows,
        _kappas,
        n=int(ratings.sum()),
        n_null=n_null,
        method="Fleiss' kappa",
        reason=NO_VARIATION if len(rows) else _SINGLE,
    )


def krippendorff_alpha(
    items: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    scale: Scale,
    rng: RandomSource,
    resamples: int = 2_000,
    level: float = 0.95,
) -> Estimate:
    """Krippendorff's alpha, 1 - observed / expected disagreement: 1 is full agreement, 0 what chance gives.

    Disagreement of two ratings is 1 where they differ (nominal), the squared difference (interval), or the
    squared difference of their mid-ranks among all ratings (ordinal). Items with one rating are left out
    and counted in ``n_null``. The interval resamples items; n counts ratings, n_clusters items.
    """
    if scale not in ("nominal", "ordinal", "interval"):
        raise InputError(f"scale is {scale!r}", accepted="nominal, ordinal or interval")
    if scale == "interval":
        rows, n, n_null = _moments(items, checked_values(values, "values"))
        statistic = _interval
    else:
        counts, n_null = _counts(items, values)
        n = int(counts.sum())
        many = counts.shape[1] > _MOST_LABELS
        rows = (_disagreements if scale == "nominal" else _of_ranks if many else _products)(counts)
        statistic = _nominal if scale == "nominal" else _interval if many else _ordinal
    return Patterns(rng, resamples, level).estimate(
        rows,
        statistic,
        n=n,
        n_null=n_null,
        method=f"Krippendorff's alpha ({scale})",
        reason=NO_VARIATION if len(rows) else _SINGLE,
    )


def spearman(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    clusters: Ids = None,
    *,
    rng: RandomSource,
    resamples: int = 2_000,
    level: float = 0.95,
) -> Estimate:
    """Spearman's rank correlation (ties get mid-ranks), from -1 to 1, with a cluster bootstrap interval."""
    first, second = checked_values(x, "x"), checked_values(y, "y")
    if first.size != second.size:
        raise InputError(
            f"x has {first.size} values and y has {second.size}", accepted="as many in x as in y"
        )
    codes = cluster_codes(clusters, first.size)
    (_, of_x), (_, of_y) = (np.unique(values, return_inverse=True) for values in (first, second))

    def correlation(at: Ints) -> float | None:
        # Rows drawn twice weigh two: what is sorted once need not be sorted for every resample.
        weights = np.bincount(at, minlength=first.size).astype(np.float64)
        ranks_x, ranks_y = _weighted_ranks(of_x, weights), _weighted_ranks(of_y, weights)
        spread = float(weights @ ranks_x**2) * float(weights @ ranks_y**2)
        return float(weights @ (ranks_x * ranks_y)) / spread**0.5 if spread > 0 else None

    found = bootstrap_interval(correlation, codes, rng=rng, resamples=resamples, level=level)
    return _renamed(
        found, "Spearman's rho", found.n, 0, NO_VARIATION if first.size > 1 else "fewer than two values"
    )


def rank_correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    clusters: Ids = None,
    *,
    rng: RandomSource,
    resamples: int = 2_000,
    level: float = 0.95,
) -> Correlation:
    """`spearman` with its p-value; p is null below three clusters."""
    found = spearman(x, y, clusters, rng=rng, resamples=resamples, level=level)
    if found.value is None or found.n_clusters < 3:
        return Correlation(found, None)
    rest, df = 1 - found.value**2, found.n_clusters - 2
    p = 0.0 if rest <= 1e-15 else t_two_sided(found.value * (df / rest) ** 0.5, df)
    # Of all orders of so many clusters at least two correlate fully: no test can give a smaller p.
    return Correlation(found, max(p, 2 / math.factorial(min(found.n_clusters, 20))))


def _weighted_ranks(codes: Ints, weights: Floats) -> Floats:
    """The mid-rank of each row among all rows by weight, less the mean rank."""
    totals = weighted_counts(codes, weights)
    ranks: Floats = (np.cumsum(totals) - totals / 2 - totals.sum() / 2)[codes]
    return ranks


def _kappas(sums: Floats) -> Floats:
    """Fleiss' kappa from the sums of agreement, items and counts."""
    totals = sums[:, 2:]
    n = totals.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = (totals**2).sum(axis=1) / n**2
        return np.where(chance < 1, (sums[:, 0] / sums[:, 1] - chance) / (1 - chance), np.nan)


def _disagreements(counts: Floats) -> Floats:
    """For each item its share of differing pairs, weighed by its ratings, and its counts."""
    ratings = counts.sum(axis=1)
    return np.column_stack([(ratings**2 - (counts**2).sum(axis=1)) / (ratings - 1), counts])


def _nominal(sums: Floats) -> Floats:
    totals = sums[:, 1:]
    n = totals.sum(axis=1)
    return _alpha(n, sums[:, 0], n * n - (totals**2).sum(axis=1), n * n)


def _products(counts: Floats) -> Floats:
    """For each item what turns any ranks of labels into its disagreement (labels squared), and its counts."""
    ratings, labels = counts.sum(axis=1), counts.shape[1]
    products = -counts[:, :, None] * counts[:, None, :]
    products[:, range(labels), range(labels)] += ratings[:, None] * counts
    flat = (products / (ratings - 1)[:, None, None]).reshape(len(counts), labels**2)
    return np.column_stack([flat, counts])


def _of_ranks(counts: Floats) -> Floats:
    """As `_moments`, of the mid-ranks of labels among all ratings."""
    totals = counts.sum(axis=0)
    ranks = np.cumsum(totals) - totals / 2 - totals.sum() / 2
    n, sums, squares = counts.sum(axis=1), counts @ ranks, counts @ ranks**2
    return np.column_stack([(n * squares - sums**2) / (n - 1), n, sums, squares])


def _ordinal(sums: Floats) -> Floats:
    labels = round((4 * sums.shape[1] + 1) ** 0.5 - 1) // 2
    products, totals = sums[:, : labels**2].reshape(-1, labels, labels), sums[:, labels**2 :]
    n = totals.sum(axis=1)
    # The ordinal metric is the squared difference of these mid-ranks; centred against cancellation.
    ranks = np.cumsum(totals, axis=1) - totals / 2 - n[:, None] / 2
    squares = (totals * ranks**2).sum(axis=1)
    observed = np.einsum("bij,bi,bj->b", products, ranks, ranks)
    return _alpha(n, observed, n * squares - (totals * ranks).sum(axis=1) ** 2, n * squares)


def _moments(items: npt.ArrayLike, values: Floats) -> tuple[Floats, int, int]:
    """For each item with two ratings or more its disagreement, number, sum and sum of squares."""
    codes = cluster_codes(items, values.size)
    every = np.bincount(codes)
    keep = every >= 2
    centred = values - values.mean() if values.size else values
    n = every[keep].astype(np.float64)
    sums = weighted_counts(codes, centred)[keep]
    squares = weighted_counts(codes, centred**2)[keep]
    rows = np.column_stack([(n * squares - sums**2) / (n - 1), n, sums, squares])
    return rows, int(n.sum()), int(np.count_nonzero(every == 1))


def _interval(sums: Floats) -> Floats:
    observed, n, total, squares = sums.T
    return _alpha(n, observed, n * squares - total**2, n * squares)


def _alpha(n: Floats, observed: Floats, expected: Floats, scale: Floats) -> Floats:
    """1 - observed / expected disagreement; NaN where nothing varies, up to rounding at ``scale``."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 1e-12 * scale, 1 - (n - 1) * observed / expected, np.nan)


def _counts(items: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[Floats, int]:
    """Items x labels, labels in ascending order, and how many items were left out for having one rating."""
    values, of_label = np.unique(np.asarray(labels), return_inverse=True)
    codes = cluster_codes(items, of_label.size)
    _, of_item = np.unique(codes, return_inverse=True)
    n_items = int(of_item.max(initial=-1)) + 1
    table = np.bincount(of_item * values.size + of_label, minlength=n_items * values.size)
    counts = table.reshape(n_items, values.size).astype(np.float64)
    keep = counts.sum(axis=1) >= 2
    return counts[keep], int(np.count_nonzero(~keep))


def _renamed(found: Estimate, name: str, n: int, n_null: int, reason: str) -> Estimate:
    """The estimate under the statistic's own name; without a value, with the reason for that."""
    # Ranks in full order stay so however rows are drawn: that is no certainty.
    is_stuck = found.low is not None and found.high is not None and found.high - found.low <= 1e-12
    return Estimate(
        found.value,
        None if is_stuck else found.low,
        None if is_stuck else found.high,
        found.level,
        f"{name}, {found.method}",
        n,
        n_null,
        found.n_clusters,
        reason if found.value is None else NO_VARIATION if is_stuck else found.null_reason,
    )
