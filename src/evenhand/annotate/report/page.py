"""Shared parts of the reports on human labels: facts and table columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from evenhand.report.document import Page, Report
from evenhand.report.manifest import Fact, list_facts, read_mapping, read_text
from evenhand.report.wording import format_number, format_value
from evenhand.store.run import Run

Row: TypeAlias = Mapping[str, Any]


def build_people_report(run: Run, *, tables: Sequence[str], **content: Any) -> Report:
    """Build a report on human labels."""
    return Report(
        run=run,
        **content,
        facts=list_facts(run, _own_facts(run)),
        manifest=("command", "name", "identity", "package"),
        tables=tables,
        values={
            "verdicts": list(content["verdicts"]),
            "caveats": list(content["caveats"]),
            "warnings": run.manifest.get("warnings"),
        },
        page=Page(scripts=("data.js", "explore.js")),
    )


def _own_facts(run: Run) -> Iterator[Fact]:
    identity = read_mapping(run.manifest, "identity")
    yield Fact("Labels", read_text(identity, "inputs", "file"))
    yield Fact("Digest of the labels", read_text(identity, "inputs", "digest"), is_code=True)
    if consensus := read_mapping(identity, "consensus"):
        method, agreement, least = (read_text(consensus, key) for key in ("method", "agreement", "least"))
        yield Fact("One label per text", f"{method}, share of {agreement}, at least {least} ratings")
    yield Fact("Metric", read_text(identity, "metric", "spec"))
    yield Fact("Metric version", read_text(identity, "metric", "version"))
    yield Fact("Weights or lexicon", read_text(identity, "metric", "weights"), is_code=True)


def interval(name: str = "", *, signed: bool = False) -> Callable[[Row], str]:
    """A formatter for an estimate's interval; empty if there is none."""
    ends = [f"{name}_{end}" if name else end for end in ("low", "high")]

    def show(row: Row) -> str:
        known = [format_number(row[end], signed=signed) for end in ends]
        return " to ".join(known) if all(known) else ""

    return show


def estimate(name: str) -> Callable[[Row], str]:
    """A formatter for an estimate with its interval, or the reason why there is none."""

    def show(row: Row) -> str:
        if row[name] is None:
            return row["null_reason" if name == "value" else f"{name}_null"] or ""
        ends = interval("" if name == "value" else name)(row)
        return format_number(row[name]) + (f" ({ends})" if ends else "")

    return show


def value(row: Row) -> str:
    """A value, or the reason why there is none."""
    return format_value(row["null_reason"] if row["value"] is None else row["value"])


def interval_or_reason(row: Row) -> str:
    """The interval, or the reason why a value has none; empty if there is no value."""
    return interval()(row) or ("" if row["value"] is None else f"none: {row['null_reason']}")
