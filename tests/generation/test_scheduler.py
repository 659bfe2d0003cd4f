"""The sampling loop: its texts are those of `generate`, and no batch or order changes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import pytest
import torch
from tests.models import tiny
from tests.models.loops import GREEDY, PROMPTS, SAMPLED, both, codec, lean, requests, scripted, texts
from tests.models.scripted import Scripted, ScriptedBatch
from torch import Tensor
from transformers import PreTrainedModel

from evenhand.core.errors import InputError
from evenhand.core.records import GenerationSpec, Request
from evenhand.core.seeds import row_uniforms
from evenhand.generation.engine import DecoderOutput, Engine, KVCache
from evenhand.generation.scheduler import SamplingLoop


@both
@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_greedy_text_is_that_of_generate(
    make: Callable[[], PreTrainedModel], engine: Callable[[PreTrainedModel], Engine], penalty: float
) -> None:
    model, tokens = make(), codec()
    spec = replace(GREEDY, repetition_penalty=penalty)
    found = texts(list(SamplingLoop(engine(model), tokens, batch=4).run(requests(), spec)))
    for index, prompt in enumerate(tokens.encode(PROMPTS)):
        alone = tiny.greedy(model, prompt or [0], 12, repetition_penalty=penalty)
        # A budget that ends inside a character leaves half of it; the loop does not show it.
        assert found[f"p{index}", 0] == tokens.decode(alone).rstrip("\ufffd")


@both
@pytest.mark.parametrize("cuts", [(20, 0.9), (0, 1.0), (0, 0.8)])
def test_the_batch_changes_no_text(
    make: Callable[[], PreTrainedModel],
    engine: Callable[[PreTrainedModel], Engine],
    cuts: tuple[int, float],
) -> None:
    model = engine(make())
    spec = replace(SAMPLED, top_k=cuts[0], top_p=cuts[1])
    results = [
        texts(list(SamplingLoop(model, codec(), batch=batch).run(order, spec)))
        for batch, order in ((1, requests(4)), (5, requests(4)[::-1]), (32, requests(4)))
    ]
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 24
    assert len(set(results[0].values())) > 12


def test_a_text_depends_on_seed_prompt_id_and_sample_alone() -> None:
    engine = lean(tiny.gpt2())

    def write(request: Request, seed: int) -> dict[tuple[str, int], str | None]:
        return texts(list(SamplingLoop(engine, codec()).run([request], replace(SAMPLED, seed=seed))))

    first = write(Request("a", "The man", (0, 1)), 0)
    assert write(Request("a", "The man", (1,)), 0)["a", 1] == first["a", 1]
    assert write(Request("a", "The man", (0,)), 1)["a", 0] != first["a", 0]
    assert write(Request("b", "The man", (0,)), 0)["b", 0] != first["a", 0]
    assert first["a", 0] != first["a", 1]


def test_a_longer_budget_begins_with_the_shorter_text() -> None:
    engine = lean(tiny.gpt2(end=None))
    loop = SamplingLoop(engine, codec(frozenset()))
    short, long = (
        texts(list(loop.run(requests(), replace(SAMPLED, max_new_tokens=count)))) for count in (5, 15)
    )
    for place, text in short.items():
        assert (long[place] or "").startswith(text or "")


def test_a_prompt_is_read_once_for_all_its_samples() -> None:
    engine = scripted("ab")
    items = [
        Request("x", "The man", tuple(range(7))),
        Request("y", "The man", (0,)),
        Request("z", "doctor", (0,)),
    ]
    done = list(SamplingLoop(engine, codec(), batch=2).run(items, GREEDY))
    assert len(done) == 9
    assert Counter(engine.prefilled) == {
        tuple(tokens[:-1]): 1 for tokens in codec().encode(["The man", "doctor"])
    }


def test_finished_rows_give_their_places_away() -> None:
    # 5 texts of 3 tokens in 2 places: three rounds of 3 steps; in the last one row is left.
    engine = scripted("ab")
    spec = replace(GREEDY, max_new_tokens=3)
    done = list(SamplingLoop(engine, codec(), batch=2).run([Request("x", "The", tuple(range(5)))], spec))
    assert engine.steps == [2, 2, 2, 2, 2, 2, 1, 1, 1]
    assert {(item.finish, item.new_tokens) for item in done} == {("length", 3)}


def test_the_first_sentence_is_kept_and_no_more() -> None:
    engine = scripted(" sang. Then more")
    spec = replace(GREEDY, stop="sentence", max_new_tokens=40)
    done = next(SamplingLoop(engine, codec()).run([Request("x", "She", (0,))], spec))
    assert (done.text, done.finish) == (" sang.", "sentence")
    assert done.new_tokens is not None
    assert done.new_tokens < 16


def test_a_sentence_that_ends_with_the_budget_counts() -> None:
    script = " sang."
    engine = scripted(script)
    spec = replace(GREEDY, stop="sentence", max_new_tokens=len(engine.script))
    done = next(SamplingLoop(engine, codec()).run([Request("x", "She", (0,))], spec))
    assert (done.text, done.finish) == (" sang.", "sentence")


def test_a_text_that_ends_by_itself_says_so() -> None:
    engine = Scripted([*codec().encode([" sang"])[0], 0])
    done = next(
        SamplingLoop(engine, codec()).run([Request("x", "She", (0,))], replace(GREEDY, stop="sentence"))
    )
    assert (done.text, done.finish) == (" sang", "end")
    assert done.new_tokens == len(engine.script)


def test_half_a_character_is_not_shown() -> None:
    engine = Scripted(codec().encode(["a€"])[0][:2])
    done = next(
        SamplingLoop(engine, codec()).run([Request("x", "She", (0,))], replace(GREEDY, max_new_tokens=2))
    )
    assert done.text == "a"


def test_prompts_that_do_not_fit_fail_and_the_others_do_not() -> None:
    engine = scripted("ab", context=20)
    items = [Request("long", "doctor " * 30, (0, 1)), Request("short", "She", (0,))]
    done = {(item.request_id, item.sample): item for item in SamplingLoop(engine, codec()).run(items, GREEDY)}
    assert done["short", 0].failure is None
    for sample in (0, 1):
        failed = done["long", sample]
        assert (failed.text, failed.finish, failed.failure) == (None, None, "prompt_too_long")


def test_an_empty_prompt_needs_a_start_token() -> None:
    engine = scripted("ab")
    request = Request("x", "", (0,))
    assert next(SamplingLoop(engine, codec()).run([request], GREEDY)).prompt_tokens == 1
    bare = replace(codec(), start=None)
    assert next(SamplingLoop(engine, bare).run([request], GREEDY)).failure == "empty_prompt"


def test_nothing_asked_nothing_written() -> None:
    assert list(SamplingLoop(scripted("ab"), codec()).run([], GREEDY)) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"max_new_tokens": 64}, "max_new_tokens is 64"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"top_k": -1}, "top_k is -1"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0.0"),
        ({"temperature": float("nan")}, "temperature is nan"),
    ],
)
def test_impossible_specs_are_refused(change: dict[str, float], message: str) -> None:
    spec = replace(GREEDY, **change)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"^{message}"):
        list(SamplingLoop(scripted("ab"), codec()).run(requests(), spec))


def test_uniforms_are_used_position_by_position() -> None:
    # Even logits over 300 tokens: position i takes token floor(300 u_i).
    class Even(Scripted):
        def create_cache(self, rows: int, length: int) -> KVCache:
            return EvenBatch(self, rows)

    class EvenBatch(ScriptedBatch):
        def step(self, tokens: Tensor) -> DecoderOutput:
            return DecoderOutput(torch.zeros(len(tokens), 1), torch.zeros(len(tokens), 300))

    spec = GenerationSpec(max_new_tokens=6, temperature=1, top_k=0, top_p=1, stop="none", seed=9)
    tokens = codec(frozenset())
    done = next(SamplingLoop(Even([1]), tokens).run([Request("q", "She", (3,))], spec))
    expected = [int(300 * uniform) for uniform in row_uniforms(9, "q", 3, 6)]
    prompt = tokens.encode(["She"])[0]
    assert done.text == tokens.decode([*prompt, *expected])[3:].rstrip("\ufffd")


def test_the_order_of_requests_changes_nothing() -> None:
    engine = lean(tiny.gpt2())
    items = requests(2)[:3]
    results = [
        texts(list(SamplingLoop(engine, codec(), batch=3).run(order, SAMPLED)))
        for order in permutations(items)
    ]
    assert all(result == results[0] for result in results)


def test_no_more_texts_than_places_wait_to_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, step = [0], ScriptedBatch.step

    def counted(self: ScriptedBatch, tokens: Tensor) -> DecoderOutput:
        steps[0] += 1
        return step(self, tokens)

    monkeypatch.setattr(ScriptedBatch, "step", counted)
    loop = SamplingLoop(scripted("abc"), codec(), batch=4)
    items = [Request(f"p{number}", "x", (0,)) for number in range(40)]
    told = [steps[0] for _ in loop.run(items, replace(GREEDY, max_new_tokens=1))]
    # A step finishes four texts. While the second is taken one is told; then four are kept back at each.
    assert told == [2, 3, 3, 3, *[step for step in range(4, 11) for _ in range(4)], *[10] * 8]
