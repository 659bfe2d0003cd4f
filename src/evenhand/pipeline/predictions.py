"""What a classifier said of counterfactual sentences, as arrays: a row a set, a column a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.records import Prompt
from evenhand.stats.paired_measures import NONE

OUTPUT = "emotion"
"""The output of the metric whose label is the predicted class."""


@dataclass(frozen=True, slots=True)
class Side:
    """The sentences of one group."""

    group: str
    ids: tuple[str, ...]
    predicted: NDArray[np.intp]
    """Code of the predicted class among ``Block.labels``; -1 where there is none."""
    score: NDArray[np.float64]
    """Intensity of the predicted class; NaN where there is none."""
    intensities: NDArray[np.float64]
    """(sentences, emotions), each emotion's own intensity; NaN where it is not known."""


@dataclass(frozen=True, slots=True)
class Block:
    """The sets of one axis of a corpus in which all of some groups speak."""

    corpus: str
    axis: str
    emotions: tuple[str, ...]
    labels: tuple[str, ...]
    sets: tuple[str, ...]
    clusters: NDArray[np.str_]
    truth: NDArray[np.intp]
    """Code of the ground truth among ``labels``; -1 where there is none."""
    sides: tuple[Side, ...]

    @property
    def predicted(self) -> NDArray[np.bool_]:
        """The sets in which every side has a prediction."""
        said: NDArray[np.bool_] = np.all([side.predicted != NONE for side in self.sides], axis=0)
        return said

    def chosen(self, rows: NDArray[np.bool_]) -> Block:
        """Some of the sets."""
        places = np.flatnonzero(rows)
        sides = tuple(
            Side(
                side.group,
                tuple(side.ids[place] for place in places),
                side.predicted[rows],
                side.score[rows],
                side.intensities[rows],
            )
            for side in self.sides
        )
        names = tuple(self.sets[place] for place in places)
        return Block(
            self.corpus,
            self.axis,
            self.emotions,
            self.labels,
            names,
            self.clusters[rows],
            self.truth[rows],
            sides,
        )


@dataclass(frozen=True, slots=True)
class Predictions:
    """What one classifier said of the sentences of a run."""

    emotions: tuple[str, ...]
    labels: tuple[str, ...]
    _said: Mapping[str, tuple[int, float, tuple[float, ...]]]
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
    ) -> Predictions:
        """Prompts and their scores; ``order`` names the groups whose order is fixed, others as they come."""
        sets: dict[tuple[str, str], dict[str, dict[str, Prompt]]] = {}
        for prompt in prompts:
            for group in prompt.groups:
                of_axis = sets.setdefault((prompt.suite, group.axis), {})
                of_axis.setdefault(prompt.template_id or prompt.id, {})[group.name] = prompt
        rank = {name: place for place, name in enumerate(order)}
        groups = {
            key: tuple(
                sorted(
                    dict.fromkeys(name for one in of_axis.values() for name in one),
                    key=lambda name: rank.get(name, len(rank)),
                )
            )
            for key, of_axis in sets.items()
        }
        return cls(tuple(emotions), tuple(labels), _said(scores, emotions, labels), sets, groups)

    def pairs(self) -> Iterator[Block]:
        """Every pair of groups of every corpus and axis, in the order they are compared in."""
        for key, groups in self._groups.items():
            for pair in combinations(groups, 2):
                yield self._block(key, pair)

    def whole(self) -> Iterator[Block]:
        """Every axis of three groups or more, with the sets in which all of them speak."""
        for key, groups in self._groups.items():
            if len(groups) > 2:
                yield self._block(key, groups)

    def text(self, corpus: str, axis: str, name: str, group: str) -> str:
        """The sentence of a group in a set."""
        return self._sets[corpus, axis][name][group].text

    def _block(self, key: tuple[str, str], groups: Sequence[str]) -> Block:
        found = {name: one for name, one in self._sets[key].items() if all(group in one for group in groups)}
        firsts = [one[groups[0]] for one in found.values()]
        code = {label: place for place, label in enumerate(self.labels)}
        return Block(
            *key,
            self.emotions,
            self.labels,
            tuple(found),
            np.array([prompt.cluster for prompt in firsts], dtype=np.str_),
            np.array([code.get(prompt.meta.get("emotion", ""), NONE) for prompt in firsts], dtype=np.intp),
            tuple(self._side(group, [one[group].id for one in found.values()]) for group in groups),
        )

    def _side(self, group: str, ids: Sequence[str]) -> Side:
        nothing = (NONE, np.nan, (np.nan,) * len(self.emotions))
        rows = [self._said.get(name, nothing) for name in ids]
        return Side(
            group,
            tuple(ids),
            np.array([row[0] for row in rows], dtype=np.intp),
            np.array([row[1] for row in rows], dtype=np.float64),
            np.array([row[2] for row in rows], dtype=np.float64).reshape(len(rows), len(self.emotions)),
        )


def _said(
    scores: pl.DataFrame, emotions: Sequence[str], labels: Sequence[str]
) -> dict[str, tuple[int, float, tuple[float, ...]]]:
    code = {label: place for place, label in enumerate(labels)}
    place = {emotion: column for column, emotion in enumerate(emotions)}
    own: dict[str, list[float]] = {}
    said: dict[str, tuple[int, float]] = {}
    for name, output, value, label in scores.select("text_id", "output", "value", "label").iter_rows():
        if output == OUTPUT:
            said[name] = (code.get(label, NONE), np.nan if value is None else value)
        elif output in place:
            row = own.setdefault(name, [np.nan] * len(emotions))
            row[place[output]] = np.nan if value is None else value
    nothing = [np.nan] * len(emotions)
    return {name: (*answer, tuple(own.get(name, nothing))) for name, answer in said.items()}
