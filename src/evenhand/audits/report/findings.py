"""The findings of a run in a sentence: the largest gaps, and what is inconclusive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from evenhand.audits.report.gap_wording import STANDING_WORDS, Gap, GapStanding, read_gaps
from evenhand.audits.report.measures import Measure, MeasureKey, read_measures
from evenhand.report.manifest import (
    is_hosted,
    read_mapping,
    read_number,
    read_text,
    read_texts,
    requested_size,
)
from evenhand.report.verdicts import ALPHA, INCONCLUSIVE, LARGER
from evenhand.report.wording import (
    format_name,
    format_number,
    format_p,
    format_points,
    show_control_characters,
)
from evenhand.store.run import Run

CORRECTIONS: Mapping[str, str] = {"bh": "Benjamini-Hochberg", "holm": "Holm"}
_NOTHING = f"No gap is {LARGER}, which is no proof that there is none"


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
        return _sort_gaps(self.primary) + _sort_gaps(self.exploratory)

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
        return tuple(sorted(self.standing("unclear"), key=lambda gap: -_detectable_share(gap)))

    @property
    def families(self) -> str:
        """Over how many comparisons the p-values of the judged gaps are corrected, and how."""
        sizes = dict.fromkeys(
            (gap.comparison.family_size, gap.comparison.correction) for gap in self.judged_gaps
        )
        return ", ".join(f"{size:,} comparisons ({CORRECTIONS.get(how, how)})" for size, how in sizes)

    @property
    def headline(self) -> str:
        """The count of what was found, for a title."""
        if not self.judged_gaps:
            return "Nothing could be compared"
        if len(self.standing("missing")) == len(self.judged_gaps):
            return "No gap could be tested"
        return _describe_counts(self) if self.largest else _NOTHING

    @property
    def verdict(self) -> str:
        """The run in one sentence."""
        if not self.judged_gaps:
            return "Nothing could be compared: this run holds no two groups of one axis with scores."
        if len(self.standing("missing")) == len(self.judged_gaps):
            return f"No gap could be tested: {_not_computed(self.judged_gaps)}."
        return f"{_describe_clear(self)}{_describe_inconclusive(self)}.{self.omnibus_note}"

    @property
    def details(self) -> str:
        """The verdict without its headline."""
        rest = self.verdict.removeprefix(self.headline).lstrip(":; ")
        return rest[:1].upper() + rest[1:]

    @property
    def omnibus_note(self) -> str:
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


def _sort_gaps(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    order = list(STANDING_WORDS)
    return tuple(sorted(gaps, key=lambda gap: (order.index(gap.standing), *_size_order(gap))))


def _size_order(gap: Gap) -> tuple[bool, float, str, str]:
    """Sort key: bounded measures first, by the part of their range; the others by effect size."""
    row, span = gap.comparison, gap.measure.span
    size = abs(row.estimate or 0) / span if span else abs(row.effect_size or 0)
    return span is None, -size, row.group, row.output


def _detectable_share(gap: Gap) -> float:
    return (gap.comparison.min_detectable or 0) / (gap.measure.span or 1)


def _describe_clear(findings: Findings) -> str:
    if not findings.largest:
        amount = len(findings.judged_gaps)
        compared = f"{amount:,} {_kind(findings)} were compared" if amount > 1 else "one was compared"
        return f"{_NOTHING}: {compared}, and {describe_detectable(findings.judged_gaps)}"
    is_first = findings.confirmed_gaps[0] == findings.largest[0]
    largest = "the largest is" if is_first else "the largest that no check doubts is"
    which = "it is" if len(findings.largest) == 1 else largest
    return f"{_describe_counts(findings)}; {which} {findings.confirmed_gaps[0].claim.replace(': ', ', ', 1)}"


def _describe_counts(findings: Findings) -> str:
    amount, total = len(findings.largest), len(findings.judged_gaps)
    verb = "is" if amount == 1 else "are"
    doubted = sum(gap.is_doubted for gap in findings.largest)
    doubt = f", {doubted:,} of them doubted by the permutation check" if doubted else ""
    return f"{amount:,} of {total:,} {_kind(findings)} {verb} {LARGER} after correction{doubt}"


def _kind(findings: Findings) -> str:
    return "gaps" if findings.primary else "exploratory gaps"


def _describe_inconclusive(findings: Findings) -> str:
    unclear, missing = findings.standing("unclear"), findings.standing("missing")
    verb = "is" if len(unclear) == 1 else "are"
    open_ = f"; {len(unclear):,} {verb} {INCONCLUSIVE} at this sample size" if unclear else ""
    return open_ + (f"; {_not_computed(missing)}" if missing else "")


def _not_computed(missing: Sequence[Gap]) -> str:
    reasons = Counter(format_name(gap.comparison.null_reason or "no estimate") for gap in missing)
    parts = ", ".join(f"{reason}: {times:,}" for reason, times in reasons.most_common(3))
    noun = "gap" if len(missing) == 1 else "gaps"
    return f"{len(missing):,} {noun} could not be tested ({parts})"


def describe_detectable(gaps: Iterable[Gap]) -> str:
    """How large a gap had to be to be detected, from the minimum detectable gaps of the table."""
    known = [(gap.measure.kind, gap.comparison.min_detectable) for gap in gaps]
    shares = [least for kind, least in known if kind == "share" and least is not None]
    means = [least for kind, least in known if kind == "mean" and least is not None]
    if shares and min(shares) > 1 and not means:
        return "no gap, however large, could have been detected (80 % power)"
    shares = [min(least, 1.0) for least in shares]
    parts = [
        _range(sizes, form, unit)
        for sizes, form, unit in ((shares, format_points, " points"), (means, format_number, " in a mean"))
        if sizes
    ]
    if not parts:
        return "how large a gap had to be to be detected is not known"
    # Two ranges end in a comma each; before a semicolon it goes.
    sizes = "; or ".join(parts).replace(",;", ";")
    return f"a gap had to reach {sizes} to be detected (80 % power)"


def _range(sizes: Sequence[float], form: Callable[[float], str], unit: str) -> str:
    least, most = form(min(sizes)), form(max(sizes))
    if least == most:
        return f"{least}{unit}"
    return f"{least}{unit} in the best measured comparison, and {most} in the worst,"


FEW_CLUSTERS = 20
"""Below this many clusters a cluster-robust interval is itself unsure."""


def list_caveats(run: Run, findings: Findings) -> list[str]:
    """What a reader must know before repeating a number, most general first."""
    return [
        *_always(findings),
        *_of_sizes(run, findings),
        *_of_manifest(run),
        *list_suite_notes(run),
        *(show_control_characters(warning) for warning in read_texts(run.manifest, "warnings")),
    ]


def _always(findings: Findings) -> Iterator[str]:
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


def _of_sizes(run: Run, findings: Findings) -> Iterator[str]:
    rows = [gap.comparison for gap in findings.judged_gaps]
    few = {(row.axis, row.group) for row in rows if 0 < row.n_clusters < FEW_CLUSTERS}
    if few:
        yield (
            f"{len(few):,} {'group rests' if len(few) == 1 else 'groups rest'} on fewer than {FEW_CLUSTERS} "
            "clusters, where a few odd prompts can move a number."
        )
    lost = run.table("exclusions").select(pl.col("count").sum()).item()
    if lost:
        yield (
            "What was left out is counted by reason. If texts of one group are left out more often, its "
            "numbers describe the texts that stayed."
        )


def _of_manifest(run: Run) -> Iterator[str]:
    model = read_mapping(run.manifest, "identity", "model")
    if is_hosted(model):
        served = read_mapping(run.manifest, "served_by")
        mark = read_text(served, "fingerprint") or read_text(served, "model")
        yield (
            "The model is hosted: its answers are not repeatable. They are what it gave on "
            f"{read_text(run.manifest, 'created')[:10] or 'the day of the run'}"
            f"{f', as {show_control_characters(mark)}' if mark else ''}."
        )
    limit = read_number(requested_size(run), "limit")
    if limit:
        yield f"The run was limited to {limit:,.0f} prompts; the suite holds more."
    stages = read_mapping(run.manifest, "stages")
    for stage in ("read", "generate", "score", "compare"):
        state = read_text(stages, stage, "state")
        if state not in ("", "done"):
            yield (
                f"The stage {stage} is not finished ({format_name(state)}): the numbers cover what was there."
            )


def list_suite_notes(run: Run) -> Iterator[str]:
    """What a reader must know of the suites before reading a gap, a sentence each."""
    suites = read_mapping(run.manifest, "suites")
    for suite in suites:
        for note in read_texts(suites, suite, "notes"):
            yield f"{format_name(suite)}: {show_control_characters(note)}"
