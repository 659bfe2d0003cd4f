"""How far one GPU is used: sampling and classifiers at growing batch, beside what the device can do at most.

    python benchmarks/bench_gpu.py --work sampling|classifiers|memory [--shape gpt2-medium] [--out FILE.json]

Sampling: tokens a second, vanilla (recorded and, beside it, by plain calls) and with both modes of
calibration, of a model of GPT-2-medium's sizes with random weights; for each the share of the device's memory
bandwidth that reading all weights once a step takes, and the share of its matrix rate their products take.
Classifiers: texts a second of the embedded encoder, and the share of the matrix rate that its products take.
What the device can do at most is measured here too, by one large copy and one large product. First the gate:
greedy texts in float32 must not depend on the batch nor on recording, nor the probabilities on the batch.
Memory: this process is allowed a few GiB only, and writes more rows than fit: once with the automatic batch
size, which grows until memory says no, and once with all rows asked for at once, which must be halved in the
middle of the work. No text may be missing, and all must be those of 32 rows at a time.
"""

from __future__ import annotations

import argparse
import logging
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from bench_mitigation import SHAPES, guides, weights
from harness import (
    FORMAT,
    Way,
    bold_texts,
    gate,
    joined,
    machine,
    parser,
    result,
    share,
    spent,
    take_turns,
    write,
)
from id_codec import IdCodec

from evenhand.core.assets import asset
from evenhand.core.records import GenerationSpec, Request
from evenhand.mitigations.settings import SIGMA
from evenhand.models.decoding import Loop
from evenhand.models.desk import Desk
from evenhand.neural import wordpiece
from evenhand.neural.classifier import Classifier
from evenhand.neural.gpt2 import Gpt2

TOKENS = 48
COMPARED = 256
"""Texts a processor reads too, in float32, before a GPU is timed."""


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
    made = weights(shape)
    engine = Gpt2(shape, made, device=device, dtype=dtype)
    cells = sum(tensor.numel() for tensor in made.values())
    size = cells * engine.output()[0].element_size()
    spec = GenerationSpec(max_new_tokens=args.tokens, top_k=40, top_p=1.0, stop="none")
    agree = gated(engine, Gpt2(shape, made, device=device, dtype=torch.float32))
    steerings = {"vanilla": None, **{mode: guides(engine, mode)[0] for mode in SIGMA}}
    limit, parts = most(device, dtype), {}
    for rows in map(int, args.batches.split(",")):
        loops = {name: Loop(engine, IdCodec(), batch=rows, steering=one) for name, one in steerings.items()}
        loops["plain calls"] = Loop(engine, IdCodec(), batch=rows, desk=Desk(records=False))
        turns = take_turns(writing(loops, rows, spec), rounds=args.rounds, warm=1)
        found = result(turns, ours="vanilla", unit="tokens/s", gate=agree, data="random weights")
        rates = {name: turns.rate(name, "wall") for name in loops}
        bytes_, operations = limit["bytes_per_second"], limit["operations_per_second"]
        parts[str(rows)] = found | {
            "shares_of_bandwidth": {name: share(rate / rows * size, bytes_) for name, rate in rates.items()},
            "shares_of_matrix_rate": {
                name: share(rate * 2 * cells, operations) for name, rate in rates.items()
            },
        }
    return joined(parts) | {"shape": args.shape, "weights_bytes": size, "at_most": limit}


def writing(loops: dict[str, Loop], rows: int, spec: GenerationSpec) -> dict[str, Way]:
    """Each loop as a way to write that many rows."""
    count = rows * spec.max_new_tokens
    return {name: Way(partial(sampled, loop, rows, spec), count) for name, loop in loops.items()}


def gated(engine: Gpt2, exact: Gpt2) -> str:
    """What was seen to be equal: in float32 nothing may change a text; in half precision, nothing by itself.

    Plain and recorded calls round differently. Random weights carry that through all layers, so in half
    precision their likeliest tokens differ, as they would between two devices.
    """
    greedy = GenerationSpec(max_new_tokens=8, temperature=0, stop="none")

    def texts(model: Gpt2, rows: int, records: bool | None) -> dict[str, str | None]:
        return sampled(Loop(model, IdCodec(), batch=rows, desk=Desk(records)), 8, greedy)

    one, many, plain = (texts(exact, rows, records) for rows, records in ((1, None), (8, None), (8, False)))
    gate(one == many == plain, "greedy texts in float32 depend on the batch or on recording")
    gate(texts(engine, 8, None) == texts(engine, 8, None), "greedy texts differ between two runs")
    return "greedy texts in float32 alike at 1 and 8 rows, recorded and not; in the given precision, twice"


def memory(args: argparse.Namespace, device: torch.device, dtype: torch.dtype) -> dict[str, object]:
    shape = SHAPES[args.shape]
    engine = Gpt2(shape, weights(shape), device=device, dtype=torch.float32)
    spec = GenerationSpec(max_new_tokens=args.tokens, top_k=40, top_p=1.0, stop="none")
    rows = args.rows
    few = sampled(Loop(engine, IdCodec(), batch=32), rows, spec)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        whole = torch.cuda.get_device_properties(device).total_memory
        allowed = torch.cuda.memory_reserved() + args.gib * 2**30
        torch.cuda.set_per_process_memory_fraction(allowed / whole)
    parts = {}
    for name, batch in (("automatic", None), ("all at once", rows)):
        loop = Loop(engine, IdCodec(), batch=batch)
        heard, started = _Warnings(), time.perf_counter()
        with heard:
            same = alike(loop, rows, spec, few)
        seconds = time.perf_counter() - started
        gate(same >= 0.98 * rows, f"{same} of {rows} texts are those of 32 rows at a time")
        parts[name] = {
            "texts": rows,
            "as_with_32_rows": same,
            "rows_found_to_fit": {str(length): count for length, count in loop.fitting.items()},
            "told": heard.said,
            "tokens_per_second": round(rows * args.tokens / seconds),
        }
    return {
        "format": FORMAT,
        "data": "random weights",
        "gate": f"every text is there and 98 % of {rows} are those of 32 rows at a time",
        "gib_allowed": args.gib,
        "shape": args.shape,
        "new_tokens": args.tokens,
        "parts": parts,
        "machine": machine(),
    }


def alike(loop: Loop, rows: int, spec: GenerationSpec, few: dict[str, str | None]) -> int:
    """How many texts are written alike; none may be missing."""
    found = sampled(loop, rows, spec)
    gate(found.keys() == few.keys(), f"{len(found)} of {rows} texts came")
    return sum(found[key] == few[key] for key in few)


class _Warnings(logging.Handler):
    """What the library says aloud meanwhile."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())

    def __enter__(self) -> None:
        logging.getLogger("evenhand").addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("evenhand").removeHandler(self)


def classifiers(args: argparse.Namespace, device: torch.device, dtype: torch.dtype) -> dict[str, object]:
    texts, data = bold_texts(args.bold)
    # A text that comes again would be read once and counted twice.
    texts = list(dict.fromkeys(texts))[: args.texts]
    limit, parts = most(device, torch.float32), {}
    exact = Classifier(asset("classifiers"), device=torch.device("cpu")).probabilities(texts[:COMPARED])
    away = 0.0
    for rows in map(int, args.batches.split(",")):
        reader = Classifier(asset("classifiers"), device=device, rows=rows)
        some = texts[:: max(1, len(texts) // (rows * 64))][: rows * 64]
        away = max(away, float(np.abs(reader.probabilities(texts[:COMPARED]) - exact).max()))
        gate(away < 1e-5, f"probabilities are {away:.1e} away from a CPU's in float32")

        def read(reader=reader, some=some) -> None:
            reader._memo.clear()
            reader.probabilities(some)

        turns = take_turns({"evenhand": Way(read, len(some))}, rounds=args.rounds, warm=1)
        found = result(
            turns, ours="evenhand", unit="texts/s", gate=f"within {away:.1e} of a CPU's", data=data
        )
        operations, length = work_of(reader, some)
        worked = share(operations * turns.rate("evenhand", "wall"), limit["operations_per_second"])
        parts[str(rows)] = found | {"share_of_matrix_rate": worked, "tokens_a_text": round(length, 1)}
    return joined(parts) | {"at_most": limit}


def work_of(reader: Classifier, texts: list[str]) -> tuple[float, float]:
    """Operations a text of the encoder's products with its weights, and tokens a text."""
    shape = reader._network.encoder.shape
    rows = wordpiece.encode(reader._tokenizer, texts, longest=shape.positions)
    length = float(np.mean([len(row) for row in rows]))
    # Queries, keys, values and output; then into the inner layer and out again.
    layer = 4 * shape.width * shape.width + 2 * shape.width * shape.inner
    return 2 * (shape.layers * layer + shape.embedding * shape.width) * length, length


def main() -> None:
    options = parser(__doc__)
    works = {"sampling": sampling, "classifiers": classifiers, "memory": memory}
    options.add_argument("--work", choices=list(works), default="sampling")
    options.add_argument("--shape", choices=sorted(SHAPES), default="gpt2-medium")
    options.add_argument("--device", default="cuda")
    options.add_argument("--dtype", default="bfloat16")
    options.add_argument("--batches", default="1,8,32,128,512,1024")
    options.add_argument("--tokens", type=int, default=TOKENS)
    options.add_argument("--texts", type=int, default=20_000)
    options.add_argument("--bold", type=Path, help="a folder with BOLD's .jsonl files, where it is elsewhere")
    options.add_argument("--rows", type=int, default=1024, help="texts written with little memory")
    options.add_argument("--gib", type=float, default=2.0, help="memory they may take besides the weights")
    args = options.parse_args()
    device = torch.device(args.device)
    write(works[args.work](args, device, getattr(torch, args.dtype)), args.out)


if __name__ == "__main__":
    main()
