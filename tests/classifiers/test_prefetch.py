"""Work that another thread does ahead."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from evenhand.classifiers.text_classifier import prefetch_map


def test_results_come_in_order_and_no_more_than_two_wait() -> None:
    asked: list[int] = []

    def items() -> Iterator[int]:
        for item in range(6):
            asked.append(item)
            yield item

    seen = []
    for done in prefetch_map(lambda item: item * item, items()):
        seen.append(done)
        assert len(asked) == min(len(seen) + 2, 6)
    assert seen == [0, 1, 4, 9, 16, 25]


def test_it_is_another_thread_and_its_error_is_raised_here() -> None:
    threads = []

    def work(item: int) -> int:
        threads.append(threading.current_thread())
        return 1 // item

    results = prefetch_map(work, [1, 0, 1])
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert threading.current_thread() not in threads


def test_who_stops_early_leaves_no_thread_behind() -> None:
    results = prefetch_map(str, range(100))
    assert next(results) == "0"
    results.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]
    assert list(prefetch_map(str, [])) == []
