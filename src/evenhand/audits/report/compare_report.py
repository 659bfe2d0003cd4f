"""What the report of a comparison says: standings, changes, a leaderboard with ties shown as ties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.audits.report.compare_lines import BEYOND, ChangeLine, build_lines, find_scale
from evenhand.audits.report.findings import CORRECTIONS, list_suite_notes
from evenhand.audits.report.measures import Measure, MeasureKey, read_measures
from evenhand.report import document as doc
from evenhand.report.charts import AxisScale, draw_interval, draw_pieces, draw_sample, element
from evenhand.report.json_tables import null_non_finite, to_rows
from evenhand.report.manifest import (
    Fact,
    format_level,
    list_facts,
    read_mapping,
    read_objects,
    read_text,
    read_texts,
    read_value,
)
from evenhand.report.verdicts import INCONCLUSIVE, LARGER, NOT_TESTABLE
from evenhand.report.wording import format_name, join_words
from evenhand.store.run import Run

CAVEATS = (
    "Runs are compared on the prompts they share, each prompt with itself; other prompts may give other "
    "results.",
    "A tie is not equality: this many prompts cannot separate the two.",
    "A narrower gap is no improvement if both groups got worse: read the changes in values, too.",
    "The typical gap weighs every group alike and is corrected for chance; it is 0 if chance "
    "explains all of it.",
)
_NAMED = 2
"""Runs that a title names besides the reference; more are counted."""
_MEANINGS = {
    "wider": "the gap grew, adjusted p of at most 0.05",
    "narrower": "the gap shrank, adjusted p of at most 0.05",
    "moved": "changed by more than chance, but its sign reversed, or its size is inconclusive",
    INCONCLUSIVE: "too few texts to decide whether it changed",
    NOT_TESTABLE: "no test was possible; the reason is in the table",
}
_TABLES = ("standings", "leaderboard", "changes", "comparisons", "groups")
_KEYS = ("package", "command", "name", "created", "ended", "identity", "runs", "paired", "warnings")
_COUNTS = {
    "narrower": ("Narrower", "lower"),
    "tied": ("Tied", "tied"),
    "null": ("Not testable", "null"),
    "wider": ("Wider", "higher"),
}
"""How a run compares with others: the head of its column, and the CSS class of its piece of the bar."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The findings of a comparison of runs."""

    run: Run
    names: list[str]
    gaps: list[ChangeLine]
    values: list[ChangeLine]
    standings: list[dict[str, Any]]
    measures: Mapping[MeasureKey, Measure]

    @property
    def primary(self) -> list[ChangeLine]:
        """The changes of gaps in the corrected family."""
        return [line for line in self.gaps if not line.row["exploratory"]]

    @property
    def clear_changes(self) -> list[ChangeLine]:
        """The changes of primary gaps that are larger than chance, largest first."""
        return [line for line in self.primary if line.verdict in BEYOND]

    @property
    def tallies(self) -> list[doc.VerdictCount]:
        """How many changes of primary gaps have each verdict."""
        words = {word: word for word in _MEANINGS}
        return doc.count_verdicts([line.verdict for line in self.primary], words=words, meanings=_MEANINGS)

    @property
    def headline(self) -> str:
        """How many gaps changed."""
        tested = sum(line.verdict != NOT_TESTABLE for line in self.primary)
        if not tested:
            return "Nothing could be compared: no gap of these runs can be tested"
        if not self.clear_changes:
            return f"None of {tested:,} gaps changed by more than chance, which does not prove that none did"
        return (
            f"{len(self.clear_changes):,} of {tested:,} gaps changed by more than chance from the reference"
        )

    @property
    def order(self) -> str:
        """Which run's groups are closest together."""
        best = [str(row["run"]) for row in self.standings if row["rank"] == 1]
        if len(best) == len(self.standings):
            return "no run can be called narrower than the others"
        return f"narrowest over all: {' and '.join(best)}"

    @property
    def verdict(self) -> str:
        """The comparison in one sentence."""
        if not self.clear_changes:
            return f"{self.headline}; {self.order}."
        first = self.clear_changes[0]
        what = f"{first.what} ({first.measure.full_title}) under {first.text('run')}"
        size = f"{first.before} became {first.after}{first.measure.unit}"
        return f"{self.headline}; the largest is {what}: {size}; {self.order}."

    @property
    def family(self) -> str:
        """Over how many gaps of a run p-values are corrected, and how."""
        sizes = sorted({int(line.value("family_size") or 0) for line in self.primary})
        hows = sorted({line.text("correction") for line in self.primary})
        how = ", ".join(CORRECTIONS.get(word, word) for word in hows)
        return f" of a run, {' or '.join(f'{size:,}' for size in sizes)} gaps ({how})" if sizes else ""


def compare_runs(run: Run) -> RunComparison:
    """The findings of a comparison of runs."""
    known, changes = read_measures(run), to_rows(run.table("changes"))
    return RunComparison(
        run=run,
        names=[read_text(item, "name") for item in read_objects(run.manifest, "runs")],
        gaps=build_lines(changes, known, "gap"),
        values=build_lines(changes, known, "value"),
        standings=run.table("standings").with_columns(pl.col(list(_COUNTS)).fill_null(0)).to_dicts(),
        measures=known,
    )


def build_report(run: Run) -> doc.Report:
    """The content of the report."""
    comparison = compare_runs(run)
    question, details = _describe_question(comparison)
    level, caveats = format_level(run), [*CAVEATS, *list_suite_notes(run)]
    doubts = [line.doubt for line in comparison.primary if line.verdict == INCONCLUSIVE and line.interval]
    lede = (
        "Over all primary measures and all other runs: how often the groups of a run are closer together "
        "than another run’s, further apart, or tied with them. Runs with the same rank are tied."
    )
    gaps = (
        "Gap = group minus baseline, in each run. A gap is wider or narrower if the interval of the change "
        "in its size excludes 0, and moved if it changed by more than chance in another way. Adjusted p: "
        f"corrected over the family{comparison.family}; “min. detectable” is the smallest change that these "
        "prompts would have shown with 80 % power."
    )
    values = (
        "Each group’s value under both runs: a gap may narrow because one group fares better, or because "
        "the other fares worse."
    )
    return doc.Report(
        run=run,
        question=question,
        details=details,
        verdicts=(comparison.verdict,),
        headline=comparison.headline,
        opening=(
            doc.Cards([_card(line, comparison, level) for line in comparison.clear_changes[:3]]),
            doc.Tally(comparison.tallies if comparison.gaps else ()),
            doc.Bullets(items=[f"{doubt}." for doubt in doubts], title="Inconclusive"),
            doc.Text(f"{comparison.order[:1].upper()}{comparison.order[1:]}", "heading"),
            doc.Text(lede, formats="html"),
            _standings(comparison),
        ),
        sections=(
            doc.Section("filters", "", (_filters(comparison),), group="explore"),
            _leaderboard(comparison, level),
            _changes("gaps", gaps, comparison.gaps, comparison),
            _changes("values", values, comparison.values, comparison),
            doc.Section("downloads", "", (doc.Template("downloads.html.j2"),), group="explore"),
        ),
        caveats=caveats,
        notes=read_texts(run.manifest, "warnings"),
        facts=list_facts(
            run,
            (
                fact
                for number, item in enumerate(read_objects(run.manifest, "runs"), start=1)
                for fact in (
                    Fact(f"Run {number}", f"{read_text(item, 'name')}: {read_text(item, 'path')}", True),
                    Fact(f"Run {number} was made by", read_text(item, "command"), is_code=True),
                )
            ),
        ),
        manifest=_KEYS,
        tables=_TABLES,
        values={"verdict": comparison.verdict, "caveats": caveats},
        page=doc.Page(
            folder=Path(__file__).parent / "templates",
            style="compare.css",
            script="compare.js",
            downloads=_TABLES,
        ),
    )


def format_ranks(ranks: Sequence[int | None]) -> list[str]:
    """Ranks with ties shown: 1, 2, 2 is "1", "2=", "2="."""
    return ["" if rank is None else f"{rank}=" if ranks.count(rank) > 1 else str(rank) for rank in ranks]


def _describe_question(comparison: RunComparison) -> tuple[str, str]:
    manifest, (reference, *others) = comparison.run.manifest, comparison.names
    compared = join_words(others) if len(others) <= _NAMED else f"{len(others):,} runs"
    paired = read_mapping(manifest, "paired")
    is_paired = all(read_value(paired, suite) for suite in paired)
    unpaired = "If runs share no prompt, texts are unpaired"
    how = "Runs are paired by prompt" if is_paired else unpaired
    metrics = join_words([format_name(metric) for metric in read_mapping(manifest, "metrics")])
    against = f"{join_words(others)} against {reference}, the reference"
    return (
        f"Do the gaps of {compared} differ from those of {reference}?",
        f"{against}, measured by {metrics or 'nothing'}. {how}.",
    )


def _card(line: ChangeLine, comparison: RunComparison, level: str) -> doc.Card:
    change = f"Change {line.change.text}{line.change.flag}"
    return doc.Card(
        size=f"{line.before} → {line.after}",
        unit=line.measure.unit,
        claim=line.claim,
        evidence=f"{change}; {level} interval {line.interval}; adjusted p {line.p}",
        direction=line.tone,
        chart=line.draw(find_scale(comparison.gaps)),
    )


def _standings(comparison: RunComparison) -> doc.Table:
    rows = comparison.standings
    ranks = format_ranks([row["rank"] for row in rows])
    columns: dict[doc.Column | str, doc.Show] = {
        doc.Column("Rank", can_sort=False): "place",
        doc.Column("Run", name="run", can_sort=False): lambda row: doc.Cell(
            row["run"], tags=("reference",) * (row["run"] == comparison.names[0])
        ),
        doc.Column("", "plot", formats="html"): lambda row: doc.Cell(
            chart=draw_pieces({style: row[key] for key, (_, style) in _COUNTS.items()}, style="share")
        ),
    }
    for key, (head, _) in _COUNTS.items():
        columns[doc.Column(head, "num", can_sort=False)] = key
    placed = [row | {"place": rank} for row, rank in zip(rows, ranks, strict=True)]
    return doc.build_table(
        placed, columns, label="Standings", style="standings", frame="", source="standings"
    )


def _filters(comparison: RunComparison) -> doc.Template:
    lines = comparison.gaps or comparison.values
    selects = [
        (column.capitalize(), column, doc.list_choices(line.text(column) for line in lines))
        for column in ("axis", "metric")
    ]
    if len(comparison.names) > 2:
        selects.append(("Run", "run", [("", "all"), *((name, name) for name in comparison.names[1:])]))
    words = [(count.word, count.word) for count in comparison.tallies if count.amount]
    selects.append(("Show", "so", [("", "every change"), *words]))
    form = {"id": "narrow", "label": "Filter leaderboard and changes", "selects": selects}
    return doc.Template("filters.html.j2", form | {"has_exploratory": True})


def _leaderboard(comparison: RunComparison, level: str) -> doc.Section:
    boards: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in null_non_finite(comparison.run.table("leaderboard")).to_dicts():
        boards.setdefault(tuple(row[key] for key in ("suite", "axis", "metric", "output")), []).append(row)
    lede = (
        f"The typical gap between two groups of an axis, corrected for chance, with its {level} interval. "
        "Equal ranks (=) are ties. Each measure has a scale of its own, from 0 on the left."
    )
    legend = (
        (draw_sample("lower clear"), f"narrower than another run: {LARGER}"),
        (draw_sample("higher clear"), f"wider than another run: {LARGER}"),
        (draw_sample(), f"{INCONCLUSIVE} against every other run"),
    )
    # Primary measures first, and those that separate runs first.
    bodies = sorted(
        (build_board(part, comparison.measures[key[2], key[3]]) for key, part in boards.items()),
        key=lambda rows: ("exploratory" in rows[0].data, not any(row.tone for row in rows[1:])),
    )
    table = doc.Table(
        group_head="Measure",
        columns=(
            "Run",
            doc.Column("", "plot", formats="html"),
            doc.Column("Typical gap", "num", level, "est"),
            "#Rank",
        ),
        rows=[row for rows in bodies for row in rows],
        source="leaderboard",
        style="boards",
        formats="html md",
    )
    blocks = (
        doc.Text(lede),
        doc.Legend(legend),
        table,
        doc.Template("empty.html.j2", "No measure matches the filter."),
    )
    return doc.Section("leaderboard", "Leaderboard", blocks, "Leaderboard", "explore")


def build_board(part: Sequence[Mapping[str, Any]], measure: Measure) -> list[doc.Row]:
    """A heading and a row for each run, of one axis and output of the leaderboard."""
    first = part[0]
    unit = f", in{measure.unit}" if measure.unit else ""
    data = {"axis": first["axis"], "metric": first["metric"]}
    data |= {"exploratory": ""} if first["exploratory"] else {}
    tags = ("exploratory",) * bool(first["exploratory"])
    heading = doc.Cell(measure.full_title, note=f"by {format_name(first['axis'])}{unit}", tags=tags)
    rows = [doc.Row((heading,), data=data, is_heading=True)]
    ends = [row[key] for row in part for key in ("spread", "low", "high") if row[key] is not None]
    scale = AxisScale(0.0, max(ends, default=0) or 1.0, ())
    ranks = format_ranks([row["rank"] for row in part])
    for row, rank in zip(part, ranks, strict=True):
        spread, bar = row["spread"], scale.span(row["low"], row["high"])
        interval = f"{measure.gap(row['low'])} to {measure.gap(row['high'])}" if bar else ""
        note = format_name(row["null_reason"] or "no estimate") if spread is None else interval
        size = doc.Cell(measure.gap(spread), note=note, is_strong=spread is not None)
        chart = doc.Cell(chart=draw_interval(None if spread is None else scale.at(spread), bar))
        # A run that ties with all others, or has no rank, has no colour.
        is_tied = row["rank"] is None or len(row["tied_with"] or ()) >= len(part) - 1
        tone = "" if is_tied else "lower clear" if row["rank"] == 1 else "higher clear"
        rows.append(doc.Row((row["run"], chart, size, rank or "–"), tone))
    return rows


def _changes(name: str, lede: str, lines: Sequence[ChangeLine], comparison: RunComparison) -> doc.Section:
    is_gap, scale = name == "gaps", find_scale(lines)
    dots = ((f"one {style}".strip(), "after") for style in ("higher", "lower", "ink", ""))
    samples = [
        element("svg", element("circle", class_=dot, cx="50%"), class_=f"sample {style}")
        for style, dot in (("one", "before"), *dots)
    ]
    line = element("svg", element("rect", class_="ref", x="50%"), class_="sample one")
    meanings = ("reference", "wider", "narrower", "moved", INCONCLUSIVE)
    legend = [*zip(samples, meanings, strict=True), (line, "no gap" if is_gap else "0")]
    columns: dict[doc.Column | str, Callable[[ChangeLine], doc.AnyCell]] = {
        "Group": lambda line: doc.Cell(line.group, note=f"against {line.baseline}" if line.baseline else ""),
        doc.Column("Measure", name="measure"): lambda line: doc.Cell(
            line.measure.full_title, tags=("exploratory",) * bool(line.row["exploratory"])
        ),
        doc.Column("Run", name="run"): lambda line: line.text("run"),
        doc.Column("", "plot", formats="html"): lambda line: doc.Cell(chart=line.draw(scale)),
        doc.Column("Before", "num", name="was"): lambda line: line.before,
        doc.Column("After", "num", name="is"): lambda line: line.after,
        doc.Column("Change", "num", name="change"): lambda line: line.change,
        doc.interval_column(format_level(comparison.run), "ends"): lambda line: line.interval,
        doc.Column("Adjusted p", "num", name="p"): lambda line: line.p,
        doc.Column("Verdict", "verdict", name="so"): lambda line: line.verdict_words,
        doc.Column("Min. detectable", "num", name="least"): lambda line: line.seen_from,
    }
    table = doc.build_table(
        lines,
        columns,
        tone=lambda line: f"{line.tone} {'clear' * (line.verdict in BEYOND)}".strip(),
        data=_list_filters,
        source="changes",
        style="changes" + " two" * (len(comparison.names) == 2),
        shown=1000,
        formats="html md",
    )
    largest = comparison.clear_changes if is_gap else ()
    short = (0, 1, 2, 4, 5, 6, 8, 9)
    blocks = (
        doc.Text(lede, formats="html"),
        doc.Legend(legend if is_gap else [*legend[:1], *legend[3:]], "How to read the charts"),
        table,
        doc.build_table(largest, columns, source="changes", printed=8, short=short, formats="terminal"),
        doc.Template("empty.html.j2", "No line matches the filter."),
        doc.Text("" if lines else "Nothing here could be compared.", "note", "html"),
    )
    title = name.capitalize()
    return doc.Section(name, f"{title} against the reference", blocks, title, "explore")


def _list_filters(line: ChangeLine) -> dict[str, str]:
    keys = {key: line.text(key) for key in ("axis", "metric", "run")} | {"so": line.verdict}
    return keys | ({"exploratory": ""} if line.row["exploratory"] else {})
