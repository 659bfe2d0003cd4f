"""Arrays in, small frozen results out: intervals, gaps, tests, corrections, distances, agreement, power.

Every estimate respects clusters (texts that belong together count as one witness), every random step takes
``rng``, and what cannot be known is null with a reason. Rows without a value are dropped by the caller, who
passes their number as ``n_null``.
"""

from evenhand.stats._arrays import RandomSource
from evenhand.stats.agreement_coefficients import (
    Correlation,
    annotator_figures,
    find_dissents,
    fleiss_kappa,
    item_figures,
    krippendorff_alpha,
    pair_figures,
    pairwise_spearman,
    rank_correlation,
    spearman,
)
from evenhand.stats.bootstrap import bootstrap_interval, cluster_bootstrap_mean, resample_clusters
from evenhand.stats.classification_metrics import BestCut, Validation, best_cut, validate_labels
from evenhand.stats.consensus import Consensus, DawidSkene, annotator_accuracy, dawid_skene, majority_vote
from evenhand.stats.contrasts import (
    clustered_contrast,
    clustered_difference,
    clustered_omnibus,
    clustered_proportion_difference,
    stratified_difference,
)
from evenhand.stats.corrections import benjamini_hochberg, holm
from evenhand.stats.group_spread import GroupSpread, SpreadRanking, rank_spreads
from evenhand.stats.hypothesis_tests import (
    chi_square,
    cliffs_delta,
    cohens_h,
    hedges_g,
    paired_difference,
    paired_t,
    two_proportions,
    wilcoxon,
)
from evenhand.stats.intervals import clustered_mean, clustered_proportion, clustered_ratio, wilson
from evenhand.stats.label_scales import RatingCodes
from evenhand.stats.method_ratings import MethodRating, compare_methods
from evenhand.stats.permutation import cluster_permutation
from evenhand.stats.power_analysis import (
    clusters_needed,
    design_effect,
    detectable_gap,
    gap_variance,
    pilot_statistics,
    required_growth,
)
from evenhand.stats.results import (
    ClusterPlan,
    Difference,
    GapVariance,
    Growth,
    Omnibus,
    Permutation,
    Pilot,
    PointEstimate,
    Stratified,
    StratumGap,
    TestResult,
)
from evenhand.stats.wasserstein import sliced_wasserstein2, wasserstein2_1d

__all__ = [
    "BestCut",
    "ClusterPlan",
    "Consensus",
    "Correlation",
    "DawidSkene",
    "Difference",
    "GapVariance",
    "GroupSpread",
    "Growth",
    "MethodRating",
    "Omnibus",
    "Permutation",
    "Pilot",
    "PointEstimate",
    "RandomSource",
    "RatingCodes",
    "SpreadRanking",
    "Stratified",
    "StratumGap",
    "TestResult",
    "Validation",
    "annotator_accuracy",
    "annotator_figures",
    "benjamini_hochberg",
    "best_cut",
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
    "compare_methods",
    "dawid_skene",
    "design_effect",
    "detectable_gap",
    "find_dissents",
    "fleiss_kappa",
    "gap_variance",
    "hedges_g",
    "holm",
    "item_figures",
    "krippendorff_alpha",
    "majority_vote",
    "pair_figures",
    "paired_difference",
    "paired_t",
    "pairwise_spearman",
    "pilot_statistics",
    "rank_correlation",
    "rank_spreads",
    "required_growth",
    "resample_clusters",
    "sliced_wasserstein2",
    "spearman",
    "stratified_difference",
    "two_proportions",
    "validate_labels",
    "wasserstein2_1d",
    "wilcoxon",
    "wilson",
]
