"""Corpus counting beside plain Python sets, ``wc -w`` and hyperscan, in one run over the same text.

Usage: python benchmarks/bench_corpus.py [TEXT] [--terms FILE] [--rounds 5] [--memory-gb 2] [--out FILE]

Ratios are medians over rounds in which the ways take turns; counts are compared before anything is timed.
Times are CPU time of one core, but for two workers and for memory, which are wall time. Without TEXT, a
text is made from our own terms: good for a look, not for a claim.
"""

from __future__ import annotations

import argparse
import json
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

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from evenhand.corpus.engines import run_local
from evenhand.corpus.matcher import build
from evenhand.corpus.scanner import Scanner, Way
from evenhand.corpus.shards import Shard, Task
from evenhand.corpus.sources import find_sources
from evenhand.corpus.terms import TermList, builtin_terms, load_terms, spelled

MB = 1e6
PYTHON_SLICE, HYPERSCAN_SLICE = 4_000_000, 16_000_000
SENTENCE = re.compile(r"\n|[.?!](?=\s)")
WORD = re.compile(r"\w+")


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


def peak_memory(path: Path, gigabytes: float, terms_file: str | None) -> dict[str, float]:
    """Peak memory of one worker over a file of that size, and over a quarter of it."""
    code = (
        "import resource, sys, time\n"
        "from evenhand.corpus.shards import *\n"
        "from evenhand.corpus.sources import find_sources\n"
        "from evenhand.corpus.terms import builtin_terms, load_terms\n"
        "terms = load_terms([sys.argv[2]]) if sys.argv[2] else builtin_terms()\n"
        "task = Task(terms, Way(samples=5)); v = task.vocabulary()\n"
        "t = time.perf_counter(); c = count_shard(Shard(find_sources([sys.argv[1]])[0][0]), task, v)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, time.perf_counter() - t, c.bytes)\n"
    )
    found = {}
    data = path.read_bytes()
    for size in (gigabytes / 4, gigabytes):
        with tempfile.NamedTemporaryFile(suffix=".txt") as file:
            while file.tell() < size * 1e9:
                file.write(data)
            file.flush()
            run = [sys.executable, "-c", code, file.name, terms_file or ""]
            mib, seconds, count = map(float, subprocess.check_output(run, text=True).split())
            found |= {f"peak_mib_{size:g}_gb": mib, f"gb_per_s_{size:g}_gb": count / seconds / 1e9}
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("text", nargs="?", type=Path)
    parser.add_argument("--terms")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=150)
    parser.add_argument("--memory-gb", type=float, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    data = args.text.read_bytes()[: args.megabytes << 20] if args.text else made_up_text(20_000_000)
    terms = load_terms([args.terms]) if args.terms else builtin_terms()
    vocabulary = build(terms, "words")
    check_equal(data[:1_000_000], terms, vocabulary)
    kernel(data[:1000], vocabulary, Way(is_distinct=True))
    text = data[:PYTHON_SLICE].decode("utf-8", "replace")
    with tempfile.TemporaryDirectory() as folder:
        halves = [Path(folder) / f"{name}.txt" for name in "ab"]
        for half in halves:
            half.write_bytes(data)
        task = Task(terms, Way())
        ways: dict[str, Callable[[], float]] = {
            "kernel_flag": lambda: len(data) / MB / cpu(lambda: kernel(data, vocabulary)),
            "kernel_distinct": lambda: (
                len(data) / MB / cpu(lambda: kernel(data, vocabulary, Way(is_distinct=True)))
            ),
            "kernel_samples": lambda: len(data) / MB / cpu(lambda: kernel(data, vocabulary, Way(samples=5))),
            "python_sets": lambda: PYTHON_SLICE / MB / cpu(lambda: python_sets(text, terms)),
            "wc_w": lambda: len(data) / MB / child_cpu(["wc", "-w", str(halves[0])]),
            "one_worker_wall": lambda: 2 * len(data) / MB / workers_wall([str(h) for h in halves], task, 1),
            "two_workers_wall": lambda: 2 * len(data) / MB / workers_wall([str(h) for h in halves], task, 2),
        }
        try:
            scan = hyperscan_way(terms)
            ways["hyperscan"] = lambda: HYPERSCAN_SLICE / MB / cpu(lambda: scan(data[:HYPERSCAN_SLICE]))
        except ImportError:
            print("hyperscan is not installed: left out")
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(args.rounds):
            for name, way in ways.items():
                rates[name].append(way())
        memory = peak_memory(halves[0], args.memory_gb, args.terms) if args.memory_gb else {}
    medians = {name: round(statistics.median(values), 1) for name, values in rates.items()}
    ours = [np.array(rates["kernel_flag"]) / np.array(rates[name]) for name in ("python_sets", "wc_w")]
    ratios = {"python_sets": ours[0], "wc_w": ours[1]}
    if "hyperscan" in rates:
        ratios["hyperscan"] = np.array(rates["kernel_flag"]) / np.array(rates["hyperscan"])
    ratios["two_workers"] = np.array(rates["two_workers_wall"]) / np.array(rates["one_worker_wall"])
    result = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load": os.getloadavg()[0],
        "bytes": len(data),
        "emotion_terms": terms.size[0],
        "group_terms": terms.size[1],
        "mb_per_s": medians,
        "times": {name: round(float(np.median(values)), 2) for name, values in ratios.items()},
        "memory": memory,
    }
    print(json.dumps(result, indent=1))
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
