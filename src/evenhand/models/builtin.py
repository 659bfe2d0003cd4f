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
from evenhand.generation.gibbs_sampling import MaskedModel
from evenhand.generation.gpt2 import Gpt2, Gpt2Shape
from evenhand.generation.tokenizer import MaskedTokenCodec, PlainCodec
from evenhand.models.local import CausalModel, local_options
from evenhand.tensors import int8_weights
from evenhand.tensors.checkpoints import read_config
from evenhand.tensors.devices import select_device

_FOLDERS = {"causal": "builtin", "masked": "builtin-masked"}


def load(name: str = "causal", *, execution: Execution | None = None) -> CausalModel | MaskedModel:
    """The embedded causal or masked language model; int8 weights are dequantised to float32.

    Both use the tokenizer of the causal model.
    """
    if name not in _FOLDERS:
        raise InputError(
            f"there is no embedded model {name!r}", expected="builtin, builtin:masked", fix="use one of these"
        )
    execution = execution or Execution()
    folder, tokenizer = asset_path(_FOLDERS[name]), asset_path("builtin", "tokenizer.json")
    config, weights = read_config(folder), folder / "model.safetensors"
    tensors, device = int8_weights.load_dequantised(weights), select_device(execution.device)
    shape = (Gpt2Shape if name == "causal" else BertShape).of(config)
    if isinstance(shape, Gpt2Shape):
        causal = Gpt2(shape, tensors, device=device)
        codec = PlainCodec.read(tokenizer, end=cast(int, config["eos_token_id"]))
        ref = _refer("builtin", weights, codec.digest, causal, scheduler.VERSION)
        return CausalModel(ref, scheduler.SamplingLoop(causal, codec, execution.batch))
    if shape is None:
        raise ModelError(
            f"{folder} lacks the embedded model", expected="the shipped model", fix="install evenhand again"
        )
    masked = Bert(shape, tensors, device=device)
    masked_codec = MaskedTokenCodec.read(tokenizer, vocabulary=shape.vocabulary)
    ref = _refer("builtin:masked", weights, masked_codec.digest, masked, gibbs_sampling.VERSION)
    return MaskedModel(masked, masked_codec, execution.batch, ref)


def _refer(name: str, weights: Path, tokenizer: str, engine: Gpt2 | Bert, loop: str) -> ModelRef:
    options = local_options(tokenizer, dtype=engine.dtype, device=engine.device, loop=loop)
    return ModelRef(backend="builtin", name=name, revision=file_digest(weights), options=options)
