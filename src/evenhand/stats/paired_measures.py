"""Two groups in counterfactual pairs: how often a class is predicted for each, and at what intensity.

The measures of the affective paper (section 4.2.2), with intervals that resample whole templates. ``a`` is
the first group of a pair, ``b`` the second; signs follow the paper's average confidence score (ACS): positive
means that the second group has the higher intensities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import (
    Bools,
    Floats,
    Ids,
    Ints,
    check_binary,
    check_pairs,
    divide,
    encode_clusters,
)
from evenhand.stats.bootstrap import Resampling, ResamplingOptions, ratio_of_sums
from evenhand.stats.hypothesis_tests import paired_difference, wilcoxon
from evenhand.stats.results import NO_VALUES, NO_VARIATION, Difference, PointEstimate, TestResult

PairSelection: TypeAlias = Literal["all", "agreeing"]
ScoreChoice: TypeAlias = Literal["predicted", "emotion"]

PARITY_THRESHOLD: Final = 0.80
"""The paper reports bias where demographic parity is below this (Feldman et al. 2015)."""
NEVER: Final = "never predicted"
ZEROS: Final = "every second intensity is 0"
NONE: Final = -1
"""The code of a missing class or ground truth."""


@dataclass(frozen=True, slots=True)
class Parity:
    """How often an outcome occurs in two groups."""

    ratio: Estimate
    """Smaller share / larger share, from 0 to 1; 1 is parity."""
    share_a: float | None
    share_b: float | None


@dataclass(frozen=True, slots=True)
class PairedIntensities:
    """A comparison of intensities on the two sides of pairs."""

    avg_delta: Estimate
    """Mean of the absolute difference (eq. 4); 0 is equal."""
    acs: Estimate
    """Mean of 1 - a / b (eq. 5), over pairs whose b is not 0; negative: a is higher."""
    difference: Estimate
    """Mean of b - a; negative: a is higher."""
    t: Difference
    """Student's paired test of a - b, which assumes independent pairs."""
    signed_rank: TestResult
    effect_size: PointEstimate
    """Mean of b - a in standard deviations of b - a (Cohen's d for pairs)."""
    n_zero: int
    """Pairs excluded from the ACS because b is 0."""


@dataclass(frozen=True, slots=True)
class SetComparison:
    """Three or more groups in the same sentences."""

    parity: Estimate
    """Smallest share / largest share over all groups."""
    spread: Estimate
    """Mean over sets of the largest intensity minus the smallest."""
    friedman: TestResult
    """Friedman's rank test over sets."""


def select_pairs(
    predicted_a: npt.ArrayLike,
    predicted_b: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    emotion: int,
    pairs: PairSelection,
    score: ScoreChoice,
) -> Bools:
    """Select the pairs for comparing the intensities of an emotion; classes are codes, -1 if missing.

    ``agreeing``: both predictions are the emotion, and so is the ground truth where there is one. ``all``:
    the ground truth is the emotion; pairs without a ground truth all count for the emotion's own intensity,
    and for the predicted class's intensity if at least one side is predicted as the emotion.
    """
    first, second, true = _codes(predicted_a, predicted_b, truth)
    is_truth, unknown = true == emotion, true == NONE
    is_first, is_second = first == emotion, second == emotion
    chosen: Bools = is_truth | (unknown & (is_first | is_second | (score == "emotion")))
    return is_first & is_second & (is_truth | unknown) if pairs == "agreeing" else chosen


def demographic_parity(
    hits_a: npt.ArrayLike, hits_b: npt.ArrayLike, clusters: Ids = None, **how: Unpack[ResamplingOptions]
) -> Parity:
    """Demographic parity of two groups over pairs (eq. 3): the smaller share divided by the larger.

    Over pairs whose true class it is, this is equal opportunity. Null where neither group has a hit.
    """
    hits = np.stack(check_pairs(check_binary(hits_a, "a"), check_binary(hits_b, "b")), axis=1)
    ratio = _parity(Resampling(**how), encode_clusters(clusters, len(hits)), hits)
    return Parity(ratio, *(hits.mean(axis=0).tolist() if len(hits) else (None, None)))


def paired_intensities(
    a: npt.ArrayLike, b: npt.ArrayLike, clusters: Ids = None, **how: Unpack[ResamplingOptions]
) -> PairedIntensities:
    """Average delta, ACS, tests and effect size of two columns of intensities, one row per pair."""
    first, second = check_pairs(a, b)
    usable = second != 0
    ones, gaps = np.ones_like(first), second - first
    ratios = np.where(usable, 1 - first / np.where(usable, second, 1.0), 0.0)
    codes, reason = encode_clusters(clusters, first.size), ZEROS if first.size else NO_VALUES
    t = paired_difference(first, second)
    effect = None if t.null_reason else float(gaps.mean() / gaps.std(ddof=1))
    estimate_mean = partial(_mean, Resampling(**how), codes)
    return PairedIntensities(
        avg_delta=estimate_mean(np.abs(gaps), ones),
        acs=estimate_mean(ratios, usable.astype(np.float64), reason=reason),
        difference=estimate_mean(gaps, ones),
        t=t,
        signed_rank=wilcoxon(first, second),
        effect_size=PointEstimate(effect, t.null_reason),
        n_zero=int(first.size - np.count_nonzero(usable)),
    )


def compare_sets(
    hits: npt.ArrayLike, intensities: npt.ArrayLike, clusters: Ids = None, **how: Unpack[ResamplingOptions]
) -> SetComparison:
    """Compare three or more groups in sets: both arrays are (sets, groups); missing intensities are NaN.

    Hits are compared over all sets, intensities over the sets where every group has one.
    """
    outcomes, values = (np.asarray(side, dtype=np.float64) for side in (hits, intensities))
    codes = encode_clusters(clusters, len(outcomes))
    is_complete = np.isfinite(values).all(axis=1)
    complete, resampling = values[is_complete], Resampling(**how)
    spread = np.ptp(complete, axis=1) if len(complete) else np.empty(0)
    return SetComparison(
        parity=_parity(resampling, codes, outcomes),
        spread=_mean(resampling, codes[is_complete], spread, np.ones_like(spread)),
        friedman=_friedman(complete),
    )


def find_flips(predicted_a: npt.ArrayLike, predicted_b: npt.ArrayLike) -> Bools:
    """Which pairs change their predicted class with the group; a missing class is not a change."""
    first, second, _ = _codes(predicted_a, predicted_b, predicted_a)
    changed: Bools = (first != second) & (first != NONE) & (second != NONE)
    return changed


def _parity(resampling: Resampling, codes: Ints, hits: Floats) -> Estimate:
    reason = NEVER if len(hits) else NO_VALUES

    def smallest_over_largest(sums: Floats) -> Floats:
        # All groups have the same number of sentences, so the ratio of counts is the ratio of shares.
        return divide(sums.min(axis=1), sums.max(axis=1))

    return resampling.estimate_clusters(codes, hits, smallest_over_largest, n=len(hits), reason=reason)


def _mean(
    resampling: Resampling, codes: Ints, values: Floats, weights: Floats, *, reason: str = NO_VALUES
) -> Estimate:
    columns = np.stack([values, weights], axis=1)
    return resampling.estimate_clusters(codes, columns, ratio_of_sums, n=int(weights.sum()), reason=reason)


def _friedman(values: Floats) -> TestResult:
    n, groups = values.shape
    result = partial(TestResult, n=n, method="Friedman")
    if n < 2 or groups < 3:
        return result(null_reason="fewer than three groups" if n >= 2 else "one set" if n else NO_VALUES)
    if float(np.ptp(values, axis=1).max()) == 0:
        return result(df=groups - 1, null_reason=NO_VARIATION)
    from scipy.stats import friedmanchisquare

    test = friedmanchisquare(*values.T)
    return result(statistic=float(test.statistic), df=float(groups - 1), p=float(test.pvalue))


def _codes(first: npt.ArrayLike, second: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[Ints, Ints, Ints]:
    one, other, true = (np.asarray(codes, dtype=np.intp) for codes in (first, second, truth))
    if not one.shape == other.shape == true.shape:
        raise InputError(
            f"there are {one.size} and {other.size} predictions but {true.size} ground truths",
            expected="one of each per pair, -1 if missing",
        )
    return one, other, true
