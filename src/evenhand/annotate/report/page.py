"""Shared parts of the reports on human labels: facts and table columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from evenhand.core.digests import Json
from evenhand.report.document import Page, Report
from evenhand.report.manifest import Fact, list_circumstances, read_mapping, read_text
from evenhand.report.wording import format_name, format_number, format_value, show_control_characters
from evenhand.store.run import Run

Row: TypeAlias = Mapping[str, Any]


def build_people_report(run: Run, *, tables: Sequence[str], **content: Any) -> Report:
    """Build a report on human labels."""
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
    """The provenance of the numbers."""
    identity = read_mapping(run.manifest, "identity")
    facts = (
        Fact("Command to repeat", show_control_characters(read_text(run.manifest, "command")), is_code=True),
        Fact("Labels", show_control_characters(read_text(identity, "inputs", "file"))),
        Fact("Digest of the labels", read_text(identity, "inputs", "digest"), is_code=True),
        Fact("One label per text", _rule(read_mapping(identity, "consensus"))),
        Fact("Metric", show_control_characters(read_text(identity, "metric", "spec"))),
        Fact("Metric version", show_control_characters(read_text(identity, "metric", "version"))),
        Fact("Weights or lexicon", read_text(identity, "metric", "weights"), is_code=True),
        *list_circumstances(run.manifest),
    )
    return tuple(fact for fact in facts if fact.value)


def words(column: str) -> Callable[[Row], str]:
    """A formatter for a column of identifiers: as words."""
    return lambda row: format_name(row[column])


def interval(name: str = "", *, signed: bool = False) -> Callable[[Row], str]:
    """A formatter for an estimate's interval; empty if there is none."""
    ends = [f"{name}_{end}" if name else end for end in ("low", "high")]

    def show(row: Row) -> str:
        low, high = (row[end] for end in ends)
        known = low is not None and high is not None
        return f"{format_number(low, signed=signed)} to {format_number(high, signed=signed)}" if known else ""

    return show


def estimate(name: str) -> Callable[[Row], str]:
    """A formatter for an estimate with its interval, or the reason why there is none."""

    def show(row: Row) -> str:
        if row[name] is None:
            reason = row["null_reason"] if name == "value" else row[f"{name}_null"]
            return format_value(reason)
        ends = interval("" if name == "value" else name)(row)
        return format_number(row[name]) + (f" ({ends})" if ends else "")

    return show


def value(row: Row) -> str:
    """A value, or the reason why there is none."""
    return format_value(row["null_reason"] if row["value"] is None else row["value"])


def interval_or_reason(row: Row) -> str:
    """The interval, or the reason why a value has none; empty if there is no value."""
    return interval()(row) or ("" if row["value"] is None else f"none: {row['null_reason']}")


def _rule(consensus: Mapping[str, Json]) -> str:
    if not consensus:
        return ""
    method, agreement, least = (read_text(consensus, key) for key in ("method", "agreement", "least"))
    return f"{method}, share of {agreement}, at least {least} ratings"
