"""A run for other tools: results as lm-evaluation-harness writes them, and metadata for a model card."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime

from evenhand.audits.report.findings import find_gaps
from evenhand.audits.report.gap_wording import format_level
from evenhand.core.digests import Json, digest
from evenhand.report.json_tables import to_rows
from evenhand.report.manifest import read_number, read_text
from evenhand.report.render_run import format_report
from evenhand.store.run import Run

_BEHIND = ("low", "high", "level", "method", "n", "n_null", "n_clusters", "null_reason")
"""The columns of an estimate that lm-evaluation-harness has no place for."""
_FILTER = "none"
"""lm-evaluation-harness names the filter of answers behind a comma; there is none here."""


def lm_eval_results(run: Run) -> str:
    """The estimates of a run in the layout of ``results_*.json`` of lm-evaluation-harness.

    A group of an axis is a task with a value and its standard error an output; an axis is a group of tasks
    with its largest gap an output. Standard errors are half an interval over its normal quantile; the
    interval itself, n and the reason of what is missing stand in the task's metadata. Missing is ``N/A``.
    """
    tasks = _tasks(run)
    axes = _axes(run)
    results: dict[str, Json] = {name: dict(task) for name, task in (tasks | axes).items()}
    members = _members(run)
    everything = [*tasks, *axes]
    content: dict[str, Json] = {
        "results": results,
        "groups": {name: dict(axis) for name, axis in axes.items()},
        "group_subtasks": {axis: list(members.get(axis, ())) for axis in axes},
        "configs": {
            name: {"task": name, "output_type": "generate_until", "metadata": metadata}
            for name, metadata in _metadata(run).items()
        },
        "versions": {name: read_text(run.manifest, "package") for name in everything},
        "n-shot": dict.fromkeys(everything, 0),
        "higher_is_better": {name: dict.fromkeys(_metrics(axes[name]), False) for name in axes},
        "n-samples": _sizes(run),
        "config": {
            "model": read_text(run.manifest, "identity", "model", "backend"),
            "model_args": _model(run),
        },
        "model_name": _model(run),
        "model_source": "evenhand",
        "date": _seconds(read_text(run.manifest, "created")),
        "total_evaluation_time_seconds": str(_took(run)),
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
    numbers: dict[str, float] = {}
    for row in to_rows(run.table("groups")):
        _put(numbers, _path(row, "group", "value"), row["value"])
    for row in to_rows(run.table("comparisons")):
        _put(numbers, _path(row, "group", "gap"), row["estimate"])
        _put(numbers, _path(row, "group", "gap_low"), row["low"])
        _put(numbers, _path(row, "group", "gap_high"), row["high"])
        _put(numbers, _path(row, "group", "p_adjusted"), row["p_adjusted"])
    verdict = find_gaps(run)
    numbers["gaps_supported"] = float(len(verdict.largest))
    numbers["gaps_judged"] = float(len(verdict.judged_gaps))
    numbers["gaps_cannot_tell"] = float(len(verdict.inconclusive))
    return numbers


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


def _tasks(run: Run) -> dict[str, dict[str, Json]]:
    tasks: dict[str, dict[str, Json]] = {}
    for row in to_rows(run.table("groups")):
        name = _task(row, "suite", "axis", "group")
        task = tasks.setdefault(name, {"alias": f" - {row['group']}"})
        output = f"{row['metric']}.{row['output']}"
        value = row["value"]
        task[f"{output},{_FILTER}"] = "N/A" if value is None else value
        task[f"{output}_stderr,{_FILTER}"] = _stderr(row, row["level"])
    return tasks


def _metadata(run: Run) -> dict[str, dict[str, Json]]:
    """Task to what stands behind each of its numbers: outputs of one group have texts of their own."""
    metadata: dict[str, dict[str, Json]] = {}
    for row in to_rows(run.table("groups")):
        behind: Json = {key: row[key] for key in _BEHIND}
        metadata.setdefault(_task(row, "suite", "axis", "group"), {})[f"{row['metric']}.{row['output']}"] = (
            behind
        )
    return metadata


def _members(run: Run) -> dict[str, dict[str, None]]:
    """The tasks of each axis, in their order."""
    members: dict[str, dict[str, None]] = {}
    for row in to_rows(run.table("groups")):
        members.setdefault(_task(row, "suite", "axis"), {})[_task(row, "suite", "axis", "group")] = None
    return members


def _axes(run: Run) -> dict[str, dict[str, Json]]:
    at = read_number(run.manifest, "identity", "compare", "level") or 0.95
    axes: dict[str, dict[str, Json]] = {}
    for row in to_rows(run.table("comparisons")):
        axis = axes.setdefault(_task(row, "suite", "axis"), {"alias": str(row["axis"])})
        name, gap = f"largest_gap.{row['metric']}.{row['output']}", row["estimate"]
        known = axis.setdefault(f"{name},{_FILTER}", "N/A")
        axis.setdefault(f"{name}_stderr,{_FILTER}", "N/A")
        if isinstance(gap, float) and (not isinstance(known, float) or abs(gap) > known):
            axis[f"{name},{_FILTER}"] = abs(gap)
            axis[f"{name}_stderr,{_FILTER}"] = _stderr(row, at)
    return axes


def _index(run: Run) -> Iterator[Json]:
    for row in to_rows(run.table("comparisons")):
        if row["exploratory"] or row["estimate"] is None:
            continue
        interval = (
            ""
            if row["low"] is None
            else f", {format_level(run)} interval {row['low']:.4f} to {row['high']:.4f}"
        )
        yield {
            "task": {"type": "text-generation", "name": "Bias measurement"},
            "dataset": {
                "type": f"evenhand/{row['suite']}",
                "name": f"evenhand {row['suite']}: {row['axis']}, {row['group']} against {row['baseline']}",
            },
            "metrics": [
                {
                    "type": "gap",
                    "name": f"{row['metric']}.{row['output']} gap{interval}, n {row['n']}",
                    "value": row["estimate"],
                    "verified": False,
                }
            ],
        }


def _metrics(axis: Mapping[str, Json]) -> list[str]:
    names = [key.removesuffix(f",{_FILTER}") for key in axis if key != "alias"]
    return [name for name in names if not name.endswith("_stderr")]


def _sizes(run: Run) -> dict[str, Json]:
    """The texts of each task, and how many have a value of the output that most have one of."""
    sizes: dict[str, tuple[int, int]] = {}
    for row in run.table("groups").iter_rows(named=True):
        name = _task(row, "suite", "axis", "group")
        original, effective = sizes.get(name, (0, 0))
        sizes[name] = max(original, row["n"] + row["n_null"]), max(effective, row["n"])
    return {name: {"original": size[0], "effective": size[1]} for name, size in sizes.items()}


def _stderr(row: Mapping[str, Json], at: Json) -> Json:
    """Half an interval of that level over its normal quantile."""
    low, high = row["low"], row["high"]
    if not (isinstance(low, float) and isinstance(high, float) and isinstance(at, float)):
        return "N/A"
    from statistics import NormalDist

    return (high - low) / 2 / NormalDist().inv_cdf((1 + at) / 2)


def _task(row: Mapping[str, Json], *columns: str) -> str:
    return "_".join(["evenhand", *(_plain(r"\W+", str(row[column])) for column in columns)])


def _path(row: Mapping[str, Json], *last: str) -> str:
    words = [row["suite"], row["axis"], row["group"], f"{row['metric']}.{row['output']}", last[-1]]
    # Trackers take letters, digits and these few signs.
    return "/".join(_plain(r"[^\w.\- ]+", str(word)) for word in words)


def _plain(foreign: str, word: str) -> str:
    """The word without foreign signs; one that had any ends in a digest: "C++" and "C#" stay two names."""
    plain = re.sub(foreign, "-", word)
    return plain if plain == word else f"{plain}-{digest(word, size=3)}"


def _put(numbers: dict[str, float], name: str, value: Json) -> None:
    if isinstance(value, float):
        numbers[name] = value


def _model(run: Run) -> str:
    return read_text(run.manifest, "identity", "model", "name") or read_text(run.manifest, "name")


def _seconds(stamp: str) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return None


def _took(run: Run) -> float:
    started, ended = (_seconds(read_text(run.manifest, key)) for key in ("created", "ended"))
    took = read_number(run.manifest, "seconds")
    return took or (max(0.0, ended - started) if started and ended else 0.0)
