"""EEC through the embedded emotion classifier: as `evenhand probe` reads it, and one sentence at a time.

    python benchmarks/bench_probe.py EEC.csv [--single 1000] [--rounds 5] [--out FILE.json]

Two ways of reading sentence by sentence stand beside ours, both with the same weights: a `transformers`
pipeline, which is what people use, and our own classifier asked for one text at a time, which shows what
batches alone bring. First the gate: on the sentences read one by one every probability must agree to 1e-5 and
every label be the same. Then the ways take turns, ours over the whole corpus and the others over a part.
Bars: 8,400 sentences within 60 s on two cores, and 5 times the pipeline's sentences a second.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rivals import rival

from evenhand.core.assets import asset
from evenhand.neural.classifier import Classifier, HeadReader
from evenhand.suites.pairs.eec import EecSuite

SECONDS, FACTOR = 60.0, 5.0
HEAD = "emotion"


def fresh() -> HeadReader:
    """The embedded classifier without a memory of texts."""
    return HeadReader(Classifier(asset("classifiers"), device=torch.device("cpu")), HEAD)


def one_by_one(texts: list[str]) -> np.ndarray:
    """Our own classifier, asked for one text at a time."""
    reader = fresh()
    return np.concatenate([reader.read([text]) for text in texts])


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("eec", type=Path)
    parser.add_argument("--single", type=int, default=1000, help="sentences read one by one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    texts = [prompt.text for prompt in EecSuite(name=str(args.eec)).prompts()]
    step = max(1, len(texts) // args.single)
    some, theirs = texts[::step], rival(HEAD)
    together = fresh().read(texts)[::step]
    for alone in (theirs.read(some), one_by_one(some)):
        if np.abs(alone - together).max() > 1e-5 or (alone.argmax(1) != together.argmax(1)).any():
            raise SystemExit("the ways of reading differ: no speed is reported")
    rounds = [
        (
            seconds(lambda: fresh().read(texts)) / len(texts),
            seconds(lambda: theirs.read(some)) / len(some),
            seconds(lambda: one_by_one(some)) / len(some),
        )
        for _ in range(args.rounds)
    ]
    ours, piped, own = (statistics.median(times) for times in zip(*rounds, strict=True))
    result = {
        "sentences": len(texts),
        "seconds": round(ours * len(texts), 2),
        "sentences_a_second": {
            "evenhand": round(1 / ours, 1),
            "pipeline, one by one": round(1 / piped, 1),
            "evenhand, one by one": round(1 / own, 1),
        },
        "factor": round(piped / ours, 2),
        "factor_to_own": round(own / ours, 2),
        "threads": torch.get_num_threads(),
        "machine": platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "bars": {"seconds": SECONDS, "factor": FACTOR},
        "passed": ours * len(texts) < SECONDS and piped / ours >= FACTOR,
    }
    print(json.dumps(result, indent=1))
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
