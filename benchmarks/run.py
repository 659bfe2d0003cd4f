"""The whole suite: every benchmark, its figures against the bars and against the committed ratios.

    python benchmarks/run.py [--gpu] [--only NAME ..] [--keep] [--out build/bench]

Each benchmark is a process of its own. Exit code 1 where a bar is missed, a ratio fell by more than a fifth
against ``benchmarks/results``, or a benchmark failed. ``--keep`` copies what was measured there and writes
docs/performance.md again.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bars import BARS, RESULTS, Bar, Machine, read

# Benchmarks import torch before evenhand: how its threads wait is set here, for all of them.
import evenhand  # noqa: F401

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


@dataclass(frozen=True, slots=True)
class Job:
    """A benchmark as the suite runs it: small enough that all of them take a quarter of an hour."""

    name: str
    script: str
    options: str = ""
    machine: Machine = "cpu"


JOBS: tuple[Job, ...] = (
    Job("sentiment", "bench_sentiment.py"),
    Job("word_scores", "bench_word_scores.py"),
    Job("corpus", "bench_corpus.py", "--megabytes 120"),
    Job("wasserstein", "bench_wasserstein.py"),
    Job("bootstrap", "bench_bootstrap.py"),
    Job("sampling-30m", "bench_sampling.py", "--shape 30m --tokens 32"),
    Job("sampling-builtin", "bench_sampling.py", "--shape builtin --tokens 32"),
    Job("sampling-shipped", "bench_sampling.py", "--shape shipped --tokens 32"),
    Job("masked-builtin", "bench_masked.py", "--burn-in 20 --iterations 45"),
    Job("mitigation", "bench_mitigation.py", "--batches 1,8,32 --tokens 20 --reference"),
    Job("classifiers", "bench_classifiers.py", "--texts 1200 --slow 60"),
    Job("regard-cpu", "bench_regard.py", "--slow 200"),
    Job("probe", "bench_probe.py", "--texts 4200"),
    Job("audit", "bench_audit.py", "--ours 1 --slow 60"),
    Job("endpoint", "bench_endpoint.py"),
    Job("annotate", "bench_annotate.py"),
    Job("growth", "bench_growth.py", "--largest 100000"),
    Job("sampling-gpu-medium", "bench_gpu.py", "--work sampling", "gpu"),
    Job("memory-gpu", "bench_gpu.py", "--work memory --shape gpt2", "gpu"),
    Job("classifiers-gpu", "bench_gpu.py", "--work classifiers", "gpu"),
    Job(
        "mitigation-gpu",
        "bench_mitigation.py",
        "--shape gpt2-medium --device cuda --reference 1,32 --batches 1,32",
        "gpu",
    ),
    Job(
        "mitigation-gpu-bf16",
        "bench_mitigation.py",
        "--shape gpt2-medium --device cuda --dtype bfloat16 --batches 32",
        "gpu",
    ),
    Job(
        "mitigation-gpu-whole",
        "bench_mitigation.py",
        "--shape gpt2-medium --device cuda --top-k 0 --support 512 --batches 32",
        "gpu",
    ),
    Job("masked-gpu-builtin", "bench_masked.py", "--device cuda", "gpu"),
    Job(
        "masked-gpu-bert-large-bf16",
        "bench_masked.py",
        "--shape bert-large --device cuda --dtype bfloat16",
        "gpu",
    ),
    Job("regard-gpu", "bench_regard.py", "--device cuda", "gpu"),
)


def main() -> int:
    args = _arguments()
    machine: Machine = "gpu" if args.gpu else "cpu"
    jobs = [job for job in JOBS if job.machine == machine and (not args.only or job.name in args.only)]
    if not jobs:
        print(f"{', '.join(args.only)}: nothing to run on a {machine}; --gpu chooses", file=sys.stderr)
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    failed = [job.name for job in jobs if not _ran(job, args.out)]
    lines = [f"{name}: the benchmark failed" for name in failed]
    lines += [line for job in jobs if job.name not in failed for line in _complaints(job.name, args.out)]
    for line in (*_table(jobs, args.out), *_left_out(jobs, args.out)):
        print(line)
    if args.keep:
        _keep(jobs, args.out)
    said = lines or ["every bar that was measured holds, no ratio is lost"]
    print("\n".join(["", *said]), flush=True)
    return int(bool(lines))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpu", action="store_true", help="what needs one GPU, instead of the rest")
    names = [job.name for job in JOBS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--keep", action="store_true", help="make these the committed results")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    return parser.parse_args()


def _ran(job: Job, out: Path) -> bool:
    started = time.monotonic()
    target = out / f"{job.name}.json"
    target.unlink(missing_ok=True)
    command = [sys.executable, str(HERE / job.script), *job.options.split(), "--out", str(target)]
    print(f"{job.name:24s} ", end="", flush=True)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(f"{time.monotonic() - started:5.0f} s", flush=True)
    if done.returncode:
        print((done.stdout + done.stderr)[-2000:], flush=True)
    return done.returncode == 0 and target.exists()


def _figures(name: str, folder: Path) -> Iterator[tuple[Bar, float | None]]:
    """Every bar of a result with its figure; None where a rival is not installed or the run too small."""
    found = read(folder, name)
    for bar in BARS:
        if bar.file == name:
            yield bar, bar.figure(found) if found else None


def _complaints(name: str, out: Path) -> Iterator[str]:
    """Bars missed, and ratios lost against the committed ones where both were measured on the same data."""
    new, old = read(out, name), read(RESULTS, name)
    alike = bool(new and old) and new.get("data") == old.get("data")
    for bar, figure in _figures(name, out):
        if figure is None:
            continue
        said = f"{bar.work} / {bar.against}: {figure:g} {bar.unit}"
        if not bar.holds(figure):
            yield f"{said}, the bar is {bar.bar:g}"
        committed = bar.figure(old) if alike else None
        if committed is not None and bar.is_worse(figure, committed):
            yield f"{said}, committed is {committed:g}"


def _table(jobs: list[Job], out: Path) -> Iterator[str]:
    for job in jobs:
        for bar, figure in _figures(job.name, out):
            sign = "<=" if bar.at_most else ">="
            mark = "-" if figure is None else "ok" if bar.holds(figure) else "MISS"
            told = "unmeasured" if figure is None else f"{figure:10.4g}"
            yield f"{mark:4s} {told} {bar.unit:10s} {sign} {bar.bar:<6g} {bar.work} / {bar.against}"


def _left_out(jobs: list[Job], out: Path) -> Iterator[str]:
    """Rivals that are not there, and how to get them."""
    for job in jobs:
        found = read(out, job.name) or {}
        if "left_out" in found:
            yield f"{job.name}: {found['left_out']}"


def _keep(jobs: list[Job], out: Path) -> None:
    for job in jobs:
        new, old = read(out, job.name), read(RESULTS, job.name)
        if new is None:
            continue
        if old is not None and old.get("data", new.get("data")) != new.get("data"):
            # A smaller run, or bundled texts, must not take the place of the real one.
            print(f"{job.name}: not kept, it was measured on {new.get('data')}, not on {old.get('data')}")
            continue
        shutil.copyfile(out / f"{job.name}.json", RESULTS / f"{job.name}.json")
    subprocess.run([sys.executable, str(ROOT / "scripts" / "write_performance.py")], check=True)


if __name__ == "__main__":
    sys.exit(main())
