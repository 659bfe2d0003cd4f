"""What the report of a comparison says, gathered once: standings, changes, a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.core.digests import Json
from evenhand.report.caveats import suite_notes
from evenhand.report.compare.boards import Board, Standing, boards, standings
from evenhand.report.compare.lines import BEYOND, Line, lines
from evenhand.report.findings import CORRECTIONS
from evenhand.report.gaps import level
from evenhand.report.measures import measures
from evenhand.report.provenance import Fact, circumstances
from evenhand.report.reading import mapping_at, objects_at, text_at, texts_at, value_at
from evenhand.report.tables import rows
from evenhand.report.tallies import Tally, tallies
from evenhand.report.wording import listed, name, visible
from evenhand.store.run import Run

CAVEATS = (
    "Runs are compared on the prompts they share, each prompt with itself; other prompts may say otherwise.",
    "A tie is not equality: this many prompts cannot tell the two apart.",
    "A narrower gap is no merit where both groups got worse: read the changes of values beside it.",
    "The typical gap weighs every group alike and is freed of chance; it is 0 where chance explains it all.",
)
_NAMED = 2
"""Runs beside the reference that a title names; more are counted."""
_MEANINGS = {
    "wider": "the gap grew, adjusted p of at most 0.05",
    "narrower": "the gap shrank, adjusted p of at most 0.05",
    "moved": "changed beyond chance, but neither wider nor narrower: its sign turned, or its size is open",
    "cannot tell": "too few texts to say whether it changed",
    "not testable": "no test was possible; the reason is in the table",
}


@dataclass(frozen=True, slots=True)
class Content:
    """The whole comparison."""

    names: tuple[str, ...]
    question: str
    details: str
    headline: str
    order: str
    """Which run's groups stand closest together."""
    level: str
    standings: tuple[Standing, ...]
    tallies: tuple[Tally, ...]
    gaps: tuple[Line, ...]
    values: tuple[Line, ...]
    boards: tuple[Board, ...]
    family: str
    """Over how many gaps of a run p-values are corrected, and how."""
    warnings: tuple[str, ...]
    caveats: tuple[str, ...]
    facts: tuple[Fact, ...]

    @property
    def told(self) -> tuple[Line, ...]:
        """The changes of primary gaps that are beyond chance, largest first."""
        return tuple(line for line in self.gaps if line.verdict in BEYOND and not line.exploratory)

    @property
    def doubts(self) -> tuple[Line, ...]:
        """The changes of primary gaps that these prompts leave open, the largest first."""
        open_ = (line for line in self.gaps if line.verdict == "cannot tell" and line.interval)
        return tuple(line for line in open_ if not line.exploratory)

    @property
    def verdict(self) -> str:
        """The comparison in one sentence."""
        if not self.told:
            return f"{self.headline}; {self.order}."
        first = self.told[0]
        largest = f"{first.what} ({first.measure}) under {first.run}: {first.before} became {first.after}"
        return f"{self.headline}; the largest is {largest}{first.unit}; {self.order}."

    @property
    def axes(self) -> list[str]:
        """The axes, as they are spelled in the tables."""
        return list(dict.fromkeys(line.axis for line in self.gaps or self.values))

    @property
    def metrics(self) -> list[str]:
        """The metrics, as they are spelled in the tables."""
        return list(dict.fromkeys(line.metric for line in self.gaps or self.values))


def content(run: Run) -> Content:
    """The comparison in words."""
    known = measures(run)
    names = tuple(visible(text_at(item, "name")) for item in objects_at(run.manifest, "runs"))
    changes = rows(run.table("changes"))
    gaps = lines(changes, known, "gap")
    places = standings(rows(run.table("standings")))
    return Content(
        names=names,
        question=_question(names),
        details=_details(run, names),
        headline=_headline(gaps),
        order=_order(places),
        level=level(run),
        standings=places,
        tallies=_tallies(gaps),
        gaps=gaps,
        values=lines(changes, known, "value"),
        boards=boards(rows(run.table("leaderboard")), known),
        family=_family(changes),
        warnings=tuple(visible(warning) for warning in texts_at(run.manifest, "warnings")),
        caveats=(*CAVEATS, *suite_notes(run)),
        facts=tuple(_facts(run)),
    )


def _question(names: Sequence[str]) -> str:
    reference, *others = names
    if len(others) <= _NAMED:
        return f"Do the gaps of {listed(others)} differ from those of {reference}?"
    return f"Do the gaps of {len(others):,} runs differ from those of {reference}?"


def _details(run: Run, names: Sequence[str]) -> str:
    paired = mapping_at(run.manifest, "paired")
    is_paired = all(value_at(paired, suite) for suite in paired)
    how = (
        "Every prompt is compared with itself"
        if is_paired
        else "Where runs share no prompt, texts are unpaired"
    )
    metrics = listed([name(metric) for metric in mapping_at(run.manifest, "metrics")])
    against = f"{listed(names[1:])} against {names[0]}, the reference"
    return f"{against}, measured by {metrics or 'nothing'}. {how}."


def _judged(gaps: Sequence[Line]) -> list[Line]:
    return [line for line in gaps if not line.exploratory]


def _headline(gaps: Sequence[Line]) -> str:
    tested = [line for line in _judged(gaps) if line.verdict != "not testable"]
    told = sum(line.verdict in BEYOND for line in tested)
    if not tested:
        return "Nothing could be compared: no gap of these runs can be tested"
    if not told:
        return f"None of {len(tested):,} gaps changed beyond chance, which is not proof that none did"
    return f"{told:,} of {len(tested):,} gaps changed beyond chance from the reference"


def _order(places: Sequence[Standing]) -> str:
    best = [item.run for item in places if item.rank.rstrip("=") == "1"]
    if len(best) == len(places):
        return "no run can be called narrower than the others"
    return f"narrowest over all: {' and '.join(best)}"


def _family(changes: Sequence[Mapping[str, Json]]) -> str:
    gaps = [row for row in changes if row["effect"] == "gap" and not row["exploratory"]]
    sizes = sorted({int(str(row["family_size"])) for row in gaps})
    hows = {str(row["correction"]) for row in gaps}
    how = ", ".join(CORRECTIONS.get(word, word) for word in sorted(hows))
    return f"{' or '.join(f'{size:,}' for size in sizes)} gaps ({how})" if sizes else ""


def _tallies(gaps: Sequence[Line]) -> tuple[Tally, ...]:
    classes = {verdict: verdict.replace(" ", "-") for verdict in _MEANINGS}
    return tallies(
        (classes[line.verdict] for line in _judged(gaps)),
        words={kind: verdict for verdict, kind in classes.items()},
        meanings={kind: _MEANINGS[verdict] for verdict, kind in classes.items()},
    )


def _facts(run: Run) -> list[Fact]:
    facts = [Fact("Command to repeat", visible(text_at(run.manifest, "command")), is_code=True)]
    for number, item in enumerate(objects_at(run.manifest, "runs"), start=1):
        facts.append(Fact(f"Run {number}", f"{text_at(item, 'name')}: {text_at(item, 'path')}", is_code=True))
        facts.append(Fact(f"Run {number} was made by", visible(text_at(item, "command")), is_code=True))
    facts += circumstances(run.manifest)
    return [fact for fact in facts if fact.value]
