"""A Ray cluster: an existing one at an address, or a local one that is stopped when the work ends."""

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
"""Seconds to wait for a cluster to accept a connection; Ray itself would retry for a minute."""


@contextmanager
def connect_cluster(*, address: str | None, cpus: int | None) -> Iterator[Any]:
    """The Ray library, connected; an existing connection of this process is used and left open."""
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
    # "local", not None: Ray would otherwise join the cluster in RAY_ADDRESS.
    here = {"address": "local", "num_cpus": cpus, "include_dashboard": False}
    try:
        # Check that something listens at HOST:PORT; Ray handles other kinds of addresses.
        url = urlsplit(address if address and "://" in address else f"//{address or ''}")
        if url.hostname and url.port:
            socket.create_connection((url.hostname, url.port), timeout=_PATIENCE).close()
        # Change the folder temporarily: workers import first from the folder in which Ray is started, so a
        # torch.py beside a user's texts would run there. If this process imports from its folder too, workers
        # may as well.
        folder = Path.cwd()
        is_imported_from = any(Path(entry or ".").resolve() == folder for entry in sys.path)
        with nullcontext() if is_imported_from else chdir(files.ASSETS_FOLDER):
            # Its messages are about ports and tokens; failures are raised.
            ray.init(
                log_to_driver=False,
                logging_level=logging.ERROR,
                **({"address": address} if address else here),
            )
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"no Ray cluster answers at {address}" if address else "Ray does not start on this machine",
            expected="HOST:PORT of a running cluster, or auto on one of its nodes; none starts one here",
            fix=f"run `ray status` there; Ray's error: {error}",
        ) from error


def enter_folder(folder: str) -> None:
    """In a worker: change to the sender's folder, if it exists, so that relative paths resolve alike."""
    if Path(folder).is_dir():
        os.chdir(folder)


def check_nodes(ray: Any, paths: Sequence[str] = ()) -> None:
    """Raise an error, before any work, for a node with another version or without access to the paths."""
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    probe = ray.remote(num_cpus=0)(_inspect_node)
    requests = [
        probe.options(scheduling_strategy=strategy(node, soft=False)).remote(list(paths), str(Path.cwd()))
        for node in nodes
    ]
    for node, (version, missing) in zip(nodes, ray.get(requests), strict=True):
        if version != __version__:
            raise EvenhandError(
                f"node {node} has evenhand {version}",
                expected=f"evenhand {__version__}, the version on this machine",
                fix="install the same version on every node",
            )
        if missing:
            raise InputError(
                f"node {node} cannot see {missing[0]}",
                expected="paths that every node shares, or URLs",
                fix="put the files on a shared file system or an object store",
            )


def _inspect_node(paths: Sequence[str], folder: str) -> tuple[str, list[str]]:
    """A node's package version, and the paths it cannot access."""
    enter_folder(folder)
    return __version__, [path for path in paths if "://" not in path and not Path(path).exists()]
