"""Slow, obvious twins of the cluster-robust kernel: full matrices, one cluster at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


def contrast_slowly(y: Floats, cells: Ints, clusters: Ints, weights: Floats) -> tuple[float, float, float]:
    """Estimate, CR2 variance and Bell-McCaffrey degrees of freedom of ``weights @ cell means``.

    Bell and McCaffrey (2002), as printed: adjustment matrices (I - H_gg)^(-1/2), then the Satterthwaite ratio
    of the eigenvalues of G'G with G = (I - H)_g A_g X_g (X'X)^-1 c, for independent errors.
    """
    design = np.eye(weights.size)[cells]
    bread = np.linalg.inv(design.T @ design)
    beta = bread @ design.T @ y
    residual = y - design @ beta
    maker = np.eye(y.size) - design @ bread @ design.T
    meat, columns = 0.0, []
    for cluster in np.unique(clusters):
        rows = clusters == cluster
        adjusted = _inverse_root(maker[np.ix_(rows, rows)]) @ design[rows] @ bread @ weights
        meat += float(adjusted @ residual[rows]) ** 2
        columns.append(maker[:, rows] @ adjusted)
    eigen = np.linalg.eigvalsh(np.stack(columns) @ np.stack(columns).T)
    return float(weights @ beta), meat, float(eigen.sum() ** 2 / (eigen**2).sum())


def _inverse_root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    root: Floats = vectors @ np.diag(values**-0.5) @ vectors.T
    return root
