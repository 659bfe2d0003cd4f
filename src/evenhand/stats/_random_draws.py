# numba infers the types of these functions when it compiles them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"
"""Random draws compiled together with the code that uses them; the stream is NumPy's own.

NumPy fills an array with draws, then gathers by it, then sums: memory traffic dominates the time. Here each
row of draws is used as soon as it is made. The stream of a generator is the same, bit for bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.np.random.generator_core import next_uint32

U64 = np.uint64


@njit(cache=True, nogil=True)
def resample_means(sums, sizes, rng, means):
    """Fill ``means`` with bootstrap means: sum / size over all clusters, drawn with replacement."""
    for row in range(means.size):
        total, size = 0.0, 0.0
        for place in rng.integers(0, sums.size, sums.size, np.int32):
            total += sums[place]
            size += sizes[place]
        means[row] = total / size


@njit(cache=True, nogil=True)
def permute_totals(inside, one_sided, two_sided, change, rng, totals):
    """Add to each row of ``totals`` the changes from the clusters that a random arrangement exchanges.

    ``inside`` holds the labels of the one-sided clusters. They are shuffled as in NumPy's ``permuted``; a
    cluster whose label changes is exchanged. Each two-sided cluster is exchanged with probability 1/2.
    """
    bits, chosen = rng.bit_generator, np.empty(max(one_sided.size, two_sided.size), np.int64)
    for row in range(totals.shape[0]):
        labels, count = inside.copy(), np.int64(0)
        _shuffle(labels, bits)
        # Branch-free: the processor cannot predict which clusters change.
        for place in range(labels.size):
            chosen[count] = one_sided[place]
            count += np.int64(labels[place] != inside[place])
        _add(change, chosen[:count], totals[row])
    for row in range(totals.shape[0]):
        count = np.int64(0)
        for cluster in two_sided:
            chosen[count] = cluster
            # NumPy's single-precision uniform is the upper 24 bits: below one half if the first bit is 0.
            count += np.int64(U64(next_uint32(bits)) >> U64(31) == U64(0))
        _add(change, chosen[:count], totals[row])


@njit(inline="always")
def _add(change, chosen, totals):
    """Add the changes of the chosen clusters, in order."""
    for cluster in chosen:
        for column in range(totals.size):
            totals[column] += change[cluster, column]


@njit(cache=True, nogil=True)
def _shuffle(labels, bits):
    """Shuffle labels in place, from the last position to the first.

    A draw that is too large is repeated, as in NumPy; until then a label is swapped with itself, because
    mispredicted branches on such draws would double the time.
    """
    last, mask = labels.size - 1, U64(1)
    while mask < U64(max(1, last)):
        mask = mask << U64(1) | U64(1)
    while last > 0:
        while mask >> U64(1) >= U64(last):
            mask >>= U64(1)
        least = np.int64(mask >> U64(1))
        while last > least:
            place = np.int64(U64(next_uint32(bits)) & mask)
            fits = place <= last
            other = place if fits else last
            labels[last], labels[other] = labels[other], labels[last]
            last -= np.int64(fits)
