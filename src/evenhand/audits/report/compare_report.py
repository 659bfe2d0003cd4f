"""What the report of a comparison says: standings, changes, a leaderboard with ties shown as ties."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

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
from evenhand.report.verdicts import INCONCLUSIVE, LARGER, NOT_TESTABLE, TableRow
from evenhand.report.wording import format_baseline, format_name, format_p, join_words
from evenhand.stats.corrections import ALPHA
from evenhand.store.run import Run

CAVEATS = (
    "Runs are compared on the prompts they share, each prompt with itself; other prompts may give other "
    "results.",
    "A tie is not equality: this many prompts cannot separate the two.",
    "A narrower gap is no improvement if both groups got worse: read the changes in values, too.",
    "The typical gap weighs every group alike and is corrected for chance; it is 0 if chance "
    "explains all of it.",
)
BEYOND = ("wider", "narrower", "moved")
"""The verdicts of a change that is larger than chance."""
_NAMED = 2
"""Runs that a title names besides the reference; more are counted."""
_MEANINGS = {
    "wider": "the gap grew, adjusted p of at most 0.05",
    "narrower": "the gap shrank, adjusted p of at most 0.05",
    "moved": "changed by more than chance, but its sign reversed, or its size is inconclusive",
    INCONCLUSIVE: "too few texts to decide whether it changed",
    NOT_TESTABLE: "no test was possible; the reason is in the table",
}
Values = Mapping[str, Any]
_TABLES = ("standings", "leaderboard", "changes", "comparisons", "groups")
_KEYS = ("package", "command", "name", "created", "ended", "identity", "runs", "paired", "warnings")
_COUNTS = {
    "narrower": ("Narrower", "lower"),
    "tied": ("Tied", "tied"),
    "null": ("Not testable", "null"),
    "wider": ("Wider", "higher"),
}
"""How a run compares with others: the head of its column, and the CSS class of its piece of the bar."""
_STANDINGS = (
    "Over all primary measures and all other runs: how often the groups of a run are closer together "
    "than another run’s, further apart, or tied with them. Runs with the same rank are tied."
)
_GAPS = (
    "Gap = group minus baseline, in each run. A gap is wider or narrower if the interval of the change "
    "in its size excludes 0, and moved if it changed by more than chance in another way. Adjusted p: "
    "corrected over the family{family}; “min. detectable” is the smallest true change that "
    "these prompts would have shown, after correction, with 80 % power."
)
_VALUES = (
    "Each group’s value under both runs: a gap may narrow because one group fares better, or because "
    "the other fares worse."
)


@dataclass(frozen=True, slots=True)
class ChangeLine(TableRow):
    """A change of a gap or of a value, in words."""

    measure: Measure

    @property
    def baseline(self) -> str:
        """What a gap is against; empty for a value."""
        return format_baseline(self.text("baseline")) if self.row["effect"] == "gap" else ""

    @property
    def what(self) -> str:
        """The group, and what its gap is against."""
        group = self.words("group")
        return f"{group} against {self.baseline}" if self.baseline else group

    @property
    def sides(self) -> tuple[str, str]:
        """What it was in the reference, and what it is in the run."""
        show = partial(self.measure.gap, signed=True) if self.baseline else self.measure.value
        before, after = (
            "" if value is None else show(value)
            for value in map(self.value, ("reference_value", "run_value"))
        )
        return before, after

    @property
    def change(self) -> doc.Cell:
        """The change with its unit."""
        return self.measure.cell(self.value("estimate"))

    @property
    def interval(self) -> str:
        """The interval of the change."""
        return self.measure.interval(self.value("low"), self.value("high"))

    @property
    def p(self) -> str:
        """The adjusted p; empty where there is no change."""
        return "" if self.value("estimate") is None else format_p(self.value("p_adjusted"))

    @property
    def verdict(self) -> str:
        """``wider``, ``narrower``, ``moved``, ``inconclusive`` or ``not testable``."""
        p, widens = self.value("p_adjusted"), self.value("widens")
        if p is None:
            return NOT_TESTABLE
        if p > ALPHA:
            return INCONCLUSIVE
        low, high = self.value("widens_low"), self.value("widens_high")
        # A gap that changes its sign has moved, and need be neither wider nor narrower.
        if widens is None or low is None or high is None or low <= 0 <= high:
            return "moved"
        return "wider" if widens > 0 else "narrower"

    @property
    def verdict_words(self) -> str:
        """The verdict, and why there is none."""
        reason = self.words("null_reason") if self.verdict == NOT_TESTABLE else ""
        return f"{self.verdict}: {reason}" if reason else self.verdict

    @property
    def tone(self) -> str:
        """The class of its colour: ``higher`` where a gap widened, ``lower`` where it narrowed."""
        return {"wider": "higher", "narrower": "lower"}.get(self.verdict, "")

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both values as parts of the measure's range; None where one is missing or there is no range."""
        before, after, span = self.value("reference_value"), self.value("run_value"), self.measure.span
        return None if before is None or after is None or not span else (before / span, after / span)

    @property
    def claim(self) -> str:
        """The change without its evidence: "women against men: wider (sentiment, negative) under B"."""
        has_turned = self.baseline and self.ends and self.ends[0] * self.ends[1] < 0
        turned = ", with the sign reversed" if has_turned else ""
        return f"{self.what}: {self.verdict}{turned} ({self.measure.full_title}) under {self.text('run')}"

    @property
    def doubt(self) -> str:
        """What an inconclusive change leaves open."""
        what, unit = f"{self.what}, {self.measure.full_title}, under {self.text('run')}", self.measure.unit
        least = self.measure.gap(self.value("min_detectable"))
        reach = f"; it had to reach {least}{unit} to be detected after correction" if least else ""
        return f"{what}: the change may be anywhere from {self.interval}{unit}{reach}"

    def draw(self, scale: AxisScale) -> Markup:
        """Its value in the reference and in the run, against zero."""
        if not self.ends:
            return Markup()
        before, after = map(scale.at, self.ends)
        zero = element("rect", class_="ref", x=f"{scale.at(0.0)}%")
        way = element("rect", class_="way", x=f"{min(before, after)}%", width=f"{abs(after - before):.2f}%")
        dots = (
            element("circle", class_=name, cx=f"{at}%") for name, at in (("before", before), ("after", after))
        )
        return element("svg", zero, way, *dots, class_="move")


Lines = Sequence[ChangeLine]


def build_lines(rows: Iterable[Values], known: Mapping[MeasureKey, Measure], effect: str) -> list[ChangeLine]:
    """The changes of gaps or of values: the corrected family, larger than chance, and largest first."""
    lines = [ChangeLine(row, known[row["metric"], row["output"]]) for row in rows if row["effect"] == effect]

    def rank(line: ChangeLine) -> tuple[bool, int, bool, float, str, str, str]:
        standing = 0 if line.verdict in BEYOND else 1 if line.verdict == INCONCLUSIVE else 2
        # What has no range comes after what has one: its size is of another kind.
        size = abs(line.value("estimate") or 0) / (line.measure.span or 1)
        names = (line.what, line.measure.full_title, line.text("run"))
        return bool(line.row["exploratory"]), standing, line.measure.span is None, -size, *names

    return sorted(lines, key=rank)


def find_scale(lines: Lines) -> AxisScale:
    """One scale of parts of a range for all lines, with zero on it."""
    ends = [end for line in lines if line.ends for end in line.ends]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    return AxisScale(low, high if high > low else low + 1.0, ())


def build_report(run: Run) -> doc.Report:
    """The content of the report."""
    known, changes = read_measures(run), to_rows(run.table("changes"))
    runs, level = read_objects(run.manifest, "runs"), format_level(run)
    names = [read_text(item, "name") for item in runs]
    gaps, values = (build_lines(changes, known, effect) for effect in ("gap", "value"))
    primary = [line for line in gaps if not line.row["exploratory"]]
    clear = [line for line in primary if line.verdict in BEYOND]
    tally = doc.count_verdicts(
        [line.verdict for line in primary], words={word: word for word in _MEANINGS}, meanings=_MEANINGS
    )
    standings = run.table("standings").with_columns(pl.col(list(_COUNTS)).fill_null(0)).to_dicts()
    question, details = _describe_question(run, names)
    headline, verdict, order = _describe_changes(primary, clear, standings)
    caveats, scale = [*CAVEATS, *list_suite_notes(run)], find_scale(gaps)
    doubts = [f"{line.doubt}." for line in primary if line.verdict == INCONCLUSIVE and line.interval]
    facts = []
    for number, item in enumerate(runs, start=1):
        facts.append(Fact(f"Run {number}", f"{read_text(item, 'name')}: {read_text(item, 'path')}", True))
        facts.append(Fact(f"Run {number} was made by", read_text(item, "command"), is_code=True))
    show_changes = partial(_changes, level=level, has_one_run=len(names) == 2)
    return doc.Report(
        run=run,
        question=question,
        details=details,
        verdicts=(verdict,),
        headline=headline,
        opening=(
            doc.Cards([_card(line, scale, level) for line in clear[:3]]),
            doc.Tally(tally if gaps else ()),
            doc.Bullets(items=doubts, title="Inconclusive"),
            doc.Text(f"{order[:1].upper()}{order[1:]}", "heading"),
            doc.Text(_STANDINGS, formats="html"),
            _standings(standings, names[0]),
        ),
        sections=(
            doc.Section("filters", "", (_filters(gaps or values, names, tally),), group="explore"),
            _leaderboard(run, known, level),
            show_changes("gaps", _GAPS.format(family=_describe_families(primary)), gaps, clear),
            show_changes("values", _VALUES, values),
            doc.Section("downloads", "", (doc.Template("downloads.html.j2"),), group="explore"),
        ),
        caveats=caveats,
        notes=read_texts(run.manifest, "warnings"),
        facts=list_facts(run, facts),
        manifest=_KEYS,
        tables=_TABLES,
        values={"verdict": verdict, "caveats": caveats},
        page=doc.Page(
            folder=Path(__file__).parent / "templates",
            style="compare.css",
            script="compare.js",
            downloads=_TABLES,
        ),
    )


def _describe_changes(primary: Lines, clear: Lines, standings: Sequence[Values]) -> tuple[str, str, str]:
    """How many gaps changed, the comparison in one sentence, and whose groups are closest together."""
    best = [str(row["run"]) for row in standings if row["rank"] == 1]
    order = f"narrowest over all: {' and '.join(best)}"
    if len(best) == len(standings):
        order = "no run can be called narrower than the others"
    tested = sum(line.verdict != NOT_TESTABLE for line in primary)
    if not clear:
        headline = f"None of {tested:,} gaps changed by more than chance, which does not prove that none did"
        if not tested:
            headline = "Nothing could be compared: no gap of these runs can be tested"
        return headline, f"{headline}; {order}.", order
    headline = f"{len(clear):,} of {tested:,} gaps changed by more than chance from the reference"
    first = clear[0]
    what = f"{first.what} ({first.measure.full_title}) under {first.text('run')}"
    size = f"{' became '.join(first.sides)}{first.measure.unit}"
    return headline, f"{headline}; the largest is {what}: {size}; {order}.", order


def _describe_families(primary: Lines) -> str:
    """Over how many gaps of a run p-values are corrected, and how."""
    sizes = sorted({int(line.value("family_size") or 0) for line in primary})
    hows = sorted({line.text("correction") for line in primary})
    how = ", ".join(CORRECTIONS.get(word, word) for word in hows)
    return f" of a run, {' or '.join(f'{size:,}' for size in sizes)} gaps ({how})" if sizes else ""


def format_ranks(ranks: Sequence[int | None]) -> list[str]:
    """Ranks with ties shown: 1, 2, 2 is "1", "2=", "2="."""
    return ["" if rank is None else f"{rank}=" if ranks.count(rank) > 1 else str(rank) for rank in ranks]


def _describe_question(run: Run, names: Sequence[str]) -> tuple[str, str]:
    manifest, (reference, *others) = run.manifest, names
    compared = join_words(others) if len(others) <= _NAMED else f"{len(others):,} runs"
    paired = read_mapping(manifest, "paired")
    is_paired = all(read_value(paired, suite) for suite in paired)
    how = "Runs are paired by prompt" if is_paired else "If runs share no prompt, texts are unpaired"
    metrics = join_words([format_name(metric) for metric in read_mapping(manifest, "metrics")])
    against = f"{join_words(others)} against {reference}, the reference"
    return (
        f"Do the gaps of {compared} differ from those of {reference}?",
        f"{against}, measured by {metrics or 'nothing'}. {how}.",
    )


def _card(line: ChangeLine, scale: AxisScale, level: str) -> doc.Card:
    change = f"Change {line.change.text}{line.change.flag}"
    return doc.Card(
        size=" → ".join(line.sides),
        unit=line.measure.unit,
        claim=line.claim,
        evidence=f"{change}; {level} interval {line.interval}; adjusted p {line.p}",
        direction=line.tone,
        chart=line.draw(scale),
    )


def _standings(rows: Sequence[dict[str, Any]], reference: str) -> doc.Table:
    ranks = format_ranks([row["rank"] for row in rows])
    columns: dict[doc.Column | str, doc.Show] = {
        doc.Column("Rank", can_sort=False): "place",
        doc.Column("Run", name="run", can_sort=False): lambda row: doc.Cell(
            row["run"], tags=("reference",) * (row["run"] == reference)
        ),
        doc.Column("", "plot", formats="html"): lambda row: doc.Cell(
            chart=draw_pieces({style: row[key] for key, (_, style) in _COUNTS.items()}, style="share")
        ),
    }
    columns |= {doc.Column(head, "num", can_sort=False): key for key, (head, _) in _COUNTS.items()}
    placed = [row | {"place": rank} for row, rank in zip(rows, ranks, strict=True)]
    return doc.build_table(
        placed, columns, label="Standings", style="standings", frame="", source="standings"
    )


def _filters(lines: Lines, names: Sequence[str], tally: Sequence[doc.VerdictCount]) -> doc.Template:
    selects = [
        (column.capitalize(), column, doc.list_choices(line.text(column) for line in lines))
        for column in ("axis", "metric")
    ]
    if len(names) > 2:
        selects.append(("Run", "run", [("", "all"), *((name, name) for name in names[1:])]))
    words = [(count.word, count.word) for count in tally if count.amount]
    selects.append(("Show", "so", [("", "every change"), *words]))
    form = {"id": "narrow", "label": "Filter leaderboard and changes", "selects": selects}
    return doc.Template("filters.html.j2", form | {"has_exploratory": True})


def _leaderboard(run: Run, known: Mapping[MeasureKey, Measure], level: str) -> doc.Section:
    boards = null_non_finite(run.table("leaderboard")).group_by(
        "suite", "axis", "metric", "output", maintain_order=True
    )
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
        (build_board(part.to_dicts(), known[metric, output]) for (*_, metric, output), part in boards),
        key=lambda rows: ("exploratory" in rows[0].data, not any(row.tone for row in rows[1:])),
    )
    size = doc.Column("Typical gap", "num", level, "est")
    table = doc.Table(
        group_head="Measure",
        columns=("Run", doc.Column("", "plot", formats="html"), size, "#Rank"),
        rows=[row for rows in bodies for row in rows],
        source="leaderboard",
        style="boards",
        formats="html md",
    )
    empty = doc.Template("empty.html.j2", "No measure matches the filter.")
    blocks = (doc.Text(lede), doc.Legend(legend), table, empty)
    return doc.Section("leaderboard", "Leaderboard", blocks, "Leaderboard", "explore")


def build_board(part: Sequence[Values], measure: Measure) -> list[doc.Row]:
    """A heading and a row for each run, of one axis and output of the leaderboard."""
    axis, tags = part[0]["axis"], ("exploratory",) * bool(part[0]["exploratory"])
    unit = f", in{measure.unit}" if measure.unit else ""
    heading = doc.Cell(measure.full_title, note=f"by {format_name(axis)}{unit}", tags=tags)
    data = {"axis": axis, "metric": part[0]["metric"], **dict.fromkeys(tags, "")}
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


def _changes(
    name: str, lede: str, lines: Lines, largest: Lines = (), *, level: str, has_one_run: bool
) -> doc.Section:
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
        "Group": lambda line: doc.Cell(
            line.words("group"), note=f"against {line.baseline}" if line.baseline else ""
        ),
        doc.Column("Measure", name="measure"): lambda line: doc.Cell(
            line.measure.full_title, tags=("exploratory",) * bool(line.row["exploratory"])
        ),
        doc.Column("Run", name="run"): lambda line: line.text("run"),
        doc.Column("", "plot", formats="html"): lambda line: doc.Cell(chart=line.draw(scale)),
        doc.Column("Before", "num", name="was"): lambda line: line.sides[0],
        doc.Column("After", "num", name="is"): lambda line: line.sides[1],
        doc.Column("Change", "num", name="change"): lambda line: line.change,
        doc.interval_column(level, "ends"): lambda line: line.interval,
        doc.Column("Adjusted p", "num", name="p"): lambda line: line.p,
        doc.Column("Verdict", "verdict", name="so"): lambda line: line.verdict_words,
        doc.Column("Min. detectable", "num", name="least"): lambda line: line.measure.gap(
            line.value("min_detectable")
        ),
    }
    table = doc.build_table(
        lines,
        columns,
        tone=lambda line: f"{line.tone} {'clear' * (line.verdict in BEYOND)}".strip(),
        data=lambda line: (
            {key: line.text(key) for key in ("axis", "metric", "run")}
            | {"so": line.verdict}
            | ({"exploratory": ""} if line.row["exploratory"] else {})
        ),
        source="changes",
        style="changes" + " two" * has_one_run,
        shown=1000,
        formats="html md",
    )
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
