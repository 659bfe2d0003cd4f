"""How far one GPU is used: sampling and classifiers at growing batch, beside what the device can do at most.

    python benchmarks/bench_gpu.py --work sampling|classifiers|memory [--shape gpt2-medium] [--out FILE.json]

Sampling: tokens a second, vanilla and with both modes of calibration, of a model of GPT-2-medium's sizes with
random weights, for texts of the lengths that `--tokens` names: the first at `--batches` rows and beside it by
plain calls, the others at `--long-batches` rows. Four texts are written for each row, of longer ones two, all
of full length: the rows end together, so what it costs to replace them one by one is not seen here. A part of
the result is named ROWSxTOKENS and has, by way,

- ``shares_of_bandwidth``: bytes that must be moved in all steps (weights, keys and values) over what could be
  moved in the time taken;
- ``shares_of_matrix_rate``: the same of operations (products with weights, and attention);
- ``shares_of_limit``: the least time over the time taken. Products and attention wait for each other and meet
  different limits, so neither share above can come near 1; this one can (`gpu_work.py` tells how it is
  counted). It counts the model's own work alone, for calibrated ways too;

and of vanilla sampling ``device_time_share``, the time in which any kernel or copy ran over the time taken,
and ``kernels_a_token``, how many ran for a token of every row, those of the prompts among them. They are seen
by a profiler, in a run of its own after all others, since it slows the processor; the time taken is that of
the runs without it. Both are null where there is no GPU. ``seconds`` is the time a way takes for its
``steps``, ``least_seconds`` the least the device allows for them, ``told`` what the library warned of
meanwhile, such as fewer rows than asked for.

Classifiers: texts a second of the embedded encoder, tokenizer included, the share of the matrix rate that
products and attention take, and ``device_time_share``.
What the device can do at most is measured here too, by one large copy and one large product. First the gate:
greedy texts in float32 must not depend on the batch nor on recording, and probabilities must be a CPU's.
Memory: this process is allowed a few GiB only, and writes more rows than fit: once with the automatic batch
size, which grows until memory says no, and once with all rows asked for at once, which must be halved in the
middle of the work. No text may be missing, and all must be those of 32 rows at a time.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import gpu_work
import numpy as np
import torch
from bench_mitigation import SHAPES, guides, weights
from device_time import device_time
from gpu_work import Limit
from harness import (
    FORMAT,
    Turns,
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
    write_file,
)
from id_codec import IdCodec

from evenhand.classifiers import wordpiece_tokenizer
from evenhand.classifiers.text_classifier import TextClassifier
from evenhand.core.files import asset_path
from evenhand.core.protocols import Steering
from evenhand.core.records import GenerationSpec, Request
from evenhand.generation.decoders import GraphCache
from evenhand.generation.gpt2 import Gpt2
from evenhand.generation.scheduler import SamplingLoop
from evenhand.mitigations.calibration import SIGMA

PROMPT = 3
"""Tokens a prompt has."""
TIMES, LONG_TIMES = 4, 2
"""Texts for each row, which follow one another, of the first length and of longer ones."""
COMPARED, NEAR = 256, 1e-5
"""Texts a processor reads too, in float32, before a GPU is timed, and how near it must come to them."""


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def most(device: torch.device, dtype: torch.dtype) -> Limit:
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
    return Limit(
        8 * size / min(spent(copy).wall for _ in range(5)),
        2 * side**3 / min(spent(product).wall for _ in range(5)),
    )


def sampled(loop: SamplingLoop, rows: int, spec: GenerationSpec) -> dict[str, str | None]:
    requests = [Request(str(row), f"{row % 900 + 5} {row % 900 + 6} 7", (0,)) for row in range(rows)]
    return {item.request_id: item.text for item in loop.run(requests, spec)}


class Size(NamedTuple):
    """How much is written at once."""

    rows: int
    tokens: int
    is_long: bool
    """Whether texts are longer than the first ones: then plain calls, which take longest, are left out."""

    @property
    def name(self) -> str:
        return f"{self.rows}x{self.tokens}"

    @property
    def texts(self) -> int:
        return self.rows * (LONG_TIMES if self.is_long else TIMES)

    @property
    def steps(self) -> int:
        return self.texts // self.rows * self.tokens

    @property
    def spec(self) -> GenerationSpec:
        return GenerationSpec(max_new_tokens=self.tokens, top_k=40, top_p=1.0, stop="none")


def lengths(args: argparse.Namespace) -> list[int]:
    return [int(tokens) for tokens in args.tokens.split(",")]


def sizes(args: argparse.Namespace) -> Iterator[Size]:
    for tokens in lengths(args):
        is_long = tokens != lengths(args)[0]
        for rows in (args.long_batches if is_long else args.batches).split(","):
            yield Size(int(rows), tokens, is_long)


def sampling(args: argparse.Namespace, device: torch.device, dtype: torch.dtype) -> dict[str, object]:
    shape = SHAPES[args.shape]
    made = weights(shape)
    engine = Gpt2(shape, made, device=device, dtype=dtype)
    agree = gated(engine, Gpt2(shape, made, device=device, dtype=torch.float32))
    steerings = {"vanilla": None, **{mode: guides(engine, mode)[0] for mode in SIGMA}}
    limit = most(device, dtype)
    facts = {
        "shape": args.shape,
        "dtype": args.dtype,
        "weights_bytes": gpu_work.read(shape) * engine.lm_head()[0].element_size(),
        "at_most": limit._asdict(),
    }
    parts = {}
    for size in sizes(args):
        part = written(engine, steerings, size, rounds=args.rounds)
        parts[size.name] = part | {"gate": agree} | shares(engine, part["seconds"], size, limit)
        # What is known is written at once: a device may be lost before the end.
        write_file(joined(parts) | facts, args.out)
    for size in sizes(args):
        loop = SamplingLoop(engine, IdCodec(), batch=size.rows)
        work, seconds = partial(sampled, loop, size.texts, size.spec), parts[size.name]["seconds"]["vanilla"]
        parts[size.name] |= occupied(work, device, seconds, tokens=size.steps)
    return joined(parts) | facts


def written(
    engine: Gpt2, steerings: dict[str, Steering | None], size: Size, *, rounds: int
) -> dict[str, object]:
    """The rates of a size, and what the library warned of meanwhile."""
    loops = {
        name: SamplingLoop(engine, IdCodec(), batch=size.rows, steering=one)
        for name, one in steerings.items()
    }
    if not size.is_long:
        uncaptured = GraphCache(can_capture=False)
        loops["plain calls"] = SamplingLoop(engine, IdCodec(), batch=size.rows, graph_cache=uncaptured)
    count, heard = size.texts * size.tokens, _Warnings()
    ways = {name: Way(partial(sampled, loop, size.texts, size.spec), count) for name, loop in loops.items()}
    with heard:
        turns = take_turns(ways, rounds=rounds, warm=1)
    found = result(turns, ours="vanilla", unit="tokens/s", gate="", data="random weights")
    seconds = {name: median(turns, name) for name in ways}
    return found | {"seconds": seconds, "steps": size.steps, "told": heard.said}


def median(turns: Turns, name: str) -> float:
    """Seconds that a way takes."""
    return statistics.median(one.wall for one in turns.spent[name])


def shares(engine: Gpt2, took: dict[str, float], size: Size, limit: Limit) -> dict[str, object]:
    """By way, the shares of what the device can do."""
    least = gpu_work.run(
        engine.shape,
        limit,
        rows=size.rows,
        prompt=PROMPT,
        tokens=size.tokens,
        size=engine.lm_head()[0].element_size(),
        times=size.texts // size.rows,
    )
    most_bytes, most_operations = limit
    return {
        "least_seconds": least.seconds,
        "shares_of_bandwidth": {name: share(least.bytes / one, most_bytes) for name, one in took.items()},
        "shares_of_matrix_rate": {
            name: share(least.operations / one, most_operations) for name, one in took.items()
        },
        "shares_of_limit": {name: share(least.seconds / one, 1) for name, one in took.items()},
    }


def occupied(
    work: Callable[[], object], device: torch.device, seconds: float, *, tokens: int
) -> dict[str, float | None]:
    """The share of those seconds in which the device works, and its kernels a token; null without a GPU."""
    if device.type == "cuda":
        work()
    seen = device_time(work, device)
    return {
        "device_time_share": None if seen is None else round(seen.seconds / seconds, 4),
        "kernels_a_token": None if seen is None else round(seen.kernels / tokens, 1),
    }


def gated(engine: Gpt2, exact: Gpt2) -> str:
    """What was seen to be equal: in float32 nothing may change a text; in half precision, nothing by itself.

    Plain and recorded calls round differently. Random weights carry that through all layers, so in half
    precision their likeliest tokens differ, as they would between two devices.
    """
    greedy = GenerationSpec(max_new_tokens=8, temperature=0, stop="none")

    def texts(model: Gpt2, rows: int, records: bool | None) -> dict[str, str | None]:
        return sampled(SamplingLoop(model, IdCodec(), batch=rows, graph_cache=GraphCache(records)), 8, greedy)

    one, many, plain = (texts(exact, rows, records) for rows, records in ((1, None), (8, None), (8, False)))
    gate(one == many == plain, "greedy texts in float32 depend on the batch or on recording")
    gate(texts(engine, 8, None) == texts(engine, 8, None), "greedy texts differ between two runs")
    return "greedy texts in float32 alike at 1 and 8 rows, recorded and not; in the given precision, twice"


def memory(args: argparse.Namespace, device: torch.device, dtype: torch.dtype) -> dict[str, object]:
    shape = SHAPES[args.shape]
    engine = Gpt2(shape, weights(shape), device=device, dtype=torch.float32)
    rows, tokens = args.rows, lengths(args)[0]
    spec = Size(rows, tokens, False).spec
    few = sampled(SamplingLoop(engine, IdCodec(), batch=32), rows, spec)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        whole = torch.cuda.get_device_properties(device).total_memory
        allowed = torch.cuda.memory_reserved() + args.gib * 2**30
        torch.cuda.set_per_process_memory_fraction(allowed / whole)
    parts = {}
    for name, batch in (("automatic", None), ("all at once", rows)):
        loop = SamplingLoop(engine, IdCodec(), batch=batch)
        heard, started = _Warnings(), time.perf_counter()
        with heard:
            same = alike(loop, rows, spec, few)
        seconds = time.perf_counter() - started
        gate(same >= 0.98 * rows, f"{same} of {rows} texts are those of 32 rows at a time")
        parts[name] = {
            "texts": rows,
            "as_with_32_rows": same,
            "rows_found_to_fit": {str(length): count for length, count in loop.rows_by_length.items()},
            "told": heard.said,
            "tokens_per_second": round(rows * tokens / seconds),
        }
    return {
        "format": FORMAT,
        "data": "random weights",
        "gate": f"every text is there and 98 % of {rows} are those of 32 rows at a time",
        "gib_allowed": args.gib,
        "shape": args.shape,
        "new_tokens": tokens,
        "parts": parts,
        "machine": machine(),
    }


def alike(loop: SamplingLoop, rows: int, spec: GenerationSpec, few: dict[str, str | None]) -> int:
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
    limit, parts, reading = most(device, torch.float32), {}, {}
    on_cpu = TextClassifier(asset_path("classifiers"), device=torch.device("cpu"))
    exact = on_cpu.probabilities(texts[:COMPARED])
    del on_cpu
    for rows in map(int, args.batches.split(",")):
        reader = TextClassifier(asset_path("classifiers"), device=device, rows=rows)
        some = texts[:: max(1, len(texts) // (rows * 64))][: rows * 64]
        away = float(np.abs(reader.probabilities(texts[:COMPARED]) - exact).max())
        gate(away < NEAR, f"probabilities are {away:.1e} away from a CPU's in float32")
        work = partial(read, reader, some)
        turns = take_turns({"evenhand": Way(work, len(some))}, rounds=args.rounds, warm=1)
        agree = f"{COMPARED} texts within {NEAR:g} of a CPU's probabilities"
        found = result(turns, ours="evenhand", unit="texts/s", gate=agree, data=data, away_from_cpu=away)
        operations, length = work_of(reader, some)
        worked = share(operations * turns.rate("evenhand", "wall"), limit.operations_per_second)
        parts[str(rows)] = found | {"share_of_matrix_rate": worked, "tokens_a_text": round(length, 1)}
        reading[str(rows)] = work, median(turns, "evenhand")
        write_file(joined(parts) | {"at_most": limit._asdict()}, args.out)
    for name, (work, seconds) in reading.items():
        seen = occupied(work, device, seconds, tokens=1)
        parts[name]["device_time_share"] = seen["device_time_share"]
    return joined(parts) | {"at_most": limit._asdict()}


def read(reader: TextClassifier, texts: list[str]) -> None:
    """Read texts as if they had not been read before."""
    reader._memo.clear()
    reader.probabilities(texts)


def work_of(reader: TextClassifier, texts: list[str]) -> tuple[float, float]:
    """Operations a text of the encoder's products and attention, and tokens a text."""
    shape = reader._network.encoder.shape
    rows = wordpiece_tokenizer.encode_texts(reader._tokenizer, texts, longest=shape.positions)
    operations = [gpu_work.encoded(shape, len(row)) for row in rows]
    return float(np.mean(operations)), float(np.mean([len(row) for row in rows]))


def main() -> None:
    options = parser(__doc__)
    works = {"sampling": sampling, "classifiers": classifiers, "memory": memory}
    options.add_argument("--work", choices=list(works), default="sampling")
    options.add_argument("--shape", choices=sorted(SHAPES), default="gpt2-medium")
    options.add_argument("--device", default="cuda")
    options.add_argument("--dtype", default="bfloat16")
    options.add_argument("--batches", default="1,8,32,128,512,1024")
    options.add_argument("--tokens", default="48,256", help="lengths of texts; memory: the first alone")
    options.add_argument("--long-batches", default="32,1024", help="rows of all lengths but the first")
    options.add_argument("--texts", type=int, default=20_000)
    options.add_argument("--bold", type=Path, help="a folder with BOLD's .jsonl files, where it is elsewhere")
    options.add_argument("--rows", type=int, default=1024, help="texts written with little memory")
    options.add_argument("--gib", type=float, default=2.0, help="memory they may take besides the weights")
    args = options.parse_args()
    device = torch.device(args.device)
    write(works[args.work](args, device, getattr(torch, args.dtype)), args.out)


if __name__ == "__main__":
    main()
