"""Texts a second of masked generation: 64 prompts side by side against one at a time, same model, same run.

    python benchmarks/bench_masked.py [--shape builtin|bert-large] [--device cpu|cuda] [--out FILE.json]

First the gate: the texts must be those of the obvious loop in tests/oracles, token by token. In half
precision, where rounding decides between tokens, the probabilities of the first token must be about as near
to float32's as transformers' are. Then all are timed in turn, round after round, and the medians compared:

* ours at 64 rows: the output layer at one place a row, iterations that cannot change a text left out;
* ours at 1 row: the same, one prompt at a time;
* plain: one prompt at a time as the cited implementation does it, transformers' forward pass over the whole
  row and vocabulary at every iteration.

``builtin`` is the embedded model on the starter prompts; ``bert-large`` has that model's sizes and random
weights, which cost what trained ones cost. The default number of iterations is half of the paper's, so that
the whole takes minutes; `--burn-in 200 --iterations 500` is the paper's.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from harness import Way, gate, parser, result, take_turns, write
from tests.oracles import gibbs as oracle
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM

from evenhand.core.files import asset_path
from evenhand.core.records import GenerationSpec, Request
from evenhand.generation.bert import Bert, BertShape
from evenhand.generation.gibbs_sampling import MaskedModel
from evenhand.generation.tokenizer import MaskedTokenCodec
from evenhand.suites.starter import StarterSuite
from evenhand.tensors import int8_weights
from evenhand.tensors.checkpoints import read_config

ROWS = 64
LARGE = {
    "vocab_size": 28996,
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}


class Subject(NamedTuple):
    """A model in transformers' classes and in ours, with its tokenizer."""

    theirs: BertForMaskedLM
    ours: Bert
    codec: MaskedTokenCodec


def subject(shape: str, device: torch.device, dtype: torch.dtype) -> Subject:
    if shape == "builtin":
        config = dict(read_config(asset_path("builtin-masked")))
        model = BertForMaskedLM(BertConfig(**_plain(config)))
        weights = int8_weights.load_dequantised(asset_path("builtin-masked", "model.safetensors"))
        model.load_state_dict(weights, strict=False)
        model.tie_weights()
    else:
        torch.manual_seed(0)
        model = BertForMaskedLM(BertConfig(**LARGE))
    model = model.eval().to(device, dtype)
    sizes = BertShape.of(model.config.to_dict())
    assert sizes is not None
    codec = MaskedTokenCodec.read(asset_path("builtin", "tokenizer.json"), vocabulary=sizes.vocabulary)
    return Subject(model, Bert(sizes, model.state_dict(), device=device, dtype=dtype), codec)


def _plain(config: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in config.items() if name not in ("architectures", "model_type")}


def requests() -> list[Request]:
    """Sixty-four starter prompts, spread over the suite."""
    prompts = list(StarterSuite().prompts())
    return [Request(prompt.id, prompt.text, (0,)) for prompt in prompts[:: len(prompts) // ROWS][:ROWS]]


def ours(item: Subject, asked: Sequence[Request], spec: GenerationSpec, rows: int) -> dict[str, str | None]:
    loop = MaskedModel(item.ours, item.codec, rows)
    return {done.request_id: done.text for done in loop.generate(asked, spec)}


def framed(item: Subject, request: Request, spec: GenerationSpec) -> tuple[list[int], int]:
    """The row with its masks, and where they begin."""
    prompt, codec = item.codec.encode([request.text])[0], item.codec
    return [codec.before, *prompt, *[codec.mask] * spec.max_new_tokens, codec.after], len(prompt) + 1


def plain(item: Subject, asked: Sequence[Request], spec: GenerationSpec) -> dict[str, str | None]:
    """One prompt after the other, every iteration, the whole output."""
    device = item.ours.device
    generator = torch.Generator(device).manual_seed(0)
    found: dict[str, str | None] = {}
    for request in asked:
        row, first = framed(item, request, spec)
        tokens = torch.tensor([row], device=device)
        for iteration in range(spec.iterations or 0):
            place = first + int(torch.randint(spec.max_new_tokens, (), device="cpu"))
            tokens[0, place] = item.codec.mask
            with torch.no_grad():
                scores = item.theirs(input_ids=tokens).logits[0, place].float()
            tokens[0, place] = _token(scores, iteration < (spec.burn_in or 0), spec, generator)
        written = tokens[0, first : first + spec.max_new_tokens].tolist()
        found[request.id] = item.codec.continuation(request.text, row[1:first], written)
    return found


def _token(scores: Tensor, samples: bool, spec: GenerationSpec, generator: torch.Generator) -> Tensor:
    if not samples:
        return scores.argmax()
    return torch.multinomial((scores / spec.temperature).softmax(-1), 1, generator=generator)[0]


def identical(item: Subject, asked: Sequence[Request], spec: GenerationSpec) -> int:
    """How many texts the obvious loop writes too, token by token."""

    def scores(row: Sequence[int]) -> oracle.Logits:
        with torch.no_grad():
            logits = item.theirs(input_ids=torch.tensor([row], device=item.ours.device)).logits[0]
        return np.asarray(logits.double().cpu())

    fast, same = ours(item, asked, spec, ROWS), 0
    for request in asked:
        row, first = framed(item, request, spec)
        written = oracle.fill(
            scores,
            row,
            first,
            spec,
            mask=item.codec.mask,
            barred=item.codec.excluded_tokens,
            prompt_id=request.id,
            sample=0,
        )
        same += item.codec.continuation(request.text, row[1:first], written) == fast[request.id]
    return same


def rounding(item: Subject, asked: Sequence[Request], spec: GenerationSpec) -> tuple[float, float]:
    """How far our probabilities of a prompt's first token are from float32's at most, and transformers'."""
    exact = copy.deepcopy(item.theirs).float()
    away: list[tuple[float, float]] = []
    for request in asked:
        row, first = framed(item, request, spec)
        tokens = torch.tensor([row], device=item.ours.device)
        lengths, places = (torch.tensor([number], device=item.ours.device) for number in (len(row), first))
        with torch.no_grad():
            said = [model(input_ids=tokens).logits[:, first].float() for model in (exact, item.theirs)]
            true, theirs, mine = (
                logits.softmax(-1) for logits in (*said, item.ours.logits(tokens, lengths, places))
            )
        away.append(((mine - true).abs().sum().item() / 2, (theirs - true).abs().sum().item() / 2))
    return max(one for one, _ in away), max(other for _, other in away)


def checked(item: Subject, asked: Sequence[Request], spec: GenerationSpec) -> str:
    """What the gate has seen."""
    if item.ours.dtype != torch.float32:
        mine, theirs = rounding(item, asked, spec)
        said = f"total variation from float32 at most {mine:.0e}, transformers' {theirs:.0e}"
        gate(mine <= 2 * theirs, said)
        return said
    same = identical(item, asked, spec)
    gate(same == len(asked), f"texts differ on {len(asked) - same} of {len(asked)}")
    return f"texts of the obvious loop, token by token, on {same} of {len(asked)}"


def measure(options: argparse.Namespace) -> dict[str, object]:
    # Said aloud: importing another library may have changed it.
    torch.set_num_threads(options.threads)
    device, dtype = torch.device(options.device), getattr(torch, options.dtype)
    item, asked = subject(options.shape, device, dtype), requests()
    spec = GenerationSpec(
        max_new_tokens=15,
        temperature=0.7,
        top_k=0,
        top_p=1.0,
        stop="none",
        burn_in=options.burn_in,
        iterations=options.iterations,
    )
    said = checked(item, asked[:: ROWS // options.checked][: options.checked], spec)
    some = asked[:: ROWS // options.single][: options.single]
    turns = take_turns(
        {
            "evenhand, 64 rows": Way(lambda: ours(item, asked, spec, ROWS), len(asked)),
            "evenhand, 1 row": Way(lambda: ours(item, some, spec, 1), len(some)),
            "plain, 1 row": Way(lambda: plain(item, some, spec), len(some)),
        },
        rounds=options.rounds,
        warm=1,
    )
    return result(
        turns,
        ours="evenhand, 64 rows",
        unit="texts/s",
        gate=said,
        data="starter prompts",
        shape=options.shape,
        device=options.device,
        dtype=options.dtype,
        parameters=sum(weights.numel() for weights in item.theirs.parameters()),
        new_tokens=spec.max_new_tokens,
        burn_in=spec.burn_in,
        iterations=spec.iterations,
    )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--shape", choices=["builtin", "bert-large"], default="builtin")
    options.add_argument("--device", default="cpu")
    options.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    options.add_argument("--burn-in", type=int, default=100)
    options.add_argument("--iterations", type=int, default=250)
    options.add_argument("--single", type=int, default=2, help="prompts a round for the ways with one row")
    options.add_argument("--checked", type=int, default=4, help="prompts of the gate")
    options.add_argument("--threads", type=int, default=2)
    args = options.parse_args()
    write(measure(args), args.out)


if __name__ == "__main__":
    main()
