"""Writing by a recorded step: the same texts as by plain calls, whatever comes and goes.

On this machine nothing is recorded and the step is called as it is; buffers, places and checks are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from tests.generation.test_engines import Made, bloom, ctrl, neox, sliding
from tests.models import tiny
from tests.models.loops import GREEDY, SAMPLED, codec, lean, requests, scripted, texts
from tests.models.test_steering import Pushing
from torch import Tensor
from transformers import PreTrainedModel

from evenhand.core.records import GenerationSpec, Request
from evenhand.generation import decoders
from evenhand.generation.decoders import AsyncTokenCopy, GraphCache, GraphCaptureError, GraphDecoder
from evenhand.generation.engine import DecoderOutput
from evenhand.generation.gpt2 import Gpt2KVCache
from evenhand.generation.hub_engine import HubEngine
from evenhand.generation.scheduler import SamplingLoop, _compact_slots
from evenhand.generation.sequences import TokenSequence

Written = dict[tuple[str, int], str | None]


def written(loop: SamplingLoop, spec: GenerationSpec, samples: int = 3) -> Written:
    return texts(list(loop.run(requests(samples), spec)))


@pytest.mark.parametrize(
    ("spec", "batch"),
    [
        (GREEDY, 3),
        (SAMPLED, 1),
        (SAMPLED, 5),
        (replace(SAMPLED, top_k=0, top_p=1.0, temperature=0.7), 32),
        # Not part of a recording: a nucleus of the whole vocabulary, and a penalty of what was written.
        (replace(SAMPLED, top_k=0, top_p=0.8), 5),
        (replace(SAMPLED, repetition_penalty=1.3), 3),
        (replace(SAMPLED, stop="sentence"), 4),
    ],
    ids=["greedy", "alone", "top-k", "all", "nucleus", "penalty", "sentence"],
)
def test_the_texts_are_those_of_plain_calls(spec: GenerationSpec, batch: int) -> None:
    engine = lean(tiny.gpt2())
    recording = SamplingLoop(engine, codec(), batch=batch, graph_cache=GraphCache(can_capture=True))
    assert written(recording, spec) == written(SamplingLoop(engine, codec(), batch=batch), spec)
    # And again with what the first run left on the desk.
    assert recording.graph_cache._decoders
    assert written(recording, replace(spec, seed=9)) == written(
        SamplingLoop(engine, codec(), batch=batch), replace(spec, seed=9)
    )


def test_a_step_is_ordered_before_the_tokens_of_the_last_one_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log: list[str] = []

    class Watched(AsyncTokenCopy):
        def __call__(self, tokens: Tensor) -> Callable[[], list[int]]:
            log.append("order")
            read = super().__call__(tokens)

            def watched() -> list[int]:
                log.append("read")
                return read()

            return watched

    monkeypatch.setattr(decoders, "AsyncTokenCopy", Watched)
    loop = SamplingLoop(
        lean(tiny.gpt2(end=None)), codec(frozenset()), batch=6, graph_cache=GraphCache(can_capture=True)
    )
    list(loop.run([Request("x", "The man", tuple(range(6)))], replace(GREEDY, max_new_tokens=4)))
    # Four tokens a row: none is ordered after the last.
    assert log == ["order", *["order", "read"] * 3, "read"]


def test_a_row_that_begins_while_a_step_is_under_way_gets_its_tokens_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, seen = GraphDecoder.sync, []

    def watched(self: GraphDecoder) -> list[int | None]:
        seen.append(plain(self))
        return seen[-1]

    monkeypatch.setattr(GraphDecoder, "sync", watched)
    engine = lean(tiny.gpt2())
    spec = replace(SAMPLED, max_new_tokens=12)
    assert written(
        SamplingLoop(engine, codec(), batch=3, graph_cache=GraphCache(can_capture=True)), spec, 6
    ) == written(SamplingLoop(engine, codec(), batch=3), spec, 6)
    assert any(None in tokens for tokens in seen)


def test_a_steering_of_any_kind_is_asked_between_two_steps() -> None:
    engine, token = lean(tiny.gpt2(end=None)), codec().encode(["e"])[0][0]
    items, spec = [Request("x", "The man", (0, 1, 2, 3))], replace(SAMPLED, max_new_tokens=6)
    both = []
    for records in (False, True):
        pushing = Pushing(token)
        loop = SamplingLoop(
            engine, codec(frozenset()), batch=2, steering=pushing, graph_cache=GraphCache(records)
        )
        both.append((texts(list(loop.run(items, spec))), pushing.seen))
    assert both[0] == both[1]


def test_what_was_recorded_serves_the_next_run_where_it_fits() -> None:
    engine = lean(tiny.gpt2(end=None))
    loop = SamplingLoop(engine, codec(frozenset()), batch=4, graph_cache=GraphCache(can_capture=True))
    list(loop.run(requests(2), GREEDY))
    first = loop.graph_cache._decoders[0]
    # Rows of 4 at first; 12 jobs of which the last ones are fewer.
    assert {rows for rows, _ in first._steps} <= {1, 4}
    list(loop.run(requests(1), replace(GREEDY, seed=3)))
    assert loop.graph_cache._decoders == [first]
    list(loop.run(requests(1), replace(GREEDY, max_new_tokens=5)))
    assert loop.graph_cache._decoders != [first]


def test_large_tables_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = SamplingLoop(lean(tiny.gpt2()), codec(), batch=2, graph_cache=GraphCache(can_capture=True))
    monkeypatch.setattr(decoders, "_device_memory", lambda device: 1000)
    list(loop.run(requests(1), GREEDY))
    assert loop.graph_cache._decoders == []


def test_two_runs_at_once_do_not_share_a_pen() -> None:
    engine = lean(tiny.gpt2(end=None))
    loop = SamplingLoop(engine, codec(frozenset()), batch=2, graph_cache=GraphCache(can_capture=True))
    expected = written(SamplingLoop(engine, codec(frozenset()), batch=2), SAMPLED)
    list(loop.run(requests(3), SAMPLED))
    runs = [loop.run(requests(3), SAMPLED) for _ in range(2)]
    pairs = list(zip(*runs, strict=True))
    assert texts([pair[0] for pair in pairs]) == texts([pair[1] for pair in pairs]) == expected


@pytest.mark.parametrize("at", [1, 4])
def test_a_step_that_cannot_be_recorded_is_called_instead(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, at: int
) -> None:
    engine, calls = lean(tiny.gpt2()), [0]
    plain = GraphDecoder.launch

    def failing(self: GraphDecoder, rows: Sequence[TokenSequence]) -> None:
        calls[0] += 1
        if calls[0] == at:
            raise GraphCaptureError("no such operation")
        plain(self, rows)

    monkeypatch.setattr(GraphDecoder, "launch", failing)
    loop = SamplingLoop(engine, codec(), batch=5, graph_cache=GraphCache(can_capture=True))
    assert written(loop, SAMPLED) == written(SamplingLoop(engine, codec(), batch=5), SAMPLED)
    assert caplog.messages == ["decoding without CUDA graphs, which is slower: no such operation"]
    assert loop.graph_cache.can_capture is False
    assert calls[0] == at


def test_a_recording_that_says_something_else_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain: Callable[..., DecoderOutput] = Gpt2KVCache.advance

    def wrong(self: Gpt2KVCache, tokens: Tensor, positions: Tensor, *, longest: int) -> DecoderOutput:
        said = plain(self, tokens, positions, longest=longest)
        return said._replace(hidden=1.01 * said.hidden)

    monkeypatch.setattr(Gpt2KVCache, "advance", wrong)
    engine = lean(tiny.gpt2())
    loop = SamplingLoop(engine, codec(), graph_cache=GraphCache(can_capture=True))
    assert written(loop, SAMPLED) == written(SamplingLoop(engine, codec()), SAMPLED)
    (message,) = caplog.messages
    assert message == "decoding without CUDA graphs, which is slower: hidden states differ by 1.0e-02"


def test_memory_that_does_not_suffice_halves_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, calls = GraphDecoder.launch, [0]

    def scarce(self: GraphDecoder, rows: Sequence[TokenSequence]) -> None:
        calls[0] += 1
        if calls[0] == 3:
            raise torch.OutOfMemoryError("no memory")
        plain(self, rows)

    monkeypatch.setattr(GraphDecoder, "launch", scarce)
    engine = lean(tiny.gpt2())
    loop = SamplingLoop(engine, codec(), batch=8, graph_cache=GraphCache(can_capture=True))
    assert written(loop, SAMPLED) == written(SamplingLoop(engine, codec(), batch=8), SAMPLED)
    assert loop.graph_cache._decoders[0].slots == 4


@pytest.mark.parametrize("make", [tiny.llama, tiny.gpt2], ids=["llama", "gpt2"])
def test_models_of_transformers_are_recorded_too(make: Callable[[], PreTrainedModel]) -> None:
    engine = HubEngine(make())
    recording = SamplingLoop(engine, codec(), batch=4, graph_cache=GraphCache(can_capture=True))
    for spec in (SAMPLED, replace(SAMPLED, temperature=0, stop="sentence")):
        assert written(recording, spec, 2) == written(SamplingLoop(engine, codec(), batch=4), spec, 2)
    assert recording.graph_cache._decoders


@pytest.mark.parametrize("make", [neox, ctrl, bloom, sliding], ids=["neox", "ctrl", "bloom", "sliding"])
def test_odd_models_write_the_same_whether_recorded_or_not(make: Callable[[], Made]) -> None:
    engine = make()[1]
    recording = SamplingLoop(engine, codec(), batch=4, graph_cache=GraphCache(can_capture=True))
    assert written(recording, SAMPLED, 2) == written(SamplingLoop(engine, codec(), batch=4), SAMPLED, 2)
    # Bloom takes no positions, and Mistral's window is 6 tokens here.
    assert bool(recording.graph_cache._decoders) == (make in (neox, ctrl))


def test_an_engine_whose_tables_move_is_called_as_ever() -> None:
    loop = SamplingLoop(scripted("abc"), codec(), batch=4, graph_cache=GraphCache(can_capture=True))
    assert len(list(loop.run(requests(2), GREEDY))) == 12


def test_few_rows_move_when_others_end() -> None:
    assert _compact_slots([0, 2, 3, 5]) == [0, 5, 2, 3]
    assert _compact_slots([]) == []
    assert _compact_slots([4, 5]) == [4, 5]


@pytest.mark.parametrize("spec", [GREEDY, SAMPLED, replace(SAMPLED, repetition_penalty=1.3)])
def test_rows_that_overflow_fail_as_with_plain_calls(spec: GenerationSpec) -> None:
    model = tiny.gpt2(end=None)
    # Finite, but their sum is not: rows that get as far as this position have no next token.
    model.transformer.wpe.weight.data[14] = 3e38
    engine = lean(model)
    found = written(
        SamplingLoop(engine, codec(frozenset()), batch=5, graph_cache=GraphCache(can_capture=True)), spec
    )
    assert found == written(SamplingLoop(engine, codec(frozenset()), batch=5), spec)
    assert 0 < sum(text is None for text in found.values()) < len(found)
