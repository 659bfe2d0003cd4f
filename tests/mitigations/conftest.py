"""A tiny model that can be steered, and the embedded one."""

from __future__ import annotations

import pytest
from tests.models import tiny

from evenhand.core import registry
from evenhand.core.records import Execution, ModelRef
from evenhand.models.causal import CausalModel
from evenhand.models.decoding import Loop
from evenhand.neural.gpt2 import Gpt2
from evenhand.neural.gpt2_weights import Shape
from evenhand.neural.tokens import HubCodec


@pytest.fixture(scope="session")
def small() -> CausalModel:
    codec = HubCodec.of(tiny.tokenizer(), ends=frozenset())
    engine = Gpt2(Shape(300, tiny.CONTEXT, 2, 32, 4), tiny.gpt2().state_dict())
    return CausalModel(ModelRef("causal", "tiny", "r1"), Loop(engine, codec, batch=3))


@pytest.fixture(scope="session")
def builtin() -> CausalModel:
    model = registry.model("builtin", {}, Execution(device="cpu"))
    assert isinstance(model, CausalModel)
    return model
