"""Who agrees with whom: each annotator with the others, each pair, each item, and who stands alone.

Everything resamples items. An annotator is compared with other people, never with themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import Floats, Ints, RandomSource
from evenhand.stats._patterns import Patterns, share
from evenhand.stats.ratings import Ratings
from evenhand.stats.results import NO_VARIATION

MOST_PAIRS = 2_000
"""Pairs that are looked at: in a crowd those that share most items."""
_NOBODY = "nobody else rated these items"
_NO_ORDER = "the labels have no order"
_PAIRWISE = "Spearman's rho over pairs of ratings"


class AnnotatorFigures(NamedTuple):
    """One annotator beside the others."""

    annotator: str
    n: int
    """Ratings given."""
    agreement: Estimate
    """Share of the other ratings of the same items that say the same, each item counting once; 0 to 1."""
    kappa: Estimate
    """The same beyond what the two sides' own shares of labels give by chance; 1 is full, 0 is chance."""
    spearman: Estimate
    """Rank correlation with the others over the same items; null where labels have no order."""


class PairFigures(NamedTuple):
    """Two annotators over the items both rated."""

    first: str
    second: str
    agreement: Estimate
    spearman: Estimate


class ItemFigures(NamedTuple):
    """What was said of one item."""

    item: str
    n: int
    disagreement: float | None
    """Share of pairs of ratings that differ; null below two ratings."""
    counts: tuple[int, ...]
    """Ratings of each label, in the order of the scale."""


class Dissent(NamedTuple):
    """A rating that differs from what most of the others say."""

    item: str
    annotator: str
    said: str
    others: str
    """What more than half of the others say."""
    share: float
    """The share of the others who say it."""


def pairwise_spearman(
    ratings: Ratings,
    places: Sequence[float | None],
    *,
    rng: RandomSource,
    resamples: int = 2_000,
    level: float = 0.95,
) -> Estimate:
    """Spearman's rho over all ordered pairs of ratings of one item, so that annotators may differ by item.

    ``places`` is where each label stands in order; labels of one place are tied, those without one (None) are
    left out. From -1 to 1; the interval resamples items.
    """
    levels, of_level = _levels(ratings, places)
    counts = _level_counts(ratings, of_level, levels)
    # n_c n_k for different labels, n_c (n_c - 1) for one label with itself: ordered pairs of an item.
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, range(levels), range(levels)] -= counts
    rows = pairs[counts.sum(axis=1) >= 2].reshape(-1, levels * levels)
    how = Patterns(rng, resamples, level)
    n = int(counts[counts.sum(axis=1) >= 2].sum())
    missing = int(np.count_nonzero(counts.sum(axis=1) < 2))
    reason = NO_VARIATION if len(rows) else "no item has two ratings"
    return how.estimate(rows, joint_rho, n=n, method=_PAIRWISE, reason=reason, n_null=missing)


def by_annotator(
    ratings: Ratings,
    places: Sequence[float | None] | None = None,
    *,
    rng: RandomSource,
    resamples: int = 2_000,
    level: float = 0.95,
) -> list[AnnotatorFigures]:
    """Each annotator's agreement with the others, chance-corrected and ranked; in the order of names."""
    counts = ratings.counts()
    how = Patterns(rng, resamples, level)
    levels, of_level = _levels(ratings, places) if places is not None else (0, np.empty(0, np.intp))
    by_level = _level_counts(ratings, of_level, levels) if levels else None
    found = []
    for code, name in enumerate(ratings.annotators):
        mine = ratings.of_annotator == code
        own = _one_hot(ratings.of_label[mine], len(ratings.labels))
        others = counts[ratings.of_item[mine]] - own
        agreement, kappa = _against_others(own, others, how)
        if by_level is None:
            rho = _without_order(how.level, int(mine.sum()))
        else:
            rho = _rho_of_others(
                of_level[ratings.of_label[mine]], by_level[ratings.of_item[mine]], levels, how
            )
        found.append(AnnotatorFigures(name, int(mine.sum()), agreement, kappa, rho))
    return found


def by_pair(
    ratings: Ratings,
    places: Sequence[float | None] | None = None,
    *,
    rng: RandomSource,
    resamples: int = 2_000,
    level: float = 0.95,
) -> list[PairFigures]:
    """Every two annotators over the items both rated, most shared items first."""
    how = Patterns(rng, resamples, level)
    levels, of_level = _levels(ratings, places) if places is not None else (0, np.empty(0, np.intp))
    found = []
    for (first, second), both in _shared(ratings):
        said = np.array(both, dtype=np.intp)
        same = (said[:, 0] == said[:, 1]).astype(np.float64)
        agreement = how.estimate(
            np.stack([same, np.ones_like(same)], axis=1), share, n=len(said), method="share of equal labels"
        )
        rho = _rho_of_pair(of_level[said], levels, how) if levels else _without_order(how.level, len(said))
        found.append(PairFigures(ratings.annotators[first], ratings.annotators[second], agreement, rho))
    return found


def by_item(ratings: Ratings) -> list[ItemFigures]:
    """How many said what of each item, and how far they differ; the most disputed first."""
    counts = ratings.counts()
    n = counts.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        differ = 1 - ((counts**2).sum(axis=1) - n) / (n * (n - 1))
    found = [
        ItemFigures(name, int(n[at]), float(differ[at]) if n[at] > 1 else None, tuple(map(int, counts[at])))
        for at, name in enumerate(ratings.items)
    ]
    return sorted(found, key=lambda item: (-(item.disagreement or 0.0), item.item))


def dissents(ratings: Ratings) -> list[Dissent]:
    """The ratings that go against more than half of two others or more; the loneliest first."""
    others = ratings.counts()[ratings.of_item]
    places = np.arange(len(others))
    others[places, ratings.of_label] -= 1
    total, top = others.sum(axis=1), others.argmax(axis=1)
    most = others[places, top]
    alone = (total >= 2) & (top != ratings.of_label) & (2 * most > total)
    found = [
        Dissent(
            ratings.items[ratings.of_item[at]],
            ratings.annotators[ratings.of_annotator[at]],
            ratings.labels[ratings.of_label[at]],
            ratings.labels[top[at]],
            float(most[at] / total[at]),
        )
        for at in np.flatnonzero(alone)
    ]
    return sorted(found, key=lambda row: (-row.share, row.annotator, row.item))


def joint_rho(sums: Floats) -> Floats:
    """Spearman's rho of each table of joint counts (draws x levels^2), ties at mid-ranks.

    >>> joint_rho(np.array([[2.0, 0.0, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0]])).tolist()
    [1.0, 0.0]
    """
    levels = round(sums.shape[1] ** 0.5)
    tables = sums.reshape(-1, levels, levels)
    rows, columns, n = tables.sum(axis=2), tables.sum(axis=1), tables.sum(axis=(1, 2))
    x, y = (np.cumsum(side, axis=1) - side / 2 - n[:, None] / 2 for side in (rows, columns))
    products = np.einsum("bij,bi,bj->b", tables, x, y)
    spread = (rows * x**2).sum(axis=1) * (columns * y**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 0, products / np.sqrt(spread), np.nan)


def _against_others(own: Floats, others: Floats, how: Patterns) -> tuple[Estimate, Estimate]:
    """Agreement of one annotator with the rest, plain and beyond chance; a row an item they rated."""
    total = others.sum(axis=1)
    known = total > 0
    theirs = others[known] / total[known, None]
    hit = (own[known] * theirs).sum(axis=1)
    rows = np.column_stack([hit, np.ones_like(hit), own[known], theirs])
    n, missing = int(known.sum()), int(np.count_nonzero(~known))
    plain = how.estimate(
        rows[:, :2], share, n=n, method="agreement with others", reason=_NOBODY, n_null=missing
    )
    reason = NO_VARIATION if n else _NOBODY
    kappa = how.estimate(
        rows, _kappa_of_others, n=n, method="kappa with others", reason=reason, n_null=missing
    )
    return plain, kappa


def _kappa_of_others(sums: Floats) -> Floats:
    n = sums[:, 1]
    labels = (sums.shape[1] - 2) // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = (sums[:, 2 : 2 + labels] * sums[:, 2 + labels :]).sum(axis=1) / n**2
        return np.where(chance < 1 - 1e-12, (sums[:, 0] / n - chance) / (1 - chance), np.nan)


def _rho_of_others(own: Ints, counts: Floats, levels: int, how: Patterns) -> Estimate:
    placed = own >= 0
    rest = counts[placed] - _one_hot(own[placed], levels)
    total = rest.sum(axis=1)
    rest, own = rest[total > 0], own[placed][total > 0]
    # Every item counts once: the others' ratings of it share one pair.
    weights = rest / rest.sum(axis=1, keepdims=True)
    joint = np.zeros((len(own), levels, levels))
    joint[np.arange(len(own)), own] = weights
    reason = NO_VARIATION if len(own) else _NOBODY
    rows = joint.reshape(len(own), levels * levels)
    return how.estimate(rows, joint_rho, n=len(own), method="Spearman's rho with others", reason=reason)


def _rho_of_pair(said: Ints, levels: int, how: Patterns) -> Estimate:
    placed = said[(said >= 0).all(axis=1)]
    rows = _one_hot(placed[:, 0] * levels + placed[:, 1], levels * levels)
    return how.estimate(rows, joint_rho, n=len(placed), method="Spearman's rho", reason=NO_VARIATION)


def _shared(ratings: Ratings) -> list[tuple[tuple[int, int], list[tuple[int, int]]]]:
    """For every two annotators their labels of the items both rated."""
    by_item_: dict[int, dict[int, int]] = defaultdict(dict)
    for item, annotator, label in zip(
        ratings.of_item.tolist(), ratings.of_annotator.tolist(), ratings.of_label.tolist(), strict=True
    ):
        by_item_[item][annotator] = label
    found: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for given in by_item_.values():
        for first, second in combinations(sorted(given), 2):
            found[first, second].append((given[first], given[second]))
    return sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:MOST_PAIRS]


def _levels(ratings: Ratings, places: Sequence[float | None]) -> tuple[int, Ints]:
    """How many different places there are, and the one of each label; -1 where it has none."""
    if len(places) != len(ratings.labels):
        raise InputError(
            f"{len(places)} places came for {len(ratings.labels)} labels",
            accepted="one a label, None where it has none",
        )
    order = sorted({place for place in places if place is not None})
    codes = [-1 if place is None else order.index(place) for place in places]
    return len(order), np.array(codes, dtype=np.intp)


def _level_counts(ratings: Ratings, of_level: Ints, levels: int) -> Floats:
    counts = np.zeros((len(ratings.items), levels))
    given = of_level[ratings.of_label]
    np.add.at(counts, (ratings.of_item[given >= 0], given[given >= 0]), 1.0)
    return counts


def _one_hot(codes: Ints, size: int) -> Floats:
    rows = np.zeros((codes.size, size))
    rows[np.arange(codes.size), codes] = 1.0
    return rows


def _without_order(level: float, n: int) -> Estimate:
    return Estimate(None, None, None, level, "Spearman's rho", n, 0, n, _NO_ORDER)
