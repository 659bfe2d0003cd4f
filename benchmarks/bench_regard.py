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
import logging
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel, BertPreTrainedModel, BertTokenizerFast, pipeline
from transformers.modeling_outputs import SequenceClassifierOutput

from evenhand.core.assets import asset
from evenhand.neural import quantised
from evenhand.neural.checkpoints import read_config
from evenhand.neural.classifier import Classifier, HeadReader, heads_of
from evenhand.neural.devices import device_of

BAR, GOAL = 4.0, 10.0
CLOSE = 1e-3
HEAD = "regard"


class RegardBert(BertPreTrainedModel):
    """The embedded classifier's regard head over a plain BERT."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.query = torch.nn.Parameter(torch.zeros(config.hidden_size))
        self.head = torch.nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, **_):
        states = self.bert(input_ids, attention_mask=attention_mask).last_hidden_state
        scores = (states @ self.query).masked_fill(attention_mask == 0, float("-inf"))
        pooled = (scores.softmax(1)[..., None] * states).sum(1)
        return SequenceClassifierOutput(logits=self.head(pooled))


def rival(device: str):
    """The pipeline over the same weights."""
    folder = asset("classifiers")
    config, weights = read_config(folder), quantised.load(folder / "model.safetensors")
    heads, shape = heads_of(config), config["shape"]
    number = [head.name for head in heads].index(HEAD)
    start = sum(len(head.labels) for head in heads[:number])
    labels = heads[number].labels
    columns = slice(start, start + len(labels))
    model = RegardBert(
        BertConfig(
            vocab_size=shape["vocabulary"],
            hidden_size=shape["width"],
            num_hidden_layers=shape["layers"],
            num_attention_heads=shape["heads"],
            intermediate_size=shape["inner"],
            max_position_embeddings=shape["positions"],
            id2label=dict(enumerate(labels)),
            layer_norm_eps=1e-12,
        )
    )
    scale, shift = (torch.tensor(config[name])[columns] for name in ("scale", "shift"))
    model.load_state_dict(
        as_bert(weights, shape)
        | {
            "query": weights["queries"][number],
            "head.weight": weights["weight"][columns] * scale[:, None],
            "head.bias": weights["bias"][columns] * scale + shift,
        },
        strict=False,
    )
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=shape["positions"])
    return pipeline(
        "text-classification",
        model=model.eval(),
        tokenizer=tokenizer,
        top_k=None,
        truncation=True,
        device=device_of(device),
    ), labels


def as_bert(weights, shape) -> dict[str, torch.Tensor]:
    """The encoder's weights under BERT's names."""
    words = weights["encoder.words.weight"]
    if "encoder.project.weight" in weights:
        words = words @ weights["encoder.project.weight"].T
    found = {
        "bert.embeddings.word_embeddings.weight": words,
        "bert.embeddings.position_embeddings.weight": weights["encoder.positions.weight"],
        "bert.embeddings.token_type_embeddings.weight": torch.zeros(2, shape["width"]),
    }
    found |= _both("bert.embeddings.LayerNorm", "encoder.norm", weights)
    names = {
        "attention.output.dense": "out",
        "attention.output.LayerNorm": "attention_norm",
        "intermediate.dense": "widen",
        "output.dense": "narrow",
        "output.LayerNorm": "norm",
    }
    for layer in range(shape["layers"]):
        theirs, ours = f"bert.encoder.layer.{layer}", f"encoder.layers.{layer}"
        for name, source in names.items():
            found |= _both(f"{theirs}.{name}", f"{ours}.{source}", weights)
        for part in ("weight", "bias"):
            for name, piece in zip(
                ("query", "key", "value"), weights[f"{ours}.qkv.{part}"].chunk(3), strict=True
            ):
                found[f"{theirs}.attention.self.{name}.{part}"] = piece
    return found


def _both(theirs: str, ours: str, weights) -> dict[str, torch.Tensor]:
    return {f"{theirs}.{part}": weights[f"{ours}.{part}"] for part in ("weight", "bias")}


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


def theirs(pipe, texts: list[str], labels) -> np.ndarray:
    rows = [{item["label"]: item["score"] for item in answer} for answer in pipe(texts)]
    return np.array([[row[label] for label in labels] for row in rows])


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
    # The pipeline says at length that it does not know this class; it works.
    logging.getLogger("transformers").setLevel(logging.CRITICAL)
    texts = read_texts(args.samples, args.texts)
    pipe, labels = rival(args.device)
    slow, fast = theirs(pipe, texts, labels), ours(texts, args.device)
    if np.abs(slow - fast).max() > CLOSE or (slow.argmax(1) != fast.argmax(1)).any():
        raise SystemExit(f"the answers differ by {np.abs(slow - fast).max():.4f}: no speed is reported")
    rounds = [
        (seconds(lambda: ours(texts, args.device)), seconds(lambda: theirs(pipe, texts, labels)))
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
