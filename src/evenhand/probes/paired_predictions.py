"""The predictions of a classifier for counterfactual sentences, as arrays: one row per set of sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, compress

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.records import Prompt
from evenhand.stats.paired_measures import NONE, find_flips, select_pairs
from evenhand.store.schemas import FLIPS, PAIR_SCORES

Row = dict[str, object]
OUTPUT = "emotion"
"""The output of the metric whose label is the predicted class."""


@dataclass(frozen=True, slots=True)
class GroupPredictions:
    """The sentences of one group."""

    group: str
    ids: tuple[str, ...]
    predicted: NDArray[np.intp]
    """Code of the predicted class among ``Block.labels``; -1 where there is none."""
    score: NDArray[np.float64]
    """Intensity of the predicted class; NaN where there is none."""
    intensities: NDArray[np.float64]
    """(sentences, emotions), each emotion's own intensity; NaN where unknown."""


@dataclass(frozen=True, slots=True)
class PairedSets:
    """The sets of one axis of a corpus that have a sentence for each of some groups."""

    corpus: str
    axis: str
    emotions: tuple[str, ...]
    labels: tuple[str, ...]
    sets: tuple[str, ...]
    clusters: NDArray[np.str_]
    truth: NDArray[np.intp]
    """Code of the ground truth among ``labels``; -1 where there is none."""
    sides: tuple[GroupPredictions, ...]

    @property
    def has_predictions(self) -> NDArray[np.bool_]:
        """The sets in which every side has a prediction."""
        known: NDArray[np.bool_] = np.all([side.predicted != NONE for side in self.sides], axis=0)
        return known

    def select(self, rows: NDArray[np.bool_]) -> PairedSets:
        """Some of the sets."""
        sides = tuple(
            replace(
                side,
                ids=tuple(compress(side.ids, rows)),
                predicted=side.predicted[rows],
                score=side.score[rows],
                intensities=side.intensities[rows],
            )
            for side in self.sides
        )
        sets, clusters, truth = tuple(compress(self.sets, rows)), self.clusters[rows], self.truth[rows]
        return replace(self, sets=sets, clusters=clusters, truth=truth, sides=sides)

    def name_pair(self, model: str) -> Row:
        """The columns that name a pair of groups in every table."""
        groups = {"group_a": self.sides[0].group, "group_b": self.sides[1].group}
        return {"corpus": self.corpus, "model": model, "axis": self.axis, **groups}


@dataclass(frozen=True, slots=True)
class PairedPredictions:
    """The predictions of one classifier for the sentences of a run."""

    emotions: tuple[str, ...]
    labels: tuple[str, ...]
    _by_id: Mapping[str, tuple[int, float, tuple[float, ...]]]
    _sets: Mapping[tuple[str, str], Mapping[str, Mapping[str, Prompt]]]
    """Corpus and axis to set to group to sentence."""
    _groups: Mapping[tuple[str, str], tuple[str, ...]]

    @classmethod
    def of(
        cls,
        prompts: Sequence[Prompt],
        scores: pl.DataFrame,
        *,
        emotions: Sequence[str],
        labels: Sequence[str],
        order: Sequence[str],
    ) -> PairedPredictions:
        """Prompts and their scores; ``order`` names the groups whose order is fixed, others as they come."""
        sets: dict[tuple[str, str], dict[str, dict[str, Prompt]]] = {}
        for prompt in prompts:
            for group in prompt.groups:
                of_axis = sets.setdefault((prompt.suite, group.axis), {})
                of_axis.setdefault(prompt.template_id or prompt.id, {})[group.name] = prompt
        rank = {name: place for place, name in enumerate(order)}
        groups = {}
        for key, of_axis in sets.items():
            names = dict.fromkeys(name for one in of_axis.values() for name in one)
            groups[key] = tuple(sorted(names, key=lambda name: rank.get(name, len(rank))))
        return cls(tuple(emotions), tuple(labels), _read_predictions(scores, emotions, labels), sets, groups)

    def pairs(self) -> Iterator[PairedSets]:
        """Every pair of groups of every corpus and axis, in the order they are compared in."""
        for key, groups in self._groups.items():
            for pair in combinations(groups, 2):
                yield self._block(key, pair)

    def whole(self) -> Iterator[PairedSets]:
        """Every axis of three groups or more, with the sets that have a sentence for each."""
        for key, groups in self._groups.items():
            if len(groups) > 2:
                yield self._block(key, groups)

    def text(self, corpus: str, axis: str, name: str, group: str) -> str:
        """The sentence of a group in a set."""
        return self._sets[corpus, axis][name][group].text

    def _block(self, key: tuple[str, str], groups: Sequence[str]) -> PairedSets:
        sets = {name: one for name, one in self._sets[key].items() if all(group in one for group in groups)}
        firsts = [one[groups[0]] for one in sets.values()]
        code = {label: place for place, label in enumerate(self.labels)}
        return PairedSets(
            *key,
            self.emotions,
            self.labels,
            tuple(sets),
            np.array([prompt.cluster for prompt in firsts], dtype=np.str_),
            np.array([code.get(prompt.meta.get("emotion", ""), NONE) for prompt in firsts], dtype=np.intp),
            tuple(self._side(group, [one[group].id for one in sets.values()]) for group in groups),
        )

    def _side(self, group: str, ids: Sequence[str]) -> GroupPredictions:
        nothing = (NONE, np.nan, (np.nan,) * len(self.emotions))
        rows = [self._by_id.get(name, nothing) for name in ids]
        return GroupPredictions(
            group,
            tuple(ids),
            np.array([row[0] for row in rows], dtype=np.intp),
            np.array([row[1] for row in rows], dtype=np.float64),
            np.array([row[2] for row in rows], dtype=np.float64).reshape(len(rows), len(self.emotions)),
        )


def _read_predictions(
    scores: pl.DataFrame, emotions: Sequence[str], labels: Sequence[str]
) -> dict[str, tuple[int, float, tuple[float, ...]]]:
    code = {label: place for place, label in enumerate(labels)}
    place = {emotion: column for column, emotion in enumerate(emotions)}
    own: dict[str, list[float]] = {}
    predicted: dict[str, tuple[int, float]] = {}
    for name, output, value, label in scores.select("text_id", "output", "value", "label").iter_rows():
        if output == OUTPUT:
            predicted[name] = (code.get(label, NONE), np.nan if value is None else value)
        elif output in place:
            row = own.setdefault(name, [np.nan] * len(emotions))
            row[place[output]] = np.nan if value is None else value
    nothing = [np.nan] * len(emotions)
    return {name: (*answer, tuple(own.get(name, nothing))) for name, answer in predicted.items()}


def build_flip_table(predictions: PairedPredictions, model: str) -> pl.DataFrame:
    """The table ``flips``: pairs whose predicted class changes with the group, with their sentences."""
    rows = [row for block in predictions.pairs() for row in _flips(block, predictions, model)]
    return pl.DataFrame(rows, schema=dict(FLIPS))


def build_score_table(predictions: PairedPredictions, model: str) -> pl.DataFrame:
    """The table ``pair_scores``: every pair, once for each emotion."""
    parts = [_scores(block, model) for block in predictions.pairs() if block.sets]
    return pl.concat(parts) if parts else pl.DataFrame(schema=dict(PAIR_SCORES))


def _flips(block: PairedSets, predictions: PairedPredictions, model: str) -> Iterator[Row]:
    first, second = block.sides
    # A code of -1 finds the last name: none.
    names = (*block.labels, None)
    for place in np.flatnonzero(find_flips(first.predicted, second.predicted)):
        name = block.sets[place]
        yield {
            **block.name_pair(model),
            "set": name,
            "emotion": names[block.truth[place]],
            "text_a": predictions.text(block.corpus, block.axis, name, first.group),
            "text_b": predictions.text(block.corpus, block.axis, name, second.group),
            "label_a": names[first.predicted[place]],
            "label_b": names[second.predicted[place]],
            "score_a": _real(first.score[place]),
            "score_b": _real(second.score[place]),
        }


def _scores(block: PairedSets, model: str) -> pl.DataFrame:
    names = (*block.labels, None)
    first, second = block.sides
    size = len(block.sets)
    shared = {
        **{column: [value] * size for column, value in block.name_pair(model).items()},
        "set": list(block.sets),
        "truth": [names[code] for code in block.truth],
        "label_a": [names[code] for code in first.predicted],
        "label_b": [names[code] for code in second.predicted],
        "predicted_a": first.score,
        "predicted_b": second.score,
    }
    parts = [
        pl.DataFrame(
            {
                **shared,
                "emotion": [emotion] * size,
                "intensity_a": first.intensities[:, place],
                "intensity_b": second.intensities[:, place],
                **_counts(block, emotion),
            },
            schema_overrides=dict(PAIR_SCORES),
        )
        for place, emotion in enumerate(block.emotions)
    ]
    return pl.concat(parts).select(list(PAIR_SCORES)).with_columns(pl.selectors.float().fill_nan(None))


def _counts(block: PairedSets, emotion: str) -> Row:
    """In which ways of measuring each pair counts for the emotion."""
    code, truth = block.labels.index(emotion), block.truth
    first, second = (side.predicted for side in block.sides)
    return {
        "agreeing": select_pairs(first, second, truth, emotion=code, pairs="agreeing", score="predicted"),
        "all_predicted": select_pairs(first, second, truth, emotion=code, pairs="all", score="predicted"),
        "all_emotion": select_pairs(first, second, truth, emotion=code, pairs="all", score="emotion"),
    }


def _real(value: np.float64) -> float | None:
    return float(value) if np.isfinite(value) else None
