"""The tables of a run folder: their columns, checked whenever a table is written or read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Final

import polars as pl

from evenhand.core.errors import RunFolderError
from evenhand.core.records import Comparison

Schema = Mapping[str, pl.DataType]

_TEXT, _REAL, _COUNT, _FLAG = pl.String(), pl.Float64(), pl.Int64(), pl.Boolean()
_TYPES: Final[Mapping[str, pl.DataType]] = {
    "text": _TEXT,
    "real": _REAL,
    "count": _COUNT,
    "flag": _FLAG,
    "texts": pl.List(_TEXT),
    "counts": pl.List(_COUNT),
    "groups": pl.List(pl.Struct({"axis": _TEXT, "name": _TEXT})),
    "mentions": pl.List(pl.Struct({"text": _TEXT, "mask": _TEXT, "whole_word": _FLAG})),
    "spans": pl.List(pl.Struct({"start": _COUNT, "end": _COUNT})),
    "weighted_spans": pl.List(pl.Struct({"start": _COUNT, "end": _COUNT, "weight": _REAL})),
}
_KIND_OF: Final[Mapping[str, str]] = {
    name: kind
    for kind, names in {
        "real": "value low high level estimate p p_adjusted p_wilcoxon p_wilcoxon_adjusted effect_size "
        "ratio cut null_mean corrected direction df df_between df_error t statistic q05 q25 q50 q75 q95 "
        "mean mean_a mean_b per_million percent percent_a percent_b standard_deviation odds_ratio "
        "odds_ratio_a odds_ratio_b pmi dp avg_delta acs difference corpus_difference share share_a share_b "
        "opportunity recall_a recall_b spread score_a score_b predicted_a predicted_b intensity_a "
        "intensity_b rho run_value reference_value baseline_value widens min_detectable agreement kappa "
        "kappa_held_out spearman skill disagreement probability own_kappa own_accuracy accuracy "
        "accuracy_held_out group_value cliffs_delta p_permutation",
        "count": "sample prompt_tokens new_tokens n n_null n_clusters n_groups n_keywords n_dp n_truth "
        "n_zero n_baseline n_reference n_items n_left_out groups_left_out family_size count of sentences "
        "group_sentences total byte row flips same rank narrower wider tied null dissents checks_passed "
        "checks_met folds participants ratings",
        "flag": "exploratory disagrees own paired agreeing all_predicted all_emotion is_clear same_direction",
        "texts": "tied_with",
        "counts": "counts",
        "groups": "groups",
        "mentions": "mentions",
        "spans": "masks",
        "weighted_spans": "words",
    }.items()
    for name in names.split()
}
"""The type of a column, in every table; interval ends are numbers, all other columns are texts."""


def _column(name: str) -> tuple[str, pl.DataType]:
    """A column and its type, which follows a colon if it differs from that in other tables."""
    name, _, kind = name.partition(":")
    usual = "real" if name.endswith(("_low", "_high")) else "text"
    return name, _TYPES[kind or _KIND_OF.get(name, usual)]


def _schemas(tables: Mapping[str, str]) -> dict[str, Schema]:
    return {name: dict(map(_column, columns.split())) for name, columns in tables.items()}


ADJUSTED = "(adjusted)"
"""The row of a gap in which every stratum has equal weight in the group and its baseline."""

_GROUPS = (
    "suite model axis group metric output kind value low high level method n n_null n_clusters null_reason "
    "nulls"
)
_COMPARISONS = " ".join(field.name for field in fields(Comparison))

SCHEMAS: dict[str, Schema] = _schemas(
    {
        # ``fills`` and ``meta`` hold JSON objects.
        "prompts": "id suite text groups cluster template_id mentions fills language source meta",
        "generations": "id prompt_id model sample text finish prompt_tokens new_tokens failure",
        "scores": "text_id metric metric_version output value label null_reason",
        # ``kind`` is ``share`` (0 to 1) or ``mean``; ``nulls`` counts ``n_null`` by reason, as a JSON object.
        "groups": _GROUPS,
        "comparisons": _COMPARISONS,
        # One omnibus test per axis and output: do its groups differ at all?
        "omnibus": "suite model axis metric output statistic df_between df_error p p_adjusted n n_clusters "
        "n_groups groups_left_out exploratory family family_size correction method null_reason",
        "pairs": _COMPARISONS,
        # Comparisons within the strata of ``by``; ``(adjusted)`` has the same mix of strata on both sides.
        # ``disagrees`` is true on an adjusted row with the opposite sign to the gap over all texts (Simpson's
        # paradox).
        "strata": f"{_COMPARISONS} by stratum disagrees",
        # Estimates of groups within the strata of ``by``.
        "strata_groups": f"{_GROUPS} by stratum",
        # Texts behind a bar of the report; ``why`` is ``lowest``, ``highest`` or ``drawn``.
        "examples": "suite model axis group metric output why text_id prompt text value label",
        # The words behind the scores of example texts; positions are characters of ``read``, the text as the
        # metric read it.
        "explanations": "text_id metric output read masks words",
        # Histograms of a group's values in equal bins from ``low`` to ``high``, and quantiles.
        "distributions": "suite model axis group metric output low high counts n q05 q25 q50 q75 q95",
        # Shares of labels and their gaps at other cuts; ``own`` marks the metric's own cut.
        "cuts": "suite model axis group metric output cut own value value_low value_high baseline "
        "baseline_value estimate low high p null_reason p_adjusted",
        # Distance of an option's base rate from that of its attribute; ``bias`` is ``indirect`` or
        # ``direct``. ``low`` and ``high`` refer to ``corrected``, which is ``estimate`` minus ``null_mean``;
        # the option ``(overall)`` is the mean over options.
        "distances": "suite model metric attribute option bias estimate null_mean corrected direction low "
        "high p n n_keywords direction_low direction_high p_adjusted null_reason",
        # Excluded items, counted by reason.
        "exclusions": "stage metric reason count of",
    }
)
"""The tables of an audit or of a run over scored texts."""

EVERY_SCHEMA: dict[str, Schema] = SCHEMAS | _schemas(
    {
        # A corpus run: emotions in all ``sentences`` (units); ``low`` and ``high`` refer to ``per_million``.
        "occurrence": "corpus emotion count sentences per_million low high percent total standard_deviation "
        "n_clusters null_reason",
        # Emotions by group; ``low`` and ``high`` refer to ``odds_ratio``, ``sentences`` are units with both.
        "cooccurrence": "corpus emotion axis group count percent per_million odds_ratio pmi low high "
        "pmi_low pmi_high p p_adjusted sentences group_sentences per_million_low per_million_high "
        "n_clusters null_reason",
        # One corpus against another: ratio of an emotion's rates (no group) or its odds ratios with a group.
        "contrasts": "corpus baseline emotion axis group ratio low high p p_adjusted null_reason",
        # Sentences drawn for each cell of ``cooccurrence``. ``byte`` is an offset from 0 in the uncompressed
        # file. In running text it is where the sentence begins; in tables and dumps where the record that
        # contains it begins: the line of JSONL, the element of a JSON array, the first CSV line of the
        # row, the ``<page>`` of a dump. Parquet has no byte offsets: there ``byte`` is null and
        # ``row`` is the number of the row, from 0; elsewhere ``row`` is null. ``text`` is the counted text,
        # at most 600 bytes of it, white space collapsed; under the paper's rule, without what that deletes.
        "samples": "corpus emotion axis group file byte row text",
        # Parts of a corpus not counted as they are. ``byte`` is an offset from 0 in the uncompressed file; if
        # an archive cannot be decompressed further, it is the offset reached in the stored file. Null if
        # a file could not be opened.
        "problems": "file byte reason",
        # One row per emotion, pair of groups and way of measuring (``pairs``: all or agreeing; ``score``:
        # predicted or emotion). ``acs`` and ``difference`` are positive where the second group is higher.
        "measures": "corpus model axis group_a group_b emotion pairs score dp avg_delta p acs n_dp n dp_low "
        "dp_high avg_delta_low avg_delta_high acs_low acs_high difference_low difference_high "
        "opportunity_low opportunity_high difference effect_size p_adjusted p_wilcoxon p_wilcoxon_adjusted "
        "share_a share_b mean_a mean_b opportunity recall_a recall_b n_truth flips n_zero n_clusters level "
        "correction null_reason",
        # Axes with three groups or more, compared over whole sets; ``highest`` and ``lowest`` by mean
        # intensity.
        "sets": "corpus model axis groups:texts emotion dp dp_low dp_high spread spread_low spread_high "
        "statistic p p_adjusted highest lowest n_dp n n_clusters null_reason",
        # Pairs whose predicted class changes with the group; ``emotion`` is the ground truth.
        "flips": "corpus model axis group_a group_b set emotion text_a text_b label_a label_b score_a "
        "score_b",
        # Both sides of every pair, once per emotion, with the ways of measuring in which it counts for the
        # emotion: the data of the intensity plots.
        "pair_scores": "corpus model axis group_a group_b set emotion truth label_a label_b predicted_a "
        "predicted_b intensity_a intensity_b agreeing all_predicted all_emotion",
        # A corpus run beside a probe run: which way each leans; ``corpus_difference`` is in percentage
        # points.
        "associations": "corpus pair_corpus model axis group_a group_b emotion percent_a percent_b "
        "corpus_difference odds_ratio_a odds_ratio_b acs difference p_adjusted is_clear same_direction "
        "null_reason",
        # Agreement of corpus and classifier in direction: Spearman's rho, and the share of cells that agree.
        "agreements": "corpus pair_corpus model rho rho_low rho_high same n n_clusters share share_low "
        "share_high level null_reason",
        # A run against the reference: ``effect`` is ``gap`` (its gap minus the reference's) or ``value``.
        # ``widens`` is the change in the gap's absolute size: positive if the group moved away
        # from the baseline. It is null for values.
        "changes": "suite run reference axis group baseline metric output effect estimate low high p "
        "p_adjusted n n_reference n_clusters min_detectable run_value reference_value widens widens_low "
        "widens_high paired exploratory family family_size correction method null_reason",
        # ``spread`` is the typical gap between two groups, corrected for chance; ``rank`` 1 has the smallest
        # spread.
        "leaderboard": "suite axis metric output run rank spread low high tied_with groups:count "
        "exploratory null_reason",
        # Over all primary outputs and other runs: how often its gaps are narrower, wider, or tied.
        "standings": "run rank narrower wider tied null",
        # ``categories``: ``all``, or ``ordered`` for labels with a place in the order; ``n`` counts
        # ratings, ``n_left_out`` items with fewer than two of the ratings considered.
        "agreement": "question categories statistic:text value low high level n n_items n_left_out method "
        "null_reason",
        # Each annotator against the others; ``skill`` is Dawid and Skene's probability of the true label, and
        # ``dissents`` counts ratings against the majority of the others. ``.._null`` says why there is no
        # estimate or no interval.
        "annotators": "question annotator n agreement agreement_low agreement_high agreement_null kappa "
        "kappa_low kappa_high kappa_null spearman spearman_low spearman_high spearman_null skill skill_low "
        "skill_high skill_null dissents checks_passed checks_met",
        "annotator_pairs": "question first second n agreement agreement_low agreement_high agreement_null "
        "spearman spearman_low spearman_high spearman_null",
        # ``said`` counts the labels; ``label`` is the consensus, ``share`` its share or probability.
        "items": "question item_id text n said disagreement label share null_reason",
        "dissents": "question item_id text annotator said others share",
        # Each annotator's labels for texts whose true label is ``true``, by Dawid and Skene.
        "errors": "question annotator true said probability",
        # ``label`` is ``(all)`` or one label; ``measure`` one of spearman, spearman_score, accuracy,
        # always_commonest, kappa, precision, recall, f1, people.
        "validation": "metric output label measure value low high p level n n_clusters method null_reason",
        "confusion": "metric output human predicted count",
        # Histograms of the scores of texts with each human label, in equal bins from ``low`` to ``high``.
        "score_spreads": "metric output label low high counts n mean q05 q25 q50 q75 q95",
        # The cut that agrees best: ``kappa`` and ``accuracy`` on the fitted part, ``_held_out`` on the rest.
        "best_cuts": "metric output own:real own_kappa own_accuracy cut cut_low cut_high cut_null kappa "
        "kappa_low kappa_high kappa_null accuracy accuracy_low accuracy_high accuracy_null kappa_held_out "
        "kappa_held_out_low kappa_held_out_high kappa_held_out_null accuracy_held_out accuracy_held_out_low "
        "accuracy_held_out_high accuracy_held_out_null folds n",
        "cut_curves": "metric output cut kappa accuracy",
        # Every text with the human label and the metric's score.
        "judged": "item_id text human share metric output value predicted null_reason",
        # Each method's mean rating over participants, and its paired difference from the baseline.
        "methods": "question method baseline mean low high difference difference_low difference_high t df p "
        "p_adjusted participants paired:count ratings method_of_test null_reason",
    }
)


def __getattr__(name: str) -> Schema:
    """The schema of a table, by its name in capitals, such as ``CUTS``."""
    if name.lower() not in EVERY_SCHEMA:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return EVERY_SCHEMA[name.lower()]


def empty_table(name: str) -> pl.DataFrame:
    """The table of that name, with no rows."""
    return pl.DataFrame(schema=EVERY_SCHEMA[name])


def check_table(name: str, table: pl.DataFrame) -> pl.DataFrame:
    """The table, if its columns match the schema; wrong types are an error and are never cast."""
    schema = pl.Schema(EVERY_SCHEMA[name])
    if table.schema == schema:
        return table
    wrong = [f"{column} is {kind}" for column, kind in table.schema.items() if schema.get(column) != kind]
    missing = [f"{column} is missing" for column in schema if column not in table.columns]
    raise RunFolderError(
        f"the table {name!r} does not match its schema: {', '.join(wrong + missing)[:300]}",
        expected=", ".join(f"{column} ({kind})" for column, kind in schema.items()),
        fix="run the command again with --fresh",
    )
