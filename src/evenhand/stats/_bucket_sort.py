# numba gives these functions their types when it compiles them.
# mypy: disable-error-code="no-untyped-def, misc"
"""Large samples of numbers, compiled: sorted by buckets, and their step functions compared in one walk."""

from __future__ import annotations

import numpy as np
from numba import njit

BUCKETS = 1 << 18
MAX_BUCKET = 64
"""Numbers in one bucket above which sorting in general is the faster way."""


@njit(cache=True, nogil=True)
def bucket_sort(values, low, scale):
    """The numbers in order; an empty array where too many of them crowd one bucket.

    ``scale`` takes the largest number to the last bucket. Buckets are in order, so that moving each number
    back over larger ones ends within its bucket.
    """
    starts = np.zeros(BUCKETS + 1, np.int64)
    for value in values:
        starts[int((value - low) * scale) + 1] += 1
    if starts.max() > MAX_BUCKET:
        return np.empty(0)
    for bucket in range(1, BUCKETS + 1):
        starts[bucket] += starts[bucket - 1]
    found = np.empty(values.size)
    for value in values:
        bucket = int((value - low) * scale)
        found[starts[bucket]] = value
        starts[bucket] += 1
    for place in range(1, found.size):
        value = found[place]
        at = place
        while at > 0 and found[at - 1] > value:
            found[at] = found[at - 1]
            at -= 1
        found[at] = value
    return found


@njit(cache=True, nogil=True)
def merged_mean_square(first, second):
    """The mean square gap of the step functions of two sorted samples, in one walk along both."""
    m, n = first.size, second.size
    one, other, at, total = 0, 0, 0, 0.0
    while one < m:
        own, others = (one + 1) * n, (other + 1) * m
        end = min(own, others)
        gap = first[one] - second[other]
        total += gap * gap * (end - at)
        at = end
        one += own == end
        other += others == end
    return total / (m * n)
