"""How much a run must grow until a gap can be told: from its interval and the texts behind it."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.pipeline.comparison import baseline_rows
from evenhand.pipeline.gaps import Side
from evenhand.pipeline.intersections import cross
from evenhand.pipeline.loading import Loaded, command_of
from evenhand.pipeline.quantities import Axis, Quantity, axes
from evenhand.pipeline.side_by_side import FILES
from evenhand.stats._quantiles import t_quantile
from evenhand.stats.power import gap_variance, growth
from evenhand.stats.results import Growth


@dataclass(frozen=True, slots=True)
class Seen:
    """A gap as a run saw it."""

    suite: str
    axis: str
    group: str
    baseline: str
    metric: str
    output: str
    low: float
    high: float
    n_clusters: int


class Grower:
    """Plans the growth of one run."""

    def __init__(self, loaded: Loaded, *, level: float = 0.95, power: float = 0.8) -> None:
        self._level, self._power = level, power
        plain = axes(loaded.prompt_ids, loaded.prompts)
        every = [*plain, *cross(plain, {}).axes]
        self._axes: dict[tuple[str, str], Axis] = {(axis.suite, axis.name): axis for axis in every}
        if command_of(loaded.run) == "score":
            # Files that are compared have one name for what each calls by its own.
            self._axes |= {(FILES, axis.name): axis for axis in every}
        self._quantities: dict[tuple[str, str], Quantity] = {
            (item.metric, item.output): item for item in loaded.quantities
        }

    def growth(self, seen: Seen, *, distance: float) -> Growth | None:
        """What it takes so that the interval leaves everything at this distance from the gap outside.

        With the wanted power, if the true gap is the one seen. None for an axis the run does not have.
        """
        axis, quantity = self._axes.get((seen.suite, seen.axis)), self._quantities[seen.metric, seen.output]
        if axis is None:
            return None
        group = Side.of(quantity, axis, axis.codes == axis.groups.index(seen.group))
        other = Side.of(quantity, axis, baseline_rows(axis, seen.group, seen.baseline))
        df = max(1.0, seen.n_clusters - 1)
        alpha, beta = t_quantile((1 + self._level) / 2, df), t_quantile(self._power, df)
        variance = ((seen.high - seen.low) / 2 / alpha) ** 2
        of = gap_variance(group.values, group.clusters, other.values, other.clusters, variance=variance)
        return growth(of, wanted=(distance / (alpha + beta)) ** 2)
