"""``engine="ray"``: the actors of a run, from its settings."""

from __future__ import annotations

import logging
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, cast

from evenhand._version import __version__
from evenhand.config import RunConfig
from evenhand.core import registry
from evenhand.core.errors import EvenhandError
from evenhand.core.protocols import Metric, Model, ResolvesSpec
from evenhand.core.ray_cluster import check_nodes, connect_cluster, enter_folder
from evenhand.core.records import Completion, Execution, GenerationSpec, ModelRef, Request, Text
from evenhand.core.registry import Option
from evenhand.metrics.scorer import ScoredTexts, ScoringExecutor, score_texts
from evenhand.report.wording import format_count


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What an actor loads: names and options, no objects."""

    execution: Execution
    model: str = ""
    """Without a name an actor only scores."""
    options: Mapping[str, Option] = field(default_factory=dict)
    mitigation: str | None = None
    """What the model writes with."""
    mitigation_options: Mapping[str, Option] = field(default_factory=dict)
    folder: str = field(default_factory=os.getcwd)
    """Where relative paths begin."""

    def apply_mitigation(self, model: Model) -> Model:
        """A model with the mitigation on, where there is one."""
        if self.mitigation is None:
            return model
        return registry.create_mitigation(self.mitigation, self.mitigation_options).apply(model)


class Worker:
    """Loads on first use, then answers; an error of ours comes back as a value, with all of its parts."""

    def __init__(self, spec: WorkerSpec) -> None:
        self._spec = spec
        self._metrics: dict[str, Metric] = {}
        enter_folder(spec.folder)

    def call(self, work: str, *given: object) -> object:
        """What one of the methods below returns, or the error of ours that it raises."""
        try:
            return getattr(self, work)(*given)
        except EvenhandError as error:
            return error

    def package_version(self) -> str:
        """The version of the package, once the actor is there."""
        return __version__

    def attribute(self, name: str, default: object) -> object:
        """What the model says of itself, as this machine loads it."""
        return getattr(self._models[1], name, default)

    def resolved(self, spec: GenerationSpec) -> GenerationSpec:
        """The spec as the model will follow it, asked before a mitigation as it is here."""
        model = self._models[0]
        return model.resolved(spec) if isinstance(model, ResolvesSpec) else spec

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> list[Completion]:
        """The completions of a shard, or of a group of them."""
        return list(self._models[1].generate(requests, spec))

    def score(self, spec: str, options: Mapping[str, Option], texts: Sequence[Text]) -> ScoredTexts:
        """The scores of a block."""
        if spec not in self._metrics:
            self._metrics[spec] = cast(Metric, registry.create_metric(spec, options, self._spec.execution))
        return score_texts(spec, self._metrics[spec], texts)

    @cached_property
    def _models(self) -> tuple[Model, Model]:
        """The model as it is, and with its mitigation."""
        spec = self._spec
        plain = registry.create_model(spec.model, spec.options, spec.execution)
        return plain, spec.apply_mitigation(plain)


_LOSSES = 3
"""How often an item may lose its actor, and a slot its new one before that is there: then it is to blame."""
_AT_ONCE = 2
"""Items an actor holds: one is worked on, one waits, so that none waits for the driver."""
_CPUS = 4
"""Cores an actor takes where nobody says how many there are to be."""
_log = logging.getLogger(__name__)


_Item = tuple[int, tuple[Any, ...]]
"""Something to be done: its place, and a method of the worker with its arguments."""


class _Task(NamedTuple):
    """An actor at work; without an item it was asked whether it is there."""

    slot: int
    actor: Any
    item: _Item | None


class ActorPool:
    """Actors on a cluster, one a GPU where there are any, else one a share of the cores."""

    def __init__(self, spec: WorkerSpec, *, workers: int | None, address: str | None) -> None:
        self._spec = spec
        self._stack = ExitStack()
        try:
            self._ray = self._stack.enter_context(connect_cluster(address=address, cpus=workers))
            check_nodes(self._ray)
            self.size, self._share = self._plan_actors(workers)
        except BaseException:
            self._stack.close()
            raise
        self._actors: dict[int, Any] = {}
        self._options: dict[str, dict[str, Option]] = {}
        """Those of the metrics that are asked in the actors."""
        self._never_there: Counter[int] = Counter()

    def close(self) -> None:
        """End the actors, and a cluster that was started here."""
        for actor in self._actors.values():
            self._ray.kill(actor)
        self._actors.clear()
        self._stack.close()

    def create_executors(
        self, metrics: Mapping[str, Metric], settings: RunConfig, objects: Sequence[str]
    ) -> dict[str, ScoringExecutor]:
        """The metrics that are asked in the actors, by spec.

        Not those that are faster than the way there, nor those that were given as objects, which an actor
        could not load.
        """
        self._options = {
            spec: settings.metric_options(spec.partition("=")[0])
            for spec, metric in metrics.items()
            if not metric.info.cheap and spec not in objects
        }
        return dict.fromkeys(self._options, self)

    def score_blocks(self, spec: str, blocks: Iterable[Sequence[Text]]) -> Iterator[tuple[int, ScoredTexts]]:
        """What a metric says of each block, with its place, as they are done."""
        return self.map_unordered("score", ((spec, self._options[spec], list(texts)) for texts in blocks))

    def call_one(self, work: str, *given: object) -> Any:
        """What one actor answers."""
        return next(self.map_unordered(work, [given]))[1]

    def map_unordered(self, work: str, items: Iterable[tuple[object, ...]]) -> Iterator[tuple[int, Any]]:
        """What ``work`` gives for each item, with the item's place, as they are done.

        An item of a lost actor is done again by any other. Items are taken as there is room for them, and
        the n-th goes to the same actor in every call, if that one is free: it may remember its texts.
        """
        waiting, running = _Waiting(work, items, self.size), dict[object, _Task]()
        while True:
            self._hand_out(waiting, running)
            if not running:
                return
            done, _ = self._ray.wait(list(running), num_returns=1)
            task = running.pop(done[0])
            try:
                answer = self._ray.get(done[0])
            except self._ray.exceptions.RayActorError:
                self._handle_loss(task, waiting, running)
                continue
            del self._never_there[task.slot]
            if task.item is not None:
                if isinstance(answer, EvenhandError):
                    raise answer
                yield task.item[0], answer

    def _hand_out(self, waiting: _Waiting, running: dict[object, _Task]) -> None:
        for held in range(_AT_ONCE):
            for slot in filter(self._is_open, range(self.size)):
                own = [task.item for task in running.values() if task.slot == slot]
                # A new actor is first asked whether it is there: nothing waits for one that has no place.
                if len(own) > held or None in own:
                    continue
                item = waiting.take(slot)
                if item is None:
                    return
                self._start(running, slot, item)

    def _start(self, running: dict[object, _Task], slot: int, item: _Item | None) -> None:
        if slot not in self._actors:
            self._actors[slot] = self._ray.remote(Worker).options(**self._share).remote(self._spec)
        actor = self._actors[slot]
        _, call = item or (None, ("package_version",))
        running[actor.call.remote(*call)] = _Task(slot, actor, item)

    def _handle_loss(self, task: _Task, waiting: _Waiting, running: dict[object, _Task]) -> None:
        if task.item is not None:
            place = task.item[0]
            waiting.losses[place] += 1
            if waiting.losses[place] >= _LOSSES:
                raise _too_many(f"a shard lost its worker {_LOSSES} times")
            waiting.ahead.appendleft(task.item)
        else:
            self._never_there[task.slot] += 1
            if not any(map(self._is_open, range(self.size))):
                raise _too_many("new workers are lost before they begin")
        # Each of its items tells of a lost actor; the first one has replaced it.
        if self._actors.get(task.slot) is task.actor:
            del self._actors[task.slot]
            if self._is_open(task.slot):
                _log.warning("a worker was lost and is replaced; what it was doing is done again")
                self._start(running, task.slot, None)
            else:
                _log.warning("a worker was lost %d times before it began and is not replaced", _LOSSES)

    def _is_open(self, slot: int) -> bool:
        """Whether a slot is given actors: not one that has lost every new one."""
        return self._never_there[slot] < _LOSSES

    def _plan_actors(self, workers: int | None) -> tuple[int, dict[str, float]]:
        """How many actors there are, and what each takes of the cluster."""
        resources = self._ray.cluster_resources()
        gpus = 0 if self._spec.execution.device == "cpu" else int(resources.get("GPU", 0))
        if gpus:
            return min(workers or gpus, gpus), {"num_gpus": 1, "num_cpus": 1}
        cpus = int(resources.get("CPU", 1))
        size = workers or max(1, cpus // _CPUS)
        # Cores are counted, not bound: more actors than cores share them.
        return size, {"num_cpus": max(1, cpus // size) if size <= cpus else cpus / size}


class _Waiting:
    """Items nobody works on yet, taken from their source as they are needed."""

    def __init__(self, work: str, items: Iterable[tuple[object, ...]], slots: int) -> None:
        self._source = enumerate((work, *given) for given in items)
        self._slots = slots
        self.ahead: deque[_Item] = deque()
        self.losses: Counter[int] = Counter()
        """How often the item of a place has lost its actor."""

    def take(self, slot: int) -> _Item | None:
        """The next item that belongs to a slot; else the next of all."""
        self.ahead.extend(islice(self._source, max(0, 2 * self._slots - len(self.ahead))))
        if not self.ahead:
            return None
        own = (item for item in self.ahead if item[0] % self._slots == slot)
        chosen = next(own, self.ahead[0])
        self.ahead.remove(chosen)
        return chosen


class PooledModel:
    """The model of a run, as its actors hold it."""

    def __init__(self, pool: ActorPool) -> None:
        self._pool = pool
        self.ref: ModelRef = pool.call_one("attribute", "ref", None)

    def resolved(self, spec: GenerationSpec) -> GenerationSpec:
        """The spec as the model will follow it."""
        return cast(GenerationSpec, self._pool.call_one("resolved", spec))

    @property
    def at_once(self) -> int:
        """How many texts to ask an actor for together."""
        return cast(int, self._pool.call_one("attribute", "at_once", 1))

    @property
    def served_by(self) -> Mapping[str, str]:
        """What a host said of itself, as one of the actors heard it."""
        return cast("Mapping[str, str]", self._pool.call_one("attribute", "served_by", {}))

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """The completions of one shard, or of a group of them."""
        yield from self._pool.call_one("generate", list(requests), spec)

    def generate_each(
        self, shards: Iterable[Sequence[Request]], spec: GenerationSpec
    ) -> Iterator[tuple[int, Sequence[Completion]]]:
        """The completions of each shard, with its place, as they are done."""
        return self._pool.map_unordered("generate", ((list(requests), spec) for requests in shards))


def _too_many(problem: str) -> EvenhandError:
    return EvenhandError(
        problem,
        expected="workers that live as long as a shard takes",
        fix="look into Ray's logs (memory is the usual reason) and take fewer --workers or a smaller "
        "--batch; finished shards are kept",
    )


def open_pool(settings: RunConfig, spec: WorkerSpec | None = None) -> ActorPool | None:
    """The actors of a run; None where it works in this process."""
    options = settings.options
    if options["engine"] == "local":
        if address := options["address"]:
            _log.warning("the address %s is for --engine ray: the work is done on this machine", address)
        if options["workers"]:
            _log.warning("--workers is for --engine ray: the work is done in this process")
        return None
    spec = spec or WorkerSpec(settings.execution())
    return ActorPool(spec, workers=options["workers"], address=options["address"])


def describe_engine(settings: RunConfig) -> list[str]:
    """What a plan says of the engine; nothing where the work is done in this process."""
    options = settings.options
    if options["engine"] == "local":
        return []
    count, place = options["workers"], options["address"] or "this machine"
    workers = format_count(count, "worker") if count else "a worker a GPU, or a few cores each"
    return [f"engine  {options['engine']} at {place}, {workers}"]
