from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from evenhand.core.errors import ModelError
from evenhand.tensors.batching import find_most_rows, run_in_halves


@pytest.mark.parametrize(
    ("first", "wanted", "room", "rows"),
    # 32, 64, 128 and then no more; all that is wanted; nothing tried where the first is enough.
    [(32, 1000, 200, 128), (32, 100, 1000, 100), (32, 20, 0, 20), (32, 33, 32, 32)],
)
def test_rows_are_doubled_while_they_fit(first: int, wanted: int, room: int, rows: int) -> None:
    tried: list[int] = []

    def fits(count: int) -> bool:
        tried.append(count)
        return count <= room

    assert find_most_rows(first, wanted, fits) == rows
    assert tried == sorted(set(tried))


@pytest.mark.parametrize("room", [1, 2, 3, 7, 20])
def test_a_batch_that_does_not_fit_is_done_in_parts_and_each_row_once(room: int) -> None:
    done: list[int] = []

    def work(batch: Sequence[int]) -> None:
        if len(batch) > room:
            raise torch.OutOfMemoryError("no memory")
        done.extend(batch)

    run_in_halves(range(7), work)
    assert done == list(range(7))


def test_a_row_that_does_not_fit_alone_is_an_error_and_so_is_any_other_failure() -> None:
    def never(batch: Sequence[int]) -> None:
        raise torch.OutOfMemoryError("no memory")

    def wrong(batch: Sequence[int]) -> None:
        raise RuntimeError("a shape is wrong")

    with pytest.raises(ModelError, match=r"^the accelerator has too little memory for a single row\."):
        run_in_halves([0, 1], never)
    with pytest.raises(RuntimeError, match="a shape is wrong"):
        run_in_halves([0, 1], wrong)
