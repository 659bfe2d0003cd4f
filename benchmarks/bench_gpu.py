"""How far one GPU is used: sampling and classifiers at growing batch, beside what the device can do at most.

    python benchmarks/bench_gpu.py --work sampling|classifiers [--shape gpt2-medium] [--out FILE.json]

Sampling: tokens a second, vanilla and with both modes of calibration, of a model of GPT-2-medium's sizes with
random weights, and the share of the device's memory bandwidth that reading all weights once a step takes.
Classifiers: texts a second of the embedded encoder, and the share of the matrix rate that its products take.
What the device can do at most is measured here too, by one large copy and one large product. First the gate:
the texts of a greedy row, or the probabilities, must not depend on the batch.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from bench_mitigation import SHAPES, guides, weights
from harness import Way, bold_texts, gate, joined, parser, result, spent, take_turns, write
from id_codec import IdCodec

from evenhand.core.assets import asset
from evenhand.core.records import GenerationSpec, Request
from evenhand.mitigations.settings import SIGMA
from evenhand.models.decoding import Loop
from evenhand.neural.classifier import Classifier
from evenhand.neural.gpt2 import Gpt2

TOKENS = 48


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def most(device: torch.device, dtype: torch.dtype) -> dict[str, float]:
    """Bytes a second of one large copy, read and written, and operations a second of one large product."""
    size = 1 << (28 if device.type == "cuda" else 22)
    source = torch.ones(size, device=device)
    side = 8192 if device.type == "cuda" else 512
    matrix = torch.randn(side, side, device=device, dtype=dtype)

    def copy() -> None:
        source.clone()
        wait(device)

    def product() -> None:
        matrix @ matrix
        wait(device)

    copy(), product()
    return {
        "bytes_per_second": 8 * size / min(spent(copy).wall for _ in range(5)),
        "operations_per_second": 2 * side**3 / min(spent(product).wall for _ in range(5)),
    }


def sampled(loop: Loop, rows: int, spec: GenerationSpec) -> dict[str, str | None]:
    requests = [Request(str(row), f"{row % 900 + 5} {row % 900 + 6} 7", (0,)) for row in range(rows)]
    return {item.request_id: item.text for item in loop.run(requests, spec)}


def sampling(args: argparse.Namespace, device: torch.device, dtype: torch.dtype) -> dict[str, object]:
    shape = SHAPES[args.shape]
    engine = Gpt2(shape, weights(shape), device=device, dtype=dtype)
    table, _ = engine.output()
    size = sum(tensor.numel() for tensor in weights(shape).values()) * table.element_size()
    spec = GenerationSpec(max_new_tokens=args.tokens, top_k=40, top_p=1.0, stop="none")
    greedy = GenerationSpec(max_new_tokens=8, temperature=0, stop="none")
    alone, many = (sampled(Loop(engine, IdCodec(), batch=rows), 8, greedy) for rows in (1, 8))
    agree = sum(alone[key] == many[key] for key in alone)
    gate(agree >= (8 if dtype == torch.float32 else 6), f"greedy texts agree on {agree} of 8")
    steerings = {"vanilla": None, **{mode: guides(engine, mode)[0] for mode in SIGMA}}
    limit, parts = most(device, dtype), {}
    for rows in map(int, args.batches.split(",")):
        ways = {}
        for name, steering in steerings.items():
            loop = Loop(engine, IdCodec(), batch=rows, steering=steering)
            ways[name] = Way(lambda loop=loop, rows=rows: sampled(loop, rows, spec), rows * args.tokens)
        turns = take_turns(ways, rounds=args.rounds, warm=1)
        steps = turns.rate("vanilla", "wall") / rows
        said = f"greedy texts alike at 1 and 8 rows on {agree} of 8"
        found = result(turns, ours="vanilla", unit="tokens/s", gate=said, data="random weights")
        parts[str(rows)] = found | {"share_of_bandwidth": round(steps * size / limit["bytes_per_second"], 3)}
    return joined(parts) | {"shape": args.shape, "weights_bytes": size, "at_most": limit}


def classifiers(args: argparse.Namespace, device: torch.device, dtype: torch.dtype) -> dict[str, object]:
    texts, data = bold_texts()
    texts = texts[: args.texts]
    shape = Classifier(asset("classifiers"), device=device)._network.encoder.shape
    cells = 12 * shape.layers * shape.width * shape.width
    limit, parts, first = most(device, torch.float32), {}, None
    for rows in map(int, args.batches.split(",")):
        reader = Classifier(asset("classifiers"), device=device, rows=rows)
        some = texts[: max(64, min(len(texts), rows * 64))]
        said = reader.probabilities(some[:64])
        first = said if first is None else first
        gate(bool(np.abs(said - first).max() < 1e-3), "probabilities depend on the batch")

        def read(reader=reader, some=some) -> None:
            reader._memo.clear()
            reader.probabilities(some)

        turns = take_turns({"evenhand": Way(read, len(some))}, rounds=args.rounds, warm=1)
        found = result(turns, ours="evenhand", unit="texts/s", gate="within 1e-3 of one row", data=data)
        tokens = 30 * turns.rate("evenhand", "wall")
        share = 2 * cells * tokens / limit["operations_per_second"]
        parts[str(rows)] = found | {"share_of_matrix_rate": round(share, 4)}
    return joined(parts) | {"at_most": limit, "tokens_a_text": 30}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--work", choices=["sampling", "classifiers"], default="sampling")
    options.add_argument("--shape", choices=sorted(SHAPES), default="gpt2-medium")
    options.add_argument("--device", default="cuda")
    options.add_argument("--dtype", default="bfloat16")
    options.add_argument("--batches", default="1,8,32,128,512,1024")
    options.add_argument("--tokens", type=int, default=TOKENS)
    options.add_argument("--texts", type=int, default=20_000)
    args = options.parse_args()
    device = torch.device(args.device)
    work = sampling if args.work == "sampling" else classifiers
    write(work(args, device, getattr(torch, args.dtype)), args.out)


if __name__ == "__main__":
    main()
