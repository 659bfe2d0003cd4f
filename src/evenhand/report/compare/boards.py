"""The leaderboard: how far apart the groups of each run stand, with ties shown as ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.core.digests import Json
from evenhand.report.compare.lines import number_of
from evenhand.report.measures import Measure, MeasureKey
from evenhand.report.scale import Scale
from evenhand.report.wording import name, visible

_KEY = ("suite", "axis", "metric", "output")
_COUNTS = ("narrower", "wider", "tied", "null")


@dataclass(frozen=True, slots=True)
class Place:
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
class Board:
    """One axis and output of the leaderboard."""

    axis: str
    what: str
    metric: str
    measure: str
    unit: str
    places: tuple[Place, ...]
    exploratory: bool

    @property
    def is_told(self) -> bool:
        """Whether any two runs can be told apart."""
        return any(place.tone for place in self.places)


@dataclass(frozen=True, slots=True)
class Standing:
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


def boards(rows: Sequence[Mapping[str, Json]], known: Mapping[MeasureKey, Measure]) -> tuple[Board, ...]:
    """One board an axis and output: primary ones first, and those that tell runs apart first."""
    parts: dict[tuple[str, ...], list[Mapping[str, Json]]] = {}
    for row in rows:
        parts.setdefault(tuple(str(row[column]) for column in _KEY), []).append(row)
    built = [_board(key, part, known[key[2], key[3]]) for key, part in parts.items()]
    return tuple(sorted(built, key=lambda board: (board.exploratory, not board.is_told)))


def standings(rows: Sequence[Mapping[str, Json]]) -> tuple[Standing, ...]:
    """The runs over all primary outputs, best first."""
    ranks = ranked([_rank(row) for row in rows])
    return tuple(
        Standing(rank, visible(str(row["run"])), *(_count(row[key]) for key in _COUNTS))
        for row, rank in zip(rows, ranks, strict=True)
    )


def ranked(ranks: Sequence[int | None]) -> list[str]:
    """Ranks with ties shown: 1, 2, 2 is "1", "2=", "2="."""
    return ["" if rank is None else f"{rank}=" if ranks.count(rank) > 1 else str(rank) for rank in ranks]


def _board(key: tuple[str, ...], part: Sequence[Mapping[str, Json]], measure: Measure) -> Board:
    ranks = ranked([_rank(row) for row in part])
    ends = [number_of(row[end]) for row in part for end in ("spread", "low", "high")]
    top = max((end for end in ends if end is not None), default=0.0)
    scale = Scale(0.0, top or 1.0, ())
    return Board(
        axis=key[1],
        what=name(key[1]),
        metric=key[2],
        measure=measure.full_title,
        unit=measure.unit,
        places=tuple(
            _place(row, rank, measure, scale, len(part)) for row, rank in zip(part, ranks, strict=True)
        ),
        exploratory=bool(part[0]["exploratory"]),
    )


def _place(row: Mapping[str, Json], rank: str, measure: Measure, scale: Scale, runs: int) -> Place:
    spread, low, high = (number_of(row[key]) for key in ("spread", "low", "high"))
    start, end = (None if edge is None else scale.at(edge) for edge in (low, high))
    return Place(
        run=visible(str(row["run"])),
        rank=rank,
        spread="" if spread is None else measure.gap(spread),
        interval="" if low is None or high is None else f"{measure.gap(low)} to {measure.gap(high)}",
        reason=name(str(row["null_reason"])) if row["null_reason"] else "",
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
