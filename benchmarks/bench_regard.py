"""Texts a second of the embedded regard classifier, and of the same weights one text at a time.

    python benchmarks/bench_regard.py [SAMPLES] [--texts N] [--slow N] [--device cpu] [--out FILE.json]

The rival is the way of Hugging Face `evaluate`'s measurement `regard`: a `transformers` pipeline that reads
one text at a time. It gets the same weights as a BERT (the factorised word vectors multiplied out), so that
only the way of working differs: one call of the tokenizer, batches of like length, packed matrices, texts
that occur twice read once. Loading counts on neither side.

First the gate: both must give every text the same label, and probabilities within 0.001. Then both are timed
in turn and the medians are compared. The pipeline may read fewer texts, spread over ours (``--slow``): a text
costs it the same whatever their number. SAMPLES is a file of texts, one a line, such as the 6,000 of the
regard study; without it the bundled regard sentences are used.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from harness import Way, gate, parser, result, take_turns, write
from rivals import rival

from evenhand.classifiers.text_classifier import HeadReader, TextClassifier
from evenhand.core.files import asset_path
from evenhand.tensors.devices import select_device

CLOSE = 1e-3
HEAD, OTHER = "regard", "pipeline, one text at a time"


def read_texts(path: Path | None, count: int) -> tuple[list[str], str]:
    """Texts spread over a file, whose neighbours are alike, and what they are called."""
    if path is not None:
        found, data = [line for line in path.read_text(encoding="utf-8").split("\n") if line], path.name
    else:
        lines = asset_path("regard", "regard.jsonl").read_text(encoding="utf-8").splitlines()
        found, data = [json.loads(line)["text"] for line in lines], "bundled regard sentences"
    step = max(1, len(found) // count)
    return found[::step][:count], data


def ours(texts: list[str], classifier: TextClassifier) -> np.ndarray:
    """Nothing is remembered between rounds."""
    classifier._memo.clear()
    return HeadReader(classifier, HEAD).read(texts)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("samples", nargs="?", type=Path)
    options.add_argument("--texts", type=int, default=6000)
    options.add_argument("--slow", type=int, help="texts the pipeline reads a round; all where not given")
    options.add_argument("--device", default="cpu")
    args = options.parse_args()
    texts, data = read_texts(args.samples, args.texts)
    theirs = rival(HEAD, args.device)
    mine = TextClassifier(asset_path("classifiers"), device=select_device(args.device))
    few = texts[:: max(1, len(texts) // (args.slow or len(texts)))][: args.slow]
    slow, fast = theirs.read(few), ours(few, mine)
    away = float(np.abs(slow - fast).max())
    gate(away <= CLOSE, f"the probabilities differ by {away:.4f}")
    gate(bool((slow.argmax(1) == fast.argmax(1)).all()), "the labels differ")
    turns = take_turns(
        {
            "evenhand": Way(lambda: ours(texts, mine), len(texts)),
            OTHER: Way(lambda: theirs.read(few), len(few)),
        },
        rounds=args.rounds,
        warm=1,
    )
    facts = {
        "texts": len(texts),
        "different_texts": len(set(texts)),
        "device": args.device,
        "ratio": round(turns.ratio("evenhand", OTHER, "wall"), 2),
    }
    said = f"labels the same, probabilities within {away:.0e}, on {len(few):,} texts"
    write(result(turns, ours="evenhand", unit="texts/s", gate=said, data=data, **facts), args.out)


if __name__ == "__main__":
    main()
