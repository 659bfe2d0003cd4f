"""Counts as tables: occurrence, co-occurrence and samples, with rates, odds ratios and intervals.

Intervals take units as independent of each other. Sentences of one text are not, so that they are too narrow
for small corpora of few texts; the report says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import polars as pl

from evenhand.corpus.counts import Counts
from evenhand.corpus.rule import Counting
from evenhand.corpus.scanner import Sample
from evenhand.corpus.schemas import COOCCURRENCE, OCCURRENCE, SAMPLES
from evenhand.corpus.terms import NONE, TermList
from evenhand.stats.corrections import benjamini_hochberg
from evenhand.stats.intervals import wilson

NO_GROUP = "the group does not occur"
EMPTY_CELL = "a count behind the ratio is 0"
BASELINE = "the baseline itself"

Row = dict[str, str | int | float | None]


class Association(NamedTuple):
    """An estimate with its interval and two-sided p; null where a count behind it is 0."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


def occurrence(corpora: Mapping[str, Counts], terms: TermList, *, level: float = 0.95) -> pl.DataFrame:
    """How often each emotion occurs in each corpus (Table 3 of the affective-bias paper), with rates.

    ``standard_deviation`` is that of the counts over the emotions of a corpus (ddof 1).
    """
    rows: list[Row] = []
    for corpus, counts in corpora.items():
        values = counts.emotions.tolist()
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
        for emotion, count in zip(terms.emotions, values, strict=True):
            rate = wilson(count, counts.units, level=level)
            rows.append(
                {
                    "corpus": corpus,
                    "emotion": emotion,
                    "count": count,
                    "sentences": counts.units,
                    "per_million": _millionth(rate.value),
                    "low": _millionth(rate.low),
                    "high": _millionth(rate.high),
                    "percent": _percent(count, sum(values)),
                    "total": sum(values),
                    "standard_deviation": spread,
                }
            )
    return pl.DataFrame(rows, schema=dict(OCCURRENCE))


def cooccurrence(
    corpora: Mapping[str, Counts], terms: TermList, *, counting: Counting, level: float = 0.95
) -> pl.DataFrame:
    """Emotions with groups (Table 4), ``percent`` within a group, and how strong the link is.

    ``odds_ratio`` compares the odds of the emotion in units that name the group with those in units that name
    no group of the axis (above 1: more with the group); ``pmi`` is the pointwise mutual information in bits.
    The group ``(none)`` is that baseline. ``p_adjusted`` is corrected over all links of the run
    (Benjamini-Hochberg).
    """
    rows = [
        row
        for corpus, counts in corpora.items()
        for axis in range(len(terms.axes))
        for row in _axis_rows(corpus, counts, terms, axis, counting, level)
    ]
    table = pl.DataFrame(rows, schema=dict(COOCCURRENCE))
    adjusted = benjamini_hochberg(table["p"].to_list())
    return table.with_columns(pl.Series("p_adjusted", adjusted, dtype=pl.Float64))


def samples(drawn: Mapping[str, Iterable[tuple[str, Sample]]], terms: TermList, *, size: int) -> pl.DataFrame:
    """The sentences with the lowest priorities of each cell: a sample that order and shards do not change."""
    rows: list[Row] = []
    emotions, groups = list(terms.emotions), len(terms.groups)
    for corpus, found in drawn.items():
        cells: dict[int, list[tuple[int, str, Sample]]] = {}
        for file, sample in found:
            cells.setdefault(sample.cell, []).append((sample.priority, file, sample))
        for cell in sorted(cells):
            emotion, group = divmod(cell, groups + 1)
            named = terms.groups[group] if group < groups else None
            for _, file, sample in sorted(cells[cell])[:size]:
                rows.append(
                    {
                        "corpus": corpus,
                        "emotion": emotions[emotion],
                        "axis": named.axis if named else "",
                        "group": named.name if named else NONE,
                        "file": file,
                        "byte": sample.byte,
                        "text": sample.text,
                    }
                )
    return pl.DataFrame(rows, schema=dict(SAMPLES))


def odds_ratio(with_both: int, group: int, base_both: int, base: int, *, level: float = 0.95) -> Association:
    """Odds of the emotion in the group's units over those in the baseline's, with Woolf's interval.

    >>> round(odds_ratio(20, 100, 10, 100).value, 3)
    2.25
    """
    a, b, c, d = with_both, group - with_both, base_both, base - base_both
    if min(a, b, c, d) <= 0:
        return Association()
    error = math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    half = _quantile(level) * error
    ratio = a * d / (b * c)
    p = math.erfc(abs(math.log(ratio)) / error / math.sqrt(2))
    return Association(ratio, ratio / math.exp(half), ratio * math.exp(half), p)


def mutual_information(
    both: int, emotion: int, group: int, units: int, *, level: float = 0.95
) -> Association:
    """Bits by which units with both exceed what chance would give, with a delta-method interval.

    log2(N both / (emotion group)); 0 at independence. The variance of its natural logarithm under multinomial
    sampling is both (1/both - 1/emotion - 1/group)^2 + (emotion - both)/emotion^2 + (group - both)/group^2
    - 1/N.
    """
    if both <= 0:
        return Association()
    value = math.log2(both * units / (emotion * group))
    shared = both * (1 / both - 1 / emotion - 1 / group) ** 2
    variance = shared + (emotion - both) / emotion**2 + (group - both) / group**2 - 1 / units
    half = _quantile(level) * math.sqrt(max(variance, 0.0)) / math.log(2)
    return Association(value, value - half, value + half)


def _axis_rows(
    corpus: str, counts: Counts, terms: TermList, axis: int, counting: Counting, level: float
) -> Iterable[Row]:
    name, units = terms.axes[axis], counts.units
    base_units = units - int(counts.axes[axis])
    base = [int(e - a) for e, a in zip(counts.emotions, counts.emotion_axes[:, axis], strict=True)]
    for number, group in enumerate(terms.groups):
        if group.axis != name:
            continue
        shown = (counts.distinct if counting == "distinct" else counts.flags)[:, number]
        size = int(counts.groups[number])
        for i, emotion in enumerate(terms.emotions):
            both = int(counts.flags[i, number])
            ratio = odds_ratio(both, size, base[i], base_units, level=level)
            bits = mutual_information(both, int(counts.emotions[i]), size, units, level=level)
            yield {
                **_cell(corpus, emotion, name, group.name, shown.tolist(), i, units),
                "odds_ratio": ratio.value,
                "pmi": bits.value,
                "low": ratio.low,
                "high": ratio.high,
                "pmi_low": bits.low,
                "pmi_high": bits.high,
                "p": ratio.p,
                "sentences": both,
                "group_sentences": size,
                "null_reason": None if ratio.value is not None else NO_GROUP if not size else EMPTY_CELL,
            }
    for i, emotion in enumerate(terms.emotions):
        yield {
            **_cell(corpus, emotion, name, NONE, base, i, units),
            "sentences": base[i],
            "group_sentences": base_units,
            "null_reason": BASELINE,
        }


def _cell(corpus: str, emotion: str, axis: str, group: str, counts: Sequence[int], i: int, units: int) -> Row:
    return {
        "corpus": corpus,
        "emotion": emotion,
        "axis": axis,
        "group": group,
        "count": counts[i],
        "percent": _percent(counts[i], sum(counts)),
        "per_million": 1e6 * counts[i] / units if units else None,
    }


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _millionth(share: float | None) -> float | None:
    return None if share is None else 1e6 * share


def _quantile(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)
