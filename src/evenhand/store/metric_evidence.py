"""Validation results for a metric's card: written by ``validate --onto-card``, shown by ``show``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import polars as pl
from filelock import FileLock

from evenhand._version import __version__
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.records import MetricInfo
from evenhand.core.regular_files import read_text
from evenhand.store.atomic_writes import storage_errors, write_text
from evenhand.store.run import Run

Evidence = dict[str, Json]


def cards_folder() -> Path:
    """The folder of the evidence for cards."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "evenhand" / "cards"


def evidence_file(metric: str) -> Path:
    """The evidence file of a metric; ``regard=ORG/NAME`` has its own file."""
    safe = "".join(letter if letter.isalnum() or letter in "._-=" else "-" for letter in metric).lstrip(".")
    return cards_folder() / f"{safe[:100] or 'metric'}.json"


def read_evidence(metric: str) -> list[Evidence]:
    """The validations of a metric, oldest first; empty if none are stored."""
    path = evidence_file(metric)
    try:
        entries = json.loads(read_text(path))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read: {error}",
            expected="the file that `evenhand validate --onto-card` wrote",
            fix="repair or delete it",
        ) from error
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def write_evidence(metric: str, entry: Evidence) -> Path:
    """Add a validation, replacing an earlier one of the same metric version and labels."""
    key = ("identity", "human")
    path = evidence_file(metric)
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    # Locked from read to write, so that two simultaneous validations are both kept.
    with FileLock(path.with_name(f".{path.name}.lock")):
        others = [
            one for one in read_evidence(metric) if any(one.get(name) != entry.get(name) for name in key)
        ]
        write_text(path, json.dumps([*others, entry], ensure_ascii=False, indent=1) + "\n")
    return path


_SHOWN = ("spearman", "spearman_score", "accuracy", "always_commonest", "kappa", "f1")


def build_evidence(run: Run, spec: str, info: MetricInfo) -> Evidence:
    """The entry of a run for the card: the metric, whose labels it was compared with, how well they agree."""
    identity = run.manifest["identity"]
    whole = run.table("validation").filter(pl.col("label") == "(all)")
    measures = whole.select("output", "measure", "value", "low", "high", "p", "level", "n", "null_reason")
    cuts = run.table("best_cuts").select("output", "own", "cut", "cut_low", "cut_high")
    return {
        "metric": spec,
        "identity": info.identity(),
        "human": {**identity["inputs"], "question": identity["questions"][0], **identity["consensus"]},
        "date": str(run.manifest["ended"] or "")[:10],
        "package": __version__,
        "run": str(run.path),
        "measures": measures.to_dicts(),
        "cuts": cuts.to_dicts(),
    }


def format_evidence(spec: str, info: MetricInfo) -> str:
    """The card's section on human labels; empty without entries. Results of other versions are labelled."""
    lines: list[str] = []
    for entry in read_evidence(spec):
        human, measures = entry.get("human"), entry.get("measures")
        labels = human if isinstance(human, dict) else {}
        is_same = entry.get("identity") == info.identity()
        remark = "" if is_same else ", for another version or weights of this metric"
        head = f"{entry.get('date')}: `{labels.get('file')}`, question {labels.get('question')}{remark}"
        lines += [f"- **{head}**"] + [
            f"    - `{row.get('output')}` {_format_measures(row)}"
            for row in (measures if isinstance(measures, list) else [])
            if isinstance(row, dict) and row.get("measure") in _SHOWN
        ]
    return "\n".join(["## Against people, on this machine", "", *lines]) if lines else ""


def _format_measures(row: Mapping[str, Json]) -> str:
    name, value = str(row.get("measure")).replace("_", " "), row.get("value")
    if not isinstance(value, float):
        return f"{name}: none ({row.get('null_reason')})"
    low, high, p = row.get("low"), row.get("high"), row.get("p")
    ends = f" ({low:.2f} to {high:.2f})" if isinstance(low, float) and isinstance(high, float) else ""
    tested = f", p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}" if isinstance(p, float) else ""
    return f"{name} {value:.2f}{ends}{tested}, n = {row.get('n')}"
