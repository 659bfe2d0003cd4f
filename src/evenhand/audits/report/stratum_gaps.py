"""Gaps inside strata, and gaps between every two groups: what stands beside the comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import polars as pl

from evenhand.audits.report.gap_wording import ALPHA
from evenhand.audits.report.measures import Measure, MeasureKey
from evenhand.core.records import Comparison
from evenhand.report.json_tables import GAP_KEY, null_non_finite
from evenhand.report.wording import format_baseline, format_name, format_p
from evenhand.store.run import Run
from evenhand.store.schemas import ADJUSTED

MOST = 200
"""Rows of each table on the page; the CSV and the run folder have all."""


@dataclass(frozen=True, slots=True)
class AdjustedGap:
    """A gap with the same mix of strata on both sides."""

    group: str
    baseline: str
    measure: Measure
    by: str
    whole: str
    gap: str
    interval: str
    p: str
    inside: str
    """The smallest and the largest gap inside a stratum."""
    disagrees: bool

    @property
    def warning(self) -> str:
        """What contradicting strata mean, in a sentence."""
        return (
            f"{self.group} against {self.baseline}, {self.measure.full_title}: over all texts the gap is "
            f"{self.whole}{self.measure.unit}, but with the same mix of {self.by} on both sides it is "
            f"{self.gap}{self.measure.unit}. The mix of {self.by} makes the gap, not the group"
        )


@dataclass(frozen=True, slots=True)
class GroupPair:
    """One group against another."""

    group: str
    other: str
    measure: Measure
    gap: str
    interval: str
    p: str
    direction: str


def find_adjusted_gaps(run: Run, known: Mapping[MeasureKey, Measure]) -> list[AdjustedGap]:
    """The adjusted gaps of primary measures and all that their strata contradict; the latter first."""
    table = null_non_finite(run.table("strata"))
    whole = dict(_estimates(run.table("comparisons")))
    spans = _spans(table)
    found = [
        _to_adjusted_gap(row, known[row["metric"], row["output"]], whole, spans)
        for row in table.filter(pl.col("stratum") == ADJUSTED).iter_rows(named=True)
        if row["estimate"] is not None and (row["disagrees"] or known[row["metric"], row["output"]].primary)
    ]
    return sorted(found, key=lambda gap: not gap.disagrees)


def find_clear_pairs(run: Run, known: Mapping[MeasureKey, Measure]) -> tuple[list[GroupPair], int]:
    """The pairs of groups whose gap is larger than chance, by p, and how many pairs were compared."""
    table = null_non_finite(run.table("pairs")).select([field.name for field in fields(Comparison)])
    clear = table.filter(pl.col("p_adjusted") <= ALPHA).sort("p_adjusted", maintain_order=True)
    found = [_pair(row, known[row["metric"], row["output"]]) for row in clear.iter_rows(named=True)]
    return found, table.height


def _to_adjusted_gap(
    row: Mapping[str, object],
    measure: Measure,
    whole: Mapping[tuple[object, ...], float],
    spans: Mapping[tuple[object, ...], tuple[float, float]],
) -> AdjustedGap:
    key = tuple(row[column] for column in GAP_KEY)
    estimate, before = row["estimate"], whole.get(key)
    inside = spans.get((*key, row["by"]))
    assert isinstance(estimate, float)
    return AdjustedGap(
        group=format_name(str(row["group"])),
        baseline=format_baseline(str(row["baseline"]), str(row["axis"])),
        measure=measure,
        by=format_name(str(row["by"])),
        whole="" if before is None else measure.signed_gap(before),
        gap=measure.signed_gap(estimate),
        interval=_interval(row, measure),
        p=format_p(_number(row["p_adjusted"])),
        inside="" if inside is None else " to ".join(measure.signed_gap(value) for value in inside),
        disagrees=bool(row["disagrees"]),
    )


def _pair(row: Mapping[str, object], measure: Measure) -> GroupPair:
    estimate = _number(row["estimate"]) or 0.0
    return GroupPair(
        group=format_name(str(row["group"])),
        other=format_name(str(row["baseline"])),
        measure=measure,
        gap=measure.signed_gap(estimate),
        interval=_interval(row, measure),
        p=format_p(_number(row["p_adjusted"])),
        direction="higher" if estimate > 0 else "lower",
    )


def _interval(row: Mapping[str, object], measure: Measure) -> str:
    low, high = _number(row["low"]), _number(row["high"])
    return "" if low is None or high is None else f"{measure.signed_gap(low)} to {measure.signed_gap(high)}"


def _number(value: object) -> float | None:
    return value if isinstance(value, float) else None


def _estimates(table: pl.DataFrame) -> list[tuple[tuple[object, ...], float]]:
    known = table.filter(pl.col("estimate").is_not_null())
    return [(row[:-1], row[-1]) for row in known.select(*GAP_KEY, "estimate").iter_rows()]


def _spans(table: pl.DataFrame) -> dict[tuple[object, ...], tuple[float, float]]:
    inside = table.filter((pl.col("stratum") != ADJUSTED) & pl.col("estimate").is_not_null())
    ends = inside.group_by(*GAP_KEY, "by").agg(least=pl.col("estimate").min(), most=pl.col("estimate").max())
    return {row[:-2]: (row[-2], row[-1]) for row in ends.iter_rows()}
