"""Everything the HTML and Markdown templates show, gathered once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenhand._version import __version__
from evenhand.audits.report.charts import ChartFigure, build_figures
from evenhand.audits.report.distance_tables import Distances, build_distance_tables
from evenhand.audits.report.findings import Findings, find_gaps, list_caveats
from evenhand.audits.report.gap_wording import STANDING_WORDS, Gap, GapStanding, format_level, read_omnibus
from evenhand.audits.report.overview_matrix import OverviewMatrix, build_overviews
from evenhand.audits.report.stratum_gaps import AdjustedGap, GroupPair, find_adjusted_gaps, find_clear_pairs
from evenhand.core.digests import Json
from evenhand.report.chart_scales import plot_interval
from evenhand.report.manifest import (
    Fact,
    RunQuestion,
    describe_question,
    list_facts,
    read_mapping,
    read_numbers,
    read_objects,
    read_text,
    read_texts,
)
from evenhand.report.standings import StandingCount, count_standings
from evenhand.report.wording import (
    format_exact,
    format_name,
    format_percent,
    format_short_baseline,
    show_control_characters,
)
from evenhand.store.run import Run


@dataclass(frozen=True, slots=True)
class InfoCard:
    """A metric or a suite: its name and what is known of it."""

    name: str
    summary: str
    facts: tuple[Fact, ...]
    failures: tuple[str, ...] = ()
    """What a metric is known to get wrong."""


def build_metric_cards(manifest: Mapping[str, Json]) -> tuple[InfoCard, ...]:
    """What is known of each metric of a run, its known failures above all."""
    return tuple(_metric_card(key, card) for key, card in _objects(manifest, "metrics"))


def build_suite_cards(manifest: Mapping[str, Json]) -> tuple[InfoCard, ...]:
    """What is known of each suite of a run."""
    return tuple(_suite_card(key, card) for key, card in _objects(manifest, "suites"))


def _objects(manifest: Mapping[str, Json], key: str) -> list[tuple[str, Mapping[str, Json]]]:
    return [(inner, read_mapping(manifest, key, inner)) for inner in read_mapping(manifest, key)]


def _metric_card(spec: str, card: Mapping[str, Json]) -> InfoCard:
    outputs = [
        f"{read_text(info, 'name')} (larger means {read_text(info, 'larger_means') or 'not said'})"
        for info in read_objects(card, "outputs")
    ]
    known = (
        Fact("Version", show_control_characters(read_text(card, "version"))),
        Fact("Outputs", show_control_characters("; ".join(outputs))),
        Fact("Corrected family", ", ".join(read_texts(card, "primary"))),
        Fact("Reads", _reads(card)),
        Fact("Cut into labels", _cuts(card)),
        Fact("No score when", show_control_characters(read_text(card, "null_when"))),
        Fact("Differs from its paper", show_control_characters(read_text(card, "deviations"))),
        Fact("Paper", show_control_characters(read_text(card, "citation"))),
        Fact("Weights or lexicon", show_control_characters(read_text(card, "weights")), is_code=True),
    )
    return InfoCard(
        format_name(spec),
        show_control_characters(read_text(card, "summary")),
        tuple(fact for fact in known if fact.value),
        tuple(show_control_characters(failure) for failure in read_texts(card, "failures")),
    )


def _cuts(card: Mapping[str, Json]) -> str:
    parts = [
        f"{read_text(info, 'name')} at {' and '.join(map(format_exact, cuts))}"
        for info in read_objects(card, "outputs")
        if (cuts := read_numbers(info, "cuts"))
    ]
    return show_control_characters("; ".join(parts))


def _reads(card: Mapping[str, Json]) -> str:
    scopes = {"full": "prompt and continuation", "continuation": "the continuation alone"}
    masks = {"none": "masked where the suite asks for it", "person": "wants masks", "xyz": "wants masks"}
    parts = [scopes.get(read_text(card, "scope"), ""), masks.get(read_text(card, "masking"), "")]
    return ", ".join(part for part in parts if part)


def _suite_card(spec: str, card: Mapping[str, Json]) -> InfoCard:
    baselines = read_mapping(card, "baselines")
    known = (
        Fact(
            "Compared with",
            "; ".join(
                f"{format_name(axis)}: {format_short_baseline(str(baselines[axis]))}" for axis in baselines
            ),
        ),
        Fact("Cluster", show_control_characters(read_text(card, "cluster"))),
        Fact("Paper", show_control_characters(read_text(card, "citation"))),
        Fact("Licence", show_control_characters(read_text(card, "licence"))),
    )
    return InfoCard(
        format_name(spec),
        show_control_characters(read_text(card, "summary")),
        tuple(fact for fact in known if fact.value),
    )


MOST_ROWS = 3000
"""Rows of the charts, and of the comparisons table: what a browser lays out in about a second."""
_MEANINGS: Mapping[GapStanding, str] = {
    "supported": "adjusted p of at most 0.05",
    "unclear": "too few texts to say",
    "small": "the interval leaves no room for 5 points, or 5 % of a mean's range",
    "missing": "no test was possible; the reason is in the table",
}


@dataclass(frozen=True, slots=True)
class GapHighlight:
    """One of the largest gaps, with its interval drawn against zero."""

    gap: Gap
    zero: float
    dot: float
    bar: tuple[float, float]
    """Start and width, in percent."""


@dataclass(frozen=True, slots=True)
class ExclusionCount:
    """Something left out, counted by reason."""

    stage: str
    metric: str
    reason: str
    count: int
    of: int

    @property
    def share(self) -> str:
        """The part that was left out, in percent."""
        return format_percent(self.count / self.of) if self.of else ""


@dataclass(frozen=True, slots=True)
class AuditPage:
    """The content of a report."""

    title: str
    question: RunQuestion
    level: str
    """The level of the intervals, in percent."""
    findings: Findings
    highlights: tuple[GapHighlight, ...]
    tallies: tuple[StandingCount, ...]
    figures: tuple[ChartFigure, ...]
    matrices: tuple[OverviewMatrix, ...]
    gaps: tuple[Gap, ...]
    """The comparisons table: the corrected family first, strongest standing first, largest first."""
    valueless: tuple[str, ...]
    """Figures that would be empty: no text has a value."""
    undrawn: int
    """Estimates that found no room in the charts."""
    unlisted: int
    """Comparisons that found no room in the table."""
    exclusions: tuple[ExclusionCount, ...]
    caveats: tuple[str, ...]
    facts: tuple[Fact, ...]
    metrics: tuple[InfoCard, ...]
    suites: tuple[InfoCard, ...]
    adjusted_gaps: tuple[AdjustedGap, ...]
    """Gaps with the same mix of strata on both sides, those that strata contradict first."""
    pairs: tuple[GroupPair, ...]
    """Pairs of groups whose gap is larger than chance."""
    pairs_compared: int
    has_many_suites: bool
    has_many_models: bool
    distances: Distances
    version: str = __version__

    @property
    def has_blanks(self) -> bool:
        """Whether the overview has cells of groups that were not measured so."""
        lines = [line for matrix in self.matrices for block in matrix.blocks for line in block.lines]
        return any(cell is None for line in lines for cell in line.cells)

    @property
    def has_overall(self) -> bool:
        """Whether any axis has an omnibus answer."""
        blocks = [block for matrix in self.matrices for block in matrix.blocks]
        return any(answer for block in blocks for answer in block.overall)

    @property
    def has_doubted(self) -> bool:
        """Whether a check contradicts any gap."""
        return any(gap.is_doubted for gap in self.gaps)

    @property
    def contradicted_gaps(self) -> list[AdjustedGap]:
        """The gaps that their strata contradict."""
        return [gap for gap in self.adjusted_gaps if gap.disagrees]

    @property
    def axes(self) -> list[str]:
        """The axes, as they are spelled in the tables."""
        return list(dict.fromkeys(figure.axis for figure in self.figures))

    @property
    def metric_names(self) -> list[str]:
        """The metrics with a figure, as they are spelled in the tables."""
        return list(dict.fromkeys(figure.metric for figure in self.figures))


def build_page(run: Run) -> AuditPage:
    """The content of a run's report."""
    found = find_gaps(run)
    drawn, undrawn = build_figures(run, found, most_rows=MOST_ROWS)
    shown = [figure for figure in drawn if figure.has_values]
    question = describe_question(run)
    adjusted = find_adjusted_gaps(run, found.measures)
    pairs, pairs_compared = find_clear_pairs(run, found.measures)
    return AuditPage(
        title=f"{question.question} evenhand report",
        question=question,
        level=format_level(run),
        findings=found,
        highlights=tuple(_highlight(gap) for gap in found.confirmed_gaps[:3]),
        tallies=count_standings(
            (gap.standing for gap in found.judged_gaps), words=STANDING_WORDS, meanings=_MEANINGS
        ),
        # Figures with a finding first: of dozens, they are what a reader came for.
        figures=tuple(
            sorted(shown, key=lambda figure: not any(panel.supported_count for panel in figure.panels))
        ),
        valueless=tuple(figure.title for figure in drawn if not figure.has_values),
        matrices=tuple(build_overviews(found, read_omnibus(run))),
        gaps=found.gaps[:MOST_ROWS],
        undrawn=undrawn,
        unlisted=max(0, len(found.gaps) - MOST_ROWS),
        exclusions=_exclusions(run),
        caveats=tuple(list_caveats(run, found)),
        facts=tuple(list_facts(run)),
        metrics=build_metric_cards(run.manifest),
        suites=build_suite_cards(run.manifest),
        adjusted_gaps=tuple(adjusted),
        pairs=tuple(pairs),
        pairs_compared=pairs_compared,
        has_many_suites=len({figure.suite for figure in drawn}) > 1,
        has_many_models=len({figure.model for figure in drawn}) > 1,
        distances=build_distance_tables(run),
    )


def _highlight(gap: Gap) -> GapHighlight:
    row = gap.comparison
    estimate = row.estimate or 0.0
    low, high = (estimate if end is None else end for end in (row.low, row.high))
    return GapHighlight(gap, *plot_interval(estimate, low, high))


def _exclusions(run: Run) -> tuple[ExclusionCount, ...]:
    return tuple(
        ExclusionCount(
            stage=format_name(row["stage"] or "not said"),
            metric=format_name(row["metric"]) if row["metric"] else "",
            reason=format_name(row["reason"] or "not said"),
            count=row["count"] or 0,
            of=row["of"] or 0,
        )
        for row in run.table("exclusions").iter_rows(named=True)
    )
