"""From what several people said of each text to one label, with their agreement and three parts to train on.

Six categories for sentiment and six for regard (Sheng et al. 2019, appendix A.2 and A.3). The first three are
the original ones, an ordinal scale; the other three say that a text has no place on it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats.agreement import fleiss_kappa
from evenhand.stats.annotators import pairwise_spearman
from evenhand.stats.consensus import NO_MAJORITY, majority
from evenhand.stats.ratings import Ratings
from evenhand.stats.scales import POLARITY
from evenhand.store.files import read_table
from evenhand.store.spreadsheets import unguarded_table
from evenhand.training.split import divide

Question = Literal["sentiment", "regard"]
QUESTIONS: Final[tuple[Question, ...]] = ("sentiment", "regard")
ORIGINAL: Final = ("negative", "neutral", "positive")
MASK: Final = "XYZ"
RESAMPLES: Final = 2_000
SHARES: Final = {"dev": 0.2, "test": 0.1}
"""The study's 302 texts became 212, 60 and 30."""
_OTHERS: Final[Mapping[Question, tuple[str, ...]]] = {
    "sentiment": ("mixed", "sarcasm", "nonsense"),
    "regard": ("mixed", "opposing", "nonsense"),
}
_ALIASES: Final = {"-1": "negative", "0": "neutral", "1": "positive", **POLARITY.aliases}


class Rating(NamedTuple):
    """What one person said of one text."""

    item: str
    annotator: str
    label: str


@dataclass(frozen=True, slots=True)
class Annotations:
    """All ratings of a question."""

    question: Question
    texts: Mapping[str, str]
    """Item to its text."""
    ratings: tuple[Rating, ...]
    skipped: Mapping[str, int]
    """Rows left out, by reason."""

    def by_item(self) -> dict[str, list[str]]:
        """For each item its labels, in the table's order."""
        found: dict[str, list[str]] = defaultdict(list)
        for rating in self.ratings:
            found[rating.item].append(rating.label)
        return dict(found)

    @property
    def unmasked(self) -> int:
        """Texts without the mask."""
        return sum(MASK not in text for text in self.texts.values())


class Agreement(NamedTuple):
    """How far the annotators agree."""

    question: str
    categories: str
    """``all`` or ``original``."""
    statistic: str
    """``fleiss_kappa`` or ``spearman``."""
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Settled:
    """One label for every text whose majority is an original category."""

    items: tuple[str, ...]
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Items left out: ``no majority``, or the category most people chose."""


def categories(question: Question) -> tuple[str, ...]:
    """The six categories of a question, the original three first."""
    return (*ORIGINAL, *_OTHERS[question])


def read_annotations(
    path: Path,
    question: Question,
    *,
    label: str | None = None,
    item: str = "id",
    text: str = "text",
    annotator: str = "annotator",
) -> Annotations:
    """The ratings of a table with one row for each text and person; ``label`` is the question's name if None.

    Rows without a label are left out and counted. A label that is no category, a person who rates a text
    twice, an item with two texts, and a table in which no text has two ratings are errors.
    """
    column = label or question
    named = {"--item": item, "--text": text, "--annotator": annotator, "--label": column}
    table = read_table(path, named)
    texts: dict[str, str] = {}
    ratings: dict[tuple[str, str], Rating] = {}
    skipped: Counter[str] = Counter()
    # Tables of ours are guarded against formulas.
    rows = unguarded_table(table.select(item, text, annotator, column)).iter_rows()
    for number, cells in enumerate(rows, start=1):
        missing = _missing(cells)
        if missing:
            skipped[missing] += 1
            continue
        key, words, person, given = cells
        if (key, person) in ratings:
            raise InputError(
                f"{path} row {number}: {person!r} rates the text {key!r} again",
                accepted="one rating a text and annotator",
                todo="leave out the earlier one",
            )
        _check_text(texts.setdefault(key, words), words, key, f"{path} row {number}")
        ratings[key, person] = Rating(key, person, _category(given, question, number, path))
    found = Annotations(question, texts, tuple(ratings.values()), dict(skipped))
    _check_raters(found, path)
    return found


def agreement(annotations: Annotations, *, seed: int = 0) -> list[Agreement]:
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
        found.append(Agreement(annotations.question, name, "fleiss_kappa", kappa))
        found.append(Agreement(annotations.question, name, "spearman", _rho(ratings, seed)))
    return found


def settle(annotations: Annotations) -> Settled:
    """The label more than half of a text's annotators chose, kept where it is an original category."""
    ratings = _coded(annotations.ratings)
    found = dict(zip(ratings.items, majority(ratings).labels, strict=True))
    kept: list[tuple[str, str]] = []
    dropped: Counter[str] = Counter()
    for item in annotations.by_item():
        label = found[item]
        if label in ORIGINAL:
            kept.append((item, label))
        else:
            dropped[label or NO_MAJORITY] += 1
    items = tuple(item for item, _ in kept)
    return Settled(
        items,
        tuple(annotations.texts[item] for item in items),
        tuple(label for _, label in kept),
        dict(dropped),
    )


def parts(settled: Settled, *, seed: int = 0) -> dict[str, list[int]]:
    """Places of the texts of ``train``, ``dev`` and ``test``: about 7, 2 and 1 in ten of every label.

    Texts that nearly repeat each other stay in one part. An error where there are fewer than two labels, or
    too few texts of one to be in every part.
    """
    texts, labels = settled.texts, settled.labels
    if len(set(labels)) < 2:
        what = f"all {len(labels)} kept texts are {labels[0]}" if labels else "no text was kept"
        raise InputError(what, accepted="texts of two labels or more", todo="collect labels of more texts")
    first = divide(texts, labels, seed=seed, share=SHARES["test"])
    rest = first.train
    second = divide(
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


def _rho(ratings: Sequence[Rating], seed: int) -> Estimate:
    coded = _coded(ratings)
    return pairwise_spearman(
        coded, [POLARITY.places.get(label) for label in coded.labels], rng=seed, resamples=RESAMPLES
    )


def _coded(ratings: Sequence[Rating]) -> Ratings:
    return Ratings.from_rows(
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
            accepted="one text an item",
            todo="name the column that tells texts apart with --item",
        )


def _category(given: str, question: Question, number: int, path: Path) -> str:
    said = given.strip().lower().removesuffix(".0")
    label = _ALIASES.get(said, said)
    if label not in categories(question):
        raise InputError(
            f"{path} row {number} has the {question} label {given!r}",
            accepted=f"{', '.join(categories(question))}; -1, 0 and 1 for the first three",
            todo="rename the label in the table, or name another column with --label",
        )
    return label


def _check_raters(found: Annotations, path: Path) -> None:
    people = {rating.annotator for rating in found.ratings}
    most = max(map(len, found.by_item().values()), default=0)
    if len(people) < 2 or most < 2:
        who = f"{len(people)} annotator(s)" if len(people) < 2 else "no text that two annotators rated"
        raise InputError(
            f"{path} has {who} for {found.question}",
            accepted="two annotators or more for a text, better three",
            todo="collect more ratings, or name the column of the annotators with --annotator",
        )
