"""A yardstick for the classifiers: the embedded masked model's trunk, fine-tuned on the very same texts.

Run as ``python -m tools.assets.masked_baseline --data FOLDER --out FOLDER`` on a GPU; the folder is
what ``classifier_pack`` writes. The answers go to ``masked.npz``. A run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from tokenizers import Tokenizer

from evenhand.classifiers.encoder import ClassifierNetwork, Encoder, EncoderShape
from evenhand.core.files import asset_path
from evenhand.models import hub_layout
from evenhand.tensors import int8_weights
from evenhand.training.labelled_data import Example
from tools.assets import minilm
from tools.assets.classifier_data import Packed, pack_rows
from tools.assets.multitask import Labelled, TuneSpec, logits, tune
from tools.assets.train_classifiers import training_repeats

_LOG = logging.getLogger(__name__)

PACKED: Final = "masked.npz"
LONGEST: Final = 128
"""Token ids of the longest text: the masked model's context."""
SECONDS: Final = 42.0
"""As long as the student is tuned."""


def pack(bpe: Path, examples: Sequence[Example]) -> Packed:
    """The examples in the masked model's tokens, [CLS] first and [SEP] last."""
    encoded = Tokenizer.from_file(str(bpe)).encode_batch_fast(
        [example.text for example in examples], add_special_tokens=False
    )
    rows = [[hub_layout.CLS, *one.ids[: LONGEST - 2], hub_layout.SEP] for one in encoded]
    return pack_rows(rows, examples)


def trunk(folder: Path) -> Encoder:
    """The trunk of a masked model in the Hub's layout, int8 or float16, as our encoder.

    Its tokens 0 and 1 are end-of-text and PAD; exchanged, PAD is 0. CLS and SEP are START and END already.
    """
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    words, width = config["vocab_size"], config["hidden_size"]
    shape = EncoderShape(
        words,
        width,
        width=width,
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        inner=config["intermediate_size"],
        positions=config["max_position_embeddings"],
    )
    weights = int8_weights.load_dequantised(folder / "model.safetensors")
    named = {name.removeprefix("bert."): value for name, value in weights.items()}
    return minilm.from_bert(named, shape, [hub_layout.PAD, hub_layout.END, *range(2, words)])


def train(data: Path, model: Path, out: Path, *, spec: TuneSpec, device: str) -> int:
    """The steps taken; the answers on all texts outside training are written to ``out/masked.npz``."""
    packed = Packed.load(data / PACKED)
    rows = packed.rows(device)
    pretrained = trunk(model)
    torch.manual_seed(spec.seed)
    encoder = Encoder(pretrained.shape, dropout=0.1)
    encoder.load_state_dict(pretrained.state_dict())
    network = ClassifierNetwork(encoder).to(device)
    known = torch.from_numpy(packed.targets).to(device)
    checkpoint = out / "masked-checkpoint.safetensors"
    steps = tune(network, Labelled(rows, known, training_repeats(packed)), spec, checkpoint=checkpoint)
    kept = np.flatnonzero(packed.split != "train")
    answers = logits(network, rows)[torch.from_numpy(kept).to(device)]
    np.savez(out / PACKED, places=kept, masked=answers.half().cpu().numpy())
    checkpoint.unlink(missing_ok=True)
    return steps


def main(argv: list[str] | None = None) -> None:
    """Train the yardstick from the command line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="what `classifier_pack` wrote")
    parser.add_argument("--model", type=Path, help="folder of the masked model (default: the embedded one)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--tokens", type=int, default=TuneSpec().tokens)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    args.out.mkdir(parents=True, exist_ok=True)
    spec = TuneSpec(args.seconds, tokens=args.tokens, rate=2e-4)
    model = args.model or asset_path("builtin-masked")
    _LOG.info("%d steps", train(args.data, model, args.out, spec=spec, device=args.device))


if __name__ == "__main__":
    main()
