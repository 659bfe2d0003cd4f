"""Means of cells with their cluster-robust covariance: the kernel under intervals, gaps and omnibus tests.

Rows fall into cells (groups, or group x stratum) and into clusters; a cluster may reach over several cells.
For cell j with N_j rows, n_gj of them in cluster g, let e_gj be that cluster's sum of residuals. A model
with one mean a cell has a block-diagonal hat matrix, so the bias-reduced (CR2) estimator of Bell and
McCaffrey (2002) has a closed form: u_gj = e_gj / (N_j sqrt(1 - n_gj / N_j)), and the covariance is the sum
over g of u_g u_g'. The same algebra gives their Satterthwaite degrees of freedom in O(clusters x cells^2),
without a clusters x clusters matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenhand.stats._arrays import Floats, Ints, weighted_counts

_DENSE_CELLS = 8
"""Up to this many cells a dense clusters x cells matrix is faster than a sparse one."""
_TABLE_LIMIT = 20_000_000
"""Above this many clusters x cells the pairs are found by sorting instead of by a table."""
_TINY = 1e-12
"""A standard error below this share of the values' range is rounding, not variation."""
CANCELLED = 1e-14
"""A variance below this share of its terms is what cancellation left over."""


class Contrast(NamedTuple):
    """A weighted sum of cell means, its variance, and the degrees of freedom of that variance."""

    estimate: float
    variance: float
    df: float


class Homogeneity(NamedTuple):
    """The F statistic for equal cell means, with its two degrees of freedom."""

    statistic: float
    df_between: float
    df_error: float


@dataclass(frozen=True, slots=True)
class CellMoments:
    """Cell means and what is needed to judge any contrast of them."""

    means: Floats
    sizes: Floats
    """Rows a cell."""
    clusters: Ints
    """Clusters a cell."""
    kish: Floats
    """Effective number of clusters a cell, (sum n)^2 / sum n^2."""
    n_clusters: int
    """Clusters over all cells."""
    covariance: Floats
    """Cluster-robust (CR2) covariance of the means; exact zero where it is only rounding."""
    design: Floats
    """For independent errors of unit variance: what the sampling variance of ``covariance`` is made of."""
    fourth: Floats
    """Sums over clusters of the fourth powers whose squares make the diagonal of ``covariance``."""

    def contrast(self, weights: Floats) -> Contrast:
        """The contrast ``weights @ means``; every cell with a weight must hold two clusters or more."""
        squares = weights**2
        variance = float(weights @ self.covariance @ weights)
        if variance <= CANCELLED * float(squares @ np.diag(self.covariance)):
            variance = 0.0
        df = float(squares @ (1 / self.sizes)) ** 2 / float(squares @ self.design @ squares)
        return Contrast(float(weights @ self.means), variance, df)

    def own_df(self, cell: int, *, most: float) -> float:
        """Degrees of freedom of a cell's variance as its own clusters show them, from 1 to ``most``.

        Twice the squared variance over its sampling variance, the sum of u^4 less (sum of u^2)^2 / G: about
        G for normal values, and twice the clusters that have it for a label that is rare.
        """
        variance, clusters = float(self.covariance[cell, cell]), float(self.clusters[cell])
        excess = float(self.fourth[cell]) - variance**2 / clusters
        if variance == 0 or excess <= 0:
            return most
        return min(most, max(1.0, 2 * variance**2 / excess))

    def homogeneity(self) -> Homogeneity | None:
        """F for equal means with the second-order correction of Rao and Scott (1984); None without variation.

        The statistic is the between-cells sum of squares over what clusters alone make of it. Only traces
        of the covariance enter, never its inverse: a Wald test rejects a true null far too often once a
        small cell shows no variation (a rare label in a small group), and cannot be computed with fewer
        clusters than cells.
        """
        form = np.outer(self.sizes, self.sizes)
        form /= self.sizes.sum()
        np.negative(form, out=form)
        form[np.diag_indices_from(form)] += self.sizes
        product = form @ self.covariance
        trace = float(np.trace(product))
        if trace <= 0:
            return None
        spread = self.means - float(self.sizes @ self.means) / float(self.sizes.sum())
        # In place: with thousands of cells each of these matrices has hundreds of megabytes.
        form *= form
        form *= self.design
        df_error = (self.sizes.size - 1) ** 2 / float(np.sum(form))
        np.multiply(product, product.T, out=form)
        return Homogeneity(
            statistic=float(self.sizes @ spread**2) / trace,
            df_between=trace**2 / float(np.sum(form)),
            df_error=df_error,
        )


def compute_moments(y: Floats, cells: Ints, clusters: Ints, *, n_cells: int) -> CellMoments:
    """Means and cluster-robust covariance of ``n_cells`` cells, each of which must hold a row.

    A cell of one cluster has a variance of zero here: callers refuse it before they trust it.
    """
    values_range = float(np.ptp(y))
    # Equal values must come out as exactly equal means.
    centre = float(y.mean()) if values_range > 0 else float(y[0])
    pairs = _pairs(y - centre, cells, clusters, n_cells)
    sizes = weighted_counts(pairs.cell, pairs.n, n_cells)
    shift = weighted_counts(pairs.cell, pairs.total, n_cells) / sizes
    size = sizes[pairs.cell]
    others = 1 - pairs.n / size
    scale = np.divide(1 / size, np.sqrt(others), out=np.zeros_like(size), where=others > 0)
    residual = scale * (pairs.total - shift[pairs.cell] * pairs.n)
    pull = scale * pairs.n / np.sqrt(size)
    own = scale**2 * pairs.n
    gram = _grams(pairs, n_cells, [residual, own, pull, pull**2])
    crossed = gram(1, 3)
    design = gram(1, 1) - crossed
    design -= crossed.T
    del crossed
    design += gram(2, 2) ** 2
    return CellMoments(
        means=centre + shift,
        sizes=sizes,
        clusters=np.bincount(pairs.cell, minlength=n_cells),
        kish=sizes**2 / weighted_counts(pairs.cell, pairs.n**2, n_cells),
        n_clusters=int(pairs.row[-1]) + 1,
        covariance=_without_rounding(gram(0, 0), values_range),
        design=design,
        fourth=weighted_counts(pairs.cell, residual**4, n_cells),
    )


class _Pairs(NamedTuple):
    """The non-empty (cluster, cell) pairs: clusters numbered without gaps, rows, sum of values."""

    row: Ints
    cell: Ints
    n: Floats
    total: Floats


def _pairs(y: Floats, cells: Ints, clusters: Ints, n_cells: int) -> _Pairs:
    key = clusters * n_cells + cells
    length = (int(clusters.max()) + 1) * n_cells
    if length > _TABLE_LIMIT:
        found, key = np.unique(key, return_inverse=True)
        n, total = np.bincount(key), weighted_counts(key, y)
    else:
        n_all = np.bincount(key, minlength=length)
        found = np.flatnonzero(n_all)
        n, total = n_all[found], weighted_counts(key, y, length)[found]
    row = np.concatenate([[0], np.cumsum(np.diff(found // n_cells) != 0)])
    return _Pairs(row, found % n_cells, n.astype(np.float64), total)


def _grams(pairs: _Pairs, n_cells: int, columns: Sequence[Floats]) -> Callable[[int, int], Floats]:
    """What gives ``X_i' X_j``, for the clusters x cells matrices X_i with entries ``columns[i]``.

    One at a time, since all of them together would take gigabytes where there are thousands of cells.
    """
    n_rows = int(pairs.row[-1]) + 1
    if pairs.row.size == n_rows:
        # No cluster reaches over two cells: there is nothing between them.
        return lambda i, j: np.diag(weighted_counts(pairs.cell, columns[i] * columns[j], n_cells))
    if n_cells <= _DENSE_CELLS:
        stacked = np.zeros((n_rows, n_cells, len(columns)))
        stacked[pairs.row, pairs.cell] = np.stack(columns, axis=1)
        flat = stacked.reshape(n_rows, -1)
        gram = (flat.T @ flat).reshape(n_cells, len(columns), n_cells, len(columns))
        return lambda i, j: gram[:, i, :, j]
    from scipy.sparse import csr_array

    starts = np.searchsorted(pairs.row, np.arange(n_rows + 1))
    sparse = [csr_array((column, pairs.cell, starts), shape=(n_rows, n_cells)) for column in columns]
    return lambda i, j: (sparse[i].T @ sparse[j]).toarray()


def rounding_floor(values_range: Floats) -> Floats:
    """The variance up to which there is only rounding, of means of values with this range."""
    floor: Floats = (_TINY * values_range) ** 2
    return floor


def _without_rounding(covariance: Floats, values_range: float) -> Floats:
    rounding = np.diag(covariance) <= rounding_floor(np.array(values_range))
    return np.where(rounding[:, None] | rounding, 0.0, covariance)
