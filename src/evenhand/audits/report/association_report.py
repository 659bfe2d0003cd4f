"""A corpus and a classifier side by side: do they lean the same way?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from evenhand.report import document as doc
from evenhand.report.charts import Plot, draw, element
from evenhand.report.manifest import Fact, list_facts, read_objects, read_text
from evenhand.report.verdicts import INCONCLUSIVE, LARGER, TableRow
from evenhand.report.wording import format_count, format_name, format_number, format_percent
from evenhand.store.run import Run

_TABLES = ("agreements", "associations")
CAVEATS = (
    "Two things that lean the same way need not cause each other: this corpus may not be what the classifier "
    "learned from.",
    "Cells share groups and the four percentages of a group sum to 100, so they are not independent; "
    "the intervals resample pairs of groups.",
    "The corpus counts words that occur in one sentence, not who feels what.",
)


_AGREEMENT = {"True": "same way", "False": "opposite ways"}
_COLUMNS: Mapping[doc.Column | str, Callable[[TableRow], str]] = {
    "Pair": lambda line: line.pair,
    doc.Column("Corpora", formats="html"): lambda line: (
        f"{line.words('corpus')}, {line.words('pair_corpus')}"
    ),
    "Emotion": lambda line: line.words("emotion"),
    doc.Column("First, % in corpus", "num", formats="html"): lambda line: line.format_number("percent_a"),
    doc.Column("Second, %", "num", formats="html"): lambda line: line.format_number("percent_b"),
    "#Points": lambda line: line.format_number("corpus_difference", signed=True),
    doc.Column("Corpus leans to", formats="html md"): lambda line: line.leans_to("corpus_difference"),
    "#ACS": lambda line: line.format_number("acs", signed=True),
    doc.Column("Classifier leans to", formats="html md"): lambda line: (
        line.leans_to("acs") + (" *" if line.row["is_clear"] else "")
    ),
    "Verdict": lambda line: _AGREEMENT.get(str(line.row["same_direction"]), line.reason),
}


def build_report(run: Run) -> doc.Report:
    """The content of the report."""
    lines = [TableRow(row) for row in run.table("associations").iter_rows(named=True)]
    verdicts = [_verdict(row) for row in run.table("agreements").iter_rows(named=True)]
    table = doc.build_table(lines, _COLUMNS, source="associations", shown=2000)
    note = (
        f"Points: the emotion's share in the corpus, second minus first group. * {LARGER} after correction."
    )
    facts = [
        Fact(read_text(part, "name"), read_text(part, "command"), is_code=True)
        for part in read_objects(run.manifest, "runs")
    ]
    cells = (table, doc.Text(note, "note", doc.EVERYWHERE), doc.Template("downloads.html.j2"))
    return doc.Report(
        run=run,
        question="Does the classifier lean the way the corpus does?",
        details="For an emotion and two groups, the corpus leans to the group whose emotion words are more "
        "often of that emotion, the classifier to the group for which it finds the emotion more strongly "
        "in the same sentence.",
        verdicts=verdicts,
        opening=(
            doc.Chart(_scatter(lines)),
            doc.Text(
                "One dot per cell, dark where the classifier's difference is larger than chance. Upper "
                "right and lower left: both lean the same way.",
                formats="html",
            ),
        ),
        sections=(doc.Section("cells", "Every cell", cells, "Cells"),),
        caveats=CAVEATS,
        facts=list_facts(run, facts),
        manifest=("command", "name", "identity", "runs", "view"),
        tables=_TABLES,
        values={"verdicts": verdicts, "caveats": list(CAVEATS)},
        page=doc.Page(downloads=_TABLES),
    )


def _verdict(row: Mapping[str, Any]) -> str:
    corpus, pair_corpus = (format_name(row[key]) for key in ("corpus", "pair_corpus"))
    where = f"{corpus} and {row['model']} on {pair_corpus}"
    if row["share"] is None:
        return f"{where}: no cell could be compared."
    same = f"{row['same']} of {format_count(row['n'], 'cell')} ({format_percent(row['share'])})"
    answer = f"{where}: both lean the same way in {same}"
    if row["rho"] is None:
        return f"{answer}; the rank correlation could not be computed: {row['null_reason']}."
    low, high = row["rho_low"], row["rho_high"]
    has_ends = low is not None and high is not None
    ends = f" ({format_number(low, signed=True)} to {format_number(high, signed=True)})" if has_ends else ""
    doubt = "" if has_ends and not low <= 0 <= high else f", {INCONCLUSIVE}"
    return f"{answer}; rank correlation {format_number(row['rho'], signed=True)}{ends}{doubt}."


def _scatter(lines: Sequence[TableRow]) -> Markup:
    points = [
        (x, y, 0.85 if line.row["is_clear"] else 0.25)
        for line in lines
        if (x := line.value("corpus_difference")) is not None and (y := line.value("acs")) is not None
    ]
    wide = max((abs(x) for x, _, _ in points), default=1.0) or 1.0
    high = max((abs(y) for _, y, _ in points), default=1.0) or 1.0
    plot = Plot(x=(-wide, wide), y=(-high, high), width=560, height=270, left=20, top=15)
    axis = {"stroke": "currentColor", "stroke_opacity": 0.3}
    parts = [
        element("line", x1=0, x2=600, y1=150, y2=150, **axis),
        element("line", x1=300, x2=300, y1=0, y2=300, **axis),
        element("text", "corpus: second group →", x=595, y=144, text_anchor="end"),
        element("text", "↑ classifier: second group", x=306, y=12),
    ]
    parts += [plot.dot(x, y, size=3.4, fill="currentColor", fill_opacity=ink) for x, y, ink in points]
    label = "Cells by the lean of the corpus, left to right, and of the classifier, bottom to top"
    return draw(parts, width=600, height=300, label=label, style="drawing scatter")
