"""Cell means with their cluster-robust covariance: the core of intervals, gaps and omnibus tests.

Rows fall into cells (groups, or group x stratum) and into clusters; a cluster may span several cells.
For cell j with N_j rows, n_gj of them in cluster g, let e_gj be that cluster's sum of residuals. A model
with one mean per cell has a block-diagonal hat matrix, so the bias-reduced (CR2) estimator of Bell and
McCaffrey (2002) has a closed form: u_gj = e_gj / (N_j sqrt(1 - n_gj / N_j)), and the covariance is the sum
over g of u_g u_g'. The same algebra gives their Satterthwaite degrees of freedom in O(clusters x cells^2),
without a clusters x clusters matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.stats._arrays import Floats, Ints, weighted_counts

_DENSE_CELLS = 8
"""Up to this many cells a dense clusters x cells matrix is faster than a sparse one."""
_TINY = 1e-12
"""A standard error below this share of the values' range is rounding, not variation."""
_CANCELLED = 1e-14
"""A variance below this share of its terms is cancellation error."""


_OF_VALUES = ("means", "covariance", "fourth")
_FIXED = ("sizes", "clusters", "kish", "n_clusters", "design")
"""Fields of the moments that do not depend on the values."""


@dataclass(frozen=True, slots=True)
class CellMoments:
    """Cell means and the inputs for testing any contrast of them; cells are on the last axes.

    Axes of outputs and of sets of cells may precede them; `_FIXED` fields have no axis of outputs.
    """

    means: Floats
    sizes: Floats
    """Rows per cell."""
    clusters: Ints
    """Clusters per cell."""
    kish: Floats
    """Effective number of clusters per cell, (sum n)^2 / sum n^2."""
    n_clusters: Ints
    """Clusters over all cells."""
    covariance: Floats
    """Cluster-robust (CR2) covariance of the means; exactly 0 instead of rounding."""
    design: Floats
    """The terms of the sampling variance of ``covariance``, for independent errors of unit variance."""
    fourth: Floats
    """Sums over clusters of u^4, where the sums of u^2 are the diagonal of ``covariance``."""

    @classmethod
    def stack(cls, gaps: Sequence[CellMoments]) -> CellMoments:
        """The moments of several sets of cells, on an axis after that of the outputs."""
        of_values = {name: np.stack([getattr(gap, name) for gap in gaps], axis=1) for name in _OF_VALUES}
        return cls(**of_values, **{name: np.stack([getattr(gap, name) for gap in gaps]) for name in _FIXED})

    def select(self, *at: int) -> CellMoments:
        """The moments of one output, and of one set of cells where there are several."""
        of_values = {name: getattr(self, name)[at] for name in _OF_VALUES}
        return CellMoments(**of_values, **{name: getattr(self, name)[at[1:]] for name in _FIXED})

    @property
    def variances(self) -> Floats:
        """The variance of each mean."""
        return np.diagonal(self.covariance, axis1=-2, axis2=-1)

    @property
    def shares(self) -> Floats:
        """The means of 0/1 values without rounding: successes over rows."""
        exact: Floats = np.rint(self.means * self.sizes) / self.sizes
        return exact

    def contrast(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """The contrast ``weights @ means``, its variance, and the degrees of freedom of the variance.

        Every cell with a weight must have two clusters or more.
        """
        squares = weights**2
        independent = (self.variances * squares).sum(axis=-1)
        crossed = np.triu(self.covariance * np.multiply.outer(weights, weights), 1)
        variance = independent + 2 * crossed.sum(axis=(-2, -1))
        variance = np.where(variance <= _CANCELLED * independent, 0.0, variance)
        spread = (self.design * np.multiply.outer(squares, squares)).sum(axis=(-2, -1))
        df = (squares / self.sizes).sum(axis=-1) ** 2 / spread
        return self.means @ weights, variance, np.broadcast_to(df, variance.shape)

    def own_df(self, most: Floats) -> Floats:
        """Degrees of freedom of each cell's variance, estimated from its own clusters, from 1 to ``most``.

        Twice the squared variance over its sampling variance, the sum of u^4 minus (sum of u^2)^2 / G: about
        G for normal values, and about twice the number of clusters with the label for a rare label.
        """
        squares, most = self.variances**2, most[..., None]
        excess = self.fourth - squares / self.clusters
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.minimum(most, np.maximum(1.0, 2 * squares / excess))
        return np.where((squares == 0) | (excess <= 0), most, own)

    def homogeneity(self) -> tuple[float, float, float] | None:
        """F for equal means and its two degrees of freedom, between and error; None without variation.

        With the second-order correction of Rao and Scott (1984). The statistic is the between-cells sum of
        squares over its expectation under the null. Only traces of the covariance are used, never its
        inverse: a Wald test rejects a true null far too often when a small cell shows no variation (a rare
        label in a small group), and cannot be computed with fewer clusters than cells.
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
        # In place: with thousands of cells each of these matrices takes hundreds of megabytes.
        form *= form
        form *= self.design
        df_error = (self.sizes.size - 1) ** 2 / float(np.sum(form))
        np.multiply(product, product.T, out=form)
        return float(self.sizes @ spread**2) / trace, trace**2 / float(np.sum(form)), df_error


def compute_moments(y: Floats, cells: Ints, clusters: Ints, *, n_cells: int) -> CellMoments:
    """Means and cluster-robust covariance of ``n_cells`` cells.

    A cell with one cluster gets a variance of zero: callers must check for it before using the variance.
    """
    table, values = ClusterTable.of(cells, clusters, n_cells), y[None]
    low, high = values.min(axis=1, initial=np.inf), values.max(axis=1, initial=-np.inf)
    # Equal values must give exactly equal means.
    centre = np.where(high == low, low, values.sum(axis=1) / max(1, y.size))
    return table.moments(table.sum_pairs(values - centre[:, None]), centre, low, high).select(0)


@dataclass(frozen=True)
class ClusterTable:
    """The non-empty (cell, cluster) pairs of the rows, independent of the values."""

    cell: Ints
    """Cell of each pair, ascending."""
    cluster: Ints
    """Cluster of each pair, numbered without gaps."""
    n: Floats
    """Rows of each pair."""
    order: Ints
    """Row positions, grouped by pair."""
    starts: Ints
    """Index in ``order`` at which each pair starts."""
    n_cells: int

    @classmethod
    def of(cls, cells: Ints, clusters: Ints, n_cells: int, rows: Floats | None = None) -> ClusterTable:
        """The table of rows, or of sums over ``rows`` rows each."""
        order = np.lexsort((clusters, cells))
        cells, clusters = cells[order], clusters[order]
        is_first = np.ones(order.size, dtype=np.bool_)
        is_first[1:] = (np.diff(cells) != 0) | (np.diff(clusters) != 0)
        starts = np.flatnonzero(is_first)
        n = np.diff(starts, append=order.size) if rows is None else np.add.reduceat(rows[order], starts)
        _, cluster = np.unique(clusters[starts], return_inverse=True)
        return cls(cells[starts], cluster, n.astype(np.float64), order, starts, n_cells)

    @cached_property
    def n_clusters(self) -> int:
        """Clusters over all cells."""
        return int(self.cluster.max(initial=-1)) + 1

    @cached_property
    def sizes(self) -> Floats:
        """Rows per cell."""
        return weighted_counts(self.cell, self.n, self.n_cells)

    @cached_property
    def _scale(self) -> Floats:
        """The factor that turns a pair's residual sum into its contribution u to the cell mean."""
        size = self.sizes[self.cell]
        others = 1 - self.n / size
        return np.divide(1 / size, np.sqrt(others), out=np.zeros_like(size), where=others > 0)

    @cached_property
    def _design(self) -> Floats:
        leverage, own = self._scale * self.n / np.sqrt(self.sizes[self.cell]), self._scale**2 * self.n
        crossed = self._gram(own, leverage**2)
        design = self._gram(own, own) - crossed
        design -= crossed.T
        del crossed
        design += self._gram(leverage, leverage) ** 2
        return design

    def sum_pairs(self, values: Floats) -> Floats:
        """The sums over the rows of each pair, for each row of ``values``."""
        return np.add.reduceat(values[:, self.order], self.starts, axis=1)

    def moments(self, totals: Floats, centre: Floats, low: Floats, high: Floats) -> CellMoments:
        """The moments of values whose sums, after subtracting ``centre``, are ``totals`` (outputs x pairs).

        ``low`` and ``high`` are each output's minimum and maximum.
        """
        shift = self._sum_cells(totals) / np.maximum(self.sizes, 1)
        residual = self._scale * (totals - shift[:, self.cell] * self.n)
        squares = residual * residual
        floor = np.where(high > low, (_TINY * (high - low)) ** 2, np.inf)
        covariance = np.zeros((len(totals), self.n_cells, self.n_cells))
        if self.n_clusters == self.cell.size:
            # No cluster spans two cells: the covariances between cells are zero.
            np.einsum("qii->qi", covariance)[:] = self._sum_cells(squares)
        else:
            for of_output, column in zip(covariance, residual, strict=True):
                of_output[:] = self._gram(column, column)
        rounding = np.diagonal(covariance, axis1=1, axis2=2) <= floor[:, None]
        covariance[rounding[:, :, None] | rounding[:, None, :]] = 0
        return CellMoments(
            means=np.where(high == low, low, centre + shift.T).T,
            sizes=self.sizes,
            clusters=np.bincount(self.cell, minlength=self.n_cells),
            kish=self.sizes**2 / np.maximum(weighted_counts(self.cell, self.n**2, self.n_cells), 1),
            n_clusters=np.array(self.n_clusters),
            covariance=covariance,
            design=self._design,
            fourth=self._sum_cells(squares * squares),
        )

    def _sum_cells(self, columns: Floats) -> Floats:
        """The sums over the pairs of each cell, for each row of ``columns``."""
        sums = np.zeros((len(columns), self.n_cells))
        used, starts = np.unique(self.cell, return_index=True)
        sums[:, used] = np.add.reduceat(columns, starts, axis=1)
        return sums

    def _gram(self, first: Floats, second: Floats) -> Floats:
        """The product A B' of the cells x clusters matrices A and B with these entries."""
        shape = (self.n_cells, self.n_clusters)
        if self.n_cells > _DENSE_CELLS:
            from scipy.sparse import csr_array

            starts = np.searchsorted(self.cell, np.arange(self.n_cells + 1))
            sparse = [csr_array((column, self.cluster, starts), shape=shape) for column in (first, second)]
            gram: Floats = (sparse[0] @ sparse[1].T).toarray()
            return gram
        dense = np.zeros((2, *shape))
        dense[0, self.cell, self.cluster] = first
        dense[1, self.cell, self.cluster] = second
        product: Floats = dense[0] @ dense[1].T
        return product
