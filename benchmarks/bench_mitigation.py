"""What reinforced calibration costs: tokens a second against vanilla sampling of the same model and batch.

    python benchmarks/bench_mitigation.py [--shape gpt2|gpt2-medium|builtin] [--device cpu|cuda]
        [--batches 1,8,32] [--top-k 40] [--out FILE.json]

First the gate: at the same hidden states the fast path's policy must be near that of autograd over the
whole vocabulary (`tests/oracles/calibration.py`), in total variation. Then vanilla, both modes and, with
`--reference` at one row, autograd are timed in turn, round after round, and the medians are compared.
Weights are random: they cost what trained ones cost. How near the fast path is on a trained model is a test.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.oracles import calibration as oracle

from evenhand.core.protocols import Anatomy, Candidates, Guide, Steering, Step
from evenhand.core.records import GenerationSpec, Request
from evenhand.mitigations.calibrator import Calibrator
from evenhand.mitigations.settings import RATE, SIGMA, Mode, Settings
from evenhand.mitigations.sides import SideVectors
from evenhand.mitigations.steering import CalibrationSteering
from evenhand.models.decoding import Loop
from evenhand.neural.gpt2 import Gpt2
from evenhand.neural.gpt2_weights import Shape

SHAPES = {
    "gpt2": Shape(50257, 1024, 12, 768, 12),
    "gpt2-medium": Shape(50257, 1024, 24, 1024, 16),
    "builtin": Shape(16384, 256, 8, 384, 6),
    "tiny": Shape(2000, 128, 2, 64, 4),
}
BARS = {
    ("embedding", True): 1.25,
    ("classifier", True): 1.4,
    ("embedding", False): 1.75,
    ("classifier", False): 1.9,
}
NEAR = 5e-3
"""Total variation the fast path may be away from the oracle, on average."""


class IdCodec:
    """Token ids written as numbers: the tokenizer is not what is timed."""

    start = None
    ends: frozenset[int] = frozenset()
    digest = "ids"

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [[int(word) for word in text.split()] for text in texts]

    def decode(self, tokens: list[int]) -> str:
        return "".join(f"{token} " for token in tokens)


def weights(shape: Shape) -> dict[str, Tensor]:
    """Random weights, wide enough that a policy has likely and unlikely tokens."""
    made: dict[str, Tensor] = {}
    random = torch.Generator().manual_seed(0)

    def matrix(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, generator=random) * 0.08

    width = shape.width
    made["wte.weight"], made["wpe.weight"] = matrix(shape.vocabulary, width), matrix(shape.context, width)
    for layer in range(shape.layers):
        name = f"h.{layer}."
        for part, (rows, columns) in {
            "attn.c_attn": (width, 3 * width),
            "attn.c_proj": (width, width),
            "mlp.c_fc": (width, 4 * width),
            "mlp.c_proj": (4 * width, width),
        }.items():
            made[f"{name}{part}.weight"], made[f"{name}{part}.bias"] = (
                matrix(rows, columns),
                torch.zeros(columns),
            )
        for norm in ("ln_1", "ln_2"):
            made[f"{name}{norm}.weight"], made[f"{name}{norm}.bias"] = torch.ones(width), torch.zeros(width)
    made["ln_f.weight"], made["ln_f.bias"] = torch.ones(width), torch.zeros(width)
    return made


GainOf = Callable[[Tensor, float], Callable[[Tensor], Tensor]]


def guides(engine: Gpt2, mode: Mode) -> tuple[CalibrationSteering, GainOf]:
    """The steering of a mode with random words or a random head, and the oracle's gain of a vanilla state."""
    table, _ = engine.output()
    anatomy = Anatomy(table, None, lambda texts: [])
    settings = Settings(mode=mode, sigma=SIGMA[mode], rate=RATE[mode])
    random, plain = torch.Generator().manual_seed(1), table.float().cpu()
    if mode == "embedding":
        lists = [torch.randint(5, len(table), (250,), generator=random).tolist() for _ in range(2)]
        means = [table[torch.tensor(words, device=table.device)].float().mean(0) for words in lists]
        words = tuple([[token] for token in side] for side in lists)
        vectors = SideVectors(means[0], means[1], (0.0, 0.0), 0)
        return (
            CalibrationSteering(anatomy, settings, vectors=vectors),
            lambda vanilla, _: (
                lambda hidden: oracle.embedding_gain(hidden, vanilla, plain, (words[0], words[1]), settings)
            ),
        )
    width = table.shape[1]
    inner = torch.randn(width, width, generator=random) * width**-0.5
    outer = torch.randn(width, generator=random) * width**-0.5
    head = Calibrator(inner, torch.zeros(width), outer, torch.ones(()), ("a", "b"), "m", "r")

    def said(states: Tensor) -> Tensor:
        odds = torch.tanh(states @ inner.T) @ outer + 1
        return torch.stack([torch.zeros_like(odds), odds])

    return (
        CalibrationSteering(anatomy, settings, head=head.to(engine.device)),
        lambda vanilla, _: (
            lambda hidden: oracle.classifier_gain(hidden, oracle.Text(0.6, [vanilla]), said, settings, plain)
        ),
    )


def distance(engine: Gpt2, mode: Mode, *, whole: bool, rows: int = 8) -> float:
    """The mean total variation between the fast path's policy and the oracle's, over a few states."""
    steering, gain_of = guides(engine, mode)
    batch = engine.batch(rows, 4)
    batch.fill(list(range(rows)), engine.prefill([[10 + row, 20 + row] for row in range(rows)]))
    last = torch.arange(rows, device=engine.device) + 30
    said = batch.step(last)
    uniforms = torch.full((rows,), 0.5, dtype=torch.float64, device=engine.device)
    guide = steering.begin(keep=0 if whole else 40)
    logits, tokens = guide(Step(said.hidden, said.logits, list(range(rows)), last, uniforms))
    table, total = engine.output()[0].float().cpu(), 0.0
    for row in range(rows):
        vanilla = said.hidden[row].float().cpu()
        state, _ = oracle.calibrated(vanilla, table, gain_of(vanilla, 0.6), 0.6, steering.settings)
        truth = table @ state
        if tokens is not None:
            truth = truth[tokens[row].cpu()]
        total += oracle.total_variation(truth.softmax(-1), logits[row].float().cpu().softmax(-1))
    return total / rows


class Autograd:
    """The oracle as a steering: what the fast path is compared with."""

    def __init__(self, engine: Gpt2, mode: Mode) -> None:
        self.steering, self.gain_of = guides(engine, mode)
        self.table = engine.output()[0].float()

    def begin(self, *, keep: int) -> Guide:
        return self

    def __call__(self, step: Step) -> Candidates:
        with torch.enable_grad():
            found = [self._one(state) for state in step.hidden.float()]
        return Candidates(torch.stack(found) @ self.table.T)

    def _one(self, vanilla: Tensor) -> Tensor:
        settings = self.steering.settings
        return oracle.calibrated(vanilla, self.table, self.gain_of(vanilla, 0.6), 0.6, settings)[0]


def rate(loop: Loop, spec: GenerationSpec, rows: int) -> float:
    requests = [Request(str(row), f"{row + 5} {row + 6} {row + 7}", (0,)) for row in range(rows)]
    if loop.engine.device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    count = sum(item.new_tokens or 0 for item in loop.run(requests, spec))
    return count / (time.perf_counter() - started)


def timed(engine: Gpt2, rows: int, spec: GenerationSpec, rounds: int, *, reference: bool) -> dict[str, float]:
    """Median tokens a second by way."""
    steerings: dict[str, Steering | None] = {"vanilla": None}
    steerings |= {mode: guides(engine, mode)[0] for mode in SIGMA}
    if reference:
        steerings |= {f"autograd {mode}": Autograd(engine, mode) for mode in SIGMA}
    loops = {
        name: Loop(engine, IdCodec(), batch=rows, steering=steering) for name, steering in steerings.items()
    }
    found: dict[str, list[float]] = {name: [] for name in loops}
    for turn in range(rounds + 1):
        for name, loop in loops.items():
            speed = rate(loop, spec, rows)
            # The first turn warms caches, allocators and graphs.
            if turn:
                found[name].append(speed)
    return {name: statistics.median(speeds) for name, speeds in found.items()}


def measure(options: argparse.Namespace) -> dict[str, object]:
    torch.set_num_threads(options.threads)
    shape, device = SHAPES[options.shape], torch.device(options.device)
    kind = torch.float32 if device.type == "cpu" else getattr(torch, options.dtype)
    engine = Gpt2(shape, weights(shape), device=device, dtype=kind)
    away = {mode: distance(engine, mode, whole=options.top_k == 0) for mode in SIGMA}
    print(
        "total variation from autograd:", {mode: f"{value:.1e}" for mode, value in away.items()}, flush=True
    )
    if max(away.values()) > (NEAR if kind == torch.float32 else 5 * NEAR):
        raise SystemExit(f"the policies differ by {max(away.values()):.1e}: nothing is timed")
    spec = GenerationSpec(max_new_tokens=options.tokens, top_k=options.top_k, top_p=1.0, stop="none")
    results = {}
    for rows in map(int, options.batches.split(",")):
        speeds = timed(engine, rows, spec, options.rounds, reference=options.reference and rows == 1)
        ratios = {name: round(speeds["vanilla"] / speed, 3) for name, speed in speeds.items()}
        results[str(rows)] = {
            "tokens_per_second": {k: round(v, 1) for k, v in speeds.items()},
            "ratio": ratios,
        }
        for mode in SIGMA:
            bar = BARS[mode, options.top_k > 0]
            print(
                f"batch {rows:2d} {mode:10s} {ratios[mode]:.2f}x vanilla (bar {bar}), "
                f"{speeds[mode]:.0f} tokens/s against {speeds['vanilla']:.0f}",
                flush=True,
            )
            if options.reference and rows == 1:
                print(
                    f"   {speeds[mode] / speeds[f'autograd {mode}']:.1f}x faster than autograd (bar 6)",
                    flush=True,
                )
    return {
        "shape": options.shape,
        "device": torch.cuda.get_device_name()
        if device.type == "cuda"
        else platform.processor() or platform.machine(),
        "dtype": str(kind).removeprefix("torch."),
        "top_k": options.top_k,
        "new_tokens": options.tokens,
        "threads": options.threads,
        "total_variation": away,
        "batches": results,
        "torch": torch.__version__,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=sorted(SHAPES), default="gpt2")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--top-k", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--reference", action="store_true", help="time autograd too (slow)")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    result = measure(options)
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
