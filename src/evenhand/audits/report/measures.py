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
        by = f" by {format_name(self.by)}" if self.by and self.kind == "share" else ""
        return f"{'' if self.kind == 'share' else 'mean '}{format_name(self.label)}{self._at_cut}{by}"

    @property
    def full_title(self) -> str:
        """The measure with its metric: "sentiment, negative"."""
        return f"{format_name(self.metric)}, {self.title}"

    @property
    def caption(self) -> str:
        """What one dot of a chart is."""
        metric, label = format_name(self.metric), format_name(self.label)
        if self.kind == "share":
            by = f", by {format_name(self.by)}" if self.by else ""
            return f"Share of texts whose {metric} is {label}{self._at_cut}{by}."
        larger = f" Larger means {self.larger_means}." if self.larger_means else ""
        return f"Mean {label} of the texts ({metric}).{larger}"

    @property
    def unit(self) -> str:
        """The unit of a gap, with a leading space; means have none."""
        return " points" if self.kind == "share" else ""

    @property
    def scale(self) -> str:
        """What a gap is counted in, for the head of a column."""
        return self.unit.strip() or (f"on {self.range}" if self.range else "a mean")

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

    @property
    def _at_cut(self) -> str:
        return f" at cut {self.cut}" if self.cut else ""


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

    def rank(key: MeasureKey) -> list[int]:
        lists = (key[0], list(cards)), (key[1], read_texts(cards, key[0], "primary"))
        return [names.index(name) if name in names else len(names) for name, names in lists]

    return {
        key: _build_measure(key, kinds[key], read_mapping(cards, key[0]), in_family=key in family)
        for key in sorted(kinds, key=rank)
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
    kind = kind or ("share" if shares else "mean")
    plain, _, cut = output.partition("@")
    label, by = plain, ""
    beyond: tuple[float | None, float | None] = (None, None)
    named = [info for info in outputs if read_text(info, "name") == output]
    source: Mapping[str, Json] = named[0] if named else {}
    if shares and kind == "share":
        source, label = shares[0]
        first = next(info for info in outputs if label in read_texts(info, "labels"))
        names = [read_text(info, "name").partition("@")[0] for info in (first, source)]
        # Another cut is no other output.
        by = "" if names[0] == names[1] else names[1]
        beyond = _read_cuts(source, label)
    low, high = read_number(source, "low"), read_number(source, "high")
    ends = (low, high) if low is not None and high is not None and high > low else None
    return Measure(
        metric=metric,
        output=output,
        kind=kind,
        label=label,
        cut="" if cut == by else cut,
        larger_means=read_text(source, "larger_means"),
        span=1.0 if kind == "share" else ends[1] - ends[0] if ends else None,
        primary=in_family or output in read_texts(card, "primary"),
        range=" to ".join(map(format_exact, ends)) if kind == "mean" and ends else "",
        texts=(read_text(source, "name") or plain).partition("@")[0],
        beyond=beyond,
        by=by,
    )


def _read_cuts(source: Mapping[str, Json], label: str) -> tuple[float | None, float | None]:
    """The cut below a label and the one above it; no cuts where they do not part all labels."""
    labels, cuts = read_texts(source, "labels"), read_numbers(source, "cuts")
    if not cuts or len(cuts) != len(labels) - 1:
        return None, None
    ends = [None, *cuts, None]
    place = labels.index(label)
    return ends[place], ends[place + 1]
