"""Quantiles and tail areas from scipy.special: `scipy.stats` takes half a second to import."""

from __future__ import annotations

import math

import numpy as np

from evenhand.stats._arrays import Floats

_NORMAL = 1e9
"""Degrees of freedom from which Student's t is treated as normal."""


def t_quantiles(q: float | Floats, df: float | Floats) -> Floats:
    """The q-quantiles of Student's t; infinite degrees of freedom give the normal."""
    from scipy.special import ndtri, stdtrit

    quantiles: Floats = np.where(np.less(df, _NORMAL), stdtrit(df, q), ndtri(q))
    return quantiles


def t_lower_tails(t: float | Floats, df: float | Floats) -> Floats:
    """The probabilities of a value below t."""
    from scipy.special import ndtr, stdtr

    tails: Floats = np.where(np.less(df, _NORMAL), stdtr(df, t), ndtr(t))
    return tails


def t_quantile(q: float, df: float) -> float:
    """`t_quantiles` for scalars."""
    return float(t_quantiles(q, df))


def t_two_sided(t: float, df: float) -> float:
    """The probability of a |t| at least this large."""
    return float(2 * t_lower_tails(-abs(t), df))


def normal_quantile(q: float) -> float:
    """The q-quantile of the standard normal."""
    return t_quantile(q, math.inf)


def normal_cdf(z: float) -> float:
    """The probability of a value below z."""
    return float(t_lower_tails(z, math.inf))


def f_upper_tail(f: float, df_between: float, df_error: float) -> float:
    """The probability of an F at least this large."""
    from scipy.special import fdtrc

    return float(fdtrc(df_between, df_error, f))


def widen_tails(level: float, n_clusters: int) -> tuple[float, float]:
    """The shares of draws below an interval's two ends, widened for few clusters (Hesterberg 2015).

    >>> [round(share, 4) for share in widen_tails(0.95, 10_000)]
    [0.025, 0.975]
    """
    factor = math.sqrt(n_clusters / (n_clusters - 1))
    tail = normal_cdf(-factor * t_quantile((1 + level) / 2, n_clusters - 1))
    return tail, 1 - tail
