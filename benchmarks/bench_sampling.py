"""Tokens a second of our sampling loop and of transformers' generate(), same model, same run.

    python benchmarks/bench_sampling.py [--shape 30m|builtin] [--threads 2] [--out FILE.json]

First the gate: greedy texts must be identical. Then the ways are timed in turn, round after round, and the
medians are compared. Weights are random: they cost what trained ones cost.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import transformers
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from evenhand.core.records import GenerationSpec, Request
from evenhand.models.decoding import Loop
from evenhand.neural.gpt2 import Gpt2
from evenhand.neural.gpt2_weights import Shape

SHAPES = {
    "30m": {"vocab_size": 50257, "n_positions": 256, "n_embd": 384, "n_layer": 6, "n_head": 6},
    "builtin": {"vocab_size": 16384, "n_positions": 256, "n_embd": 384, "n_layer": 8, "n_head": 6},
}
ROWS = 32


class IdCodec:
    """Token ids written as numbers: the tokenizer is not what is timed."""

    start = None
    ends: frozenset[int] = frozenset()
    digest = "ids"

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[int(word) for word in text.split()] for text in texts]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(f"{token} " for token in tokens)


def random_model(shape: str) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(**SHAPES[shape], bos_token_id=0, eos_token_id=None)).eval()
    for weights in model.parameters():
        if weights.ndim == 2:
            weights.data *= 4
    return model


def prompts(vocabulary: int) -> list[list[int]]:
    """Six to nine tokens each, as the starter prompts have."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(1, vocabulary, (6 + row % 4,), generator=generator).tolist() for row in range(ROWS)]


def ours(loop: Loop, rows: Sequence[Sequence[int]], spec: GenerationSpec) -> list[list[int]]:
    requests = [Request(str(index), " ".join(map(str, row)), (0,)) for index, row in enumerate(rows)]
    found = {int(item.request_id): item.text or "" for item in loop.run(requests, spec)}
    return [[int(word) for word in found[index].split()] for index in range(len(rows))]


def theirs(model: GPT2LMHeadModel, rows: Sequence[Sequence[int]], spec: GenerationSpec) -> list[list[int]]:
    width = max(map(len, rows))
    tokens = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    sampled = {"do_sample": True, "temperature": spec.temperature, "top_k": spec.top_k, "top_p": spec.top_p}
    written: Tensor = model.generate(
        tokens,
        attention_mask=mask,
        max_new_tokens=spec.max_new_tokens,
        pad_token_id=0,
        **(sampled if spec.temperature else {"do_sample": False}),
    )
    return written[:, width:].tolist()


def identical_greedy(model: GPT2LMHeadModel, loop: Loop, rows: Sequence[Sequence[int]], tokens: int) -> int:
    """How many of the rows are written alike; each is compared with generate() on that row alone."""
    spec = GenerationSpec(max_new_tokens=tokens, temperature=0, stop="none")
    found = ours(loop, rows, spec)
    return sum(theirs(model, [row], spec)[0] == text for row, text in zip(rows, found, strict=True))


def rate(work: Callable[[], list[list[int]]]) -> float:
    started = time.perf_counter()
    written = work()
    return sum(map(len, written)) / (time.perf_counter() - started)


def measure(shape: str, rounds: int, tokens: int, threads: int) -> dict[str, object]:
    # Said aloud: importing another library may have changed it.
    torch.set_num_threads(threads)
    model = random_model(shape)
    found = Shape.of(model.config.to_dict())
    assert found is not None
    loop = Loop(Gpt2(found, model.state_dict()), IdCodec(), batch=ROWS)
    rows = prompts(found.vocabulary)
    same = identical_greedy(model, loop, rows, tokens)
    if same < ROWS:
        raise SystemExit(f"greedy texts differ on {ROWS - same} of {ROWS} rows: nothing is timed")
    spec = GenerationSpec(max_new_tokens=tokens, stop="none")
    ways: dict[str, Callable[[], list[list[int]]]] = {
        "evenhand, 32 rows": lambda: ours(loop, rows, spec),
        "generate(), 32 rows": lambda: theirs(model, rows, spec),
        "generate(), 1 row": lambda: theirs(model, rows[:1], spec),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, work in ways.items():
            speed = rate(work)
            # The first turn warms caches and allocators.
            if turn:
                rates[name].append(speed)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    lean, batch, single = medians.values()
    return {
        "shape": shape,
        "parameters": sum(weights.numel() for weights in model.parameters()),
        "new_tokens": tokens,
        "threads": torch.get_num_threads(),
        "greedy_identical": f"{same} of {ROWS}",
        "tokens_per_second": {name: round(value, 1) for name, value in medians.items()},
        "all_rounds": {name: [round(value, 1) for value in values] for name, values in rates.items()},
        "ratio_to_1_row": round(lean / single, 2),
        "ratio_to_32_rows": round(lean / batch, 2),
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "torch": torch.__version__,
            "capability": torch.backends.cpu.get_cpu_capability(),
            "transformers": transformers.__version__,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=sorted(SHAPES), default="30m")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    result = measure(options.shape, options.rounds, options.tokens, options.threads)
    print(json.dumps(result, indent=2))
    print(f"{result['ratio_to_1_row']}x generate() on one row (bar 5, aim 10)")
    print(f"{result['ratio_to_32_rows']}x generate() on 32 rows (bar 1.4)")
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
