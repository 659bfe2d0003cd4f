"""What the report of a comparison says, gathered once: standings, changes, a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.core.digests import Json
from evenhand.report.caveats import suite_notes
from evenhand.report.gaps import ALPHA, level
from evenhand.report.measures import Measure, MeasureKey, measures
from evenhand.report.provenance import Fact
from evenhand.report.reading import objects_at, text_at, texts_at
from evenhand.report.tables import rows
from evenhand.report.wording import name, probability, short_baseline, visible
from evenhand.store.run import Run

CAVEATS = (
    "Runs are compared on the prompts they share, each prompt with itself; other prompts may say otherwise.",
    "A tie is not equality: this many prompts cannot tell the two apart.",
    "A narrower gap is no merit where both groups got worse: read the changes of values beside it.",
    "The typical gap weighs every group alike and is freed of chance; it is 0 where chance explains it all.",
)


@dataclass(frozen=True, slots=True)
class Line:
    """A change of a gap or of a value, in words."""

    run: str
    what: str
    measure: str
    before: str
    after: str
    change: str
    interval: str
    p: str
    verdict: str
    """``wider``, ``narrower``, ``moved``, ``cannot tell`` or ``not testable``."""
    seen_from: str
    exploratory: bool
    size: float
    """For sorting: the part of the measure's range, or the bare size."""


@dataclass(frozen=True, slots=True)
class Place:
    """One run on one output of the leaderboard."""

    rank: str
    """``1``, or ``1=`` where it is tied with another run of that rank."""
    spread: str
    interval: str


@dataclass(frozen=True, slots=True)
class Board:
    """One axis and output of the leaderboard."""

    what: str
    measure: str
    places: tuple[Place, ...]
    exploratory: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """One run over all primary outputs."""

    rank: str
    run: str
    narrower: int
    wider: int
    tied: int
    null: int


@dataclass(frozen=True, slots=True)
class Content:
    """The whole comparison."""

    names: tuple[str, ...]
    verdict: str
    level: str
    standings: tuple[Standing, ...]
    gaps: tuple[Line, ...]
    values: tuple[Line, ...]
    boards: tuple[Board, ...]
    warnings: tuple[str, ...]
    caveats: tuple[str, ...]
    facts: tuple[Fact, ...]

    @property
    def told(self) -> tuple[Line, ...]:
        """The changes of primary gaps that are beyond chance, largest first."""
        return tuple(line for line in self.gaps if line.verdict in _BEYOND and not line.exploratory)


_BEYOND = ("wider", "narrower", "moved")


def content(run: Run) -> Content:
    """The comparison in words."""
    known = measures(run)
    names = tuple(text_at(item, "name") for item in objects_at(run.manifest, "runs"))
    changes = [_line(row, known) for row in rows(run.table("changes"))]
    of_gaps, of_values = (
        tuple(sorted((line for kind, line in changes if kind == effect), key=_order))
        for effect in ("gap", "value")
    )
    standings = _standings(rows(run.table("standings")))
    return Content(
        names=tuple(visible(item) for item in names),
        verdict=_verdict(of_gaps, standings),
        level=level(run),
        standings=standings,
        gaps=of_gaps,
        values=of_values,
        boards=_boards(rows(run.table("leaderboard")), known),
        warnings=tuple(visible(warning) for warning in texts_at(run.manifest, "warnings")),
        caveats=(*CAVEATS, *suite_notes(run)),
        facts=tuple(_facts(run)),
    )


def ranked(ranks: Sequence[int | None]) -> list[str]:
    """Ranks with ties shown: 1, 2, 2 is "1", "2=", "2="."""
    return ["" if rank is None else f"{rank}=" if ranks.count(rank) > 1 else str(rank) for rank in ranks]


def _line(row: Mapping[str, Json], known: Mapping[MeasureKey, Measure]) -> tuple[str, Line]:
    measure = known[str(row["metric"]), str(row["output"])]
    is_gap = row["effect"] == "gap"
    form = measure.signed_gap if is_gap else measure.value
    estimate, baseline = _number(row["estimate"]), row["baseline"]
    against = f" against {short_baseline(str(baseline))}" if is_gap else ""
    line = Line(
        run=visible(str(row["run"])),
        what=f"{name(str(row['group']))}{against}",
        measure=measure.full_title,
        before=_said(form, row["reference_value"]),
        after=_said(form, row["run_value"]),
        change=_said(measure.signed_gap, estimate) + (measure.unit if estimate is not None else ""),
        interval=_interval(measure, row),
        p="" if estimate is None else probability(_number(row["p_adjusted"])),
        verdict=_judged(row),
        seen_from=_said(measure.gap, row["min_detectable"]),
        exploratory=bool(row["exploratory"]),
        size=abs(estimate or 0) / (measure.span or 1),
    )
    return str(row["effect"]), line


def _judged(row: Mapping[str, Json]) -> str:
    p, widens = _number(row["p_adjusted"]), _number(row["widens"])
    if p is None:
        return "not testable"
    if p > ALPHA:
        return "cannot tell"
    low, high = _number(row["widens_low"]), _number(row["widens_high"])
    # A gap that changes its sign has moved, and need be neither wider nor narrower.
    if widens is None or low is None or high is None or low <= 0 <= high:
        return "moved"
    return "wider" if widens > 0 else "narrower"


def _order(line: Line) -> tuple[bool, int, float, str, str]:
    return (
        line.exploratory,
        0 if line.verdict in _BEYOND else 1 if line.verdict == "cannot tell" else 2,
        -line.size,
        line.what,
        line.measure,
    )


def _boards(found: Sequence[Mapping[str, Json]], known: Mapping[MeasureKey, Measure]) -> tuple[Board, ...]:
    boards: dict[tuple[str, ...], list[Mapping[str, Json]]] = {}
    for row in found:
        key = tuple(str(row[column]) for column in ("suite", "axis", "metric", "output"))
        boards.setdefault(key, []).append(row)
    built = [_board(key, part, known[key[2], key[3]]) for key, part in boards.items()]
    return tuple(sorted(built, key=lambda board: board.exploratory))


def _board(key: tuple[str, ...], part: Sequence[Mapping[str, Json]], measure: Measure) -> Board:
    ranks = ranked([_rank(row) for row in part])
    places = []
    for row, rank in zip(part, ranks, strict=True):
        low, high = _number(row["low"]), _number(row["high"])
        between = "" if low is None or high is None else f"{measure.gap(low)} to {measure.gap(high)}"
        places.append(Place(rank, _said(measure.gap, row["spread"]), between))
    return Board(name(key[1]), measure.full_title, tuple(places), bool(part[0]["exploratory"]))


def _rank(row: Mapping[str, Json]) -> int | None:
    value = row["rank"]
    return value if isinstance(value, int) else None


def _standings(found: Sequence[Mapping[str, Json]]) -> tuple[Standing, ...]:
    ranks = ranked([_rank(row) for row in found])
    return tuple(
        Standing(rank, visible(str(row["run"])), *(_count(row[key]) for key in _COUNTS))
        for row, rank in zip(found, ranks, strict=True)
    )


_COUNTS = ("narrower", "wider", "tied", "null")


def _verdict(gaps: Sequence[Line], standings: Sequence[Standing]) -> str:
    judged = [line for line in gaps if not line.exploratory and line.verdict != "not testable"]
    told = [line for line in judged if line.verdict in _BEYOND]
    if not judged:
        return "Nothing could be compared: no gap of these runs can be tested."
    if not told:
        found = f"None of {len(judged):,} gaps changed beyond chance from the reference"
    else:
        first = told[0]
        found = (
            f"{len(told):,} of {len(judged):,} gaps changed beyond chance from the reference; the largest is "
            f"{first.what} ({first.measure}) under {first.run}: {first.before} became {first.after}"
        )
    best = [item.run for item in standings if item.rank.rstrip("=") == "1"]
    order = (
        "no run can be called narrower than the others"
        if len(best) == len(standings)
        else f"narrowest over all: {' and '.join(best)}"
    )
    return f"{found}; {order}."


def _facts(run: Run) -> list[Fact]:
    facts = [
        Fact(f"Run {number}", f"{text_at(item, 'name')}: {text_at(item, 'path')}", is_code=True)
        for number, item in enumerate(objects_at(run.manifest, "runs"), start=1)
    ]
    facts.append(Fact("Command", text_at(run.manifest, "command"), is_code=True))
    facts.append(Fact("evenhand", text_at(run.manifest, "package")))
    return facts


def _interval(measure: Measure, row: Mapping[str, Json]) -> str:
    low, high = _number(row["low"]), _number(row["high"])
    if low is None or high is None:
        return ""
    return f"{measure.signed_gap(low)} to {measure.signed_gap(high)}"


def _said(form: object, value: Json) -> str:
    number = _number(value)
    return "" if number is None or not callable(form) else str(form(number))


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0
