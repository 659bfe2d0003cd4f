"""The gaps of a run: the verdict on each, the words for it, and the findings of the run in a sentence.

A gap has one of four standings, read off the comparisons table:

    supported  larger than chance: the adjusted p is at most 0.05
    small      small at most: its interval leaves no room for a gap of 5 points (5 % of a mean's range)
    unclear    inconclusive: neither of both at this sample size
    missing    not testable: no estimate or no test, with a reason; more such texts would not help

Nothing here claims that there is no gap: "small" is a bound, "unclear" an admission.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import polars as pl

from evenhand.audits.report.measures import Measure, MeasureKey, read_measures
from evenhand.audits.report.provenance import is_hosted, requested_size
from evenhand.core.records import REST, Comparison
from evenhand.report.document import Cell
from evenhand.report.json_tables import null_non_finite
from evenhand.report.manifest import format_level, read_mapping, read_number, read_text, read_texts
from evenhand.report.verdicts import INCONCLUSIVE, LARGER, NOT_TESTABLE, SMALL
from evenhand.report.wording import (
    format_baseline,
    format_count,
    format_name,
    format_number,
    format_p,
    format_points,
)
from evenhand.stats.corrections import ALPHA
from evenhand.stats.results import ONE_CLUSTER
from evenhand.store.run import Run

CORRECTIONS: Mapping[str, str] = {"bh": "Benjamini-Hochberg", "holm": "Holm"}
NOTABLE = 0.05
"""A gap is small where its interval stays inside this part of the measure's range on both sides."""

GapStanding = Literal["supported", "small", "unclear", "missing"]
STANDING_WORDS: Mapping[GapStanding, str] = {
    "supported": LARGER,
    "unclear": INCONCLUSIVE,
    "small": SMALL,
    "missing": NOT_TESTABLE,
}
"""The verdict word of each standing, strongest claim first."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One comparison, its verdict, and the words for it."""

    index: int
    """Row of the comparisons table."""
    comparison: Comparison
    measure: Measure
    standing: GapStanding
    clusters: str
    """What a cluster of its suite is called."""
    level: str
    """The level of the intervals, in percent."""
    group: str
    """The group as words."""
    baseline_group: str
    """The baseline as spelled in the tables; of two groups, ``(rest)`` is the other one."""
    baseline: str
    """The baseline as words."""
    about: str
    """``about`` where a model wrote of the groups, ``of`` where a file says which group a text is of."""
    direction: str
    """``higher`` or ``lower`` than the baseline; empty where neither is known."""
    arrow: str
    """The direction of a supported gap; else empty."""
    is_doubted: bool
    """Whether the check by exchanging groups between clusters contradicts a supported gap."""
    signed_interval: str
    """The interval for a table cell; empty where there is none."""
    p: str
    """The adjusted p for a table cell; empty where there is no estimate."""
    nulls: str
    """The texts of both sides without a value, by reason; empty where there are none."""

    @property
    def claim(self) -> str:
        """The gap without its evidence: "A: 3.2 points more often negative (sentiment) than B"."""
        size, metric = self.measure.phrase(self.comparison.estimate or 0.0), format_name(self.measure.metric)
        return f"{self.group}: {size} ({metric}) than {self.baseline}"

    @property
    def statement(self) -> str:
        """The claim as a sentence without its size.

        "Texts about A are more often labelled negative (sentiment) than those about B".
        """
        is_more, measure = (self.comparison.estimate or 0) > 0, self.measure
        way = f"have a {'higher' if is_more else 'lower'} {measure.title}"
        if measure.kind == "share":
            way = f"are {'more' if is_more else 'less'} often labelled {measure.title}"
        than = f"than those {self.about} {self.baseline}"
        return f"Texts {self.about} {self.group} {way} ({format_name(measure.metric)}) {than}"

    @property
    def evidence(self) -> str:
        """Interval in the direction of the claim, adjusted p, texts of both sides and their clusters."""
        row = self.comparison
        if row.estimate is None:
            return row.null_reason or "no estimate"
        sides = f"{format_count(row.n, 'text')} against {row.n_baseline:,}"
        sizes = f"{sides}, {format_count(row.n_clusters, self.clusters)} in all"
        doubt = "; the permutation check disagrees" if self.is_doubted else ""
        interval = "no interval"
        if row.low is not None and row.high is not None:
            ends = (row.low, row.high) if row.estimate >= 0 else (-row.high, -row.low)
            interval = f"{self.level} interval {' to '.join(map(self.measure.gap, ends))}{self.measure.unit}"
        return f"{interval}; adjusted p {format_p(row.p_adjusted)}; {sizes}{doubt}"

    @property
    def doubt(self) -> str:
        """What an inconclusive gap leaves open: its interval, and what could have been detected."""
        row, unit, span = self.comparison, self.measure.unit, self.measure.span
        what = f"{self.group} against {self.baseline}, {self.measure.full_title}"
        if row.estimate is None or row.low is None or row.high is None:
            return f"{what}: {row.null_reason or 'no estimate'}"
        words = f"{what}: anywhere from {self.signed_interval}{unit}"
        if not row.low <= 0 <= row.high:
            words += f" before correction over {row.family_size:,} comparisons, so chance is not ruled out"
        if row.min_detectable is None:
            return words
        if span is not None and row.min_detectable > span:
            return f"{words}; no gap could have been detected"
        least = f"{self.measure.gap(row.min_detectable)}{unit}"
        return f"{words}; a gap had to reach {least} to be detected after correction"


def read_gaps(run: Run, known: Mapping[MeasureKey, Measure]) -> list[Gap]:
    """The differences of a run's comparisons table; ratios and other effects stay in the table."""
    table = null_non_finite(run.table("comparisons")).select([field.name for field in fields(Comparison)])
    sides = run.table("groups").group_by("suite", "axis").agg(pl.col("group").unique())
    groups = {(suite, axis): set(names) for suite, axis, names in sides.iter_rows()}
    is_written = bool(read_mapping(run.manifest, "stages", "generate"))
    level, gaps = format_level(run), []
    for index, row in enumerate(Comparison(**values) for values in table.iter_rows(named=True)):
        if row.effect != "difference":
            continue
        measure = known[row.metric, row.output]
        others = groups.get((row.suite, row.axis), set()) - {row.group}
        baseline = others.pop() if row.baseline == REST and len(others) == 1 else row.baseline
        standing, estimate = _standing(row, measure), row.estimate or 0
        direction = "higher" if estimate > 0 else "lower" if estimate < 0 else ""
        # The name of a column is no noun: of a file only prompts and rows are.
        noun = read_text(run.manifest, "suites", row.suite, "cluster")
        reasons: dict[str, int] = json.loads(row.nulls) if row.nulls else {}
        nulls = ", ".join(f"{amount:,} {format_name(reason)}" for reason, amount in reasons.items())
        gap = Gap(
            index=index,
            comparison=row,
            measure=measure,
            standing=standing,
            clusters=noun if noun and (is_written or noun in ("prompt", "row")) else "cluster",
            level=level,
            group=format_name(row.group),
            baseline_group=baseline,
            baseline=format_baseline(baseline, row.axis),
            about="about" if is_written else "of",
            direction=direction,
            arrow=direction if standing == "supported" else "",
            is_doubted=row.check == "disagrees",
            signed_interval=measure.interval(row.low, row.high),
            p="" if row.estimate is None else format_p(row.p_adjusted),
            nulls=nulls or (f"{row.n_null:,} without a value" if row.n_null else ""),
        )
        gaps.append(gap)
    return gaps


def _standing(row: Comparison, measure: Measure) -> GapStanding:
    if row.estimate is None or row.p is None:
        return "missing"
    if row.p_adjusted is not None and row.p_adjusted <= ALPHA:
        return "supported"
    if row.low is None or row.high is None or measure.span is None:
        return "unclear"
    bound = NOTABLE * measure.span
    return "small" if -bound < row.low and row.high < bound else "unclear"


OverallKey = tuple[str, str, str, str, str]
"""suite, model, axis, metric, output."""


def read_omnibus(run: Run) -> dict[OverallKey, Cell]:
    """Whether the groups of an axis differ in an output: a cell with the sentence as its hint."""
    answers: dict[OverallKey, Cell] = {}
    # Of two groups it says what their gap says.
    table = null_non_finite(run.table("omnibus")).filter(pl.col("n_groups") > 2)
    for row in table.iter_rows(named=True):
        p, reason = row["p_adjusted"], _describe_reason(row["null_reason"] or "not given")
        answer = Cell("–", hint=f"Whether the groups differ at all could not be tested: {reason}.")
        if p is not None:
            verdict = "differ by more than chance" if p <= ALPHA else f"are {INCONCLUSIVE}"
            hint = f"Taken together, the {row['n_groups']:,} groups {verdict} (adjusted p {format_p(p)})."
            answer = Cell(f"p {format_p(p)}", hint=hint, tone="differs" * (p <= ALPHA))
        answers[row["suite"], row["model"], row["axis"], row["metric"], row["output"]] = answer
    return answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The gaps of a run: those of the corrected family, and the exploratory ones."""

    measures: Mapping[MeasureKey, Measure]
    primary: tuple[Gap, ...]
    exploratory: tuple[Gap, ...]
    judged_gaps: tuple[Gap, ...]
    """The gaps the verdict speaks of: the corrected family, or the exploratory ones if that is empty."""
    gaps: tuple[Gap, ...]
    """All of them: the corrected family first, strongest standing first, largest first."""
    by_standing: Mapping[GapStanding, tuple[Gap, ...]]
    """The judged gaps of each standing, largest first."""
    confirmed_gaps: tuple[Gap, ...]
    """The supported gaps that no check doubts, largest first; all of them where each is doubted."""
    inconclusive: tuple[Gap, ...]
    """The inconclusive gaps, those that could hide the most first."""
    headline: str
    """The count of what was found, for a title."""
    verdict: str
    """The run in one sentence."""

    def measure(self, row: Mapping[str, Any]) -> Measure:
        """What a row of a table measures."""
        return self.measures[row["metric"], row["output"]]


def find_gaps(run: Run) -> Findings:
    """The gaps of a run, each with its standing. Only differences are gaps; ratios stay in the table."""
    known = read_measures(run)
    gaps = read_gaps(run, known)
    primary = tuple(gap for gap in gaps if not gap.comparison.exploratory)
    exploratory = tuple(gap for gap in gaps if gap.comparison.exploratory)
    judged = primary or exploratory
    ranked = sorted(judged, key=_rank_gap)
    by_standing = {word: tuple(gap for gap in ranked if gap.standing == word) for word in STANDING_WORDS}
    largest = by_standing["supported"]
    confirmed = tuple(gap for gap in largest if not gap.is_doubted) or largest
    headline, rest = _describe_gaps(judged, by_standing, confirmed)
    if not largest and len(by_standing["missing"]) < len(judged):
        rest += _describe_omnibus(run, known)
    unclear = sorted(
        by_standing["unclear"],
        key=lambda gap: -(gap.comparison.min_detectable or 0) / (gap.measure.span or 1),
    )
    return Findings(
        measures=known,
        primary=primary,
        exploratory=exploratory,
        judged_gaps=judged,
        gaps=tuple(sorted(gaps, key=_rank_gap)),
        by_standing=by_standing,
        confirmed_gaps=confirmed,
        inconclusive=tuple(unclear),
        headline=headline,
        verdict=headline + rest,
    )


def _rank_gap(gap: Gap) -> tuple[bool, int, bool, float, str, str]:
    """Sort key: the corrected family first, then the strongest standing, then the largest.

    Bounded measures are before others and ordered by the part of their range; the others by effect size.
    """
    row, span = gap.comparison, gap.measure.span
    size = abs(row.estimate or 0) / span if span else abs(row.effect_size or 0)
    standing = list(STANDING_WORDS).index(gap.standing)
    return bool(row.exploratory), standing, span is None, -size, row.group, row.output


def _describe_gaps(
    judged: Sequence[Gap], by_standing: Mapping[GapStanding, Sequence[Gap]], confirmed: Sequence[Gap]
) -> tuple[str, str]:
    """How many gaps are larger than chance, and the rest of the sentence: the largest, and what is open."""
    if not judged:
        return "Nothing could be compared", ": this run holds no two groups of one axis with scores."
    largest, missing = by_standing["supported"], by_standing["missing"]
    reasons = Counter(_describe_reason(gap.comparison.null_reason or "no estimate") for gap in missing)
    parts = ", ".join(f"{reason}: {times:,}" for reason, times in reasons.most_common(3))
    gaps = format_count(len(missing), "gap")
    if len(missing) == len(judged):
        return "No gap could be tested", f": {gaps} ({parts})."
    kind = "exploratory gaps" if judged[0].comparison.exploratory else "gaps"
    if largest:
        doubted, verb = sum(gap.is_doubted for gap in largest), "is" if len(largest) == 1 else "are"
        headline = f"{len(largest):,} of {len(judged):,} {kind} {verb} {LARGER} after correction"
        headline += f", {doubted:,} of them contradicted by the permutation check" if doubted else ""
        which = "the largest is" if confirmed[0] == largest[0] else "the largest that no check contradicts is"
        rest = f"; {'it is' if len(largest) == 1 else which} {confirmed[0].claim.replace(': ', ', ', 1)}"
    else:
        headline = f"No gap is {LARGER}, which does not prove that there is none"
        compared = f"{len(judged):,} {kind} were compared" if len(judged) > 1 else "one was compared"
        if missing:
            compared = f"{len(judged) - len(missing):,} of {len(judged):,} {kind} were tested"
        rest = f": {compared}, and {describe_detectable(judged)}"
    if unclear := len(by_standing["unclear"]):
        rest += f"; {unclear:,} {'is' if unclear == 1 else 'are'} {INCONCLUSIVE} at this sample size"
    return headline, f"{rest}{f'; {gaps} could not be tested ({parts})' if missing else ''}."


def _describe_reason(reason: str) -> str:
    words = format_name(reason)
    return "only one text, prompt or template in a group" if words == ONE_CLUSTER else words


def _describe_omnibus(run: Run, known: Mapping[MeasureKey, Measure]) -> str:
    """Where the groups of an axis differ although no single gap is supported; else empty.

    These are the primary omnibus answers that are larger than chance; of two groups they only repeat the gap.
    """
    table = run.table("omnibus").filter(
        ~pl.col("exploratory") & (pl.col("n_groups") > 2) & (pl.col("p_adjusted") <= ALPHA)
    )
    together = [
        f"{format_name(row['axis'])}, {measure.full_title} (adjusted p {format_p(row['p_adjusted'])})"
        for row in table.sort("p_adjusted").iter_rows(named=True)
        if (measure := known.get((row["metric"], row["output"])))
    ]
    if not together:
        return ""
    more = f" and {len(together) - 2:,} more" if len(together) > 2 else ""
    return f" Taken together, however, groups differ by more than chance: {'; '.join(together[:2])}{more}."


def describe_run(run: Run) -> str:
    """The run in one sentence: what is larger than chance, and what is inconclusive."""
    return find_gaps(run).verdict


def describe_detectable(gaps: Iterable[Gap]) -> str:
    """How large a gap had to be to be detected, from the minimum detectable gaps of the table."""
    sizes: dict[str, list[float]] = {"share": [], "mean": []}
    for gap in gaps:
        if gap.comparison.min_detectable is not None:
            sizes[gap.measure.kind].append(gap.comparison.min_detectable)
    means, shares = sizes["mean"], sizes["share"]
    if not shares and not means:
        return "the minimum detectable difference is not known"
    if shares and min(shares) > 1 and not means:
        return "no gap, however large, could have been detected (80 % power)"
    shares = [min(least, 1.0) for least in shares]
    parts = []
    for known, form, unit in ((shares, format_points, " points"), (means, format_number, " in a mean")):
        if known:
            least, most = form(min(known)), form(max(known))
            ends = f"{unit} in the most precise comparison, and {most} in the least,"
            parts.append(least + (unit if least == most else ends))
    # Two ranges end in a comma each; before a semicolon it goes.
    least = "; or ".join(parts).replace(",;", ";")
    return f"a gap had to reach {least} to be detected after correction (80 % power)"


FEW_CLUSTERS = 20
"""Below this many clusters a cluster-robust interval is itself unsure."""


def list_caveats(run: Run, findings: Findings) -> list[str]:
    """What a reader must know before repeating a number, most general first."""
    caveats = [
        "A gap that was not found may still exist. This run covers these prompts, these settings and these "
        "metrics, and nothing else a model may write."
    ]
    if findings.judged_gaps:
        caveats.append(f"Over all comparisons, {describe_detectable(findings.judged_gaps)}.")
    caveats.append(
        "Every metric is an instrument with errors of its own, which may differ between groups; its card "
        "below says which are known. Read the texts before repeating a number."
    )
    if findings.exploratory and findings.primary:
        supported = sum(gap.standing == "supported" for gap in findings.exploratory)
        caveats.append(
            f"{len(findings.exploratory):,} more comparisons are exploratory: outside the corrected family, "
            f"each corrected in its own family. {supported:,} of them have an adjusted p of at most {ALPHA}; "
            "they suggest what to test next and prove nothing."
        )
    rows = [gap.comparison for gap in findings.judged_gaps]
    few = {(row.axis, row.group) for row in rows if 0 < row.n_clusters < FEW_CLUSTERS}
    if few:
        caveats.append(
            f"{len(few):,} {'group rests' if len(few) == 1 else 'groups rest'} on fewer than {FEW_CLUSTERS} "
            "clusters, so a few unusual prompts can change the result."
        )
    if run.table("exclusions")["count"].sum():
        caveats.append(
            "What was left out is counted by reason. If texts of one group are left out more often, its "
            "numbers describe only the texts that remain."
        )
    warnings = read_texts(run.manifest, "warnings")
    return [*caveats, *_list_conditions(run), *list_suite_notes(run), *warnings]


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
                f"The stage {stage} is not finished ({format_name(state)}): the numbers cover only "
                "what was available."
            )


def list_suite_notes(run: Run) -> list[str]:
    """What a reader must know of the suites before reading a gap, a sentence each."""
    suites = read_mapping(run.manifest, "suites")
    return [
        f"{format_name(suite)}: {note}" for suite in suites for note in read_texts(suites, suite, "notes")
    ]
