"""Texts a second of the embedded regard classifier, and of the same weights one text at a time.

    python benchmarks/bench_regard.py [SAMPLES] [--texts N] [--device cpu] [--out FILE.json]

The rival is the way of Hugging Face `evaluate`'s measurement `regard`: a `transformers` pipeline that reads
one text at a time. It gets the same weights as a BERT (the factorised word vectors multiplied out), so that
only the way of working differs: one call of the tokenizer, batches of like length, packed matrices, texts
that occur twice read once.

First the gate: both must give every text the same label, and probabilities within 0.001. Then both are timed
in turn on the same texts and the medians are compared. SAMPLES is a file of texts, one a line, such as the
6,000 of the regard study; without it the bundled regard sentences are used.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rivals import rival

from evenhand.core.assets import asset
from evenhand.neural.classifier import Classifier, HeadReader
from evenhand.neural.devices import device_of

BAR, GOAL = 4.0, 10.0
CLOSE = 1e-3
HEAD = "regard"


def read_texts(path: Path | None, count: int) -> list[str]:
    if path is not None:
        found = [line for line in path.read_text(encoding="utf-8").split("\n") if line]
    else:
        lines = asset("regard", "regard.jsonl").read_text(encoding="utf-8").splitlines()
        found = [json.loads(line)["text"] for line in lines]
    # Spread over the file, whose neighbours are alike.
    step = max(1, len(found) // count)
    return found[::step][:count]


def ours(texts: list[str], device: str) -> np.ndarray:
    """A fresh classifier each time: loading counts, and nothing is remembered between rounds."""
    return HeadReader(Classifier(asset("classifiers"), device=device_of(device)), HEAD).read(texts)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("samples", nargs="?", type=Path)
    parser.add_argument("--texts", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    texts = read_texts(args.samples, args.texts)
    theirs = rival(HEAD, args.device)
    slow, fast = theirs.read(texts), ours(texts, args.device)
    if np.abs(slow - fast).max() > CLOSE or (slow.argmax(1) != fast.argmax(1)).any():
        raise SystemExit(f"the answers differ by {np.abs(slow - fast).max():.4f}: no speed is reported")
    rounds = [
        (seconds(lambda: ours(texts, args.device)), seconds(lambda: theirs.read(texts)))
        for _ in range(args.rounds)
    ]
    quick, tardy = (statistics.median(times) for times in zip(*rounds, strict=True))
    result = {
        "texts": len(texts),
        "different_texts": len(set(texts)),
        "device": args.device,
        "threads": torch.get_num_threads(),
        "largest_difference": float(np.abs(slow - fast).max()),
        "texts_per_second": {
            "evenhand": round(len(texts) / quick),
            "one at a time": round(len(texts) / tardy),
        },
        "ratio": round(tardy / quick, 2),
    }
    print(json.dumps(result, indent=1))
    goal = f"bar {BAR:g}" if args.device == "cpu" else f"bar {GOAL:g}"
    print(f"{result['ratio']}x one text at a time, same weights, {args.device} ({goal})")
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
