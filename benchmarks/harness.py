"""What every benchmark shares: ways that take turns, medians, ratios, and the machine they were measured on.

A benchmark first compares the answers of its ways (``gate``), then lets them take turns round after round
(``take_turns``), and writes ``result`` as JSON. A ratio is the median over rounds of two neighbours in time,
so that a machine that slows down slows both.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
"""Published data, where it is there; never part of the repository."""
FORMAT = 2
Clock = Literal["cpu", "wall"]
Json = object

# The oracles of the tests are the gates of the benchmarks.
sys.path.insert(0, str(ROOT))


class Way(NamedTuple):
    """One way of doing the work."""

    work: Callable[[], object]
    amount: float = 1.0
    """Texts, tokens, megabytes or calls that one call of ``work`` deals with."""


class Spent(NamedTuple):
    """Seconds of one call; CPU time is that of all threads and of children that have ended."""

    cpu: float
    wall: float


def spent(work: Callable[[], object]) -> Spent:
    """Seconds a call takes; what other ways left in memory is not searched for garbage meanwhile."""
    gc.collect()
    gc.freeze()
    cpu, wall = _cpu(), time.perf_counter()
    work()
    return Spent(_cpu() - cpu, time.perf_counter() - wall)


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@dataclass(frozen=True, slots=True)
class Turns:
    """What each way took in each round."""

    ways: Mapping[str, Way]
    spent: Mapping[str, Sequence[Spent]]

    def rates(self, name: str, clock: Clock) -> list[float]:
        """Units a second, round by round."""
        return [self.ways[name].amount / getattr(one, clock) for one in self.spent[name]]

    def rate(self, name: str, clock: Clock) -> float:
        """Units a second, the median."""
        return statistics.median(self.rates(name, clock))

    def ratio(self, ours: str, theirs: str, clock: Clock) -> float:
        """Times as fast ours is, the median over rounds."""
        both = zip(self.rates(ours, clock), self.rates(theirs, clock), strict=True)
        return statistics.median(fast / slow for fast, slow in both)


def take_turns(ways: Mapping[str, Way], *, rounds: int, warm: int = 0) -> Turns:
    """Every way once a round, in the same order; the first ``warm`` rounds fill caches and do not count."""
    found: dict[str, list[Spent]] = {name: [] for name in ways}
    for number in range(warm + rounds):
        for name, way in ways.items():
            took = spent(way.work)
            if number >= warm:
                found[name].append(took)
    return Turns(ways, found)


def gate(holds: bool, said: str) -> None:
    """Stop where the ways do not give the same answer: then no speed means anything."""
    if not holds:
        raise SystemExit(f"{said}: no speed is reported")


def share(reached: float, most: float) -> float:
    """The part of what a device can do at most; more than all of it was not measured right."""
    gate(reached <= most, f"{reached:.3g} a second where the device does {most:.3g} at most")
    return round(reached / most, 4)


def result(
    turns: Turns, *, ours: str, unit: str, gate: str, data: str = "made up", **facts: Json
) -> dict[str, Json]:
    """What a benchmark writes: medians, ratios of ours to every other way by both clocks, the machine."""
    clocks: tuple[Clock, ...] = ("cpu", "wall")
    others = [name for name in turns.ways if name != ours]
    return {
        "format": FORMAT,
        "gate": gate,
        "data": data,
        "unit": unit,
        "rounds": len(turns.spent[ours]),
        "rates": {name: {clock: _short(turns.rate(name, clock)) for clock in clocks} for name in turns.ways},
        "ratios": {
            name: {clock: _short(turns.ratio(ours, name, clock)) for clock in clocks} for name in others
        },
        "all_rounds": {
            name: {clock: [_short(rate) for rate in turns.rates(name, clock)] for clock in clocks}
            for name in turns.ways
        },
        **facts,
        "machine": machine(),
    }


def joined(parts: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    """Several results of one benchmark as one file, by name; the machine is said once."""
    inner = {
        name: {key: value for key, value in part.items() if key not in ("machine", "format")}
        for name, part in parts.items()
    }
    first = next(iter(parts.values()))
    return {"format": FORMAT, "data": first.get("data", ""), "parts": inner, "machine": machine()}


def _short(value: float) -> float:
    return float(f"{value:.4g}")


_LIBRARIES = ("evenhand", "numpy", "numba", "polars", "scipy", "torch", "transformers", "ray")


def machine() -> dict[str, Json]:
    """What the figures were measured on."""
    found: dict[str, Json] = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "versions": {name: known for name in _LIBRARIES if (known := installed(name))},
    }
    if "torch" in sys.modules:
        import torch

        found["threads"] = torch.get_num_threads()
        if torch.cuda.is_available():
            found["device"] = torch.cuda.get_device_name()
    return found


def installed(name: str) -> str | None:
    """The version of a library; None where it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def parser(doc: str | None, *, rounds: int = 5) -> argparse.ArgumentParser:
    """The options every benchmark has."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rounds", type=int, default=rounds, help="how often every way is timed")
    made.add_argument("--out", type=Path, help="where the result goes, as JSON")
    return made


def write(found: Mapping[str, Json], out: Path | None) -> None:
    """Print a result, and write it where asked."""
    print(json.dumps(found, indent=1), flush=True)
    write_file(found, out)


def write_file(found: Mapping[str, Json], out: Path | None) -> None:
    """Write a result where asked, or what is known of it so far."""
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def bold_texts(folder: Path | None = None) -> tuple[list[str], str]:
    """The sentences of BOLD and what they are called; without them the bundled examples, each only once.

    Many are needed, and a text that comes again is read once: further texts are two examples in a row.
    """
    chosen = folder or SHARED / "data" / "bold"
    if chosen.is_dir():
        found = [json.loads(line)["wiki"] for line in _lines(sorted(chosen.glob("*.jsonl")))]
        return [text for text in found if text.strip()], "BOLD"
    import csv

    from evenhand.core.files import asset_path

    with asset_path("examples", "texts.csv").open(encoding="utf-8") as file:
        found = list(dict.fromkeys(row["text"] for row in csv.DictReader(file)))
    pairs = [f"{text} {found[place - far]}" for far in range(1, 40) for place, text in enumerate(found)]
    return found + pairs, "bundled examples"


def _lines(paths: Iterable[Path]) -> Iterable[str]:
    for path in paths:
        yield from path.read_text(encoding="utf-8").splitlines()


def peak_mib() -> float:
    """The most memory this process ever held, in mebibytes."""
    # Not ru_maxrss: a child begins with what its parent had when it was made.
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
