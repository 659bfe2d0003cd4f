"""Arrays in, small frozen results out: intervals, gaps, tests, corrections, distances, agreement, power.

Every estimate respects clusters (texts that belong together count as one witness), every random step takes
``rng``, and what cannot be known is null with a reason. Rows without a value are dropped by the caller, who
passes their number as ``n_null``.
"""

from evenhand.stats._arrays import RandomSource
from evenhand.stats.agreement import fleiss_kappa, krippendorff_alpha, spearman
from evenhand.stats.bootstrap import bootstrap_interval, cluster_bootstrap_mean, resample_clusters
from evenhand.stats.contrasts import (
    clustered_contrast,
    clustered_difference,
    clustered_omnibus,
    clustered_proportion_difference,
)
from evenhand.stats.corrections import benjamini_hochberg, holm
from evenhand.stats.distances import sliced_wasserstein2, wasserstein2_1d
from evenhand.stats.effects import cliffs_delta, cohens_h, hedges_g
from evenhand.stats.hypothesis_tests import (
    chi_square,
    paired_difference,
    paired_t,
    two_proportions,
    wilcoxon,
)
from evenhand.stats.intervals import clustered_mean, clustered_proportion, clustered_ratio, wilson
from evenhand.stats.permutation import cluster_permutation
from evenhand.stats.power import clusters_needed, design_effect, detectable_gap, gap_variance, growth, pilot
from evenhand.stats.results import (
    Difference,
    GapVariance,
    Growth,
    Measure,
    Omnibus,
    Permutation,
    Pilot,
    Plan,
    Stratified,
    StratumGap,
    TestResult,
)
from evenhand.stats.spread import Ranking, Spread, rank_spreads
from evenhand.stats.strata import stratified_difference

__all__ = [
    "Difference",
    "GapVariance",
    "Growth",
    "Measure",
    "Omnibus",
    "Permutation",
    "Pilot",
    "Plan",
    "RandomSource",
    "Ranking",
    "Spread",
    "Stratified",
    "StratumGap",
    "TestResult",
    "benjamini_hochberg",
    "bootstrap_interval",
    "chi_square",
    "cliffs_delta",
    "cluster_bootstrap_mean",
    "cluster_permutation",
    "clustered_contrast",
    "clustered_difference",
    "clustered_mean",
    "clustered_omnibus",
    "clustered_proportion",
    "clustered_proportion_difference",
    "clustered_ratio",
    "clusters_needed",
    "cohens_h",
    "design_effect",
    "detectable_gap",
    "fleiss_kappa",
    "gap_variance",
    "growth",
    "hedges_g",
    "holm",
    "krippendorff_alpha",
    "paired_difference",
    "paired_t",
    "pilot",
    "rank_spreads",
    "resample_clusters",
    "sliced_wasserstein2",
    "spearman",
    "stratified_difference",
    "two_proportions",
    "wasserstein2_1d",
    "wilcoxon",
    "wilson",
]
