"""Ray actors that write and score: each holds the model, takes shards, and is replaced when it is lost.

The driver alone plans, writes and reads the cache. A shard, on a GPU a group of them, is worked on whole,
with the batch plan it would have here, and tables are joined in the order of the plan: they do not tell where
or how often it was done.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from evenhand.core.cluster import check_nodes, joined
from evenhand.core.errors import EvenhandError
from evenhand.core.records import Completion, GenerationSpec, ModelRef, Request, Text
from evenhand.core.registry import Option
from evenhand.pipeline.asking import Answers
from evenhand.pipeline.workers import Recipe, Refused, Worker

_LOSSES = 3
"""How often an item may lose its actor, and a slot its new one before that is there: then it is to blame."""
_AT_ONCE = 2
"""Items an actor holds: one is worked on, one waits, so that none waits for the driver."""
_CPUS = 4
"""Cores an actor takes where nobody says how many there are to be."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Item:
    """Something to be done."""

    place: int
    given: tuple[object, ...]
    losses: int = 0


@dataclass(frozen=True, slots=True)
class _Task:
    """An actor at work; without an item it was asked whether it is there."""

    slot: int
    actor: Any
    item: _Item | None


_Running = dict[object, _Task]


class Pool:
    """Actors on a cluster, one a GPU where there are any, else one a share of the cores."""

    def __init__(self, recipe: Recipe, *, workers: int | None, address: str | None) -> None:
        self._recipe = recipe
        self._stack = ExitStack()
        try:
            self._ray = self._stack.enter_context(joined(address=address, cpus=workers))
            check_nodes(self._ray)
            self.size, self._share = self._shared_out(workers)
        except BaseException:
            self._stack.close()
            raise
        self._actors: dict[int, Any] = {}
        self._never_there: Counter[int] = Counter()

    def close(self) -> None:
        """End the actors, and the cluster where it was started here."""
        for actor in self._actors.values():
            self._ray.kill(actor)
        self._actors.clear()
        self._stack.close()

    def ask(self, work: str, *given: object) -> object:
        """What one actor answers."""
        return next(self.each(work, [given]))[1]

    def each(self, work: str, items: Iterable[tuple[object, ...]]) -> Iterator[tuple[int, object]]:
        """What ``work`` gives for each item, with the item's place, as they are done.

        An item of a lost actor is done again by any other. Items are taken as there is room for them, and
        the n-th goes to the same actor in every call, if that one is free: it may remember its texts.
        """
        waiting, running = _Waiting(items, self.size), _Running()
        while True:
            self._hand_out(work, waiting, running)
            if not running:
                return
            done, _ = self._ray.wait(list(running), num_returns=1)
            task = running.pop(done[0])
            try:
                answer = self._ray.get(done[0])
            except self._ray.exceptions.RayActorError:
                self._lost(task, waiting, running)
                continue
            del self._never_there[task.slot]
            if task.item is not None:
                yield task.item.place, _accepted(answer)

    def _hand_out(self, work: str, waiting: _Waiting, running: _Running) -> None:
        for held in range(_AT_ONCE):
            for slot in filter(self._is_open, range(self.size)):
                own = [task.item for task in running.values() if task.slot == slot]
                # A new actor is first asked whether it is there: nothing waits for one that has no place.
                if len(own) > held or None in own:
                    continue
                item = waiting.take(slot)
                if item is None:
                    return
                self._start(running, slot, item, work, *item.given)

    def _start(self, running: _Running, slot: int, item: _Item | None, work: str, *given: object) -> None:
        actor = self._actor(slot)
        running[actor.do.remote(work, *given)] = _Task(slot, actor, item)

    def _lost(self, task: _Task, waiting: _Waiting, running: _Running) -> None:
        if task.item is not None:
            task.item.losses += 1
            if task.item.losses >= _LOSSES:
                raise _too_many(f"a shard lost its worker {task.item.losses} times")
            waiting.put_back(task.item)
        else:
            self._never_there[task.slot] += 1
            if not any(map(self._is_open, range(self.size))):
                raise _too_many("new workers are lost before they begin")
        # Each of its items tells of a lost actor; the first one has replaced it.
        if self._actors.get(task.slot) is task.actor:
            del self._actors[task.slot]
            if self._is_open(task.slot):
                _log.warning("a worker was lost and is replaced; what it was doing is done again")
                self._start(running, task.slot, None, "ready")
            else:
                _log.warning("a worker was lost %d times before it began and is not replaced", _LOSSES)

    def _is_open(self, slot: int) -> bool:
        """Whether a slot is given actors: not one that has lost every new one."""
        return self._never_there[slot] < _LOSSES

    def _actor(self, slot: int) -> Any:
        if slot not in self._actors:
            made = self._ray.remote(Worker).options(**self._share)
            self._actors[slot] = made.remote(self._recipe)
        return self._actors[slot]

    def _shared_out(self, workers: int | None) -> tuple[int, dict[str, float]]:
        """How many actors there are, and what each takes of the cluster."""
        there = self._ray.cluster_resources()
        gpus = 0 if self._recipe.execution.device == "cpu" else int(there.get("GPU", 0))
        if gpus:
            return min(workers or gpus, gpus), {"num_gpus": 1, "num_cpus": 1}
        cpus = int(there.get("CPU", 1))
        size = workers or max(1, cpus // _CPUS)
        # Cores are counted, not bound: more actors than cores share them.
        return size, {"num_cpus": max(1, cpus // size) if size <= cpus else cpus / size}


class _Waiting:
    """Items nobody works on yet, taken from their source as they are needed."""

    def __init__(self, items: Iterable[tuple[object, ...]], slots: int) -> None:
        self._source = (_Item(place, given) for place, given in enumerate(items))
        self._slots = slots
        self._ahead: deque[_Item] = deque()

    def take(self, slot: int) -> _Item | None:
        """The next item that belongs to a slot; else the next of all."""
        self._ahead.extend(islice(self._source, max(0, 2 * self._slots - len(self._ahead))))
        if not self._ahead:
            return None
        own = (item for item in self._ahead if item.place % self._slots == slot)
        chosen = next(own, self._ahead[0])
        self._ahead.remove(chosen)
        return chosen

    def put_back(self, item: _Item) -> None:
        self._ahead.appendleft(item)


class PooledModel:
    """The model of a run, as its actors hold it."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.ref = cast(ModelRef, pool.ask("ref"))

    def resolved(self, spec: GenerationSpec) -> GenerationSpec:
        """The spec as the model will follow it."""
        return cast(GenerationSpec, self._pool.ask("resolved", spec))

    @property
    def at_once(self) -> int:
        """How many texts to ask an actor for together."""
        return cast(int, self._pool.ask("at_once"))

    @property
    def served_by(self) -> Mapping[str, str]:
        """What a host said of itself, as one of the actors heard it."""
        return cast("Mapping[str, str]", self._pool.ask("served_by"))

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """The completions of one shard, or of a group of them."""
        yield from cast("list[Completion]", self._pool.ask("generate", list(requests), spec))

    def generate_each(
        self, shards: Iterable[Sequence[Request]], spec: GenerationSpec
    ) -> Iterator[tuple[int, Sequence[Completion]]]:
        """The completions of each shard, with its place, as they are done."""
        given = ((list(requests), spec) for requests in shards)
        return cast("Iterator[tuple[int, Sequence[Completion]]]", self._pool.each("generate", given))


@dataclass(frozen=True, slots=True)
class PooledAsker:
    """A metric that is asked in the actors."""

    pool: Pool
    options: Mapping[str, Option]
    """Those of the metric."""

    def answers(self, spec: str, blocks: Iterable[Sequence[Text]]) -> Iterator[tuple[int, Answers]]:
        """What a metric says of each block, with its place, as they are done."""
        given = ((spec, dict(self.options), list(texts)) for texts in blocks)
        return cast("Iterator[tuple[int, Answers]]", self.pool.each("score", given))


def _too_many(came: str) -> EvenhandError:
    return EvenhandError(
        came,
        accepted="workers that live as long as a shard takes",
        todo="look into Ray's logs (memory is the usual reason) and take fewer --workers or a smaller "
        "--batch; finished shards are kept",
    )


def _accepted(answer: object) -> object:
    if isinstance(answer, Refused):
        raise answer.error()
    return answer
