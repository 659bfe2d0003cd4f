"""What a validation says on a metric's card: written by ``validate --onto-card``, shown by ``show``."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evenhand._version import __version__
from evenhand.core.digests import Json
from evenhand.core.records import MetricInfo
from evenhand.store.evidence import Evidence, read_evidence
from evenhand.store.run import Run

_SHOWN = ("spearman", "spearman_score", "accuracy", "always_commonest", "kappa", "f1")


def evidence_of(run: Run, spec: str, info: MetricInfo) -> Evidence:
    """The entry of a run for the card: which metric, whose labels, how far they agree."""
    identity = run.manifest["identity"]
    whole = run.table("validation").filter(pl.col("label") == "(all)")
    measures: list[Json] = [
        {
            key: row[key]
            for key in ("output", "measure", "value", "low", "high", "p", "level", "n", "null_reason")
        }
        for row in whole.iter_rows(named=True)
    ]
    cuts = run.table("best_cuts").select("output", "own", "cut", "cut_low", "cut_high")
    return {
        "metric": spec,
        "identity": info.identity(),
        "human": {**identity["inputs"], "question": identity["questions"][0], **identity["consensus"]},
        "date": str(run.manifest["ended"] or "")[:10],
        "package": __version__,
        "run": str(run.path),
        "measures": measures,
        "cuts": [dict(row) for row in cuts.iter_rows(named=True)],
    }


def evidence_markdown(spec: str, info: MetricInfo) -> str:
    """The card's section on people; empty where nothing was kept. Results of other versions say so."""
    entries = read_evidence(spec)
    if not entries:
        return ""
    lines = ["## Against people, on this machine", ""]
    for entry in entries:
        same = entry.get("identity") == info.identity()
        lines += _entry(entry, "" if same else ", for another version or weights of this metric")
    return "\n".join(lines)


def _entry(entry: Evidence, remark: str) -> list[str]:
    human = entry.get("human")
    told = human if isinstance(human, dict) else {}
    head = f"{entry.get('date')}: `{told.get('file')}`, question {told.get('question')}{remark}"
    lines = [f"- **{head}**"]
    measures = entry.get("measures")
    for row in measures if isinstance(measures, list) else []:
        if isinstance(row, dict) and row.get("measure") in _SHOWN:
            lines.append(f"    - `{row.get('output')}` {_said(row)}")
    return lines


def _said(row: Mapping[str, Json]) -> str:
    name, value = str(row.get("measure")).replace("_", " "), row.get("value")
    if not isinstance(value, float):
        return f"{name}: none ({row.get('null_reason')})"
    low, high, p = row.get("low"), row.get("high"), row.get("p")
    ends = f" ({low:.2f} to {high:.2f})" if isinstance(low, float) and isinstance(high, float) else ""
    tested = f", p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}" if isinstance(p, float) else ""
    return f"{name} {value:.2f}{ends}{tested}, n = {row.get('n')}"
