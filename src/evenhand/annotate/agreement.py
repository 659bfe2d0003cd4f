"""``agreement`` and ``ratings``: how well annotators agree, and how they rate several methods.

Agreement has each annotator's deviations and one label per text; methods are compared with a baseline over
the same people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Unpack

import numpy as np
import polars as pl

from evenhand.annotate.label_set import UNORDERED, LabelSet, read_label_set, require_known
from evenhand.annotate.options import AgreementOptions, MethodRatingOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, PreparedJob, finish_run
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.core.records import Estimate
from evenhand.run_options import Recording
from evenhand.stats.agreement_coefficients import (
    annotator_figures,
    find_dissents,
    fleiss_kappa,
    item_figures,
    krippendorff_alpha,
    pair_figures,
    pairwise_spearman,
)
from evenhand.stats.bootstrap import ResamplingOptions
from evenhand.stats.consensus import (
    TOO_FEW,
    Consensus,
    DawidSkene,
    annotator_accuracy,
    dawid_skene,
    majority_vote,
)
from evenhand.stats.corrections import benjamini_hochberg
from evenhand.stats.hypothesis_tests import MethodRating, compare_methods
from evenhand.stats.label_scales import LabelScale, RatingCodes, number_or_none
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage
from evenhand.store.schemas import EVERY_SCHEMA, METHODS

COMMAND, RATINGS = "agreement", "ratings"
BASELINES = ("baseline", "vanilla")
"""Default names of the baseline method."""
TABLES = ("agreement", "annotators", "annotator_pairs", "items", "dissents", "errors")
RESAMPLES = 2_000
Row = dict[str, object]


@checks_options
def agreement(
    source: Path | str, *, progress: Progress = SILENT_PROGRESS, **options: Unpack[AgreementOptions]
) -> Run:
    """Measure inter-annotator agreement; arguments are those of ``evenhand annotate agreement``.

    ``source`` is a study folder, an export, or a table of ratings. Tables: ``agreement`` (Fleiss' kappa,
    Krippendorff's alpha, Spearman's rho), ``annotators``, ``annotator_pairs``, ``items``, ``dissents``,
    ``errors``; confidence intervals resample texts.
    """
    return prepare(source, **options).run(progress)


@checks_options
def prepare(source: Path | str, **options: Unpack[AgreementOptions]) -> PreparedJob[Run]:
    """Read and check the ratings, so that ``plan`` can be shown before ``run``."""
    rule = ConsensusRule(options["consensus"], options["agreement"], options["least"])
    labels = read_label_set(source, options)
    check_overlap(labels)
    level, seed = options["level"], options["seed"]
    how: ResamplingOptions = {"rng": seed, "resamples": RESAMPLES, "level": level}

    def compute(folder: RunFolder, progress: Progress) -> None:
        rows: dict[str, list[Row]] = {name: [] for name in TABLES}
        with run_stage(folder, COMMAND) as record, progress.step("comparing annotators", None):
            for question in labels.questions:
                for name, part in _question_tables(labels, question, rule, how).items():
                    rows[name] += [{"question": question.name, **row} for row in part]
            write_tables(folder, build_tables(rows), record)

    return label_job(
        labels,
        options,
        label_identity(COMMAND, labels, rule) | {"seed": seed, "level": level},
        compute,
        title=f"agreement of {labels.name}",
        command=f"evenhand annotate agreement {source}",
        lines=(f"label    {rule.describe()}",),
    )


@dataclass(frozen=True, slots=True)
class ConsensusRule:
    """How several labels of a text become one."""

    method: str = "majority"
    """``majority`` or ``dawid-skene``."""
    agreement: float = 0.5
    """Minimum share of ratings, or probability, of a label; a majority always needs more than half."""
    least: int = 1
    """Minimum number of ratings per item."""

    def apply(self, ratings: RatingCodes) -> tuple[Consensus, DawidSkene | None]:
        """The consensus, and the fitted model if the method has one."""
        if self.method == "majority":
            return majority_vote(ratings, agreement=self.agreement, least=self.least), None
        model = dawid_skene(ratings)
        consensus = model.consensus(ratings, probability=self.agreement)
        few = (ratings.counts().sum(axis=1) < self.least).tolist()
        labels = (None if lacks else label for label, lacks in zip(consensus.labels, few, strict=True))
        reasons = (TOO_FEW if lacks else why for why, lacks in zip(consensus.reasons, few, strict=True))
        return Consensus(tuple(labels), consensus.shares, tuple(reasons)), model

    def describe(self) -> str:
        """A description of the rule."""
        least = f", with at least {self.least} ratings" if self.least > 1 else ""
        if self.method == "dawid-skene":
            return f"Dawid and Skene's label, if its probability is above {self.agreement:g}{least}"
        share = f" and at least {self.agreement:.0%}" if self.agreement > 0.5 else ""
        return f"the label of more than half{share} of the annotators{least}"


def label_job(  # noqa: PLR0913 (the parts of a run)
    labels: LabelSet,
    options: Recording,
    identity: Mapping[str, Json],
    compute: Callable[[RunFolder, Progress], None],
    *,
    title: str,
    command: str,
    lines: Sequence[str],
    name: str = "",
    finish: Callable[[Run], object] | None = None,
) -> PreparedJob[Run]:
    """A run over human labels, of which ``compute`` writes the tables; ``finish`` gets the finished run.

    ``command`` is the command to record if the options have none, ``lines`` are those of the plan after the
    questions, and ``name`` is part of the default folder, by default that of the labels.
    """
    path = Path(options["out"] or default_folder(str(identity["command"]), name or labels.name, identity))

    def work(progress: Progress) -> Run:
        with RunFolder(path, identity=identity, fresh=options["fresh"]) as folder:
            about = {"command": options["command"] or command, "name": labels.name, "execution": {}}
            folder.manifest.update(about, warnings=list(labels.notes), ended=None)
            compute(folder, progress)
            run = finish_run(folder, ("html", "json", "md"))
        if finish:
            finish(run)
        return run

    return PreparedJob(title, (*describe_questions(labels), *lines, f"folder   {path}"), work)


def describe_questions(labels: LabelSet) -> list[str]:
    """One line per question: ratings, texts, people, and the scale."""
    lines = []
    for question in labels.questions:
        rows = labels.of(question.name)
        lines.append(
            f"{question.name:<8} {rows.height:,} ratings of {rows['item_id'].n_unique():,} texts by "
            f"{rows['annotator'].n_unique():,} people: {', '.join(question.labels)}"
        )
    return [*lines, *(f"note     {note}" for note in labels.notes)]


def write_tables(folder: RunFolder, tables: Mapping[str, pl.DataFrame], record: dict[str, Json]) -> None:
    """Write the tables and record how many rows each has."""
    for name, table in tables.items():
        folder.write(name, table)
        record[name] = table.height


def build_tables(rows: Mapping[str, Sequence[Row]]) -> dict[str, pl.DataFrame]:
    """The tables of a run over human labels, by name."""
    return {name: pl.DataFrame(part, schema=dict(EVERY_SCHEMA[name])) for name, part in rows.items()}


def flatten_estimates(fields: Mapping[str, object]) -> Row:
    """A row of these fields; each estimate becomes four columns that begin with its name."""
    row: Row = dict(fields)
    for name, value in fields.items():
        if isinstance(value, Estimate):
            ends = {f"{name}_low": value.low, f"{name}_high": value.high}
            row |= {name: value.value, **ends, f"{name}_null": value.null_reason}
    return row


def label_identity(command: str, labels: LabelSet, rule: ConsensusRule) -> dict[str, Json]:
    """The inputs and settings that identify a run over human labels."""
    return {
        "command": command,
        "inputs": {"file": labels.source.name, "digest": labels.digest},
        "questions": [question.name for question in labels.questions],
        "scales": {question.name: dict(question.places) for question in labels.questions},
        "consensus": asdict(rule),
    }


def check_overlap(labels: LabelSet) -> None:
    """Raise an error if no two people rated the same text."""
    rows = labels.rows.filter(~pl.col("is_check"))
    people = rows["annotator"].n_unique()
    if people < 2 or not rows.select("item_id", "question").is_duplicated().any():
        raise InputError(
            f"{labels.source} has "
            + (f"{people} annotator" if people < 2 else "no text that two people rated"),
            expected="at least two annotators per text, preferably three",
            fix="collect more ratings, or name the column of the annotators with --annotator",
        )


def _question_tables(
    labels: LabelSet, question: LabelScale, rule: ConsensusRule, how: ResamplingOptions
) -> dict[str, list[Row]]:
    """The rows of every table, without the column ``question``; none if nobody answered it."""
    ratings = labels.ratings(question)
    if not ratings.of_item.size:
        return {}
    consensus, model = rule.apply(ratings)
    texts, dissents = labels.texts(), find_dissents(ratings)
    places = tuple(question.places.values()) if question.is_ordered else None
    skills: Sequence[Estimate | None] = [None] * len(ratings.annotators)
    if model:
        skills = annotator_accuracy(ratings, model, rng=how["rng"], level=how["level"])
    annotators, counts = [], Counter(row.annotator for row in dissents)
    for person, skill in zip(annotator_figures(ratings, places, **how), skills, strict=True):
        passed, met = labels.checks.get(person.annotator, (None, None))
        own = {"dissents": counts[person.annotator], "checks_passed": passed, "checks_met": met}
        unknown = {} if skill else {"skill_null": "not asked for"}
        annotators.append(flatten_estimates({**person._asdict(), "skill": skill, **own, **unknown}))
    overall = list(_statistics("all", ratings, question, how))
    if (ordered := _ordered_only(ratings, question)) is not None:
        overall += _statistics("ordered", ordered, question, how)
    return {
        "agreement": overall,
        "annotators": annotators,
        "annotator_pairs": [
            flatten_estimates({**pair._asdict(), "n": pair.agreement.n})
            for pair in pair_figures(ratings, places, **how)
        ],
        "items": _items(ratings, consensus, texts),
        "dissents": [{**row._asdict(), "text": texts[row.item], "item_id": row.item} for row in dissents],
        "errors": [
            {"annotator": person, "true": true, "said": label, "probability": float(probability)}
            for person, confusion in zip(ratings.annotators, model.confusion, strict=True)
            for true, row in zip(ratings.labels, confusion, strict=True)
            for label, probability in zip(ratings.labels, row, strict=True)
        ]
        if model
        else [],
    }


def _statistics(
    categories: str, ratings: RatingCodes, question: LabelScale, how: ResamplingOptions
) -> Iterator[Row]:
    items, labels, places = ratings.of_item, ratings.of_label, tuple(question.places.values())
    estimates = {
        "fleiss_kappa": fleiss_kappa(items, labels, **how),
        "alpha_nominal": krippendorff_alpha(items, labels, scale="nominal", **how),
    }
    if question.is_ordered:
        at = np.array([np.nan if place is None else place for place in places])[labels]
        known = np.isfinite(at)
        estimates["alpha_ordinal"] = krippendorff_alpha(items[known], at[known], scale="ordinal", **how)
        if all(number_or_none(label) is not None for label in question.labels):
            estimates["alpha_interval"] = krippendorff_alpha(items[known], at[known], scale="interval", **how)
        estimates["spearman"] = pairwise_spearman(ratings, places, **how)
    for name, estimate in estimates.items():
        yield {
            **asdict(estimate),
            "categories": categories,
            "statistic": name,
            "n_items": estimate.n_clusters,
            "n_left_out": len(ratings.items) - estimate.n_clusters,
        }


def _ordered_only(ratings: RatingCodes, question: LabelScale) -> RatingCodes | None:
    """The ratings whose label alone has its place on the scale; None if that is true of all labels."""
    first_of_place: dict[float, str] = {}
    for label, place in question.places.items():
        # Mixed texts share the place of neutral ones, even if no text is labelled neutral.
        if place is not None and label not in UNORDERED:
            first_of_place.setdefault(place, label)
    main = set(first_of_place.values())
    if not question.is_ordered or len(main) in (0, len(question.places)):
        return None
    keep = np.array([label in main for label in ratings.labels])[ratings.of_label]
    codes = (of[keep] for of in (ratings.of_item, ratings.of_annotator, ratings.of_label))
    return RatingCodes(ratings.items, ratings.annotators, ratings.labels, *codes)


def _items(ratings: RatingCodes, consensus: Consensus, texts: Mapping[str, str]) -> list[Row]:
    decided = zip(ratings.items, consensus.labels, consensus.shares, consensus.reasons, strict=True)
    labels = {item: dict(zip(("label", "share", "null_reason"), own, strict=True)) for item, *own in decided}
    rows: list[Row] = []
    for row in item_figures(ratings):
        counts = zip(ratings.labels, row.counts, strict=True)
        said = ", ".join(f"{label} {count}" for label, count in counts if count)
        own = {"item_id": row.item, "text": texts[row.item], "said": said}
        rows.append({**row._asdict(), **own, **labels[row.item]})
    return rows


@checks_options
def ratings(
    source: Path | str, *, progress: Progress = SILENT_PROGRESS, **options: Unpack[MethodRatingOptions]
) -> Run:
    """Compute every method's mean and paired t test; arguments are those of ``evenhand annotate ratings``.

    ``source`` is a study whose texts have methods, or a table with a column ``method``. A participant's
    ratings of one method are averaged before they are compared (Liu et al. 2021, Table 6).
    """
    return prepare_ratings(source, **options).run(progress)


@checks_options
def prepare_ratings(source: Path | str, **options: Unpack[MethodRatingOptions]) -> PreparedJob[Run]:
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
        with run_stage(folder, RATINGS) as record, progress.step("comparing methods", None):
            table = method_table(labels, baseline=baseline, level=level)
            folder.write("methods", table)
            record["items"] = table.height

    return label_job(
        labels,
        options,
        label_identity(RATINGS, labels, ConsensusRule()) | {"baseline": baseline, "level": level},
        compute,
        title=f"ratings of {labels.name}",
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
