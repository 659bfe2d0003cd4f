"""Tokens a second of our sampling loop and of transformers' generate(), same model, same run.

    python benchmarks/bench_sampling.py [--shape 30m|builtin|shipped] [--threads 2] [--out FILE.json]

First the gate: greedy texts must be identical. Then the ways are timed in turn, round after round, and the
medians are compared. Weights are random: they cost what trained ones cost. ``shipped`` is the embedded model
with its own weights, int8 on the disk and computed with in float32, in both ways.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from harness import Way, gate, parser, result, take_turns, write
from id_codec import IdCodec
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from evenhand.core.files import asset_path
from evenhand.core.records import GenerationSpec, Request
from evenhand.generation.gpt2 import Gpt2, Gpt2Shape
from evenhand.generation.scheduler import SamplingLoop
from evenhand.tensors import int8_weights

SHAPES = {
    "30m": {"vocab_size": 50257, "n_positions": 256, "n_embd": 384, "n_layer": 6, "n_head": 6},
    "builtin": {"vocab_size": 16384, "n_positions": 256, "n_embd": 384, "n_layer": 8, "n_head": 6},
}
SHAPES["shipped"] = SHAPES["builtin"]
ROWS = 32


def subject(shape: str) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(**SHAPES[shape], bos_token_id=0, eos_token_id=None)).eval()
    if shape == "shipped":
        stored = int8_weights.load_dequantised(asset_path("builtin", "model.safetensors"))
        plain = {name.removeprefix("transformer."): tensor for name, tensor in stored.items()}
        missing = model.transformer.load_state_dict(plain, strict=False).missing_keys
        gate(not missing, f"the embedded model lacks {missing}")
        return model
    for weights in model.parameters():
        if weights.ndim == 2:
            weights.data *= 4
    return model


def prompts(vocabulary: int) -> list[list[int]]:
    """Six to nine tokens each, as the starter prompts have."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(1, vocabulary, (6 + row % 4,), generator=generator).tolist() for row in range(ROWS)]


def ours(loop: SamplingLoop, rows: Sequence[Sequence[int]], spec: GenerationSpec) -> list[list[int]]:
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


def identical_greedy(
    model: GPT2LMHeadModel, loop: SamplingLoop, rows: Sequence[Sequence[int]], tokens: int
) -> int:
    """How many rows equal those of generate(): in one batch or, where rounding makes them differ, alone."""
    spec = GenerationSpec(max_new_tokens=tokens, temperature=0, stop="none")
    found, together = ours(loop, rows, spec), theirs(model, rows, spec)
    return sum(
        text == wanted or text == theirs(model, [row], spec)[0]
        for row, text, wanted in zip(rows, found, together, strict=True)
    )


def measure(shape: str, rounds: int, tokens: int, threads: int) -> dict[str, object]:
    # Said aloud: importing another library may have changed it.
    torch.set_num_threads(threads)
    model = subject(shape)
    found = Gpt2Shape.of(model.config.to_dict())
    assert found is not None
    loop = SamplingLoop(Gpt2(found, model.state_dict()), IdCodec(), batch=ROWS)
    rows = prompts(found.vocabulary)
    same = identical_greedy(model, loop, rows, tokens)
    gate(same == ROWS, f"greedy texts differ on {ROWS - same} of {ROWS} rows")
    spec = GenerationSpec(max_new_tokens=tokens, stop="none")
    turns = take_turns(
        {
            "evenhand, 32 rows": Way(lambda: ours(loop, rows, spec), ROWS * tokens),
            "generate(), 32 rows": Way(lambda: theirs(model, rows, spec), ROWS * tokens),
            "generate(), 1 row": Way(lambda: theirs(model, rows[:1], spec), tokens),
        },
        rounds=rounds,
        warm=1,
    )
    return result(
        turns,
        ours="evenhand, 32 rows",
        unit="tokens/s",
        gate=f"greedy texts identical on {same} of {ROWS} rows",
        data="the embedded model" if shape == "shipped" else "random weights",
        shape=shape,
        weights="int8 on the disk, float32 in memory" if shape == "shipped" else "float32",
        parameters=sum(weights.numel() for weights in model.parameters()),
        new_tokens=tokens,
    )


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--shape", choices=sorted(SHAPES), default="30m")
    options.add_argument("--tokens", type=int, default=64)
    options.add_argument("--threads", type=int, default=2)
    args = options.parse_args()
    write(measure(args.shape, args.rounds, args.tokens, args.threads), args.out)
