"""``report.json``: the same numbers as the page, in full precision and without NaN.

Of the texts only their scores: those stand in ``examples.parquet``, where nobody reads them by accident.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from evenhand.core.digests import Json
from evenhand.report.caveats import caveats
from evenhand.report.findings import Findings, find
from evenhand.report.gaps import WORDS, Gap
from evenhand.report.tables import rows
from evenhand.store.run import Run

FORMAT = 1
_MANIFEST = (
    "package",
    "command",
    "name",
    "created",
    "ended",
    "identity",
    "growth",
    "execution",
    "hardware",
    "metrics",
    "suites",
    "stages",
    "warnings",
)
_TABLES = (
    *("groups", "comparisons", "omnibus", "pairs", "strata", "cuts", "distributions", "distances"),
    "exclusions",
)


def json_report(run: Run) -> str:
    """The report of a run as JSON text."""
    found = find(run)
    return run_json(
        run,
        manifest=_MANIFEST,
        tables=_TABLES,
        verdict=found.verdict,
        counts=_counts(found),
        findings=[_finding(gap, gap.sentence) for gap in found.largest],
        cannot_tell=[_finding(gap, gap.doubt) for gap in found.cannot_tell],
        caveats=caveats(run, found),
    )


def run_json(run: Run, *, manifest: Sequence[str], tables: Sequence[str], **said: Json) -> str:
    """What a report says, then these keys of the manifest and these tables, as JSON text."""
    content: dict[str, Json] = {
        "format": FORMAT,
        **said,
        "manifest": {key: run.manifest.get(key) for key in manifest},
        **{name: rows(run.table(name)) for name in tables},
    }
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _counts(found: Findings) -> dict[str, Json]:
    counted: dict[str, Json] = {name: len(found.standing(name)) for name in WORDS}
    return {"comparisons": len(found.primary), "exploratory": len(found.exploratory)} | counted


def _finding(gap: Gap, sentence: str) -> dict[str, Json]:
    row = gap.comparison
    return {
        "sentence": sentence,
        "suite": row.suite,
        "model": row.model,
        "axis": row.axis,
        "group": row.group,
        "baseline": row.baseline,
        "metric": row.metric,
        "output": row.output,
        "estimate": row.estimate,
        "low": row.low,
        "high": row.high,
        "p_adjusted": row.p_adjusted,
        "n": row.n,
        "n_clusters": row.n_clusters,
        "min_detectable": row.min_detectable,
    }
