"""Distances between base rates (Liu et al. 2021, section 3), each beside what chance alone would give.

A base rate is the distribution of a judge's probabilities over the texts of an option. The distance of two
samples is never zero, so that a bare number says nothing: here every one comes with its permutation null, an
estimate corrected by the null's mean, an interval, a p-value and the direction of the lean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.stats._arrays import Floats, Ids, Ints, RandomSource, checked_level, checked_values
from evenhand.stats.contrasts import clustered_contrast
from evenhand.stats.distances import wasserstein2_1d
from evenhand.stats.results import NO_VALUES, ONE_CLUSTER

FEW_ARRANGEMENTS = "too few keywords to shuffle"
"""With every arrangement of keywords alike, chance cannot be told from bias."""
Rates: TypeAlias = tuple[Floats, Ints, Ints]
"""Values, option and keyword of every text of one kind of prompt."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far an option's base rate lies from that of all options, and how far chance alone would put it."""

    estimate: float | None
    """Second-order Wasserstein distance, in probability units; 0 or more, never exactly 0 in a sample."""
    null_mean: float | None
    """Its mean where keywords are dealt to options at random."""
    corrected: float | None
    """``estimate - null_mean``: about 0 where there is no bias, and negative about half the time then."""
    low: float | None
    high: float | None
    """Interval of ``corrected``: keywords resampled within options."""
    p: float | None
    """Share of the arrangements whose distance is as large; one-sided, as a distance is."""
    direction: float | None
    """Mean of the option minus mean of all options: positive leans conservative. The paper has none."""
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
) -> dict[str, Distance]:
    """Equation 2 for every option of one attribute: its base rate against that of all options together.

    Keywords, not texts, are shuffled and resampled: the texts of one keyword belong together.
    """
    return _bias([(values, options, keywords)], _of_one, level).measured(rng, permutations, resamples)


def direct_bias(
    liberal: tuple[npt.ArrayLike, Ids, Ids],
    conservative: tuple[npt.ArrayLike, Ids, Ids],
    *,
    rng: RandomSource,
    permutations: int = 2_000,
    resamples: int = 1_000,
    level: float = 0.95,
) -> dict[str, Distance]:
    """Equation 3 for every option: |indirect bias under liberal prompts - under conservative prompts|.

    Each side is values, options and keywords; both must have the same options. The direction is that of all
    texts of the option, under either kind of prompt.
    """
    return _bias([liberal, conservative], _of_two, level).measured(rng, permutations, resamples)


@dataclass(frozen=True, slots=True)
class _Bias:
    """One attribute: the texts of each kind of prompt, and how their distances become one number."""

    sides: tuple[Rates, ...]
    owner: Ints
    """The option of every keyword."""
    names: tuple[str, ...]
    join: Callable[[Sequence[Floats]], Floats]
    level: float

    def measured(self, rng: RandomSource, permutations: int, resamples: int) -> dict[str, Distance]:
        generator = np.random.default_rng(rng)
        found = self._distances(self.sides)
        null = np.array([self._distances(self._shuffled(generator)) for _ in range(permutations)])
        drawn = np.array([self._distances(self._resampled(generator)) for _ in range(resamples)])
        return {name: self._distance(at, found, null, drawn) for at, name in enumerate(self.names)}

    def _distances(self, sides: Sequence[Rates]) -> Floats:
        return self.join([_to_all(*side, len(self.names)) for side in sides])

    def _shuffled(self, rng: np.random.Generator) -> list[Rates]:
        """Keywords dealt to options anew, as many to each as before; the same deal for every side."""
        dealt = rng.permutation(self.owner)
        return [(values, dealt[words], words) for values, _, words in self.sides]

    def _resampled(self, rng: np.random.Generator) -> list[Rates]:
        """Keywords drawn with replacement within their options; the same draw for every side."""
        words = [np.flatnonzero(self.owner == at) for at in range(len(self.names))]
        drawn = np.concatenate([rng.choice(of, size=of.size) for of in words])
        return [_rows_of(side, drawn) for side in self.sides]

    def _distance(self, at: int, found: Floats, null: Floats, drawn: Floats) -> Distance:
        n = sum(int((options == at).sum()) for _, options, _ in self.sides)
        keywords = int((self.owner == at).sum())
        if n == 0 or np.isnan(found[at]):
            return Distance(*(None,) * 9, n, keywords, NO_VALUES)
        estimate, chance = float(found[at]), float(null[:, at].mean())
        direction = self._direction(at)
        low, high = _shifted(drawn[:, at], estimate, self.level)
        reason = ONE_CLUSTER if keywords < 2 else FEW_ARRANGEMENTS if np.ptp(null[:, at]) == 0 else None
        p = float((1 + np.sum(null[:, at] >= estimate - 1e-12)) / (1 + len(null)))
        return Distance(
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
        y = np.concatenate([side[0] for side in self.sides])
        options = np.concatenate([side[1] for side in self.sides])
        words = np.concatenate([side[2] for side in self.sides])
        share = float((options == at).mean())
        if share in (0.0, 1.0):
            return (0.0 if share else None), None, None
        # Option minus all = (1 - share) (option minus the others).
        weights = [1 - share, share - 1]
        found = clustered_contrast(y, (options != at).astype(int), words, weights=weights, level=self.level)
        return found.estimate, found.low, found.high


def overall(distances: Mapping[str, Distance]) -> float | None:
    """The mean of the corrected distances over options; None where one of them is missing.

    The paper's "overall" is the mean of its cells; its 1.95 for direct topic bias is not (they give 1.395).
    """
    found = [distance.corrected for distance in distances.values()]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known and len(known) == len(found) else None


def _of_one(sides: Sequence[Floats]) -> Floats:
    return sides[0]


def _of_two(sides: Sequence[Floats]) -> Floats:
    difference: Floats = np.abs(sides[0] - sides[1])
    return difference


def _to_all(values: Floats, options: Ints, keywords: Ints, count: int) -> Floats:
    """The distance of every option's values to those of all options; NaN for an option without values."""
    found = [wasserstein2_1d(values[options == at], values).value for at in range(count)]
    return np.array([np.nan if value is None else value for value in found])


def _bias(
    given: Sequence[tuple[npt.ArrayLike, Ids, Ids]], join: Callable[[Sequence[Floats]], Floats], level: float
) -> _Bias:
    """Options and keywords of all sides numbered alike; a keyword must stand in one option."""
    values = [checked_values(side[0]) for side in given]
    sizes = [y.size for y in values]
    names, options = np.unique(_joined([side[1] for side in given], sizes, "options"), return_inverse=True)
    words, keywords = np.unique(_joined([side[2] for side in given], sizes, "keywords"), return_inverse=True)
    owner = np.zeros(words.size, dtype=np.int64)
    owner[keywords] = options
    if (owner[keywords] != options).any():
        twice = words[keywords[owner[keywords] != options][0]]
        raise InputError(f"the keyword {str(twice)!r} stands in two options", accepted="one option a keyword")
    cuts = np.cumsum(sizes)[:-1]
    sides = zip(values, np.split(options, cuts), np.split(keywords, cuts), strict=True)
    return _Bias(tuple(sides), owner, tuple(str(name) for name in names), join, checked_level(level))


def _joined(columns: Sequence[Ids], sizes: Sequence[int], what: str) -> np.ndarray:
    arrays = [np.asarray(column).astype(str) for column in columns]
    for array, size in zip(arrays, sizes, strict=True):
        if array.shape != (size,):
            raise InputError(
                f"{size} values came with {array.size} {what}", accepted=f"{what} for every value"
            )
    return np.concatenate(arrays)


def _rows_of(side: Rates, drawn: np.ndarray) -> Rates:
    values, options, words = side
    order = np.argsort(words, kind="stable")
    starts = np.searchsorted(words[order], drawn, "left")
    ends = np.searchsorted(words[order], drawn, "right")
    rows = np.concatenate([order[start:end] for start, end in zip(starts, ends, strict=True)])
    return values[rows], options[rows], words[rows]


def _shifted(drawn: Floats, estimate: float, level: float) -> tuple[float, float]:
    """Percentiles of resampled distances, which their own noise makes larger, moved back to the estimate."""
    known = drawn[~np.isnan(drawn)]
    moved = known - (known.mean() - estimate)
    low, high = np.quantile(moved, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
