"""A tiny model that can be steered, and the embedded one."""

from __future__ import annotations

import pytest
from tests.models import tiny

from evenhand.core import registry
from evenhand.core.records import Execution, ModelRef
from evenhand.generation.gpt2 import Gpt2, Gpt2Shape
from evenhand.generation.scheduler import SamplingLoop
from evenhand.generation.tokenizer import HubCodec
from evenhand.models.local import CausalModel


@pytest.fixture(scope="session")
def small() -> CausalModel:
    codec = HubCodec.of(tiny.tokenizer(), ends=frozenset())
    engine = Gpt2(Gpt2Shape(300, tiny.CONTEXT, 2, 32, 4), tiny.gpt2().state_dict())
    return CausalModel(ModelRef("causal", "tiny", "r1"), SamplingLoop(engine, codec, batch=3))


@pytest.fixture(scope="session")
def builtin() -> CausalModel:
    model = registry.create_model("builtin", {}, Execution(device="cpu"))
    assert isinstance(model, CausalModel)
    return model
