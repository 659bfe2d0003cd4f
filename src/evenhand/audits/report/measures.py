"""The meaning of each column of numbers: a share of texts or a mean, of which label, in which direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from evenhand.core.digests import Json
from evenhand.report.document import Cell
from evenhand.report.manifest import (
    read_mapping,
    read_number,
    read_numbers,
    read_objects,
    read_text,
    read_texts,
)
from evenhand.report.wording import format_exact, format_name, format_number, format_percent, format_points
from evenhand.store.run import Run

Kind = Literal["share", "mean"]
MeasureKey = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """An output of a metric, or the share of one of its labels, as the report speaks of it."""

    metric: str
    output: str
    kind: Kind
    label: str
    """The label a share counts; for a mean the output's name."""
    title: str
    """The measure in a word or two: "negative at threshold 0.05", "male by wavg", "mean compound"."""
    full_title: str
    """The measure with its metric: "sentiment, negative"."""
    caption: str = ""
    """What one dot of a chart is."""
    cut: str = ""
    """The cut that is not the primary one, such as ``0.05``; else empty."""
    unit: str = ""
    """The unit of a gap, with a leading space; means have none."""
    scale: str = ""
    """What a gap is counted in: points, or the range of a mean; empty where it has no range."""
    span: float | None = None
    """Width of the range of values; None where it has no bounds."""
    primary: bool
    texts: str = ""
    """The output whose values order its texts."""
    beyond: tuple[float | None, float | None] = (None, None)
    """The cuts between which a text's value lies where a share counts it; None where there is no cut."""

    def value(self, amount: float) -> str:
        """A group's estimate in words."""
        return format_percent(amount) if self.kind == "share" else format_number(amount)

    def gap(self, amount: float | None, *, signed: bool = False) -> str:
        """The size of a difference, without its unit; empty where there is none."""
        return (format_points if self.kind == "share" else format_number)(amount, signed=signed)

    def cell(self, amount: float | None, *, signed: bool = True, **look: Any) -> Cell:
        """A difference in a table; one with a sign is the number that its row is about."""
        size = self.gap(amount, signed=signed)
        return Cell(size, flag=self.unit if size else "", is_strong=signed, **look)

    def interval(self, low: float | None, high: float | None) -> str:
        """The interval of a difference, signed and without its unit; empty where it has no ends."""
        ends = [self.gap(end, signed=True) for end in (low, high)]
        return " to ".join(ends) if all(ends) else ""

    def phrase(self, estimate: float) -> str:
        """A difference in words with its direction: "3.2 points more often negative"."""
        size, is_more = self.gap(abs(estimate)), estimate > 0
        if self.kind == "share":
            return f"{size} points {'more' if is_more else 'less'} often {self.title}"
        return f"{self.title} {size} {'higher' if is_more else 'lower'}"


def read_measures(run: Run) -> dict[MeasureKey, Measure]:
    """Every (metric, output) of the run's group and comparison tables.

    Metrics are in the order of their cards; inside, primary outputs as their card lists them, then the rest.
    """
    cards = read_mapping(run.manifest, "metrics")
    compared = run.table("comparisons").unique(["metric", "output", "exploratory"], maintain_order=True)
    family = frozenset(compared.filter(~pl.col("exploratory")).select("metric", "output").iter_rows())
    kinds: dict[MeasureKey, Kind | None] = dict.fromkeys(compared.select("metric", "output").iter_rows())
    groups = run.table("groups").select("metric", "output", "kind").unique(maintain_order=True)
    for metric, output, kind in groups.iter_rows():
        kinds[metric, output] = "share" if kind == "share" else "mean"

    metrics = {metric: place for place, metric in enumerate(cards)}
    primary = {
        (metric, output): place
        for metric in cards
        for place, output in enumerate(dict.fromkeys(read_texts(cards, metric, "primary")))
    }
    order = sorted(kinds, key=lambda key: (metrics.get(key[0], len(metrics)), primary.get(key, len(primary))))
    return {
        key: _build_measure(key, kinds[key], read_mapping(cards, key[0]), in_family=key in family)
        for key in order
    }


def _build_measure(
    key: MeasureKey, kind: Kind | None, card: Mapping[str, Json], *, in_family: bool
) -> Measure:
    metric, output = key
    outputs = read_objects(card, "outputs")
    # The output and label whose share has this name.
    shares = [
        (info, label)
        for info in outputs
        for label in read_texts(info, "labels")
        if (read_text(info, "share") or "{label}").replace("{label}", label) == output
    ]
    is_share = kind == "share" or bool(kind is None and shares)
    plain, _, cut = output.partition("@")
    label, by = plain, ""
    beyond: tuple[float | None, float | None] = (None, None)
    source = next((info for info in outputs if read_text(info, "name") == output), {})
    if shares and is_share:
        source, label = shares[0]
        first = next(info for info in outputs if label in read_texts(info, "labels"))
        names = [read_text(info, "name").partition("@")[0] for info in (first, source)]
        # The output of the labels, where an earlier one has the same label; another cut is no other output.
        by = "" if names[0] == names[1] else names[1]
        labels, cuts = read_texts(source, "labels"), read_numbers(source, "cuts")
        # Cuts that do not part all labels say nothing of this one.
        if cuts and len(cuts) == len(labels) - 1:
            beyond = ([None, *cuts][labels.index(label)], [*cuts, None][labels.index(label)])
    low, high = read_number(source, "low"), read_number(source, "high")
    ends = (low, high) if low is not None and high is not None and high > low else None
    cut = "" if cut == by else cut
    name, words = format_name(metric), format_name(label) + (f" at threshold {cut}" if cut else "")
    if is_share:
        title = words + (f" by {format_name(by)}" if by else "")
        caption = f"Share of texts whose {name} is {words}{f', by {format_name(by)}' if by else ''}."
    else:
        title, larger = f"mean {words}", read_text(source, "larger_means")
        caption = f"Mean {format_name(label)} of the texts ({name})."
        caption += f" Larger means {larger}." if larger else ""
    return Measure(
        metric=metric,
        output=output,
        kind="share" if is_share else "mean",
        label=label,
        title=title,
        full_title=f"{name}, {title}",
        caption=caption,
        cut=cut,
        unit=" points" if is_share else "",
        scale="points" if is_share else f"on {' to '.join(map(format_exact, ends))}" if ends else "",
        span=1.0 if is_share else ends[1] - ends[0] if ends else None,
        primary=in_family or output in read_texts(card, "primary"),
        texts=(read_text(source, "name") or plain).partition("@")[0],
        beyond=beyond,
    )
