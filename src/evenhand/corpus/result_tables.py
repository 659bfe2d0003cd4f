"""Counts as tables: occurrence, co-occurrence, contrasts between corpora, and samples."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from evenhand.corpus.scanner import BlockCounts
from evenhand.corpus.term_lists import NONE, TermList
from evenhand.corpus.term_matcher import I64
from evenhand.stats.corrections import benjamini_hochberg
from evenhand.stats.intervals import wilson_interval
from evenhand.stats.quantiles import t_quantile, t_two_sided
from evenhand.store.schemas import CONTRASTS, COOCCURRENCE, OCCURRENCE, SAMPLES

Floats = npt.NDArray[np.float64]
Column = npt.NDArray[np.int64]
"""A count for each block of documents."""

EMPTY_CELL = "a count behind the ratio is 0"
FEW_DOCUMENTS = "too few documents for an interval"
NO_SPREAD = "the documents do not differ"


class LogRatio(NamedTuple):
    """The natural log of a ratio, each block's contribution to its error, and its degrees of freedom."""

    log: float
    influence: Floats
    blocks: int
    """Non-empty blocks."""
    df: float

    @property
    def error(self) -> float | None:
        """The standard error; null if there are too few documents to estimate it."""
        if self.df < 1 or self.blocks < 2:
            return None
        return math.sqrt(self.blocks / (self.blocks - 1) * float(self.influence @ self.influence))

    def minus(self, other: LogRatio) -> LogRatio:
        """The difference of two log ratios; a document that contributes to both counts once."""
        return LogRatio(
            self.log - other.log,
            self.influence - other.influence,
            max(self.blocks, other.blocks),
            min(self.df, other.df),
        )


class AssociationEstimate(NamedTuple):
    """An estimate with its interval and two-sided p; ``reason`` explains a null."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    reason: str | None = None


def log_odds_ratio(both: Column, group: Column, base_both: Column, base: Column) -> LogRatio | None:
    """Log odds of the emotion in the group's units over those in the baseline's; null if a count is 0."""
    parts = (both, group - both, base_both, base - base_both)
    return _log_ratio(*parts, units=group + base, sides=(group, base))


def log_mutual_information(both: Column, emotion: Column, group: Column, units: Column) -> LogRatio | None:
    """Log of the observed co-occurrence over that expected by chance: N both / (emotion group)."""
    return _log_ratio(both, emotion, group, units, units=units, sides=(group, units))


def _log_ratio(
    first: Column, second: Column, third: Column, last: Column, *, units: Column, sides: Iterable[Column]
) -> LogRatio | None:
    """Log of first x last / (second x third); null if one of them is 0."""
    a, b, c, d = (int(part.sum()) for part in (first, second, third, last))
    if min(a, b, c, d) <= 0:
        return None
    influence = first / a - second / b - third / c + last / d
    log = math.log(a) + math.log(d) - math.log(b) - math.log(c)
    return LogRatio(log, influence, int(np.count_nonzero(units)), min(map(_kish, sides)) - 1)


def log_rate(events: Column, units: Column) -> LogRatio | None:
    """Log of events over units."""
    n_events, n = int(events.sum()), int(units.sum())
    if min(n_events, n) <= 0:
        return None
    influence = events / n_events - units / n
    return LogRatio(math.log(n_events / n), influence, int(np.count_nonzero(units)), _kish(units) - 1)


def to_ratio(link: LogRatio | None, *, level: float = 0.95) -> AssociationEstimate:
    """The link as a ratio: 1 is no link, above 1 is a positive one."""
    if link is None:
        return AssociationEstimate(reason=EMPTY_CELL)
    value, error = math.exp(link.log), link.error
    if not error:
        return AssociationEstimate(value, reason=FEW_DOCUMENTS if error is None else NO_SPREAD)
    factor = math.exp(min(t_quantile((1 + level) / 2, link.df) * error, 700.0))
    return AssociationEstimate(value, value / factor, value * factor, t_two_sided(link.log / error, link.df))


def to_bits(link: LogRatio | None, *, level: float = 0.95) -> AssociationEstimate:
    """The link in bits: 0 is no link, above 0 is a positive one."""
    if link is None:
        return AssociationEstimate(reason=EMPTY_CELL)
    value, error = link.log / math.log(2), link.error
    if not error:
        return AssociationEstimate(value, reason=FEW_DOCUMENTS if error is None else NO_SPREAD)
    half = t_quantile((1 + level) / 2, link.df) * error / math.log(2)
    return AssociationEstimate(value, value - half, value + half, t_two_sided(link.log / error, link.df))


def share_estimate(
    events: Column, units: Column, *, documents: int, level: float = 0.95
) -> AssociationEstimate:
    """The share of units with an event, with Wilson's interval at the effective number of units.

    At a share of 0 or 1 the data do not show how similar the units of a document are: each document then
    counts as one independent observation, the worst case.
    """
    n, n_events = int(units.sum()), int(events.sum())
    if not n:
        return AssociationEstimate(reason="no units")
    value = n_events / n
    blocks, df = int(np.count_nonzero(units)), _kish(units) - 1
    if blocks < 2 or df < 1:
        return AssociationEstimate(value, reason=FEW_DOCUMENTS)
    effective = min(float(n), _count_distinct(documents, blocks, units.size))
    if 0 < n_events < n:
        influence = (events - value * units) / n
        variance = blocks / (blocks - 1) * float(influence @ influence)
        effective = min(float(n), value * (1 - value) / variance) if variance else float(n)
    low, high = map(float, wilson_interval(value, effective, t_quantile((1 + level) / 2, df)))
    return AssociationEstimate(value, low, high)


def _count_distinct(documents: int, filled: int, blocks: int) -> float:
    """The approximate number of distinct documents, from the empty blocks; all if no block is empty."""
    if filled >= blocks:
        return float(documents)
    return min(float(documents), blocks * math.log(blocks / (blocks - filled)))


def _kish(sizes: Column) -> float:
    """The number of equal-sized blocks that carry as much information (Kish's effective size)."""
    weights = sizes.astype(np.float64)
    total = float(weights @ weights)
    return float(weights.sum()) ** 2 / total if total else 0.0


NO_GROUP = "the group does not occur"
BASELINE = "the baseline itself"

_RATE = ("per_million", "per_million_low", "per_million_high")

Row = dict[str, str | int | float | None]


CorpusCounts = tuple[BlockCounts, int]
"""The counts of a corpus by block of documents, and the number of documents."""


def occurrence_table(
    corpora: Mapping[str, CorpusCounts], terms: TermList, *, level: float = 0.95
) -> pl.DataFrame:
    """How often each emotion occurs in each corpus (Table 3 of the affective-bias paper), with rates.

    ``standard_deviation`` is taken over the emotion counts of a corpus (ddof 1).
    """
    rows: list[tuple[object, ...]] = []
    for corpus, (blocks, documents) in corpora.items():
        values, units = blocks.emotions.sum(axis=0).tolist(), int(blocks.units.sum())
        total, spread = sum(values), float(np.std(values, ddof=1)) if len(values) > 1 else None
        for i, (emotion, count) in enumerate(zip(terms.emotions, values, strict=True)):
            rate = share_estimate(blocks.emotions[:, i], blocks.units, documents=documents, level=level)
            start = (corpus, emotion, count, units, *rate[:3], None)
            rows.append((*start, total, spread, documents, rate.reason))
    table = pl.DataFrame(rows, schema=dict(OCCURRENCE), orient="row")
    return _add_percents(table, ("per_million", "low", "high"), "corpus")


def cooccurrence_table(
    corpora: Mapping[str, CorpusCounts], terms: TermList, *, is_distinct: bool, level: float = 0.95
) -> pl.DataFrame:
    """Emotions with groups (Table 4), ``percent`` within a group, and the strength of each link.

    ``odds_ratio`` compares the odds of the emotion in units that name the group with those in units that name
    no group of the axis (above 1: more with the group); ``pmi`` is the pointwise mutual information in bits.
    The group ``(none)`` is that baseline. ``p_adjusted`` is corrected over all links of the run
    (Benjamini-Hochberg).
    """
    rows = [
        row
        for corpus, counts in corpora.items()
        for axis in range(len(terms.axes))
        for row in _axis_rows(corpus, counts, terms, axis, is_distinct, level)
    ]
    table = pl.DataFrame(rows, schema=dict(COOCCURRENCE))
    return _add_adjusted_p(_add_percents(table, _RATE, "corpus", "axis", "group"))


def contrast_table(
    corpora: Mapping[str, CorpusCounts], terms: TermList, *, level: float = 0.95
) -> pl.DataFrame:
    """Each corpus against the first: ratios of rates (no group) and of odds ratios (above 1: higher).

    Documents in both corpora fall into the same block, so they are not treated as independent.
    ``p_adjusted`` is corrected over all contrasts of the run (Benjamini-Hochberg).
    """
    (baseline, (first, _)), *others = corpora.items()
    columns = [name for name in CONTRASTS if name != "p_adjusted"]
    rows: list[Row] = []
    for corpus, (other, _) in others:
        pair = (other, first)
        for i, emotion in enumerate(terms.emotions):
            links = {("", ""): [log_rate(part.emotions[:, i], part.units) for part in pair]}
            for number, group in enumerate(terms.groups):
                axis = terms.axes.index(group.axis)
                links[group.axis, group.name] = [_odds_ratio(part, i, number, axis) for part in pair]
            for place, (one, base) in links.items():
                ratio = to_ratio(one.minus(base) if one and base else None, level=level)
                rows.append(dict(zip(columns, (corpus, baseline, emotion, *place, *ratio), strict=True)))
    return _add_adjusted_p(pl.DataFrame(rows, schema=dict(CONTRASTS)))


def sample_table(
    drawn: Mapping[str, pl.DataFrame], terms: TermList, row_files: Collection[str]
) -> pl.DataFrame:
    """The sentences with the lowest priorities in each cell: a sample independent of order and shards.

    For ``row_files`` a place is a row number, not a byte.
    """
    groups = [*((group.axis, group.name) for group in terms.groups), ("", NONE)]
    cells = [(emotion, *group) for emotion in terms.emotions for group in groups]
    names = pl.DataFrame(cells, schema=["emotion", "axis", "group"], orient="row")
    names = names.with_columns(cell=pl.int_range(pl.len()))
    table = pl.concat(samples.with_columns(corpus=pl.lit(corpus)) for corpus, samples in drawn.items())
    is_row = pl.col("file").is_in(list(row_files))
    table = table.join(names, on="cell", maintain_order="left").with_columns(
        byte=pl.when(~is_row).then("place"), row=pl.when(is_row).then("place")
    )
    return table.select(list(SAMPLES)).cast(pl.Schema(SAMPLES))


def _axis_rows(
    corpus: str, counts: CorpusCounts, terms: TermList, axis: int, is_distinct: bool, level: float
) -> Iterable[Row]:
    blocks, documents = counts
    name, units = terms.axes[axis], blocks.units
    members = [(number, group.name) for number, group in enumerate(terms.groups) if group.axis == name]
    for number, group in [*members, (-1, NONE)]:
        is_base = group == NONE
        both, size = blocks.flags[:, :, number], blocks.groups[:, number]
        if is_base:
            both, size = _baseline(blocks, axis)
        shown = blocks.distinct[:, :, number] if is_distinct and not is_base else both
        for i, emotion in enumerate(terms.emotions):
            if shown is not both and shown[:, i].any():
                # There may be more distinct terms than units, so their count is not a share.
                rate = to_ratio(log_rate(shown[:, i], units), level=level)
            else:
                rate = share_estimate(shown[:, i], units, documents=documents, level=level)
            ratio, bits = AssociationEstimate(reason=BASELINE), AssociationEstimate()
            if not is_base:
                ratio = to_ratio(_odds_ratio(blocks, i, number, axis), level=level)
                link = log_mutual_information(both[:, i], blocks.emotions[:, i], size, units)
                bits = to_bits(link, level=level)
            yield {
                "corpus": corpus,
                "emotion": emotion,
                "axis": name,
                "group": group,
                "count": int(shown[:, i].sum()),
                **dict(zip(_RATE, rate[:3], strict=True)),
                **dict(zip(("odds_ratio", "low", "high", "p"), ratio[:4], strict=True)),
                **dict(zip(("pmi", "pmi_low", "pmi_high"), bits[:3], strict=True)),
                "sentences": int(both[:, i].sum()),
                "group_sentences": int(size.sum()),
                "n_clusters": documents,
                "null_reason": ratio.reason if is_base or size.any() else NO_GROUP,
            }


def _baseline(blocks: BlockCounts, axis: int) -> tuple[I64, I64]:
    """Units that name no group of the axis, by emotion and in total."""
    return blocks.emotions - blocks.emotion_axes[:, :, axis], blocks.units - blocks.axes[:, axis]


def _odds_ratio(blocks: BlockCounts, emotion: int, group: int, axis: int) -> LogRatio | None:
    base, base_units = _baseline(blocks, axis)
    return log_odds_ratio(
        blocks.flags[:, emotion, group], blocks.groups[:, group], base[:, emotion], base_units
    )


def _add_adjusted_p(table: pl.DataFrame) -> pl.DataFrame:
    adjusted = benjamini_hochberg(table["p"].to_list())
    return table.with_columns(pl.Series("p_adjusted", adjusted, dtype=pl.Float64))


def _add_percents(table: pl.DataFrame, rates: Sequence[str], *keys: str) -> pl.DataFrame:
    """The table with each count's share of the total of its keys, and with rates per million."""
    total = pl.col("count").sum().over(keys)
    percent = pl.when(total > 0).then(100 * pl.col("count") / total)
    return table.with_columns(pl.col(rates) * 1e6, percent=percent)
