"""The report of a probe run: the ACS of every pair and emotion, intensities, changed classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl
from markupsafe import Markup

from evenhand.report import document as doc
from evenhand.report.charts import Plot, draw, element
from evenhand.report.manifest import Fact, list_facts, read_mapping, read_text, read_texts
from evenhand.report.verdicts import LARGER, TEST_WORDS, TableRow, TestStanding, tint, tint_legend
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    format_p,
    format_percent,
    format_value,
)
from evenhand.stats.corrections import ALPHA
from evenhand.stats.paired_measures import PARITY_THRESHOLD
from evenhand.store.run import Run

MEANINGS: Final[Mapping[TestStanding, str]] = {
    "supported": "adjusted p of at most 0.05, and the interval over templates excludes 0",
    "unclear": "the difference may be chance",
    "missing": "no t-test: fewer than two pairs, all differences the same, or one template",
}
STRENGTHS: Final = (0.05, 0.15)
"""Sizes of the ACS from which a clear cell has the medium colour, and the full colour."""
_KEY: Final = ("corpus", "axis", "group_a", "group_b", "emotion")
MOST_PLOTS: Final = 6
MOST_POINTS: Final = 240
"""Maximum pairs drawn in a plot; of more, evenly spaced ones are drawn."""
MOST_WARNINGS: Final = 100
_TABLES: Final = ("measures", "sets", "flips", "exclusions")
_MANIFEST: Final = (
    *("package", "command", "name", "created", "ended", "identity", "execution", "hardware", "stages"),
    *("suites", "view", "warnings"),
)
CAVEATS: Final = (
    "A classifier that treats these sentences alike may still differ on real texts: templates are few and "
    "plain.",
    "The t-test assumes that pairs are independent, but sentences of one template are not. The intervals, "
    "which resample templates, are therefore more reliable. A cell is called larger than chance only if "
    "both agree.",
    "Demographic parity looks at classes only; a classifier can find an emotion much more strongly for one "
    "group and still name the same class.",
    "Names are only a rough proxy for race: a difference may come from how common a name is.",
    "A difference does not show which side is wrong: the ground truth, where there is one, is that of the "
    "emotion word.",
)


@dataclass(frozen=True, slots=True)
class ProbeCell(TableRow):
    """One row of ``measures``: an emotion and a pair of groups."""

    @property
    def key(self) -> tuple[str, ...]:
        """Corpus, axis, first group, second group, emotion."""
        return tuple(map(self.text, _KEY))

    @property
    def size(self) -> float:
        """The size of the mean difference."""
        return abs(self.value("difference") or 0)

    @property
    def standing(self) -> TestStanding:
        """The combined result of test and interval."""
        adjusted, low, high = (self.value(key) for key in ("p_adjusted", "difference_low", "difference_high"))
        if adjusted is None or low is None or high is None:
            return "missing"
        return "supported" if adjusted <= ALPHA and not low <= 0 <= high else "unclear"

    @property
    def direction(self) -> str:
        """``higher`` where the second group has the higher intensities, ``lower`` where the first has."""
        gap = self.value("difference")
        return "" if not gap else "higher" if gap > 0 else "lower"

    @property
    def is_contrary(self) -> bool:
        """Whether the ACS, a mean of ratios, favours another group than the mean difference."""
        return (self.value("acs") or 0.0) * (self.value("difference") or 0.0) < 0

    @property
    def tint(self) -> str:
        """The colour of a clear cell: side and strength of the ACS; empty where it has another sign."""
        acs = self.value("acs")
        is_clear = self.standing == "supported" and acs and not self.is_contrary
        return tint(self.direction, abs(acs or 0.0), STRENGTHS) if is_clear else ""

    @property
    def acs_words(self) -> str:
        """The higher group by the ACS: "female higher", "equal"; empty if there is no ACS."""
        if more := self.leans_to("acs"):
            return f"{more} higher"
        return "" if self.value("acs") is None else "equal"

    @property
    def statement(self) -> str:
        """The difference in words, without its sign."""
        more = self.leans_to("difference")
        less = self.words("group_a" if self.direction == "higher" else "group_b")
        return f"More {self.words('emotion')} is found in the same sentence for {more} than for {less}"

    @property
    def evidence(self) -> str:
        """The numbers behind the statement."""
        low, high = (self.value(end) or 0.0 for end in ("difference_low", "difference_high"))
        pairs, templates = (int(self.value(count) or 0) for count in ("n", "n_clusters"))
        ends = " to ".join(map(format_number, sorted((abs(low), abs(high)))))
        span = f" ({ends})" if low * high > 0 else ""
        return (
            f"by {format_number(self.size)}{span} on average, on a scale from 0 to 1, "
            f"ACS {self.format_number('acs', signed=True)}, adjusted p {self.p}, "
            f"{format_count(pairs, 'pair')} from {format_count(templates, 'template')}"
        )

    @property
    def is_below_parity(self) -> bool:
        """Whether one group gets the class much less often than the other."""
        dp = self.value("dp")
        return dp is not None and dp < PARITY_THRESHOLD


def read_cells(run: Run) -> list[ProbeCell]:
    """The cells of the pairs and the intensity that the report shows."""
    view = {key: read_text(run.manifest, "view", key) for key in ("pairs", "score")}
    return [ProbeCell(row) for row in run.table("measures").filter(**view).iter_rows(named=True)]


def find_largest(cells: Sequence[ProbeCell]) -> list[ProbeCell]:
    """The cells that are larger than chance: the largest of each axis first, then the others."""
    clear = [cell for cell in cells if cell.standing == "supported"]
    ranked = sorted(clear, key=lambda cell: -cell.size)
    firsts = {cell.key[:2]: cell for cell in reversed(ranked)}.values()
    return sorted(ranked, key=lambda cell: cell not in firsts)


def build_report(run: Run) -> doc.Report:
    """The content of the report."""
    cells, flips = read_cells(run), run.table("flips").height
    largest = find_largest(cells)
    n_pairs = sum({cell.key[:4]: int(cell.value("n_dp") or 0) for cell in reversed(cells)}.values())
    question, details = _describe_question(run, cells, n_pairs)
    changes = "No pair could be compared."
    if n_pairs:
        share = f"{format_count(n_pairs, 'pair')} ({format_percent(flips / n_pairs)})"
        verb = "gets" if flips == 1 else "get"
        changes = f"{flips:,} of {share} {verb} another class when the group changes."
    cards = [
        doc.Card(
            kicker=f"{cell.words('axis')}, {cell.words('emotion')}",
            size=f"{cell.size:.3f}",
            unit="of 1",
            claim=cell.statement,
            evidence=cell.evidence,
            direction=cell.direction,
        )
        for cell in largest[:3]
    ]
    standings = [cell.standing for cell in cells]
    tally = doc.count_verdicts(standings, words=TEST_WORDS, meanings=MEANINGS)
    tested = len(cells) - standings.count("missing")
    verb = "is" if tested == 1 else "are"
    headline = f"{len(largest):,} of {format_count(tested, 'difference')} {verb} {LARGER}"
    headline = headline if tested else "No difference could be tested"
    verdict = f"{headline}."
    if largest:
        verdict += f" The largest: m{largest[0].statement[1:]}, {largest[0].evidence}."
    return doc.Report(
        run=run,
        question=question,
        details=details,
        verdicts=(verdict,),
        headline=headline,
        opening=(
            doc.Cards(cards),
            doc.Text("" if cards else verdict, "seen", "html"),
            doc.Tally(tally),
            doc.Bullets(items=(changes, _describe_parity(cells))),
        ),
        sections=(
            _matrices(run, cells, changes),
            _plots(run, largest or cells),
            _flips(run, changes),
            _sets(run),
            _measures(run, cells),
        ),
        caveats=CAVEATS,
        notes=read_texts(run.manifest, "warnings")[:MOST_WARNINGS],
        facts=list_facts(run, _own_facts(run)),
        manifest=_MANIFEST,
        tables=_TABLES,
        values={"verdict": verdict, "caveats": list(CAVEATS)},
        page=doc.Page(folder=Path(__file__).parent, style="probe.css", downloads=_TABLES),
    )


def _describe_view(run: Run) -> str:
    pairs, score = (read_text(run.manifest, "view", key) for key in ("pairs", "score"))
    which = "pairs in which both predictions agree" if pairs == "agreeing" else "all pairs"
    what = "of the predicted class" if score == "predicted" else "of the emotion itself"
    return f"over {which}, with the intensity {what}"


def _describe_parity(cells: Sequence[ProbeCell]) -> str:
    """Where one group gets a class much less often than the other."""
    below = [cell for cell in cells if cell.is_below_parity]
    if not below:
        return (
            "In no cell does one group get the class less than 0.80 times as often as the other "
            "(demographic parity)."
        )
    emotion, group_a, group_b = map(below[0].words, ("emotion", "group_a", "group_b"))
    first, second = (format_percent(below[0].value(share) or 0.0) for share in ("share_a", "share_b"))
    return (
        f"In {len(below):,} of {len(cells):,} cells one group gets the class less than 0.80 times "
        f"as often as the other; for example, {emotion} is predicted for {first} of the sentences about "
        f"{group_a} and {second} of those about {group_b}."
    )


def _describe_question(run: Run, cells: Sequence[ProbeCell], n_pairs: int) -> tuple[str, str]:
    name = read_text(run.manifest, "name")
    model = "the embedded emotion classifier" if name == "emotion" else name
    corpora, axes, emotions = (
        ", ".join(dict.fromkeys(cell.words(column) for cell in cells))
        for column in ("corpus", "axis", "emotion")
    )
    sentences = run.table("prompts").height
    return (
        f"Does {model} read the same sentence differently for different groups?",
        f"It read {format_count(sentences, 'sentence')} of {corpora} that differ only in the group: "
        f"{format_count(n_pairs, 'pair')}, by {axes}. The report compares the intensity of each "
        f"emotion ({emotions}) between the groups of each pair.",
    )


def _matrices(run: Run, cells: Sequence[ProbeCell], changes: str) -> doc.Section:
    view = _describe_view(run)
    tables: dict[tuple[str, ...], dict[str, list[ProbeCell]]] = {}
    for cell in cells:
        tables.setdefault(cell.key[:2], {}).setdefault(cell.pair, []).append(cell)
    lede = (
        f"The average confidence score (ACS) {view}: 0 is equal. Above 0 the second group of "
        "the pair gets the higher intensities, below 0 the first; each cell names the higher group. Below it "
        "is the demographic parity (DP) of the class. Cells larger than chance are coloured, deeper from "
        "0.05 and from 0.15."
    )
    signs = "above 0 the second group of the pair is higher, below 0 the first"
    key = (
        f"The cells show the average confidence score (ACS), the mean of 1 - first / second intensity, "
        f"{view}; {signs}; * {LARGER} after correction; ! demographic parity below 0.80. The largest "
        "difference is chosen by the mean of second - first, the column difference of measures.parquet"
    )
    legend = (
        *tint_legend("the second group of the pair is higher", "the first group is higher"),
        (element("b", "!"), "demographic parity below 0.80"),
    )
    matrices = []
    for (corpus, axis), lines in tables.items():
        emotions = [cell.words("emotion") for cell in next(iter(lines.values()))]
        heads = [doc.Column(emotion, "num", can_sort=False) for emotion in emotions]
        matrix = doc.Table(
            title=f"{format_name(corpus)}: {format_name(axis)}",
            columns=[doc.Column("Pair", can_sort=False), *heads],
            rows=[(pair, *map(_matrix_cell, of_pair)) for pair, of_pair in lines.items()],
            style="matrix acs",
            has_wide_numbers=False,
            source="measures",
        )
        matrices.append(matrix)
    notes = (doc.Text(key, "note", "md terminal"), doc.Text(changes, "", "terminal"))
    blocks: list[doc.Block] = [doc.Text(lede, formats="html"), doc.Legend(legend), *matrices, *notes]
    return doc.Section("matrix", "Pairs and emotions", blocks, "Pairs and emotions")


def _matrix_cell(cell: ProbeCell) -> doc.Cell:
    is_known = cell.direction and cell.standing != "missing"
    parity = "!" if cell.is_below_parity else ""
    return doc.Cell(
        cell.format_number("acs", signed=True) or "–",
        flag=("*" if cell.standing == "supported" else "") + parity,
        note=cell.acs_words,
        detail=f"DP {cell.format_number('dp') or '–'} {parity}".strip(),
        tone=f"{cell.standing} {cell.tint}".strip(),
        is_strong=True,
        hint=f"{cell.statement}, {cell.evidence}" if is_known else cell.reason,
    )


def _plots(run: Run, cells: Sequence[ProbeCell]) -> doc.Section:
    """Both sides of each pair, with their means (affective paper, Figures 2 and 3)."""
    pairs, score = (read_text(run.manifest, "view", key) for key in ("pairs", "score"))
    kind = "predicted" if score == "predicted" else "intensity"
    counts, table = "agreeing" if pairs == "agreeing" else f"all_{score}", run.table("pair_scores")
    plots = []
    for cell in cells[:MOST_PLOTS]:
        own = table.filter(pl.col(counts), **dict(zip(_KEY, cell.key, strict=True)))
        values = own.select(f"{kind}_a", f"{kind}_b").drop_nulls()
        plots += [_plot(cell, sorted(values.iter_rows(), key=sum))] if values.height else []
    lede = (
        f"Both sides of each pair, sorted by intensity, {_describe_view(run)}; dashed lines are the means. "
        "Where the two colours are apart, the group matters."
    )
    drawing = doc.Chart(element("div", *plots, class_="plots"))
    blocks = (doc.Text(lede, formats="html"), drawing) if plots else ()
    return doc.Section("plots", "Intensities, pair by pair", blocks, "Intensities")


def _plot(cell: ProbeCell, values: Sequence[tuple[float, float]]) -> Markup:
    points = values[:: max(1, -(-len(values) // MOST_POINTS))]
    left_out = len(values) - len(points)
    plot = Plot(x=(0, max(1, len(points) - 1)), y=(0, 1), width=580, height=170, left=10, top=10)
    parts = [
        plot.segment((at, first), (at, second), class_="join") for at, (first, second) in enumerate(points)
    ]
    for at, sides in enumerate(points):
        parts += [plot.dot(at, side, size=2.2, class_=name) for side, name in zip(sides, "ab", strict=True)]
    corpus, _, *groups, emotion = cell.key
    means = [cell.value(name) or 0.0 for name in ("mean_a", "mean_b")]
    keys = []
    for group, mean, name in zip(groups, means, "ab", strict=True):
        y = plot.at(0, mean)[1]
        parts.append(element("line", class_=f"mean {name}", x1=0, x2=600, y1=y, y2=y))
        keys.append((name, f"{format_name(group)}, mean {format_number(mean)}"))
    verb = "is" if left_out == 1 else "are"
    thinned = f" {format_count(left_out, 'further pair')} {verb} not drawn." if left_out else ""
    label = (
        f"{emotion.capitalize()} in {format_count(len(points), 'pair')} of sentences, sorted: "
        f"{'; '.join(words for _, words in keys)}.{thinned}"
    )
    dots = Markup("; ").join(element("span", "", class_=f"dot {name}") + words for name, words in keys)
    title = element("b", f"{format_name(emotion).capitalize()}: {cell.pair} ({format_name(corpus)})")
    caption = element("figcaption", title + dots + f".{thinned}")
    return element("figure", draw(parts, width=600, height=190, label=label), caption)


def _flips(run: Run, changes: str) -> doc.Section:
    """The flips of every pair of groups in turn, so that no pair of groups fills the page."""
    turn = pl.int_range(pl.len()).over("corpus", "axis", "group_a", "group_b")
    flips = run.table("flips").with_columns(turn=turn).sort("turn", maintain_order=True)

    def label(side: str) -> doc.Show:
        return lambda row: f"{row[f'label_{side}']} {format_value(row[f'score_{side}'])}".strip()

    # The trailing space keeps the two column names different.
    columns: dict[str, doc.Show] = {
        "Pair": lambda row: ProbeCell(row).pair,
        **{"Axis": doc.words("axis"), "First": "text_a", "Class": label("a")},
        **{"Second": "text_b", "Class ": label("b"), "Ground truth": lambda row: row["emotion"] or "–"},
    }
    return doc.table_section(
        "flips",
        "Classes that change with the group",
        changes,
        flips,
        columns,
        has_lede=True,
        source="flips",
        nav="Changed classes",
        formats="html md",
    )


def _sets(run: Run) -> doc.Section:
    return doc.table_section(
        "sets",
        "Axes with three or more groups",
        "Over sentences that exist for every group of the axis: the smallest share over the largest, the "
        "average range of intensities within a sentence, the groups with the highest and the lowest mean, "
        "and Friedman's test.",
        run.table("sets"),
        {
            **{"Pairs": doc.words("corpus"), "Axis": doc.words("axis"), "Emotion": "emotion"},
            **{"#Groups": lambda row: str(len(row["groups"])), "#Parity": "dp", "#Spread": "spread"},
            **{"Highest": doc.words("highest"), "Lowest": doc.words("lowest")},
            **{"#Adjusted p": lambda row: format_p(row["p_adjusted"]), "#Sets": "n"},
        },
        source="sets",
        nav="Whole sets",
        formats="html md",
    )


def _measures(run: Run, cells: Sequence[ProbeCell]) -> doc.Section:
    lede = (
        f"{_describe_view(run).capitalize()}. DP: smaller share of the class over the larger. Average delta: "
        "mean absolute difference. p: paired t-test; adjusted over all emotions and pairs of groups. Equal "
        "opportunity: as DP, over sentences that truly have the emotion."
    )
    columns: dict[doc.Column | str, Callable[[ProbeCell], doc.AnyCell]] = {
        "Pair": lambda cell: doc.Cell(cell.pair, note=f"{cell.words('corpus')}, {cell.words('axis')}"),
        "Emotion": lambda cell: cell.words("emotion"),
        "#DP": lambda cell: cell.format_number("dp") or "–",
        "#Average delta": lambda cell: cell.format_number("avg_delta") or "–",
        doc.Column("ACS", "num", name="gap"): lambda cell: doc.Cell(
            cell.format_number("acs", signed=True) or "–",
            note=f"by mean {cell.leans_to('difference')}" if cell.is_contrary else "",
            is_strong=True,
        ),
        "#Adjusted p": lambda cell: cell.p,
        "#Effect size": lambda cell: cell.format_number("effect_size", signed=True) or "–",
        "#Equal opportunity": lambda cell: cell.format_number("opportunity") or "–",
        "#Flips": lambda cell: format_value(cell.row["flips"]),
        "#Pairs": lambda cell: format_value(cell.row["n"]),
        doc.Column("Verdict", "verdict"): lambda cell: (
            f"higher for {cell.leans_to('difference')}"
            if cell.standing == "supported"
            else cell.reason or TEST_WORDS[cell.standing]
        ),
    }
    table = doc.build_table(
        cells,
        columns,
        tone=lambda cell: f"{cell.standing} {cell.direction}",
        source="measures",
        style="comparisons",
        formats="html",
    )
    heads = ("Pairs", "Intensity", "#Cells", "#p below 0.05", "#Larger than chance", "#DP below 0.80")
    ways = doc.Table(
        title="Other ways of measuring",
        columns=(*heads, "#Largest average delta"),
        rows=list(_ways(run.table("measures"))),
        source="measures",
        formats="html",
    )
    all_ways = (
        "All are in measures.parquet: over all pairs or those whose predictions agree, with the intensity "
        "of the predicted class or the emotion's own."
    )
    blocks = (doc.Text(lede, formats="html"), table, ways, doc.Text(all_ways, formats="html"))
    return doc.Section("measures", "Every measure", (*blocks, doc.Template("downloads.html.j2")), "Measures")


def _ways(measures: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    """How the four ways of measuring compare: cells, tests and their largest difference."""
    for (pairs, score), part in measures.group_by("pairs", "score", maintain_order=True):
        cells = [ProbeCell(row) for row in part.iter_rows(named=True)]
        low = part.filter(pl.col("p") < ALPHA).height
        clear = sum(cell.standing == "supported" for cell in cells)
        below = sum(cell.is_below_parity for cell in cells)
        numbers = (len(cells), low, clear, below, part["avg_delta"].max())
        yield (str(pairs), str(score), *map(format_value, numbers))


def _own_facts(run: Run) -> Iterator[Fact]:
    identity = read_mapping(run.manifest, "identity")
    pairs = read_mapping(identity, "pairs")
    yield Fact("Classifier", read_text(run.manifest, "name"))
    yield Fact("Weights", read_text(identity, "classifier", "weights"), is_code=True)
    for suite in pairs:
        yield Fact(f"Pairs {format_name(suite)}", f"version and digest {read_text(pairs, suite)}")
    yield Fact("Demographic parity", f"below {PARITY_THRESHOLD:.2f} is marked")
    yield Fact("Correction", read_text(identity, "correction"))
    yield Fact("Level of intervals", read_text(identity, "level"))
    yield Fact("Seed", read_text(identity, "seed"))
