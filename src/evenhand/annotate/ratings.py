"""``ratings``: what people say of several methods, each against a baseline over the same people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import polars as pl

from evenhand.annotate.agreement import (
    describe_questions,
    finish_people_run,
    people_identity,
    read_source,
    write_people_manifest,
)
from evenhand.annotate.agreement_tables import ConsensusRule
from evenhand.annotate.label_set import LabelSet
from evenhand.annotate.options import MethodRatingOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.stats.corrections import benjamini_hochberg
from evenhand.stats.method_ratings import MethodRating, compare_methods
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage
from evenhand.store.schemas import METHODS

BASELINE = "baseline"
Row = dict[str, object]


def find_baseline(collected: LabelSet, named: str | None) -> str:
    """The method the others are compared with: the named one, else baseline, vanilla, or the first."""
    methods = collected.rows["method"].drop_nulls().unique(maintain_order=True).to_list()
    if len(methods) < 2:
        raise InputError(
            f"{collected.source} has texts of {len(methods)} methods",
            expected="texts of two methods or more, in a column `method`",
            fix="make the study from texts of several models or mitigations",
        )
    if named is None:
        return next((name for name in (BASELINE, "vanilla") if name in methods), methods[0])
    if named not in methods:
        raise InputError(
            f"no text is of the method {named!r}",
            expected=", ".join(methods),
            fix="name one with --baseline",
        )
    return named


def method_table(collected: LabelSet, *, baseline: str, level: float = 0.95) -> pl.DataFrame:
    """For every question on a scale and every method its mean and paired difference from the baseline.

    p-values are corrected over all questions and methods (Benjamini and Hochberg). An error where no question
    has numbers.
    """
    rows: list[Row] = []
    for question in collected.questions:
        if not question.scale.is_ordered:
            continue
        answers = collected.of(question.name).drop_nulls(["method", "code"])
        found = compare_methods(
            answers["annotator"].to_list(),
            answers["method"].to_list(),
            answers["code"].to_list(),
            baseline=baseline,
            level=level,
        )
        rows += [{"question": question.name, "baseline": baseline, **_row(of)} for of in found]
    if not rows:
        raise InputError(
            f"{collected.source} has no question whose answers have an order",
            expected="answers such as 1 to 7",
            fix="name their order, lowest first, with --scale",
        )
    tested = [row["p"] for row in rows]
    adjusted = benjamini_hochberg([p if isinstance(p, float) else None for p in tested])
    told = [row | {"p_adjusted": p} for row, p in zip(rows, adjusted, strict=True)]
    return pl.DataFrame(told, schema=dict(METHODS))


def _row(of: MethodRating) -> Row:
    gap = of.difference
    return {
        "method": of.method,
        "mean": of.mean.value,
        "low": of.mean.low,
        "high": of.mean.high,
        "difference": gap.estimate if gap else None,
        "difference_low": gap.low if gap else None,
        "difference_high": gap.high if gap else None,
        "t": gap.estimate / gap.se if gap and gap.estimate is not None and gap.se else None,
        "df": gap.df if gap else None,
        "p": gap.p if gap else None,
        "participants": of.mean.n,
        "paired": gap.n_clusters if gap else None,
        "ratings": of.ratings,
        "method_of_test": gap.method if gap else None,
        "null_reason": (gap.null_reason if gap else None) or of.mean.null_reason,
    }


COMMAND = "ratings"


@dataclass(frozen=True, slots=True)
class RatingsJob:
    """Ratings of methods that are read and checked."""

    labels: LabelSet
    baseline: str
    level: float
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        methods = self.labels.rows["method"].drop_nulls().unique(maintain_order=True).to_list()
        return RunPlan(
            f"ratings of {self.labels.name}",
            (
                *describe_questions(self.labels),
                f"methods  {', '.join(methods)}; against {self.baseline}",
                f"folder   {self.folder}",
            ),
            self.folder,
        )

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Write the table and the report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            write_people_manifest(folder, self.command, self.labels)
            with run_stage(folder, COMMAND) as record, progress.step("comparing methods", None):
                table = method_table(self.labels, baseline=self.baseline, level=self.level)
                folder.write("methods", table)
                record["items"] = table.height
            return finish_people_run(folder)


@checks_options
def ratings(
    source: Path | str, *, progress: Progress = SILENT_PROGRESS, **options: Unpack[MethodRatingOptions]
) -> Run:
    """The finished run with every method's mean and paired t test, as ``evenhand annotate ratings`` makes it.

    ``source`` is a study whose texts have methods, or a table with a column ``method``. A participant's
    ratings of one method are averaged before they are compared (Liu et al. 2021, Table 6).
    """
    return prepare(source, **options).run(progress)


@checks_options
def prepare(source: Path | str, **options: Unpack[MethodRatingOptions]) -> RatingsJob:
    """The ratings read and checked, so that ``plan`` can be shown before ``run``."""
    collected, level = read_source(source, options), options["level"]
    baseline = find_baseline(collected, options["baseline"])
    identity = people_identity(COMMAND, collected, ConsensusRule()) | {"baseline": baseline, "level": level}
    out = options["out"]
    return RatingsJob(
        labels=collected,
        baseline=baseline,
        level=level,
        identity=identity,
        folder=Path(out) if out else default_folder(COMMAND, collected.name, identity),
        command=options["command"] or f"evenhand annotate ratings {source}",
        fresh=options["fresh"],
    )
