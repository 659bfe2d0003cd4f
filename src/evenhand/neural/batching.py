"""Batches of texts of like length, so that little is spent on padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def length_sorted(lengths: Sequence[int], *, rows: int, tokens: int | None = None) -> Iterator[list[int]]:
    """Batches of indices, every index once: at most ``rows`` of them and ``tokens`` cells with padding.

    The longest come first, so that a batch that does not fit in memory fails at once. Ties keep their order,
    so the batches follow from the lengths alone. A text longer than ``tokens`` is a batch of its own.

    >>> list(length_sorted([3, 9, 4, 8], rows=2))
    [[1, 3], [2, 0]]
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        cells = lengths[batch[0] if batch else index] * (len(batch) + 1)
        if batch and (len(batch) == rows or (tokens is not None and cells > tokens)):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
