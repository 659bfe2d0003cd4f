"""The cluster bootstrap of a mean beside NumPy and scipy, in one run over the same rows.

Usage: python benchmarks/bench_bootstrap.py [--rounds 5] [--resamples 10000] [--out FILE]

BOLD's size: 23,679 rows in 7,133 clusters. Ratios are medians over rounds in which the ways take turns; times
are CPU time of one core. scipy gathers rows through a statistic, as its interface asks for clusters; it is
timed on fewer resamples and scaled, which favours it. Answers are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
from scipy import stats as scipy_stats

from evenhand.stats import cluster_bootstrap_mean

ROWS, CLUSTERS = 23_679, 7_133
LIMIT_S = 5.0
SCIPY_RESAMPLES = 200
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


def rows() -> tuple[Floats, Ints]:
    """Values that are alike within clusters of unequal sizes, each of one row or more."""
    rng = np.random.default_rng(0)
    clusters = np.concatenate([np.arange(CLUSTERS), rng.integers(0, CLUSTERS, ROWS - CLUSTERS)])
    return 0.4 * rng.normal(size=CLUSTERS)[clusters] + rng.normal(size=ROWS), clusters


def ours(y: Floats, clusters: Ints, resamples: int) -> tuple[float, float]:
    """Our interval: bias-corrected, accelerated, widened for few clusters."""
    found = cluster_bootstrap_mean(y, clusters, rng=1, resamples=resamples)
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def numpy_sums(y: Floats, clusters: Ints, resamples: int) -> tuple[float, float]:
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


def scipy_rows(y: Floats, clusters: Ints, resamples: int) -> tuple[float, float]:
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


def seconds(call: Callable[[], object]) -> float:
    """CPU seconds of a call."""
    started = time.process_time()
    call()
    return time.process_time() - started


def main() -> None:
    """Compare, time, print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    y, clusters = rows()
    plain, theirs = ours(y, clusters, given.resamples), numpy_sums(y, clusters, given.resamples)
    width = theirs[1] - theirs[0]
    assert all(abs(a - b) < 0.05 * width for a, b in zip(plain, theirs, strict=True)), (plain, theirs)
    gathered = scipy_rows(y, clusters, 2_000)
    assert all(abs(a - b) < 0.2 * width for a, b in zip(plain, gathered, strict=True)), (plain, gathered)
    times: dict[str, list[float]] = {"ours": [], "numpy": [], "scipy": []}
    for _ in range(given.rounds):
        times["ours"].append(seconds(lambda: ours(y, clusters, given.resamples)))
        times["numpy"].append(seconds(lambda: numpy_sums(y, clusters, given.resamples)))
        few = seconds(lambda: scipy_rows(y, clusters, SCIPY_RESAMPLES))
        times["scipy"].append(few * given.resamples / SCIPY_RESAMPLES)
    middle = {name: statistics.median(found) for name, found in times.items()}
    result = {
        "rows": ROWS,
        "clusters": CLUSTERS,
        "resamples": given.resamples,
        "seconds": {name: round(found, 3) for name, found in middle.items()},
        "times_scipy": round(middle["scipy"] / middle["ours"], 1),
        "times_numpy": round(middle["numpy"] / middle["ours"], 2),
        "machine": {"platform": platform.platform(), "python": platform.python_version()},
    }
    print(json.dumps(result, indent=1))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    assert middle["ours"] < LIMIT_S, f"{middle['ours']:.1f} s are more than {LIMIT_S} s"


if __name__ == "__main__":
    main()
