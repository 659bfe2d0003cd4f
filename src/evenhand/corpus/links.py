"""How strong a link is, with intervals that respect documents.

Everything here is a smooth function of totals, so that its variance comes from what each block of documents
adds to it (linearisation, the cluster-robust sandwich): the sum over m blocks of the squared influences,
times m / (m - 1). The degrees of freedom of Student's t are the number of equal blocks that would say as much
(Kish), less one: three documents that name a group are three, however many sentences they have.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.stats._quantiles import t_quantile, t_two_sided
from evenhand.stats.intervals import wilson_interval

Floats = npt.NDArray[np.float64]
Column = npt.NDArray[np.int64]
"""A count for each block of documents."""

EMPTY_CELL = "a count behind the ratio is 0"
FEW_DOCUMENTS = "too few documents for an interval"
NO_SPREAD = "the documents do not differ"


class Link(NamedTuple):
    """A natural logarithm, what each block adds to its error, and its degrees of freedom."""

    log: float
    influence: Floats
    blocks: int
    """Blocks that hold a document."""
    df: float

    @property
    def error(self) -> float | None:
        """The standard error; null where there are too few documents to know."""
        if self.df < 1 or self.blocks < 2:
            return None
        return math.sqrt(self.blocks / (self.blocks - 1) * float(self.influence @ self.influence))

    def minus(self, other: Link) -> Link:
        """The difference of two links; a document that is behind both counts once."""
        return Link(
            self.log - other.log,
            self.influence - other.influence,
            max(self.blocks, other.blocks),
            min(self.df, other.df),
        )


class Association(NamedTuple):
    """An estimate with its interval and two-sided p; what is null has a reason."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    reason: str | None = None


def odds_ratio(both: Column, group: Column, base_both: Column, base: Column) -> Link | None:
    """Log odds of the emotion in the group's units over those in the baseline's; null where a count is 0."""
    parts = (both, group - both, base_both, base - base_both)
    sizes = _positive_totals(parts)
    if sizes is None:
        return None
    a, b, c, d = sizes
    influence = parts[0] / a - parts[1] / b - parts[2] / c + parts[3] / d
    log = math.log(a) + math.log(d) - math.log(b) - math.log(c)
    return Link(log, influence, _filled(group + base), min(_kish(group), _kish(base)) - 1)


def mutual_information(both: Column, emotion: Column, group: Column, units: Column) -> Link | None:
    """Log of how much more often emotion and group meet than by chance: N both / (emotion group)."""
    parts = (both, emotion, group, units)
    sizes = _positive_totals(parts)
    if sizes is None:
        return None
    n_both, n_emotion, n_group, n = sizes
    influence = both / n_both - emotion / n_emotion - group / n_group + units / n
    log = math.log(n_both) + math.log(n) - math.log(n_emotion) - math.log(n_group)
    return Link(log, influence, _filled(units), min(_kish(group), _kish(units)) - 1)


def rate(events: Column, units: Column) -> Link | None:
    """Log of events over units."""
    sizes = _positive_totals((events, units))
    if sizes is None:
        return None
    n_events, n = sizes
    return Link(math.log(n_events / n), events / n_events - units / n, _filled(units), _kish(units) - 1)


def as_ratio(link: Link | None, *, level: float = 0.95) -> Association:
    """The link as a ratio: 1 where there is none, above 1 for more."""
    if link is None:
        return Association(reason=EMPTY_CELL)
    value, error = math.exp(link.log), link.error
    if not error:
        return Association(value, reason=FEW_DOCUMENTS if error is None else NO_SPREAD)
    factor = math.exp(min(t_quantile((1 + level) / 2, link.df) * error, 700.0))
    return Association(value, value / factor, value * factor, t_two_sided(link.log / error, link.df))


def as_bits(link: Link | None, *, level: float = 0.95) -> Association:
    """The link in bits: 0 where there is none, above 0 for more."""
    if link is None:
        return Association(reason=EMPTY_CELL)
    value, error = link.log / math.log(2), link.error
    if not error:
        return Association(value, reason=FEW_DOCUMENTS if error is None else NO_SPREAD)
    half = t_quantile((1 + level) / 2, link.df) * error / math.log(2)
    return Association(value, value - half, value + half, t_two_sided(link.log / error, link.df))


def share(events: Column, units: Column, *, documents: int, level: float = 0.95) -> Association:
    """The part of units with an event, with Wilson's interval at the effective number of units.

    At a share of 0 or 1 the data cannot tell how alike the units of a document are: each document is then
    taken as one independent observation, the worst case.
    """
    n, found = int(units.sum()), int(events.sum())
    if not n:
        return Association(reason="no units")
    value = found / n
    blocks, df = _filled(units), _kish(units) - 1
    if blocks < 2 or df < 1:
        return Association(value, reason=FEW_DOCUMENTS)
    effective = min(float(n), _different(documents, blocks, units.size))
    if 0 < found < n:
        influence = (events - value * units) / n
        variance = blocks / (blocks - 1) * float(influence @ influence)
        effective = min(float(n), value * (1 - value) / variance) if variance else float(n)
    low, high = wilson_interval(value, effective, t_quantile((1 + level) / 2, df))
    return Association(value, low, high)


def _positive_totals(parts: tuple[Column, ...]) -> tuple[int, ...] | None:
    totals = tuple(int(part.sum()) for part in parts)
    return totals if min(totals) > 0 else None


def _filled(units: Column) -> int:
    return int(np.count_nonzero(units))


def _different(documents: int, filled: int, blocks: int) -> float:
    """About how many different documents there are, by the blocks they left empty; all where none is."""
    if filled >= blocks:
        return float(documents)
    return min(float(documents), blocks * math.log(blocks / (blocks - filled)))


def _kish(sizes: Column) -> float:
    """How many blocks of equal size say as much as these."""
    weights = sizes.astype(np.float64)
    total = float(weights @ weights)
    return float(weights.sum()) ** 2 / total if total else 0.0
