"""What people say of several methods: the report of ``annotate ratings``."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.annotate.report.page import (
    build_people_report,
    format_interval,
    format_number_or_blank,
)
from evenhand.report.document import Report, Section, Table, table_section
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    format_p,
    show_control_characters,
)
from evenhand.stats.results import SAME_DIFFERENCE
from evenhand.store.run import Run

TABLES = ("methods",)
CAVEATS = (
    "The tests take participants as the sample: they say what other people would answer about these texts, "
    "not what these people would answer about other texts.",
    "A scale from 1 to 7 is not a length: equal steps need not feel equal. The t test is the paper's.",
    "An inconclusive difference is no proof that there is none.",
)


def build_report(run: Run) -> Report:
    """The content of the report."""
    rows = list(run.table("methods").iter_rows(named=True))
    baseline = show_control_characters(str(rows[0]["baseline"])) if rows else "the baseline"
    name = show_control_characters(str(run.manifest["name"]))
    return build_people_report(
        run,
        tables=TABLES,
        question=f"What do people say of each method in {name}?",
        details="A person's answers about one method are averaged first; each method is then compared with "
        f"{baseline} over the people who read both (paired t tests, as in Table 6 of the political paper).",
        verdicts=tuple(_verdict(row) for row in rows if _is_clear(row))
        or ("No difference from the baseline is larger than chance.",),
        sections=(_table(rows),),
        caveats=CAVEATS,
    )


def _is_clear(row: Mapping[str, object]) -> bool:
    p = row["p_adjusted"]
    return row["null_reason"] == SAME_DIFFERENCE or (isinstance(p, float) and p < 0.05)


def _verdict(row: Mapping[str, object]) -> str:
    gap = row["difference"]
    assert isinstance(gap, float)
    higher = "higher" if gap > 0 else "lower"
    method, baseline = (show_control_characters(str(row[key])) for key in ("method", "baseline"))
    participants = format_count(int(str(row["paired"])), "participant")
    finding = (
        f"{format_name(str(row['question']))}: {method} is {format_number(abs(gap))} {higher} than {baseline}"
    )
    if row["null_reason"] == SAME_DIFFERENCE:
        return f"{finding} for each of {participants}, which no t test can judge."
    ends = format_interval(row, "difference", signed=True)
    p = row["p_adjusted"]
    adjusted = format_p(p if isinstance(p, float) else None)
    return f"{finding} ({ends}; adjusted p {adjusted}, {participants})."


def _table(rows: list[dict[str, object]]) -> Section:
    cells = tuple(
        (
            format_name(str(row["question"])),
            show_control_characters(str(row["method"])),
            format_number_or_blank(row["mean"]),
            format_interval(row),
            format_number_or_blank(row["difference"], signed=True),
            format_interval(row, "difference", signed=True),
            format_number_or_blank(row["t"], signed=True),
            format_p(p) if isinstance(p := row["p"], float) else str(row["null_reason"] or ""),
            format_p(q) if isinstance(q := row["p_adjusted"], float) else "",
            str(row["participants"]),
            "" if row["paired"] is None else str(row["paired"]),
            str(row["ratings"]),
        )
        for row in rows
    )
    heads = ("Question", "Method", "#Mean", "#Interval", "#Difference", "#Interval", "#t", "#p")
    return table_section(
        "methods",
        "Every method",
        "Difference: the method minus the baseline, over those who read both; t has one degree of freedom "
        "fewer than these. p is corrected over all questions and methods (Benjamini and Hochberg).",
        Table(
            columns=(*heads, "#Adjusted p", "#People", "#Read both", "#Ratings"),
            rows=cells,
            source="methods",
            short=(0, 1, 2, 4, 5, 8),
        ),
        nav="Methods",
    )
