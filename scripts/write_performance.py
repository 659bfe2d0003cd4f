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

Result = Mapping[str, object]

_HEAD = """\
# Performance

*Written by `scripts/write_performance.py` from `benchmarks/results`; do not edit.*

`make bench` measures this table on your machine in 13 minutes on two cores, `make bench-gpu` what needs a
GPU. It fails where a bar is missed or a ratio is a fifth less than the committed one.

- **A ratio (x)** is that of two ways that take turns in the same run, the median over their rounds. First
  their answers are compared: where they differ, no speed is told. Rounds and gates are in the
  [last table](#what-it-was-measured-on).
- **The whole audit** reads all texts, its rivals some of them, spread over all. `make bench` runs it once,
  between their rounds, `benchmarks/bench_audit.py` as often as them. LangFair is put into `build/langfair`
  for it; where it could not be fetched, its lines are not measured, and that is said.
- **Calibration** and the vanilla sampling beside it write 20 tokens a row on a CPU, 24 on a GPU, after
  prompts of three. Autograd, which takes seconds a token, writes fewer.
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
        *_batches(results),
        *_growth(results),
        "## What stands in the way of more\n\n" + _limits(results),
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
    """A figure with as many digits as tell that it missed its bar."""
    said = _shown(figure, bar.unit)
    is_close = not bar.holds(figure) and said == _shown(bar.bar, bar.unit)
    return _shown(figure, bar.unit, digits=4) if is_close else said


def _shown(figure: float, unit: str, *, digits: int = 3) -> str:
    number = f"{figure:,.0f}" if figure >= 100 else f"{figure:.{digits}g}"
    return f"{number}x" if unit == "x" else f"{number} {unit}"


_SAMPLING = """\
Tokens a second while a model of GPT-2-medium's sizes writes 48 tokens a row in bfloat16 with top-k 40. "Plain
calls" is vanilla sampling without recorded steps ([decision 31](adr/0031-recorded-steps.md)). The shares are
those of vanilla sampling: of the device's memory bandwidth, reading all weights once a step; of its matrix
rate, the products with them. What the device can do is measured beside it, by one large copy and one large
product.
"""
_SATURATED = """\
**The device is not saturated**: weights take at most {bandwidth} of its bandwidth, products at most {rate} of
its matrix rate.

- *Few rows.* A step is some 300 kernels of 4 us, one after the other. Replaying starts them without a
  processor's help and brings {most:.1f} times the tokens at most; {least:.1f} times at 1,024 rows, where
  kernels are long.
- *1,024 rows.* A profile of a step at 50 positions has 4.3 ms: attention 1.75, which reads 5 GB of keys and
  values at three quarters of the bandwidth (with them a step uses a third of it); products 1.3, at seven
  tenths of the matrix rate; finding the largest logits and converting them 0.6; norms, sums and the rest 0.7.
  Reading prompts and the loop itself take 0.8 ms a token more.
- *Calibration* adds 1.8 ms at 1,024 rows with words, 1.1 of it 16 walks over the followed tokens' vectors;
  and 4.2 ms with a head, 1.9 of it products in float32. Over these 48 tokens it costs {cost} at 32
  rows and {grown} at 1,024, more than the bars, which are set and kept in float32 at 32 rows; over the
  24 tokens of the table above {half} in bfloat16, since reading the prompt, alike in all ways, is a larger
  part. At one row in float32 it costs {alone}: 15 steps are a chain, and few rows do not fill a GPU.
- *Next* would be norms and sums inside the other kernels, and heads in half precision.
"""
_READING = """\
Texts a second of the embedded encoder with its four heads on BOLD's sentences, tokenizer included, in
{dtype}. The last column is the share of the device's matrix rate in {dtype}.
"""
Column = tuple[str, ...]
"""Where in a part of a result a share stands."""


def _batches(results: Path) -> Iterator[str]:
    """Sampling and classifiers at growing batch, and what happens where memory ends."""
    sampled, read_, little = (read(results, name) for name in _AT_GROWING_BATCH)
    if sampled is not None:
        ways = ("vanilla", "embedding", "classifier", "plain calls")
        shares = {f"share of {name}": (f"shares_of_{name.replace(' ', '_')}", "vanilla") for name in _SHARES}
        yield _SAMPLING + "\n" + _by_batch(sampled, ways, shares)
        yield _saturated(sampled, results)
    if read_ is not None:
        shares = {"share of matrix rate": ("share_of_matrix_rate",)}
        yield (
            _READING.format(dtype=read_.get("dtype", "float32"))
            + "\n"
            + _by_batch(read_, ("evenhand",), shares)
        )
    if little is not None:
        yield _little_memory(little)


_AT_GROWING_BATCH = ("sampling-gpu-medium", "classifiers-gpu", "memory-gpu")
_HALF = "mitigation-gpu-bf16"
_SHARES = ("bandwidth", "matrix rate")


def _by_batch(found: Result, ways: Sequence[str], shares: Mapping[str, Column]) -> str:
    lines = [
        "| rows | " + " | ".join([*ways, *shares]) + " |",
        "| --- " * (len(ways) + len(shares) + 1) + "|",
    ]
    for rows, part in cast("Mapping[str, dict[str, object]]", found["parts"]).items():
        cells = [f"{_at(part, 'rates', way, 'wall'):,.0f}" for way in ways]
        cells += [_percent(_at(part, *place)) for place in shares.values()]
        lines.append(f"| {int(rows):,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _at(part: object, *keys: str) -> float:
    """The figure in a result at the end of these keys."""
    for key in keys:
        part = cast("Mapping[str, object]", part)[key]
    return cast(float, part)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _saturated(sampled: Result, results: Path) -> str:
    """How far the device is used at most, and what the rest of a step is spent on."""
    parts = list(cast("Mapping[str, Result]", sampled["parts"]).values())
    gains = [_at(part, "ratios", "plain calls", "wall") for part in parts]
    bandwidth, rate = (
        f"{100 * max(_at(part, f'shares_of_{name}', 'vanilla') for part in parts):.0f} %"
        for name in ("bandwidth", "matrix_rate")
    )
    half, alone = read(results, _HALF), read(results, "mitigation-gpu")
    return _SATURATED.format(
        bandwidth=bandwidth,
        rate=rate,
        most=max(gains),
        least=gains[-1],
        cost=_costs(sampled, "32", "ratios"),
        grown=_costs(sampled, "1024", "ratios"),
        half=_costs(half, "32", "cost"),
        alone=_costs(alone, "1", "cost"),
    )


def _costs(found: Result | None, rows: str, name: str) -> str:
    """What the two modes cost against vanilla sampling."""
    if found is None:
        return "(not measured)"
    modes = ("embedding", "classifier")
    return " and ".join(f"{_at(found, 'parts', rows, name, mode, 'wall'):.2f}x" for mode in modes)


def _little_memory(found: Result) -> str:
    parts = cast("Mapping[str, Mapping[str, object]]", found["parts"])
    grown, asked = parts["automatic"], parts["all at once"]
    fits = cast("Mapping[str, int]", grown["rows_found_to_fit"])
    told = len(cast("Sequence[str]", asked["told"]))
    return (
        f"With {found['gib_allowed']:g} GiB beside the weights of GPT-2-small's sizes, rows grew to "
        f"{max(fits.values())} for {grown['texts']:,} texts; asked for all at once, the loop ran out of "
        f"memory {told} times, went on with half the rows each time, and lost none. "
        f"{grown['as_with_32_rows']:,} and {asked['as_with_32_rows']:,} of them are, to the last token, "
        "those of 32 rows at a time; the others differ where rounding decided between two tokens."
    )


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
    """What is in the way, each said once for all works that share it."""
    shared: dict[str, list[str]] = {}
    for bar in BARS:
        if bar.next_limit and (figure := _figure(bar, results)) is not None:
            asked = _shown(bar.bar, bar.unit)
            beside = f" beside {bar.against}" if bar.against else ""
            work = f"**{bar.work}**{beside}, {_measured(bar, figure)} where {asked} was asked"
            shared.setdefault(bar.next_limit, []).append(work)
    return "\n".join(f"- {'; '.join(works)}: {limit}." for limit, works in shared.items())


def _machines(results: Path) -> str:
    lines = [
        "| result | rounds | gate | data | machine | load |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    known: dict[str, int] = {}
    for name in sorted({bar.file for bar in BARS} | {*_AT_GROWING_BATCH, _HALF}):
        found = read(results, name)
        if found is not None:
            number = known.setdefault(_machine(found), len(known) + 1)
            lines.append("| " + " | ".join(_facts(name, found, number)) + " |")
    machines = [f"{number}. {said}" for said, number in known.items()]
    return "\n".join([*lines, "", *machines, *_few_rounds(results)])


def _few_rounds(results: Path) -> Iterator[str]:
    """What is said of ratios whose results have fewer than five rounds, or do not tell them."""
    files = dict.fromkeys(bar.file for bar in BARS if bar.unit == "x")
    found = {name: one for name in files if (one := read(results, name)) is not None}
    few = [f"`{name}.json`" for name, one in found.items() if int(_rounds(one).split(" ")[0] or 0) < 5]
    if few:
        yield f"\nOlder than the suite, with fewer than five rounds or none told: {', '.join(few)}."


def _machine(found: Result) -> str:
    """The machine and its libraries in a line."""
    known = cast("Mapping[str, object]", found.get("machine") or {})
    where = known.get("device") or known.get("processor") or found.get("device") or "not told"
    versions = cast("Mapping[str, str]", known.get("versions") or {})
    libraries = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"{where}: {libraries or 'versions not told'}"


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
    """How often the ways took turns; the least where parts differ."""
    parts = cast("Mapping[str, Result]", found.get("parts") or {})
    told = [cast(int, one["rounds"]) for one in (found, *parts.values()) if "rounds" in one]
    ours = f" ({found['rounds_of_ours']} of ours)" if "rounds_of_ours" in found else ""
    return f"{min(told)}{ours}" if told else ""


def _gates(found: Result) -> str:
    parts = found.get("parts")
    gates = [part.get("gate", "") for part in parts.values()] if isinstance(parts, dict) else []
    return "; ".join(dict.fromkeys(gate for gate in gates if gate))


if __name__ == "__main__":
    (DOCS / "performance").mkdir(exist_ok=True)
    (DOCS / "performance.md").write_text(page(), encoding="utf-8")
    for file, drawing in charts().items():
        (DOCS / "performance" / file).write_text(drawing, encoding="utf-8")
