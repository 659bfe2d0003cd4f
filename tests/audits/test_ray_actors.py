"""The pool of actors, over a Ray in which nothing travels and actors die when they are told to."""

from __future__ import annotations

import socket
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from evenhand._version import __version__
from evenhand.audits.ray_pool import ActorPool, Worker, WorkerSpec
from evenhand.core.errors import EvenhandError, InputError
from evenhand.core.records import Execution


class DeadError(Exception):
    """What Ray raises where an actor is gone."""


class FakeRay:
    """Tasks run when they are waited for; an actor named in ``dies`` is gone before its n-th task ends."""

    def __init__(self, **resources: float) -> None:
        self.exceptions = SimpleNamespace(RayActorError=DeadError)
        self.util = SimpleNamespace(
            scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=lambda node, soft: None)
        )
        self.resources = resources
        self.actors: list[FakeActor] = []
        self.dies: dict[int, int] = {}
        self.version = __version__
        self.ended = False
        self.started: dict[str, object] = {}

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: object) -> None:
        self.started = options

    def shutdown(self) -> None:
        self.ended = True

    def nodes(self) -> list[dict[str, object]]:
        return [{"NodeID": "n", "Alive": True}]

    def cluster_resources(self) -> dict[str, float]:
        return self.resources

    def remote(self, target: object = None, **options: object) -> Any:
        if target is None:
            probe = SimpleNamespace(remote=lambda paths, folder: lambda: (self.version, []))
            return lambda function: SimpleNamespace(options=lambda **given: probe)
        return SimpleNamespace(options=lambda **share: SimpleNamespace(remote=lambda r: self.actor(r, share)))

    def actor(self, recipe: WorkerSpec, share: object) -> FakeActor:
        self.actors.append(FakeActor(self, len(self.actors), share))
        return self.actors[-1]

    def wait(self, tasks: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return tasks[:1], tasks[1:]

    def get(self, task: Any) -> Any:
        return [one() for one in task] if isinstance(task, list) else task()

    def kill(self, actor: FakeActor) -> None:
        actor.is_dead = True


class FakeActor:
    def __init__(self, ray: FakeRay, number: int, share: object) -> None:
        self.ray, self.number, self.share = ray, number, share
        self.done: list[object] = []
        self.is_dead = False
        self.call = SimpleNamespace(remote=lambda work, *given: lambda: self._run(work, given))

    def _run(self, work: str, given: tuple[object, ...]) -> object:
        if self.is_dead or len(self.done) == self.ray.dies.get(self.number):
            self.is_dead = True
            raise DeadError
        self.done.append(given)
        return Doubling(WorkerSpec(Execution())).call(work, *given)


class Doubling(Worker):
    def double(self, value: int) -> int:
        if value < 0:
            raise InputError("a number below 0", expected="others", fix="change it")
        return 2 * value


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    ray = FakeRay(CPU=4)
    monkeypatch.setitem(sys.modules, "ray", ray)
    return ray


def pool(workers: int | None = 2, device: str = "auto") -> ActorPool:
    return ActorPool(WorkerSpec(Execution(device=device)), workers=workers, address=None)


def doubled(made: ActorPool, count: int) -> dict[int, object]:
    return dict(made.map_unordered("double", ((value,) for value in range(count))))


def test_every_item_has_its_answer_under_its_place(fake: FakeRay) -> None:
    assert doubled(pool(), 9) == {value: 2 * value for value in range(9)}
    # Two actors, items in turn: the even ones to the first, the odd ones to the second.
    assert [actor.done for actor in fake.actors] == [[(0,), (2,), (4,), (6,), (8,)], [(1,), (3,), (5,), (7,)]]


def test_items_of_a_lost_actor_are_done_again(fake: FakeRay) -> None:
    fake.dies = {0: 1}
    assert doubled(pool(), 9) == {value: 2 * value for value in range(9)}
    assert len(fake.actors) == 3
    # The new one is asked whether it is there before it is given anything.
    assert fake.actors[2].done[0] == ()


def test_an_item_that_kills_three_actors_ends_the_run(fake: FakeRay) -> None:
    fake.dies = {0: 0, 1: 1, 2: 1}
    with pytest.raises(EvenhandError, match=r"^a shard lost its worker 3 times\. Expected: workers that"):
        doubled(pool(1), 1)


def test_new_actors_that_never_begin_end_the_run(fake: FakeRay) -> None:
    fake.dies = dict.fromkeys(range(9), 0)
    with pytest.raises(EvenhandError, match=r"^new workers are lost before they begin\. Expected: workers"):
        doubled(pool(1), 3)
    assert len(fake.actors) == 4


def test_a_slot_that_loses_every_actor_is_given_up(fake: FakeRay) -> None:
    fake.dies = {number: 0 for number in range(9) if number != 1}
    assert doubled(pool(2), 9) == {value: 2 * value for value in range(9)}
    assert len(fake.actors) == 5
    assert len(fake.actors[1].done) == 9


def test_a_cluster_that_does_not_answer_is_said_to(fake: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: object) -> None:
        raise ConnectionError("Could not find any running Ray instance")

    monkeypatch.setattr(fake, "init", refuse)
    with pytest.raises(InputError, match=r"^no Ray cluster answers at auto\. .* Ray's error: Could not find"):
        ActorPool(WorkerSpec(Execution()), workers=None, address="auto")
    with pytest.raises(InputError, match=r"^Ray does not start on this machine\. "):
        pool()


def test_where_nobody_listens_ray_is_not_asked_to_try_again_and_again(fake: FakeRay) -> None:
    with socket.socket() as taken:
        # Bound but not listening: a call is refused at once, and nobody else can answer there.
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for asked in (address, f"ray://{address}"):
            with pytest.raises(InputError, match=rf"^no Ray cluster answers at {asked}\. .* refused"):
                ActorPool(WorkerSpec(Execution()), workers=None, address=asked)
    assert not fake.started


def test_a_cluster_that_listens_is_joined(fake: FakeRay) -> None:
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))
        head.listen()
        address = f"127.0.0.1:{head.getsockname()[1]}"
        ActorPool(WorkerSpec(Execution()), workers=None, address=address).close()
    assert fake.started["address"] == address


def test_without_an_address_no_other_cluster_is_joined(fake: FakeRay) -> None:
    pool(3)
    # Ray would take the one that RAY_ADDRESS names.
    assert fake.started["address"] == "local"
    assert fake.started["num_cpus"] == 3


def test_an_error_of_ours_comes_back_whole(fake: FakeRay) -> None:
    with pytest.raises(InputError, match=r"^a number below 0\. Expected: others\. Fix: change it\.$"):
        pool().call_one("double", -1)


def test_a_cluster_that_was_started_is_ended(fake: FakeRay) -> None:
    made = pool()
    made.call_one("double", 1)
    made.close()
    assert fake.ended
    assert fake.actors[0].is_dead


def test_nodes_with_another_version_are_refused(fake: FakeRay) -> None:
    fake.version = "0.0"
    with pytest.raises(EvenhandError, match=r"^node n has evenhand 0\.0\. Expected: evenhand"):
        pool()
    assert fake.ended


@pytest.mark.parametrize(
    ("resources", "workers", "device", "size", "share"),
    [
        ({"CPU": 8, "GPU": 3}, None, "auto", 3, {"num_gpus": 1, "num_cpus": 1}),
        ({"CPU": 8, "GPU": 3}, 2, "cuda", 2, {"num_gpus": 1, "num_cpus": 1}),
        ({"CPU": 8, "GPU": 3}, 4, "cpu", 4, {"num_cpus": 2}),
        # Four cores each where nobody says.
        ({"CPU": 8}, None, "auto", 2, {"num_cpus": 4}),
        ({"CPU": 2}, None, "auto", 1, {"num_cpus": 2}),
        ({"CPU": 2}, 4, "auto", 4, {"num_cpus": 0.5}),
    ],
)
def test_actors_share_out_a_cluster(fake, resources, workers, device, size, share) -> None:
    fake.resources = resources
    made = pool(workers, device)
    made.call_one("double", 1)
    assert (made.size, fake.actors[0].share) == (size, share)
