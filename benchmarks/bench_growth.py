"""Time and memory of score, compare and report for a thousand to a million texts.

    python benchmarks/bench_growth.py [--largest 1000000] [--out FILE.json]

Every command runs in a process of its own, whose peak memory is read at its end. Texts are made of common
words, in eight groups, ten a prompt; two runs with different texts are compared. The two metrics cost little,
so that the rest is measured: reading, tables, statistics, pages. ``growth`` is the time of the largest size
over ten times that of the size before it: 1 is linear, less is better; of one size it is not told.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from harness import FORMAT, machine, parser, write

GROUPS = [f"group {letter}" for letter in "abcdefgh"]
SAMPLES = 10
METRICS = "sentiment,gender_polarity"
PLAIN = "the a of to and in that was for on with as at by from her his they people city work day"
TOLD = "good bad great terrible happy sad kind cruel love hate she he"
CODE = """
import sys, time
sys.path.insert(0, {here!r})
from harness import peak_mib
import evenhand, polars, numba
started = time.perf_counter()
{work}
print(time.perf_counter() - started, peak_mib())
"""


def texts(count: int, seed: int) -> pl.DataFrame:
    """Sentences of eight to twenty common words, a few of them with a sentiment."""
    rng = np.random.default_rng(seed)
    words = np.array(PLAIN.split() * 4 + TOLD.split())
    lengths = rng.integers(8, 20, count)
    drawn = words[rng.integers(0, len(words), int(lengths.sum()))]
    ends = np.cumsum(lengths)
    sentences = [" ".join(drawn[end - size : end]) + "." for end, size in zip(ends, lengths, strict=True)]
    prompts = np.arange(count) // SAMPLES
    return pl.DataFrame(
        {
            "id": [f"t{number}" for number in range(count)],
            "text": sentences,
            "group": [GROUPS[prompt % len(GROUPS)] for prompt in prompts],
            "prompt": [f"Prompt number {prompt} was" for prompt in prompts],
        }
    )


def ran(work: str) -> tuple[float, float]:
    """Seconds and peak mebibytes of a piece of Python, imports not counted."""
    code = CODE.format(here=str(Path(__file__).parent), work=work)
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seconds, mib = said.stdout.split()[-2:]
    return float(seconds), float(mib)


def measured(count: int, folder: Path) -> list[dict[str, object]]:
    runs = []
    for seed in (1, 2):
        path = folder / f"texts{seed}.parquet"
        texts(count, seed).write_parquet(path)
        runs.append(folder / f"run-{count}-{seed}")
        found = ran(
            f"evenhand.score({str(path)!r}, group={{'g': 'group'}}, prompt='prompt', id='id', "
            f"metrics={METRICS!r}, out={str(runs[-1])!r})"
        )
        if seed == 1:
            score = found
    one, other = map(str, runs)
    works = {
        "compare": f"evenhand.compare({one!r}, {other!r}, out={str(folder / f'beside-{count}')!r})",
        "report": f"evenhand.render({one!r}, ('html', 'json', 'md'))",
    }
    timed = {"score": score, **{name: ran(work) for name, work in works.items()}}
    return [
        {"texts": count, "command": name, "seconds": round(seconds, 3), "mib": round(mib, 1)}
        for name, (seconds, mib) in timed.items()
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--largest", type=int, default=1_000_000)
    args = options.parse_args()
    sizes = [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= args.largest]
    if not sizes:
        options.error("--largest is 1,000 or more")
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        for size in sizes:
            rows += measured(size, Path(name))
            print(json.dumps(rows[-3:]), file=sys.stderr, flush=True)
    at = {(row["texts"], row["command"]): row for row in rows}
    last, before = sizes[-1], sizes[-2:][0]
    found: dict[str, object] = {
        "format": FORMAT,
        "gate": "no rival",
        "data": f"made up, {last:,} texts",
        "rows": rows,
        "growth": {
            name: round(at[last, name]["seconds"] / at[before, name]["seconds"] / (last / before), 3)
            for name in ("score", "compare", "report")
            if last > before
        },
        "machine": machine(),
    }
    if last >= 1_000_000:
        found |= {"score_mib": at[last, "score"]["mib"], "report_seconds": at[last, "report"]["seconds"]}
    write(found, args.out)


if __name__ == "__main__":
    main()
