"""What the reports on people's labels share: the facts, and numbers in the cells of their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.core.digests import Json
from evenhand.report.document import Page, Report
from evenhand.report.manifest import Fact, list_circumstances, read_mapping, read_text
from evenhand.report.wording import format_number, show_control_characters
from evenhand.store.run import Run

SHOWN = 200
"""Rows of a long table on the page."""


def build_people_report(run: Run, *, tables: Sequence[str], **content: Any) -> Report:
    """A report on people's labels."""
    return Report(
        run=run,
        **content,
        facts=list_facts(run),
        manifest=("command", "name", "identity", "package"),
        tables=tables,
        values={
            "verdicts": list(content["verdicts"]),
            "caveats": list(content["caveats"]),
            "warnings": run.manifest.get("warnings"),
        },
        page=Page(scripts=("data.js", "explore.js")),
    )


def list_facts(run: Run) -> tuple[Fact, ...]:
    """Where the numbers come from."""
    identity = read_mapping(run.manifest, "identity")
    facts = (
        Fact("Command to repeat", show_control_characters(read_text(run.manifest, "command")), is_code=True),
        Fact("Labels", show_control_characters(read_text(identity, "inputs", "file"))),
        Fact("Digest of the labels", read_text(identity, "inputs", "digest"), is_code=True),
        Fact("One label a text", _rule(read_mapping(identity, "consensus"))),
        Fact("Metric", show_control_characters(read_text(identity, "metric", "spec"))),
        Fact("Metric version", show_control_characters(read_text(identity, "metric", "version"))),
        Fact("Weights or lexicon", read_text(identity, "metric", "weights"), is_code=True),
        *list_circumstances(run.manifest),
    )
    return tuple(fact for fact in facts if fact.value)


def format_number_or_blank(value: object, *, signed: bool = False) -> str:
    """A number; empty where there is none."""
    return format_number(float(value), signed=signed) if isinstance(value, int | float) else ""


def format_interval(row: Mapping[str, object], name: str = "", *, signed: bool = False) -> str:
    """The two ends of an estimate's interval."""
    low, high = (row[f"{name}_low" if name else "low"], row[f"{name}_high" if name else "high"])
    if not isinstance(low, float) or not isinstance(high, float):
        return ""
    return f"{format_number(low, signed=signed)} to {format_number(high, signed=signed)}"


def format_interval_or_reason(row: Mapping[str, object]) -> str:
    """The interval, or why a value has none; nothing where there is no value."""
    return format_interval(row) or ("" if row["value"] is None else f"none: {row['null_reason']}")


def format_estimate(row: Mapping[str, object], name: str) -> str:
    """An estimate with its interval, or why there is none."""
    if row[name] is None:
        return str(row[f"{name}_null"] or "")
    ends = format_interval(row, name)
    return f"{format_number_or_blank(row[name])}" + (f" ({ends})" if ends else "")


def _rule(consensus: Mapping[str, Json]) -> str:
    if not consensus:
        return ""
    method, agreement, least = (read_text(consensus, key) for key in ("method", "agreement", "least"))
    return f"{method}, share of {agreement}, {least} ratings or more"
