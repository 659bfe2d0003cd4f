"""Measure a language model on held-out text: bits per byte, and accuracy on [MASK] positions.

`python -m tools.assets.evaluate_language_model FOLDER.. --held-out DIR` writes one line of JSON a folder.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from evenhand.models.hub_layout import CLS, END, MASK, SEP, SPECIAL_TOKENS
from tools.assets import token_shards
from tools.assets.language_models import CausalModel, MaskedModel, load_model

MASK_SHARE: Final = 0.15
FEWEST_CLUSTERS: Final = 30
"""Documents or windows under which no interval is given: the normal approximation would be a guess."""
_Z: Final = 1.959964


class BitsPerByte(NamedTuple):
    """How well a causal model predicts a text; smaller is better."""

    bits_per_byte: float
    """All bits spent on the text, over its UTF-8 bytes before cleaning."""
    low: float | None
    high: float | None
    """95 % interval, documents being the clusters; None under 30 documents."""
    loss: float
    """Mean nats a token."""
    tokens: int
    bytes: int
    documents: int


class MaskAccuracy(NamedTuple):
    """How often a masked model's likeliest token is the one that stood at a [MASK]; larger is better."""

    accuracy: float
    low: float | None
    high: float | None
    """95 % interval, windows being the clusters; None under 30 windows."""
    loss: float
    """Mean nats a mask."""
    masks: int
    windows: int


def bits_per_byte(
    model: CausalModel,
    tokens: NDArray[np.uint16],
    *,
    document_bytes: Sequence[int],
    device: str = "cpu",
    rows: int = 64,
) -> BitsPerByte:
    """Return bits per byte of a stream `END document END .. END`, the context reset every 256 tokens.

    Every token after the first is predicted exactly once, from the tokens of its window before it (256 is the
    model's context). The end of a document is predicted too and its bits counted, though it has no bytes.
    `document_bytes` holds each document's bytes before cleaning.
    """
    nats = token_losses(model, tokens, device=device, rows=rows)
    ends = np.flatnonzero(tokens[1:] == END)
    bits = np.add.reduceat(nats, np.concatenate([[0], ends[:-1] + 1])) / math.log(2)
    sizes = np.asarray(document_bytes, dtype=np.float64)
    rate = float(bits.sum() / sizes.sum())
    low, high = _interval(rate, bits - rate * sizes, float(sizes.sum()))
    return BitsPerByte(rate, low, high, float(nats.mean()), len(nats), int(sizes.sum()), len(sizes))


def token_losses(
    model: CausalModel, tokens: NDArray[np.uint16], *, device: str = "cpu", rows: int = 64
) -> NDArray[np.float64]:
    """Return the nats of each token but the first, read in windows of the model's context."""
    context = model.shape.context
    count = len(tokens) - 1
    padded = np.full(-(-count // context) * context + 1, END, dtype=np.int64)
    padded[: count + 1] = tokens
    stream = torch.from_numpy(padded)
    losses: list[Tensor] = []
    with torch.inference_mode():
        for at in range(0, len(stream) - 1, rows * context):
            window = stream[at : at + rows * context + 1].to(device)
            scores = model.logits(window[:-1].view(-1, context)).flatten(0, 1)
            losses.append(F.cross_entropy(scores, window[1:], reduction="none").cpu())
    return torch.cat(losses)[:count].double().numpy()


def mask_accuracy(
    model: MaskedModel, tokens: NDArray[np.uint16], *, seed: int = 0, device: str = "cpu", rows: int = 64
) -> MaskAccuracy:
    """Return the accuracy at [MASK] over consecutive windows `[CLS] text [SEP]` of a stream.

    15 % of each window's tokens (ends of documents never) are replaced by [MASK], all of them counted; no
    token is left in place and counted, which would flatter by about five points. A last partial window is
    left out.
    """
    inner = model.shape.context - 2
    targets = round(MASK_SHARE * inner)
    generator = torch.Generator().manual_seed(seed)
    text = torch.from_numpy(tokens[: len(tokens) // inner * inner].astype(np.int64)).view(-1, inner)
    parts = [
        _judge(model, _masked(text[at : at + rows], targets, generator), device)
        for at in range(0, len(text), rows)
    ]
    hits = np.concatenate([hit for hit, _ in parts])
    nats = sum(loss for _, loss in parts)
    accuracy = float(hits.mean())
    low, high = _interval(accuracy, hits - accuracy, len(hits))
    return MaskAccuracy(accuracy, low, high, nats / (len(hits) * targets), len(hits) * targets, len(hits))


def evaluate_folder(
    folder: Path, held_out: Path, *, device: str, rows: int = 64
) -> dict[str, dict[str, float | None]]:
    """Return each source's held-out figures for the model in `folder`.

    `held_out` holds one shard a source, `NAME-000.u16.xz`, and `held_out.json` with its documents' raw bytes.
    """
    about = json.loads((held_out / "held_out.json").read_text())
    model = load_model(folder)
    torch.nn.Module.to(model, device)
    figures: dict[str, dict[str, float | None]] = {}
    for source, facts in about.items():
        tokens = token_shards.read([held_out / f"{source}-000{token_shards.SUFFIX}"])
        if isinstance(model, CausalModel):
            sizes = facts["document_bytes"]
            result = bits_per_byte(model, tokens, document_bytes=sizes, device=device, rows=rows)._asdict()
        else:
            result = mask_accuracy(model, tokens, device=device, rows=rows)._asdict()
        figures[source] = result
    return figures


def main(argv: Sequence[str] | None = None) -> None:
    """Write the held-out figures of each folder to standard output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, default=64)
    args = parser.parse_args(argv)
    for folder in args.folders:
        figures = evaluate_folder(folder, args.held_out, device=args.device, rows=args.rows)
        sys.stdout.write(json.dumps({"folder": folder.name, **figures}) + "\n")


def _interval(
    estimate: float, residuals: NDArray[np.float64], size: float
) -> tuple[float, float] | tuple[None, None]:
    """Return the interval of a ratio from its clusters' residuals and the sum of its denominators."""
    clusters = len(residuals)
    if clusters < FEWEST_CLUSTERS:
        return None, None
    error = math.sqrt(clusters / (clusters - 1) * float(np.square(residuals).sum())) / size
    return estimate - _Z * error, estimate + _Z * error


def _judge(
    model: MaskedModel, batch: tuple[Tensor, Tensor, Tensor], device: str
) -> tuple[NDArray[np.float64], float]:
    """Return each window's share of masks filled rightly, and the nats of all masks."""
    inputs, positions, answers = (tensor.to(device) for tensor in batch)
    with torch.inference_mode():
        scores = model.logits_at(inputs, positions)
        loss = F.cross_entropy(scores.flatten(0, 1), answers.flatten(), reduction="sum")
    return (scores.argmax(-1) == answers).double().mean(dim=1).cpu().numpy(), float(loss)


def _masked(text: Tensor, targets: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Return (inputs, positions, answers) of windows with `targets` of their tokens masked."""
    whole = F.pad(text, (1, 1), value=SEP)
    whole[:, 0] = CLS
    draw = torch.rand(whole.shape, generator=generator).masked_fill(whole < len(SPECIAL_TOKENS), -1.0)
    positions = draw.topk(targets, dim=1).indices
    return whole.scatter(1, positions, MASK), positions, whole.gather(1, positions)


if __name__ == "__main__":
    main()
