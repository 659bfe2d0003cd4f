"""How far people (or people and a metric) agree. Ratings come in long form: one row a rating."""

from __future__ import annotations

from collections.abc import Callable
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
from evenhand.stats._quantiles import t_two_sided
from evenhand.stats.bootstrap import bootstrap_interval
from evenhand.stats.results import NO_VARIATION

Scale: TypeAlias = Literal["nominal", "ordinal", "interval"]
_SINGLE = "no item has two ratings"


class Correlation(NamedTuple):
    """A rank correlation and its p-value."""

    estimate: Estimate
    p: float | None
    """Two-sided, of no correlation: Student's t with two degrees of freedom fewer than clusters."""


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
    rows = counts.sum(axis=1)
    agreeing = ((counts**2).sum(axis=1) - rows) / (rows * (rows - 1))

    def kappa(at: Ints) -> float | None:
        shares = counts[at].sum(axis=0) / rows[at].sum()
        chance = float(shares @ shares)
        return (float(agreeing[at].mean()) - chance) / (1 - chance) if chance < 1 else None

    return _over_items(kappa, rows, n_null, "Fleiss' kappa", rng=rng, resamples=resamples, level=level)


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
    if scale == "interval":
        alpha, rows, n_null = _interval_alpha(items, checked_values(values, "values"))
    elif scale in ("nominal", "ordinal"):
        counts, n_null = _counts(items, values)
        rows = counts.sum(axis=1)
        alpha = _nominal_alpha(counts) if scale == "nominal" else _ordinal_alpha(counts)
    else:
        raise InputError(f"scale is {scale!r}", accepted="nominal, ordinal or interval")
    name = f"Krippendorff's alpha ({scale})"
    return _over_items(alpha, rows, n_null, name, rng=rng, resamples=resamples, level=level)


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
    rest = 1 - found.value**2
    if rest <= 1e-15:
        return Correlation(found, 0.0)
    df = found.n_clusters - 2
    return Correlation(found, t_two_sided(found.value * (df / rest) ** 0.5, df))


Statistic: TypeAlias = Callable[[Ints], float | None]


def _weighted_ranks(codes: Ints, weights: Floats) -> Floats:
    """The mid-rank of each row among all rows by weight, less the mean rank."""
    totals = weighted_counts(codes, weights)
    ranks: Floats = (np.cumsum(totals) - totals / 2 - totals.sum() / 2)[codes]
    return ranks


def _nominal_alpha(counts: Floats) -> Statistic:
    rows = counts.sum(axis=1)
    observed = (rows**2 - (counts**2).sum(axis=1)) / (rows - 1)

    def alpha(at: Ints) -> float | None:
        n, totals = float(rows[at].sum()), counts[at].sum(axis=0)
        expected = n * n - float(totals @ totals)
        return 1 - (n - 1) * float(observed[at].sum()) / expected if expected > 0 else None

    return alpha


def _ordinal_alpha(counts: Floats) -> Statistic:
    rows = counts.sum(axis=1)

    def alpha(at: Ints) -> float | None:
        drawn = counts[at]
        totals = drawn.sum(axis=0)
        # The ordinal metric is the squared difference of these mid-ranks; centred against cancellation.
        ranks = np.cumsum(totals) - totals / 2 - totals.sum() / 2
        return _moment_alpha(rows[at], drawn @ ranks, drawn @ ranks**2)

    return alpha


def _interval_alpha(items: npt.ArrayLike, values: Floats) -> tuple[Statistic, Floats, int]:
    codes = cluster_codes(items, values.size)
    all_rows = np.bincount(codes)
    keep = all_rows >= 2
    centred = values - values.mean() if values.size else values
    rows = all_rows[keep].astype(np.float64)
    sums = weighted_counts(codes, centred)[keep]
    squares = weighted_counts(codes, centred**2)[keep]

    def alpha(at: Ints) -> float | None:
        return _moment_alpha(rows[at], sums[at], squares[at])

    return alpha, rows, int(np.count_nonzero(all_rows == 1))


def _moment_alpha(rows: Floats, sums: Floats, squares: Floats) -> float | None:
    """Alpha for squared differences, from each item's number, sum and sum of squares."""
    n = float(rows.sum())
    observed = float(np.sum((rows * squares - sums**2) / (rows - 1)))
    expected = n * float(squares.sum()) - float(sums.sum()) ** 2
    return 1 - (n - 1) * observed / expected if expected > 1e-12 * n * float(squares.sum()) else None


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


def _over_items(
    statistic: Statistic,
    rows: Floats,
    n_null: int,
    name: str,
    *,
    rng: RandomSource,
    resamples: int,
    level: float,
) -> Estimate:
    items = np.arange(rows.size)
    found = bootstrap_interval(statistic, items, rng=rng, resamples=resamples, level=level)
    return _renamed(found, name, int(rows.sum()), n_null, NO_VARIATION if rows.size else _SINGLE)


def _renamed(found: Estimate, name: str, n: int, n_null: int, reason: str) -> Estimate:
    """The estimate under the statistic's own name; without a value, with the reason for that."""
    return Estimate(
        found.value,
        found.low,
        found.high,
        found.level,
        f"{name}, {found.method}",
        n,
        n_null,
        found.n_clusters,
        reason if found.value is None else found.null_reason,
    )
