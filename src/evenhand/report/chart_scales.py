"""Where a number sits on a chart: a scale with round ticks, positions in percent of its width."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_WANTED_TICKS = 5
_EDGE = 2.0
"""Percent kept free on each side, so that a dot on the edge is drawn whole."""


@dataclass(frozen=True, slots=True)
class AxisScale:
    """A range of values and its round ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The position of a value in percent, kept on the chart."""
        share = (value - self.low) / (self.high - self.low)
        return round(_EDGE + (100 - 2 * _EDGE) * min(1.0, max(0.0, share)), 2)


def build_scale(values: Iterable[float], *, share: bool) -> AxisScale | None:
    """The scale that shows all values, ending at ticks; None where there are none. Shares stay in 0 to 1."""
    known = sorted(values)
    if not known:
        return None
    low, high = known[0], known[-1]
    if high - low < 1e-9:
        margin = 0.05 if share else max(abs(low) * 0.1, 0.05)
        low, high = low - margin, high + margin
    if share:
        low, high = max(0.0, low), min(1.0, high)
    step = _step(high - low)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(index * step, 12) for index in range(first, last + 1))
    return AxisScale(ticks[0], ticks[-1], ticks)


class IntervalPlot(NamedTuple):
    """Where an interval stands on a line that holds zero, in percent."""

    zero: float
    dot: float
    bar: tuple[float, float]
    """Start and width."""


def plot_interval(value: float, low: float, high: float) -> IntervalPlot:
    """An estimate and its interval on a line that ends where the interval or zero does."""
    line = AxisScale(min(0.0, low), max(0.0, high), ()) if low < high else AxisScale(-1.0, 1.0, ())
    start = line.at(low)
    return IntervalPlot(line.at(0.0), line.at(value), (start, round(line.at(high) - start, 2)))


def _step(width: float) -> float:
    rough = width / _WANTED_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))
