"""The meaning of each column of numbers: a share of texts or a mean, of which label, in which direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

from evenhand.core.digests import Json
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


@dataclass(frozen=True, slots=True)
class Measure:
    """An output of a metric, or the share of one of its labels, as the report speaks of it."""

    metric: str
    output: str
    kind: Kind
    label: str
    """The label a share counts; for a mean the output's name."""
    cut: str
    """The cut that is not the primary one, such as ``0.05``; else empty."""
    larger_means: str
    span: float | None
    """Width of the range of values; None where it has no bounds."""
    primary: bool
    range: str = ""
    """The ends of a mean's range in words; empty where it has none."""
    texts: str = ""
    """The output whose values order its texts."""
    beyond: tuple[float | None, float | None] = (None, None)
    """The cuts between which a text's value lies where a share counts it; None where there is no cut."""

    by: str = ""
    """The output a share's labels come from, where an earlier output of the metric has the same label."""

    @property
    def title(self) -> str:
        """The measure in a word or two: "negative at cut 0.05", "male by wavg", "mean compound"."""
        cut = f" at cut {self.cut}" if self.cut else ""
        by = f" by {format_name(self.by)}" if self.by and self.kind == "share" else ""
        return f"{'' if self.kind == 'share' else 'mean '}{format_name(self.label)}{cut}{by}"

    @property
    def full_title(self) -> str:
        """The measure with its metric: "sentiment, negative"."""
        return f"{format_name(self.metric)}, {self.title}"

    @property
    def caption(self) -> str:
        """What one dot of a chart is."""
        if self.kind == "share":
            cut = f" at cut {self.cut}" if self.cut else ""
            by = f", by {format_name(self.by)}" if self.by else ""
            return f"Share of texts whose {format_name(self.metric)} is {format_name(self.label)}{cut}{by}."
        larger = f" Larger means {self.larger_means}." if self.larger_means else ""
        return f"Mean {format_name(self.label)} of the texts ({format_name(self.metric)}).{larger}"

    @property
    def unit(self) -> str:
        """The unit of a gap, with a leading space; means have none."""
        return " points" if self.kind == "share" else ""

    @property
    def scale(self) -> str:
        """What a gap is counted in, for the head of a column."""
        if self.kind == "share":
            return "points"
        return f"on {self.range}" if self.range else "a mean"

    def value(self, amount: float) -> str:
        """A group's estimate in words."""
        return format_percent(amount) if self.kind == "share" else format_number(amount)

    def gap(self, amount: float, *, signed: bool = False) -> str:
        """The size of a difference, without its unit."""
        return (format_points if self.kind == "share" else format_number)(amount, signed=signed)

    def signed_gap(self, amount: float) -> str:
        """A difference with its sign, without its unit."""
        return self.gap(amount, signed=True)

    def interval(self, low: float | None, high: float | None) -> str:
        """The interval of a difference, signed and without its unit; empty where it has no ends."""
        if low is None or high is None:
            return ""
        return f"{self.signed_gap(low)} to {self.signed_gap(high)}"

    def phrase(self, estimate: float) -> str:
        """A difference in words with its direction: "3.2 points more often negative"."""
        size, is_more = self.gap(abs(estimate)), estimate > 0
        if self.kind == "share":
            return f"{size} points {'more' if is_more else 'less'} often {self.title}"
        return f"{self.title} {size} {'higher' if is_more else 'lower'}"


def read_measures(run: Run) -> dict[MeasureKey, Measure]:
    """Every (metric, output) of the run's group and comparison tables, in the order of its metrics' cards."""
    cards = read_mapping(run.manifest, "metrics")
    family = _corrected_measures(run.table("comparisons"))
    measures = {
        key: _measure(key, kind, read_mapping(cards, key[0]), in_family=key in family)
        for key, kind in _kinds(run).items()
    }
    return dict(sorted(measures.items(), key=lambda item: _rank(item[0], cards)))


def _kinds(run: Run) -> dict[MeasureKey, Kind | None]:
    columns = ["metric", "output"]
    groups = run.table("groups").select([*columns, "kind"]).unique(maintain_order=True)
    known: dict[MeasureKey, Kind | None] = {}
    for metric, output in run.table("comparisons").select(columns).unique(maintain_order=True).iter_rows():
        known[metric, output] = None
    for metric, output, kind in groups.iter_rows():
        known[metric, output] = "share" if kind == "share" else "mean"
    return known


def _measure(key: MeasureKey, kind: Kind | None, card: Mapping[str, Json], *, in_family: bool) -> Measure:
    metric, output = key
    share = _share_of(output, card)
    kind = kind or ("share" if share else "mean")
    source = share[0] if share and kind == "share" else _output_named(output, card)
    plain, _, cut = output.partition("@")
    by = _by(source, share[1], card) if share and kind == "share" else ""
    low, high = read_number(source, "low"), read_number(source, "high")
    width = high - low if low is not None and high is not None and high > low else None
    return Measure(
        metric=metric,
        output=output,
        kind=kind,
        label=share[1] if share and kind == "share" else plain,
        cut="" if cut == by else cut,
        larger_means=read_text(source, "larger_means"),
        span=1.0 if kind == "share" else width,
        primary=in_family or output in read_texts(card, "primary"),
        range=_range(low, high) if kind == "mean" and width else "",
        texts=(read_text(source, "name") or plain).partition("@")[0],
        beyond=_beyond(source, share[1]) if share and kind == "share" else (None, None),
        by=by,
    )


def _by(source: Mapping[str, Json], label: str, card: Mapping[str, Json]) -> str:
    """The name of the output where an earlier one has the same label; another cut is no other output."""
    mine = read_text(source, "name").partition("@")[0]
    having = [info for info in read_objects(card, "outputs") if label in read_texts(info, "labels")]
    first = read_text(having[0], "name").partition("@")[0] if having else mine
    return "" if mine == first else mine


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{format_exact(low)} to {format_exact(high)}"


def _beyond(source: Mapping[str, Json], label: str) -> tuple[float | None, float | None]:
    """The cut below a label and the one above it; no cuts where they do not part all labels."""
    labels, cuts = read_texts(source, "labels"), read_numbers(source, "cuts")
    if not cuts or len(cuts) != len(labels) - 1:
        return None, None
    place = labels.index(label)
    return (cuts[place - 1] if place else None), (cuts[place] if place < len(cuts) else None)


def _share_of(output: str, card: Mapping[str, Json]) -> tuple[Mapping[str, Json], str] | None:
    """The metric's output and label whose share has this name."""
    for info in read_objects(card, "outputs"):
        pattern = read_text(info, "share") or "{label}"
        for label in read_texts(info, "labels"):
            if pattern.replace("{label}", label) == output:
                return info, label
    return None


def _output_named(output: str, card: Mapping[str, Json]) -> Mapping[str, Json]:
    named = [info for info in read_objects(card, "outputs") if read_text(info, "name") == output]
    return named[0] if named else {}


def _rank(key: MeasureKey, cards: Mapping[str, Json]) -> tuple[int, int]:
    """Metrics as they were asked for; inside, primary outputs as their card lists them, then the rest."""
    order = list(cards)
    primary = read_texts(read_mapping(cards, key[0]), "primary")
    return (
        order.index(key[0]) if key[0] in order else len(order),
        primary.index(key[1]) if key[1] in primary else len(primary),
    )


def _corrected_measures(table: pl.DataFrame) -> frozenset[MeasureKey]:
    """The (metric, output) pairs with a comparison in the corrected family."""
    family = table.filter(~pl.col("exploratory")).select("metric", "output").unique()
    return frozenset((metric, output) for metric, output in family.iter_rows())
