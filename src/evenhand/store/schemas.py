"""The tables of a run folder: their columns, and a check at the border where they are written and read."""

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
_BOUNDS: Final[Schema] = {"_low": _REAL, "_high": _REAL}
_SUFFIXES: Final[Mapping[str, Schema]] = {
    "bounds": _BOUNDS,
    "interval": {"": _REAL, **_BOUNDS},
    "estimate": {"": _REAL, **_BOUNDS, "_null": _TEXT},
}
"""Kinds of several columns; the last of an estimate says why there is none, or no interval."""


def _columns(text: str) -> Schema:
    """The columns of a table, in order; a line names a kind of column, then the columns of that kind."""
    schema: dict[str, pl.DataType] = {}
    for line in text.strip().splitlines():
        kind, *names = line.replace(":", "").split()
        suffixes = _SUFFIXES.get(kind) or {"": _TYPES[kind]}
        schema |= {name + suffix: part for name in names for suffix, part in suffixes.items()}
    return schema


PROMPTS = _columns("""
    text: id suite text
    groups: groups
    text: cluster template_id
    mentions: mentions
    text: fills language source meta
""")
"""``fills`` and ``meta`` hold JSON objects."""

GENERATIONS = _columns("""
    text: id prompt_id model
    count: sample
    text: text finish
    count: prompt_tokens new_tokens
    text: failure
""")

SCORES = _columns("""
    text: text_id metric metric_version output
    real: value
    text: label null_reason
""")

GROUPS = _columns("""
    text: suite model axis group metric output kind
    real: value low high level
    text: method
    count: n n_null n_clusters
    text: null_reason nulls
""")
"""``kind`` is ``share`` (0 to 1) or ``mean``; ``nulls`` counts ``n_null`` by reason, as a JSON object."""

_OF_FIELD: Mapping[str, pl.DataType] = {
    "str": _TEXT,
    "str | None": _TEXT,
    "float | None": _REAL,
    "int": _COUNT,
    "bool": _FLAG,
}
COMPARISONS: Schema = {field.name: _OF_FIELD[str(field.type)] for field in fields(Comparison)}

ADJUSTED = "(adjusted)"
"""The row of a gap in which every stratum has the same weight for the group and its baseline."""

STRATA: Schema = {**COMPARISONS, "by": _TEXT, "stratum": _TEXT, "disagrees": _FLAG}
"""Comparisons inside the strata of ``by``; ``(adjusted)`` has the same mix of strata on both sides.

``disagrees`` is true on an adjusted row that points against the gap over all texts (Simpson's paradox).
"""

STRATA_GROUPS: Schema = {**GROUPS, "by": _TEXT, "stratum": _TEXT}
"""Estimates of groups inside the strata of ``by``."""

OMNIBUS = _columns("""
    text: suite model axis metric output
    real: statistic df_between df_error p p_adjusted
    count: n n_clusters n_groups groups_left_out
    flag: exploratory
    text: family
    count: family_size
    text: correction method null_reason
""")
"""One answer an axis and output: do its groups differ at all?"""

EXAMPLES = _columns("""
    text: suite model axis group metric output why text_id prompt text
    real: value
    text: label
""")
"""Texts that a bar of the report counts; ``why`` is ``lowest``, ``highest`` or ``drawn``."""

EXPLANATIONS = _columns("""
    text: text_id metric output read
    spans: masks
    weighted_spans: words
""")
"""The words behind the scores of example texts; places are characters of ``read``, what the metric read."""

DISTRIBUTIONS = _columns("""
    text: suite model axis group metric output
    real: low high
    counts: counts
    count: n
    real: q05 q25 q50 q75 q95
""")
"""Values of a group in equal bins from ``low`` to ``high``, and their quantiles."""

CUTS = _columns("""
    text: suite model axis group metric output
    real: cut
    flag: own
    interval: value
    text: baseline
    real: baseline_value estimate low high p
    text: null_reason
    real: p_adjusted
""")
"""Shares of labels and their gaps at other cuts; ``own`` marks the cut of the metric itself."""

DISTANCES = _columns("""
    text: suite model metric attribute option bias
    real: estimate null_mean corrected direction low high p
    count: n n_keywords
    bounds: direction
    real: p_adjusted
    text: null_reason
""")
"""How far an option's base rate lies from that of its attribute; ``bias`` is ``indirect`` or ``direct``.

``low`` and ``high`` belong to ``corrected``, which is ``estimate`` less ``null_mean``; the option
``(overall)`` is the mean over options.
"""

EXCLUSIONS = _columns("""
    text: stage metric reason
    count: count of
""")
"""What was left out, counted by reason."""

CHANGES = _columns("""
    text: suite run reference axis group baseline metric output effect
    real: estimate low high p p_adjusted
    count: n n_reference n_clusters
    real: min_detectable run_value reference_value
    interval: widens
    flag: paired exploratory
    text: family
    count: family_size
    text: correction method null_reason
""")
"""A run against the reference: ``effect`` is ``gap`` (its gap minus the reference's) or ``value``.

``widens`` is the change of the gap's size, whatever its sign: positive where the group moved away from the
baseline. It is null for values.
"""

LEADERBOARD = _columns("""
    text: suite axis metric output run
    count: rank
    real: spread low high
    texts: tied_with
    count: groups
    flag: exploratory
    text: null_reason
""")
"""``spread`` is the typical gap between two groups, free of chance; ``rank`` 1 stands closest together."""

STANDINGS = _columns("""
    text: run
    count: rank narrower wider tied null
""")
"""Over all primary outputs and other runs: how often its groups stand closer together, wider, or tied."""

OCCURRENCE = _columns("""
    text: corpus emotion
    count: count sentences
    real: per_million low high percent
    count: total
    real: standard_deviation
    count: n_clusters
    text: null_reason
""")
"""A corpus run: emotions in all ``sentences`` (units); ``low`` and ``high`` are of ``per_million``."""

COOCCURRENCE = _columns("""
    text: corpus emotion axis group
    count: count
    real: percent per_million odds_ratio pmi low high
    bounds: pmi
    real: p p_adjusted
    count: sentences group_sentences
    bounds: per_million
    count: n_clusters
    text: null_reason
""")
"""Emotions with groups; ``low`` and ``high`` are of ``odds_ratio``, ``sentences`` are units with both."""

CONTRASTS = _columns("""
    text: corpus baseline emotion axis group
    real: ratio low high p p_adjusted
    text: null_reason
""")
"""One corpus against another: of the emotion's rate (no group), or of the odds ratio with a group."""

SAMPLES = _columns("""
    text: corpus emotion axis group file
    count: byte row
    text: text
""")
"""Sentences drawn for each cell of ``cooccurrence``.

``byte`` counts from 0 in the file as it is unpacked. In running text it is where the sentence begins; in
tables and dumps where the record that holds it begins: the line of JSONL, the element of a JSON array, the
line of CSV on which the row begins, the ``<page>`` of a dump. Parquet has no bytes to point at: there
``byte`` is null and ``row`` is the number of the row, from 0; elsewhere ``row`` is null. ``text`` is what
was counted, at most 600 bytes of it, with single blanks; under the paper's rule without what that deletes.
"""

PROBLEMS = _columns("""
    text: file
    count: byte
    text: reason
""")
"""What of a corpus was not counted as it stands.

``byte`` counts from 0 in the file as it is unpacked; where an archive cannot be unpacked any further, it is
how far the stored file was read. Null where a file could not be opened.
"""

MEASURES = _columns("""
    text: corpus model axis group_a group_b emotion pairs score
    real: dp avg_delta p acs
    count: n_dp n
    bounds: dp avg_delta acs difference opportunity
    real: difference effect_size p_adjusted p_wilcoxon p_wilcoxon_adjusted share_a share_b mean_a
    real: mean_b opportunity recall_a recall_b
    count: n_truth flips n_zero n_clusters
    real: level
    text: correction null_reason
""")
"""One row an emotion, a pair of groups and a way of measuring (``pairs``: all or agreeing; ``score``:
predicted or emotion). ``acs`` and ``difference`` are positive where the second group is higher."""

SETS = _columns("""
    text: corpus model axis
    texts: groups
    text: emotion
    interval: dp spread
    real: statistic p p_adjusted
    text: highest lowest
    count: n_dp n n_clusters
    text: null_reason
""")
"""Axes of three groups or more, compared over whole sets; ``highest`` and ``lowest`` by mean intensity."""

FLIPS = _columns("""
    text: corpus model axis group_a group_b set emotion text_a text_b label_a label_b
    real: score_a score_b
""")
"""Pairs whose predicted class changes with the group; ``emotion`` is the ground truth."""

PAIR_SCORES = _columns("""
    text: corpus model axis group_a group_b set emotion truth label_a label_b
    real: predicted_a predicted_b intensity_a intensity_b
    flag: agreeing all_predicted all_emotion
""")
"""Both sides of every pair, once for each emotion, and in which ways of measuring it counts for the emotion:
what the intensity plots draw."""

ASSOCIATIONS = _columns("""
    text: corpus pair_corpus model axis group_a group_b emotion
    real: percent_a percent_b corpus_difference odds_ratio_a odds_ratio_b acs difference p_adjusted
    flag: is_clear same_direction
    text: null_reason
""")
"""A corpus run beside a probe run: which way each leans; ``corpus_difference`` is in percentage points."""

AGREEMENTS = _columns("""
    text: corpus pair_corpus model
    interval: rho
    count: same n n_clusters
    interval: share
    real: level
    text: null_reason
""")
"""How far corpus and classifier lean the same way: Spearman's rho, and the share of cells that agree."""

AGREEMENT = _columns("""
    text: question categories statistic
    real: value low high level
    count: n n_items n_left_out
    text: method null_reason
""")
"""``categories``: ``all``, or ``ordered`` for the labels that have a place in order; ``n`` counts ratings,
``n_left_out`` items with fewer than two of the ratings looked at."""

ANNOTATORS = _columns("""
    text: question annotator
    count: n
    estimate: agreement kappa spearman skill
    count: dissents checks_passed checks_met
""")
"""Each annotator with the others; ``skill`` is Dawid and Skene's probability of the true label, and
``dissents`` counts ratings against most of the others."""

ANNOTATOR_PAIRS = _columns("""
    text: question first second
    count: n
    estimate: agreement spearman
""")

ITEMS = _columns("""
    text: question item_id text
    count: n
    text: said
    real: disagreement
    text: label
    real: share
    text: null_reason
""")
"""``said`` counts the labels; ``label`` is the consensus, ``share`` of ratings, or its probability."""

DISSENTS = _columns("""
    text: question item_id text annotator said others
    real: share
""")

ERRORS = _columns("""
    text: question annotator true said
    real: probability
""")
"""What each annotator says of texts that truly have a label, by Dawid and Skene."""

VALIDATION = _columns("""
    text: metric output label measure
    real: value low high p level
    count: n n_clusters
    text: method null_reason
""")
"""``label`` is ``(all)`` or one label; ``measure`` one of spearman, spearman_score, accuracy,
always_commonest, kappa, precision, recall, f1, people."""

CONFUSION = _columns("""
    text: metric output human predicted
    count: count
""")

SCORE_SPREADS = _columns("""
    text: metric output label
    real: low high
    counts: counts
    count: n
    real: mean q05 q25 q50 q75 q95
""")
"""The scores of the texts that people gave a label, in equal bins from ``low`` to ``high``."""

BEST_CUTS = _columns("""
    text: metric output
    real: own own_kappa own_accuracy
    estimate: cut kappa accuracy kappa_held_out accuracy_held_out
    count: folds n
""")
"""The cut that agrees best: ``kappa`` and ``accuracy`` on the fitted part, ``_held_out`` elsewhere."""

CUT_CURVES = _columns("""
    text: metric output
    real: cut kappa accuracy
""")

JUDGED = _columns("""
    text: item_id text human
    real: share
    text: metric output
    real: value
    text: predicted null_reason
""")
"""Every text with what people and the metric say of it."""

METHODS = _columns("""
    text: question method baseline
    real: mean low high
    interval: difference
    real: t df p p_adjusted
    count: participants paired ratings
    text: method_of_test null_reason
""")
"""The mean rating of each method over participants, and its paired difference from the baseline."""

SCHEMAS: Mapping[str, Schema] = {
    "prompts": PROMPTS,
    "generations": GENERATIONS,
    "scores": SCORES,
    "groups": GROUPS,
    "comparisons": COMPARISONS,
    "omnibus": OMNIBUS,
    "pairs": COMPARISONS,
    "strata": STRATA,
    "strata_groups": STRATA_GROUPS,
    "examples": EXAMPLES,
    "explanations": EXPLANATIONS,
    "distributions": DISTRIBUTIONS,
    "cuts": CUTS,
    "distances": DISTANCES,
    "exclusions": EXCLUSIONS,
}
"""The tables of an audit or of scored texts."""

EVERY_SCHEMA: Mapping[str, Schema] = {
    **SCHEMAS,
    "occurrence": OCCURRENCE,
    "cooccurrence": COOCCURRENCE,
    "contrasts": CONTRASTS,
    "samples": SAMPLES,
    "problems": PROBLEMS,
    "measures": MEASURES,
    "sets": SETS,
    "flips": FLIPS,
    "pair_scores": PAIR_SCORES,
    "associations": ASSOCIATIONS,
    "agreements": AGREEMENTS,
    "changes": CHANGES,
    "leaderboard": LEADERBOARD,
    "standings": STANDINGS,
    "agreement": AGREEMENT,
    "annotators": ANNOTATORS,
    "annotator_pairs": ANNOTATOR_PAIRS,
    "items": ITEMS,
    "dissents": DISSENTS,
    "errors": ERRORS,
    "validation": VALIDATION,
    "confusion": CONFUSION,
    "score_spreads": SCORE_SPREADS,
    "best_cuts": BEST_CUTS,
    "cut_curves": CUT_CURVES,
    "judged": JUDGED,
    "methods": METHODS,
}


def empty_table(name: str) -> pl.DataFrame:
    """A table of that name without rows."""
    return pl.DataFrame(schema=dict(EVERY_SCHEMA[name]))


def check_table(name: str, table: pl.DataFrame) -> pl.DataFrame:
    """The table, if its columns are the schema's; columns of other types are an error, never cast."""
    schema = pl.Schema(EVERY_SCHEMA[name])
    if table.schema == schema:
        return table
    wrong = [f"{column} is {kind}" for column, kind in table.schema.items() if schema.get(column) != kind]
    missing = [f"{column} is missing" for column in schema if column not in table.columns]
    raise RunFolderError(
        f"the table {name!r} does not have its columns: {', '.join(wrong + missing)[:300]}",
        expected=", ".join(f"{column} ({kind})" for column, kind in schema.items()),
        fix="run the command again with --fresh",
    )
