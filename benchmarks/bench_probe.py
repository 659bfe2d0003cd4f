"""EEC through the embedded emotion classifier: as `evenhand probe` reads it, and one sentence at a time.

    python benchmarks/bench_probe.py [EEC.csv] [--texts N] [--single 300] [--rounds 5] [--out FILE.json]

Two ways of reading sentence by sentence stand beside ours, both with the same weights: a `transformers`
pipeline, which is what people use, and our own classifier asked for one text at a time, which shows what
batches alone bring. First the gate: on the sentences read one by one every probability must agree to 1e-5 and
every label be the same. Then the ways take turns, ours over the whole corpus, or over ``--texts`` of it, the
others over a part of that. Without a copy of EEC the bundled counterfactual pairs are read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from harness import SHARED, Way, gate, parser, result, take_turns, write
from rivals import rival

from evenhand.classifiers.text_classifier import HeadReader, TextClassifier
from evenhand.core.files import asset_path
from evenhand.core.registry import create_suite
from evenhand.suites.pairs.eec import EecSuite

HEAD = "emotion"


def fresh() -> HeadReader:
    """The embedded classifier without a memory of texts."""
    return HeadReader(TextClassifier(asset_path("classifiers"), device=torch.device("cpu")), HEAD)


def one_by_one(texts: list[str]) -> np.ndarray:
    """Our own classifier, asked for one text at a time."""
    reader = fresh()
    return np.concatenate([reader.read([text]) for text in texts])


def sentences(given: Path | None) -> tuple[list[str], str]:
    path = given or SHARED / "data" / "affective" / "eec.csv"
    if not path.is_file():
        return [prompt.text for prompt in create_suite("pairs").prompts()], "bundled pairs"
    return [prompt.text for prompt in EecSuite(name=str(path)).prompts()], "EEC"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("eec", nargs="?", type=Path)
    options.add_argument("--texts", type=int, help="sentences ours reads, spread over the corpus")
    options.add_argument("--single", type=int, default=300, help="sentences read one by one")
    args = options.parse_args()
    every, data = sentences(args.eec)
    texts = every[:: max(1, len(every) // (args.texts or len(every)))][: args.texts]
    step = max(1, len(texts) // args.single)
    some, theirs = texts[::step], rival(HEAD)
    together = fresh().read(texts)[::step]
    for alone in (theirs.read(some), one_by_one(some)):
        same = np.abs(alone - together).max() <= 1e-5 and (alone.argmax(1) == together.argmax(1)).all()
        gate(bool(same), "the ways of reading differ")
    turns = take_turns(
        {
            "evenhand": Way(lambda: fresh().read(texts), len(texts)),
            "pipeline, one by one": Way(lambda: theirs.read(some), len(some)),
            "evenhand, one by one": Way(lambda: one_by_one(some), len(some)),
        },
        rounds=args.rounds,
    )
    facts = {"texts": len(texts), "seconds": round(len(texts) / turns.rate("evenhand", "wall"), 2)}
    said = f"probabilities within 1e-5, labels the same, on {len(some):,} texts"
    write(result(turns, ours="evenhand", unit="texts/s", gate=said, data=data, **facts), args.out)


if __name__ == "__main__":
    main()
