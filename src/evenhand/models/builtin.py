"""The language models that ship with evenhand: small, offline, and described by their cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from evenhand.core.assets import asset
from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError, ModelError
from evenhand.core.records import Execution, ModelRef
from evenhand.models import decoding, gibbs
from evenhand.models.causal import CausalModel
from evenhand.models.local_identity import local_options
from evenhand.models.masked import MaskedModel
from evenhand.neural import quantised
from evenhand.neural.bert import Bert
from evenhand.neural.bert_weights import BertShape
from evenhand.neural.checkpoints import read_config
from evenhand.neural.devices import device_of
from evenhand.neural.gpt2 import Gpt2
from evenhand.neural.gpt2_weights import Shape
from evenhand.neural.masked_tokens import MaskedCodec
from evenhand.neural.tokens import PlainCodec


def load(name: str = "causal", *, execution: Execution | None = None) -> CausalModel | MaskedModel:
    """The embedded causal or masked language model; int8 weights are computed with in float32."""
    build = _MODELS.get(name)
    if build is None:
        raise InputError(
            f"there is no embedded model {name!r}",
            accepted="builtin, builtin:masked",
            todo="use one of these",
        )
    return build(execution or Execution())


def causal(execution: Execution) -> CausalModel:
    """The embedded causal language model."""
    folder = asset("builtin")
    config = read_config(folder)
    shape = Shape.of(config)
    if shape is None:
        raise _damaged(folder)
    weights = folder / "model.safetensors"
    engine = Gpt2(shape, quantised.load(weights), device=device_of(execution.device))
    codec = PlainCodec.read(folder / "tokenizer.json", end=cast(int, config["eos_token_id"]))
    return CausalModel(
        ModelRef(
            backend="builtin",
            name="builtin",
            revision=file_digest(weights),
            options=local_options(
                codec.digest, dtype=engine.dtype, device=engine.device, loop=decoding.VERSION
            ),
        ),
        decoding.Loop(engine, codec, execution.batch),
    )


def masked(execution: Execution) -> MaskedModel:
    """The embedded masked language model; its tokenizer is the causal one's."""
    folder = asset("builtin-masked")
    shape = BertShape.of(read_config(folder))
    if shape is None:
        raise _damaged(folder)
    weights = folder / "model.safetensors"
    engine = Bert(shape, quantised.load(weights), device=device_of(execution.device))
    codec = MaskedCodec.read(asset("builtin", "tokenizer.json"), vocabulary=shape.vocabulary)
    return MaskedModel(
        ModelRef(
            backend="builtin",
            name="builtin:masked",
            revision=file_digest(weights),
            options=local_options(codec.digest, dtype=engine.dtype, device=engine.device, loop=gibbs.VERSION),
        ),
        gibbs.GibbsLoop(engine, codec, execution.batch, "builtin:masked"),
    )


_MODELS: Mapping[str, Callable[[Execution], CausalModel | MaskedModel]] = {
    "causal": causal,
    "masked": masked,
}


def _damaged(folder: Path) -> ModelError:
    return ModelError(
        f"{folder} holds no model of its kind", accepted="the shipped one", todo="install evenhand again"
    )
