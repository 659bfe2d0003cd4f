from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from evenhand.audits import parallel
from evenhand.audits.parallel import map_threads


@pytest.mark.parametrize(("named", "count"), [("1", 1), ("3", 3), ("", None), ("0", None), ("many", None)])
def test_threads_follow_the_variable_else_the_cores(
    named: str, count: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, count: int) -> None:
            counts.append(count)
            super().__init__(count)

    monkeypatch.setenv("OMP_NUM_THREADS", named)
    monkeypatch.setattr(parallel, "ThreadPoolExecutor", Pool)
    assert map_threads(str, range(2)) == ["0", "1"]
    expected = count or os.cpu_count() or 1
    assert counts == ([expected] if expected > 1 else [])


@pytest.mark.parametrize("count", ["1", "2"])
def test_results_keep_their_order_and_errors_come(count: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", count)
    assert map_threads(lambda item: item * item, range(50)) == [item * item for item in range(50)]
    with pytest.raises(ZeroDivisionError):
        map_threads(lambda item: 1 // item, [1, 0])
