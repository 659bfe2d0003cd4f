"""Write a trained model as the Hub's layout: config.json, model.safetensors, tokenizer.json.

`python -m evenhand.training.export FOLDER TARGET` writes FOLDER's weights to TARGET as int8.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from evenhand.core.modes import share_as_usual
from evenhand.core.reading import read_text
from evenhand.neural import quantised
from evenhand.training import tokenizer
from evenhand.training.tokenizer import CLS, END, MASK, PAD, SEP, SPECIAL_TOKENS

WEIGHTS: Final = "model.safetensors"
OWN_KEY: Final = "evenhand_tokenizer"
"""Key of config.json: the asset folder whose tokenizer.json a model shares. The Hub's copy lacks it."""
_CONV1D: Final = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
"""GPT-2's matrices, stored (in, out): each output has a column."""


def save_folder(model: nn.Module, folder: Path, *, tokenizer_file: Path) -> None:
    """Write a model in float16 with its configuration and tokenizer; transformers loads the folder."""
    config: dict[str, object] = model.shape.hub_config()  # type: ignore[operator, union-attr]
    tensors = {name: value.detach().to("cpu", torch.float16) for name, value in model.state_dict().items()}
    _write(folder, tensors, config, tokenizer.load(tokenizer_file))


def hub_folder(source: Path, target: Path, *, tokenizer_file: Path) -> None:
    """Write the int8 (or float16) model of `source` in float32, for transformers: the very same numbers."""
    config = json.loads(read_text(source / "config.json"))
    _write(target, read_weights(source), config, tokenizer.load(tokenizer_file))


def quantise_folder(source: Path, target: Path, *, shares_tokenizer_of: str | None = None) -> None:
    """Write the float16 weights of `source` to `target` as int8 with a scale a row.

    The tokenizer is copied, or, with `shares_tokenizer_of`, named in config.json as the asset that has it.
    """
    target.mkdir(parents=True, exist_ok=True)
    quantised.save(load_file(source / WEIGHTS), target / WEIGHTS, by_column=is_conv1d)
    config = json.loads(read_text(source / "config.json"))
    if shares_tokenizer_of is None:
        shutil.copyfile(source / "tokenizer.json", target / "tokenizer.json")
    else:
        config[OWN_KEY] = shares_tokenizer_of
    _write_json(target / "config.json", config)


def is_conv1d(name: str) -> bool:
    """Return whether a tensor is stored (in, out), so that each output has a column and its scale too."""
    return name.startswith("transformer.h.") and name.endswith(_CONV1D)


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Return a folder's weights in float32, whether stored as float16 or int8."""
    return quantised.load(folder / WEIGHTS)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--shares-tokenizer-of", metavar="ASSET")
    args = parser.parse_args(argv)
    quantise_folder(args.source, args.target, shares_tokenizer_of=args.shares_tokenizer_of)


def _write(folder: Path, tensors: Mapping[str, Tensor], config: Mapping[str, object], bpe: Tokenizer) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.contiguous() for name, value in tensors.items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    share_as_usual(folder / WEIGHTS)
    _write_json(folder / "config.json", {key: value for key, value in config.items() if key != OWN_KEY})
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(config))
    if config["model_type"] == "bert":
        tokenizer.frame(bpe)
    bpe.save(str(folder / "tokenizer.json"), pretty=False)


def _write_json(path: Path, value: Mapping[str, object]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _tokenizer_config(config: Mapping[str, object]) -> dict[str, object]:
    """Return what `AutoTokenizer` needs beside tokenizer.json."""
    names = {"bos": END, "eos": END, "unk": END, "pad": PAD, "cls": CLS, "sep": SEP, "mask": MASK}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.get("n_positions", config.get("max_position_embeddings")),
        "clean_up_tokenization_spaces": False,
        **{f"{name}_token": SPECIAL_TOKENS[index] for name, index in names.items()},
    }


if __name__ == "__main__":
    main()
