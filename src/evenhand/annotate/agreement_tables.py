"""The tables of agreement: over all, by annotator, by pair, by item, and who differs where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from evenhand.annotate.label_mapping import UNORDERED
from evenhand.annotate.label_set import LabelSet
from evenhand.annotate.rating_files import RatedQuestion
from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
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
from evenhand.stats.label_scales import RatingCodes
from evenhand.store.schemas import AGREEMENT, ANNOTATOR_PAIRS, ANNOTATORS, DISSENTS, ERRORS, ITEMS

ConsensusMethod = Literal["majority", "dawid-skene"]
METHODS: tuple[ConsensusMethod, ...] = ("majority", "dawid-skene")
RESAMPLES = 2_000
Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class ConsensusRule:
    """How one label is made of several."""

    method: ConsensusMethod = "majority"
    agreement: float = 0.5
    """The share of ratings, or the probability, that a label needs; a majority is more than half anyway."""
    least: int = 1
    """Ratings an item needs."""

    def apply(self, ratings: RatingCodes) -> tuple[Consensus, DawidSkene | None]:
        """The consensus, and the model behind it where there is one."""
        if self.method == "majority":
            return majority_vote(ratings, agreement=self.agreement, least=self.least), None
        fitted = dawid_skene(ratings)
        found = fitted.consensus(ratings, probability=self.agreement)
        enough = ratings.counts().sum(axis=1) >= self.least
        return Consensus(
            tuple(label if keep else None for label, keep in zip(found.labels, enough, strict=True)),
            found.shares,
            tuple(
                why if keep else "too few ratings" for why, keep in zip(found.reasons, enough, strict=True)
            ),
        ), fitted


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


def check_overlap(collected: LabelSet) -> None:
    """An error where nobody rated what somebody else rated."""
    rows = collected.rows.filter(~pl.col("is_check"))
    people = rows["annotator"].n_unique()
    shared = rows.group_by("item_id", "question").len()["len"].max()
    if people < 2 or not isinstance(shared, int) or shared < 2:
        raise InputError(
            f"{collected.source} has "
            + (f"{people} annotator" if people < 2 else "no text that two people rated"),
            expected="two annotators or more for a text, better three",
            fix="collect more ratings, or name the column of the annotators with --annotator",
        )


def agreement_tables(
    collected: LabelSet, rule: ConsensusRule, *, seed: int, level: float = 0.95, resamples: int | None = None
) -> dict[str, pl.DataFrame]:
    """Every table of the run, by name."""
    rows: dict[str, list[Row]] = {name: [] for name in _SCHEMAS}
    texts = collected.texts()
    how = _Settings(seed, level, resamples or RESAMPLES)
    for question in collected.questions:
        ratings = collected.ratings(question)
        if not ratings.of_item.size:
            continue
        consensus, fitted = rule.apply(ratings)
        name = question.name
        rows["agreement"] += [{"question": name, **row} for row in _overall(ratings, question, how)]
        rows["annotators"] += _annotators(ratings, question, fitted, collected.checks or {}, how)
        rows["annotator_pairs"] += [
            {
                "question": name,
                "first": pair.first,
                "second": pair.second,
                "n": pair.agreement.n,
                **estimate_cells("agreement", pair.agreement),
                **estimate_cells("spearman", pair.spearman),
            }
            for pair in pair_figures(
                ratings, _places(question), rng=seed, resamples=how.resamples, level=level
            )
        ]
        rows["items"] += _items(ratings, consensus, name, texts)
        rows["dissents"] += [
            {
                "question": name,
                "text": texts[row.item],
                "item_id": row.item,
                **_without(row._asdict(), "item"),
            }
            for row in find_dissents(ratings)
        ]
        rows["errors"] += _errors(ratings, fitted, name)
    return {name: pl.DataFrame(found, schema=dict(_SCHEMAS[name])) for name, found in rows.items()}


def estimate_cells(name: str, found: Estimate | None) -> Row:
    """The four columns of an estimate."""
    if found is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None, f"{name}_null": "not asked for"}
    return {
        name: found.value,
        f"{name}_low": found.low,
        f"{name}_high": found.high,
        f"{name}_null": found.null_reason,
    }


_SCHEMAS = {
    "agreement": AGREEMENT,
    "annotators": ANNOTATORS,
    "annotator_pairs": ANNOTATOR_PAIRS,
    "items": ITEMS,
    "dissents": DISSENTS,
    "errors": ERRORS,
}


@dataclass(frozen=True, slots=True)
class _Settings:
    seed: int
    level: float
    resamples: int


def _places(question: RatedQuestion) -> tuple[float | None, ...] | None:
    return tuple(question.scale.places.values()) if question.scale.is_ordered else None


def _overall(ratings: RatingCodes, question: RatedQuestion, how: _Settings) -> Iterator[Row]:
    """Every statistic over all labels and, where some have no place of their own, over those that have."""
    yield from _statistics("all", ratings, question, how)
    kept = _ordered_only(ratings, question)
    if kept is not None:
        yield from _statistics("ordered", kept, question, how)


def _statistics(
    categories: str, ratings: RatingCodes, question: RatedQuestion, how: _Settings
) -> Iterator[Row]:
    items, labels = ratings.of_item, ratings.of_label
    found = {
        "fleiss_kappa": fleiss_kappa(items, labels, rng=how.seed, resamples=how.resamples, level=how.level),
        "alpha_nominal": _alpha(items, labels, "nominal", how),
    }
    places = _places(question)
    if places is not None:
        at = np.array([np.nan if place is None else place for place in places])[labels]
        known = np.isfinite(at)
        found["alpha_ordinal"] = _alpha(items[known], at[known], "ordinal", how)
        if question.scale.name == "numbers" or _is_numeric(question):
            found["alpha_interval"] = _alpha(items[known], at[known], "interval", how)
        found["spearman"] = pairwise_spearman(
            ratings, places, rng=how.seed, resamples=how.resamples, level=how.level
        )
    for name, estimate in found.items():
        yield {
            "categories": categories,
            "statistic": name,
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "level": estimate.level,
            "n": estimate.n,
            "n_items": estimate.n_clusters,
            "n_left_out": len(ratings.items) - estimate.n_clusters,
            "method": estimate.method,
            "null_reason": estimate.null_reason,
        }


def _alpha(
    items: np.ndarray, values: np.ndarray, scale: Literal["nominal", "ordinal", "interval"], how: _Settings
) -> Estimate:
    return krippendorff_alpha(
        items, values, scale=scale, rng=how.seed, resamples=how.resamples, level=how.level
    )


def _is_numeric(question: RatedQuestion) -> bool:
    return all(label.lstrip("-").replace(".", "", 1).isdigit() for label in question.scale.labels)


def _ordered_only(ratings: RatingCodes, question: RatedQuestion) -> RatingCodes | None:
    """The ratings whose label has a place that no other label shares; None where all have."""
    places = question.scale.places
    times = Counter(place for place in places.values() if place is not None)
    main = _first_of_each(places)
    if not question.scale.is_ordered or len(main) in (0, len(places)) or len(times) < 2:
        return None
    keep = np.array([label in main for label in ratings.labels])[ratings.of_label]
    rows = [ratings.of_item[keep], ratings.of_annotator[keep], ratings.of_label[keep]]
    return RatingCodes(ratings.items, ratings.annotators, ratings.labels, rows[0], rows[1], rows[2])


def _first_of_each(places: Mapping[str, float | None]) -> set[str]:
    found: dict[float, str] = {}
    for label, place in places.items():
        # Mixed texts stand with the neutral ones, also where nobody calls a text neutral.
        if place is not None and label not in UNORDERED:
            found.setdefault(place, label)
    return set(found.values())


def _annotators(
    ratings: RatingCodes,
    question: RatedQuestion,
    fitted: DawidSkene | None,
    checks: Mapping[str, tuple[int, int]],
    how: _Settings,
) -> list[Row]:
    skills: Sequence[Estimate | None] = (
        annotator_accuracy(ratings, fitted, rng=how.seed, level=how.level)
        if fitted
        else [None] * len(ratings.annotators)
    )
    alone = Counter(row.annotator for row in find_dissents(ratings))
    found: list[Row] = []
    figures = annotator_figures(
        ratings, _places(question), rng=how.seed, resamples=how.resamples, level=how.level
    )
    for row, known in zip(figures, skills, strict=True):
        passed, met = checks.get(row.annotator, (None, None))
        found.append(
            {
                "question": question.name,
                "annotator": row.annotator,
                "n": row.n,
                **estimate_cells("agreement", row.agreement),
                **estimate_cells("kappa", row.kappa),
                **estimate_cells("spearman", row.spearman),
                **estimate_cells("skill", known),
                "dissents": alone[row.annotator],
                "checks_passed": passed,
                "checks_met": met,
            }
        )
    return found


def _items(ratings: RatingCodes, consensus: Consensus, question: str, texts: Mapping[str, str]) -> list[Row]:
    at = {item: place for place, item in enumerate(ratings.items)}
    return [
        {
            "question": question,
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


def _errors(ratings: RatingCodes, fitted: DawidSkene | None, question: str) -> list[Row]:
    if fitted is None:
        return []
    return [
        {
            "question": question,
            "annotator": person,
            "true": true,
            "said": said,
            "probability": float(fitted.confusion[who, row, column]),
        }
        for who, person in enumerate(ratings.annotators)
        for row, true in enumerate(ratings.labels)
        for column, said in enumerate(ratings.labels)
    ]


def _without(row: Row, key: str) -> Row:
    return {name: value for name, value in row.items() if name != key}
