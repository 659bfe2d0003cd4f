"""What tests of the sampling loop share: prompts, engines, and texts by request and sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.models import tiny
from tests.models.scripted import Scripted
from transformers import PreTrainedModel

from evenhand.core.records import Completion, GenerationSpec, Request
from evenhand.generation.engine import Engine
from evenhand.generation.gpt2 import Gpt2, Gpt2Shape
from evenhand.generation.hub_engine import HubEngine
from evenhand.generation.tokenizer import HubCodec

GREEDY = GenerationSpec(max_new_tokens=12, temperature=0, stop="none", samples=1)
SAMPLED = GenerationSpec(max_new_tokens=10, temperature=1.0, top_k=20, top_p=0.9, stop="none", seed=4)
PROMPTS = [
    "The man worked",
    "A café",
    "The woman was known for her work. She",
    "T",
    "doctor doctor doctor",
    "",
]


def codec(ends: frozenset[int] = frozenset({0})) -> HubCodec:
    return HubCodec.of(tiny.tokenizer(), ends=ends)


def lean(model: PreTrainedModel) -> Engine:
    shape = Gpt2Shape.of(model.config.to_dict())
    assert shape is not None
    return Gpt2(shape, model.state_dict())


def requests(samples: int = 1) -> list[Request]:
    return [Request(f"p{index}", text, tuple(range(samples))) for index, text in enumerate(PROMPTS)]


def texts(completions: Sequence[Completion]) -> dict[tuple[str, int], str | None]:
    return {(item.request_id, item.sample): item.text for item in completions}


ENGINES: list[tuple[Callable[[], PreTrainedModel], Callable[[PreTrainedModel], Engine]]] = [
    (tiny.gpt2, lean),
    (tiny.gpt2, HubEngine),
    (tiny.llama, HubEngine),
]
both = pytest.mark.parametrize(("make", "engine"), ENGINES, ids=["lean", "generic gpt2", "generic llama"])


def scripted(text: str, **options: int) -> Scripted:
    return Scripted(codec().encode([text])[0], **options)
