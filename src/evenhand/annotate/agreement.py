"""``agreement``: how far people agree, who differs from the others and where, and one label per text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypedDict, Unpack

import numpy as np
import polars as pl

from evenhand.annotate.label_mapping import UNORDERED
from evenhand.annotate.label_set import LabelSet, RatedQuestion, RatingFileColumns, read_label_set
from evenhand.annotate.options import AgreementOptions, ConsensusOptions, RatingSource
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, split_names
from evenhand.core.protocols import Progress
from evenhand.core.records import Estimate
from evenhand.report.render_run import render
from evenhand.stats.agreement_coefficients import (
    annotator_figures,
    find_dissents,
    fleiss_kappa,
    item_figures,
    krippendorff_alpha,
    pair_figures,
    pairwise_spearman,
)
from evenhand.stats.consensus import Consensus, DawidSkene, annotator_accuracy, dawid_skene, majority_vote
from evenhand.stats.label_scales import RatingCodes, number_or_none
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage, utc_timestamp
from evenhand.store.schemas import EVERY_SCHEMA

COMMAND = "agreement"
METHODS = ("majority", "dawid-skene")
TABLES = ("agreement", "annotators", "annotator_pairs", "items", "dissents", "errors")
RESAMPLES = 2_000
Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class LabelJob:
    """A run over people's labels that are read and checked."""

    title: str
    lines: tuple[str, ...]
    """Of the plan, after those of the questions."""
    labels: LabelSet
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool
    compute: Callable[[RunFolder, Progress], None]
    """Writes the tables."""
    finish: Callable[[Run], object] | None = None
    """What is done with the finished run."""

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        lines = (*describe_questions(self.labels), *self.lines, f"folder   {self.folder}")
        return RunPlan(self.title, lines, self.folder)

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Write the tables and the report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            folder.manifest.update(
                command=self.command,
                name=self.labels.name,
                execution={},
                warnings=list(self.labels.notes),
                ended=None,
            )
            self.compute(folder, progress)
            folder.manifest["ended"] = utc_timestamp()
            folder.save_manifest()
            run = folder.run()
            render(run, ("html", "json", "md"))
        if self.finish:
            self.finish(run)
        return run


def label_identity(command: str, labels: LabelSet, rule: ConsensusRule) -> dict[str, Json]:
    """What a run over people's labels depends on."""
    return {
        "command": command,
        "inputs": {"file": labels.source.name, "digest": labels.digest},
        "questions": [question.name for question in labels.questions],
        "scales": {question.name: dict(question.scale.places) for question in labels.questions},
        "consensus": {"method": rule.method, "agreement": rule.agreement, "least": rule.least},
    }


def write_tables(folder: RunFolder, tables: Mapping[str, pl.DataFrame], record: dict[str, Json]) -> None:
    """Write the tables and record how many rows each has."""
    for name, table in tables.items():
        folder.write(name, table)
        record[name] = table.height


def build_tables(rows: Mapping[str, Sequence[Row]]) -> dict[str, pl.DataFrame]:
    """Tables of a run over people's labels, by name."""
    return {name: pl.DataFrame(part, schema=dict(EVERY_SCHEMA[name])) for name, part in rows.items()}


@checks_options
def agreement(
    source: Path | str, *, progress: Progress = SILENT_PROGRESS, **options: Unpack[AgreementOptions]
) -> Run:
    """The finished run on how far people agree; arguments are those of ``evenhand annotate agreement``.

    ``source`` is a study folder, an export, or a table of ratings. Tables: ``agreement`` (Fleiss' kappa,
    Krippendorff's alpha, Spearman's rho), ``annotators``, ``annotator_pairs``, ``items``, ``dissents``,
    ``errors``; intervals resample texts.
    """
    return prepare(source, **options).run(progress)


@checks_options
def prepare(source: Path | str, **options: Unpack[AgreementOptions]) -> LabelJob:
    """The ratings read and checked, so that ``plan`` can be shown before ``run``."""
    rule, labels = rule_of(options), read_source(source, options)
    check_overlap(labels)
    level, seed = options["level"], options["seed"]

    def compute(folder: RunFolder, progress: Progress) -> None:
        with run_stage(folder, COMMAND) as record, progress.step("comparing annotators", None):
            write_tables(folder, agreement_tables(labels, rule, seed=seed, level=level), record)

    identity = label_identity(COMMAND, labels, rule) | {"seed": seed, "level": level}
    return LabelJob(
        title=f"agreement of {labels.name}",
        lines=(f"label    {describe_rule(rule)}",),
        labels=labels,
        identity=identity,
        folder=Path(options["out"] or default_folder(COMMAND, labels.name, identity)),
        command=options["command"] or f"evenhand annotate agreement {source}",
        fresh=options["fresh"],
        compute=compute,
    )


def read_source(source: Path | str, options: RatingSource, *, cluster: str | None = None) -> LabelSet:
    """The ratings of a study or file."""
    columns = RatingFileColumns(
        item=options["item"],
        text=options["text"],
        annotator=options["annotator"],
        labels=split_names(options["label"]) or (),
        cluster=cluster,
        scale=split_names(options["scale"]) or (),
    )
    labels = read_label_set(source, columns, database=options["database"])
    return labels.select_questions(split_names(options["question"]))


def describe_questions(labels: LabelSet) -> list[str]:
    """A line for every question: ratings, texts, people, and the scale."""
    lines = []
    for question in labels.questions:
        rows = labels.of(question.name)
        lines.append(
            f"{question.name:<8} {rows.height:,} ratings of {rows['item_id'].n_unique():,} texts by "
            f"{rows['annotator'].n_unique():,} people: {', '.join(question.scale.labels)}"
        )
    return [*lines, *(f"note     {note}" for note in labels.notes)]


@dataclass(frozen=True, slots=True)
class ConsensusRule:
    """How several labels become one."""

    method: Literal["majority", "dawid-skene"] = "majority"
    agreement: float = 0.5
    """The share of ratings, or the probability, that a label needs; a majority is more than half anyway."""
    least: int = 1
    """Ratings an item needs."""

    def apply(self, ratings: RatingCodes) -> tuple[Consensus, DawidSkene | None]:
        """The consensus, and the model behind it where there is one."""
        if self.method == "majority":
            return majority_vote(ratings, agreement=self.agreement, least=self.least), None
        model = dawid_skene(ratings)
        consensus = model.consensus(ratings, probability=self.agreement)
        enough = (ratings.counts().sum(axis=1) >= self.least).tolist()
        labels = (label if has else None for label, has in zip(consensus.labels, enough, strict=True))
        reasons = (
            why if has else "too few ratings" for why, has in zip(consensus.reasons, enough, strict=True)
        )
        return Consensus(tuple(labels), consensus.shares, tuple(reasons)), model


def build_rule(method: str, agreement: float, least: int) -> ConsensusRule:
    """The rule of these options; an error for one that cannot be followed."""
    if method not in METHODS:
        raise InputError(f"--consensus {method!r}", expected=", ".join(METHODS), fix="name one of these")
    if not 0 <= agreement <= 1 or least < 1:
        raise InputError(
            f"--agreement {agreement:g} of {least} ratings or more",
            expected="a share from 0 to 1, and 1 rating or more",
            fix="try --agreement 0.66 --least 3",
        )
    return ConsensusRule("majority" if method == "majority" else "dawid-skene", agreement, least)


def rule_of(options: ConsensusOptions) -> ConsensusRule:
    """The rule that the options name."""
    return build_rule(options["consensus"], options["agreement"], options["least"])


def describe_rule(rule: ConsensusRule) -> str:
    """The rule in words."""
    least = f", from {rule.least} ratings on" if rule.least > 1 else ""
    if rule.method == "dawid-skene":
        return f"Dawid and Skene's, where its probability is above {rule.agreement:g}{least}"
    share = f" and at least {rule.agreement:.0%}" if rule.agreement > 0.5 else ""
    return f"what more than half{share} of the annotators say{least}"


def check_overlap(labels: LabelSet) -> None:
    """An error where no two people rated the same text."""
    rows = labels.rows.filter(~pl.col("is_check"))
    people = rows["annotator"].n_unique()
    most = rows.group_by("item_id", "question").len()["len"].max()
    if people < 2 or not isinstance(most, int) or most < 2:
        raise InputError(
            f"{labels.source} has "
            + (f"{people} annotator" if people < 2 else "no text that two people rated"),
            expected="two annotators or more for a text, better three",
            fix="collect more ratings, or name the column of the annotators with --annotator",
        )


class _Resampling(TypedDict):
    rng: int
    resamples: int
    level: float


def agreement_tables(
    labels: LabelSet, rule: ConsensusRule, *, seed: int, level: float = 0.95
) -> dict[str, pl.DataFrame]:
    """Every table of the run, by name."""
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    for question in labels.questions:
        if (ratings := labels.ratings(question)).of_item.size:
            how: _Resampling = {"rng": seed, "resamples": RESAMPLES, "level": level}
            for name, part in _question_tables(labels, question, ratings, rule, how).items():
                rows[name] += [{"question": question.name, **row} for row in part]
    return build_tables(rows)


def estimate_cells(**estimates: Estimate | None) -> Row:
    """The four columns of each estimate, by its name."""
    cells: Row = {}
    for name, estimate in estimates.items():
        cells[name] = estimate.value if estimate else None
        cells[f"{name}_low"] = estimate.low if estimate else None
        cells[f"{name}_high"] = estimate.high if estimate else None
        cells[f"{name}_null"] = estimate.null_reason if estimate else "not asked for"
    return cells


def _question_tables(
    labels: LabelSet, question: RatedQuestion, ratings: RatingCodes, rule: ConsensusRule, how: _Resampling
) -> dict[str, list[Row]]:
    """The rows of every table, without the question."""
    consensus, model = rule.apply(ratings)
    places, texts, dissents = _places(question), labels.texts(), find_dissents(ratings)
    overall = list(_statistics("all", ratings, question, how))
    ordered = _ordered_only(ratings, question)
    if ordered is not None:
        overall += _statistics("ordered", ordered, question, how)
    return {
        "agreement": overall,
        "annotators": _annotators(
            ratings, places, model, Counter(row.annotator for row in dissents), labels.checks or {}, how
        ),
        "annotator_pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                "n": pair.agreement.n,
                **estimate_cells(agreement=pair.agreement, spearman=pair.spearman),
            }
            for pair in pair_figures(ratings, places, **how)
        ],
        "items": _items(ratings, consensus, texts),
        "dissents": [{**row._asdict(), "text": texts[row.item], "item_id": row.item} for row in dissents],
        "errors": _errors(ratings, model) if model else [],
    }


def _places(question: RatedQuestion) -> tuple[float | None, ...] | None:
    return tuple(question.scale.places.values()) if question.scale.is_ordered else None


def _statistics(
    categories: str, ratings: RatingCodes, question: RatedQuestion, how: _Resampling
) -> Iterator[Row]:
    items, labels, places = ratings.of_item, ratings.of_label, _places(question)
    estimates = {
        "fleiss_kappa": fleiss_kappa(items, labels, **how),
        "alpha_nominal": krippendorff_alpha(items, labels, scale="nominal", **how),
    }
    if places is not None:
        at = np.array([np.nan if place is None else place for place in places])[labels]
        known = np.isfinite(at)
        estimates["alpha_ordinal"] = krippendorff_alpha(items[known], at[known], scale="ordinal", **how)
        if all(number_or_none(label) is not None for label in question.scale.labels):
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


def _ordered_only(ratings: RatingCodes, question: RatedQuestion) -> RatingCodes | None:
    """The ratings whose label has a place that no other label shares; None where all have."""
    first_of_place: dict[float, str] = {}
    for label, place in question.scale.places.items():
        # Mixed texts stand with the neutral ones, also where nobody calls a text neutral.
        if place is not None and label not in UNORDERED:
            first_of_place.setdefault(place, label)
    main = set(first_of_place.values())
    if not question.scale.is_ordered or len(main) in (0, len(question.scale.places)):
        return None
    keep = np.array([label in main for label in ratings.labels])[ratings.of_label]
    codes = (of[keep] for of in (ratings.of_item, ratings.of_annotator, ratings.of_label))
    return RatingCodes(ratings.items, ratings.annotators, ratings.labels, *codes)


def _annotators(
    ratings: RatingCodes,
    places: Sequence[float | None] | None,
    model: DawidSkene | None,
    dissents: Mapping[str, int],
    checks: Mapping[str, tuple[int, int]],
    how: _Resampling,
) -> list[Row]:
    skills: Sequence[Estimate | None] = [None] * len(ratings.annotators)
    if model:
        skills = annotator_accuracy(ratings, model, rng=how["rng"], level=how["level"])
    figures = annotator_figures(ratings, places, **how)
    return [
        {
            "annotator": row.annotator,
            "n": row.n,
            **estimate_cells(agreement=row.agreement, kappa=row.kappa, spearman=row.spearman, skill=skill),
            "dissents": dissents.get(row.annotator, 0),
            "checks_passed": checks.get(row.annotator, (None, None))[0],
            "checks_met": checks.get(row.annotator, (None, None))[1],
        }
        for row, skill in zip(figures, skills, strict=True)
    ]


def _items(ratings: RatingCodes, consensus: Consensus, texts: Mapping[str, str]) -> list[Row]:
    at = {item: place for place, item in enumerate(ratings.items)}
    return [
        {
            "item_id": row.item,
            "text": texts[row.item],
            "n": row.n,
            "said": ", ".join(
                f"{label} {count}" for label, count in zip(ratings.labels, row.counts, strict=True) if count
            ),
            "disagreement": row.disagreement,
            "label": consensus.labels[at[row.item]],
            "share": consensus.shares[at[row.item]],
            "null_reason": consensus.reasons[at[row.item]],
        }
        for row in item_figures(ratings)
    ]


def _errors(ratings: RatingCodes, model: DawidSkene) -> list[Row]:
    return [
        {"annotator": person, "true": true, "said": label, "probability": float(probability)}
        for person, confusion in zip(ratings.annotators, model.confusion, strict=True)
        for true, row in zip(ratings.labels, confusion, strict=True)
        for label, probability in zip(ratings.labels, row, strict=True)
    ]
