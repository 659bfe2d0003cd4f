"""A model folder in the Hub's layout: its configuration, its weights, and what is missing from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from safetensors import SafetensorError, safe_open
from torch import Tensor

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import ModelError

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "*.bpe.model")
_CONVERT = (
    "convert it where you trust it: "
    "`AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW, safe_serialization=True)`"
)


def read_config(folder: Path, name: str = "config.json") -> Mapping[str, object]:
    """The folder's configuration."""
    path = folder / name
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"{path} cannot be read: {'it is not there' if not path.exists() else error}",
            accepted="a model folder with config.json, safetensors weights and a tokenizer",
            todo="check the folder, or save the model again",
        ) from error
    if not isinstance(config, dict):
        raise ModelError(f"{path} is no JSON object", accepted="a model's config.json", todo="save it again")
    return cast("Mapping[str, object]", config)


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, all of them there."""
    if (folder / _INDEX).is_file():
        files = [folder / shard for shard in _shards(folder)]
    else:
        files = [folder / _WEIGHTS] if (folder / _WEIGHTS).is_file() else []
    missing = [file.name for file in files if not file.is_file()]
    if files and not missing:
        return files
    # Adapters and other parts of a model have names of their own: they are no model.
    pickled = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth") for path in folder.glob(pattern))
    if pickled and not files:
        raise ModelError(
            f"{folder} has its weights only as {pickled[0]}, a pickle, which can run code when it is read",
            accepted="safetensors",
            todo=_CONVERT,
        )
    raise ModelError(
        f"{folder} has no weights" + (f": {missing[0]} is missing" if missing else ""),
        accepted="model.safetensors, or its shards with their index",
        todo="download or save the model again",
    )


def _shards(folder: Path) -> list[str]:
    """The files an index names, each once; a hostile one could name files elsewhere."""
    listed = read_config(folder, _INDEX).get("weight_map")
    names: list[object] = list(listed.values()) if isinstance(listed, dict) else []
    shards = {name for name in names if isinstance(name, str) and Path(name).name == name}
    if not names or not all(isinstance(name, str) and name in shards for name in names):
        raise ModelError(
            f"{folder / _INDEX} has no weight_map of tensors and files",
            accepted="the name of a file in the same folder for every tensor",
            todo="download or save the model again",
        )
    return sorted(shards)


def weights_digest(files: Sequence[Path]) -> str:
    """One digest of the bytes of all files."""
    return digest([[file.name, file_digest(file)] for file in files])


def read_tensors(files: Sequence[Path]) -> dict[str, Tensor]:
    """All tensors of the files, by name."""
    tensors: dict[str, Tensor] = {}
    for path in files:
        try:
            with safe_open(path, framework="pt") as file:
                tensors |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        except (SafetensorError, OSError) as error:
            raise ModelError(
                f"{path} is damaged: {error}",
                accepted="a complete safetensors file",
                todo="download it again",
            ) from error
    return tensors


def require_tokenizer(folder: Path) -> None:
    """An error where the folder has no tokenizer: transformers would make an empty one."""
    if not any(next(folder.glob(pattern), None) for pattern in _TOKENIZERS):
        raise ModelError(
            f"{folder} has no tokenizer",
            accepted=", ".join(_TOKENIZERS),
            todo="save the tokenizer into the folder too",
        )
