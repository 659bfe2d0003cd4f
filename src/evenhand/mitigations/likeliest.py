"""The likeliest tokens of each row and the direction of all others, one row after the other on each core.

What `kernel.support_of` does in torch with a sort and four passes over the logits of all rows, here in two
passes over those of one, which stay in the cache.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from evenhand.mitigations.lanes import LOOSE, Floats, Ints, add, add_four, dot, exp, rank

_SAMPLE: Final = 2048
"""Logits looked at to guess from where on the likeliest begin."""
_LOW: Final = np.int64(0xFFFFFFFF)
_LEAST: Final = np.float32(-87)


class Near(NamedTuple):
    """How many tokens are wanted, and how far those reach that speak for the rest."""

    size: int
    reach: int
    follow: float
    nothing: float


class Found(NamedTuple):
    """What is found of each row, as `policy.Support` has it."""

    tokens: Ints
    logits: Floats
    mass: Floats
    direction: Floats
    rest: Floats
    """What is added to the direction's product with the hidden state."""


@njit(fastmath=LOOSE, cache=True, nogil=True)
def look(
    begin: int, end: int, hidden: Floats, logits: Floats, table: Floats, near: Near, found: Found
) -> None:
    """Write what is found of the rows from ``begin`` to ``end``."""
    keys, sample = np.empty(logits.shape[1], np.int64), np.empty(2 * _SAMPLE, np.float32)
    shares, tokens = np.empty(near.reach, np.float32), np.empty(near.reach, np.int64)
    for row in range(begin, end):
        most, total, said = _masses(logits[row])
        mass = most + np.float32(math.log(total))
        count = _above(logits[row], near.reach, sample, keys)
        order = np.sort(keys[:count])
        inside = reached = told = 0.0
        for place in range(near.reach):
            token = _LOW - (order[count - 1 - place] & _LOW)
            value = logits[row, token]
            shares[place], tokens[place] = exp(value - mass), token
            reached += shares[place]
            told += float(shares[place]) * (value - most)
            if place < near.size:
                inside += shares[place]
                found.tokens[row, place], found.logits[row, place] = token, value
        _direct(near, shares, tokens, table, found.direction[row])
        # What all tokens said less what the near ones said: the mean logit of those beyond, times their mass.
        far = max(1 - reached, 1e-9)
        beyond = float(most) * far + float(said) / float(total) - told
        _bend(hidden[row], max(reached - inside, 1e-30), far, beyond, near.follow, found.direction[row])
        rest = max(math.log1p(-inside), near.nothing) if inside < 1 else near.nothing
        found.mass[row] = mass
        found.rest[row] = mass + np.float32(rest) - dot(found.direction[row], hidden[row])


@njit(fastmath=LOOSE, cache=True, nogil=True)
def _masses(logits: Floats) -> tuple[np.float32, np.float32, np.float32]:
    """The largest logit; the sums of e and of e d, d being a logit less the largest and e its exponential."""
    best = rank(logits[0])
    for place in range(logits.size):
        best = max(best, rank(logits[place]))
    # As integers: a comparison that lets NaN pass is no vector code.
    most = logits[0]
    for place in range(logits.size):
        if rank(logits[place]) == best:
            most = logits[place]
            break
    total = said = np.float32(0)
    for place in range(logits.size):
        below = logits[place] - most
        if below < _LEAST:
            below = _LEAST
        mass = exp(below)
        total += mass
        said += mass * below
    return most, total, said


@njit(cache=True, nogil=True)
def _above(logits: Floats, wanted: int, sample: Floats, keys: Ints) -> int:
    """Write keys of at least the ``wanted`` likeliest tokens: they sort by logit, then by falling token."""
    step = max(1, logits.size // _SAMPLE)
    seen = 0
    for place in range(0, logits.size, step):
        sample[seen] = logits[place]
        seen += 1
    expected = wanted / step
    guess = int(expected + 3 * math.sqrt(expected)) + 2
    count = 0
    while count < wanted:
        bound = (
            np.float32(-np.inf) if guess >= seen else np.partition(sample[:seen], seen - guess)[seen - guess]
        )
        count = 0
        for place in range(logits.size):
            # Not `>=`: NaN is taken too, and stays visible.
            if not logits[place] < bound:
                keys[count] = (np.int64(rank(logits[place])) << 32) | (_LOW - place)
                count += 1
        guess *= 2
    return count


@njit(fastmath=LOOSE, cache=True, nogil=True)
def _direct(near: Near, shares: Floats, tokens: Ints, table: Floats, out: Floats) -> None:
    """Write the sum of the vectors between size and reach, each times its share."""
    out[:] = 0
    place = near.size
    while place + 4 <= near.reach:
        a, b, c, d = tokens[place], tokens[place + 1], tokens[place + 2], tokens[place + 3]
        weights = (shares[place], shares[place + 1], shares[place + 2], shares[place + 3])
        add_four(out, weights, table[a], table[b], table[c], table[d])
        place += 4
    for last in range(place, near.reach):
        add(out, shares[last], table[tokens[last]])


@njit(fastmath=LOOSE, cache=True, nogil=True)
def _bend(hidden: Floats, weight: float, far: float, beyond: float, follow: float, out: Floats) -> None:
    """Make the sum over the near tokens the mean over the whole rest (`policy.Rest`)."""
    length = max(float(dot(hidden, hidden)), 1e-30)
    along = float(dot(out, hidden)) / weight / length
    scale = np.float32((1 + far * follow / weight) / (weight + far))
    shift = np.float32((beyond / length - far * follow * along) / (weight + far))
    for place in range(out.size):
        out[place] = scale * out[place] + shift * hidden[place]
