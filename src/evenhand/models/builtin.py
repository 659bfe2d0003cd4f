"""The language model that ships with evenhand: small, offline, and described by its card."""

from __future__ import annotations

from typing import cast

from evenhand.core.assets import asset
from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError, ModelError
from evenhand.core.records import Execution, ModelRef
from evenhand.models.causal import CausalModel, identity_options
from evenhand.models.decoding import DEFAULT_BATCH, Loop
from evenhand.neural import quantised
from evenhand.neural.checkpoints import read_config
from evenhand.neural.devices import device_of
from evenhand.neural.gpt2 import Gpt2
from evenhand.neural.gpt2_weights import Shape
from evenhand.neural.tokens import PlainCodec


def load(name: str = "causal", *, execution: Execution | None = None) -> CausalModel:
    """The embedded causal language model; its int8 weights are computed with in float32."""
    if name == "masked":
        raise InputError(
            "builtin:masked fills gaps; it does not continue prompts",
            accepted="builtin, or another causal model",
            todo="use it as a trunk (`evenhand train TASK DATA --backbone builtin:masked`) or export it",
        )
    if name != "causal":
        raise InputError(f"there is no embedded model {name!r}", accepted="builtin", todo="use builtin")
    execution = execution or Execution()
    folder = asset("builtin")
    config = read_config(folder)
    shape = Shape.of(config)
    if shape is None:
        raise ModelError(f"{folder} holds no GPT-2 model", accepted="GPT-2", todo="install evenhand again")
    weights = folder / "model.safetensors"
    engine = Gpt2(shape, quantised.load(weights), device=device_of(execution.device))
    codec = PlainCodec.read(folder / "tokenizer.json", end=cast(int, config["eos_token_id"]))
    return CausalModel(
        ModelRef(
            backend="builtin",
            name="builtin",
            revision=file_digest(weights),
            options=identity_options(codec, dtype=engine.dtype, device=engine.device),
        ),
        Loop(engine, codec, execution.batch or DEFAULT_BATCH),
    )
