"""The findings of a run in a sentence: the largest gaps, and what is inconclusive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from evenhand.audits.report.gap_wording import STANDING_WORDS, Gap, GapStanding, read_gaps
from evenhand.audits.report.measures import Measure, MeasureKey, read_measures
from evenhand.audits.report.provenance import is_hosted, requested_size
from evenhand.report.manifest import read_mapping, read_number, read_text, read_texts
from evenhand.report.verdicts import ALPHA, INCONCLUSIVE, LARGER
from evenhand.report.wording import format_count, format_name, format_number, format_p, format_points
from evenhand.store.run import Run

CORRECTIONS: Mapping[str, str] = {"bh": "Benjamini-Hochberg", "holm": "Holm"}


@dataclass(frozen=True, slots=True)
class Findings:
    """The gaps of a run: those of the corrected family, and the exploratory ones."""

    measures: Mapping[MeasureKey, Measure]
    primary: tuple[Gap, ...]
    exploratory: tuple[Gap, ...]
    together: tuple[str, ...] = ()
    """Where the groups of an axis differ, even if no single gap does: axis, measure, adjusted p."""

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """All of them: the corrected family first, strongest standing first, largest first."""
        order = list(STANDING_WORDS)
        return tuple(
            gap
            for family in (self.primary, self.exploratory)
            for gap in sorted(family, key=lambda gap: (order.index(gap.standing), *_size_order(gap)))
        )

    @property
    def judged_gaps(self) -> tuple[Gap, ...]:
        """The gaps the verdict speaks of: the corrected family, or the exploratory ones if that is empty."""
        return self.primary or self.exploratory

    def standing(self, standing: GapStanding) -> tuple[Gap, ...]:
        """The judged gaps of one standing, largest first."""
        return tuple(sorted((gap for gap in self.judged_gaps if gap.standing == standing), key=_size_order))

    @property
    def largest(self) -> tuple[Gap, ...]:
        """The supported gaps, largest first."""
        return self.standing("supported")

    @property
    def confirmed_gaps(self) -> tuple[Gap, ...]:
        """The supported gaps that no check doubts, largest first; all of them where each is doubted."""
        return tuple(gap for gap in self.largest if not gap.is_doubted) or self.largest

    @property
    def inconclusive(self) -> tuple[Gap, ...]:
        """The inconclusive gaps, those that could hide the most first."""
        unclear = self.standing("unclear")
        return tuple(
            sorted(unclear, key=lambda gap: -(gap.comparison.min_detectable or 0) / (gap.measure.span or 1))
        )

    @property
    def families(self) -> str:
        """Over how many comparisons the p-values of the judged gaps are corrected, and how."""
        rows = [gap.comparison for gap in self.judged_gaps]
        sizes = dict.fromkeys((row.family_size, row.correction) for row in rows)
        return ", ".join(f"{size:,} comparisons ({CORRECTIONS.get(how, how)})" for size, how in sizes)

    @property
    def headline(self) -> str:
        """The count of what was found, for a title."""
        if not self.judged_gaps:
            return "Nothing could be compared"
        if len(self.standing("missing")) == len(self.judged_gaps):
            return "No gap could be tested"
        if not self.largest:
            return f"No gap is {LARGER}, which is no proof that there is none"
        amount, doubted = len(self.largest), sum(gap.is_doubted for gap in self.largest)
        verb = "is" if amount == 1 else "are"
        doubt = f", {doubted:,} of them doubted by the permutation check" if doubted else ""
        return f"{amount:,} of {len(self.judged_gaps):,} {self.kind} {verb} {LARGER} after correction{doubt}"

    @property
    def kind(self) -> str:
        """What the judged gaps are called."""
        return "gaps" if self.primary else "exploratory gaps"

    @property
    def verdict(self) -> str:
        """The run in one sentence."""
        missing, unclear = self.standing("missing"), self.standing("unclear")
        untested, note = _describe_missing(missing), self._omnibus_note
        if not self.judged_gaps:
            return f"{self.headline}: this run holds no two groups of one axis with scores."
        if len(missing) == len(self.judged_gaps):
            return f"{self.headline}: {untested}."
        verb = "is" if len(unclear) == 1 else "are"
        doubts = f"; {len(unclear):,} {verb} {INCONCLUSIVE} at this sample size" if unclear else ""
        return f"{self.headline}{self._largest_claim}{doubts}{'; ' * bool(missing)}{untested}.{note}"

    @property
    def details(self) -> str:
        """The verdict without its headline."""
        rest = self.verdict.removeprefix(self.headline).lstrip(":; ")
        return rest[:1].upper() + rest[1:]

    @property
    def _largest_claim(self) -> str:
        """The largest gap, or how large one had to be."""
        if not self.largest:
            amount = len(self.judged_gaps)
            compared = f"{amount:,} {self.kind} were compared" if amount > 1 else "one was compared"
            return f": {compared}, and {describe_detectable(self.judged_gaps)}"
        first = self.confirmed_gaps[0]
        largest = "the largest is" if first == self.largest[0] else "the largest that no check doubts is"
        which = "it is" if len(self.largest) == 1 else largest
        return f"; {which} {first.claim.replace(': ', ', ', 1)}"

    @property
    def _omnibus_note(self) -> str:
        """What the omnibus answers add where no single gap is supported; else empty."""
        if self.largest or not self.together:
            return ""
        more = f" and {len(self.together) - 2:,} more" if len(self.together) > 2 else ""
        listed = "; ".join(self.together[:2])
        return f" Taken together, though, groups differ more than chance: {listed}{more}."


def find_gaps(run: Run) -> Findings:
    """The gaps of a run, each with its standing. Only differences are gaps; ratios stay in the table."""
    known = read_measures(run)
    gaps = read_gaps(run, known)
    return Findings(
        measures=known,
        primary=tuple(gap for gap in gaps if not gap.comparison.exploratory),
        exploratory=tuple(gap for gap in gaps if gap.comparison.exploratory),
        together=tuple(_describe_omnibus(run, known)),
    )


def _describe_omnibus(run: Run, known: Mapping[MeasureKey, Measure]) -> Iterator[str]:
    """The primary omnibus answers that are larger than chance; of two groups they only repeat the gap."""
    table = run.table("omnibus").filter(
        ~pl.col("exploratory") & (pl.col("n_groups") > 2) & (pl.col("p_adjusted") <= ALPHA)
    )
    for row in table.sort("p_adjusted").iter_rows(named=True):
        if measure := known.get((row["metric"], row["output"])):
            p = format_p(row["p_adjusted"])
            yield f"{format_name(row['axis'])}, {measure.full_title} (adjusted p {p})"


def describe_run(run: Run) -> str:
    """The run in one sentence: what is larger than chance, and what is inconclusive."""
    return find_gaps(run).verdict


def _size_order(gap: Gap) -> tuple[bool, float, str, str]:
    """Sort key: bounded measures first, by the part of their range; the others by effect size."""
    row, span = gap.comparison, gap.measure.span
    size = abs(row.estimate or 0) / span if span else abs(row.effect_size or 0)
    return span is None, -size, row.group, row.output


def _describe_missing(missing: Sequence[Gap]) -> str:
    reasons = Counter(format_name(gap.comparison.null_reason or "no estimate") for gap in missing)
    parts = ", ".join(f"{reason}: {times:,}" for reason, times in reasons.most_common(3))
    return f"{format_count(len(missing), 'gap')} could not be tested ({parts})" if missing else ""


def describe_detectable(gaps: Iterable[Gap]) -> str:
    """How large a gap had to be to be detected, from the minimum detectable gaps of the table."""
    sizes: dict[str, list[float]] = {"share": [], "mean": []}
    for gap in gaps:
        if gap.comparison.min_detectable is not None:
            sizes[gap.measure.kind].append(gap.comparison.min_detectable)
    means, shares = sizes["mean"], sizes["share"]
    if not shares and not means:
        return "how large a gap had to be to be detected is not known"
    if shares and min(shares) > 1 and not means:
        return "no gap, however large, could have been detected (80 % power)"
    shares = [min(least, 1.0) for least in shares]
    parts = []
    for known, form, unit in ((shares, format_points, " points"), (means, format_number, " in a mean")):
        if known:
            least, most = form(min(known)), form(max(known))
            ends = f"{unit} in the best measured comparison, and {most} in the worst,"
            parts.append(least + (unit if least == most else ends))
    # Two ranges end in a comma each; before a semicolon it goes.
    return f"a gap had to reach {'; or '.join(parts).replace(',;', ';')} to be detected (80 % power)"


FEW_CLUSTERS = 20
"""Below this many clusters a cluster-robust interval is itself unsure."""


def list_caveats(run: Run, findings: Findings) -> list[str]:
    """What a reader must know before repeating a number, most general first."""
    return [
        *_list_limits(run, findings),
        *_list_conditions(run),
        *list_suite_notes(run),
        *read_texts(run.manifest, "warnings"),
    ]


def _list_limits(run: Run, findings: Findings) -> Iterator[str]:
    """What holds of every run, and what its sizes and exclusions limit."""
    yield (
        "A gap that was not found may still exist. This run covers these prompts, these settings and these "
        "metrics, and nothing else a model may write."
    )
    if findings.judged_gaps:
        yield f"Over all comparisons, {describe_detectable(findings.judged_gaps)}."
    yield (
        "Every metric is an instrument with errors of its own, which may differ between groups; its card "
        "below says which are known. Read the texts before repeating a number."
    )
    if findings.exploratory and findings.primary:
        supported = sum(gap.standing == "supported" for gap in findings.exploratory)
        yield (
            f"{len(findings.exploratory):,} more comparisons are exploratory: outside the corrected family, "
            f"each family corrected for itself. {supported:,} of them have an adjusted p of at most {ALPHA}; "
            "they suggest what to test next and prove nothing."
        )
    rows = [gap.comparison for gap in findings.judged_gaps]
    few = {(row.axis, row.group) for row in rows if 0 < row.n_clusters < FEW_CLUSTERS}
    if few:
        yield (
            f"{len(few):,} {'group rests' if len(few) == 1 else 'groups rest'} on fewer than {FEW_CLUSTERS} "
            "clusters, where a few odd prompts can move a number."
        )
    if run.table("exclusions")["count"].sum():
        yield (
            "What was left out is counted by reason. If texts of one group are left out more often, its "
            "numbers describe the texts that stayed."
        )


def _list_conditions(run: Run) -> Iterator[str]:
    """A hosted model, a limit, and stages that are not finished."""
    manifest = run.manifest
    if is_hosted(read_mapping(manifest, "identity", "model")):
        mark = read_text(manifest, "served_by", "fingerprint") or read_text(manifest, "served_by", "model")
        yield (
            "The model is hosted: its answers are not repeatable. They are what it gave on "
            f"{read_text(manifest, 'created')[:10] or 'the day of the run'}{f', as {mark}' if mark else ''}."
        )
    if limit := read_number(requested_size(run), "limit"):
        yield f"The run was limited to {limit:,.0f} prompts; the suite holds more."
    for stage in ("read", "generate", "score", "compare"):
        state = read_text(manifest, "stages", stage, "state")
        if state not in ("", "done"):
            yield (
                f"The stage {stage} is not finished ({format_name(state)}): the numbers cover what was there."
            )


def list_suite_notes(run: Run) -> list[str]:
    """What a reader must know of the suites before reading a gap, a sentence each."""
    suites = read_mapping(run.manifest, "suites")
    return [
        f"{format_name(suite)}: {note}" for suite in suites for note in read_texts(suites, suite, "notes")
    ]
