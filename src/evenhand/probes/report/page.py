"""Everything the page of a probe run shows, gathered once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from evenhand._version import __version__
from evenhand.probes.report.intensity_plots import IntensityPlot, build_plots
from evenhand.probes.report.matrix_cells import MEANINGS, ProbeCell
from evenhand.report.manifest import Fact, list_circumstances, read_mapping, read_text
from evenhand.report.standings import STANDING_WORDS, StandingCount, count_standings
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    format_p,
    format_percent,
    show_control_characters,
)
from evenhand.stats.paired_measures import PARITY_THRESHOLD
from evenhand.store.run import Run

MOST_PLOTS: Final = 6
MOST_FLIPS: Final = 200
MOST_ROWS: Final = 3000
CAVEATS: Final = (
    "A classifier that treats these sentences alike may still differ on real texts: templates are few and "
    "plain.",
    "The t-test takes pairs as independent; sentences of one template are not, so that the intervals, which "
    "resample templates, are the surer guide. A cell is called clear only where both agree.",
    "Demographic parity looks at classes only; a classifier can find an emotion much more strongly for one "
    "group "
    "and still name the same class.",
    "Names stand for race only roughly: a difference may follow from how common a name is.",
    "A difference is no error of either side: the ground truth, where there is one, is that of the emotion "
    "word.",
)


@dataclass(frozen=True, slots=True)
class ProbeMatrix:
    """Pairs of groups down, emotions across, for one axis of one corpus."""

    corpus: str
    axis: str
    emotions: tuple[str, ...]
    lines: tuple[tuple[str, tuple[ProbeCell, ...]], ...]


@dataclass(frozen=True, slots=True)
class LabelFlip:
    """A pair whose class changes."""

    pair: str
    axis: str
    truth: str
    text_a: str
    text_b: str
    label_a: str
    label_b: str


@dataclass(frozen=True, slots=True)
class ProbePage:
    """The content of a probe report."""

    question: str
    details: str
    headline: str
    verdict: str
    view: str
    cells: tuple[ProbeCell, ...]
    largest: tuple[ProbeCell, ...]
    tallies: tuple[StandingCount, ...]
    matrices: tuple[ProbeMatrix, ...]
    plots: tuple[IntensityPlot, ...]
    below_parity: tuple[ProbeCell, ...]
    sets: tuple[tuple[str, ...], ...]
    flips: tuple[LabelFlip, ...]
    n_flips: int
    n_pairs: int
    ways: tuple[tuple[str, ...], ...]
    warnings: tuple[str, ...]
    facts: tuple[Fact, ...]
    caveats: tuple[str, ...] = CAVEATS
    version: str = __version__

    @property
    def flip_sentence(self) -> str:
        """How many pairs change their class, in words."""
        if not self.n_pairs:
            return "No pair could be compared"
        verb = "gets" if self.n_flips == 1 else "get"
        return (
            f"{self.n_flips:,} of {format_count(self.n_pairs, 'pair')} "
            f"({format_percent(self.n_flips / self.n_pairs)}) {verb} another class when the group changes"
        )


def build_page(run: Run) -> ProbePage:
    """The content of a probe run's report."""
    measures = run.table("measures")
    view = {key: read_text(run.manifest, "view", key) for key in ("pairs", "score")}
    own = measures.filter(pl.col("pairs") == view["pairs"], pl.col("score") == view["score"])
    cells = tuple(ProbeCell(row) for row in own.iter_rows(named=True))
    clear = [cell for cell in cells if cell.standing == "supported"]
    largest = tuple(sorted(clear, key=lambda cell: -abs(cell.value("difference") or 0)))
    pairs = _pairs(own)
    named = show_control_characters(read_text(run.manifest, "name"))
    model = "the embedded emotion classifier" if named == "emotion" else named
    headline = _headline(cells, len(clear))
    return ProbePage(
        question=f"Does {model} read the same sentence differently for different groups?",
        details=_details(run, own, pairs),
        headline=headline,
        verdict=_verdict(headline, largest),
        view=_view(view),
        cells=cells[:MOST_ROWS],
        largest=_spread(largest),
        tallies=count_standings((cell.standing for cell in cells), words=STANDING_WORDS, meanings=MEANINGS),
        matrices=tuple(_matrices(cells)),
        plots=tuple(build_plots((_spread(largest) or cells)[:MOST_PLOTS], run.table("pair_scores"), view)),
        below_parity=tuple(cell for cell in cells if cell.is_below_parity),
        sets=tuple(_sets(run)),
        flips=tuple(_flips(run)),
        n_flips=run.table("flips").height,
        n_pairs=pairs,
        ways=tuple(_ways(measures)),
        warnings=tuple(show_control_characters(str(line)) for line in run.manifest.get("warnings", ())),
        facts=tuple(fact for fact in _facts(run) if fact.value),
    )


def _details(run: Run, own: pl.DataFrame, pairs: int) -> str:
    corpora = ", ".join(format_name(corpus) for corpus in own["corpus"].unique(maintain_order=True))
    axes = ", ".join(format_name(axis) for axis in own["axis"].unique(maintain_order=True))
    emotions = ", ".join(own["emotion"].unique(maintain_order=True))
    sentences = run.table("prompts").height
    return (
        f"It read {format_count(sentences, 'sentence')} of {corpora} that differ in the group alone: "
        f"{format_count(pairs, 'pair')}, "
        f"by {axes}. For each pair of groups and each of {emotions}, how strongly it finds the emotion is "
        f"compared."
    )


def _headline(cells: Sequence[ProbeCell], clear: int) -> str:
    """How many of the tested cells are clear; those without a test are no evidence of anything."""
    tested = sum(cell.standing != "missing" for cell in cells)
    if not tested:
        return "No difference could be tested"
    verb = "is" if tested == 1 else "are"
    return f"{clear:,} of {format_count(tested, 'difference')} {verb} clear of chance"


def _verdict(headline: str, largest: Sequence[ProbeCell]) -> str:
    if not largest:
        return f"{headline}."
    first = largest[0]
    return f"{headline}. The largest: {first.statement[0].lower()}{first.statement[1:]}, {first.evidence}."


def _view(view: dict[str, str]) -> str:
    which = "pairs in which both predictions agree" if view["pairs"] == "agreeing" else "all pairs"
    what = "of the predicted class" if view["score"] == "predicted" else "of the emotion itself"
    return f"over {which}, with the intensity {what}"


def _pairs(own: pl.DataFrame) -> int:
    keys = ["corpus", "axis", "group_a", "group_b"]
    return int(own.group_by(keys).agg(pl.col("n_dp").first())["n_dp"].sum() or 0)


def _spread(cells: Sequence[ProbeCell]) -> tuple[ProbeCell, ...]:
    """The largest cell of each axis first, then the others."""
    firsts = list({cell.key[:2]: cell for cell in reversed(cells)}.values())
    ranked = sorted(firsts, key=lambda cell: -abs(cell.value("difference") or 0))
    return (*ranked, *(cell for cell in cells if cell not in ranked))


def _matrices(cells: Sequence[ProbeCell]) -> Iterator[ProbeMatrix]:
    places: dict[tuple[str, str], dict[str, list[ProbeCell]]] = {}
    for cell in cells:
        places.setdefault(cell.key[:2], {}).setdefault(cell.pair, []).append(cell)
    for (corpus, axis), lines in places.items():
        emotions = tuple(dict.fromkeys(cell.key[4] for line in lines.values() for cell in line))
        yield ProbeMatrix(
            format_name(corpus),
            format_name(axis),
            emotions,
            tuple((pair, tuple(line)) for pair, line in lines.items()),
        )


def _sets(run: Run) -> Iterator[tuple[str, ...]]:
    for row in run.table("sets").iter_rows(named=True):
        yield (
            format_name(row["corpus"]),
            format_name(row["axis"]),
            row["emotion"],
            f"{len(row['groups'])}",
            "" if row["dp"] is None else format_number(row["dp"]),
            "" if row["spread"] is None else format_number(row["spread"]),
            format_name(row["highest"]) if row["highest"] else "",
            format_name(row["lowest"]) if row["lowest"] else "",
            format_p(row["p_adjusted"]),
            f"{row['n']:,}",
        )


def _flips(run: Run) -> Iterator[LabelFlip]:
    """Some flips of every pair of groups, in turn, so that no pair of groups fills the page."""
    table = run.table("flips").with_columns(
        turn=pl.int_range(pl.len()).over("corpus", "axis", "group_a", "group_b")
    )
    for row in table.sort("turn", maintain_order=True).head(MOST_FLIPS).iter_rows(named=True):
        yield LabelFlip(
            pair=f"{format_name(row['group_a'])} × {format_name(row['group_b'])}",
            axis=format_name(row["axis"]),
            truth=row["emotion"] or "",
            text_a=show_control_characters(row["text_a"]),
            text_b=show_control_characters(row["text_b"]),
            label_a=_format_label(row["label_a"], row["score_a"]),
            label_b=_format_label(row["label_b"], row["score_b"]),
        )


def _format_label(label: str, score: float | None) -> str:
    return label if score is None else f"{label} {format_number(score)}"


def _ways(measures: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    """How the four ways of measuring compare: cells, tests and their largest difference."""
    for (pairs, score), part in measures.group_by("pairs", "score", maintain_order=True):
        cells = [ProbeCell(row) for row in part.iter_rows(named=True)]
        deltas = [value for cell in cells if (value := cell.value("avg_delta")) is not None]
        yield (
            str(pairs),
            str(score),
            f"{len(cells):,}",
            f"{sum((cell.value('p') or 1) < 0.05 for cell in cells):,}",
            f"{sum(cell.standing == 'supported' for cell in cells):,}",
            f"{sum(cell.is_below_parity for cell in cells):,}",
            format_number(max(deltas)) if deltas else "",
        )


def _facts(run: Run) -> Iterator[Fact]:
    manifest = run.manifest
    identity = read_mapping(manifest, "identity")
    yield Fact("Command to repeat", show_control_characters(read_text(manifest, "command")), is_code=True)
    yield Fact("Classifier", show_control_characters(read_text(manifest, "name")))
    yield Fact("Weights", read_text(identity, "classifier", "weights"), is_code=True)
    for suite in read_mapping(identity, "pairs"):
        yield Fact(f"Pairs {format_name(suite)}", f"version and digest {read_text(identity, 'pairs', suite)}")
    yield Fact("Demographic parity", f"below {PARITY_THRESHOLD:.2f} is marked")
    yield Fact("Correction", read_text(identity, "correction"))
    yield Fact("Level of intervals", read_text(identity, "level"))
    yield Fact("Seed", read_text(identity, "seed"))
    yield from list_circumstances(manifest)
