"""What reinforced calibration costs: tokens a second against vanilla sampling of the same model and batch.

    python benchmarks/bench_mitigation.py [--shape gpt2|gpt2-medium|builtin] [--device cpu|cuda]
        [--batches 1,8,32] [--top-k 40] [--reference [1,32]] [--out FILE.json]

First the gate: at the same hidden states the fast path's policy must be near that of autograd over the
whole vocabulary (`tests/oracles/calibration.py`), in total variation. Then vanilla, both modes and, at the
batches that `--reference` names, autograd are timed in turn, round after round, and the medians are compared.
Weights are random: they cost what trained ones cost. How near the fast path is on a trained model is a test.
Random policies have long tails: over the whole vocabulary a head needs a `--support` of 512 to come as near.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from harness import Way, gate, joined, parser, result, take_turns, write
from id_codec import IdCodec
from tests.oracles import calibration as oracle
from torch import Tensor

from evenhand.core.protocols import Candidates, LMHead, LogitsProcessor, Steering, Step
from evenhand.core.records import GenerationSpec, Request
from evenhand.generation.gpt2 import Gpt2, Gpt2Shape
from evenhand.generation.scheduler import SamplingLoop
from evenhand.mitigations.calibration import RATE, SIGMA, CalibrationConfig, Mode
from evenhand.mitigations.calibration_steering import CalibrationSteering
from evenhand.mitigations.calibrator import Calibrator
from evenhand.mitigations.word_lists import WordListVectors

SHAPES = {
    "gpt2": Gpt2Shape(50257, 1024, 12, 768, 12),
    "gpt2-medium": Gpt2Shape(50257, 1024, 24, 1024, 16),
    "builtin": Gpt2Shape(16384, 256, 8, 384, 6),
    "tiny": Gpt2Shape(2000, 128, 2, 64, 4),
}
AUTOGRAD = 2
"""Tokens a row of autograd's, which deals with one row after the other and takes seconds for each."""
NEAR = 5e-3
"""Total variation the fast path may be away from the oracle, on average."""


def weights(shape: Gpt2Shape) -> dict[str, Tensor]:
    """Random weights, wide enough that a policy has likely and unlikely tokens."""
    made: dict[str, Tensor] = {}
    random = torch.Generator().manual_seed(0)

    def matrix(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, generator=random) * 0.08

    width = shape.width
    # Logits with a spread of 4.5, so that a few tokens are likely and most are not, as in a trained model.
    made["wte.weight"] = matrix(shape.vocabulary, width) * (4.5 / 0.08 / width**0.5)
    made["wpe.weight"] = matrix(shape.context, width)
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


class _Everywhere:
    """A tensor on every device that asks for it, copied there once."""

    def __init__(self, tensor: Tensor) -> None:
        self._copies = {tensor.device: tensor}

    def beside(self, other: Tensor) -> Tensor:
        if other.device not in self._copies:
            self._copies[other.device] = next(iter(self._copies.values())).to(other.device)
        return self._copies[other.device]


GainOf = Callable[[Tensor, float], Callable[[Tensor], Tensor]]


def guides(engine: Gpt2, mode: Mode, support: int = 128) -> tuple[CalibrationSteering, GainOf]:
    """The steering of a mode with random words or a random head, and the oracle's gain of a vanilla state."""
    table, _ = engine.lm_head()
    anatomy = LMHead(table, None, lambda texts: [])
    settings = CalibrationConfig(mode=mode, sigma=SIGMA[mode], rate=RATE[mode], support=support)
    random, plain = torch.Generator().manual_seed(1), _Everywhere(table.float())
    if mode == "embedding":
        lists = [torch.randint(5, len(table), (250,), generator=random).tolist() for _ in range(2)]
        means = [table[torch.tensor(words, device=table.device)].float().mean(0) for words in lists]
        words = tuple([[token] for token in side] for side in lists)
        vectors = WordListVectors(means[0], means[1], (0.0, 0.0), 0)
        return (
            CalibrationSteering(anatomy, settings, vectors=vectors),
            lambda vanilla, _: (
                lambda hidden: oracle.embedding_gain(
                    hidden, vanilla, plain.beside(hidden), (words[0], words[1]), settings
                )
            ),
        )
    width = table.shape[1]
    inner = torch.randn(width, width, generator=random) * width**-0.5
    outer = torch.randn(width, generator=random) * width**-0.5
    head = Calibrator(inner, torch.zeros(width), outer, torch.ones(()), ("a", "b"), "m", "r")

    parts = _Everywhere(inner), _Everywhere(outer)

    def said(states: Tensor) -> Tensor:
        odds = torch.tanh(states @ parts[0].beside(states).T) @ parts[1].beside(states) + 1
        return torch.stack([torch.zeros_like(odds), odds])

    return (
        CalibrationSteering(anatomy, settings, head=head.to(engine.device)),
        lambda vanilla, _: (
            lambda hidden: oracle.classifier_gain(
                hidden, oracle.Text(0.6, [vanilla]), said, settings, plain.beside(hidden)
            )
        ),
    )


def distance(engine: Gpt2, mode: Mode, *, whole: bool, support: int = 128, rows: int = 8) -> float:
    """The mean total variation between the fast path's policy and the oracle's, over a few states."""
    steering, gain_of = guides(engine, mode, support)
    batch = engine.create_cache(rows, 4)
    batch.fill(list(range(rows)), engine.prefill([[10 + row, 20 + row] for row in range(rows)]))
    last = torch.arange(rows, device=engine.device) + 30
    said = batch.step(last)
    uniforms = torch.full((rows,), 0.5, dtype=torch.float64, device=engine.device)
    guide = steering.begin(keep=0 if whole else 40)
    logits, tokens = guide(Step(said.hidden, said.logits, list(range(rows)), last, uniforms))
    table, total = engine.lm_head()[0].float().cpu(), 0.0
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
        self.table = engine.lm_head()[0].float()

    def begin(self, *, keep: int) -> LogitsProcessor:
        return self

    def __call__(self, step: Step) -> Candidates:
        with torch.enable_grad():
            found = [self._one(state) for state in step.hidden.float()]
        return Candidates(torch.stack(found) @ self.table.T)

    def _one(self, vanilla: Tensor) -> Tensor:
        settings = self.steering.settings
        return oracle.calibrated(vanilla, self.table, self.gain_of(vanilla, 0.6), 0.6, settings)[0]


def write_all(loop: SamplingLoop, spec: GenerationSpec, rows: int) -> None:
    requests = [Request(str(row), f"{row + 5} {row + 6} {row + 7}", (0,)) for row in range(rows)]
    count = sum(item.new_tokens or 0 for item in loop.run(requests, spec))
    gate(count == rows * spec.max_new_tokens, f"{count} tokens were written")


def timed(engine: Gpt2, rows: int, spec: GenerationSpec, args: argparse.Namespace) -> dict[str, object]:
    """Tokens a second by way at one batch size; ``cost`` is how many times as long as vanilla each takes."""
    steerings: dict[str, Steering | None] = {"vanilla": None}
    steerings |= {mode: guides(engine, mode, args.support)[0] for mode in SIGMA}
    slow = list(SIGMA) if str(rows) in args.reference.split(",") else []
    steerings |= {f"autograd {mode}": Autograd(engine, mode) for mode in slow}
    ways = {}
    for name, steering in steerings.items():
        loop = SamplingLoop(engine, IdCodec(), batch=rows, steering=steering)
        asked = replace(spec, max_new_tokens=AUTOGRAD) if "autograd" in name else spec
        work = partial(write_all, loop, asked, rows)
        ways[name] = Way(work, rows * asked.max_new_tokens)
    # The first round warms caches, allocators and graphs.
    turns = take_turns(ways, rounds=args.rounds, warm=1)
    found = result(turns, ours="vanilla", unit="tokens/s", gate="", data="random weights")
    than = {mode: {"wall": round(turns.ratio(mode, f"autograd {mode}", "wall"), 2)} for mode in slow}
    return found | {"cost": found.pop("ratios"), "cheaper_than_autograd": than}


def measure(args: argparse.Namespace) -> dict[str, object]:
    torch.set_num_threads(args.threads)
    shape, device = SHAPES[args.shape], torch.device(args.device)
    kind = torch.float32 if device.type == "cpu" else getattr(torch, args.dtype)
    engine = Gpt2(shape, weights(shape), device=device, dtype=kind)
    whole = args.top_k == 0
    away = {mode: distance(engine, mode, whole=whole, support=args.support) for mode in SIGMA}
    far = max(away.values())
    gate(far <= (NEAR if kind == torch.float32 else 5 * NEAR), f"the policies differ by {far:.1e}")
    spec = GenerationSpec(max_new_tokens=args.tokens, top_k=args.top_k, top_p=1.0, stop="none")
    batches = {rows: timed(engine, int(rows), spec, args) for rows in args.batches.split(",")}
    return joined(batches) | {
        "gate": f"total variation from autograd {far:.1e} or less on average",
        "shape": args.shape,
        "device": args.device,
        "dtype": str(kind).removeprefix("torch."),
        "top_k": args.top_k,
        "support": args.support,
        "new_tokens": args.tokens,
        "total_variation": away,
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--shape", choices=sorted(SHAPES), default="gpt2")
    options.add_argument("--device", default="cpu")
    options.add_argument("--dtype", default="float32")
    options.add_argument("--batches", default="1,8,32")
    options.add_argument("--top-k", type=int, default=40)
    options.add_argument("--support", type=int, default=128, help="tokens that are followed one by one")
    options.add_argument("--tokens", type=int, default=24)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument(
        "--reference", nargs="?", const="1", default="", help="batches at which autograd is timed too (slow)"
    )
    args = options.parse_args()
    write(measure(args), args.out)


if __name__ == "__main__":
    main()
