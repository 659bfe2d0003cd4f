"""``power``: how many prompts and samples show a gap, planned from a pilot run or from a guess."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Unpack

import polars as pl

from evenhand.api.result_options import PowerOptions
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.records import Comparison
from evenhand.pipeline.growing import Grower, Seen
from evenhand.pipeline.loading import check_measured, load
from evenhand.stats.power import clusters_needed
from evenhand.stats.results import Pilot
from evenhand.store.run import Run, naming_run

_COLUMNS: Mapping[str, pl.DataType] = {
    "suite": pl.String(),
    "axis": pl.String(),
    "group": pl.String(),
    "baseline": pl.String(),
    "metric": pl.String(),
    "output": pl.String(),
    "n_clusters": pl.Int64(),
    "min_detectable": pl.Float64(),
    "clusters_needed": pl.Int64(),
    "samples_factor": pl.Float64(),
    "null_reason": pl.String(),
}


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """What a gap of this size needs to be seen; one row a comparison of the pilot."""

    gap: float
    power: float
    level: float
    table: pl.DataFrame
    """``clusters_needed`` at the pilot's samples; ``samples_factor``: times the samples instead, or null."""

    @property
    def clusters(self) -> int | None:
        """The clusters that every comparison needs at most; null where none could be planned."""
        found = self.table["clusters_needed"].max()
        return int(found) if isinstance(found, int) else None


@checks_options
def power(run: Run | Path | str | None = None, **options: Unpack[PowerOptions]) -> SamplePlan:
    """The plan of samples that shows a true gap of this size.

    From a pilot run: for each primary comparison, from the spread its test saw. Without a run: for two groups
    of shares near ``share``, ``samples`` texts a prompt, alike within a prompt by ``icc``.
    """
    gap, power, level = options["gap"], options["power"], options["level"]
    if run is None:
        return _guessed(gap, power, level, _Guess(options["share"], options["icc"], options["samples"]))
    with naming_run(run):
        return _of_pilot(run if isinstance(run, Run) else Run.open(run), gap, power, level)


def _of_pilot(pilot: Run, gap: float, power: float, level: float) -> SamplePlan:
    check_measured(pilot)
    loaded = load(pilot)
    names = [field.name for field in fields(Comparison)]
    table = loaded.run.table("comparisons").filter(~pl.col("exploratory")).select(names)
    grower = Grower(loaded, level=level, power=power)
    rows = _planned([Comparison(**row) for row in table.iter_rows(named=True)], grower, gap)
    return SamplePlan(gap, power, level, pl.DataFrame(list(rows), schema=dict(_COLUMNS)))


@dataclass(frozen=True, slots=True)
class _Guess:
    share: float
    icc: float
    samples: int

    def pilot(self) -> Pilot:
        return Pilot(self.share, math.sqrt(self.share * (1 - self.share)), self.icc, 0, 0)


def _guessed(gap: float, power: float, level: float, guess: _Guess) -> SamplePlan:
    pilot = guess.pilot()
    room = max(guess.share, 1 - guess.share)
    if gap > room:
        raise InputError(
            f"a gap of {gap} from a share of {guess.share}",
            accepted=f"at most {room:g}: shares end at 0 and 1",
            todo="say the gap as a share, 0.05 for 5 points, or give a pilot run for a mean",
        )
    plan = clusters_needed(gap, pilot, pilot, samples=guess.samples, level=level, power=power)
    row = {"group": "a", "baseline": "b", "clusters_needed": plan.clusters, "null_reason": plan.null_reason}
    return SamplePlan(gap, power, level, pl.DataFrame([row], schema=dict(_COLUMNS)))


def _planned(comparisons: Sequence[Comparison], grower: Grower, gap: float) -> Iterator[dict[str, object]]:
    for item in comparisons:
        row: dict[str, object] = {name: getattr(item, name, None) for name in _COLUMNS}
        if item.low is not None and item.high is not None:
            found = grower.growth(_seen(item, item.low, item.high), distance=gap)
            if found is not None and found.clusters is not None:
                row["clusters_needed"] = math.ceil(found.clusters * item.n_clusters)
                row["samples_factor"] = found.samples
        yield row


def _seen(item: Comparison, low: float, high: float) -> Seen:
    names = (item.suite, item.axis, item.group, item.baseline, item.metric, item.output)
    return Seen(*names, low, high, item.n_clusters)
