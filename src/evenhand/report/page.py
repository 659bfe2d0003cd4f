"""Everything the HTML and Markdown templates show, gathered once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenhand._version import __version__
from evenhand.report.cards import Card, metric_cards, suite_cards
from evenhand.report.caveats import caveats
from evenhand.report.charts import figures
from evenhand.report.distances import Distances, distances
from evenhand.report.findings import Findings, find
from evenhand.report.gaps import WORDS, Gap, Standing, level
from evenhand.report.matrix import Matrix, matrices
from evenhand.report.overall import overall
from evenhand.report.panels import Figure
from evenhand.report.provenance import Asked, Fact, asked, facts
from evenhand.report.scale import against_zero
from evenhand.report.strata import Adjusted, Pair, adjusted_gaps, clear_pairs
from evenhand.report.tallies import Tally, tallies
from evenhand.report.wording import name, percent
from evenhand.store.run import Run

MOST_ROWS = 3000
"""Rows of the charts, and of the comparisons table: what a browser lays out in about a second."""
_MEANINGS: Mapping[Standing, str] = {
    "supported": "adjusted p of at most 0.05",
    "unclear": "too few texts to say",
    "small": "the interval leaves no room for 5 points, or 5 % of a mean's range",
    "missing": "no test was possible; the reason is in the table",
}


@dataclass(frozen=True, slots=True)
class Highlight:
    """One of the largest gaps, with its interval drawn against zero."""

    gap: Gap
    zero: float
    dot: float
    bar: tuple[float, float]
    """Start and width, in percent."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Something left out, counted by reason."""

    stage: str
    metric: str
    reason: str
    count: int
    of: int

    @property
    def share(self) -> str:
        """The part that was left out, in percent."""
        return percent(self.count / self.of) if self.of else ""


@dataclass(frozen=True, slots=True)
class Page:
    """The content of a report."""

    title: str
    asked: Asked
    level: str
    """The level of the intervals, in percent."""
    found: Findings
    highlights: tuple[Highlight, ...]
    tallies: tuple[Tally, ...]
    figures: tuple[Figure, ...]
    matrices: tuple[Matrix, ...]
    gaps: tuple[Gap, ...]
    """The comparisons table: the corrected family first, strongest standing first, largest first."""
    valueless: tuple[str, ...]
    """Figures that would be empty: no text has a value."""
    undrawn: int
    """Estimates that found no room in the charts."""
    unlisted: int
    """Comparisons that found no room in the table."""
    exclusions: tuple[Exclusion, ...]
    caveats: tuple[str, ...]
    facts: tuple[Fact, ...]
    metrics: tuple[Card, ...]
    suites: tuple[Card, ...]
    adjusted: tuple[Adjusted, ...]
    """Gaps with the same mix of strata on both sides, those that strata contradict first."""
    pairs: tuple[Pair, ...]
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
    def contradicted(self) -> list[Adjusted]:
        """The gaps that their strata contradict."""
        return [gap for gap in self.adjusted if gap.disagrees]

    @property
    def axes(self) -> list[str]:
        """The axes, as they are spelled in the tables."""
        return list(dict.fromkeys(figure.axis for figure in self.figures))

    @property
    def metric_names(self) -> list[str]:
        """The metrics with a figure, as they are spelled in the tables."""
        return list(dict.fromkeys(figure.metric for figure in self.figures))


def page(run: Run) -> Page:
    """The content of a run's report."""
    found = find(run)
    drawn, undrawn = figures(run, found, most_rows=MOST_ROWS)
    shown = [figure for figure in drawn if figure.has_values]
    question = asked(run)
    adjusted = adjusted_gaps(run, found.measures)
    pairs, pairs_compared = clear_pairs(run, found.measures)
    return Page(
        title=f"{question.question} evenhand report",
        asked=question,
        level=level(run),
        found=found,
        highlights=tuple(_highlight(gap) for gap in found.best[:3]),
        tallies=tallies((gap.standing for gap in found.judged), words=WORDS, meanings=_MEANINGS),
        # Figures with a finding first: of dozens, they are what a reader came for.
        figures=tuple(sorted(shown, key=lambda figure: not any(panel.supported for panel in figure.panels))),
        valueless=tuple(figure.title for figure in drawn if not figure.has_values),
        matrices=tuple(matrices(found, overall(run))),
        gaps=found.gaps[:MOST_ROWS],
        undrawn=undrawn,
        unlisted=max(0, len(found.gaps) - MOST_ROWS),
        exclusions=_exclusions(run),
        caveats=tuple(caveats(run, found)),
        facts=tuple(facts(run)),
        metrics=metric_cards(run.manifest),
        suites=suite_cards(run.manifest),
        adjusted=tuple(adjusted),
        pairs=tuple(pairs),
        pairs_compared=pairs_compared,
        has_many_suites=len({figure.suite for figure in drawn}) > 1,
        has_many_models=len({figure.model for figure in drawn}) > 1,
        distances=distances(run),
    )


def _highlight(gap: Gap) -> Highlight:
    row = gap.comparison
    estimate = row.estimate or 0.0
    low, high = (estimate if end is None else end for end in (row.low, row.high))
    return Highlight(gap, *against_zero(estimate, low, high))


def _exclusions(run: Run) -> tuple[Exclusion, ...]:
    return tuple(
        Exclusion(
            stage=name(row["stage"] or "not said"),
            metric=name(row["metric"]) if row["metric"] else "",
            reason=name(row["reason"] or "not said"),
            count=row["count"] or 0,
            of=row["of"] or 0,
        )
        for row in run.table("exclusions").iter_rows(named=True)
    )
