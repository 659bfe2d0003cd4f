"""Corpus counting beside plain Python sets, ``wc -w``, hyperscan and the paper's loop, over the same text.

    python benchmarks/bench_corpus.py [TEXT] [--terms FILE] [--memory-gb 2] [--check] [--out FILE]

Ratios are medians over rounds in which the ways take turns; counts are compared before anything is timed.
Times are CPU time of one core, but for two workers, packed text and memory, which are wall time. Without TEXT
the news of ``../shared`` is taken where it is there; else a text is made from our own terms: good for a look,
not for a claim. ``--check`` fails where a bar is missed.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from evenhand.corpus.engines import run_local
from evenhand.corpus.matcher import build
from evenhand.corpus.scanner import Scanner, Way
from evenhand.corpus.shards import Shard, Task, count_shard
from evenhand.corpus.sources import find_sources
from evenhand.corpus.terms import TermList, builtin_terms, load_terms, spelled

MB = 1e6
PYTHON_SLICE, HYPERSCAN_SLICE, PAPER_SLICE, PACKED_SLICE = 4_000_000, 16_000_000, 60_000, 30_000_000
SENTENCE = re.compile(r"\n|[.?!](?=\s)")
WORD = re.compile(r"\w+")
SHARED = ROOT.parent / "shared"
BARS = {"python_sets": 50, "wc_w": 2.5, "hyperscan": 5, "paper_loop": 1000, "two_workers": 1.6}
"""Times as fast as each way that we must be."""
MEMORY_BAR = 500
"""Mebibytes a worker may take."""


def python_sets(text: str, terms: TermList) -> Counter[tuple[str, str]]:
    """Plain Python: split sentences, split words, intersect sets. Single words only, as the paper's."""
    emotions = {name: {"".join(spelled(t, "words")) for t in part} for name, part in terms.emotions.items()}
    groups = {group.name: set(map(str.lower, group.terms)) for group in terms.groups}
    counts: Counter[tuple[str, str]] = Counter()
    for sentence in SENTENCE.split(text):
        words = set(WORD.findall(sentence.lower()))
        found = [name for name, part in emotions.items() if words & part]
        seen = [name for name, part in groups.items() if words & part]
        for emotion in found:
            counts[emotion, ""] += 1
            for group in seen:
                counts[emotion, group] += 1
    return counts


def paper_loop(text: str, terms: TermList) -> Counter[tuple[str, str]]:
    """The scheme of the paper's scripts: each term of each list is searched in a sentence's words."""
    counts: Counter[tuple[str, str]] = Counter()
    for sentence in SENTENCE.split(text):
        words = sentence.lower().split()
        found = []
        for emotion, part in terms.emotions.items():
            for term in part:
                if term in words:
                    found.append(emotion)
                    counts[emotion, ""] += 1
                    break
        for group in terms.groups:
            for term in group.terms:
                seen = [emotion for emotion in terms.emotions if term in words and emotion in found]
                if seen:
                    counts[seen[0], group.name] += 1
                    break
    return counts


FLAG = Way()


def kernel(data: bytes, vocabulary, way: Way = FLAG):
    scanner, data = Scanner(vocabulary, way), memoryview(data)
    for start in range(0, len(data), 1 << 20):
        scanner.feed(data[start : start + (1 << 20)])
    return scanner.finish()


def hyperscan_way(terms: TermList) -> Callable[[bytes], int]:
    """The same counts with hyperscan: every match with its place, sorted into sentences afterwards."""
    import hyperscan

    lists = [*terms.emotions.values(), *(group.terms for group in terms.groups)]
    owners: dict[str, int] = {}
    for category, part in enumerate(lists):
        for term in part:
            name = " ".join(spelled(term, "words"))
            owners[name] = owners.get(name, 0) | 1 << category
    names = sorted(set(owners) - {""})
    masks = np.array([owners[name] for name in names])
    gap = r"[- \t']+"
    patterns = [(r"\b" + gap.join(map(re.escape, name.split())) + r"\b").encode() for name in names]
    database = hyperscan.Database()
    flags = [hyperscan.HS_FLAG_CASELESS] * len(patterns)
    database.compile(expressions=patterns, flags=flags, ids=list(range(len(patterns))))

    def scan(data: bytes) -> int:
        ids: list[int] = []
        ends: list[int] = []

        def seen(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            ids.append(number)
            ends.append(end)

        database.scan(data, match_event_handler=seen)
        stops = [match.end() for match in re.finditer(rb"\n|[.?!](?=\s)", data)]
        sentences = np.searchsorted(np.array(stops), np.array(ends))
        sets = np.zeros(len(stops) + 1, dtype=np.int64)
        np.bitwise_or.at(sets, sentences, masks[np.array(ids)])
        return int(np.count_nonzero(np.bincount(sets)))

    return scan


def cpu(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def child_cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C.UTF-8"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def workers_wall(paths: list[str], task: Task, workers: int) -> float:
    sources, _ = find_sources(paths)
    shards = [Shard(source) for source in sources]
    before = time.perf_counter()
    for _ in run_local(shards, task, workers=workers):
        pass
    return time.perf_counter() - before


def packed_wall(data: bytes, folder: Path, task: Task) -> dict[str, float | str]:
    """Unpacked MB/s of wall time over one xz file, unpacked by one thread and counted by another."""
    path = folder / "packed.txt.xz"
    path.write_bytes(lzma.compress(data, preset=1))
    before = time.perf_counter()
    found = count_shard(Shard(find_sources([str(path)])[0][0]), task, task.vocabulary())
    seconds = time.perf_counter() - before
    slower = "reading and unpacking" if found.clock.reading > found.clock.counting else "counting"
    return {"xz_mb_per_s": round(len(data) / MB / seconds, 1), "xz_limited_by": slower}


def peak_memory(data: bytes, folder: Path, gigabytes: float, terms_file: str | None) -> dict[str, float]:
    """Peak memory of one worker over a file of that size, over a quarter of it, and over one endless line."""
    code = (
        "import sys, time\n"
        "from evenhand.corpus.shards import *\n"
        "from evenhand.corpus.sources import find_sources\n"
        "from evenhand.corpus.terms import builtin_terms, load_terms\n"
        "terms = load_terms([sys.argv[2]]) if sys.argv[2] else builtin_terms()\n"
        "task = Task(terms, Way(samples=5)); v = task.vocabulary()\n"
        "t = time.perf_counter(); c = count_shard(Shard(find_sources([sys.argv[1]])[0][0]), task, v)\n"
        # Not ru_maxrss: a child begins with what its parent had when it was made.
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(int(peak.split()[1]) / 1024, time.perf_counter() - t, c.bytes)\n"
    )
    found = {}
    line = data.replace(b"\n", b" ")
    cases = {f"{gigabytes / 4:g}_gb": (gigabytes / 4, data), f"{gigabytes:g}_gb": (gigabytes, data)}
    cases[f"{gigabytes / 2:g}_gb_in_one_line"] = (gigabytes / 2, line)
    for name, (size, piece) in cases.items():
        path = folder / "large.txt"
        with path.open("wb") as file:
            while file.tell() < size * 1e9:
                file.write(piece)
        run = [sys.executable, "-c", code, str(path), terms_file or ""]
        mib, seconds, count = map(float, subprocess.check_output(run, text=True).split())
        found |= {f"peak_mib_{name}": round(mib, 1), f"gb_per_s_{name}": round(count / seconds / 1e9, 3)}
        path.unlink()
    return found


def check_equal(data: bytes, terms: TermList, vocabulary) -> None:
    """Every cell against the slow twin of the tests."""
    from tests.oracles.corpus_counts import count

    counts = kernel(data, vocabulary)
    expected = count([data.decode("utf-8", "replace")], terms)
    assert counts.units == expected["units",], "units differ"
    for i, emotion in enumerate(terms.emotions):
        assert counts.emotions[i] == expected["emotion", emotion], emotion
        for j, group in enumerate(terms.groups):
            assert counts.flags[i, j] == expected["flag", emotion, group.axis, group.name], (emotion, group)


def made_up_text(size: int) -> bytes:
    rng = np.random.default_rng(1)
    terms = builtin_terms()
    special = [*terms.emotions["joy"][:40], *terms.groups[0].terms[:40]]
    common = re.findall(WORD, "the of and to in a is that for it as was with on by at from are this be")
    words = np.array(common * 20 + special)
    picked = words[rng.integers(len(words), size=size // 5)]
    return " ".join(word + ("." if i % 17 == 0 else "") for i, word in enumerate(picked)).encode()


def shared_text(size: int) -> bytes:
    """The news of the shared folder, or a text made from our own terms."""
    packed = SHARED / "corpus" / "news.txt.xz"
    if not packed.exists():
        return made_up_text(20_000_000)
    with lzma.open(packed) as file:
        return file.read(size)


def ways_of(data: bytes, terms: TermList, halves: list[Path]) -> dict[str, Callable[[], float]]:
    """MB/s of each way, measured when called."""
    vocabulary, task = build(terms, "words"), Task(terms, Way())
    text, sample = (
        data[:PYTHON_SLICE].decode("utf-8", "replace"),
        data[:PAPER_SLICE].decode("utf-8", "replace"),
    )
    size = len(data) / MB
    names = [str(half) for half in halves]
    ways: dict[str, Callable[[], float]] = {
        "kernel_flag": lambda: size / cpu(lambda: kernel(data, vocabulary)),
        "kernel_no_intervals": lambda: size / cpu(lambda: kernel(data, vocabulary, Way(blocks=0))),
        "kernel_distinct": lambda: size / cpu(lambda: kernel(data, vocabulary, Way(is_distinct=True))),
        "kernel_samples": lambda: size / cpu(lambda: kernel(data, vocabulary, Way(samples=5))),
        "python_sets": lambda: len(text) / MB / cpu(lambda: python_sets(text, terms)),
        "paper_loop": lambda: len(sample) / MB / cpu(lambda: paper_loop(sample, terms)),
        "wc_w": lambda: size / child_cpu(["wc", "-w", names[0]]),
        "one_worker_wall": lambda: 2 * size / workers_wall(names, task, 1),
        "two_workers_wall": lambda: 2 * size / workers_wall(names, task, 2),
    }
    try:
        scan = hyperscan_way(terms)
        piece = data[:HYPERSCAN_SLICE]
        ways["hyperscan"] = lambda: len(piece) / MB / cpu(lambda: scan(piece))
    except ImportError:
        print("hyperscan is not installed: left out", file=sys.stderr)
    for way in (Way(), Way(blocks=0), Way(is_distinct=True), Way(samples=5)):
        kernel(data[:1000], vocabulary, way)
    return ways


def times_faster(rates: dict[str, list[float]]) -> dict[str, float]:
    """Medians over rounds of our rate over that of each other way."""
    others = [name for name in ("python_sets", "wc_w", "hyperscan", "paper_loop") if name in rates]
    pairs = {name: ("kernel_flag", name) for name in others}
    pairs["two_workers"] = ("two_workers_wall", "one_worker_wall")
    return {
        name: round(float(np.median(np.array(rates[ours]) / np.array(rates[theirs]))), 2)
        for name, (ours, theirs) in pairs.items()
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("text", nargs="?", type=Path)
    parser.add_argument("--terms")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=150)
    parser.add_argument("--memory-gb", type=float, default=2)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def main() -> int:
    args = arguments()
    size = args.megabytes << 20
    data = args.text.read_bytes()[:size] if args.text else shared_text(size)
    published = SHARED / "data" / "affective" / "terms.json"
    chosen = args.terms or (str(published) if published.exists() else None)
    terms = load_terms([chosen]) if chosen else builtin_terms()
    check_equal(data[:1_000_000], terms, build(terms, "words"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        halves = [folder / f"{letter}.txt" for letter in "ab"]
        for half in halves:
            half.write_bytes(data)
        ways = ways_of(data, terms, halves)
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(args.rounds):
            for way, measure in ways.items():
                rates[way].append(measure())
        packed = packed_wall(data[:PACKED_SLICE], folder, Task(terms, Way()))
        memory = peak_memory(data, folder, args.memory_gb, chosen) if args.memory_gb else {}
    times = times_faster(rates)
    result = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load": round(os.getloadavg()[0], 2),
        "bytes": len(data),
        "emotion_terms": terms.size[0],
        "group_terms": terms.size[1],
        "mb_per_s": {name: round(statistics.median(values), 3) for name, values in rates.items()},
        "times": times,
        "packed": packed,
        "memory": memory,
    }
    print(json.dumps(result, indent=1))
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    missed = [name for name, bar in BARS.items() if name in times and times[name] < bar]
    missed += [name for name, mib in memory.items() if name.startswith("peak") and mib > MEMORY_BAR]
    print(f"bars missed: {', '.join(missed) or 'none'}", file=sys.stderr)
    return int(bool(missed and args.check))


if __name__ == "__main__":
    sys.exit(main())
