"""The leaderboard: how far apart the groups of each run stand, with ties shown as ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.audits.report.compare_lines import number_or_none
from evenhand.audits.report.measures import Measure, MeasureKey
from evenhand.core.digests import Json
from evenhand.report.chart_scales import AxisScale
from evenhand.report.wording import format_name, show_control_characters

_KEY = ("suite", "axis", "metric", "output")
_COUNTS = ("narrower", "wider", "tied", "null")


@dataclass(frozen=True, slots=True)
class LeaderboardPlace:
    """One run on one output of the leaderboard."""

    run: str
    rank: str
    """``1``, or ``1=`` where it is tied with another run of that rank; empty where it has none."""
    spread: str
    interval: str
    reason: str
    tone: str
    """``lower`` where no run is narrower, ``higher`` where one is, empty where it ties with all."""
    dot: float | None = None
    bar: tuple[float, float] | None = None
    """Start and width, in percent."""


@dataclass(frozen=True, slots=True)
class LeaderboardTable:
    """One axis and output of the leaderboard."""

    axis: str
    what: str
    metric: str
    measure: str
    unit: str
    places: tuple[LeaderboardPlace, ...]
    exploratory: bool

    @property
    def has_distinct_runs(self) -> bool:
        """Whether any two runs can be told apart."""
        return any(place.tone for place in self.places)


@dataclass(frozen=True, slots=True)
class RunStanding:
    """One run over all primary outputs."""

    rank: str
    run: str
    narrower: int
    wider: int
    tied: int
    null: int

    @property
    def pieces(self) -> list[tuple[str, float, float]]:
        """What its bar is made of: class, start and width in percent."""
        counted = (("lower", self.narrower), ("tied", self.tied), ("null", self.null), ("higher", self.wider))
        total, start, found = max(1, sum(amount for _, amount in counted)), 0.0, []
        for kind, amount in counted:
            width = 100 * amount / total
            if amount:
                found.append((kind, round(start, 2), round(width, 2)))
            start += width
        return found


def build_leaderboards(
    rows: Sequence[Mapping[str, Json]], known: Mapping[MeasureKey, Measure]
) -> tuple[LeaderboardTable, ...]:
    """One board an axis and output: primary ones first, and those that tell runs apart first."""
    parts: dict[tuple[str, ...], list[Mapping[str, Json]]] = {}
    for row in rows:
        parts.setdefault(tuple(str(row[column]) for column in _KEY), []).append(row)
    built = [_board(key, part, known[key[2], key[3]]) for key, part in parts.items()]
    return tuple(sorted(built, key=lambda board: (board.exploratory, not board.has_distinct_runs)))


def read_standings(rows: Sequence[Mapping[str, Json]]) -> tuple[RunStanding, ...]:
    """The runs over all primary outputs, best first."""
    ranks = format_ranks([_rank(row) for row in rows])
    return tuple(
        RunStanding(rank, show_control_characters(str(row["run"])), *(_count(row[key]) for key in _COUNTS))
        for row, rank in zip(rows, ranks, strict=True)
    )


def format_ranks(ranks: Sequence[int | None]) -> list[str]:
    """Ranks with ties shown: 1, 2, 2 is "1", "2=", "2="."""
    return ["" if rank is None else f"{rank}=" if ranks.count(rank) > 1 else str(rank) for rank in ranks]


def _board(key: tuple[str, ...], part: Sequence[Mapping[str, Json]], measure: Measure) -> LeaderboardTable:
    ranks = format_ranks([_rank(row) for row in part])
    ends = [number_or_none(row[end]) for row in part for end in ("spread", "low", "high")]
    top = max((end for end in ends if end is not None), default=0.0)
    scale = AxisScale(0.0, top or 1.0, ())
    return LeaderboardTable(
        axis=key[1],
        what=format_name(key[1]),
        metric=key[2],
        measure=measure.full_title,
        unit=measure.unit,
        places=tuple(
            _place(row, rank, measure, scale, len(part)) for row, rank in zip(part, ranks, strict=True)
        ),
        exploratory=bool(part[0]["exploratory"]),
    )


def _place(
    row: Mapping[str, Json], rank: str, measure: Measure, scale: AxisScale, runs: int
) -> LeaderboardPlace:
    spread, low, high = (number_or_none(row[key]) for key in ("spread", "low", "high"))
    start, end = (None if edge is None else scale.at(edge) for edge in (low, high))
    return LeaderboardPlace(
        run=show_control_characters(str(row["run"])),
        rank=rank,
        spread="" if spread is None else measure.gap(spread),
        interval="" if low is None or high is None else f"{measure.gap(low)} to {measure.gap(high)}",
        reason=format_name(str(row["null_reason"])) if row["null_reason"] else "",
        tone=_tone(row, runs),
        dot=None if spread is None else scale.at(spread),
        bar=None if start is None or end is None else (start, round(end - start, 2)),
    )


def _tone(row: Mapping[str, Json], runs: int) -> str:
    rank, tied = _rank(row), row["tied_with"]
    if rank is None or (isinstance(tied, Sequence) and len(tied) >= runs - 1):
        return ""
    return "lower" if rank == 1 else "higher"


def _rank(row: Mapping[str, Json]) -> int | None:
    value = row["rank"]
    return value if isinstance(value, int) else None


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0
