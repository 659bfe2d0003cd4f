"""EEC through the embedded emotion classifier: in batches as `evenhand probe` reads it, and one by one.

    python benchmarks/bench_probe.py EEC.csv [--single 1000] [--out FILE.json]

First the gate: on the sentences read both ways every probability must agree to 1e-5 and every label be the
same. Then the whole corpus is timed in batches, and a part of it one sentence at a time with the same weights
in the same process. Bars: 8,400 sentences within 60 s on two cores, and 5 times the sentences a second.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch

from evenhand.core.assets import asset
from evenhand.neural.classifier import Classifier
from evenhand.suites.pairs.eec import EecSuite

SECONDS, FACTOR = 60.0, 5.0


def fresh() -> Classifier:
    """The embedded classifier without a memory of texts."""
    return Classifier(asset("classifiers"), device=torch.device("cpu"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("eec", type=Path)
    parser.add_argument("--single", type=int, default=1000, help="sentences read one by one")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    texts = [prompt.text for prompt in EecSuite(name=str(args.eec)).prompts()]
    fresh().probabilities(texts[:64])  # warm up
    batched = fresh()
    started = time.perf_counter()
    found = batched.probabilities(texts)
    whole = time.perf_counter() - started
    some = texts[:: max(1, len(texts) // args.single)]
    single = fresh()
    started = time.perf_counter()
    alone = np.concatenate([single.probabilities([text]) for text in some])
    part = time.perf_counter() - started
    together = found[:: max(1, len(texts) // args.single)]
    if np.abs(alone - together).max() > 1e-5 or (alone.argmax(1) != together.argmax(1)).any():
        raise SystemExit("the two ways of reading differ: no speed is reported")
    factor = (len(texts) / whole) / (len(some) / part)
    result = {
        "sentences": len(texts),
        "seconds": round(whole, 2),
        "sentences_a_second": round(len(texts) / whole, 1),
        "one_by_one_a_second": round(len(some) / part, 1),
        "factor": round(factor, 2),
        "threads": torch.get_num_threads(),
        "machine": platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "bars": {"seconds": SECONDS, "factor": FACTOR},
        "passed": whole < SECONDS and factor >= FACTOR,
    }
    print(json.dumps(result, indent=1))
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
