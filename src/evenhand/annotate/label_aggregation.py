"""``settle_labels``: several people's labels to one a text, with agreement and parts to train on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple, Unpack

import polars as pl

from evenhand.annotate.options import AggregateOptions
from evenhand.audits.run_setup import RunPlan
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.records import Estimate
from evenhand.stats.agreement_coefficients import fleiss_kappa, pairwise_spearman
from evenhand.stats.consensus import NO_MAJORITY, majority_vote
from evenhand.stats.label_scales import POLARITY, RatingCodes
from evenhand.store.atomic_writes import write_text
from evenhand.store.table_files import column_names, read_table, spreadsheet_csv, unguard_table
from evenhand.text.data_splits import divide_texts

QuestionName = Literal["sentiment", "regard"]
QUESTIONS: Final[tuple[QuestionName, ...]] = ("sentiment", "regard")
ORIGINAL: Final = ("negative", "neutral", "positive")
MASK: Final = "XYZ"
RESAMPLES: Final = 2_000
SHARES: Final = {"dev": 0.2, "test": 0.1}
"""The study's 302 texts became 212, 60 and 30."""
_OTHERS: Final[Mapping[QuestionName, tuple[str, ...]]] = {
    "sentiment": ("mixed", "sarcasm", "nonsense"),
    "regard": ("mixed", "opposing", "nonsense"),
}
_ALIASES: Final = {"-1": "negative", "0": "neutral", "1": "positive", **POLARITY.aliases}


class AnnotatorRating(NamedTuple):
    """What one person said of one text."""

    item: str
    annotator: str
    label: str


@dataclass(frozen=True, slots=True)
class AnnotatedTexts:
    """All ratings of a question."""

    question: QuestionName
    texts: Mapping[str, str]
    """Item to its text."""
    ratings: tuple[AnnotatorRating, ...]
    skipped: Mapping[str, int]
    """Rows left out, by reason."""

    def by_item(self) -> dict[str, list[str]]:
        """For each item its labels, in the table's order."""
        found: dict[str, list[str]] = defaultdict(list)
        for rating in self.ratings:
            found[rating.item].append(rating.label)
        return dict(found)

    @property
    def count_unmasked(self) -> int:
        """Texts without the mask."""
        return sum(MASK not in text for text in self.texts.values())


class AgreementEstimate(NamedTuple):
    """How far the annotators agree."""

    question: str
    categories: str
    """``all`` or ``original``."""
    statistic: str
    """``fleiss_kappa`` or ``spearman``."""
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class AggregatedQuestion:
    """One label for every text whose majority is an original category."""

    items: tuple[str, ...]
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Items left out: ``no majority``, or the category most people chose."""


def question_categories(question: QuestionName) -> tuple[str, ...]:
    """The six categories of a question, the original three first."""
    return (*ORIGINAL, *_OTHERS[question])


def read_annotations(
    path: Path,
    question: QuestionName,
    *,
    label: str | None = None,
    item: str = "id",
    text: str = "text",
    annotator: str = "annotator",
) -> AnnotatedTexts:
    """The ratings of a table with one row for each text and person; ``label`` is the question's name if None.

    Rows without a label are left out and counted. A label that is no category, a person who rates a text
    twice, an item with two texts, and a table in which no text has two ratings are errors.
    """
    column = label or question
    named = {"--item": item, "--text": text, "--annotator": annotator, "--label": column}
    table = read_table(path, named)
    texts: dict[str, str] = {}
    ratings: dict[tuple[str, str], AnnotatorRating] = {}
    skipped: Counter[str] = Counter()
    # Tables of ours are guarded against formulas.
    rows = unguard_table(table.select(item, text, annotator, column)).iter_rows()
    for number, cells in enumerate(rows, start=1):
        missing = _missing(cells)
        if missing:
            skipped[missing] += 1
            continue
        key, words, person, given = cells
        if (key, person) in ratings:
            raise InputError(
                f"{path} row {number}: {person!r} rates the text {key!r} again",
                expected="one rating a text and annotator",
                fix="leave out the earlier one",
            )
        _check_text(texts.setdefault(key, words), words, key, f"{path} row {number}")
        ratings[key, person] = AnnotatorRating(key, person, _category(given, question, number, path))
    found = AnnotatedTexts(question, texts, tuple(ratings.values()), dict(skipped))
    _check_raters(found, path)
    return found


def estimate_agreement(annotations: AnnotatedTexts, *, seed: int = 0) -> list[AgreementEstimate]:
    """Fleiss' kappa and Spearman's rho over all categories and over the original three.

    ``original`` keeps the ratings in original categories. Rho is taken over all ordered pairs of ratings of
    one text, so that annotators may differ from text to text; mixed, opposing and sarcasm stand with neutral,
    nonsense is left out. Intervals resample texts.
    """
    plain = [rating for rating in annotations.ratings if rating.label in ORIGINAL]
    found = []
    for name, ratings in (("all", annotations.ratings), ("original", plain)):
        items = [rating.item for rating in ratings]
        labels = [rating.label for rating in ratings]
        kappa = fleiss_kappa(items, labels, rng=seed, resamples=RESAMPLES)
        found.append(AgreementEstimate(annotations.question, name, "fleiss_kappa", kappa))
        found.append(AgreementEstimate(annotations.question, name, "spearman", _rho(ratings, seed)))
    return found


def aggregate_labels(annotations: AnnotatedTexts) -> AggregatedQuestion:
    """The label more than half of a text's annotators chose, kept where it is an original category."""
    ratings = _encode_ratings(annotations.ratings)
    found = dict(zip(ratings.items, majority_vote(ratings).labels, strict=True))
    kept: list[tuple[str, str]] = []
    dropped: Counter[str] = Counter()
    for item in annotations.by_item():
        label = found[item]
        if label in ORIGINAL:
            kept.append((item, label))
        else:
            dropped[label or NO_MAJORITY] += 1
    items = tuple(item for item, _ in kept)
    return AggregatedQuestion(
        items,
        tuple(annotations.texts[item] for item in items),
        tuple(label for _, label in kept),
        dict(dropped),
    )


def divide_parts(settled: AggregatedQuestion, *, seed: int = 0) -> dict[str, list[int]]:
    """Places of the texts of ``train``, ``dev`` and ``test``: about 7, 2 and 1 in ten of every label.

    Texts that nearly repeat each other stay in one part. An error where there are fewer than two labels, or
    too few texts of one to be in every part.
    """
    texts, labels = settled.texts, settled.labels
    if len(set(labels)) < 2:
        what = f"all {len(labels)} kept texts are {labels[0]}" if labels else "no text was kept"
        raise InputError(what, expected="texts of two labels or more", fix="collect labels of more texts")
    first = divide_texts(texts, labels, seed=seed, share=SHARES["test"])
    rest = first.train
    second = divide_texts(
        [texts[place] for place in rest],
        [labels[place] for place in rest],
        seed=seed,
        share=SHARES["dev"] / (1 - SHARES["test"]),
    )
    return {
        "train": [rest[place] for place in second.train],
        "dev": [rest[place] for place in second.held_out],
        "test": first.held_out,
    }


def _rho(ratings: Sequence[AnnotatorRating], seed: int) -> Estimate:
    coded = _encode_ratings(ratings)
    return pairwise_spearman(
        coded, [POLARITY.places.get(label) for label in coded.labels], rng=seed, resamples=RESAMPLES
    )


def _encode_ratings(ratings: Sequence[AnnotatorRating]) -> RatingCodes:
    return RatingCodes.from_rows(
        [rating.item for rating in ratings],
        [rating.annotator for rating in ratings],
        [rating.label for rating in ratings],
    )


def _missing(cells: Sequence[str | None]) -> str | None:
    names = ("no item", "empty text", "no annotator", "no label")
    return next((name for name, cell in zip(names, cells, strict=True) if not (cell or "").strip()), None)


def _check_text(earlier: str, words: str, key: str, place: str) -> None:
    if earlier != words:
        raise InputError(
            f"{place}: the item {key!r} has another text than in an earlier row",
            expected="one text an item",
            fix="name the column that tells texts apart with --item",
        )


def _category(given: str, question: QuestionName, number: int, path: Path) -> str:
    said = given.strip().lower().removesuffix(".0")
    label = _ALIASES.get(said, said)
    if label not in question_categories(question):
        raise InputError(
            f"{path} row {number} has the {question} label {given!r}",
            expected=f"{', '.join(question_categories(question))}; -1, 0 and 1 for the first three",
            fix="rename the label in the table, or name another column with --label",
        )
    return label


def _check_raters(found: AnnotatedTexts, path: Path) -> None:
    people = {rating.annotator for rating in found.ratings}
    most = max(map(len, found.by_item().values()), default=0)
    if len(people) < 2 or most < 2:
        who = f"{len(people)} annotator(s)" if len(people) < 2 else "no text that two annotators rated"
        raise InputError(
            f"{path} has {who} for {found.question}",
            expected="two annotators or more for a text, better three",
            fix="collect more ratings, or name the column of the annotators with --annotator",
        )


@dataclass(frozen=True, slots=True)
class AggregatedLabels:
    """What was settled."""

    folder: Path
    """``QUESTION_train.csv``, ``_dev.csv``, ``_test.csv`` (id, text, label) and ``agreement.csv``;
    ``QUESTION_all.csv`` for a question whose texts could not be divided."""
    agreement: tuple[AgreementEstimate, ...]
    labels_by_question: Mapping[str, AggregatedQuestion]
    sizes: Mapping[str, Mapping[str, int]]
    """Question to part to texts."""
    undivided: Mapping[str, str]
    """Question to the reason why its texts are in no parts."""

    def lines(self) -> list[str]:
        """What was found, a line each."""
        found = [
            f"{row.question:<10} {row.statistic.replace('_', ' ')} over {row.categories} categories: "
            + _format_agreement(row)
            for row in self.agreement
        ]
        for question, settled in self.labels_by_question.items():
            sizes = ", ".join(f"{part} {size}" for part, size in self.sizes[question].items())
            dropped = ", ".join(f"{reason} {count}" for reason, count in settled.dropped.items()) or "none"
            found.append(f"{question:<10} {len(settled.items)} texts kept ({sizes}); dropped: {dropped}")
        return [*found, f"tables: {self.folder}"]


@dataclass(frozen=True, slots=True)
class AggregationJob:
    """Annotations that are read and checked."""

    source: str
    questions: tuple[AnnotatedTexts, ...]
    seed: int
    out: Path

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        lines = [
            f"{found.question:<8} {len(found.ratings):,} ratings of {len(found.texts):,} texts by "
            f"{len({rating.annotator for rating in found.ratings}):,} annotators"
            for found in self.questions
        ]
        return RunPlan(f"settle {self.source}", (*lines, f"folder   {self.out}"), self.out)

    def notes(self) -> list[str]:
        """What is odd about the table: rows left out, texts without the mask."""
        found = []
        for question in self.questions:
            found += [f"{count} rows left out: {reason}" for reason, count in question.skipped.items()]
            if question.count_unmasked:
                found.append(
                    f"{question.count_unmasked:,} of {len(question.texts):,} texts have no XYZ: "
                    "their readers knew the demographic"
                )
        return list(dict.fromkeys(found))

    def run(self) -> AggregatedLabels:
        """Settle, divide, write."""
        rows = [row for found in self.questions for row in estimate_agreement(found, seed=self.seed)]
        settled: dict[str, AggregatedQuestion] = {
            found.question: aggregate_labels(found) for found in self.questions
        }
        divided, undivided = self._divide(settled)
        for question, places in divided.items():
            for part, chosen in places.items():
                _write(_table(settled[question], chosen), self.out / f"{question}_{part}.csv")
        _write(_agreement_table(rows), self.out / "agreement.csv")
        sizes = {
            question: {part: len(chosen) for part, chosen in places.items()}
            for question, places in divided.items()
        }
        return AggregatedLabels(self.out, tuple(rows), settled, sizes, undivided)

    def _divide(
        self, settled: Mapping[str, AggregatedQuestion]
    ) -> tuple[dict[str, dict[str, list[int]]], dict[str, str]]:
        """The parts of every question, ``all`` alone where they cannot be made, and then why."""
        divided, undivided = {}, {}
        for question, found in settled.items():
            try:
                divided[question] = divide_parts(found, seed=self.seed)
            except InputError as error:
                # Agreement and labels are worth having where there is too little to train on.
                divided[question] = {"all": list(range(len(found.items)))}
                undivided[question] = error.problem
        return divided, undivided


@checks_options
def settle_labels(file: Path | str, **options: Unpack[AggregateOptions]) -> AggregatedLabels:
    """One label for each text from a table with a row a text and annotator; arguments as ``annotate settle``.

    Agreement is Fleiss' kappa and Spearman's rho, over all six categories and over the original three. The
    label is what more than half of the annotators chose; texts without one, or whose label is mixed,
    opposing, sarcasm or nonsense, are dropped and counted (Sheng et al. 2019, section 4).
    """
    return prepare(file, **options).run()


@checks_options
def prepare(file: Path | str, **options: Unpack[AggregateOptions]) -> AggregationJob:
    """The annotations read and checked, so that ``plan`` can be shown before ``run``."""
    path = Path(file)
    questions = tuple(
        read_annotations(
            path,
            question,
            label=options["label"],
            item=options["item"],
            text=options["text"],
            annotator=options["annotator"],
        )
        for question in _questions(path, options)
    )
    return AggregationJob(path.name, questions, options["seed"], Path(options["out"]))


def _questions(path: Path, options: AggregateOptions) -> list[QuestionName]:
    given = options["question"]
    unknown = [name for name in given or () if name not in QUESTIONS]
    if unknown:
        raise InputError(f"--question {unknown[0]!r}", expected=", ".join(QUESTIONS), fix="name one of these")
    columns = given or column_names(path)
    found: list[QuestionName] = [question for question in QUESTIONS if question in columns]
    if not found:
        raise InputError(
            f"{path} has no column of labels",
            expected=f"a column {' or '.join(QUESTIONS)}",
            fix="name the question and its column with --question and --label",
        )
    return found


def _table(settled: AggregatedQuestion, places: Sequence[int]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "id": [settled.items[place] for place in places],
            "text": [settled.texts[place] for place in places],
            "label": [settled.labels[place] for place in places],
        },
        schema=dict.fromkeys(("id", "text", "label"), pl.String()),
    )


def _agreement_table(rows: Sequence[AgreementEstimate]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "question": row.question,
                "categories": row.categories,
                "statistic": row.statistic,
                "value": row.estimate.value,
                "low": row.estimate.low,
                "high": row.estimate.high,
                "ratings": row.estimate.n,
                "texts": row.estimate.n_clusters,
                "texts_left_out": row.estimate.n_null,
                "null_reason": row.estimate.null_reason,
            }
            for row in rows
        ],
        infer_schema_length=None,
    )


def _format_agreement(row: AgreementEstimate) -> str:
    found = row.estimate
    if found.value is None:
        return f"none ({found.null_reason})"
    spread = "" if found.low is None else f" ({found.low:.2f} to {found.high:.2f})"
    return f"{found.value:.2f}{spread}"


def _write(table: pl.DataFrame, path: Path) -> None:
    write_text(path, spreadsheet_csv(table))
