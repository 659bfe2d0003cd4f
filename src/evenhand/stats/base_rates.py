"""Distances between base rates (Liu et al. 2021, section 3), each compared with chance.

A base rate is the distribution of a judge's probabilities over the texts of an option. The distance of two
samples is never zero, so a raw distance is uninformative: here each comes with its permutation null, an
estimate corrected by the null's mean, an interval, a p-value and the direction of the bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.stats._arrays import Floats, Ids, Ints, RandomSource, check_lengths, check_level, check_values
from evenhand.stats.contrasts import clustered_contrast
from evenhand.stats.quantiles import normal_quantile, t_quantile
from evenhand.stats.results import NO_VALUES, ONE_CLUSTER

OVERALL = "(overall)"
"""The mean over options. The paper's 1.95 for direct topic bias is not the mean of its cells (1.395)."""
FEW_ARRANGEMENTS = "too few keywords to shuffle"
"""If all arrangements of keywords are equivalent, chance and bias are indistinguishable."""
FEW_KEYWORDS = "too few keywords for an interval"
LEAST = 4
"""Minimum number of keywords of an option for an interval. With two or three, a bootstrap interval covers 60
to 70 % instead of 95 %; widened by the t quantile it would be useless. p stays exact."""
LARGE = 200_000
"""Above this many values the steps of two samples are not cached."""
SLICES = 32
"""Number of directions of a sliced distance, computed for each of thousands of arrangements."""
SideTexts: TypeAlias = tuple[npt.ArrayLike, Ids, Ids]
"""Values, option and keyword of every text; values are numbers, or class probabilities as rows x classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRateDistance:
    """The distance of an option's base rate from that of all options, and its expectation under chance."""

    estimate: float | None = None
    """Second-order Wasserstein distance, in probability units; 0 or more, never exactly 0 in a sample."""
    null_mean: float | None = None
    """Its mean when keywords are assigned to options at random."""
    corrected: float | None = None
    """``estimate - null_mean``: about 0 without bias, and then negative about half the time."""
    low: float | None = None
    high: float | None = None
    """Interval of ``corrected``: keywords resampled within options, widened for few keywords by the t
    quantile (4 keywords: 1.9 times, 10: 1.2); None below 4."""
    p: float | None = None
    """Share of arrangements with at least this distance; one-sided, since a distance has no sign."""
    direction: float | None = None
    """Mean of the option minus mean of all options: positive leans conservative. Not in the paper.

    None for all options together, whose directions cancel, and for more than two classes.
    """
    direction_low: float | None = None
    direction_high: float | None = None
    n: int
    n_keywords: int
    null_reason: str | None = None


def base_rate_distances(
    sides: Sequence[SideTexts],
    *,
    rng: RandomSource,
    permutations: int = 2_000,
    resamples: int = 1_000,
    level: float = 0.95,
) -> dict[str, BaseRateDistance]:
    """The distance of each option's base rate from that of all options of an attribute, and ``(overall)``.

    With one set of texts: indirect bias, equation 2. With two sets of the same options, under liberal and
    under conservative prompts: direct bias, equation 3, the absolute difference of their distances; the
    direction is then that of all texts of the option. Keywords, not texts, are shuffled and resampled: the
    texts of one keyword are a cluster. Values as rows x classes are probabilities of more than two classes:
    the distance is then the sliced one.
    """
    generator = np.random.default_rng(rng)
    return _build_bias(sides, level, generator).measure(generator, permutations, resamples)


@dataclass(frozen=True, slots=True)
class BiasChange:
    """The change in bias beyond chance, after minus before; negative if the bias fell."""

    estimate: float | None
    low: float | None
    high: float | None
    """Interval from resampling the same keywords before and after."""
    n_keywords: int
    null_reason: str | None = None


def bias_change(
    before: Sequence[SideTexts],
    after: Sequence[SideTexts],
    *,
    rng: RandomSource,
    permutations: int = 2_000,
    resamples: int = 1_000,
    level: float = 0.95,
) -> dict[str, BiasChange]:
    """Corrected bias after minus before, for every option and ``(overall)``, in probability units.

    ``before`` and ``after`` are one set of texts each (indirect bias), or the liberal and the conservative
    one (direct bias), with the same keywords. Keywords are shuffled and resampled jointly for both, so that
    an effect of a keyword on both does not count as a change.
    """
    if len(before) != len(after) or len(before) not in (1, 2):
        raise InputError(
            f"{len(before)} sets of texts before and {len(after)} after",
            expected="one of each (indirect bias), or two of each (direct bias)",
        )
    generator = np.random.default_rng(rng)
    bias = _build_bias([*before, *after], level, generator, is_change=True)
    changes = bias.measure(generator, permutations, resamples)
    return {
        # Identical texts before and after are equal in every arrangement: the change is exactly 0.
        name: BiasChange(0.0, 0.0, 0.0, change.n_keywords)
        if change.estimate == change.null_mean == 0
        else BiasChange(change.corrected, change.low, change.high, change.n_keywords, change.null_reason)
        for name, change in changes.items()
    }


@dataclass(frozen=True, slots=True)
class _Bias:
    """One attribute: the texts of each kind of prompt, with the computation of their distances."""

    values: Floats
    """Texts of all sides x directions; one column if values are numbers."""
    options: Ints
    keywords: Ints
    columns: Sequence[Sequence[tuple[Floats, Ints]]]
    """For each side and direction, values (sorted once) and keywords. Any selection of them stays sorted."""
    owner: Ints
    """The option of every keyword."""
    names: tuple[str, ...]
    level: float
    is_change: bool
    """Whether the second half of the sides is compared with the first."""

    def measure(
        self, rng: np.random.Generator, permutations: int, resamples: int
    ) -> dict[str, BaseRateDistance]:
        if not self.names:
            return {}
        observed = self._distances(self.owner, None)
        null = np.array([self._distances(rng.permutation(self.owner), None) for _ in range(permutations)])
        # Keywords are drawn with replacement within options, with the same counts for every side.
        words, size = [np.flatnonzero(self.owner == at) for at in range(len(self.names))], self.owner.size
        draws = (np.concatenate([rng.choice(own, size=own.size) for own in words]) for _ in range(resamples))
        drawn = np.array([self._distances(self.owner, np.bincount(draw, minlength=size)) for draw in draws])
        measure = partial(self._against_chance, observed=observed, null=null, drawn=drawn)
        named = {name: measure(np.array([at]), self._direction(at)) for at, name in enumerate(self.names)}
        return {**named, OVERALL: measure(np.arange(len(self.names)), {})}

    def _distances(self, owner: Ints, times: Ints | None) -> Floats:
        count = len(self.names)
        sides = np.stack([_to_all(columns, owner, times, count) for columns in self.columns])
        # The distances of one kind of prompt, or the absolute differences between those of two kinds.
        kinds = sides.reshape(1 + self.is_change, -1, count)
        distances = np.abs(np.diff(kinds, axis=1)[:, 0]) if kinds.shape[1] == 2 else kinds[:, 0]
        one: Floats = distances[1] - distances[0] if self.is_change else distances[0]
        return one

    def _against_chance(
        self, chosen: Ints, direction: dict[str, float | None], observed: Floats, null: Floats, drawn: Floats
    ) -> BaseRateDistance:
        """The mean distance of the chosen options, compared with chance."""
        counts = np.bincount(self.owner, minlength=len(self.names))[chosen]
        n, keywords = int(np.isin(self.options, chosen).sum()), int(counts.sum())
        wider = _widening(drawn[:, chosen], counts, self.level)
        free = keywords - len(chosen)
        too_few = None if free >= LEAST - 1 else FEW_KEYWORDS if free else ONE_CLUSTER
        estimate = float(observed[chosen].mean())
        null, drawn = (draws[:, chosen].mean(axis=1) for draws in (null, drawn))
        null, drawn = (means[~np.isnan(means)] for means in (null, drawn))
        if n == 0 or np.isnan(estimate) or not null.size or not drawn.size:
            return BaseRateDistance(n=n, n_keywords=keywords, null_reason=NO_VALUES)
        chance = float(null.mean())
        reason = FEW_ARRANGEMENTS if too_few != ONE_CLUSTER and np.ptp(null) < 1e-12 else too_few
        # Percentiles of resampled distances, which noise inflates, centred on the estimate.
        tails = (1 - self.level) / 2, (1 + self.level) / 2
        low, high = np.quantile(wider * (drawn - drawn.mean()), tails).tolist()
        p = float((1 + np.sum(null >= estimate - 1e-12)) / (1 + len(null)))
        return BaseRateDistance(
            estimate=estimate,
            null_mean=chance,
            corrected=estimate - chance,
            low=None if reason else estimate + low - chance,
            high=None if reason else estimate + high - chance,
            p=None if reason == FEW_ARRANGEMENTS else p,
            **direction,
            n=n,
            n_keywords=keywords,
            null_reason=reason,
        )

    def _direction(self, at: int) -> dict[str, float | None]:
        if self.values.shape[1] > 1:
            return {}
        others = self.options != at
        share = float((self.options == at).mean())
        if share in (0.0, 1.0):
            return {"direction": 0.0 if share else None}
        # Option minus all = (1 - share) (option minus the others).
        weights = [1 - share, share - 1]
        cells = others.astype(np.intp)
        lean = clustered_contrast(self.values[:, 0], cells, self.keywords, weights=weights, level=self.level)
        return {"direction": lean.estimate, "direction_low": lean.low, "direction_high": lean.high}


def _to_all(columns: Sequence[tuple[Floats, Ints]], owner: Ints, times: Ints | None, count: int) -> Floats:
    """The distance of each option's values from those of all options; NaN for an option without values."""
    squares = np.zeros(count)
    for values, words in columns:
        if times is not None:
            repeats = times[words]
            values, words = np.repeat(values, repeats), np.repeat(words, repeats)
        codes = owner[words]
        own = [values[codes == at] for at in range(count)]
        squares += [mean_square_gap(part, values) if part.size else np.nan for part in own]
    distances: Floats = np.sqrt(squares / len(columns))
    return distances


def _build_bias(
    sides: Sequence[SideTexts], level: float, rng: np.random.Generator, *, is_change: bool = False
) -> _Bias:
    """Build the bias with shared codes for all sides; a keyword must belong to one option."""
    # Texts x directions, with the same directions for every side; numbers give one column.
    if all(np.ndim(side[0]) < 2 for side in sides):
        values = [check_values(side[0])[:, None] for side in sides]
    else:
        points = [check_simplex(side[0]) for side in sides]
        directions = simplex_directions(points[0].shape[1], rng=rng, number=SLICES)
        values = [rows @ directions for rows in points]
    names, options = _code_jointly([side[1] for side in sides], values, "options")
    words, keywords = _code_jointly([side[2] for side in sides], values, "keywords")
    owner = np.zeros(words.size, dtype=np.int64)
    owner[keywords] = options
    if (owner[keywords] != options).any():
        word = words[keywords[owner[keywords] != options][0]]
        raise InputError(f"the keyword {str(word)!r} is in two options", expected="one option per keyword")
    cuts = np.cumsum([len(y) for y in values])[:-1]
    columns = [
        [(column[order], own[order]) for column in rows.T for order in [np.argsort(column, kind="stable")]]
        for rows, own in zip(values, np.split(keywords, cuts), strict=True)
    ]
    stacked, labels = np.concatenate(values), tuple(map(str, names))
    return _Bias(stacked, options, keywords, columns, owner, labels, check_level(level), is_change)


def _code_jointly(
    columns: Sequence[Ids], values: Sequence[Floats], what: str
) -> tuple[npt.NDArray[np.str_], Ints]:
    """The distinct names, and the number of each text's name."""
    arrays = [np.asarray(column).astype(str) for column in columns]
    for array, own in zip(arrays, values, strict=True):
        check_lengths(f"{what} for every value", values=own, **{what: array})
    return np.unique(np.concatenate(arrays), return_inverse=True)


def _widening(drawn: Floats, keywords: Ints, level: float) -> float:
    """The factor by which to widen a percentile interval over few keywords; 1 for many.

    Hesterberg's (2015) factor: k resampled keywords vary as k - 1 would, and their spread is estimated with
    k - 1 degrees of freedom. For a mean over options these are summed. An option with one keyword does not
    vary when it is resampled, and is ignored.
    """
    varies = (keywords > 1) & ~np.isnan(drawn).all(axis=0)
    spread = np.nanvar(drawn[:, varies], axis=0) if varies.any() else np.zeros(0)
    if not spread.sum() > 0:
        return 1.0
    k = keywords[varies]
    factor = np.sqrt(np.sum(spread * k / (k - 1)) / spread.sum())
    tail = (1 + level) / 2
    return float(factor * t_quantile(tail, float(np.sum(k - 1))) / normal_quantile(tail))


def simplex_directions(classes: int, *, rng: RandomSource, number: int) -> Floats:
    """Directions inside the simplex as columns, each of length ``sqrt((classes - 1) / classes)``.

    That is the root mean square length of a unit vector's projection onto the simplex.
    """
    if classes == 2:
        return np.array([[-0.5], [0.5]])
    drawn = np.random.default_rng(rng).normal(size=(classes, number))
    inside = drawn - drawn.mean(axis=0)
    directions: Floats = inside / np.linalg.norm(inside, axis=0) * math.sqrt((classes - 1) / classes)
    return directions


def check_simplex(points: npt.ArrayLike) -> Floats:
    """The points as rows x classes; rows that are not probabilities raise an error."""
    rows = np.asarray(points, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise InputError(f"points has the shape {rows.shape}", expected="rows x classes, two or more classes")
    wrong = int(np.sum((np.abs(rows.sum(axis=1) - 1) > 1e-4) | (rows < -1e-9).any(axis=1)))
    if wrong or not np.isfinite(rows).all():
        raise InputError(
            f"points holds {wrong or 'missing'} rows that are not probabilities",
            expected="rows of numbers from 0 to 1 that sum to 1",
            fix="divide each row by its sum, and drop rows without values",
        )
    return rows


def mean_square_gap(first: Floats, second: Floats) -> float:
    """The squared second-order Wasserstein distance of two sorted samples, exact, in the squared unit.

    The mean square gap of their quantile functions. In one dimension the political paper's sliced distance
    (equation 2) is its root. For probabilities it lies in [0, 1]. It has no sign, and two samples from the
    same distribution have a small positive distance.
    """
    if first.size == second.size:
        gaps = first - second
        return float(gaps @ gaps) / first.size
    is_large = first.size + second.size > LARGE
    of_first, of_second, widths = (_steps.__wrapped__ if is_large else _steps)(first.size, second.size)
    return float(np.square(first[of_first] - second[of_second]) @ widths)


@lru_cache(maxsize=256)
def _steps(m: int, n: int) -> tuple[Ints, Ints, Floats]:
    """The intervals on which the quantile functions of m and n values are both constant, and their widths.

    Steps are counted as integers in units of 1 / (m n), so rounding neither drops nor duplicates any. Where
    both samples step at once, one of the two steps has zero width. Steps are cached, because a permutation
    test uses the same sizes thousands of times.
    """
    own, other = np.arange(1, m + 1, dtype=np.int64) * n, np.arange(1, n + 1, dtype=np.int64) * m
    ends = np.empty(m + n, dtype=np.int64)
    ends[np.arange(m) + (own - 1) // m] = own
    ends[np.arange(n) + other // n] = other
    widths = np.diff(ends, prepend=0) / (m * n)
    return (ends - 1) // n, (ends - 1) // m, widths
