"""The exact second-order distance of a million values each, beside POT's ``wasserstein_1d``.

    python benchmarks/bench_wasserstein.py [--out FILE.json]

First the gate: both must give the same number. Sizes are equal, and unequal by a tenth; values are spread, as
probabilities are, and of a thousand kinds, where sorting by buckets gives way to sorting in general.
"""

from __future__ import annotations

import math

import numpy as np
import ot
from harness import Way, gate, joined, parser, result, take_turns, write

from evenhand.stats.base_rates import mean_square_gap

SIZE = 1_000_000


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The distance as a comparison computes it."""
    return math.sqrt(mean_square_gap(np.sort(a), np.sort(b)))


def measured(m: int, n: int, rounds: int, *, digits: int | None = None) -> dict[str, object]:
    rng = np.random.default_rng(0)
    a, b = rng.beta(2, 3, m), rng.beta(3, 2, n)
    if digits is not None:
        a, b = a.round(digits), b.round(digits)
    ours, theirs = distance(a, b), math.sqrt(float(ot.wasserstein_1d(a, b, p=2)))
    gate(math.isclose(ours, theirs, rel_tol=1e-9), f"{ours} is not {theirs}")
    ways = {
        "evenhand": Way(lambda: distance(a, b)),
        "POT wasserstein_1d": Way(lambda: ot.wasserstein_1d(a, b, p=2)),
    }
    turns = take_turns(ways, rounds=rounds, warm=1)
    return result(turns, ours="evenhand", unit="distances/s", gate="the same distance to 1e-9", m=m, n=n)


if __name__ == "__main__":
    args = parser(__doc__, rounds=7).parse_args()
    sizes = {"equal": (SIZE, SIZE), "unequal": (SIZE, SIZE * 9 // 10)}
    parts = {name: measured(*size, args.rounds) for name, size in sizes.items()}
    parts["ties"] = measured(SIZE, SIZE, args.rounds, digits=3)
    write(joined(parts), args.out)
