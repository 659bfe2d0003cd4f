"""Models in the Hub's layout: config.json, model.safetensors, tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from safetensors.torch import save_file
from tokenizers import Tokenizer, processors
from torch import Tensor

from evenhand.core.files import apply_umask
from evenhand.core.regular_files import read_text
from evenhand.tensors import int8_weights

WEIGHTS: Final = "model.safetensors"
OWN_KEY: Final = "evenhand_tokenizer"
"""Key of config.json: the asset folder whose tokenizer.json a model shares. Absent from the Hub's copy."""
SPECIAL_TOKENS: Final = ("<|endoftext|>", "[PAD]", "[CLS]", "[SEP]", "[MASK]")
END, PAD, CLS, SEP, MASK = range(len(SPECIAL_TOKENS))


def hub_folder(source: Path, target: Path, *, tokenizer_file: Path) -> None:
    """Write the int8 (or float16) model in `source` as float32 for transformers, with the same values."""
    config = json.loads(read_text(source / "config.json"))
    tensors = int8_weights.load_dequantised(source / WEIGHTS)
    write_hub_folder(target, tensors, config, Tokenizer.from_file(str(tokenizer_file)))


def write_hub_folder(
    folder: Path, tensors: Mapping[str, Tensor], config: Mapping[str, object], bpe: Tokenizer
) -> None:
    """Write weights, configuration and tokenizer; transformers loads the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.contiguous() for name, value in tensors.items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    apply_umask(folder / WEIGHTS)
    write_json(folder / "config.json", {key: value for key, value in config.items() if key != OWN_KEY})
    names = {"bos": END, "eos": END, "unk": END, "pad": PAD, "cls": CLS, "sep": SEP, "mask": MASK}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.get("n_positions", config.get("max_position_embeddings")),
        "clean_up_tokenization_spaces": False,
        **{f"{name}_token": SPECIAL_TOKENS[index] for name, index in names.items()},
    }
    write_json(folder / "tokenizer_config.json", settings)
    if config["model_type"] == "bert":
        frame_texts(bpe)
    bpe.save(str(folder / "tokenizer.json"), pretty=False)


def frame_texts(tokenizer: Tokenizer) -> None:
    """Make the tokenizer put [CLS] before and [SEP] after each text, as the masked model reads them."""
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write a JSON file in the style of that layout."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
