"""Write a trained model as the Hub's layout: config.json, model.safetensors, tokenizer.json.

`python -m tools.assets.export_weights FOLDER TARGET` writes FOLDER's weights to TARGET as int8.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file

from evenhand.core.regular_files import read_text
from evenhand.models.hub_layout import OWN_KEY, WEIGHTS, write_hub_folder, write_json
from evenhand.tensors import int8_weights
from tools.assets import train_tokenizer
from tools.assets.language_models import CausalModel, MaskedModel, hub_tensors

_CONV1D: Final = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
"""GPT-2's matrices, stored (in, out): each output has a column."""


def save_folder(model: CausalModel | MaskedModel, folder: Path, *, tokenizer_file: Path) -> None:
    """Write a model in float16 with its configuration and tokenizer; transformers loads the folder."""
    tensors = {name: value.detach().to("cpu", torch.float16) for name, value in hub_tensors(model).items()}
    write_hub_folder(folder, tensors, model.shape.hub_config(), train_tokenizer.load(tokenizer_file))


def quantise_folder(source: Path, target: Path, *, shares_tokenizer_of: str | None = None) -> None:
    """Write the float16 weights of `source` to `target` as int8 with a scale a row.

    The tokenizer is copied, or, with `shares_tokenizer_of`, named in config.json as the asset that has it.
    """
    target.mkdir(parents=True, exist_ok=True)
    int8_weights.save_quantised(load_file(source / WEIGHTS), target / WEIGHTS, by_column=is_conv1d)
    config = json.loads(read_text(source / "config.json"))
    if shares_tokenizer_of is None:
        shutil.copyfile(source / "tokenizer.json", target / "tokenizer.json")
    else:
        config[OWN_KEY] = shares_tokenizer_of
    write_json(target / "config.json", config)


def is_conv1d(name: str) -> bool:
    """Return whether a tensor is stored (in, out), so that each output has a column and its scale too."""
    return name.startswith("transformer.h.") and name.endswith(_CONV1D)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--shares-tokenizer-of", metavar="ASSET")
    args = parser.parse_args(argv)
    quantise_folder(args.source, args.target, shares_tokenizer_of=args.shares_tokenizer_of)


if __name__ == "__main__":
    main()
