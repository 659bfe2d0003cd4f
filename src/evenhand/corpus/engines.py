"""Engines: where shards are counted. The driver alone writes; shards add up exactly in any order.

The local engine uses threads: the kernel, reading and unpacking all run without Python's lock.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Literal

import polars as pl

from evenhand.core.cluster import check_nodes, enter, joined
from evenhand.corpus.shards import Counted, Shard, Task, count_shard, from_tables, to_tables

Engine = Literal["local", "ray"]
_RETRIES = 3


def run_local(shards: Sequence[Shard], task: Task, *, workers: int) -> Iterator[tuple[Shard, Counted]]:
    """Each shard with what was counted in it, as they finish, on this machine."""
    vocabulary = task.vocabulary()
    waiting, stop = iter(shards), threading.Event()
    with ThreadPoolExecutor(workers, thread_name_prefix="count") as pool:
        running: dict[Future[Counted], Shard] = {}
        try:
            while True:
                # A few ahead of the workers: a corpus may have a million shards.
                while len(running) < 2 * workers and (shard := next(waiting, None)) is not None:
                    running[pool.submit(count_shard, shard, task, vocabulary, stop)] = shard
                if not running:
                    return
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(done), done.result()
        finally:
            # An interrupted run must not wait for the end of a shard, which may be a large archive.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def run_ray(
    shards: Sequence[Shard], task: Task, *, workers: int, address: str | None
) -> Iterator[tuple[Shard, Counted]]:
    """The same on a Ray cluster, by address or started here; a shard whose worker dies is counted again."""
    with joined(address=address, cpus=workers) as ray:
        check_nodes(ray, list(dict.fromkeys(shard.source.path for shard in shards))[:100])
        remote = ray.remote(max_retries=_RETRIES)(_counted_bytes)
        shared, waiting, folder = ray.put(task), iter(shards), str(Path.cwd())
        running: dict[object, Shard] = {}
        limit = 2 * max(workers, int(ray.cluster_resources().get("CPU", 1)))
        while True:
            while len(running) < limit and (shard := next(waiting, None)) is not None:
                running[remote.remote(shard, shared, folder)] = shard
            if not running:
                return
            done, _ = ray.wait(list(running), num_returns=1)
            for reference in done:
                tables = {name: pl.read_ipc(io.BytesIO(data)) for name, data in ray.get(reference).items()}
                yield running.pop(reference), from_tables(tables, task)


def _counted_bytes(shard: Shard, task: Task, folder: str) -> dict[str, bytes]:
    """A shard counted in a Ray worker, as Arrow."""
    enter(folder)
    written = {}
    for name, table in to_tables(count_shard(shard, task, task.vocabulary())).items():
        buffer = io.BytesIO()
        table.write_ipc(buffer)
        written[name] = buffer.getvalue()
    return written
