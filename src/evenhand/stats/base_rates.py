"""Distances between base rates (Liu et al. 2021, section 3), each beside what chance alone would give.

A base rate is the distribution of a judge's probabilities over the texts of an option. The distance of two
samples is never zero, so that a bare number says nothing: here every one comes with its permutation null, an
estimate corrected by the null's mean, an interval, a p-value and the direction of the lean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.stats._arrays import Floats, Ids, Ints, RandomSource, check_lengths, check_level, check_values
from evenhand.stats.contrasts import clustered_contrast
from evenhand.stats.quantiles import normal_quantile, t_quantile
from evenhand.stats.results import NO_VALUES, ONE_CLUSTER

OVERALL = "(overall)"
"""The mean over options. The paper's printed 1.95 for direct topic bias is not that of its cells (1.395)."""
FEW_ARRANGEMENTS = "too few keywords to shuffle"
"""Where every arrangement of keywords is alike, chance and bias are indistinguishable."""
FEW_KEYWORDS = "too few keywords for an interval"
LEAST = 4
"""Keywords from which on an option has an interval. That of two or three, resampled, covers 6 or 7 times in
10 instead of 95 in 100; widened by the t quantile it would be useless. p stays exact."""
LARGE = 200_000
"""Values above which the steps of two samples are not cached."""
SLICES = 32
"""Directions of a sliced distance inside each of thousands of arrangements."""
SideTexts: TypeAlias = tuple[npt.ArrayLike, Ids, Ids]
"""Values, option and keyword of every text: numbers, or probabilities of classes as rows x classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRateDistance:
    """How far an option's base rate lies from that of all options, and how far chance alone would put it."""

    estimate: float | None = None
    """Second-order Wasserstein distance, in probability units; 0 or more, never exactly 0 in a sample."""
    null_mean: float | None = None
    """Its mean where keywords are dealt to options at random."""
    corrected: float | None = None
    """``estimate - null_mean``: about 0 where there is no bias, and negative about half the time then."""
    low: float | None = None
    high: float | None = None
    """Interval of ``corrected``: keywords resampled within options, and widened for few keywords by the t
    quantile (4 keywords: 1.9 times, 10: 1.2); None below 4."""
    p: float | None = None
    """Share of the arrangements whose distance is as large; one-sided, as a distance is."""
    direction: float | None = None
    """Mean of the option minus mean of all options: positive leans conservative. The paper has none.

    None over all options, whose directions cancel, and with more than two classes.
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
    """How far the base rate of every option of one attribute lies from that of all, and ``(overall)``.

    One set of texts: indirect bias, equation 2. Two, under liberal and under conservative prompts, of the
    same options: direct bias, equation 3, the absolute difference of their distances; the direction is then
    that of all texts of the option. Keywords, not texts, are shuffled and resampled: the texts of one keyword
    belong together. Values of rows x classes are probabilities of more than two classes: the distance is
    then the sliced one.
    """
    generator = np.random.default_rng(rng)
    return _build_bias(sides, level, generator).measure(generator, permutations, resamples)


@dataclass(frozen=True, slots=True)
class BiasChange:
    """How much larger a bias beyond chance is after than before; negative where it fell."""

    estimate: float | None
    low: float | None
    high: float | None
    """Interval: the same keywords resampled before and after."""
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
    one (direct bias), with the same keywords. Keywords are dealt and resampled once for both, so that what
    a keyword does to either is not counted as a change.
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
        # Texts that are the same before and after differ in no arrangement: that is a change of 0, and known.
        name: BiasChange(0.0, 0.0, 0.0, of.n_keywords)
        if of.estimate == of.null_mean == 0
        else BiasChange(of.corrected, of.low, of.high, of.n_keywords, of.null_reason)
        for name, of in changes.items()
    }


@dataclass(frozen=True, slots=True)
class _Bias:
    """One attribute: the texts of each kind of prompt, and how their distances become one number."""

    values: Floats
    """Texts of all sides x directions: one column where values are numbers."""
    options: Ints
    keywords: Ints
    columns: Sequence[Sequence[tuple[Floats, Ints]]]
    """For each side its directions, sorted once: values and keywords. A selection of them stays sorted."""
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
        # Keywords are drawn with replacement within options; how often each is, is the same for every side.
        words, size = [np.flatnonzero(self.owner == at) for at in range(len(self.names))], self.owner.size
        deals = (np.concatenate([rng.choice(of, size=of.size) for of in words]) for _ in range(resamples))
        drawn = np.array([self._distances(self.owner, np.bincount(deal, minlength=size)) for deal in deals])
        measure = partial(self._against_chance, observed=observed, null=null, drawn=drawn)
        named = {name: measure(np.array([at]), self._direction(at)) for at, name in enumerate(self.names)}
        return {**named, OVERALL: measure(np.arange(len(self.names)), {})}

    def _distances(self, owner: Ints, times: Ints | None) -> Floats:
        count = len(self.names)
        sides = np.stack([_to_all(columns, owner, times, count) for columns in self.columns])
        # The distances of one kind of prompt, or how far those of two kinds lie apart.
        kinds = sides.reshape(1 + self.is_change, -1, count)
        distances = np.abs(np.diff(kinds, axis=1)[:, 0]) if kinds.shape[1] == 2 else kinds[:, 0]
        one: Floats = distances[1] - distances[0] if self.is_change else distances[0]
        return one

    def _against_chance(
        self, chosen: Ints, direction: dict[str, float | None], observed: Floats, null: Floats, drawn: Floats
    ) -> BaseRateDistance:
        """The mean distance of the chosen options."""
        counts = np.bincount(self.owner, minlength=len(self.names))[chosen]
        n, keywords = int(np.isin(self.options, chosen).sum()), int(counts.sum())
        wider = _widening(drawn[:, chosen], counts, self.level)
        free = keywords - len(chosen)
        few = None if free >= LEAST - 1 else FEW_KEYWORDS if free else ONE_CLUSTER
        estimate = float(observed[chosen].mean())
        null, drawn = null[:, chosen].mean(axis=1), drawn[:, chosen].mean(axis=1)
        null, drawn = null[~np.isnan(null)], drawn[~np.isnan(drawn)]
        if n == 0 or np.isnan(estimate) or not null.size or not drawn.size:
            return BaseRateDistance(n=n, n_keywords=keywords, null_reason=NO_VALUES)
        chance = float(null.mean())
        reason = FEW_ARRANGEMENTS if few != ONE_CLUSTER and np.ptp(null) < 1e-12 else few
        # Percentiles of resampled distances, which their own noise makes larger, moved back to the estimate.
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
    """The distance of every option's values to those of all options; NaN for an option without values."""
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
    given: Sequence[SideTexts], level: float, rng: np.random.Generator, *, is_change: bool = False
) -> _Bias:
    """Options and keywords of all sides numbered alike; a keyword must stand in one option."""
    # Texts x directions, the same directions for every side; numbers are one column.
    if all(np.ndim(side[0]) < 2 for side in given):
        values = [check_values(side[0])[:, None] for side in given]
    else:
        points = [check_simplex(side[0]) for side in given]
        directions = simplex_directions(points[0].shape[1], rng=rng, number=SLICES)
        values = [rows @ directions for rows in points]
    sizes = [len(y) for y in values]
    names, options = np.unique(
        _code_jointly([side[1] for side in given], values, "options"), return_inverse=True
    )
    words, keywords = np.unique(
        _code_jointly([side[2] for side in given], values, "keywords"), return_inverse=True
    )
    owner = np.zeros(words.size, dtype=np.int64)
    owner[keywords] = options
    if (owner[keywords] != options).any():
        twice = words[keywords[owner[keywords] != options][0]]
        raise InputError(f"the keyword {str(twice)!r} stands in two options", expected="one option a keyword")
    cuts = np.cumsum(sizes)[:-1]
    columns = [
        [(column[order], of[order]) for column in rows.T for order in [np.argsort(column, kind="stable")]]
        for rows, of in zip(values, np.split(keywords, cuts), strict=True)
    ]
    stacked, labels = np.concatenate(values), tuple(map(str, names))
    return _Bias(stacked, options, keywords, columns, owner, labels, check_level(level), is_change)


def _code_jointly(columns: Sequence[Ids], values: Sequence[Floats], what: str) -> np.ndarray:
    arrays = [np.asarray(column).astype(str) for column in columns]
    for array, own in zip(arrays, values, strict=True):
        check_lengths(f"{what} for every value", values=own, **{what: array})
    return np.concatenate(arrays)


def _widening(drawn: Floats, keywords: Ints, level: float) -> float:
    """How much wider than its percentiles an interval over few keywords must be; 1 for many.

    Hesterberg's (2015) factor: k resampled keywords vary as k - 1 would, and their spread is known as well as
    k - 1 degrees of freedom allow. A mean over options adds up those of its options. An option of one keyword
    does not vary when it is resampled, and has no say.
    """
    several = (keywords > 1) & ~np.isnan(drawn).all(axis=0)
    spread = np.nanvar(drawn[:, several], axis=0) if several.any() else np.zeros(0)
    if not spread.sum() > 0:
        return 1.0
    k = keywords[several]
    grown = np.sqrt(np.sum(spread * k / (k - 1)) / spread.sum())
    tail = (1 + level) / 2
    return float(grown * t_quantile(tail, float(np.sum(k - 1))) / normal_quantile(tail))


def simplex_directions(classes: int, *, rng: RandomSource, number: int) -> Floats:
    """Directions inside the simplex as columns, each of length ``sqrt((classes - 1) / classes)``.

    That is the root mean square length of what a direction on the whole sphere leaves there.
    """
    if classes == 2:
        return np.array([[-0.5], [0.5]])
    drawn = np.random.default_rng(rng).normal(size=(classes, number))
    inside = drawn - drawn.mean(axis=0)
    directions: Floats = inside / np.linalg.norm(inside, axis=0) * math.sqrt((classes - 1) / classes)
    return directions


def check_simplex(points: npt.ArrayLike, name: str = "points") -> Floats:
    """The points as rows x classes; rows that are not probabilities are refused."""
    rows = np.asarray(points, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise InputError(f"{name} has the shape {rows.shape}", expected="rows x classes, two or more classes")
    wrong = int(np.sum((np.abs(rows.sum(axis=1) - 1) > 1e-4) | (rows < -1e-9).any(axis=1)))
    if wrong or not np.isfinite(rows).all():
        raise InputError(
            f"{name} holds {wrong or 'missing'} rows that are not probabilities",
            expected="rows of numbers from 0 to 1 that sum to 1",
            fix="divide each row by its sum, and drop rows without values",
        )
    return rows


def mean_square_gap(first: Floats, second: Floats) -> float:
    """The squared second-order Wasserstein distance of two sorted samples, exact, in the squared unit.

    The mean square gap of their quantile functions. In one dimension the sliced distance of the political
    paper (equation 2) is its root. For probabilities it lies in [0, 1]. It has no sign, and two samples of
    one distribution have a small positive distance.
    """
    if first.size == second.size:
        gaps = first - second
        return float(gaps @ gaps) / first.size
    is_large = first.size + second.size > LARGE
    steps = (_steps.__wrapped__ if is_large else _steps)(first.size, second.size)
    gaps = first[steps.first] - second[steps.second]
    return float(np.square(gaps) @ steps.widths)


class _Steps(NamedTuple):
    """Where two quantile functions are constant at once."""

    first: Ints
    second: Ints
    widths: Floats


@lru_cache(maxsize=256)
def _steps(m: int, n: int) -> _Steps:
    """The union of the steps of samples of m and n values, by a linear merge.

    Steps are counted in units of 1 / (m n), as integers: none is lost or doubled by rounding. Where both
    samples step at once, one of the two steps has no width. Steps are cached: a permutation asks for the same
    sizes thousands of times.
    """
    own, other = np.arange(1, m + 1, dtype=np.int64) * n, np.arange(1, n + 1, dtype=np.int64) * m
    ends = np.empty(m + n, dtype=np.int64)
    ends[np.arange(m) + (own - 1) // m] = own
    ends[np.arange(n) + other // n] = other
    widths = np.diff(ends, prepend=0) / (m * n)
    return _Steps((ends - 1) // n, (ends - 1) // m, widths)
