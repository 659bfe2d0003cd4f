"""``ratings``: human ratings of several methods, each compared with a baseline over the same people."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import polars as pl

from evenhand.annotate.agreement import ConsensusRule, label_identity
from evenhand.annotate.jobs import PreparedJob, Row, label_job
from evenhand.annotate.label_set import LabelSet, read_label_set, require_known
from evenhand.annotate.options import MethodRatingOptions
from evenhand.audits.run_setup import SILENT_PROGRESS
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.stats.corrections import benjamini_hochberg
from evenhand.stats.hypothesis_tests import MethodRating, compare_methods
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, run_stage
from evenhand.store.schemas import METHODS

BASELINES = ("baseline", "vanilla")
"""Default names of the baseline method."""
COMMAND = "ratings"


@checks_options
def ratings(
    source: Path | str, *, progress: Progress = SILENT_PROGRESS, **options: Unpack[MethodRatingOptions]
) -> Run:
    """Compute every method's mean and paired t test; arguments are those of ``evenhand annotate ratings``.

    ``source`` is a study whose texts have methods, or a table with a column ``method``. A participant's
    ratings of one method are averaged before they are compared (Liu et al. 2021, Table 6).
    """
    return prepare(source, **options).run(progress)


@checks_options
def prepare(source: Path | str, **options: Unpack[MethodRatingOptions]) -> PreparedJob[Run]:
    """Read and check the ratings, so that ``plan`` can be shown before ``run``."""
    labels, level = read_label_set(source, options), options["level"]
    methods = labels.rows["method"].drop_nulls().unique(maintain_order=True).to_list()
    if len(methods) < 2:
        raise InputError(
            f"{labels.source} has texts of {len(methods)} methods",
            expected="texts of at least two methods, in a column `method`",
            fix="create the study from texts of several models or mitigations",
        )
    baseline = options["baseline"] or next((name for name in BASELINES if name in methods), methods[0])
    require_known([baseline], methods, "no text has the method", fix="name one with --baseline")

    def compute(folder: RunFolder, progress: Progress) -> None:
        with run_stage(folder, COMMAND) as record, progress.step("comparing methods", None):
            table = method_table(labels, baseline=baseline, level=level)
            folder.write("methods", table)
            record["items"] = table.height

    return label_job(
        labels,
        options,
        label_identity(COMMAND, labels, ConsensusRule()) | {"baseline": baseline, "level": level},
        compute,
        title=f"ratings of {labels.name}",
        name=labels.name,
        command=f"evenhand annotate ratings {source}",
        lines=(f"methods  {', '.join(methods)}; against {baseline}",),
    )


def method_table(labels: LabelSet, *, baseline: str, level: float = 0.95) -> pl.DataFrame:
    """The mean and paired difference from the baseline, for every question on a scale and every method.

    p-values are corrected over all questions and methods (Benjamini and Hochberg). Raises an error if no
    question has an ordinal scale.
    """
    rows: list[Row] = []
    for question in labels.questions:
        if question.is_ordered:
            answers = labels.of(question.name).drop_nulls(["method", "code"])
            columns = (answers[name].to_list() for name in ("annotator", "method", "code"))
            of_methods = compare_methods(*columns, baseline=baseline, level=level)
            rows += [{"question": question.name, "baseline": baseline, **_row(one)} for one in of_methods]
    if not rows:
        raise InputError(
            f"{labels.source} has no question with ordered answers",
            expected="answers such as 1 to 7",
            fix="give their order, lowest first, with --scale",
        )
    table = pl.DataFrame(rows, schema=dict(METHODS))
    return table.with_columns(
        p_adjusted=pl.Series(benjamini_hochberg(table["p"].to_list()), dtype=pl.Float64)
    )


def _row(rating: MethodRating) -> Row:
    mean, gap = rating.mean, rating.difference
    row: Row = {"method": rating.method, "mean": mean.value, "low": mean.low, "high": mean.high}
    row |= {"participants": mean.n, "ratings": rating.ratings, "null_reason": mean.null_reason}
    if gap:
        row |= {
            "difference": gap.estimate,
            "difference_low": gap.low,
            "difference_high": gap.high,
            "t": gap.estimate / gap.se if gap.estimate is not None and gap.se else None,
            "df": gap.df,
            "p": gap.p,
            "paired": gap.n_clusters,
            "method_of_test": gap.method,
            "null_reason": gap.null_reason or mean.null_reason,
        }
    return row
