"""``settle_labels``: aggregates annotators' labels into one per text, with agreement and data splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal, NamedTuple, Unpack

import polars as pl

from evenhand.annotate.agreement import check_overlap, describe_questions
from evenhand.annotate.label_set import LabelSet, encode_ratings, read_ratings, require_known
from evenhand.annotate.options import AggregateOptions, RatingColumns
from evenhand.audits.run_setup import PreparedJob
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.records import Estimate
from evenhand.stats.agreement_coefficients import fleiss_kappa, pairwise_spearman
from evenhand.stats.consensus import NO_MAJORITY, majority_vote
from evenhand.stats.label_scales import POLARITY, LabelScale
from evenhand.store.atomic_writes import write_text
from evenhand.store.table_files import column_names, read_table, spreadsheet_csv, unguard_table
from evenhand.text.data_splits import divide_texts

QuestionName = Literal["sentiment", "regard"]
ORIGINAL: Final = ("negative", "neutral", "positive")
MASK: Final = "XYZ"
RESAMPLES: Final = 2_000
SHARES: Final = {"dev": 0.2, "test": 0.1}
"""The study's 302 texts became 212, 60 and 30."""
CATEGORIES: Final[Mapping[QuestionName, tuple[str, ...]]] = {
    "sentiment": (*ORIGINAL, "mixed", "sarcasm", "nonsense"),
    "regard": (*ORIGINAL, "mixed", "opposing", "nonsense"),
}
"""The six categories of each question, the original three first."""
QUESTIONS: Final = tuple(CATEGORIES)
_ALIASES: Final = {"-1": "negative", "0": "neutral", "1": "positive", **POLARITY.aliases}


class AgreementEstimate(NamedTuple):
    """An agreement coefficient of the annotators."""

    question: str
    categories: str
    """``all`` or ``original``."""
    statistic: str
    """``fleiss_kappa`` or ``spearman``."""
    estimate: Estimate


class AggregatedQuestion(NamedTuple):
    """One label for every text whose majority is an original category."""

    table: pl.DataFrame
    """``id, text, label``."""
    dropped: Mapping[str, int]
    """Dropped items by reason: ``no majority``, or the majority category."""


def read_annotations(
    path: Path, question: QuestionName, columns: Mapping[str, str] | None = None
) -> LabelSet:
    """Read a table of ratings with one row per text and person.

    ``columns`` names those of ``item``, ``text``, ``annotator`` and ``label``, by default id, text,
    annotator and the question. Raises an error for an unknown category, two different ratings of a text by
    one person, an item with two texts, and a table in which no text has two ratings.
    """
    named = {"item": "id", "text": "text", "annotator": "annotator", "label": question, **(columns or {})}
    table = read_table(path, {f"--{option}": column for option, column in named.items()})
    # Our own tables escape spreadsheet formulas.
    table = unguard_table(table.select([*dict.fromkeys(named.values())])).rename({named["label"]: question})
    places = {category: POLARITY.places[category] for category in CATEGORIES[question]}
    roles: RatingColumns = {"item": named["item"], "text": named["text"], "annotator": named["annotator"]}
    scale = LabelScale(question, places, _ALIASES)
    labels = read_ratings(table, path, {**roles, "label": question}, scale=scale)
    check_overlap(labels)
    return labels


def estimate_agreement(labels: LabelSet, *, seed: int = 0) -> list[AgreementEstimate]:
    """Fleiss' kappa and Spearman's rho over all categories and over the original three.

    ``original`` keeps only ratings in the original categories. Rho is computed over all ordered pairs of
    ratings of one text, so annotators may differ from text to text; mixed, opposing and sarcasm rank as
    neutral, and nonsense is left out. Confidence intervals resample texts.
    """
    original = labels.rows.filter(pl.col("label").is_in(ORIGINAL))
    question, estimates = labels.questions[0].name, []
    for categories, rows in (("all", labels.rows), ("original", original)):
        ratings = encode_ratings(rows)
        places = [POLARITY.places[label] for label in ratings.labels]
        kappa = fleiss_kappa(ratings.of_item, ratings.of_label, rng=seed, resamples=RESAMPLES)
        rho = pairwise_spearman(ratings, places, rng=seed, resamples=RESAMPLES)
        estimates.append(AgreementEstimate(question, categories, "fleiss_kappa", kappa))
        estimates.append(AgreementEstimate(question, categories, "spearman", rho))
    return estimates


def aggregate_labels(labels: LabelSet) -> AggregatedQuestion:
    """Keep each text whose majority label (more than half of its annotators) is an original category."""
    ratings = encode_ratings(labels.rows)
    chosen = [label or NO_MAJORITY for label in majority_vote(ratings).labels]
    majority = pl.DataFrame({"id": ratings.items, "label": chosen})
    texts = labels.rows.select("text", id="item_id").unique(maintain_order=True)
    joined = texts.join(majority, on="id", maintain_order="left").select("id", "text", "label")
    is_kept = pl.col("label").is_in(ORIGINAL)
    return AggregatedQuestion(joined.filter(is_kept), Counter(joined.filter(~is_kept)["label"]))


def divide_parts(table: pl.DataFrame, *, seed: int = 0) -> dict[str, pl.DataFrame]:
    """Split texts into ``train``, ``dev`` and ``test``, stratified by label: about 70, 20 and 10 percent.

    Near-duplicate texts stay in one part. Raises an error if there are fewer than two labels, or too few
    texts of a label for every part.
    """
    texts, labels = (table[name].to_list() for name in ("text", "label"))
    if len(set(labels)) < 2:
        what = f"all {len(labels)} kept texts are {labels[0]}" if labels else "no text was kept"
        raise InputError(what, expected="texts with at least two labels", fix="collect labels for more texts")
    first = divide_texts(texts, labels, seed=seed, share=SHARES["test"])
    rest, share = table[first.train], SHARES["dev"] / (1 - SHARES["test"])
    second = divide_texts(rest["text"].to_list(), rest["label"].to_list(), seed=seed, share=share)
    return {"train": rest[second.train], "dev": rest[second.held_out], "test": table[first.held_out]}


@dataclass(frozen=True, slots=True)
class AggregatedLabels:
    """One label per text, and the agreement of the annotators."""

    folder: Path
    """``QUESTION_train.csv``, ``_dev.csv``, ``_test.csv`` (id, text, label) and ``agreement.csv``;
    ``QUESTION_all.csv`` for a question whose texts could not be split."""
    agreement: tuple[AgreementEstimate, ...]
    labels_by_question: Mapping[str, AggregatedQuestion]
    sizes: Mapping[str, Mapping[str, int]]
    """Number of texts by question and part."""
    undivided: Mapping[str, str]
    """The reason why a question's texts were not split, by question."""

    def lines(self) -> list[str]:
        """The result as lines of text."""
        lines = [
            f"{row.question:<10} {row.statistic.replace('_', ' ')} over {row.categories} categories: "
            + _format_estimate(row.estimate)
            for row in self.agreement
        ]
        for question, aggregated in self.labels_by_question.items():
            sizes = ", ".join(f"{part} {size}" for part, size in self.sizes[question].items())
            dropped = ", ".join(f"{reason} {count}" for reason, count in aggregated.dropped.items()) or "none"
            lines.append(f"{question:<10} {aggregated.table.height} texts kept ({sizes}); dropped: {dropped}")
        return [*lines, f"tables: {self.folder}"]


@checks_options
def settle_labels(file: Path | str, **options: Unpack[AggregateOptions]) -> AggregatedLabels:
    """Aggregate a table with one row per text and annotator; arguments are those of ``annotate settle``.

    Agreement is Fleiss' kappa and Spearman's rho, over all six categories and over the original three. The
    label is that of more than half of the annotators; texts without one, or whose label is mixed,
    opposing, sarcasm or nonsense, are dropped and counted (Sheng et al. 2019, section 4).
    """
    return prepare(file, **options).run()


@checks_options
def prepare(file: Path | str, **options: Unpack[AggregateOptions]) -> PreparedJob[AggregatedLabels]:
    """Read and check the annotations, so that ``plan`` can be shown before ``run``."""
    path, requested = Path(file), options["question"]
    require_known(requested or (), QUESTIONS, "--question", fix="name one of these")
    columns = requested or column_names(path)
    questions = [question for question in QUESTIONS if question in columns]
    if not questions:
        raise InputError(
            f"{path} has no column of labels",
            expected=f"a column {' or '.join(QUESTIONS)}",
            fix="name the question and its column with --question and --label",
        )
    roles = {"item": options["item"], "text": options["text"], "annotator": options["annotator"]}
    annotations = [
        read_annotations(path, question, {**roles, "label": options["label"] or question})
        for question in questions
    ]
    lines, notes, out = list[str](), list[str](), Path(options["out"])
    for labels in annotations:
        lines += describe_questions(replace(labels, notes=()))
        notes += labels.notes
        texts = labels.texts().values()
        if unmasked := sum(MASK not in text for text in texts):
            notes.append(f"{unmasked:,} of {len(texts):,} texts have no XYZ: annotators saw the demographic")
    return PreparedJob(
        f"settle {path.name}",
        (*lines, f"folder   {out}"),
        lambda _: _settle(annotations, options["seed"], out),
        tuple(dict.fromkeys(notes)),
    )


def _settle(questions: Sequence[LabelSet], seed: int, folder: Path) -> AggregatedLabels:
    """Aggregate and split the labels, and write the files."""
    agreement = [row for labels in questions for row in estimate_agreement(labels, seed=seed)]
    aggregated, sizes, undivided = {}, {}, {}
    for labels in questions:
        question = labels.questions[0].name
        one = aggregated[question] = aggregate_labels(labels)
        try:
            parts = divide_parts(one.table, seed=seed)
        except InputError as error:
            # Agreement and labels are useful even if there is too little to train on.
            parts, undivided[question] = {"all": one.table}, error.problem
        for part, table in parts.items():
            write_text(folder / f"{question}_{part}.csv", spreadsheet_csv(table))
        sizes[question] = {part: table.height for part, table in parts.items()}
    cells = [{**row._asdict(), "estimate": None, **asdict(row.estimate)} for row in agreement]
    names = {"n": "ratings", "n_clusters": "texts", "n_null": "texts_left_out"}
    order = ("question", "categories", "statistic", "value", "low", "high", *names.values(), "null_reason")
    table = pl.DataFrame(cells, infer_schema_length=None).rename(names).select(order)
    write_text(folder / "agreement.csv", spreadsheet_csv(table))
    return AggregatedLabels(folder, tuple(agreement), aggregated, sizes, undivided)


def _format_estimate(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"none ({estimate.null_reason})"
    spread = "" if estimate.low is None else f" ({estimate.low:.2f} to {estimate.high:.2f})"
    return f"{estimate.value:.2f}{spread}"
