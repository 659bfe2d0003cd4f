"""Texts a second of regard, toxicity, emotion and ideology together, and of a pipeline for each.

    python benchmarks/bench_classifiers.py [--texts 400] [--device cpu] [--out FILE.json]

The rival is the way of Hugging Face `evaluate`'s measurements: a `transformers` pipeline a metric that reads
one text at a time. Each gets the same weights as a BERT. Ours asks the four metrics one after the other, as a
run does: they share one pass of the encoder, batches are of like length, equal texts are read once. Loading
counts on neither side. First the gate: probabilities within 0.001.
"""

from __future__ import annotations

import numpy as np
from harness import Way, bold_texts, gate, parser, result, take_turns, write
from rivals import rival

from evenhand.classifiers.text_classifier import TextClassifier, open_classifier, read_heads
from evenhand.core.files import asset_path
from evenhand.core.records import Execution, Text
from evenhand.metrics.emotion import Emotion
from evenhand.metrics.ideology import Ideology
from evenhand.metrics.regard import Regard
from evenhand.metrics.toxicity import Toxicity
from evenhand.tensors.checkpoints import read_config
from evenhand.tensors.devices import select_device

CLOSE = 1e-3
OTHER = "pipelines, one text at a time"


def together(texts: list[Text], device: str) -> None:
    """The four metrics over the texts, nothing remembered from an earlier round."""
    shared = open_classifier(asset_path("classifiers"), Execution(device=device))
    shared._memo.clear()
    for metric in (Regard, Toxicity, Emotion, Ideology):
        metric(execution=Execution(device=device)).score(texts)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--texts", type=int, default=400)
    options.add_argument("--slow", type=int, default=100, help="texts the pipelines read a round")
    options.add_argument("--device", default="cpu")
    args = options.parse_args()
    every, data = bold_texts()
    texts = every[:: max(1, len(every) // args.texts)][: args.texts]
    few = texts[:: max(1, len(texts) // args.slow)][: args.slow]
    heads = read_heads(read_config(asset_path("classifiers")))
    rivals = [rival(head.name, args.device) for head in heads]
    fast = TextClassifier(asset_path("classifiers"), device=select_device(args.device)).probabilities(few)
    slow = np.concatenate([pipe.read(few) for pipe in rivals], axis=1)
    gate(bool(np.abs(fast - slow).max() <= CLOSE), f"probabilities differ by {np.abs(fast - slow).max():.4f}")
    rendered = [Text(text) for text in texts]
    turns = take_turns(
        {
            "evenhand": Way(lambda: together(rendered, args.device), len(texts)),
            OTHER: Way(lambda: [pipe.read(few) for pipe in rivals], len(few)),
        },
        rounds=args.rounds,
        warm=1,
    )
    said = f"probabilities within {np.abs(fast - slow).max():.0e} on {len(few)} texts and four heads"
    write(result(turns, ours="evenhand", unit="texts/s", gate=said, data=data, texts=len(texts)), args.out)


if __name__ == "__main__":
    main()
