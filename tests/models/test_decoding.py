from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations

import pytest
import torch
from tests.models import tiny
from tests.models.scripted import Scripted, ScriptedBatch
from torch import Tensor
from transformers import PreTrainedModel

from evenhand.core.errors import InputError, ModelError
from evenhand.core.protocols import Candidates, Step
from evenhand.core.records import Completion, GenerationSpec, Request
from evenhand.core.seeds import row_uniforms
from evenhand.models.decoding import Loop
from evenhand.neural.engine import Batch, Engine, Output
from evenhand.neural.gpt2 import Gpt2
from evenhand.neural.gpt2_weights import Shape
from evenhand.neural.hub_engine import HubEngine
from evenhand.neural.tokens import HubCodec

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
    shape = Shape.of(model.config.to_dict())
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


@both
@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_greedy_text_is_that_of_generate(
    make: Callable[[], PreTrainedModel], engine: Callable[[PreTrainedModel], Engine], penalty: float
) -> None:
    model, tokens = make(), codec()
    spec = replace(GREEDY, repetition_penalty=penalty)
    found = texts(list(Loop(engine(model), tokens, batch=4).run(requests(), spec)))
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
        texts(list(Loop(model, codec(), batch=batch).run(order, spec)))
        for batch, order in ((1, requests(4)), (5, requests(4)[::-1]), (32, requests(4)))
    ]
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 24
    assert len(set(results[0].values())) > 12


def test_a_text_depends_on_seed_prompt_id_and_sample_alone() -> None:
    engine = lean(tiny.gpt2())

    def write(request: Request, seed: int) -> dict[tuple[str, int], str | None]:
        return texts(list(Loop(engine, codec()).run([request], replace(SAMPLED, seed=seed))))

    first = write(Request("a", "The man", (0, 1)), 0)
    assert write(Request("a", "The man", (1,)), 0)["a", 1] == first["a", 1]
    assert write(Request("a", "The man", (0,)), 1)["a", 0] != first["a", 0]
    assert write(Request("b", "The man", (0,)), 0)["b", 0] != first["a", 0]
    assert first["a", 0] != first["a", 1]


def test_a_longer_budget_begins_with_the_shorter_text() -> None:
    engine = lean(tiny.gpt2(end=None))
    loop = Loop(engine, codec(frozenset()))
    short, long = (
        texts(list(loop.run(requests(), replace(SAMPLED, max_new_tokens=count)))) for count in (5, 15)
    )
    for place, text in short.items():
        assert (long[place] or "").startswith(text or "")


def scripted(text: str, **options: int) -> Scripted:
    return Scripted(codec().encode([text])[0], **options)


def test_a_prompt_is_read_once_for_all_its_samples() -> None:
    engine = scripted("ab")
    items = [
        Request("x", "The man", tuple(range(7))),
        Request("y", "The man", (0,)),
        Request("z", "doctor", (0,)),
    ]
    done = list(Loop(engine, codec(), batch=2).run(items, GREEDY))
    assert len(done) == 9
    assert Counter(engine.prefilled) == {
        tuple(tokens[:-1]): 1 for tokens in codec().encode(["The man", "doctor"])
    }


def test_finished_rows_give_their_places_away() -> None:
    # 5 texts of 3 tokens in 2 places: three rounds of 3 steps; in the last one row is left.
    engine = scripted("ab")
    spec = replace(GREEDY, max_new_tokens=3)
    done = list(Loop(engine, codec(), batch=2).run([Request("x", "The", tuple(range(5)))], spec))
    assert engine.steps == [2, 2, 2, 2, 2, 2, 1, 1, 1]
    assert {(item.finish, item.new_tokens) for item in done} == {("length", 3)}


def test_the_first_sentence_is_kept_and_no_more() -> None:
    engine = scripted(" sang. Then more")
    spec = replace(GREEDY, stop="sentence", max_new_tokens=40)
    done = next(Loop(engine, codec()).run([Request("x", "She", (0,))], spec))
    assert (done.text, done.finish) == (" sang.", "sentence")
    assert done.new_tokens is not None
    assert done.new_tokens < 16


def test_a_sentence_that_ends_with_the_budget_counts() -> None:
    script = " sang."
    engine = scripted(script)
    spec = replace(GREEDY, stop="sentence", max_new_tokens=len(engine.script))
    done = next(Loop(engine, codec()).run([Request("x", "She", (0,))], spec))
    assert (done.text, done.finish) == (" sang.", "sentence")


def test_a_text_that_ends_by_itself_says_so() -> None:
    engine = Scripted([*codec().encode([" sang"])[0], 0])
    done = next(Loop(engine, codec()).run([Request("x", "She", (0,))], replace(GREEDY, stop="sentence")))
    assert (done.text, done.finish) == (" sang", "end")
    assert done.new_tokens == len(engine.script)


def test_half_a_character_is_not_shown() -> None:
    engine = Scripted(codec().encode(["a€"])[0][:2])
    done = next(Loop(engine, codec()).run([Request("x", "She", (0,))], replace(GREEDY, max_new_tokens=2)))
    assert done.text == "a"


def test_prompts_that_do_not_fit_fail_and_the_others_do_not() -> None:
    engine = scripted("ab", context=20)
    items = [Request("long", "doctor " * 30, (0, 1)), Request("short", "She", (0,))]
    done = {(item.request_id, item.sample): item for item in Loop(engine, codec()).run(items, GREEDY)}
    assert done["short", 0].failure is None
    for sample in (0, 1):
        failed = done["long", sample]
        assert (failed.text, failed.finish, failed.failure) == (None, None, "prompt_too_long")


def test_an_empty_prompt_needs_a_start_token() -> None:
    engine = scripted("ab")
    request = Request("x", "", (0,))
    assert next(Loop(engine, codec()).run([request], GREEDY)).prompt_tokens == 1
    bare = replace(codec(), start=None)
    assert next(Loop(engine, bare).run([request], GREEDY)).failure == "empty_prompt"


def test_nothing_asked_nothing_written() -> None:
    assert list(Loop(scripted("ab"), codec()).run([], GREEDY)) == []


@pytest.mark.parametrize("fail_at", [{1}, {3}, {1, 2, 5}, {4, 7}])
def test_out_of_memory_halves_the_batch_and_loses_nothing(fail_at: set[int]) -> None:
    items = [Request("x", "The man", tuple(range(20))), Request("y", "doctor", tuple(range(3)))]
    spec = replace(GREEDY, max_new_tokens=4)
    calm, scarce = scripted("abc"), scripted("abc")
    scarce.fail_at = fail_at
    expected = texts(list(Loop(calm, codec(), batch=8).run(items, spec)))
    done = list(Loop(scarce, codec(), batch=8).run(items, spec))
    assert len(done) == 23
    assert texts(done) == expected
    assert max(scarce.steps[max(fail_at) :]) <= 8 // 2 ** len(fail_at)


def test_tables_that_do_not_fit_are_halved_too() -> None:
    class Cramped(Scripted):
        def batch(self, rows: int, length: int) -> Batch:
            if rows > 2:
                raise torch.OutOfMemoryError("no memory")
            return super().batch(rows, length)

    engine = Cramped([5, 6])
    done = list(Loop(engine, codec(), batch=8).run([Request("x", "The man", tuple(range(5)))], GREEDY))
    assert len(done) == 5
    assert max(engine.steps) == 2


class Roomy(Scripted):
    """An engine whose memory holds so many rows."""

    room = 10_000

    def batch(self, rows: int, length: int) -> Batch:
        if rows > self.room:
            raise torch.OutOfMemoryError("no memory")
        return super().batch(rows, length)


class Growing(Loop):
    """A loop that takes this machine for an accelerator."""

    grows = True


@pytest.mark.parametrize(
    ("room", "jobs", "rows"),
    # Doubled from 32: 64, 128 and then 256 or 200, whatever is less and fits.
    [(10_000, 200, 200), (199, 200, 128), (63, 200, 32), (10_000, 40, 40), (20, 200, 16)],
)
def test_rows_grow_until_memory_says_no(room: int, jobs: int, rows: int) -> None:
    items = [Request("x", "The man", tuple(range(jobs)))]
    spec = replace(GREEDY, max_new_tokens=3)
    engine = Roomy([5, 6])
    engine.room = room
    loop = Growing(engine, codec())
    done = list(loop.run(items, spec))
    assert texts(done) == texts(list(Loop(Scripted([5, 6]), codec(), batch=8).run(items, spec)))
    engine.steps.clear()
    assert len(list(loop.run(items, spec))) == jobs
    # The second time nothing is tried: all but the last few rows are written at the size found.
    assert max(engine.steps) == rows
    assert engine.steps.count(rows) >= 3 * (jobs // rows) - 3


def test_rows_that_were_halved_in_the_work_stay_halved() -> None:
    engine = Roomy([5, 6])
    loop = Growing(engine, codec())
    items = [Request("x", "The man", tuple(range(128)))]
    list(loop.run(items, GREEDY))
    engine.room = 100
    assert len(list(loop.run(items, GREEDY))) == 128
    engine.room, engine.steps[:] = 63, []
    assert len(list(loop.run(items, GREEDY))) == 128
    assert max(engine.steps) == 32


def test_memory_of_this_machine_that_runs_out_is_told_from_other_errors() -> None:
    class Refusing(Scripted):
        says = "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory"

        def batch(self, rows: int, length: int) -> Batch:
            if rows > 2:
                raise RuntimeError(self.says)
            return super().batch(rows, length)

    engine, items = Refusing([5, 6]), [Request("x", "The man", tuple(range(5)))]
    assert len(list(Loop(engine, codec(), batch=8).run(items, GREEDY))) == 5
    Refusing.says = "a shape is wrong"
    with pytest.raises(RuntimeError, match="a shape is wrong"):
        list(Loop(engine, codec(), batch=8).run(items, GREEDY))


def test_out_of_memory_with_one_row_is_an_error() -> None:
    engine = scripted("ab")
    engine.fail_at = {1, 2}
    with pytest.raises(
        ModelError, match=r"^the accelerator has too little memory for a single row\. Accepted: "
    ):
        list(Loop(engine, codec(), batch=2).run([Request("x", "She", (0, 1))], GREEDY))


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
        list(Loop(scripted("ab"), codec()).run(requests(), spec))


class Pushing:
    """A steering that forces one token for even rows, and remembers who was asked."""

    def __init__(self, token: int) -> None:
        self.token = token
        self.seen: list[list[int]] = []

    def begin(self, *, keep: int) -> Pushing:
        self.keep = keep
        return self

    def __call__(self, step: Step) -> Candidates:
        hidden, logits, rows, last, uniforms = step
        assert uniforms.shape == last.shape == (len(rows),)
        assert hidden.shape == (len(rows), 32)
        assert logits.shape == (len(rows), 300)
        self.seen.append(list(rows))
        pushed = logits.clone()
        for index, row in enumerate(rows):
            if row % 2 == 0:
                pushed[index, self.token] = 1e4
        return Candidates(pushed)


def test_a_steering_sees_hidden_states_logits_and_rows() -> None:
    model = lean(tiny.gpt2(end=None))
    token = codec().encode(["e"])[0][0]
    steering = Pushing(token)
    loop = Loop(model, codec(frozenset()), batch=2, steering=steering)
    items = [Request("x", "The man", (0, 1, 2, 3))]
    spec = replace(SAMPLED, max_new_tokens=6)
    plain = texts(list(Loop(model, codec(frozenset()), batch=2).run(items, spec)))
    done = texts(list(loop.run(items, spec)))
    assert [done["x", sample] for sample in (0, 2)] == ["eeeeee", "eeeeee"]
    assert [done["x", sample] for sample in (1, 3)] == [plain["x", sample] for sample in (1, 3)]
    # Rows are never numbered twice, not even by a second call.
    list(loop.run(items, spec))
    assert {row for rows in steering.seen for row in rows} == set(range(8))


def test_uniforms_are_used_position_by_position() -> None:
    # Even logits over 300 tokens: position i takes token floor(300 u_i).
    class Even(Scripted):
        def batch(self, rows: int, length: int) -> Batch:
            return EvenBatch(self, rows)

    class EvenBatch(ScriptedBatch):
        def step(self, tokens: Tensor) -> Output:
            return Output(torch.zeros(len(tokens), 1), torch.zeros(len(tokens), 300))

    spec = GenerationSpec(max_new_tokens=6, temperature=1, top_k=0, top_p=1, stop="none", seed=9)
    tokens = codec(frozenset())
    done = next(Loop(Even([1]), tokens).run([Request("q", "She", (3,))], spec))
    expected = [int(300 * uniform) for uniform in row_uniforms(9, "q", 3, 6)]
    prompt = tokens.encode(["She"])[0]
    assert done.text == tokens.decode([*prompt, *expected])[3:].rstrip("\ufffd")


def test_the_order_of_requests_changes_nothing() -> None:
    engine = lean(tiny.gpt2())
    items = requests(2)[:3]
    results = [
        texts(list(Loop(engine, codec(), batch=3).run(order, SAMPLED))) for order in permutations(items)
    ]
    assert all(result == results[0] for result in results)


class Short:
    """A steering that offers three tokens a row, the last the likeliest, and says how many were asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def begin(self, *, keep: int) -> Short:
        self.asked.append(keep)
        return self

    def __call__(self, step: Step) -> Candidates:
        if self.asked[-1] == 0:
            return Candidates(step.logits)
        rows = step.rows
        tokens = torch.tensor([[5, 6, 70]]).expand(len(rows), 3)
        return Candidates(torch.tensor([[0.0, 1.0, 9.0]]).expand(len(rows), 3), tokens)


@pytest.mark.parametrize(
    ("change", "keep"),
    [({"top_k": 40}, 40), ({"top_k": 0}, 0), ({"temperature": 0}, 1), ({"repetition_penalty": 1.2}, 0)],
)
def test_a_steering_is_told_how_many_tokens_sampling_looks_at(change: dict[str, float], keep: int) -> None:
    steering = Short()
    spec = replace(SAMPLED, max_new_tokens=2, **change)  # type: ignore[arg-type]
    loop = Loop(lean(tiny.gpt2(end=None)), codec(frozenset()), steering=steering)
    list(loop.run(requests(), spec))
    assert steering.asked == [keep]


def test_candidates_are_tokens_of_their_own_row() -> None:
    steering = Short()
    loop = Loop(lean(tiny.gpt2(end=None)), codec(frozenset()), steering=steering)
    spec = replace(SAMPLED, max_new_tokens=3, temperature=0)
    done = next(iter(loop.run([Request("x", "The man", (0,))], spec)))
    assert done.text == codec().decode([70, 70, 70])


@both
def test_logits_are_hidden_states_times_the_output_table(
    make: Callable[[], PreTrainedModel], engine: Callable[[PreTrainedModel], Engine]
) -> None:
    made = engine(make())
    table, bias = made.output()
    assert table.shape == (300, 32)
    assert bias is None
    batch = made.batch(1, 3)
    batch.fill([0], made.prefill([[7, 8]]))
    said = batch.step(torch.tensor([9]))
    assert torch.allclose(said.hidden @ table.T, said.logits, atol=1e-4)
    # Read at once, the last hidden state of a row is the one a step gives.
    states = list(made.hidden_states([[7, 8, 9], [], [7, 8]]))
    assert [state.shape for state in states] == [(3, 32), (0, 32), (2, 32)]
    assert torch.allclose(states[0][-1], said.hidden[0], atol=1e-4)
    assert torch.allclose(states[2], states[0][:2], atol=1e-4)


def test_a_model_that_caps_its_logits_cannot_be_steered() -> None:
    model = tiny.llama()
    head = model.lm_head.forward
    model.lm_head.forward = lambda x: torch.tanh(head(x))
    with pytest.raises(ModelError) as caught:
        HubEngine(model).output()
    assert str(caught.value) == (
        "the logits of LlamaForCausalLM are not its hidden states times a table. "
        "Accepted: models such as GPT-2, GPT-NeoX, Llama, Mistral, Qwen, OPT. "
        "What to do: use a mitigation that works on text: replacement."
    )
