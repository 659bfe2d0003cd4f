"""What the report of a comparison says, gathered once: standings, changes, a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.audits.report.compare_leaderboard import (
    LeaderboardTable,
    RunStanding,
    build_leaderboards,
    read_standings,
)
from evenhand.audits.report.compare_lines import BEYOND, ChangeLine, build_lines
from evenhand.audits.report.findings import CORRECTIONS, list_suite_notes
from evenhand.audits.report.gap_wording import format_level
from evenhand.audits.report.measures import read_measures
from evenhand.core.digests import Json
from evenhand.report.json_tables import to_rows
from evenhand.report.manifest import (
    Fact,
    list_circumstances,
    read_mapping,
    read_objects,
    read_text,
    read_texts,
    read_value,
)
from evenhand.report.standings import StandingCount, count_standings
from evenhand.report.wording import format_name, join_words, show_control_characters
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
class CompareReport:
    """The whole comparison."""

    names: tuple[str, ...]
    question: str
    details: str
    headline: str
    order: str
    """Which run's groups stand closest together."""
    level: str
    standings: tuple[RunStanding, ...]
    tallies: tuple[StandingCount, ...]
    gaps: tuple[ChangeLine, ...]
    values: tuple[ChangeLine, ...]
    boards: tuple[LeaderboardTable, ...]
    family: str
    """Over how many gaps of a run p-values are corrected, and how."""
    warnings: tuple[str, ...]
    caveats: tuple[str, ...]
    facts: tuple[Fact, ...]

    @property
    def clear_changes(self) -> tuple[ChangeLine, ...]:
        """The changes of primary gaps that are beyond chance, largest first."""
        return tuple(line for line in self.gaps if line.verdict in BEYOND and not line.exploratory)

    @property
    def open_changes(self) -> tuple[ChangeLine, ...]:
        """The changes of primary gaps that these prompts leave open, the largest first."""
        open_ = (line for line in self.gaps if line.verdict == "cannot tell" and line.interval)
        return tuple(line for line in open_ if not line.exploratory)

    @property
    def verdict(self) -> str:
        """The comparison in one sentence."""
        if not self.clear_changes:
            return f"{self.headline}; {self.order}."
        first = self.clear_changes[0]
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


def build_report(run: Run) -> CompareReport:
    """The comparison in words."""
    known = read_measures(run)
    names = tuple(
        show_control_characters(read_text(item, "name")) for item in read_objects(run.manifest, "runs")
    )
    changes = to_rows(run.table("changes"))
    gaps = build_lines(changes, known, "gap")
    places = read_standings(to_rows(run.table("standings")))
    return CompareReport(
        names=names,
        question=_question(names),
        details=_details(run, names),
        headline=_headline(gaps),
        order=_order(places),
        level=format_level(run),
        standings=places,
        tallies=_tallies(gaps),
        gaps=gaps,
        values=build_lines(changes, known, "value"),
        boards=build_leaderboards(to_rows(run.table("leaderboard")), known),
        family=_family(changes),
        warnings=tuple(show_control_characters(warning) for warning in read_texts(run.manifest, "warnings")),
        caveats=(*CAVEATS, *list_suite_notes(run)),
        facts=tuple(_facts(run)),
    )


def _question(names: Sequence[str]) -> str:
    reference, *others = names
    if len(others) <= _NAMED:
        return f"Do the gaps of {join_words(others)} differ from those of {reference}?"
    return f"Do the gaps of {len(others):,} runs differ from those of {reference}?"


def _details(run: Run, names: Sequence[str]) -> str:
    paired = read_mapping(run.manifest, "paired")
    is_paired = all(read_value(paired, suite) for suite in paired)
    how = (
        "Every prompt is compared with itself"
        if is_paired
        else "Where runs share no prompt, texts are unpaired"
    )
    metrics = join_words([format_name(metric) for metric in read_mapping(run.manifest, "metrics")])
    against = f"{join_words(names[1:])} against {names[0]}, the reference"
    return f"{against}, measured by {metrics or 'nothing'}. {how}."


def _primary_gaps(gaps: Sequence[ChangeLine]) -> list[ChangeLine]:
    return [line for line in gaps if not line.exploratory]


def _headline(gaps: Sequence[ChangeLine]) -> str:
    tested = [line for line in _primary_gaps(gaps) if line.verdict != "not testable"]
    told = sum(line.verdict in BEYOND for line in tested)
    if not tested:
        return "Nothing could be compared: no gap of these runs can be tested"
    if not told:
        return f"None of {len(tested):,} gaps changed beyond chance, which is not proof that none did"
    return f"{told:,} of {len(tested):,} gaps changed beyond chance from the reference"


def _order(places: Sequence[RunStanding]) -> str:
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


def _tallies(gaps: Sequence[ChangeLine]) -> tuple[StandingCount, ...]:
    classes = {verdict: verdict.replace(" ", "-") for verdict in _MEANINGS}
    return count_standings(
        (classes[line.verdict] for line in _primary_gaps(gaps)),
        words={kind: verdict for verdict, kind in classes.items()},
        meanings={kind: _MEANINGS[verdict] for verdict, kind in classes.items()},
    )


def _facts(run: Run) -> list[Fact]:
    facts = [
        Fact("Command to repeat", show_control_characters(read_text(run.manifest, "command")), is_code=True)
    ]
    for number, item in enumerate(read_objects(run.manifest, "runs"), start=1):
        facts.append(
            Fact(f"Run {number}", f"{read_text(item, 'name')}: {read_text(item, 'path')}", is_code=True)
        )
        facts.append(
            Fact(
                f"Run {number} was made by", show_control_characters(read_text(item, "command")), is_code=True
            )
        )
    facts += list_circumstances(run.manifest)
    return [fact for fact in facts if fact.value]
