"""The cluster bootstrap of a mean beside NumPy and scipy, in one run over the same rows.

    python benchmarks/bench_bootstrap.py [--rounds 5] [--resamples 10000] [--out FILE.json]

BOLD's size: 23,679 rows in 7,133 clusters. scipy gathers rows through a statistic, as its interface asks for
clusters; it is timed on fewer resamples, which favours it. First the gate: the ends of the intervals must lie
within a twentieth (NumPy) or a fifth (scipy, 2,000 resamples) of an interval's width.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
from harness import Way, gate, parser, result, take_turns, write
from scipy import stats as scipy_stats

from evenhand.stats.bootstrap import cluster_bootstrap_mean

ROWS, CLUSTERS = 23_679, 7_133
SCIPY_RESAMPLES = 200
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Ends = tuple[float, float]


def rows() -> tuple[Floats, Ints]:
    """Values that are alike within clusters of unequal sizes, each of one row or more."""
    rng = np.random.default_rng(0)
    clusters = np.concatenate([np.arange(CLUSTERS), rng.integers(0, CLUSTERS, ROWS - CLUSTERS)])
    return 0.4 * rng.normal(size=CLUSTERS)[clusters] + rng.normal(size=ROWS), clusters


def ours(y: Floats, clusters: Ints, resamples: int) -> Ends:
    """Our interval: bias-corrected, accelerated, widened for few clusters."""
    found = cluster_bootstrap_mean(y, clusters, rng=1, resamples=resamples)
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def numpy_sums(y: Floats, clusters: Ints, resamples: int) -> Ends:
    """Vectorised NumPy over cluster sums, in blocks: a percentile interval and nothing more."""
    sizes = np.bincount(clusters).astype(np.float64)
    sums = np.bincount(clusters, weights=y)
    generator = np.random.default_rng(1)
    means = []
    for start in range(0, resamples, 250):
        drawn = generator.integers(0, sums.size, (min(250, resamples - start), sums.size))
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975])
    return float(low), float(high)


def scipy_rows(y: Floats, clusters: Ints, resamples: int) -> Ends:
    """scipy.stats.bootstrap over clusters, with a statistic that gathers their rows."""
    order = np.argsort(clusters, kind="stable")
    starts = np.searchsorted(clusters[order], np.arange(CLUSTERS + 1))

    def mean(drawn: Ints) -> float:
        taken = [order[starts[cluster] : starts[cluster + 1]] for cluster in drawn]
        return float(y[np.concatenate(taken)].mean())

    found = scipy_stats.bootstrap(
        (np.arange(CLUSTERS),),
        mean,
        n_resamples=resamples,
        vectorized=False,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    return float(found.low), float(found.high)


def near(a: Ends, b: Ends, within: float) -> bool:
    width = b[1] - b[0]
    return all(abs(x - y) < within * width for x, y in zip(a, b, strict=True))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--resamples", type=int, default=10_000)
    args = options.parse_args()
    (y, clusters), count = rows(), args.resamples
    plain = ours(y, clusters, count)
    gate(near(plain, numpy_sums(y, clusters, count), 0.05), "the interval is not NumPy's")
    gate(near(plain, scipy_rows(y, clusters, 2_000), 0.2), "the interval is not scipy's")
    turns = take_turns(
        {
            "evenhand": Way(lambda: ours(y, clusters, count), count),
            "NumPy cluster sums": Way(lambda: numpy_sums(y, clusters, count), count),
            "scipy, gathering rows": Way(lambda: scipy_rows(y, clusters, SCIPY_RESAMPLES), SCIPY_RESAMPLES),
        },
        rounds=args.rounds,
    )
    facts = {"rows": ROWS, "clusters": CLUSTERS, "resamples": count}
    said = "ends within 0.05 widths of NumPy's, 0.2 of scipy's"
    write(result(turns, ours="evenhand", unit="resamples/s", gate=said, **facts), args.out)


if __name__ == "__main__":
    main()
