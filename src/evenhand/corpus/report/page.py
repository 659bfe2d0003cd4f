"""Everything the page of a corpus run shows, gathered once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from evenhand._version import __version__
from evenhand.corpus.report.findings import CorpusFindings, find_links, list_caveats
from evenhand.corpus.report.link_rows import NONE, CorpusLink
from evenhand.report.chart_scales import plot_interval
from evenhand.report.manifest import Fact, list_circumstances, read_mapping, read_number, read_text
from evenhand.report.standings import (
    CLEAR_LEVEL,
    STANDING_WORDS,
    StandingCount,
    TestStanding,
    count_standings,
)
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    pluralise,
    show_control_characters,
)
from evenhand.store.run import Run

LIMIT = "Limited by"
"""The fact that names the stage that took longest."""
MOST_ROWS = 3000
"""Links in the table: what a browser lays out in about a second."""
_MEANINGS: Mapping[TestStanding, str] = {
    "supported": "adjusted p of at most 0.05",
    "unclear": "the interval holds no link as well",
    "missing": "never seen together, or in too few documents",
}


@dataclass(frozen=True, slots=True)
class LinkHighlight:
    """One of the surest links, with its interval drawn against no link."""

    link: CorpusLink
    zero: float
    dot: float
    bar: tuple[float, float]


@dataclass(frozen=True, slots=True)
class HeatMapCell:
    """One field of a heat map."""

    link: CorpusLink
    differs: bool
    """Whether the link differs clearly from that of the first corpus."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Groups of one axis down, emotions across, the corpora of each group beneath each other."""

    axis: str
    lines: tuple[tuple[str, tuple[tuple[HeatMapCell, ...], ...]], ...]
    """Each group with a row of cells for each corpus."""
    base: tuple[tuple[str, ...], ...]
    """The part of the baseline's units that hold the emotion, in percent; a row for each corpus."""


@dataclass(frozen=True, slots=True)
class EmotionRate:
    """How often an emotion occurs in a corpus."""

    count: str
    per_million: str
    interval: str
    percent: str
    ratio: str
    """Against the first corpus; empty for that one."""
    differs: bool


@dataclass(frozen=True, slots=True)
class CorpusPage:
    """The content of a corpus report."""

    title: str
    findings: CorpusFindings
    level: str
    corpora: tuple[str, ...]
    emotions: tuple[str, ...]
    highlights: tuple[LinkHighlight, ...]
    tallies: tuple[StandingCount, ...]
    maps: tuple[HeatMap, ...]
    rates: tuple[tuple[str, tuple[EmotionRate, ...]], ...]
    totals: tuple[tuple[str, str], ...]
    """Of each corpus: all emotion counts, and the standard deviation of the counts."""
    links: tuple[CorpusLink, ...]
    unlisted: int
    problems: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    caveats: tuple[str, ...]
    facts: tuple[Fact, ...]
    version: str = __version__


def build_page(run: Run) -> CorpusPage:
    """The content of a corpus run's report."""
    found, occurrence = find_links(run), run.table("occurrence")
    corpora = tuple(occurrence["corpus"].unique(maintain_order=True))
    emotions = tuple(occurrence["emotion"].unique(maintain_order=True))
    differing = _differing(run)
    return CorpusPage(
        title=f"{found.question} evenhand report",
        findings=found,
        level=f"{100 * (read_number(run.manifest, 'config', 'level') or 0.95):g} %",
        corpora=corpora,
        emotions=emotions,
        highlights=tuple(map(_highlight, found.largest[:3])),
        tallies=count_standings(
            (link.standing for link in found.links), words=STANDING_WORDS, meanings=_MEANINGS
        ),
        maps=tuple(_maps(run, found, corpora, emotions, differing)),
        rates=tuple(_rates(run, corpora, emotions, differing)),
        totals=tuple(_totals(occurrence, corpora)),
        links=found.links[:MOST_ROWS],
        unlisted=max(0, len(found.links) - MOST_ROWS),
        problems=tuple(_problems(run)),
        warnings=tuple(show_control_characters(str(line)) for line in run.manifest.get("warnings", ())),
        caveats=tuple(list_caveats(run, found.unit)),
        facts=tuple(fact for fact in _facts(run) if fact.value),
    )


def _differing(run: Run) -> set[tuple[str, str, str, str]]:
    table = run.table("contrasts").filter(pl.col("p_adjusted") <= CLEAR_LEVEL)
    return set(table.select("corpus", "emotion", "axis", "group").iter_rows())


def _highlight(link: CorpusLink) -> LinkHighlight:
    value, low, high = (math.log(link.value(key) or 1.0) for key in ("odds_ratio", "low", "high"))
    return LinkHighlight(link, *plot_interval(value, low, high))


def _maps(
    run: Run,
    found: CorpusFindings,
    corpora: tuple[str, ...],
    emotions: tuple[str, ...],
    differing: set[tuple[str, str, str, str]],
) -> Iterator[HeatMap]:
    by_key = {link.key: link for link in found.links}
    table = run.table("cooccurrence")
    places = table.filter(pl.col("group") != NONE).select("axis", "group").unique(maintain_order=True)
    for axis in places["axis"].unique(maintain_order=True):
        lines = []
        for group in places.filter(pl.col("axis") == axis)["group"]:
            keys = [[(corpus, emotion, axis, group) for emotion in emotions] for corpus in corpora]
            rows = [tuple(HeatMapCell(by_key[key], key in differing) for key in row) for row in keys]
            lines.append((format_name(group), tuple(rows)))
        base = [
            tuple(_share(by_key[corpus, emotion, axis, group].base_share) for emotion in emotions)
            for corpus in corpora
        ]
        yield HeatMap(format_name(axis), tuple(lines), tuple(base))


def _rates(
    run: Run, corpora: tuple[str, ...], emotions: tuple[str, ...], differing: set[tuple[str, str, str, str]]
) -> Iterator[tuple[str, tuple[EmotionRate, ...]]]:
    rows = {(row["corpus"], row["emotion"]): row for row in run.table("occurrence").iter_rows(named=True)}
    table = run.table("contrasts").filter(pl.col("group") == "")
    ratios = {(row["corpus"], row["emotion"]): row["ratio"] for row in table.iter_rows(named=True)}
    for emotion in emotions:
        line = []
        for corpus in corpora:
            row, ratio = rows[corpus, emotion], ratios.get((corpus, emotion))
            ends = "" if row["low"] is None else f"{_whole(row['low'])} to {_whole(row['high'])}"
            percent = "" if row["percent"] is None else f"{row['percent']:.2f} %"
            shown = "" if ratio is None else f"{ratio:.2f}×"
            differs = (corpus, emotion, "", "") in differing
            line.append(
                EmotionRate(f"{row['count']:,}", _whole(row["per_million"]), ends, percent, shown, differs)
            )
        yield format_name(emotion), tuple(line)


def _totals(occurrence: pl.DataFrame, corpora: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for corpus in corpora:
        row = occurrence.filter(pl.col("corpus") == corpus).row(0, named=True)
        spread = row["standard_deviation"]
        yield f"{row['total']:,}", "" if spread is None else f"{spread:,.2f}"


def _problems(run: Run) -> Iterator[tuple[str, str]]:
    for file, byte, reason in run.table("problems").iter_rows():
        yield (
            show_control_characters(f"{file}{'' if byte is None else f', byte {byte:,}'}"),
            show_control_characters(reason),
        )


def _facts(run: Run) -> Iterator[Fact]:
    manifest = run.manifest
    identity, counted = read_mapping(manifest, "identity"), read_mapping(manifest, "stages", "count")
    yield Fact("Command to repeat", show_control_characters(read_text(manifest, "command")), is_code=True)
    yield Fact("Counting", read_text(identity, "counting"))
    yield Fact("Unit", read_text(identity, "unit"))
    yield Fact("Rule for words", read_text(identity, "rule"))
    yield Fact("Terms", read_text(identity, "terms", "digest"), is_code=True)
    for corpus in read_mapping(manifest, "corpora"):
        yield Fact(show_control_characters(corpus), _corpus(read_mapping(manifest, "corpora", corpus)))
    seconds = read_number(counted, "seconds")
    speed = (
        f"{read_text(counted, 'limited_by')} ({format_number(seconds)} s in all)"
        if seconds is not None
        else ""
    )
    yield Fact(LIMIT, speed)
    # The one stage is told above, in words.
    yield from (fact for fact in list_circumstances(manifest) if not fact.name.startswith("Stage"))


def _corpus(total: object) -> str:
    values = total if isinstance(total, dict) else {}
    shown = ("unit", "word", "byte", "file")
    amounts = [format_count(values.get(pluralise(key), 0), key) for key in shown]
    return f"{', '.join(amounts)}; {values.get('units_without_group', 0):,} units name no group"


def _share(part: float | None) -> str:
    return "" if part is None else f"{100 * part:.2f} %"


def _whole(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"
