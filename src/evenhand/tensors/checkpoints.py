"""A model folder in the Hub's layout: its configuration and weights, checked for missing or unsafe parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, cast

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import EvenhandError, ModelError
from evenhand.core.regular_files import read_text
from evenhand.tensors.linear_layer import LayerNormWeights

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "*.bpe.model")
_CONVERT = (
    "convert it if you trust it: "
    "`AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW, safe_serialization=True)`"
)

MOST_LAYERS: Final = 1024
"""Several times the depth of the deepest published models: a configuration with more is damaged."""

Network = TypeVar("Network", bound=nn.Module)
_Number = TypeVar("_Number", int, float)


@contextmanager
def raise_model_errors(what: str, *, expected: str, fix: str) -> Iterator[None]:
    """Convert any reading error to one that names the model; our own errors and ImportErrors pass through.

    Libraries do not document which errors a damaged file raises.
    """
    try:
        yield
    except (EvenhandError, ImportError):
        raise
    except BaseException as error:
        # A Rust panic is not an Exception, and its class cannot be imported.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = " ".join(str(error).split())[:300]
        raise ModelError(
            f"{what} cannot be loaded: {type(error).__name__}: {reason}", expected=expected, fix=fix
        ) from error


def our_model_errors(folder: Path) -> AbstractContextManager[None]:
    """The same for a folder written by our own training."""
    return raise_model_errors(
        str(folder), expected="a folder that `evenhand train` wrote", fix="train the model again"
    )


def load_network(make: Callable[[], Network], tensors: Mapping[str, Tensor], what: str) -> Network:
    """The network with these weights; an error, before memory is allocated, if their shapes differ."""
    with torch.device("meta"):
        expected = {name: tuple(value.shape) for name, value in make().state_dict().items()}
    stored = {name: tuple(value.shape) for name, value in tensors.items()}
    wrong = sorted(name for name in expected | stored if expected.get(name) != stored.get(name))
    if wrong:
        name = wrong[0]
        raise ModelError(
            f"the weights of {what} do not fit its config.json: {name!r} has the shape {stored.get(name)} "
            f"instead of {expected.get(name)}",
            expected="the files of one training run",
            fix="train, export or download the model again",
        )
    require_finite(tensors, what)
    network = make()
    network.load_state_dict(tensors)
    return network


def require_finite(tensors: Mapping[str, Tensor], what: str) -> None:
    """Raise an error that names the first tensor with NaN or infinity.

    A single pass without copies: half a second for 300 million weights on one core.
    """
    for name, value in tensors.items():
        if not value.is_floating_point() or not value.numel():
            continue
        # NaN propagates through minimum and maximum. 8-bit numbers support neither.
        low, high = (value if value.element_size() > 1 else value.float()).aminmax()
        if not (low.isfinite() & high.isfinite()):
            raise ModelError(
                f"the weights of {what} are not finite: {name!r} holds NaN or infinity",
                expected="weights that are finite in the dtype of the computation",
                fix="download or export the model again; if the file's numbers are finite, load it with "
                "another dtype: float32 and bfloat16 hold far larger numbers than float16",
            )


def check_config(config: Mapping[str, object], what: str) -> None:
    """Raise an error for too many layers, and for compute kernels named by their repository on the Hub.

    Each layer takes time and memory before any weight is read. Kernels would be downloaded and run by
    transformers as compiled code if the library `kernels` is installed.
    """
    for name, value in config.items():
        if name.endswith("_implementation") and "/" in str(value):
            raise ModelError(
                f"the configuration of {what} requests custom code: {name} = {str(value)[:80]!r}",
                expected="the attention and experts built into transformers",
                fix=f"remove {name} from config.json",
            )
        if isinstance(value, Mapping):
            check_config(value, what)
        elif "layer" in name and isinstance(value, int) and value > MOST_LAYERS:
            raise ModelError(
                f"the configuration of {what} says {name} = {str(value)[:20]}",
                expected=f"at most {MOST_LAYERS} layers",
                fix="download or save the model again",
            )


def read_config(folder: Path, name: str = "config.json") -> Mapping[str, object]:
    """The configuration of the folder."""
    path = folder / name
    try:
        config = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"{path} cannot be read: {'it does not exist' if not path.exists() else error}",
            expected="a model folder with config.json, safetensors weights and a tokenizer",
            fix="check the folder, or save the model again",
        ) from error
    if not isinstance(config, dict):
        raise ModelError(f"{path} is not a JSON object", expected="a model config", fix="save it again")
    return cast("Mapping[str, object]", config)


def config_number(config: Mapping[str, object], name: str, default: _Number) -> _Number:
    """A number in a configuration; the default if it is missing or null."""
    value = config.get(name)
    return default if value is None else cast(_Number, value)


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, checked to be complete."""
    if (folder / _INDEX).is_file():
        files = [folder / shard for shard in _shards(folder)]
    else:
        files = [folder / _WEIGHTS] if (folder / _WEIGHTS).is_file() else []
    missing = [file.name for file in files if not file.is_file()]
    if files and not missing:
        return files
    # Adapters and other parts of a model have different names: they are not models.
    pickled = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth") for path in folder.glob(pattern))
    if pickled and not files:
        raise ModelError(
            f"{folder} has its weights only as {pickled[0]}, a pickle, which can run code when it is read",
            expected="safetensors",
            fix=_CONVERT,
        )
    raise ModelError(
        f"{folder} has no weights" + (f": {missing[0]} is missing" if missing else ""),
        expected="model.safetensors, or its shards with their index",
        fix="download or save the model again",
    )


def _shards(folder: Path) -> list[str]:
    """The files named in an index, each once; a malicious index could name files elsewhere."""
    listed = read_config(folder, _INDEX).get("weight_map")
    names: list[object] = list(listed.values()) if isinstance(listed, dict) else []
    shards = {name for name in names if isinstance(name, str) and Path(name).name == name and len(name) < 200}
    if not names or not all(isinstance(name, str) and name in shards for name in names):
        raise ModelError(
            f"{folder / _INDEX} has no weight_map of tensors and files",
            expected="the name of a file in the same folder for every tensor",
            fix="download or save the model again",
        )
    return sorted(shards)


def weights_digest(files: Sequence[Path]) -> str:
    """One digest of the contents of all files."""
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
                expected="a complete safetensors file",
                fix="download it again",
            ) from error
    return tensors


@dataclass(frozen=True, slots=True)
class WeightReader:
    """Finds weights by name, with or without ``prefix``, and moves them to the device."""

    tensors: Mapping[str, Tensor]
    prefix: str
    device: torch.device
    dtype: torch.dtype
    epsilon: float

    def tensor(self, name: str) -> Tensor:
        """The weights of this name."""
        for candidate in self.spellings(name):
            stored = self.tensors.get(candidate, self.tensors.get(self.prefix + candidate))
            if stored is not None:
                weights = stored.to(self.device, self.dtype)
                require_finite({candidate: weights}, "the model")
                return weights
        raise ModelError(
            f"the weights have no {name!r}",
            expected="a complete checkpoint with its language-model head",
            fix="save or download the model again",
        )

    def spellings(self, name: str) -> tuple[str, ...]:
        """The names of these weights in checkpoints."""
        return (name,)

    def table(self, name: str, entries: int, width: int) -> Tensor:
        """A matrix of vectors; an error if its size differs."""
        table = self.tensor(name)
        if table.shape != (entries, width):
            raise ModelError(
                f"{name!r} is {' x '.join(map(str, table.shape))}, not {entries} x {width}",
                expected="weights with the sizes in config.json",
                fix="save or download the model again",
            )
        return table

    def norm(self, name: str) -> LayerNormWeights:
        """A layer normalisation."""
        return LayerNormWeights(self.tensor(f"{name}.weight"), self.tensor(f"{name}.bias"), self.epsilon)


def require_tokenizer(folder: Path) -> None:
    """Raise an error if the folder has no tokenizer: transformers would create an empty one."""
    if not any(next(folder.glob(pattern), None) for pattern in _TOKENIZERS):
        raise ModelError(
            f"{folder} has no tokenizer",
            expected=", ".join(_TOKENIZERS),
            fix="save the tokenizer into the folder too",
        )
