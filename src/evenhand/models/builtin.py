"""The language models that ship with evenhand: small, offline, and described by their cards."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError, ModelError
from evenhand.core.files import asset_path
from evenhand.core.records import Execution, ModelRef
from evenhand.generation import gibbs_sampling, scheduler
from evenhand.generation.bert import Bert, BertShape
from evenhand.generation.gpt2 import Gpt2
from evenhand.generation.gpt2_weights import Gpt2Shape
from evenhand.generation.masked_tokenizer import MaskedTokenCodec
from evenhand.generation.tokenizer import PlainCodec
from evenhand.models.local import CausalModel, MaskedModel, local_options
from evenhand.tensors import int8_weights
from evenhand.tensors.checkpoints import read_config
from evenhand.tensors.devices import select_device


def load(name: str = "causal", *, execution: Execution | None = None) -> CausalModel | MaskedModel:
    """The embedded causal or masked language model; int8 weights are computed with in float32."""
    if name not in ("causal", "masked"):
        raise InputError(
            f"there is no embedded model {name!r}", expected="builtin, builtin:masked", fix="use one of these"
        )
    return (load_causal if name == "causal" else load_masked)(execution or Execution())


def load_causal(execution: Execution) -> CausalModel:
    """The embedded causal language model."""
    folder = asset_path("builtin")
    config, weights = read_config(folder), folder / "model.safetensors"
    shape = Gpt2Shape.of(config)
    if shape is None:
        raise _damaged_error(folder)
    engine = Gpt2(shape, int8_weights.load_dequantised(weights), device=select_device(execution.device))
    codec = PlainCodec.read(folder / "tokenizer.json", end=cast(int, config["eos_token_id"]))
    ref = _refer("builtin", weights, codec.digest, engine, scheduler.VERSION)
    return CausalModel(ref, scheduler.SamplingLoop(engine, codec, execution.batch))


def load_masked(execution: Execution) -> MaskedModel:
    """The embedded masked language model; its tokenizer is the causal one's."""
    folder = asset_path("builtin-masked")
    weights = folder / "model.safetensors"
    shape = BertShape.of(read_config(folder))
    if shape is None:
        raise _damaged_error(folder)
    engine = Bert(shape, int8_weights.load_dequantised(weights), device=select_device(execution.device))
    codec = MaskedTokenCodec.read(asset_path("builtin", "tokenizer.json"), vocabulary=shape.vocabulary)
    ref = _refer("builtin:masked", weights, codec.digest, engine, gibbs_sampling.VERSION)
    return MaskedModel(ref, gibbs_sampling.GibbsSampler(engine, codec, execution.batch, "builtin:masked"))


def _refer(name: str, weights: Path, tokenizer: str, engine: Gpt2 | Bert, loop: str) -> ModelRef:
    options = local_options(tokenizer, dtype=engine.dtype, device=engine.device, loop=loop)
    return ModelRef(backend="builtin", name=name, revision=file_digest(weights), options=options)


def _damaged_error(folder: Path) -> ModelError:
    return ModelError(
        f"{folder} holds no model of its kind", expected="the shipped one", fix="install evenhand again"
    )
