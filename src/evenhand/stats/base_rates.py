"""Distances between base rates (Liu et al. 2021, section 3), each beside what chance alone would give.

A base rate is the distribution of a judge's probabilities over the texts of an option. The distance of two
samples is never zero, so that a bare number says nothing: here every one comes with its permutation null, an
estimate corrected by the null's mean, an interval, a p-value and the direction of the lean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.stats._arrays import Floats, Ids, Ints, RandomSource, check_level, check_values
from evenhand.stats.contrasts import clustered_contrast
from evenhand.stats.quantiles import normal_quantile, t_quantile
from evenhand.stats.results import NO_VALUES, ONE_CLUSTER
from evenhand.stats.wasserstein import check_simplex, mean_square_gap, simplex_directions

OVERALL = "(overall)"
"""The mean over options. The paper's printed 1.95 for direct topic bias is not that of its cells (1.395)."""
FEW_ARRANGEMENTS = "too few keywords to shuffle"
"""Where every arrangement of keywords is alike, chance and bias are indistinguishable."""
FEW_KEYWORDS = "too few keywords for an interval"
LEAST = 4
"""Keywords from which on an option has an interval. That of two or three, resampled, covers 6 or 7 times in
10 instead of 95 in 100; widened by the t quantile it would be useless. p stays exact."""
SLICES = 32
"""Directions of a sliced distance inside each of thousands of arrangements."""
SideTexts: TypeAlias = tuple[npt.ArrayLike, Ids, Ids]
"""Values, option and keyword of every text: numbers, or probabilities of classes as rows x classes."""


@dataclass(frozen=True, slots=True)
class BaseRateDistance:
    """How far an option's base rate lies from that of all options, and how far chance alone would put it."""

    estimate: float | None
    """Second-order Wasserstein distance, in probability units; 0 or more, never exactly 0 in a sample."""
    null_mean: float | None
    """Its mean where keywords are dealt to options at random."""
    corrected: float | None
    """``estimate - null_mean``: about 0 where there is no bias, and negative about half the time then."""
    low: float | None
    high: float | None
    """Interval of ``corrected``: keywords resampled within options, and widened for few keywords by the t
    quantile (4 keywords: 1.9 times, 10: 1.2); None below 4."""
    p: float | None
    """Share of the arrangements whose distance is as large; one-sided, as a distance is."""
    direction: float | None
    """Mean of the option minus mean of all options: positive leans conservative. The paper has none.

    None over all options, whose directions cancel, and with more than two classes.
    """
    direction_low: float | None
    direction_high: float | None
    n: int
    n_keywords: int
    null_reason: str | None = None


def indirect_bias(
    values: npt.ArrayLike,
    options: Ids,
    keywords: Ids,
    *,
    rng: RandomSource,
    permutations: int = 2_000,
    resamples: int = 1_000,
    level: float = 0.95,
) -> dict[str, BaseRateDistance]:
    """Equation 2 for every option of one attribute, and ``(overall)``: its base rate against that of all.

    Keywords, not texts, are shuffled and resampled: the texts of one keyword belong together. Values of rows
    x classes are probabilities of more than two classes: the distance is then the sliced one.
    """
    generator = np.random.default_rng(rng)
    bias = _build_bias([(values, options, keywords)], level, generator)
    return bias.measure(generator, permutations, resamples)


def direct_bias(
    liberal: SideTexts,
    conservative: SideTexts,
    *,
    rng: RandomSource,
    permutations: int = 2_000,
    resamples: int = 1_000,
    level: float = 0.95,
) -> dict[str, BaseRateDistance]:
    """Equation 3 for every option, and ``(overall)``: |indirect bias under liberal - conservative prompts|.

    Both sides must have the same options. The direction is that of all texts of the option, under either
    kind of prompt.
    """
    generator = np.random.default_rng(rng)
    bias = _build_bias([liberal, conservative], level, generator)
    return bias.measure(generator, permutations, resamples)


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
    return {name: _to_change(change) for name, change in changes.items()}


def _to_change(of: BaseRateDistance) -> BiasChange:
    # Texts that are the same before and after differ in no arrangement: that is a change of 0, and known.
    if of.estimate == of.null_mean == 0:
        return BiasChange(0.0, 0.0, 0.0, of.n_keywords)
    return BiasChange(of.corrected, of.low, of.high, of.n_keywords, of.null_reason)


class _Side(NamedTuple):
    """The texts of one kind of prompt."""

    values: Floats
    """Texts x directions: one column where values are numbers."""
    options: Ints
    keywords: Ints


class _Column(NamedTuple):
    """One direction of a side, sorted once: every arrangement is a selection of it, and stays sorted."""

    values: Floats
    keywords: Ints


@dataclass(frozen=True, slots=True)
class _Bias:
    """One attribute: the texts of each kind of prompt, and how their distances become one number."""

    sides: tuple[_Side, ...]
    columns: tuple[tuple[_Column, ...], ...]
    """The sorted columns of each side."""
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
        drawn = np.array([self._distances(self.owner, self._draw_keywords(rng)) for _ in range(resamples)])
        named = {name: self._distance(at, observed, null, drawn) for at, name in enumerate(self.names)}
        return {**named, OVERALL: self._overall(observed, null, drawn)}

    def _distances(self, owner: Ints, times: Ints | None) -> Floats:
        count = len(self.names)
        sides = [_to_all(columns, owner, times, count) for columns in self.columns]
        half = len(sides) // 2
        return _join(sides[half:]) - _join(sides[:half]) if self.is_change else _join(sides)

    def _draw_keywords(self, rng: np.random.Generator) -> Ints:
        """How often each keyword is drawn, with replacement within options; the same for every side."""
        words = [np.flatnonzero(self.owner == at) for at in range(len(self.names))]
        drawn = np.concatenate([rng.choice(of, size=of.size) for of in words])
        return np.bincount(drawn, minlength=self.owner.size)

    def _distance(self, at: int, observed: Floats, null: Floats, drawn: Floats) -> BaseRateDistance:
        n = sum(int((side.options == at).sum()) for side in self.sides)
        keywords = int((self.owner == at).sum())
        wider = _widening(drawn[:, [at]], np.array([keywords]), self.level)
        few = ONE_CLUSTER if keywords < 2 else FEW_KEYWORDS if keywords < LEAST else None
        return self._against_chance(
            float(observed[at]), null[:, at], drawn[:, at], self._direction(at), n, keywords, few, wider
        )

    def _overall(self, observed: Floats, null: Floats, drawn: Floats) -> BaseRateDistance:
        n, nothing = sum(len(side.values) for side in self.sides), (None, None, None)
        free = len(self.owner) - len(self.names)
        few = None if free >= LEAST - 1 else FEW_KEYWORDS if free else ONE_CLUSTER
        means = float(observed.mean()), null.mean(axis=1), drawn.mean(axis=1)
        wider = _widening(drawn, np.bincount(self.owner, minlength=len(self.names)), self.level)
        return self._against_chance(*means, nothing, n, len(self.owner), few, wider)

    def _against_chance(
        self,
        estimate: float,
        null: Floats,
        drawn: Floats,
        direction: tuple[float | None, float | None, float | None],
        n: int,
        keywords: int,
        few: str | None,
        wider: float,
    ) -> BaseRateDistance:
        null, drawn = null[~np.isnan(null)], drawn[~np.isnan(drawn)]
        if n == 0 or np.isnan(estimate) or not null.size or not drawn.size:
            return BaseRateDistance(*(None,) * 9, n, keywords, NO_VALUES)
        chance = float(null.mean())
        low, high = _shift_percentiles(drawn, estimate, self.level, wider)
        reason = FEW_ARRANGEMENTS if few != ONE_CLUSTER and np.ptp(null) < 1e-12 else few
        p = float((1 + np.sum(null >= estimate - 1e-12)) / (1 + len(null)))
        return BaseRateDistance(
            estimate,
            chance,
            estimate - chance,
            None if reason else low - chance,
            None if reason else high - chance,
            None if reason == FEW_ARRANGEMENTS else p,
            *direction,
            n,
            keywords,
            reason,
        )

    def _direction(self, at: int) -> tuple[float | None, float | None, float | None]:
        if self.sides[0].values.shape[1] > 1:
            return None, None, None
        y = np.concatenate([side.values[:, 0] for side in self.sides])
        options = np.concatenate([side.options for side in self.sides])
        words = np.concatenate([side.keywords for side in self.sides])
        share = float((options == at).mean())
        if share in (0.0, 1.0):
            return (0.0 if share else None), None, None
        # Option minus all = (1 - share) (option minus the others).
        weights = [1 - share, share - 1]
        lean = clustered_contrast(y, (options != at).astype(int), words, weights=weights, level=self.level)
        return lean.estimate, lean.low, lean.high


def _join(sides: Sequence[Floats]) -> Floats:
    """The distances of one kind of prompt, or how far those of two kinds lie apart."""
    joined: Floats = np.abs(sides[0] - sides[1]) if len(sides) == 2 else sides[0]
    return joined


def _to_all(columns: Sequence[_Column], owner: Ints, times: Ints | None, count: int) -> Floats:
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
    values = _project([side[0] for side in given], rng)
    sizes = [len(y) for y in values]
    names, options = np.unique(
        _code_jointly([side[1] for side in given], sizes, "options"), return_inverse=True
    )
    words, keywords = np.unique(
        _code_jointly([side[2] for side in given], sizes, "keywords"), return_inverse=True
    )
    owner = np.zeros(words.size, dtype=np.int64)
    owner[keywords] = options
    if (owner[keywords] != options).any():
        twice = words[keywords[owner[keywords] != options][0]]
        raise InputError(f"the keyword {str(twice)!r} stands in two options", expected="one option a keyword")
    cuts = np.cumsum(sizes)[:-1]
    parts = zip(values, np.split(options, cuts), np.split(keywords, cuts), strict=True)
    sides = tuple(_Side(*part) for part in parts)
    columns = tuple(_sort_directions(side) for side in sides)
    return _Bias(sides, columns, owner, tuple(map(str, names)), check_level(level), is_change)


def _project(given: Sequence[npt.ArrayLike], rng: np.random.Generator) -> list[Floats]:
    """Values as texts x directions, the same directions for every side; numbers are one column."""
    if all(np.ndim(values) < 2 for values in given):
        return [check_values(values)[:, None] for values in given]
    points = [check_simplex(values) for values in given]
    directions = simplex_directions(points[0].shape[1], rng=rng, number=SLICES)
    return [rows @ directions for rows in points]


def _sort_directions(side: _Side) -> tuple[_Column, ...]:
    orders = np.argsort(side.values, axis=0, kind="stable").T
    return tuple(
        _Column(values[order], side.keywords[order])
        for values, order in zip(side.values.T, orders, strict=True)
    )


def _code_jointly(columns: Sequence[Ids], sizes: Sequence[int], what: str) -> np.ndarray:
    arrays = [np.asarray(column).astype(str) for column in columns]
    for array, size in zip(arrays, sizes, strict=True):
        if array.shape != (size,):
            raise InputError(
                f"{size} values came with {array.size} {what}", expected=f"{what} for every value"
            )
    return np.concatenate(arrays)


def _shift_percentiles(drawn: Floats, estimate: float, level: float, wider: float) -> tuple[float, float]:
    """Percentiles of resampled distances, which their own noise makes larger, moved back to the estimate."""
    centred = wider * (drawn - drawn.mean())
    low, high = np.quantile(centred, [(1 - level) / 2, (1 + level) / 2])
    return estimate + float(low), estimate + float(high)


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
