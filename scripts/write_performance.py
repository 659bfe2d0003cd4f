"""Writes ``docs/performance.md`` and its charts from ``benchmarks/results``; a test keeps them current."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "benchmarks"))

from bars import BARS, RESULTS, Bar, read  # noqa: E402
from charts import growth_chart, ratio_chart  # noqa: E402
from gpu_page import FILES, HALF, gpu_parts  # noqa: E402

Result = Mapping[str, object]

_HEAD = """\
# Performance

*Written by `scripts/write_performance.py` from `benchmarks/results`; do not edit.*

`make bench` measures this table on your machine in 13 minutes on two cores, `make bench-gpu` what needs a
GPU. It fails where a bar is missed or a ratio is a fifth less than the committed one.

- **A ratio (x)** compares two implementations that take turns in the same run; it is the median over their
  rounds. Their results are compared first: if they differ, no speed is reported. Rounds and equality checks
  are in the [last table](#what-it-was-measured-on).
- **The whole audit** reads all texts, its rivals a sample spread over all. `make bench` runs it once,
  between their rounds, `benchmarks/bench_audit.py` as often as them. LangFair is installed into
  `build/langfair`; if it cannot be downloaded, its lines are marked as not measured.
- **Calibration** and the vanilla sampling it is compared with generate 20 tokens per sequence on a CPU, 24
  on a GPU, after prompts of three tokens. Autograd, which takes seconds per token, generates fewer.
- **Growth** is measured up to 100,000 texts by `make bench`, up to a million by `benchmarks/bench_growth.py`.
- **Seconds, memory, growth and requests** have no rival.
- **The clock** is CPU time where one core works and wall time where several do; both are in the result files.

[![Every ratio as a multiple of its bar](performance/ratios.svg)](performance/ratios.svg)
"""


def page(results: Path = RESULTS) -> str:
    """The page as it should be."""
    parts = [
        _HEAD,
        "## On a CPU\n\n" + _table("cpu", results),
        "## On a GPU\n\n" + _table("gpu", results),
        *gpu_parts(results),
        *_growth(results),
        "## What limits further gains\n\n" + _limits(results),
        "## What it was measured on\n\n" + _machines(results),
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def charts(results: Path = RESULTS) -> dict[str, str]:
    """The charts by file name."""
    rows = [
        (bar, figure) for bar in BARS if bar.unit == "x" and (figure := _figure(bar, results)) is not None
    ]
    found = {"ratios.svg": ratio_chart(rows)}
    grown = read(results, "growth")
    if grown is not None:
        found["growth.svg"] = growth_chart(_curves(grown))
    return found


def _figure(bar: Bar, results: Path) -> float | None:
    found = read(results, bar.file)
    return None if found is None else bar.figure(found)


def _table(machine: str, results: Path) -> str:
    lines = ["| work | against | bar | measured | verdict |", "| --- | --- | --- | --- | --- |"]
    for bar in BARS:
        if bar.machine == machine:
            lines.append("| " + " | ".join(_cells(bar, _figure(bar, results))) + " |")
    return "\n".join(lines) + "\n"


def _cells(bar: Bar, figure: float | None) -> tuple[str, ...]:
    sign = "at most" if bar.at_most else "at least"
    measured = "not measured yet" if figure is None else _measured(bar, figure)
    verdict = "" if figure is None else "holds" if bar.holds(figure) else "**missed**"
    return bar.work, bar.against, f"{sign} {_shown(bar.bar, bar.unit)}", measured, verdict


def _measured(bar: Bar, figure: float) -> str:
    """A figure with enough digits to show that it missed its bar."""
    said = _shown(figure, bar.unit)
    is_close = not bar.holds(figure) and said == _shown(bar.bar, bar.unit)
    return _shown(figure, bar.unit, digits=4) if is_close else said


def _shown(figure: float, unit: str, *, digits: int = 3) -> str:
    number = f"{figure:,.0f}" if figure >= 100 else f"{figure:.{digits}g}"
    return f"{number}x" if unit == "x" else f"{number} {unit}"


def _growth(results: Path) -> Iterator[str]:
    found = read(results, "growth")
    if found is None:
        return
    lines = ["| texts | command | seconds | peak memory |", "| --- | --- | --- | --- |"]
    for row in cast("Sequence[Mapping[str, float]]", found["rows"]):
        lines.append(
            f"| {row['texts']:,} | `{row['command']}` | {row['seconds']:,.2f} | {row['mib']:,.0f} MiB |"
        )
    chart = "performance/growth.svg"
    yield f"## Growth\n\n[![Seconds and memory by number of texts]({chart})]({chart})\n\n" + "\n".join(lines)


def _curves(found: Result) -> dict[str, list[tuple[float, float, float]]]:
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for row in cast("Sequence[Mapping[str, float]]", found["rows"]):
        curves.setdefault(str(row["command"]), []).append((row["texts"], row["seconds"], row["mib"]))
    return curves


def _limits(results: Path) -> str:
    """The limiting factors, each listed once for all benchmarks that share it."""
    shared: dict[str, list[str]] = {}
    for bar in BARS:
        if bar.next_limit and (figure := _figure(bar, results)) is not None:
            asked = _shown(bar.bar, bar.unit)
            against = f" against {bar.against}" if bar.against else ""
            work = f"**{bar.work}**{against}, {_measured(bar, figure)} for a bar of {asked}"
            shared.setdefault(bar.next_limit, []).append(work)
    return "\n".join(f"- {'; '.join(works)}: {limit}." for limit, works in shared.items())


def _machines(results: Path) -> str:
    lines = [
        "| result | rounds | gate | data | machine | load |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    known: dict[str, int] = {}
    for name in sorted({bar.file for bar in BARS} | {*FILES, HALF}):
        found = read(results, name)
        if found is not None:
            number = known.setdefault(_machine(found), len(known) + 1)
            lines.append("| " + " | ".join(_facts(name, found, number)) + " |")
    machines = [f"{number}. {said}" for said, number in known.items()]
    return "\n".join([*lines, "", *machines, *_few_rounds(results)])


def _few_rounds(results: Path) -> Iterator[str]:
    """A note on ratios whose results have fewer than five rounds, or do not record them."""
    files = dict.fromkeys(bar.file for bar in BARS if bar.unit == "x")
    found = {name: one for name in files if (one := read(results, name)) is not None}
    few = [f"`{name}.json`" for name, one in found.items() if int(_rounds(one).split(" ")[0] or 0) < 5]
    if few:
        yield f"\nOlder results, with fewer than five rounds or an unknown number: {', '.join(few)}."


def _machine(found: Result) -> str:
    """The machine and its libraries in a line."""
    known = cast("Mapping[str, object]", found.get("machine") or {})
    where = known.get("device") or known.get("processor") or found.get("device") or "unknown"
    versions = cast("Mapping[str, str]", known.get("versions") or {})
    libraries = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"{where}: {libraries or 'unknown versions'}"


def _facts(name: str, found: Result, machine: int) -> tuple[str, ...]:
    known = cast("Mapping[str, object]", found.get("machine") or {})
    return (
        f"`{name}.json`",
        _rounds(found),
        str(found.get("gate") or _gates(found)),
        str(found.get("data", "")),
        str(machine),
        str(known.get("load", "")),
    )


def _rounds(found: Result) -> str:
    """The number of rounds; the minimum if parts differ."""
    parts = cast("Mapping[str, Result]", found.get("parts") or {})
    rounds = [cast(int, one["rounds"]) for one in (found, *parts.values()) if "rounds" in one]
    ours = f" ({found['rounds_of_ours']} of ours)" if "rounds_of_ours" in found else ""
    return f"{min(rounds)}{ours}" if rounds else ""


def _gates(found: Result) -> str:
    parts = found.get("parts")
    gates = [part.get("gate", "") for part in parts.values()] if isinstance(parts, dict) else []
    return "; ".join(dict.fromkeys(gate for gate in gates if gate))


if __name__ == "__main__":
    (DOCS / "performance").mkdir(exist_ok=True)
    (DOCS / "performance.md").write_text(page(), encoding="utf-8")
    for file, drawing in charts().items():
        (DOCS / "performance" / file).write_text(drawing, encoding="utf-8")
