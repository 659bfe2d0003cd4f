"""``gate``: limits on gaps, and whether a run keeps them.

A check *passes* where the whole interval lies inside the limit and *fails* where the interval excludes it.
Otherwise it is *inconclusive*, and names the number of texts that would decide it.

Against an earlier run, what counts is how much wider a gap is on its present side. A gap that has
reversed (larger than chance on the other side) had no width there: it is wider by its whole size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, NamedTuple, Unpack, get_args

from evenhand.audits.analysis.quantities import Row
from evenhand.audits.analysis.run_changes import pair_runs
from evenhand.audits.loaded_run import check_has_comparisons, load_run
from evenhand.audits.options import GateOptions
from evenhand.audits.power import SampleSizePlanner
from evenhand.audits.report.gate_formats import to_annotations, to_junit
from evenhand.config import resolve_config
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.stats.contrasts import SHARES
from evenhand.stats.results import NO_VARIATION
from evenhand.store.atomic_writes import write_text
from evenhand.store.run import Run, run_errors

GateVerdict = Literal["passes", "fails", "inconclusive"]
RuleKind = Literal["gap", "worse"]
ANY = "*"
_MOST = 1_000.0
"""Growth beyond which a number of texts is no help."""
_ROUNDING = 1e-12
"""A change this small is none."""
FAILED = 1
DEFAULT_MARGIN = 0.05
"""How much wider a share's gap may become against a baseline run where no limit says otherwise: 5 points."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """The answer of a gate: every check, and what follows from all of them."""

    run: Run
    checks: tuple[GateCheck, ...]
    strict: bool
    level: float
    warnings: tuple[str, ...] = ()

    @property
    def verdict(self) -> GateVerdict:
        """``fails`` where a check fails, else ``inconclusive`` where one is, else ``passes``."""
        counts = self.counts
        return "fails" if counts["fails"] else "inconclusive" if counts["inconclusive"] else "passes"

    @property
    def counts(self) -> Mapping[GateVerdict, int]:
        """How many checks have each answer."""
        counts = Counter(check.verdict for check in self.checks)
        return {verdict: counts[verdict] for verdict in get_args(GateVerdict)}

    @property
    def exit_code(self) -> int:
        """0, or 1 where the gate is not passed: an inconclusive gate is passed unless it is strict."""
        fails = self.verdict == "fails" or (self.strict and self.verdict == "inconclusive")
        return FAILED if fails else 0

    @property
    def expected_false_failures(self) -> float:
        """Checks that would fail by chance at most, if every gap stood exactly at its limit."""
        return (1 - self.level) / 2 * len(self.checks)

    def junit(self) -> str:
        """The checks as JUnit XML."""
        return to_junit(self.checks, strict=self.strict, name=str(self.run.manifest["name"]))

    def annotations(self) -> list[str]:
        """The checks that do not pass as annotations of GitHub Actions."""
        return to_annotations(self.checks, strict=self.strict)


@checks_options
def gate(run: Run | Path | str, **options: Unpack[GateOptions]) -> GateResult:
    """Whether the gaps of a run keep their limits: each check passes, fails, or is inconclusive.

    Limits are written ``METRIC[.OUTPUT] AXIS[=GROUP] LIMIT``. ``max`` limits the size of a gap; ``worse``
    limits how much wider it may be than in ``baseline_run``, on its present side. What is not given
    comes from ``[gate]`` of the settings file. A limit that no comparison falls under is an error.
    """
    with run_errors(run):
        opened = run if isinstance(run, Run) else Run.open(run)
        check_has_comparisons(opened)
        settings = resolve_config({"config": options["config"]}).options
        earlier = options.get("baseline_run") or settings["baseline_run"]
        rules = _rules(
            options.get("max") or settings["max"], options.get("worse") or settings["worse"], earlier
        )
        level = float(opened.manifest["identity"].get("compare", {}).get("level", 0.95))
        changes: list[Row] = []
        joined = loaded = None
        if earlier is not None:
            loaded = load_run(opened)
            before = load_run(earlier if isinstance(earlier, Run) else Run.open(earlier))
            joined = pair_runs([before, loaded], level=level)
            changes = joined.list_changes()
        checks = check_limits(rules, opened.table("comparisons").to_dicts(), changes)
        warnings = (*joined.warnings, *reversals(checks)) if joined else ()
        if any(check.verdict == "inconclusive" for check in checks):
            planner = SampleSizePlanner(loaded or load_run(opened), level=level)
            checks = [replace(check, needs=_needs(check, planner)) for check in checks]
        strict = settings["strict"] if options.get("strict") is None else options["strict"]
        result = GateResult(opened, tuple(checks), strict, level, warnings)
        if path := options["junit"]:
            write_text(Path(path), result.junit())
        return result


def _rules(limits: Sequence[str], worse: Sequence[str], earlier: object) -> list[GateRule]:
    limits, worse = ([given] if isinstance(given, str) else given for given in (limits, worse))
    if worse and earlier is None:
        raise InputError(
            f"--worse {worse[0]!r} was given without a baseline run",
            expected="--worse together with --baseline-run RUN",
            fix="name the run of the last release",
        )
    if earlier is not None and not worse:
        worse = limits or (f"* * {DEFAULT_MARGIN}",)
    if not limits and not worse:
        raise InputError(
            "the gate has no limit",
            expected="--max 'METRIC[.OUTPUT] AXIS LIMIT', [gate] in the settings file, or --baseline-run RUN",
            fix="name the largest gap that may pass, such as --max 'sentiment.negative race 0.2'",
        )
    rules = [GateRule.parse(text) for text in limits] + [GateRule.parse(text, "worse") for text in worse]
    return list(dict.fromkeys(rules))


@dataclass(frozen=True, slots=True)
class GateRule:
    """A limit on the size of gaps: ``METRIC[.OUTPUT] AXIS[=GROUP] LIMIT``, with ``*`` for any."""

    measure: str
    """``METRIC.OUTPUT``, or ``METRIC`` for its primary outputs."""
    axis: str
    group: str
    limit: float
    kind: RuleKind = "gap"

    @classmethod
    def parse(cls, text: str, kind: RuleKind = "gap") -> GateRule:
        """The rule in words: ``sentiment.negative race 0.05``. Names of axes and groups may hold spaces."""
        measure, _, rest = text.strip().partition(" ")
        about, _, number = rest.strip().rpartition(" ")
        try:
            limit = float(number)
        except ValueError:
            limit = math.nan
        if not about or not 0 <= limit < math.inf:
            raise InputError(
                f"the limit {text!r}",
                expected="METRIC[.OUTPUT] AXIS[=GROUP] LIMIT, as 'sentiment.negative race 0.05'; * is any",
                fix="write the three parts with blanks between them",
            )
        axis, _, group = about.strip().partition("=")
        return cls(measure, axis, group or ANY, limit, kind)

    def __str__(self) -> str:
        """The rule as it is written."""
        group = "" if self.group == ANY else f"={self.group}"
        return f"{self.measure} {self.axis}{group} {self.limit:g}"

    def covers(self, row: Row) -> bool:
        """Whether the rule speaks of a comparison; without an output it speaks of the primary ones."""
        is_named = self.measure == f"{row['metric']}.{row['output']}"
        return (
            (is_named or (self.measure in (ANY, row["metric"]) and not row["exploratory"]))
            and self.axis in (ANY, row["axis"])
            and self.group in (ANY, row["group"])
        )


@dataclass(frozen=True, slots=True)
class RequiredGrowth:
    """What it would take to tell, with 80 % power if the true gap is the one seen."""

    clusters: int | None
    """Clusters instead of ``now``; null where a thousand times as many would not do."""
    now: int
    samples: float | None
    """Times the samples of the same prompts; null where no number is enough, or none is known."""
    is_by_text: bool = False
    """Whether every text is a cluster of its own, so that no prompt has more samples."""

    def __str__(self) -> str:
        """In words."""
        if self.clusters is None:
            return "the gap is so close to its limit that a thousand times as many texts would not decide"
        unit = "texts" if self.is_by_text else "clusters"
        more = f"about {self.clusters:,} {unit} instead of {self.now:,} (both sides together)"
        if self.is_by_text:
            return more
        if self.samples is None:
            return f"{more}; more samples of the same prompts would not be enough"
        return f"{more}, or {self.samples:.1f} times the samples of each prompt"


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One comparison held against one limit."""

    rule: GateRule
    suite: str
    axis: str
    group: str
    baseline: str
    metric: str
    output: str
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    n_clusters: int
    verdict: GateVerdict
    reason: str
    """Why nothing can be told, where the data give no interval."""
    needs: RequiredGrowth | None = None
    is_share: bool = False
    """Whether the gap is one of shares, and not of means."""
    reversed_from: float | None = None
    """The gap of the earlier run, where this one is larger than chance on the other side."""
    gap: float | None = None
    """The gap of this run, if it is compared with that of an earlier one."""

    @property
    def name(self) -> str:
        """The check in a line: what is held against which limit."""
        return self.format_name(f"{self.rule.limit:g}")

    @property
    def finding(self) -> str:
        """What was found, with its interval: shares from 0 to 1, as tables and other tools have them."""
        return self.format_finding(lambda size: f"{size:+.4f}")

    @property
    def subject(self) -> str:
        """Which gap is checked."""
        return f"{self.metric}.{self.output} {self.axis}: {self.group} against {self.baseline}"

    def format_name(self, limit: str) -> str:
        """The check with its limit spelled so."""
        if self.rule.kind == "worse":
            return f"{self.subject}, no wider than before by more than {limit}"
        return f"{self.subject}, at most {limit}"

    def format_finding(self, spelled: Callable[[float], str], *, unit: str = "") -> str:
        """What was found, with its numbers spelled so."""
        if self.estimate is None:
            return self.reason or "no estimate"
        word = "wider by" if self.rule.kind == "worse" else "gap"
        if self.reversed_from is not None and self.gap is not None:
            word = f"reversed from {spelled(self.reversed_from)} to {spelled(self.gap)}{unit}, {word}"
        known = [spelled(end) for end in (self.low, self.high) if end is not None]
        ends = " to ".join(known) if len(known) == 2 else "no interval"
        more = f"; {self.needs}" if self.needs else f"; {self.reason}" if self.reason else ""
        size = f"{spelled(self.estimate)}{unit}"
        return f"{word} {size} ({ends}; {self.n:,} texts, {self.n_clusters:,} clusters){more}"


def check_limits(
    rules: Sequence[GateRule], gaps: Sequence[Row], changes: Sequence[Row] = ()
) -> list[GateCheck]:
    """Every gap of a run, and every change of one since an earlier run, against the rules that cover it.

    A rule that covers none is an error, never a pass.
    """
    of_kind = {"gap": gaps, "worse": [row for row in changes if row["effect"] == "gap"]}
    return [_check(rule, row) for rule in rules for row in _select_covered(rule, of_kind[rule.kind])]


def reversals(checks: Sequence[GateCheck]) -> list[str]:
    """A sentence on each gap that has reversed: one inside its limit must be seen too."""
    gaps = dict.fromkeys(check.subject for check in checks if check.reversed_from is not None)
    return [
        f"{gap}: the gap has the opposite sign to that in the baseline run, and is larger than chance there"
        for gap in gaps
    ]


class _Size(NamedTuple):
    """What is held against a limit, with its interval."""

    estimate: float | None
    low: float | None
    high: float | None

    def mirrored(self) -> _Size:
        """The same seen from the other side."""
        return _Size(*(None if end is None else -end for end in (self.estimate, self.high, self.low)))


def _check(rule: GateRule, row: Row) -> GateCheck:
    is_change = rule.kind == "worse"
    size = _widening(row) if is_change else _Size(row["estimate"], row["low"], row["high"])
    verdict: GateVerdict = "inconclusive"
    least = -math.inf if is_change else -rule.limit
    if size.low is not None and size.high is not None:
        if size.low > rule.limit or size.high < least:
            verdict = "fails"
        elif least <= size.low and size.high <= rule.limit:
            verdict = "passes"
    names = ("suite", "axis", "group", "baseline", "metric", "output", "n", "n_clusters")
    return GateCheck(
        rule=rule,
        **{name: row[name] for name in names},
        **size._asdict(),
        verdict=verdict,
        reason=row["null_reason"] or "",
        is_share=row["method"] == SHARES,
        reversed_from=row["reference_value"] if is_change and _has_reversed(row) else None,
        gap=row["run_value"] if is_change else None,
    )


def _widening(row: Row) -> _Size:
    """How much wider a gap is on its present side, with its interval.

    Runs that agree in every cluster have not changed it. A gap that has reversed was not there before on its
    new side. It is wider by the lesser of the gap and its change, so that both must exceed a limit for the
    gate to fail: an uncertain gap before, which may never have been on the other side, makes the change
    uncertain.
    """
    wider = _Size(row["widens"], row["widens_low"], row["widens_high"])
    if row["paired"] and row["null_reason"] == NO_VARIATION and abs(wider.estimate or 0) < _ROUNDING:
        return _Size(0.0, wider.low or 0.0, wider.high or 0.0)
    if not _has_reversed(row):
        return wider
    gap = _Size(row["run_value"], row["run_low"], row["run_high"])
    change = _Size(row["estimate"], row["low"], row["high"])
    if gap.high is not None and gap.high < 0:
        gap, change = gap.mirrored(), change.mirrored()
    if gap.low is None or change.low is None:
        return gap._replace(low=None)
    return gap._replace(low=min(gap.low, change.low))


def _has_reversed(row: Row) -> bool:
    """Whether the gap is larger than chance on the other side; one that may be 0 has no side."""
    before, low, high = row["reference_value"], row["run_low"], row["run_high"]
    if before is None or low is None or high is None:
        return False
    return bool(high < 0 < before or before < 0 < low)


def _select_covered(rule: GateRule, rows: Sequence[Row]) -> list[Row]:
    covered = [row for row in rows if rule.covers(row)]
    if not covered:
        outputs = dict.fromkeys(f"{row['metric']}.{row['output']}" for row in rows)
        axes = dict.fromkeys(row["axis"] for row in rows)
        near = [] if rule.measure in {ANY, *outputs, *(row["metric"] for row in rows)} else _near(rule, rows)
        names = list(dict.fromkeys((*near, *outputs)))
        expected = f"outputs {', '.join(names[:30])}; axes {', '.join(axes)}"
        if others := [row for row in rows if replace(rule, group=ANY).covers(row)]:
            groups = dict.fromkeys(row["group"] for row in others)
            expected = f"a group with a gap on {others[0]['axis']}: {', '.join(list(groups)[:30])}"
        raise InputError(
            f"the limit {str(rule)!r} matches no comparison of this run",
            expected=expected,
            fix=f"did you mean {near[0]!r}?"
            if near
            else "correct the limit: one that matches nothing would always pass",
        )
    # Where points were meant, nothing could ever fail.
    if rule.limit > 1 and any(row["method"] == SHARES for row in covered):
        raise InputError(
            f"the limit {str(rule)!r} is above 1, and gaps of shares never are",
            expected="a limit from 0 to 1: 5 points are 0.05",
            fix="write it as a share; if it is meant for means, name their outputs",
        )
    return covered


def _near(rule: GateRule, rows: Sequence[Row]) -> list[str]:
    """The outputs most like the one a rule names, primary ones first unless another is almost that."""
    # Of "gender polarity, female", as the report has it, the rule holds the rest as its axis.
    words = rule.measure if "." in rule.measure else f"{rule.measure} {rule.axis}"
    asked = words.replace(", ", ".").replace(" ", "_").lower()
    every = list(dict.fromkeys(f"{row['metric']}.{row['output']}" for row in rows))
    primary = list(
        dict.fromkeys(f"{row['metric']}.{row['output']}" for row in rows if not row["exploratory"])
    )
    return (
        get_close_matches(asked, every, cutoff=0.95)
        or get_close_matches(asked, primary, cutoff=0.5)
        or get_close_matches(asked, every, cutoff=0.5)
    )


def _needs(check: GateCheck, planner: SampleSizePlanner) -> RequiredGrowth | None:
    """The growth at which the interval would leave the limit on the side where the gap is."""
    if check.verdict != "inconclusive" or check.estimate is None:
        return None
    size = check.estimate if check.rule.kind == "worse" else abs(check.estimate)
    growth = planner.plan_growth(asdict(check), distance=abs(size - check.rule.limit))
    if growth is None:
        return None
    clusters, samples = (None if factor is None or factor > _MOST else factor for factor in growth)
    if clusters is None:
        return RequiredGrowth(None, check.n_clusters, None)
    needed, is_by_text = math.ceil(clusters * check.n_clusters), planner.is_by_text(asdict(check))
    return RequiredGrowth(needed, check.n_clusters, samples, is_by_text)
