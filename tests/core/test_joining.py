"""Joining a cluster, with a stand-in for Ray that notes how it was started."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evenhand.core import ray_cluster


@dataclass
class StandIn:
    """Where the library was started, and with what."""

    folder: Path | None = None
    given: dict[str, object] = field(default_factory=dict)

    def is_initialized(self) -> bool:
        return self.folder is not None

    def init(self, **given: object) -> None:
        self.folder, self.given = Path.cwd(), given

    def shutdown(self) -> None:
        pass


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StandIn:
    found = StandIn()
    monkeypatch.setitem(sys.modules, "ray", found)
    monkeypatch.chdir(tmp_path)
    return found


def test_workers_do_not_import_what_lies_beside_the_texts(ray: StandIn, tmp_path: Path) -> None:
    """Ray puts the folder it is started in before all others that its workers import from."""
    with ray_cluster.connect_cluster(address=None, cpus=1):
        assert Path.cwd() == tmp_path
    assert ray.folder is not None
    assert ray.folder != tmp_path
    assert not list(ray.folder.glob("*.py"))


def test_workers_import_from_the_folder_where_this_process_does(
    ray: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    with ray_cluster.connect_cluster(address=None, cpus=1):
        assert ray.folder == tmp_path


def test_a_cluster_of_this_machine_ignores_the_one_of_the_environment(ray: StandIn) -> None:
    with ray_cluster.connect_cluster(address=None, cpus=3):
        assert ray.given["address"] == "local"
        assert ray.given["num_cpus"] == 3


def test_a_worker_without_the_folder_stays_where_it_is(ray: StandIn, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    ray_cluster.enter_folder(str(tmp_path / "nowhere"))
    assert Path.cwd() == tmp_path
    ray_cluster.enter_folder(str(tmp_path / "there"))
    assert Path.cwd() == tmp_path / "there"
