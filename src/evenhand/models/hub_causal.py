"""Causal models of a Hub folder or a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from evenhand.core.digests import file_digest
from evenhand.core.errors import ModelError
from evenhand.core.records import ModelRef
from evenhand.core.regular_files import open_regular
from evenhand.generation.engine import Engine
from evenhand.generation.gpt2 import Gpt2
from evenhand.generation.gpt2_weights import Gpt2Shape
from evenhand.generation.hub_engine import HubEngine, check_cache
from evenhand.generation.scheduler import VERSION, SamplingLoop
from evenhand.generation.spec_checks import check_control_code
from evenhand.generation.tokenizer import HubCodec
from evenhand.models.local import CausalModel, local_options
from evenhand.models.transformers_loading import read_model, read_tokenizer
from evenhand.tensors.checkpoints import (
    read_config,
    read_tensors,
    require_tokenizer,
    weight_files,
    weights_digest,
)
from evenhand.tensors.devices import select_dtype
from evenhand.tensors.model_files import ModelFiles

_GENERATION = "generation_config.json"


def load_causal(
    source: ModelFiles,
    config: Mapping[str, object],
    *,
    dtype: str,
    device: torch.device,
    batch: int | None = None,
    control_code: str | None = None,
) -> CausalModel:
    """The causal model of a folder (with its ``config.json``) or of a GGUF file."""
    loaded = _from_gguf(source, dtype, device) if source.gguf else _from_folder(source, config, dtype, device)
    options = local_options(loaded.codec.digest, dtype=loaded.dtype, device=device, loop=VERSION)
    if control_code is not None:
        options["control_code"] = check_control_code(control_code, loaded.control_codes, source.name)
    return CausalModel(
        ModelRef("causal", source.name, loaded.revision, options),
        SamplingLoop(loaded.engine, loaded.codec, batch),
        control_code,
        loaded.control_codes,
    )


class _Loaded(NamedTuple):
    engine: Engine
    codec: HubCodec
    revision: str
    dtype: torch.dtype
    control_codes: frozenset[str]


def _from_folder(
    source: ModelFiles, config: Mapping[str, object], dtype: str, device: torch.device
) -> _Loaded:
    folder = source.folder
    files = weight_files(folder)
    require_tokenizer(folder)
    kind = select_dtype(dtype, device, stored=str(config.get("dtype") or config.get("torch_dtype")))
    shape = Gpt2Shape.of(config)
    engine: Engine
    if shape is not None:
        engine = Gpt2(shape, read_tensors(files), device=device, dtype=kind)
    else:
        engine = _checked_engine(
            read_model(AutoModelForCausalLM, source, dtype=kind, device=device), source.name
        )
    tokenizer = read_tokenizer(source, cast(int, config.get("vocab_size", 0)))
    asked = read_config(folder, _GENERATION) if (folder / _GENERATION).is_file() else {}
    ends = _end_tokens(asked.get("eos_token_id"), config.get("eos_token_id"), tokenizer.eos_token_id)
    revision = source.commit or weights_digest(files)
    # Only CTRL's tokenizer has such codes.
    codes: Mapping[str, int] = getattr(tokenizer, "control_codes", {})
    return _Loaded(engine, HubCodec.of(tokenizer, ends=ends), revision, kind, frozenset(codes))


def _from_gguf(source: ModelFiles, dtype: str, device: torch.device) -> _Loaded:
    kind = select_dtype(dtype, device)
    _check_gguf(source.folder / str(source.gguf))
    model = read_model(AutoModelForCausalLM, source, dtype=kind, device=device)
    shape = Gpt2Shape.of(model.config.to_dict())
    engine: Engine
    if shape is not None:
        engine = Gpt2(shape, model.state_dict(), device=device, dtype=kind)
    else:
        engine = _checked_engine(model, source.name)
    tokenizer = read_tokenizer(source, model.config.get_text_config().vocab_size)
    ends = _end_tokens(
        model.generation_config.eos_token_id, model.config.eos_token_id, tokenizer.eos_token_id
    )
    revision = file_digest(source.folder / str(source.gguf))
    return _Loaded(engine, HubCodec.of(tokenizer, ends=ends), revision, kind, frozenset())


def _check_gguf(path: Path) -> None:
    """Refuse a file of another format in its own words, not in those of a library that stumbles over it."""
    with open_regular(path) as file:
        begin = file.read(4)
    if begin != b"GGUF":
        raise ModelError(
            f"the file {path.name} is no GGUF file: it begins with {begin!r}",
            expected="a file that begins with b'GGUF'",
            fix="download it again, or check what it is",
        )


def _checked_engine(model: PreTrainedModel, name: str) -> HubEngine:
    engine = HubEngine(model)
    check_cache(engine, name)
    return engine


def _end_tokens(*candidates: object) -> frozenset[int]:
    """The first that is given: a token or several."""
    for candidate in candidates:
        tokens = candidate if isinstance(candidate, list) else [candidate]
        if tokens and all(isinstance(token, int) for token in tokens):
            return frozenset(tokens)
    return frozenset()
