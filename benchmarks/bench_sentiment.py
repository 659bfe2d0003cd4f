"""Texts a second of our VADER and of the vaderSentiment package, same texts, same run.

    python benchmarks/bench_sentiment.py [BOLD_FOLDER] [--out FILE.json]

First the gate: every score must be bit-identical. Then both are timed in turn and the medians are compared.
Without a folder of BOLD's JSONL files the bundled example texts are repeated.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from evenhand.core.assets import asset
from evenhand.core.records import Text
from evenhand.metrics.sentiment import Sentiment

BAR = 7.0


def read_texts(folder: Path | None) -> list[str]:
    if folder is None:
        with asset("examples", "texts.csv").open(encoding="utf-8") as file:
            return [row["text"] for row in csv.DictReader(file)] * 40
    return [
        json.loads(line)["wiki"]
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    texts = read_texts(args.folder)
    rendered = [Text(text) for text in texts]
    ours, package = Sentiment(), SentimentIntensityAnalyzer()
    got = [row["compound"].value for row in ours.score(rendered)]
    wanted = [package.polarity_scores(text)["compound"] for text in texts]
    if got != wanted:
        raise SystemExit("the scores differ: no speed is reported")
    rounds = [
        (
            seconds(lambda: ours.score(rendered)),
            seconds(lambda: [package.polarity_scores(text) for text in texts]),
        )
        for _ in range(args.rounds)
    ]
    fast, slow = (statistics.median(times) for times in zip(*rounds, strict=True))
    result = {
        "texts": len(texts),
        "texts_per_second": {
            "evenhand": round(len(texts) / fast),
            "vaderSentiment": round(len(texts) / slow),
        },
        "ratio": round(slow / fast, 2),
    }
    print(json.dumps(result, indent=1))
    print(f"{result['ratio']}x vaderSentiment, scores bit-identical (bar {BAR:g})")
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
