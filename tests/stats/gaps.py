"""The two kinds of gap by name."""

from __future__ import annotations

import numpy.typing as npt

from evenhand.stats._arrays import Ids
from evenhand.stats.contrasts import clustered_gap
from evenhand.stats.results import Difference


def clustered_difference(
    y_a: npt.ArrayLike, clusters_a: Ids, y_b: npt.ArrayLike, clusters_b: Ids, *, level: float = 0.95
) -> Difference:
    return clustered_gap(y_a, clusters_a, y_b, clusters_b, is_share=False, level=level)[0]


def clustered_proportion_difference(
    y_a: npt.ArrayLike, clusters_a: Ids, y_b: npt.ArrayLike, clusters_b: Ids, *, level: float = 0.95
) -> Difference:
    return clustered_gap(y_a, clusters_a, y_b, clusters_b, is_share=True, level=level)[0]
