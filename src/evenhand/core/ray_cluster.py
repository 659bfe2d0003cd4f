"""A Ray cluster to work on: the one at an address, or one started on this machine that ends with the work."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from evenhand._version import __version__
from evenhand.core import files
from evenhand.core.errors import EvenhandError, InputError
from evenhand.core.registry import require_library

_PATIENCE: Final = 5.0
"""Seconds a cluster has to take a call; Ray itself would go on asking for a minute."""


@contextmanager
def connect_cluster(*, address: str | None, cpus: int | None) -> Iterator[Any]:
    """The library, connected; a cluster that this process already has is used and left as it is."""
    ray = require_library("ray", "--engine ray")
    is_ours = not ray.is_initialized()
    if is_ours:
        _init(ray, address, cpus)
    try:
        yield ray
    finally:
        if is_ours:
            ray.shutdown()


def _init(ray: Any, address: str | None, cpus: int | None) -> None:
    # "local", not nothing: Ray would join the cluster that RAY_ADDRESS names.
    here = {"address": "local", "num_cpus": cpus, "include_dashboard": False}
    try:
        # Whether anybody listens at HOST:PORT; other addresses are Ray's own matter.
        url = urlsplit(address if address and "://" in address else f"//{address or ''}")
        if url.hostname and url.port:
            socket.create_connection((url.hostname, url.port), timeout=_PATIENCE).close()
        # Elsewhere for a moment: workers import from the folder Ray is started in before any other. A
        # torch.py beside somebody's texts would run there. Where this process imports from its folder too,
        # workers may.
        folder = Path.cwd()
        is_imported_from = any(Path(entry or ".").resolve() == folder for entry in sys.path)
        with nullcontext() if is_imported_from else chdir(files.ASSETS_FOLDER):
            # Its messages are of ports and tokens; what goes wrong is raised.
            ray.init(
                log_to_driver=False,
                logging_level=logging.ERROR,
                **({"address": address} if address else here),
            )
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"no Ray cluster answers at {address}" if address else "Ray does not start on this machine",
            expected="HOST:PORT of a running cluster, or auto on one of its nodes; none starts one here",
            fix=f"look at `ray status` there; Ray's reason is: {error}",
        ) from error


def enter_folder(folder: str) -> None:
    """In a worker: let relative paths begin where they do for who sent the work, if it has that folder."""
    if Path(folder).is_dir():
        os.chdir(folder)


def check_nodes(ray: Any, paths: Sequence[str] = ()) -> None:
    """An error for a node with another version, or one that does not see the paths, before any work."""
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    probe = ray.remote(num_cpus=0)(_inspect_node)
    asked = [
        probe.options(scheduling_strategy=strategy(node, soft=False)).remote(list(paths), str(Path.cwd()))
        for node in nodes
    ]
    for node, (version, missing) in zip(nodes, ray.get(asked), strict=True):
        if version != __version__:
            raise EvenhandError(
                f"node {node} has evenhand {version}",
                expected=f"evenhand {__version__}, as here",
                fix="install the same version on every node",
            )
        if missing:
            raise InputError(
                f"node {node} cannot see {missing[0]}",
                expected="paths that every node shares, or URLs",
                fix="put the files on a shared file system or an object store",
            )


def _inspect_node(paths: Sequence[str], folder: str) -> tuple[str, list[str]]:
    """What a node has: its version of the package, and the paths it does not see."""
    enter_folder(folder)
    return __version__, [path for path in paths if "://" not in path and not Path(path).exists()]
