"""The papers' own tests, by name. They assume independent rows; the default tests are in `contrasts`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import Floats, check_lengths, check_level, check_pairs, check_values
from evenhand.stats.contrasts import GAP
from evenhand.stats.intervals import NewcombeIntervals, clustered_mean
from evenhand.stats.power_analysis import GapSpread, SharePair
from evenhand.stats.quantiles import normal_quantile, t_quantile, t_two_sided
from evenhand.stats.results import (
    NO_VALUES,
    NO_VARIATION,
    SAME_DIFFERENCE,
    Difference,
    PointEstimate,
    TestResult,
)

_SMALL_EXPECTED = 5
"""Cochran's rule: below this expected count the chi-square approximation is unreliable."""


def two_proportions(
    successes_a: int, n_a: int, successes_b: int, n_b: int, *, level: float = 0.95
) -> Difference:
    """Share of a minus share of b, with the pooled z test: BOLD's "binomial proportion test" (section 6.1.2).

    The interval is Newcombe's (1998, method 10). Every row counts as its own cluster.
    """
    for successes, n in ((successes_a, n_a), (successes_b, n_b)):
        if not 0 <= successes <= n:
            raise InputError(f"{successes} successes of {n}", expected="successes from 0 to n")
    check_level(level)
    method = "two proportions (pooled z)"
    result = partial(Difference, level=level, n_a=n_a, n_b=n_b, n_clusters=n_a + n_b, method=method)
    if not n_a or not n_b:
        return result(null_reason=NO_VALUES)
    shares = np.array([successes_a / n_a, successes_b / n_b])
    newcombe = NewcombeIntervals(shares, np.array([n_a, n_b], dtype=np.float64), GAP)
    low, high = map(float, newcombe.interval(normal_quantile((1 + level) / 2)))
    pooled = (successes_a + successes_b) / (n_a + n_b)
    se = math.sqrt(pooled * (1 - pooled) * (1 / n_a + 1 / n_b))
    gap = float(newcombe.estimate)
    return result(
        estimate=gap,
        low=low,
        high=high,
        se=se,
        p=t_two_sided(gap / se, math.inf) if se else None,
        spread=GapSpread(se, shares=SharePair(successes_b / n_b, n_a, n_b, 1.0, is_few=False)),
        null_reason=None if se else NO_VARIATION,
    )


def chi_square(table: npt.ArrayLike) -> TestResult:
    """Pearson's chi-square test of a table of counts (groups x labels), without Yates' correction.

    BOLD's test over several groups or models (sections 6.1.3 and 6.2). Empty rows and columns are left out;
    the warning counts cells with an expected count below 5.
    """
    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2 or not np.isfinite(counts).all() or (counts < 0).any():
        raise InputError(
            f"a table of shape {counts.shape}", expected="rows of counts, none negative, none missing"
        )
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    result = partial(TestResult, n=int(counts.sum()), method="chi-square")
    if min(counts.shape) < 2:
        return result(null_reason=NO_VARIATION if counts.size else NO_VALUES)
    from scipy.stats import chi2_contingency

    test = chi2_contingency(counts, correction=False)
    small = int(np.count_nonzero(test.expected_freq < _SMALL_EXPECTED))
    warning = f"{small} of {counts.size} expected counts are below {_SMALL_EXPECTED}" if small else None
    return result(statistic=float(test.statistic), df=float(test.dof), p=float(test.pvalue), warning=warning)


def paired_difference(a: npt.ArrayLike, b: npt.ArrayLike, *, level: float = 0.95) -> Difference:
    """The mean of a minus b over pairs, with Student's t interval and test.

    The affective paper's "prediction score significance". Null where every difference is 0 (t would be
    0 / 0), and where all are equal but not 0 (t is infinite). Differences that differ only by rounding count
    as equal.
    """
    first, second = check_pairs(a, b)
    differences, n = first - second, first.size
    result = partial(Difference, level=check_level(level), n_a=n, n_b=n, n_clusters=n, method="paired t")
    mean = float(differences.mean()) if n else None
    if mean is None or n < 2:
        return result(estimate=mean, null_reason="one pair" if n else NO_VALUES)
    if float(np.ptp(_drop_rounding(differences, first, second))) == 0:
        return result(
            estimate=mean, df=n - 1, null_reason=SAME_DIFFERENCE if differences.any() else NO_VARIATION
        )
    se, alpha = float(differences.std(ddof=1)) / math.sqrt(n), t_quantile((1 + level) / 2, n - 1)
    return result(
        estimate=mean,
        low=mean - alpha * se,
        high=mean + alpha * se,
        se=se,
        df=n - 1,
        p=t_two_sided(mean / se, n - 1),
        spread=GapSpread(se, n - 1),
    )


def wilcoxon(a: npt.ArrayLike, b: npt.ArrayLike) -> TestResult:
    """Wilcoxon's signed-rank test of a minus b over pairs; zeros are ranked, then dropped (Pratt 1959).

    Differences that differ only by rounding share a rank.
    Exact for small samples without ties or zeros, else the normal approximation with the tie correction. The
    estimate is the median difference.
    """
    first, second = check_pairs(a, b)
    differences, n = _drop_rounding(first - second, first, second), first.size
    estimate = float(np.median(differences)) if n else None
    result = partial(TestResult, estimate=estimate, n=n, method="Wilcoxon signed rank")
    if n < 2 or not differences.any():
        return result(null_reason=NO_VALUES if not n else "one pair" if n < 2 else NO_VARIATION)
    from scipy.stats import wilcoxon as signed_rank

    has_ties = np.unique(np.abs(differences)).size < n or not differences.all()
    method = "exact" if n <= 50 and not has_ties else "asymptotic"
    test = signed_rank(differences, zero_method="pratt", method=method)
    return result(statistic=float(test.statistic), p=float(test.pvalue))


def _drop_rounding(differences: Floats, *sides: npt.NDArray[np.float64]) -> Floats:
    """Differences rounded to 13 digits of the largest input value, so that 0.3 - 0.2 equals 0.4 - 0.3."""
    largest = max((float(np.abs(side).max()) for side in sides if side.size), default=0.0)
    return np.round(differences, 13 - math.ceil(math.log10(largest))) if largest else differences


def cohens_h(share_a: float, share_b: float) -> float:
    """Cohen's h of two shares, 2 asin(sqrt a) - 2 asin(sqrt b): from -pi to pi, 0.2 is small, 0.8 large.

    >>> round(cohens_h(0.5, 0.25), 4)
    0.5236
    """
    for share in (share_a, share_b):
        if not 0 <= share <= 1:
            raise InputError(f"a share of {share}", expected="shares from 0 to 1")
    return 2 * math.asin(math.sqrt(share_a)) - 2 * math.asin(math.sqrt(share_b))


def hedges_g(a: npt.ArrayLike, b: npt.ArrayLike) -> PointEstimate:
    """Hedges' g: the difference of means in pooled standard deviations, corrected for small samples.

    The correction is the exact one, with gamma functions (Hedges 1981). 0.2 is small, 0.8 large.
    """
    first, second = check_values(a, "a"), check_values(b, "b")
    if not first.size or not second.size:
        return PointEstimate(None, NO_VALUES)
    df = first.size + second.size - 2
    squares = float(np.sum((first - first.mean()) ** 2) + np.sum((second - second.mean()) ** 2))
    if df < 2:
        return PointEstimate(None, "fewer than four values")
    if float(np.ptp(first)) == 0 and float(np.ptp(second)) == 0:
        return PointEstimate(None, NO_VARIATION)
    d = float(first.mean() - second.mean()) / math.sqrt(squares / df)
    return PointEstimate(d * math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2))


def cliffs_delta(a: npt.ArrayLike, b: npt.ArrayLike) -> PointEstimate:
    """Cliff's delta: P(a > b) - P(a < b) for one value drawn from each; from -1 to 1, ties count for neither.

    Exact, by sorting, in O(n log n).
    """
    first, second = check_values(a, "a"), np.sort(check_values(b, "b"))
    if not first.size or not second.size:
        return PointEstimate(None, NO_VALUES)
    below = np.searchsorted(second, first, side="left").sum(dtype=np.int64)
    above = second.size * first.size - np.searchsorted(second, first, side="right").sum(dtype=np.int64)
    return PointEstimate(float(below - above) / (first.size * second.size))


@dataclass(frozen=True, slots=True)
class MethodRating:
    """One method's mean over participants, and its difference from the baseline."""

    method: str
    mean: Estimate
    """n counts participants."""
    difference: Difference | None
    """Method minus baseline, over participants who rated both; null for the baseline itself."""
    ratings: int


def compare_methods(
    participants: Sequence[str],
    methods: Sequence[str],
    ratings: Sequence[float],
    *,
    baseline: str,
    level: float = 0.95,
) -> list[MethodRating]:
    """The mean rating of each method with a t interval, and its paired difference from ``baseline``.

    The paired t tests of the political paper's Table 6: a participant's ratings of one method are averaged
    first, so that a participant is one observation however many texts they read. Methods are in the order of
    their first rating, the baseline first.
    """
    check_lengths("one of each per rating", ratings=ratings, participants=participants, methods=methods)
    by_method: dict[str, dict[str, list[float]]] = {baseline: defaultdict(list)}
    for person, method, rating in zip(participants, methods, ratings, strict=True):
        by_method.setdefault(method, defaultdict(list))[person].append(float(rating))
    if not by_method[baseline]:
        raise InputError(
            f"the baseline {baseline!r} has no ratings",
            expected=", ".join(sorted(set(methods))) or "at least one rating",
            fix="name another baseline",
        )
    means = {
        method: {person: float(np.mean(scores)) for person, scores in sorted(people.items())}
        for method, people in by_method.items()
    }
    rows = []
    for method, own in means.items():
        both = [person for person in own if person in means[baseline]]
        sides = ([side[person] for person in both] for side in (own, means[baseline]))
        gap = None if method == baseline else paired_difference(*sides, level=level)
        n = sum(map(len, by_method[method].values()))
        rows.append(MethodRating(method, clustered_mean(list(own.values()), level=level), gap, n))
    return rows
