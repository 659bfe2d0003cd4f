"""The sampling loop where memory runs out: rows are halved, found by growing, and nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakSet

import pytest
import torch
from tests.models.loops import GREEDY, codec, scripted, texts
from tests.models.scripted import Scripted

from evenhand.core.errors import ModelError
from evenhand.core.records import Request
from evenhand.generation.engine import KVCache, PrefillState
from evenhand.generation.scheduler import SamplingLoop


@pytest.mark.parametrize("fail_at", [{1}, {3}, {1, 2, 5}, {4, 7}])
def test_out_of_memory_halves_the_batch_and_loses_nothing(fail_at: set[int]) -> None:
    items = [Request("x", "The man", tuple(range(20))), Request("y", "doctor", tuple(range(3)))]
    spec = replace(GREEDY, max_new_tokens=4)
    calm, scarce = scripted("abc"), scripted("abc")
    scarce.fail_at = fail_at
    expected = texts(list(SamplingLoop(calm, codec(), batch=8).run(items, spec)))
    done = list(SamplingLoop(scarce, codec(), batch=8).run(items, spec))
    assert len(done) == 23
    assert texts(done) == expected
    assert max(scarce.steps[max(fail_at) :]) <= 8 // 2 ** len(fail_at)


def test_tables_that_do_not_fit_are_halved_too() -> None:
    class Cramped(Scripted):
        def create_cache(self, rows: int, length: int) -> KVCache:
            if rows > 2:
                raise torch.OutOfMemoryError("no memory")
            return super().create_cache(rows, length)

    engine = Cramped([5, 6])
    done = list(
        SamplingLoop(engine, codec(), batch=8).run([Request("x", "The man", tuple(range(5)))], GREEDY)
    )
    assert len(done) == 5
    assert max(engine.steps) == 2


class Roomy(Scripted):
    """An engine whose memory holds so many rows."""

    room = 10_000

    def create_cache(self, rows: int, length: int) -> KVCache:
        if rows > self.room:
            raise torch.OutOfMemoryError("no memory")
        return super().create_cache(rows, length)


class Growing(SamplingLoop):
    """A loop that takes this machine for an accelerator."""

    can_grow = True


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
    assert texts(done) == texts(list(SamplingLoop(Scripted([5, 6]), codec(), batch=8).run(items, spec)))
    engine.steps.clear()
    assert len(list(loop.run(items, spec))) == jobs
    # The second time nothing is tried: all but the last few rows are written at the size found.
    assert max(engine.steps) == rows
    assert engine.steps.count(rows) >= 3 * (jobs // rows) - 3


def test_few_texts_have_the_places_of_the_recording_that_serves_them() -> None:
    loop = Growing(Roomy([5, 6]), codec())
    list(loop.run([Request("x", "The man", tuple(range(127)))], replace(GREEDY, max_new_tokens=3)))
    # As they have after more texts: the rows of a recorded step decide the last bits of its results.
    assert list(loop.rows_by_length.values()) == [256]


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

        def create_cache(self, rows: int, length: int) -> KVCache:
            if rows > 2:
                raise RuntimeError(self.says)
            return super().create_cache(rows, length)

    engine, items = Refusing([5, 6]), [Request("x", "The man", tuple(range(5)))]
    assert len(list(SamplingLoop(engine, codec(), batch=8).run(items, GREEDY))) == 5
    Refusing.says = "a shape is wrong"
    with pytest.raises(RuntimeError, match="a shape is wrong"):
        list(SamplingLoop(engine, codec(), batch=8).run(items, GREEDY))


def test_out_of_memory_with_one_row_is_an_error() -> None:
    engine = scripted("ab")
    engine.fail_at = {1, 2}
    with pytest.raises(
        ModelError, match=r"^the accelerator has too little memory for a single row\. Expected: "
    ):
        list(SamplingLoop(engine, codec(), batch=2).run([Request("x", "She", (0, 1))], GREEDY))


def test_prompts_that_were_used_are_forgotten_before_others_are_read() -> None:
    class Read:
        """What stays of a prompt."""

    class Remembering(Scripted):
        def __init__(self, script: Sequence[int]) -> None:
            super().__init__(script)
            self.alive, self.most = WeakSet[Read](), 0

        def prefill(self, rows: Sequence[Sequence[int]]) -> list[PrefillState]:
            prefixes = [PrefillState(len(row), Read()) for row in rows]
            self.alive.update(prefix.read for prefix in prefixes if isinstance(prefix.read, Read))
            self.most = max(self.most, len(self.alive))
            return prefixes

    engine = Remembering([5, 6])
    items = [Request(text, text, (0,)) for text in ("The", "The man", "The man worked", "The man worked as")]
    assert len(list(SamplingLoop(engine, codec(), batch=1).run(items, GREEDY))) == 4
    assert engine.most == 1
