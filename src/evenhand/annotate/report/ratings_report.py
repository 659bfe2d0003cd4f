"""Human ratings of several methods: the report of ``annotate ratings``."""

from __future__ import annotations

import polars as pl

from evenhand.annotate.report.page import Row, build_people_report, interval
from evenhand.report.document import Report, table_section, words
from evenhand.report.verdicts import ALPHA
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    format_p,
    format_value,
)
from evenhand.stats.results import SAME_DIFFERENCE
from evenhand.store.run import Run

TABLES = ("methods",)
CAVEATS = (
    "The tests treat participants as the sample: they generalise to other people's answers on these texts, "
    "not to other texts.",
    "A scale from 1 to 7 is ordinal: equal steps need not feel equal. The t test follows the paper.",
    "An inconclusive difference does not prove that there is none.",
)


def build_report(run: Run) -> Report:
    """Build the content of the report."""
    table = run.table("methods")
    baseline = table["baseline"][0] if table.height else "the baseline"
    clear = table.filter((pl.col("null_reason") == SAME_DIFFERENCE) | (pl.col("p_adjusted") < ALPHA))
    verdicts = [_verdict(row) for row in clear.iter_rows(named=True)]
    methods = table_section(
        "methods",
        "Every method",
        "Difference: the method minus the baseline, over people who read both; t has one degree of freedom "
        "fewer than their number. p is corrected over all questions and methods (Benjamini and Hochberg).",
        table,
        {
            **{"Question": words("question"), "Method": "method", "#Mean": "mean", "#Interval": interval()},
            "#Difference": lambda row: format_number(row["difference"], signed=True),
            "#Its interval": interval("difference", signed=True),
            "#t": lambda row: format_number(row["t"], signed=True),
            "#p": lambda row: format_value(row["null_reason"]) if row["p"] is None else format_p(row["p"]),
            "#Adjusted p": lambda row: "" if row["p_adjusted"] is None else format_p(row["p_adjusted"]),
            **{"#People": "participants", "#Read both": "paired", "#Ratings": "ratings"},
        },
        source="methods",
        nav="Methods",
        short=(0, 1, 2, 4, 5, 8),
    )
    return build_people_report(
        run,
        tables=TABLES,
        question=f"How do people rate each method in {run.manifest['name']}?",
        details="A person's answers about one method are averaged first; each method is then compared with "
        f"{baseline} over the people who read both (paired t tests, as in Table 6 of the political paper).",
        verdicts=verdicts or ["No difference from the baseline is larger than chance."],
        sections=(methods,),
        caveats=CAVEATS,
    )


def _verdict(row: Row) -> str:
    gap = row["difference"]
    method, baseline = (row[key] for key in ("method", "baseline"))
    participants = format_count(row["paired"], "participant")
    size = f"{format_number(abs(gap))} {'higher' if gap > 0 else 'lower'}"
    finding = f"{format_name(row['question'])}: {method} is {size} than {baseline}"
    if row["null_reason"] == SAME_DIFFERENCE:
        return f"{finding} for each of {participants}: no t test is possible."
    ends = interval("difference", signed=True)(row)
    return f"{finding} ({ends}; adjusted p {format_p(row['p_adjusted'])}, {participants})."
