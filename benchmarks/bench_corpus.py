"""Corpus counting beside plain Python sets, ``wc -w``, hyperscan and the paper's loop, over the same text.

    python benchmarks/bench_corpus.py [TEXT] [--terms FILE] [--memory-gb 2] [--out FILE]

Counts are compared with those of the slow twin in tests/oracles before anything is timed. The paper's loop is
written here from the paper's Algorithm 1, in the most obvious way: for every sentence each term of each list
is looked for in the list of its words; a small slice is enough to know its rate. It and plain Python know
single words alone, and their counts are not compared. ``wc`` and the workers read files from the page cache,
all others what is in memory: ``one worker`` over ``wc -w`` is the ratio with reading. Two workers, packed
text and memory are told by wall time. Without TEXT the news of ``../shared`` is taken where it is
there; else a text is made from our own terms: good for a look, not for a claim.
"""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness import SHARED, Turns, Way, gate, parser, result, take_turns, write
from numpy.typing import NDArray

from evenhand.corpus.scanner import BlockCounts, Scanner
from evenhand.corpus.scanner import CountingConfig as Counting
from evenhand.corpus.shards import CorpusShard, ScanTask, count_shard, run_local
from evenhand.corpus.term_lists import TermList, builtin_terms, load_terms, split_term
from evenhand.corpus.term_matcher import build_vocabulary
from evenhand.store.text_sources import find_sources

MB = 1e6
PYTHON_SLICE, HYPERSCAN_SLICE, PAPER_SLICE, PACKED_SLICE = 4_000_000, 16_000_000, 60_000, 30_000_000
SENTENCE = re.compile(r"\n|[.?!](?=\s)")
WORD = re.compile(r"\w+")
GATE = "every cell equals the slow twin's on 1 MB"
Scan = Callable[[bytes], NDArray[np.int64]]


def python_sets(text: str, terms: TermList) -> Counter[tuple[str, str]]:
    """Plain Python: split sentences, split words, intersect sets. Single words only, as the paper's."""
    emotions = {
        name: {"".join(split_term(t, "words")) for t in part} for name, part in terms.emotions.items()
    }
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
    """Algorithm 1 as it reads: each term of each list is looked for in the list of a sentence's words.

    The first term of an emotion that is found counts the emotion, the first of a group that shares the
    sentence with one counts the pair.
    """
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


FLAG = Counting()


def kernel(data: bytes, vocabulary, way: Counting = FLAG):
    scanner, data = Scanner(vocabulary, way), memoryview(data)
    for start in range(0, len(data), 1 << 20):
        scanner.feed(data[start : start + (1 << 20)])
    return scanner.finish()


def hyperscan_way(terms: TermList) -> Scan | None:
    """The same counts with hyperscan: every match with its place, sorted into sentences afterwards.

    What it gives is how many sentences have each set of emotions and groups, by the bits of the set. None
    where hyperscan is not installed.
    """
    try:
        import hyperscan
    except ImportError:
        print("hyperscan is not installed: left out", file=sys.stderr)
        return None

    lists = [*terms.emotions.values(), *(group.terms for group in terms.groups)]
    owners: dict[str, int] = {}
    for category, part in enumerate(lists):
        for term in part:
            name = " ".join(split_term(term, "words"))
            owners[name] = owners.get(name, 0) | 1 << category
    names = sorted(set(owners) - {""})
    masks = np.array([owners[name] for name in names])
    gap = r"[- \t']+"
    patterns = [(r"\b" + gap.join(map(re.escape, name.split())) + r"\b").encode() for name in names]
    database = hyperscan.Database()
    flags = [hyperscan.HS_FLAG_CASELESS] * len(patterns)
    database.compile(expressions=patterns, flags=flags, ids=list(range(len(patterns))))

    def scan(data: bytes) -> NDArray[np.int64]:
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
        return np.bincount(sets)

    return scan


def wc(path: str) -> None:
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    subprocess.run(["wc", "-w", path], check=True, stdout=subprocess.DEVNULL, env=environment)


def counted(paths: list[str], task: ScanTask, workers: int) -> None:
    sources, _ = find_sources(paths)
    for _ in run_local([CorpusShard(source) for source in sources], task, workers=workers):
        pass


def packed_wall(data: bytes, folder: Path, task: ScanTask) -> dict[str, float | str]:
    """Unpacked MB/s of wall time over one xz file, unpacked by one thread and counted by another."""
    path = folder / "packed.txt.xz"
    path.write_bytes(lzma.compress(data, preset=1))
    before = time.perf_counter()
    found = count_shard(CorpusShard(find_sources([str(path)])[0][0]), task, task.vocabulary())
    seconds = time.perf_counter() - before
    values = dict(found["counts"].iter_rows())
    is_reading = values["clock.reading"] > values["clock.counting"]
    slower = "reading and unpacking" if is_reading else "counting"
    return {"xz_mb_per_s": round(len(data) / MB / seconds, 1), "xz_limited_by": slower}


def peak_memory(data: bytes, folder: Path, gigabytes: float, terms_file: str | None) -> dict[str, float]:
    """Peak memory of one worker over a file of that size, over a quarter of it, and over one endless line."""
    code = (
        "import sys, time\n"
        "from evenhand.corpus.shards import *\n"
        "from evenhand.store.text_sources import find_sources\n"
        "from evenhand.corpus.term_lists import builtin_terms, load_terms\n"
        "terms = load_terms([sys.argv[2]]) if sys.argv[2] else builtin_terms()\n"
        "task = ScanTask(terms, CountingConfig(samples=5)); v = task.vocabulary(); source = sys.argv[1]\n"
        "t = time.perf_counter(); c = count_shard(CorpusShard(find_sources([source])[0][0]), task, v)\n"
        # Not ru_maxrss: a child begins with what its parent had when it was made.
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(int(peak.split()[1]) / 1024, time.perf_counter() - t, dict(c['counts'].rows())['bytes'])\n"
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


def counts_of(data: bytes, terms: TermList, vocabulary) -> BlockCounts:
    """The counts of a text, summed over the blocks of its documents."""
    return ScanTask(terms, FLAG).layout.split(kernel(data, vocabulary).blocks.sum(axis=0))


def check_equal(data: bytes, terms: TermList, vocabulary) -> None:
    """Every cell against the slow twin of the tests."""
    from tests.oracles.corpus_counts import count

    counts = counts_of(data, terms, vocabulary)
    expected = count([data.decode("utf-8", "replace")], terms)
    gate(counts.units == expected["units",], "units differ")
    for i, emotion in enumerate(terms.emotions):
        gate(counts.emotions[i] == expected["emotion", emotion], f"{emotion} differs")
        for j, group in enumerate(terms.groups):
            wanted = expected["flag", emotion, group.axis, group.name]
            gate(counts.flags[i, j] == wanted, f"{emotion} with {group.name} differs")


def check_hyperscan(scan: Scan, data: bytes, terms: TermList, vocabulary) -> float:
    """The share of pairs of emotion and group it counts otherwise: it knows no letters beyond ASCII."""
    ours, kinds = counts_of(data, terms, vocabulary).flags, scan(data)
    sets, first = np.flatnonzero(kinds), len(terms.emotions)
    has = sets[:, None] >> np.arange(first + len(terms.groups)) & 1
    theirs = (has[:, :first] * kinds[sets][:, None]).T @ has[:, first:]
    away = float(np.abs(ours - theirs).sum() / ours.sum())
    gate(away <= 0.01, f"hyperscan counts {100 * away:.2f} % of the pairs otherwise")
    return away


def made_up_text(size: int) -> bytes:
    rng = np.random.default_rng(1)
    terms = builtin_terms()
    special = [*terms.emotions["joy"][:40], *terms.groups[0].terms[:40]]
    common = re.findall(WORD, "the of and to in a is that for it as was with on by at from are this be")
    words = np.array(common * 20 + special)
    picked = words[rng.integers(len(words), size=size // 5)]
    return " ".join(word + ("." if i % 17 == 0 else "") for i, word in enumerate(picked)).encode()


def text_of(path: Path | None, size: int) -> tuple[bytes, str]:
    """The text, and what it is: given, the news of the shared folder, or made from our own terms."""
    if path:
        with path.open("rb") as file:
            return file.read(size), path.name
    packed = SHARED / "corpus" / "news.txt.xz"
    if not packed.exists():
        return made_up_text(20_000_000), "made up"
    with lzma.open(packed) as file:
        return file.read(size), "US news"


def ways_of(data: bytes, terms: TermList, halves: list[Path], scan: Scan | None) -> dict[str, Way]:
    """Every way over as much of the text as its rate asks for, in megabytes."""
    vocabulary, task = build_vocabulary(terms, "words"), ScanTask(terms, Counting())
    text = data[:PYTHON_SLICE].decode("utf-8", "replace")
    sample = data[:PAPER_SLICE].decode("utf-8", "replace")
    size, names = len(data) / MB, [str(half) for half in halves]
    kinds = {
        "evenhand": Counting(),
        "distinct": Counting(is_distinct=True),
        "with samples": Counting(samples=5),
    }
    ways = {name: Way(lambda kind=kind: kernel(data, vocabulary, kind), size) for name, kind in kinds.items()}
    ways |= {
        "plain Python sets": Way(lambda: python_sets(text, terms), len(text) / MB),
        "wc -w": Way(lambda: wc(names[0]), size),
        "one worker": Way(lambda: counted(names, task, 1), 2 * size),
        "two workers": Way(lambda: counted(names, task, 2), 2 * size),
        "the paper's loop": Way(lambda: paper_loop(sample, terms), len(sample) / MB),
    }
    if scan is not None:
        piece = data[:HYPERSCAN_SLICE]
        ways["hyperscan"] = Way(lambda: scan(piece), len(piece) / MB)
    for kind in kinds.values():
        kernel(data[:1000], vocabulary, kind)
    return ways


def two_workers(turns: Turns) -> dict[str, float]:
    return {"wall": round(turns.ratio("two workers", "one worker", "wall"), 3)}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("text", nargs="?", type=Path)
    options.add_argument("--terms")
    options.add_argument("--megabytes", type=int, default=150)
    options.add_argument("--memory-gb", type=float, default=2)
    args = options.parse_args()
    data, called = text_of(args.text, args.megabytes << 20)
    published = SHARED / "data" / "affective" / "terms.json"
    chosen = args.terms or (str(published) if published.exists() else None)
    terms = load_terms([chosen]) if chosen else builtin_terms()
    vocabulary, scan, said = build_vocabulary(terms, "words"), hyperscan_way(terms), GATE
    check_equal(data[:1_000_000], terms, vocabulary)
    if scan is not None:
        away = check_hyperscan(scan, data[:HYPERSCAN_SLICE], terms, vocabulary)
        said += f"; hyperscan is {100 * away:.2g} % of the pairs away"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        halves = [folder / f"{letter}.txt" for letter in "ab"]
        for half in halves:
            half.write_bytes(data)
        turns = take_turns(ways_of(data, terms, halves, scan), rounds=args.rounds)
        packed = packed_wall(data[:PACKED_SLICE], folder, ScanTask(terms, Counting()))
        memory = peak_memory(data, folder, args.memory_gb, chosen) if args.memory_gb else {}
    found = result(
        turns,
        ours="evenhand",
        unit="MB/s",
        gate=said,
        data=called,
        bytes=len(data),
        emotion_terms=terms.size[0],
        group_terms=terms.size[1],
        packed=packed,
        memory=memory,
        peak_mib=max((size for name, size in memory.items() if name.startswith("peak")), default=None),
    )
    found["ratios"]["one worker, by two"] = two_workers(turns)
    write(found, args.out)


if __name__ == "__main__":
    main()
