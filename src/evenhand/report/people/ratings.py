"""What people say of several methods: the report of ``annotate ratings``."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.report.people.page import (
    PeoplePage,
    Section,
    facts_of,
    forms_of,
    interval,
    shown,
)
from evenhand.report.wording import count, name, number, probability, visible
from evenhand.stats.results import SAME_DIFFERENCE
from evenhand.store.run import Run

TABLES = ("methods",)
CAVEATS = (
    "The tests take participants as the sample: they say what other people would answer about these texts, "
    "not what these people would answer about other texts.",
    "A scale from 1 to 7 is not a length: equal steps need not feel equal. The t test is the paper's.",
    "A difference that cannot be told is not a proof that there is none.",
)


def content(run: Run) -> PeoplePage:
    """The content of the page."""
    rows = list(run.table("methods").iter_rows(named=True))
    baseline = visible(str(rows[0]["baseline"])) if rows else "the baseline"
    return PeoplePage(
        question=f"What do people say of each method in {visible(str(run.manifest['name']))}?",
        lede="A person's answers about one method are averaged first; each method is then compared with "
        f"{baseline} over the people who read both (paired t tests, as in Table 6 of the political paper).",
        verdicts=tuple(_verdict(row) for row in rows if _is_told(row))
        or ("No difference from the baseline can be told.",),
        sections=(_table(rows),),
        caveats=CAVEATS,
        facts=facts_of(run),
    )


FORMS = forms_of(content, TABLES)


def _is_told(row: Mapping[str, object]) -> bool:
    p = row["p_adjusted"]
    return row["null_reason"] == SAME_DIFFERENCE or (isinstance(p, float) and p < 0.05)


def _verdict(row: Mapping[str, object]) -> str:
    gap = row["difference"]
    assert isinstance(gap, float)
    higher = "higher" if gap > 0 else "lower"
    if row["null_reason"] == SAME_DIFFERENCE:
        return (
            f"{name(str(row['question']))}: {visible(str(row['method']))} is {number(abs(gap))} {higher} "
            f"than {visible(str(row['baseline']))} for each of "
            f"{count(int(str(row['paired'])), 'participant')}, which no t test can judge."
        )
    ends = interval(row, "difference", signed=True)
    p = row["p_adjusted"]
    told = probability(p if isinstance(p, float) else None)
    return (
        f"{name(str(row['question']))}: {visible(str(row['method']))} is {number(abs(gap))} {higher} than "
        f"{visible(str(row['baseline']))} ({ends}; adjusted p {told}, "
        f"{count(int(str(row['paired'])), 'participant')})."
    )


def _table(rows: list[dict[str, object]]) -> Section:
    cells = tuple(
        (
            name(str(row["question"])),
            visible(str(row["method"])),
            shown(row["mean"]),
            interval(row),
            shown(row["difference"], signed=True),
            interval(row, "difference", signed=True),
            shown(row["t"], signed=True),
            probability(p) if isinstance(p := row["p"], float) else str(row["null_reason"] or ""),
            probability(q) if isinstance(q := row["p_adjusted"], float) else "",
            str(row["participants"]),
            "" if row["paired"] is None else str(row["paired"]),
            str(row["ratings"]),
        )
        for row in rows
    )
    heads = ("Question", "Method", "#Mean", "#Interval", "#Difference", "#Interval", "#t", "#p")
    return Section(
        "methods",
        "Every method",
        "Difference: the method minus the baseline, over those who read both; t has one degree of freedom "
        "fewer than these. p is corrected over all questions and methods (Benjamini and Hochberg).",
        (*heads, "#Adjusted p", "#People", "#Read both", "#Ratings"),
        cells,
        nav="Methods",
        table="methods",
        short=(0, 1, 2, 4, 5, 8),
    )
