"""Agreement between people (or people and a metric). Ratings are in long form: one row per rating."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias, Unpack, get_args

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import (
    Floats,
    Ids,
    Ints,
    check_pairs,
    check_values,
    cross_tabulate,
    divide,
    encode_clusters,
    weighted_counts,
)
from evenhand.stats.bootstrap import (
    PERCENTILE,
    Resampling,
    ResamplingOptions,
    percentile_estimate,
    ratio_of_sums,
    resample_clusters,
)
from evenhand.stats.label_scales import RatingCodes
from evenhand.stats.quantiles import t_two_sided
from evenhand.stats.results import NO_VARIATION

AlphaScale: TypeAlias = Literal["nominal", "ordinal", "interval"]
_SINGLE = "no item has two ratings"
_MOST_LABELS = 20
"""With more labels, ordinal ranks are not recomputed per resample: memory grows with the square of labels."""


class Correlation(NamedTuple):
    """A rank correlation and its p-value."""

    estimate: Estimate
    p: float | None
    """Two-sided, for no correlation: Student's t with clusters - 2 degrees of freedom, and never below
    2 / clusters!, the smallest p-value that any ordering of them gives."""


def fleiss_kappa(items: npt.ArrayLike, labels: npt.ArrayLike, **how: Unpack[ResamplingOptions]) -> Estimate:
    """Fleiss' kappa of nominal labels: 1 is full agreement, 0 chance level, below 0 less than chance.

    Items may differ in their number of ratings; those with fewer than two are left out and counted in
    ``n_null``. An item's agreement is its share of agreeing pairs, chance agreement the sum of the squared
    shares of all labels. The interval resamples items; n counts ratings, n_clusters items.
    """
    counts, n_null = _counts(items, labels)
    ratings = counts.sum(axis=1)
    agreeing = ((counts**2).sum(axis=1) - ratings) / (ratings * (ratings - 1))
    rows = np.column_stack([agreeing, np.ones_like(agreeing), counts])
    return Resampling(**how).estimate_items(
        rows, _fleiss_kappas, n=int(ratings.sum()), n_null=n_null, name="Fleiss' kappa", empty=_SINGLE
    )


def krippendorff_alpha(
    items: npt.ArrayLike, values: npt.ArrayLike, *, scale: AlphaScale, **how: Unpack[ResamplingOptions]
) -> Estimate:
    """Krippendorff's alpha, 1 - observed / expected disagreement: 1 is full agreement, 0 chance level.

    Disagreement of two ratings is 1 where they differ (nominal), the squared difference (interval), or the
    squared difference of their mid-ranks among all ratings (ordinal). Items with one rating are left out
    and counted in ``n_null``. The interval resamples items; n counts ratings, n_clusters items.
    """
    if scale not in get_args(AlphaScale):
        raise InputError(f"scale is {scale!r}", expected="nominal, ordinal or interval")
    if scale == "interval":
        rows, n_null = _interval_rows(items, check_values(values, "values"))
        n, statistic = rows[:, 1].sum(), _interval_alpha
    else:
        counts, n_null = _counts(items, values)
        is_large = counts.shape[1] > _MOST_LABELS
        n = counts.sum()
        rows = (_nominal_rows if scale == "nominal" else _rank_rows if is_large else _ordinal_rows)(counts)
        statistic = _nominal_alpha if scale == "nominal" else _interval_alpha if is_large else _ordinal_alpha
    return Resampling(**how).estimate_items(
        rows, statistic, n=int(n), n_null=n_null, name=f"Krippendorff's alpha ({scale})", empty=_SINGLE
    )


def spearman(
    x: npt.ArrayLike, y: npt.ArrayLike, clusters: Ids = None, **how: Unpack[ResamplingOptions]
) -> Estimate:
    """Spearman's rank correlation (ties get mid-ranks), from -1 to 1, with a cluster bootstrap interval."""
    first, second = check_pairs(x, y, ("x", "y"))
    codes = encode_clusters(clusters, first.size)
    (_, of_x), (_, of_y) = (np.unique(values, return_inverse=True) for values in (first, second))

    def correlation(at: Ints) -> float:
        # A row drawn twice has weight two: rows are sorted once, not for every resample.
        weights = np.bincount(at, minlength=first.size).astype(np.float64)
        ranks_x, ranks_y = _weighted_ranks(of_x, weights), _weighted_ranks(of_y, weights)
        spread = float(weights @ ranks_x**2) * float(weights @ ranks_y**2)
        return float(weights @ (ranks_x * ranks_y)) / spread**0.5 if spread > 0 else math.nan

    n, n_clusters, resampling = first.size, np.unique(codes).size, Resampling(**how)
    reason, method = NO_VARIATION if n > 1 else "fewer than two values", f"Spearman's rho, {PERCENTILE}"
    missing = Estimate(None, None, None, resampling.level, method, n, 0, n_clusters, reason)
    resamples = resample_clusters(codes, rng=resampling.rng, resamples=resampling.resamples)
    draws = np.array([correlation(rows) for rows in resamples] if n_clusters > 1 else [])
    value = correlation(np.arange(n)) if n else None
    return percentile_estimate(value, draws, missing, resamples=resampling.resamples)


def rank_correlation(
    x: npt.ArrayLike, y: npt.ArrayLike, clusters: Ids = None, **how: Unpack[ResamplingOptions]
) -> Correlation:
    """`spearman` with its p-value; p is null below three clusters."""
    rho = spearman(x, y, clusters, **how)
    if rho.value is None or rho.n_clusters < 3:
        return Correlation(rho, None)
    rest, df = 1 - rho.value**2, rho.n_clusters - 2
    p = 0.0 if rest <= 1e-15 else t_two_sided(rho.value * (df / rest) ** 0.5, df)
    # At least two orderings of the clusters correlate perfectly: no test can give a smaller p.
    return Correlation(rho, max(p, 2 / math.factorial(min(rho.n_clusters, 20))))


def _weighted_ranks(codes: Ints, weights: Floats) -> Floats:
    """The weighted mid-rank of each row among all rows, minus the mean rank."""
    totals = weighted_counts(codes, weights)
    ranks: Floats = (np.cumsum(totals) - totals / 2 - totals.sum() / 2)[codes]
    return ranks


def _fleiss_kappas(sums: Floats) -> Floats:
    """Fleiss' kappa from the sums of agreement, items and counts."""
    totals = sums[:, 2:]
    chance = divide((totals**2).sum(axis=1), totals.sum(axis=1) ** 2)
    return divide(divide(sums[:, 0], sums[:, 1]) - chance, 1 - chance)


def _nominal_rows(counts: Floats) -> Floats:
    """For each item its share of differing pairs, weighted by its number of ratings, and its counts."""
    ratings = counts.sum(axis=1)
    return np.column_stack([(ratings**2 - (counts**2).sum(axis=1)) / (ratings - 1), counts])


def _nominal_alpha(sums: Floats) -> Floats:
    totals = sums[:, 1:]
    n = totals.sum(axis=1)
    return _alpha(n, sums[:, 0], n * n - (totals**2).sum(axis=1), n * n)


def _ordinal_rows(counts: Floats) -> Floats:
    """For each item the quadratic form from label ranks to its disagreement (labels^2), and its counts."""
    ratings, labels = counts.sum(axis=1), counts.shape[1]
    products = -counts[:, :, None] * counts[:, None, :]
    products[:, range(labels), range(labels)] += ratings[:, None] * counts
    flat = (products / (ratings - 1)[:, None, None]).reshape(len(counts), labels**2)
    return np.column_stack([flat, counts])


def _rank_rows(counts: Floats) -> Floats:
    """As `_interval_rows`, for the mid-ranks of labels among all ratings."""
    totals = counts.sum(axis=0)
    ranks = np.cumsum(totals) - totals / 2 - totals.sum() / 2
    return _disagreement_rows(counts.sum(axis=1), counts @ ranks, counts @ ranks**2)


def _ordinal_alpha(sums: Floats) -> Floats:
    labels = round((4 * sums.shape[1] + 1) ** 0.5 - 1) // 2
    products, totals = sums[:, : labels**2].reshape(-1, labels, labels), sums[:, labels**2 :]
    n = totals.sum(axis=1)
    # The ordinal metric is the squared difference of these mid-ranks; centred to avoid cancellation.
    ranks = np.cumsum(totals, axis=1) - totals / 2 - n[:, None] / 2
    squares = (totals * ranks**2).sum(axis=1)
    observed = np.einsum("bij,bi,bj->b", products, ranks, ranks)
    return _alpha(n, observed, n * squares - (totals * ranks).sum(axis=1) ** 2, n * squares)


def _interval_rows(items: npt.ArrayLike, values: Floats) -> tuple[Floats, int]:
    """Disagreement, number, sum and squares of each item with two or more ratings; number of other items."""
    codes = encode_clusters(items, values.size)
    n = np.bincount(codes).astype(np.float64)
    centred = values - values.mean() if values.size else values
    sums, squares = (weighted_counts(codes, column) for column in (centred, centred**2))
    keep = n >= 2
    return _disagreement_rows(n[keep], sums[keep], squares[keep]), int(np.count_nonzero(n == 1))


def _disagreement_rows(n: Floats, sums: Floats, squares: Floats) -> Floats:
    return np.column_stack([(n * squares - sums**2) / (n - 1), n, sums, squares])


def _interval_alpha(sums: Floats) -> Floats:
    observed, n, total, squares = sums.T
    return _alpha(n, observed, n * squares - total**2, n * squares)


def _alpha(n: Floats, observed: Floats, expected: Floats, scale: Floats) -> Floats:
    """1 - observed / expected disagreement; NaN where nothing varies, up to rounding at ``scale``."""
    return 1 - divide((n - 1) * observed, expected, expected > 1e-12 * scale)


def _counts(items: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[Floats, int]:
    """Items x labels (labels in ascending order), and the number of items left out for having one rating."""
    values, of_label = np.unique(np.asarray(labels), return_inverse=True)
    codes = encode_clusters(items, of_label.size)
    _, of_item = np.unique(codes, return_inverse=True)
    counts = cross_tabulate(of_item, of_label, (int(of_item.max(initial=-1)) + 1, values.size))
    keep = counts.sum(axis=1) >= 2
    return counts[keep], int(np.count_nonzero(~keep))


MOST_PAIRS = 2_000
"""Maximum number of pairs compared; with more, those that share most items."""
_NOBODY = "nobody else rated these items"
_NO_ORDER = "the labels have no order"


class AnnotatorFigures(NamedTuple):
    """One annotator compared with the others."""

    annotator: str
    n: int
    """Ratings given."""
    agreement: Estimate
    """Share of the other ratings of the same items with the same label, each item counting once; 0 to 1."""
    kappa: Estimate
    """The same, corrected for chance given both sides' shares of labels; 1 is full agreement, 0 is chance."""
    spearman: Estimate
    """Rank correlation with the others over the same items; null if labels have no order."""


class PairFigures(NamedTuple):
    """Two annotators compared over the items both rated."""

    first: str
    second: str
    agreement: Estimate
    spearman: Estimate


class ItemFigures(NamedTuple):
    """The ratings of one item."""

    item: str
    n: int
    disagreement: float | None
    """Share of pairs of ratings that differ; null below two ratings."""
    counts: tuple[int, ...]
    """Ratings of each label, in the order of the scale."""


class Dissent(NamedTuple):
    """A rating that differs from the label of most other annotators."""

    item: str
    annotator: str
    said: str
    others: str
    """The label chosen by more than half of the others."""
    share: float
    """The share of the others who chose it."""


def pairwise_spearman(
    ratings: RatingCodes, places: Sequence[float | None], **how: Unpack[ResamplingOptions]
) -> Estimate:
    """Spearman's rho over all ordered pairs of ratings of one item, so that annotators may differ by item.

    ``places`` holds the position of each label; labels with the same position are tied, those without one
    (None) are left out. From -1 to 1; the interval resamples items.
    """
    levels, of_level = _levels(ratings, places)
    counts = _level_counts(ratings, of_level, levels)
    has_pair = counts.sum(axis=1) >= 2
    # Ordered pairs of an item: n_c n_k for different labels, n_c (n_c - 1) for a label with itself.
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, range(levels), range(levels)] -= counts
    return Resampling(**how).estimate_items(
        pairs[has_pair].reshape(-1, levels * levels),
        spearman_of_tables,
        n=int(counts[has_pair].sum()),
        n_null=int(np.count_nonzero(~has_pair)),
        name="Spearman's rho over pairs of ratings",
        empty=_SINGLE,
    )


def annotator_figures(
    ratings: RatingCodes, places: Sequence[float | None] | None = None, **how: Unpack[ResamplingOptions]
) -> list[AnnotatorFigures]:
    """Each annotator's agreement, kappa and rank correlation with the others, sorted by name."""
    counts, resampling = ratings.counts(), Resampling(**how)
    levels, of_level = _levels(ratings, places)
    by_level = _level_counts(ratings, of_level, levels)
    figures = []
    for code, name in enumerate(ratings.annotators):
        is_own = ratings.of_annotator == code
        items, labels, n = ratings.of_item[is_own], ratings.of_label[is_own], int(is_own.sum())
        own = _one_hot(labels, len(ratings.labels))
        agreement, kappa = _against_others(own, counts[items] - own, resampling)
        own_level = of_level[labels]
        others = by_level[items] - _one_hot(own_level, levels)
        rho = _rank_with(own_level, others, resampling, name="Spearman's rho with others")
        figures.append(AnnotatorFigures(name, n, agreement, kappa, rho))
    return figures


def pair_figures(
    ratings: RatingCodes, places: Sequence[float | None] | None = None, **how: Unpack[ResamplingOptions]
) -> list[PairFigures]:
    """Each pair of annotators over the items both rated, most shared items first."""
    resampling = Resampling(**how)
    levels, of_level = _levels(ratings, places)
    figures = []
    for (first, second), both in _pair_ratings(ratings):
        labels = np.array(both, dtype=np.intp)
        same = (labels[:, 0] == labels[:, 1]).astype(np.float64)
        columns = np.stack([same, np.ones_like(same)], axis=1)
        agreement = resampling.estimate_items(
            columns, ratio_of_sums, n=len(labels), name="share of equal labels"
        )
        own, other = of_level[labels].T
        other_counts = _one_hot(other, levels)
        rho = _rank_with(own, other_counts, resampling, name="Spearman's rho", empty=NO_VARIATION)
        figures.append(PairFigures(ratings.annotators[first], ratings.annotators[second], agreement, rho))
    return figures


def item_figures(ratings: RatingCodes) -> list[ItemFigures]:
    """The number of ratings of each label per item, and their disagreement; most disputed items first."""
    counts = ratings.counts()
    n = counts.sum(axis=1)
    differ = 1 - divide((counts**2).sum(axis=1) - n, n * (n - 1))
    figures = [
        ItemFigures(name, int(n[at]), float(differ[at]) if n[at] > 1 else None, tuple(map(int, counts[at])))
        for at, name in enumerate(ratings.items)
    ]
    return sorted(figures, key=lambda item: (-(item.disagreement or 0.0), item.item))


def find_dissents(ratings: RatingCodes) -> list[Dissent]:
    """The ratings that contradict a majority of at least two others; strongest majorities first."""
    others = ratings.counts()[ratings.of_item]
    rows = np.arange(len(others))
    others[rows, ratings.of_label] -= 1
    total, top = others.sum(axis=1), others.argmax(axis=1)
    most = others[rows, top]
    is_dissent = (total >= 2) & (top != ratings.of_label) & (2 * most > total)
    dissents = [
        Dissent(
            ratings.items[ratings.of_item[at]],
            ratings.annotators[ratings.of_annotator[at]],
            ratings.labels[ratings.of_label[at]],
            ratings.labels[top[at]],
            float(most[at] / total[at]),
        )
        for at in np.flatnonzero(is_dissent)
    ]
    return sorted(dissents, key=lambda row: (-row.share, row.annotator, row.item))


def spearman_of_tables(sums: Floats) -> Floats:
    """Spearman's rho of each table of joint counts (draws x levels^2), ties at mid-ranks.

    >>> spearman_of_tables(np.array([[2.0, 0.0, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0]])).tolist()
    [1.0, 0.0]
    """
    levels = round(sums.shape[1] ** 0.5)
    tables = sums.reshape(-1, levels, levels)
    rows, columns, n = tables.sum(axis=2), tables.sum(axis=1), tables.sum(axis=(1, 2))
    x, y = (np.cumsum(side, axis=1) - side / 2 - n[:, None] / 2 for side in (rows, columns))
    products = np.einsum("bij,bi,bj->b", tables, x, y)
    spread = (rows * x**2).sum(axis=1) * (columns * y**2).sum(axis=1)
    return divide(products, np.sqrt(spread))


def _against_others(own: Floats, others: Floats, resampling: Resampling) -> list[Estimate]:
    """Agreement of one annotator with the rest, raw and chance-corrected; one row per item they rated."""
    known = others.sum(axis=1) > 0
    theirs = others[known] / others[known].sum(axis=1, keepdims=True)
    hit = (own[known] * theirs).sum(axis=1)
    rows = np.column_stack([hit, np.ones_like(hit), own[known], theirs])
    estimate = partial(resampling.estimate_items, n=len(hit), empty=_NOBODY, n_null=len(known) - len(hit))
    return [
        estimate(rows[:, :2], ratio_of_sums, name="agreement with others"),
        estimate(rows, _kappa_of_others, name="kappa with others"),
    ]


def _kappa_of_others(sums: Floats) -> Floats:
    own, theirs = np.split(sums[:, 2:], 2, axis=1)
    chance = (own * theirs).sum(axis=1) / sums[:, 1] ** 2
    return divide(sums[:, 0] / sums[:, 1] - chance, 1 - chance, chance < 1 - 1e-12)


def _rank_with(
    own: Ints, others: Floats, resampling: Resampling, *, name: str, empty: str = _NOBODY
) -> Estimate:
    """Spearman's rho of own levels (-1 if there is none) with others' counts of levels, one row per item."""
    if not others.shape[1]:
        return Estimate(
            None, None, None, resampling.level, "Spearman's rho", own.size, 0, own.size, _NO_ORDER
        )
    known = (own >= 0) & (others.sum(axis=1) > 0)
    own, others = own[known], others[known]
    # Every item counts once: the others' ratings of it share a weight of one.
    joint = np.zeros((own.size, others.shape[1], others.shape[1]))
    joint[np.arange(own.size), own] = others / others.sum(axis=1, keepdims=True)
    rows = joint.reshape(own.size, others.shape[1] ** 2)
    return resampling.estimate_items(rows, spearman_of_tables, n=own.size, name=name, empty=empty)


def _pair_ratings(ratings: RatingCodes) -> list[tuple[tuple[int, int], list[tuple[int, int]]]]:
    """For each pair of annotators, their labels of the items both rated."""
    by_item: dict[int, dict[int, int]] = defaultdict(dict)
    for item, annotator, label in zip(
        ratings.of_item.tolist(), ratings.of_annotator.tolist(), ratings.of_label.tolist(), strict=True
    ):
        by_item[item][annotator] = label
    pairs: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for labels in by_item.values():
        for first, second in combinations(sorted(labels), 2):
            pairs[first, second].append((labels[first], labels[second]))
    return sorted(pairs.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:MOST_PAIRS]


def _levels(ratings: RatingCodes, places: Sequence[float | None] | None) -> tuple[int, Ints]:
    """The number of distinct positions, and the index of each label's position; -1 if it has none."""
    if places is None:
        return 0, np.full(len(ratings.labels), -1)
    if len(places) != len(ratings.labels):
        raise InputError(
            f"there are {len(places)} positions for {len(ratings.labels)} labels",
            expected="one position per label, None where it has none",
        )
    order = sorted({place for place in places if place is not None})
    codes = [-1 if place is None else order.index(place) for place in places]
    return len(order), np.array(codes, dtype=np.intp)


def _level_counts(ratings: RatingCodes, of_level: Ints, levels: int) -> Floats:
    codes = of_level[ratings.of_label]
    is_ordered = codes >= 0
    return cross_tabulate(ratings.of_item[is_ordered], codes[is_ordered], (len(ratings.items), levels))


def _one_hot(codes: Ints, size: int) -> Floats:
    """A row for each code, all zeros for -1."""
    known = codes >= 0
    return cross_tabulate(np.flatnonzero(known), codes[known], (codes.size, size))
