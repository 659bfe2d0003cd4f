"""A run for other tools: results as lm-evaluation-harness writes them, and metadata for a model card."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from statistics import NormalDist

from evenhand.audits.report.findings import find_gaps
from evenhand.core.digests import Json, digest
from evenhand.report.json_tables import to_rows
from evenhand.report.manifest import format_level, read_number, read_text
from evenhand.report.render_run import format_report
from evenhand.store.run import Run

Row = Mapping[str, Json]
_BEHIND = ("low", "high", "level", "method", "n", "n_null", "n_clusters", "null_reason")
"""The columns of an estimate that lm-evaluation-harness has no place for."""
_FILTER = "none"
"""lm-evaluation-harness names the filter of answers behind a comma; there is none here."""


def lm_eval_results(run: Run) -> str:
    """The estimates of a run in the layout of ``results_*.json`` of lm-evaluation-harness.

    A group of an axis is a task with a value and standard error per output; an axis is a group of tasks
    with its largest gap per output. Standard errors are half an interval over its normal quantile; the
    interval itself, n and the reason of what is missing are in the task's metadata. Missing is ``N/A``.
    """
    tasks: dict[str, list[dict[str, Json]]] = {}
    for row in to_rows(run.table("groups")):
        tasks.setdefault(_task(row, "suite", "axis", "group"), []).append(row)
    gaps = _find_largest_gaps(run)
    axes = {name: _results(next(iter(rows.values()))["axis"], rows.items()) for name, rows in gaps.items()}
    results = {
        name: _results(f" - {rows[0]['group']}", [(_output(row), row) for row in rows])
        for name, rows in tasks.items()
    } | axes
    axis_of = {name: _task(rows[0], "suite", "axis") for name, rows in tasks.items()}
    model = _model(run)
    created, ended = (_seconds(read_text(run.manifest, key)) for key in ("created", "ended"))
    content: dict[str, Json] = {
        "results": dict(results),
        "groups": dict(axes),
        "group_subtasks": {axis: [name for name in tasks if axis_of[name] == axis] for axis in axes},
        "configs": {
            name: {
                "task": name,
                "output_type": "generate_until",
                "metadata": {_output(row): {key: row[key] for key in _BEHIND} for row in rows},
            }
            for name, rows in tasks.items()
        },
        "versions": dict.fromkeys(results, read_text(run.manifest, "package")),
        "n-shot": dict.fromkeys(results, 0),
        "higher_is_better": {name: dict.fromkeys(rows, False) for name, rows in gaps.items()},
        # Texts of a group, and those with a value of the output that most have one of.
        "n-samples": {
            name: {"original": max(n + n_null for n, n_null in amounts), "effective": max(amounts)[0]}
            for name, rows in tasks.items()
            for amounts in [[(int(str(row["n"])), int(str(row["n_null"]))) for row in rows]]
        },
        "config": {"model": read_text(run.manifest, "identity", "model", "backend"), "model_args": model},
        "model_name": model,
        "model_source": "evenhand",
        "date": created,
        "total_evaluation_time_seconds": str(max(0.0, ended - created) if created and ended else 0.0),
    }
    return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def model_card(run: Run) -> str:
    """A model card: front matter with ``model-index`` as the Hub reads it, then the report in Markdown."""
    index: Json = [{"name": _model(run), "results": list(_index(run))}]
    # JSON is YAML: nothing a group is called can break out of it.
    front = json.dumps(index, ensure_ascii=True, indent=1, allow_nan=False).replace("<", "\\u003c")
    return f"---\ntags:\n- evenhand\nmodel-index: {front}\n---\n\n{format_report(run, 'md')}"


def list_numbers(run: Run) -> dict[str, float]:
    """Every estimate and gap of a run by a path-like name, for experiment trackers."""
    gaps = {"gap": "estimate", "gap_low": "low", "gap_high": "high", "p_adjusted": "p_adjusted"}
    numbers = {
        _path(row, name): number
        for table, columns in (("groups", {"value": "value"}), ("comparisons", gaps))
        for row in to_rows(run.table(table))
        for name, column in columns.items()
        if isinstance(number := row[column], float)
    }
    findings = find_gaps(run)
    counts = {
        "gaps_supported": findings.by_standing["supported"],
        "gaps_judged": findings.judged_gaps,
        "gaps_cannot_tell": findings.inconclusive,
    }
    return numbers | {name: float(len(each)) for name, each in counts.items()}


def list_identifiers(run: Run) -> dict[str, str]:
    """What identifies a run, for experiment trackers."""
    return {
        "model": _model(run),
        "model_revision": read_text(run.manifest, "identity", "model", "revision"),
        "suites": ", ".join(run.manifest["suites"]),
        "metrics": ", ".join(run.manifest["metrics"]),
        "command": read_text(run.manifest, "command"),
        "evenhand": read_text(run.manifest, "package"),
        # Not the whole path: folders are named after people and projects.
        "run_folder": run.path.name,
    }


def _results(alias: Json, rows: Iterable[tuple[str, Row]]) -> dict[str, Json]:
    """The value and the standard error of each output: half an interval over its normal quantile."""
    results = {"alias": alias}
    for name, row in rows:
        value, low, high, level = (row[key] for key in ("value", "low", "high", "level"))
        results[f"{name},{_FILTER}"] = "N/A" if value is None else value
        error: Json = "N/A"
        if isinstance(low, float) and isinstance(high, float) and isinstance(level, float):
            error = (high - low) / 2 / NormalDist().inv_cdf((1 + level) / 2)
        results[f"{name}_stderr,{_FILTER}"] = error
    return results


def _output(row: Row) -> str:
    return f"{row['metric']}.{row['output']}"


def _find_largest_gaps(run: Run) -> dict[str, dict[str, Row]]:
    """For each axis the largest gap of each output, as the row of a value."""
    at = read_number(run.manifest, "identity", "compare", "level") or 0.95
    axes: dict[str, dict[str, Row]] = {}
    for row in to_rows(run.table("comparisons")):
        gaps = axes.setdefault(_task(row, "suite", "axis"), {})
        name, gap = f"largest_gap.{_output(row)}", row["estimate"]
        size = abs(gap) if isinstance(gap, float) else None
        known = gaps[name]["value"] if name in gaps else None
        if name not in gaps or (size is not None and (not isinstance(known, float) or size > known)):
            gaps[name] = {**row, "value": size, "level": at}
    return axes


def _index(run: Run) -> Iterator[Json]:
    for row in to_rows(run.table("comparisons")):
        if row["exploratory"] or row["estimate"] is None:
            continue
        ends = "" if row["low"] is None else f"{row['low']:.4f} to {row['high']:.4f}"
        interval = f", {format_level(run)} interval {ends}" if ends else ""
        compared = f"{row['axis']}, {row['group']} against {row['baseline']}"
        metric: Json = {
            "type": "gap",
            "name": f"{_output(row)} gap{interval}, n {row['n']}",
            "value": row["estimate"],
            "verified": False,
        }
        yield {
            "task": {"type": "text-generation", "name": "Bias measurement"},
            "dataset": {"type": f"evenhand/{row['suite']}", "name": f"evenhand {row['suite']}: {compared}"},
            "metrics": [metric],
        }


def _task(row: Row, *columns: str) -> str:
    return "_".join(["evenhand", *(_plain(r"\W+", str(row[column])) for column in columns)])


def _path(row: Row, last: str) -> str:
    words = [row["suite"], row["axis"], row["group"], _output(row), last]
    # Trackers take letters, digits and these few signs.
    return "/".join(_plain(r"[^\w.\- ]+", str(word)) for word in words)


def _plain(foreign: str, word: str) -> str:
    """The word without foreign signs; one that had any ends in a digest: "C++" and "C#" stay two names."""
    plain = re.sub(foreign, "-", word)
    return plain if plain == word else f"{plain}-{digest(word, size=3)}"


def _model(run: Run) -> str:
    return read_text(run.manifest, "identity", "model", "name") or read_text(run.manifest, "name")


def _seconds(stamp: str) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return None
