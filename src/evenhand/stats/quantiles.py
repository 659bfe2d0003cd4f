"""Quantiles and tail areas, straight from scipy.special: `scipy.stats` takes half a second to import."""

from __future__ import annotations

import numpy as np

from evenhand.stats._arrays import Floats

_NORMAL = 1e9
"""Degrees of freedom from which Student's t is the normal."""


def t_quantile(q: float, df: float) -> float:
    """The q-quantile of Student's t; infinite degrees of freedom give the normal."""
    from scipy.special import ndtri, stdtrit

    return float(stdtrit(df, q)) if df < _NORMAL else float(ndtri(q))


def t_lower_tail(t: float, df: float) -> float:
    """The probability of a value below t."""
    from scipy.special import ndtr, stdtr

    return float(stdtr(df, t) if df < _NORMAL else ndtr(t))


def t_quantiles(q: float | Floats, df: Floats) -> Floats:
    """`t_quantile` of many."""
    from scipy.special import ndtri, stdtrit

    found: Floats = np.where(df < _NORMAL, stdtrit(df, q), ndtri(q))
    return found


def t_lower_tails(t: Floats, df: Floats) -> Floats:
    """`t_lower_tail` of many."""
    from scipy.special import ndtr, stdtr

    found: Floats = np.where(df < _NORMAL, stdtr(df, t), ndtr(t))
    return found


def t_two_sided(t: float, df: float) -> float:
    """The probability of a |t| at least this large."""
    return 2 * t_lower_tail(-abs(t), df)


def normal_quantile(q: float) -> float:
    """The q-quantile of the standard normal."""
    from scipy.special import ndtri

    return float(ndtri(q))


def normal_cdf(z: float) -> float:
    """The probability of a value below z."""
    from scipy.special import ndtr

    return float(ndtr(z))


def f_upper_tail(f: float, df_between: float, df_error: float) -> float:
    """The probability of an F at least this large."""
    from scipy.special import fdtrc

    return float(fdtrc(df_between, df_error, f))
