"""The links of a corpus run, each between an emotion and a group, and its findings in sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from evenhand.corpus.term_lists import NONE
from evenhand.report.manifest import format_level, read_mapping, read_number, read_text
from evenhand.report.verdicts import LARGER, TableRow, TestStanding, tint
from evenhand.report.wording import MINUS, format_count, format_name, format_number, format_percent, pluralise
from evenhand.stats.corrections import ALPHA
from evenhand.store.run import Run

FEWEST = 20
"""Minimum units with both emotion and group for a clear link to be shown on the first screen."""
STRENGTHS = (1.5, 2.0)
"""Factors from which a clear link has the medium colour, and the full colour."""

Key = tuple[str, str, str, str]
"""Corpus, emotion, axis, group."""
_ENDS: Mapping[str, str] = {
    "record": "records of tables or dumps",
    "empty line": "texts between empty lines",
    "line": "lines of files that have no empty line",
    "file": "files",
}
_ALWAYS = (
    "Words are counted, not feelings: a term may have another sense, be negated or be quoted.",
    "A {unit} with an emotion and a group need not mean that the group feels it or is its target.",
    "{Units} that name a group tend to be longer, and longer ones contain more of everything. That raises "
    "the odds of every emotion with every group: compare groups with each other, not only with the baseline.",
    "Groups are counted only where they are named; people who are not named as members are missed.",
)


@dataclass(frozen=True, slots=True)
class CorpusLink(TableRow):
    """The link of an emotion with a group in a corpus, relative to units that name no group of the axis."""

    unit: str
    base_share: float | None
    """The share of the baseline's units that hold the emotion."""
    where: str
    """The corpus, if a run has several."""

    @property
    def key(self) -> Key:
        """The key of the link."""
        return (self.text("corpus"), self.text("emotion"), self.text("axis"), self.text("group"))

    @property
    def standing(self) -> TestStanding:
        """The result of the test."""
        adjusted = self.value("p_adjusted")
        return "missing" if adjusted is None else "supported" if adjusted <= ALPHA else "unclear"

    @property
    def direction(self) -> str:
        """Whether the emotion is more or less likely with the group."""
        ratio = self.value("odds_ratio")
        return "" if ratio is None or ratio == 1 else "higher" if ratio > 1 else "lower"

    @property
    def factor(self) -> float:
        """The odds ratio or its inverse, whichever is above 1; 1 if there is none."""
        ratio = self.value("odds_ratio")
        return 1.0 if not ratio else max(ratio, 1 / ratio)

    @property
    def sureness(self) -> float:
        """The distance from 1 to the nearer end of the interval, on the log scale; 0 if it includes 1."""
        low, high = self.value("low"), self.value("high")
        if low is None or high is None or low <= 1 <= high:
            return 0.0
        return min(abs(math.log(low)), abs(math.log(high)))

    @property
    def tint(self) -> str:
        """Direction and strength of a clear link, such as ``higher-2``; else empty."""
        return tint(self.direction, self.factor, STRENGTHS) if self.standing == "supported" else ""

    @property
    def ratio(self) -> str:
        """The odds ratio with its sign."""
        ratio = self.value("odds_ratio")
        return "" if ratio is None else f"{ratio:.2f}×"

    @property
    def short(self) -> str:
        """The odds ratio, or the count of emotion and group together if there is none."""
        seen = int(self.value("count") or 0)
        return self.ratio or (f"n={seen:,}" if seen else "–")

    @property
    def statement(self) -> str:
        """The link in plain words, with both shares."""
        size = self.value("group_sentences") or 0.0
        share = (self.value("sentences") or 0.0) / size if size else 0.0
        emotion, group, axis = map(self.words, ("emotion", "group", "axis"))
        where = f"in {format_name(self.where)}, " if self.where else ""
        named = f"{where}of the {pluralise(self.unit)} that name the group {group}, {format_percent(share)}"
        base = "" if self.base_share is None else format_percent(self.base_share)
        return f"{named} contain a word of {emotion}; where no {axis} is named, {base} do"

    @property
    def evidence(self) -> str:
        """The numbers behind the link."""
        seen = format_count(int(self.value("sentences") or 0), self.unit)
        where = f"{seen} with both, {format_count(int(self.value('n_clusters') or 0), 'document')} read"
        return f"odds ratio {self.interval('odds_ratio', 'low', 'high')}, {where}, adjusted p {self.p}"

    def interval(self, value: str, low: str, high: str, *, signed: bool = False) -> str:
        """An estimate with its interval, or alone if it has none."""
        numbers = [self.value(column) for column in (value, low, high)]
        shown = ["" if item is None else _plain(item, signed) for item in numbers]
        return shown[0] if numbers[1] is None else f"{shown[0]} ({shown[1]} to {shown[2]})"


class CorpusFindings:
    """The links of a run, and the findings from all of them."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.unit = read_text(run.manifest, "identity", "unit") or "sentence"
        self.level = format_level(run, ("config",))
        corpora = read_mapping(run.manifest, "corpora")
        self.n_units = sum(int(read_number(corpora, corpus, "units") or 0) for corpus in corpora)
        self.documents: Counter[str] = Counter()
        """The number of documents, by what ended them."""
        for corpus in corpora:
            ends = read_mapping(corpora, corpus, "documents")
            self.documents.update({end: int(read_number(ends, end) or 0) for end in ends})
        occurrence = run.table("occurrence")
        self.corpora: list[str] = occurrence["corpus"].unique(maintain_order=True).to_list()
        self.emotions: list[str] = occurrence["emotion"].unique(maintain_order=True).to_list()
        self.links = self._read_links()

    def _read_links(self) -> list[CorpusLink]:
        """Every link, in the order of its table; the baselines are not links."""
        table = self.run.table("cooccurrence")
        base = {
            (row["corpus"], row["emotion"], row["axis"]): row["sentences"] / row["group_sentences"]
            for row in table.filter(pl.col("group") == NONE).iter_rows(named=True)
            if row["group_sentences"]
        }
        several = table["corpus"].n_unique() > 1
        return [
            CorpusLink(
                row,
                self.unit,
                base.get((row["corpus"], row["emotion"], row["axis"])),
                row["corpus"] if several else "",
            )
            for row in table.filter(pl.col("group") != NONE).iter_rows(named=True)
        ]

    @property
    def question(self) -> str:
        """What the run asks."""
        name = read_text(self.run.manifest, "name") or "the corpus"
        return f"Which emotions share a {self.unit} with which groups in {name}?"

    @property
    def details(self) -> str:
        """What was read, and what a link is compared with."""
        table = self.run.table("cooccurrence")
        groups = table.filter(pl.col("group") != NONE).select("axis", "group").unique().height
        documents = format_count(self.documents.total(), "document")
        words = f"{format_count(table['emotion'].n_unique(), 'emotion')} and {format_count(groups, 'group')}"
        return (
            f"{format_count(self.n_units, self.unit)} of {documents} were searched for words of {words}. "
            f"Each link is compared with {self.units} that name no group of the same kind."
        )

    @property
    def speed(self) -> str:
        """The stage that limited the scan, and the total time; empty if it worked for less than a second."""
        stage = read_mapping(self.run.manifest, "stages", "count")
        seconds = format_number(read_number(stage, "seconds"))
        longest = max(read_number(stage, f"{name}_seconds") or 0.0 for name in ("reading", "counting"))
        return f"{read_text(stage, 'limited_by')} ({seconds} s in all)" if seconds and longest >= 1 else ""

    @property
    def units(self) -> str:
        """The plural of the unit's name."""
        return pluralise(self.unit)

    def standing(self, standing: TestStanding) -> list[CorpusLink]:
        """The links with a given standing."""
        return [link for link in self.links if link.standing == standing]

    @property
    def largest(self) -> list[CorpusLink]:
        """Clear links based on enough units to be shown first, the most certain first."""
        enough = [link for link in self.standing("supported") if (link.value("sentences") or 0) >= FEWEST]
        return sorted(enough, key=lambda link: -link.sureness)

    @property
    def ground(self) -> str:
        """The evidence that a link needs to be shown first; empty if no link is clear."""
        clear, shown = len(self.standing("supported")), len(self.largest)
        if not clear:
            return ""
        least = f"{FEWEST} {self.units} that contain both the emotion and the group"
        if not shown:
            each, none = ("It", "it is not") if clear == 1 else ("Each of them", "none is")
            return f"{each} is based on fewer than {least}, so {none} presented as the main result"
        left = f"; {clear - shown:,} clear {'link has' if clear - shown == 1 else 'links have'} fewer"
        return f"Shown first are the most certain links with at least {least}{left if shown < clear else ''}"

    @property
    def headline(self) -> str:
        """The answer in one line."""
        if not self.n_units:
            return "Nothing could be counted"
        tested = [link for link in self.links if link.standing != "missing"]
        clear = len(self.standing("supported"))
        if not tested:
            return "No link of an emotion with a group could be tested"
        links = f"{format_count(len(tested), 'link')} of an emotion with a group"
        if not clear:
            return f"None of the {links} is {LARGER}"
        verb = "is" if clear == 1 else "are"
        return f"{clear:,} of {links} {verb} {LARGER}"

    @property
    def verdict(self) -> str:
        """The headline with its most certain link, or the reason why there is no answer."""
        if not self.n_units:
            problems = self.run.table("problems")
            why = f" See the {format_count(problems.height, 'problem')} listed." if problems.height else ""
            if problems.height == 1 and problems["reason"][0].startswith("is empty"):
                return f"Nothing could be counted: {problems['file'][0]} is empty."
            return f"Nothing could be counted: the inputs hold no {self.unit} with a word.{why}"
        if self.ground and not self.largest:
            return f"{self.headline}. {self.ground}."
        if self.largest:
            return f"{self.headline}. Most certain: {self.largest[0].statement} ({self.largest[0].evidence})."
        if all(link.standing == "missing" for link in self.links):
            return f"{self.headline}: {self._why_untested}."
        return f"{self.headline}, after correction over all of them."

    @property
    def _why_untested(self) -> str:
        if not any(link.value("sentences") for link in self.links):
            return f"no {self.unit} holds both an emotion word and a group word"
        if any(link.value("odds_ratio") is not None for link in self.links):
            return "too few documents name a group and an emotion"
        return (
            f"a test needs {self.units} with the emotion and the group, with only one of them, and with "
            "neither; for each link, one of these kinds is missing"
        )

    @property
    def sides(self) -> list[str]:
        """A sentence on each further corpus compared with the first."""
        sentences, table = list[str](), self.run.table("contrasts")
        for (corpus, first), part in table.group_by(["corpus", "baseline"], maintain_order=True):
            tested = part.filter(pl.col("p_adjusted").is_not_null())
            clear = tested.filter(pl.col("p_adjusted") <= ALPHA)
            of_groups = pl.col("group") != ""
            differ = clear.filter(of_groups).height
            links = format_count(tested.filter(of_groups).height, "link")
            sentence = f"{corpus} against {first}: {differ:,} of {links} differ by more than chance"
            strongest = clear.filter(pl.col("group") == "").sort(pl.col("ratio").log().abs(), descending=True)
            if strongest.height:
                row = strongest.row(0, named=True)
                factor = max(row["ratio"], 1 / row["ratio"])
                often = f"{factor:.1f} times {'as' if row['ratio'] > 1 else 'less'} often"
                sentence += f"; a word of {format_name(row['emotion'])} occurs in its {self.units} {often}"
            sentences.append(f"{sentence}.")
        return sentences

    def list_caveats(self) -> list[str]:
        """The limits of the run."""
        lines = [line.format(unit=self.unit, Units=self.units.capitalize()) for line in _ALWAYS]
        kinds = [
            f"{amount:,} {_ENDS.get(end, format_name(end))}"
            for end, amount in self.documents.items()
            if amount
        ]
        taken = f" Here they are {' and '.join(kinds)}." if kinds else ""
        lines.append(f"Intervals assume that documents are independent of each other.{taken}")
        if self.documents["line"]:
            lines.append(
                "In files without an empty line, each line counts as a document. If documents are longer "
                "than a line, the intervals are too narrow: --cluster file is the conservative choice."
            )
        lines.append(
            "Exact copies of a document are counted but add no evidence; near copies count as independent."
        )
        if self.run.table("problems").height:
            lines.append("Some of the input was skipped or changed: see the list of problems.")
        return lines


def _plain(value: float, signed: bool) -> str:
    text = f"{value:+,.2f}" if signed else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
    return text.replace("-", MINUS)
