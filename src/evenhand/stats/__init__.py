"""Arrays in, small frozen results out: intervals, gaps, tests, corrections, distances, agreement, power.

Every estimate respects clusters (texts that belong together count as one witness), every random step takes
``rng``, and what cannot be known is null with a reason. Rows without a value are dropped by the caller, who
passes their number as ``n_null``.
"""

from evenhand.stats._arrays import RandomSource
from evenhand.stats.agreement import Correlation, fleiss_kappa, krippendorff_alpha, rank_correlation, spearman
from evenhand.stats.annotators import by_annotator, by_item, by_pair, dissents, pairwise_spearman
from evenhand.stats.bootstrap import bootstrap_interval, cluster_bootstrap_mean, resample_clusters
from evenhand.stats.consensus import Consensus, DawidSkene, dawid_skene, majority, skill
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
from evenhand.stats.rated import MethodRating, compare_methods
from evenhand.stats.ratings import Ratings
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
from evenhand.stats.thresholds import BestCut, best_cut
from evenhand.stats.validation import Validation, validate_labels

__all__ = [
    "BestCut",
    "Consensus",
    "Correlation",
    "DawidSkene",
    "Difference",
    "GapVariance",
    "Growth",
    "Measure",
    "MethodRating",
    "Omnibus",
    "Permutation",
    "Pilot",
    "Plan",
    "RandomSource",
    "Ranking",
    "Ratings",
    "Spread",
    "Stratified",
    "StratumGap",
    "TestResult",
    "Validation",
    "benjamini_hochberg",
    "best_cut",
    "bootstrap_interval",
    "by_annotator",
    "by_item",
    "by_pair",
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
    "compare_methods",
    "dawid_skene",
    "design_effect",
    "detectable_gap",
    "dissents",
    "fleiss_kappa",
    "gap_variance",
    "growth",
    "hedges_g",
    "holm",
    "krippendorff_alpha",
    "majority",
    "paired_difference",
    "paired_t",
    "pairwise_spearman",
    "pilot",
    "rank_correlation",
    "rank_spreads",
    "resample_clusters",
    "skill",
    "sliced_wasserstein2",
    "spearman",
    "stratified_difference",
    "two_proportions",
    "validate_labels",
    "wasserstein2_1d",
    "wilcoxon",
    "wilson",
]
