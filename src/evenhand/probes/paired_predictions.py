"""The predictions of a classifier for counterfactual sentences, as arrays: one row per set of sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

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
class PairedSets:
    """The sets of one corpus and axis that have a sentence for each of the given groups."""

    corpus: str
    axis: str
    groups: tuple[str, ...]
    emotions: tuple[str, ...]
    labels: tuple[str, ...]
    sets: NDArray[np.str_]
    texts: NDArray[np.object_]
    """(sets, groups): the sentences."""
    clusters: NDArray[np.str_]
    truth: NDArray[np.intp]
    """Code of the ground truth among ``labels``; -1 if there is none."""
    predicted: NDArray[np.intp]
    """(sets, groups): code of the predicted class among ``labels``; -1 if there is none."""
    score: NDArray[np.float64]
    """(sets, groups): intensity of the predicted class; NaN if there is none."""
    intensities: NDArray[np.float64]
    """(sets, groups, emotions): each emotion's own intensity; NaN where unknown."""

    def select(self, rows: NDArray[np.bool_]) -> PairedSets:
        """The selected sets."""
        names = ("sets", "texts", "clusters", "truth", "predicted", "score", "intensities")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def with_predictions(self) -> PairedSets:
        """The sets in which every side has a prediction."""
        return self.select(np.all(self.predicted != NONE, axis=1))

    def name_pair(self, model: str) -> Row:
        """The columns that name a pair of groups in every table."""
        groups = {"group_a": self.groups[0], "group_b": self.groups[1]}
        return {"corpus": self.corpus, "model": model, "axis": self.axis, **groups}

    def name_classes(self, codes: NDArray[np.intp]) -> list[str | None]:
        """The names of classes; null for the code `NONE`."""
        names = (*self.labels, None)
        return [names[code] for code in codes]


@dataclass(frozen=True, slots=True)
class PairedPredictions:
    """The predictions of one classifier for the sentences of a run."""

    emotions: tuple[str, ...]
    labels: tuple[str, ...]
    _sets: Mapping[tuple[str, str], Mapping[str, Mapping[str, Prompt]]]
    """Corpus and axis to set to group to sentence."""
    _groups: Mapping[tuple[str, str], tuple[str, ...]]
    _rows: Mapping[str, int]
    """The row of a sentence in the arrays; the last row stands for sentences without a prediction."""
    _predicted: NDArray[np.intp]
    _score: NDArray[np.float64]
    _intensities: NDArray[np.float64]

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
        """Build from prompts and scores; groups in ``order`` come first, others in order of appearance."""
        sets: dict[tuple[str, str], dict[str, dict[str, Prompt]]] = {}
        for prompt in prompts:
            for group in prompt.groups:
                axis_sets = sets.setdefault((prompt.suite, group.axis), {})
                axis_sets.setdefault(prompt.template_id or prompt.id, {})[group.name] = prompt
        rank = {name: place for place, name in enumerate(order)}
        groups = {}
        for key, axis_sets in sets.items():
            names = dict.fromkeys(name for one in axis_sets.values() for name in one)
            groups[key] = tuple(sorted(names, key=lambda name: rank.get(name, len(rank))))
        answers = scores.filter(pl.col("output") == OUTPUT).unique(
            "text_id", keep="last", maintain_order=True
        )
        codes = answers["label"].replace_strict(
            labels, range(len(labels)), default=NONE, return_dtype=pl.Int64
        )
        own = scores.join(
            answers.select("text_id").with_row_index("row"), on="text_id", maintain_order="left"
        )
        own = own.filter(pl.col("output").is_in(emotions))
        columns = own["output"].replace_strict(emotions, range(len(emotions)), return_dtype=pl.Int64)
        intensities = np.full((answers.height + 1, len(emotions)), np.nan)
        intensities[own["row"].to_numpy(), columns.to_numpy()] = own["value"].fill_null(np.nan).to_numpy()
        return cls(
            tuple(emotions),
            tuple(labels),
            sets,
            groups,
            {name: row for row, name in enumerate(answers["text_id"])},
            np.append(codes.to_numpy(), NONE),
            np.append(answers["value"].fill_null(np.nan).to_numpy(), np.nan),
            intensities,
        )

    def pairs(self) -> Iterator[PairedSets]:
        """Every pair of groups of every corpus and axis, in the order in which groups are compared."""
        for key, groups in self._groups.items():
            for pair in combinations(groups, 2):
                yield self._block(key, pair)

    def whole(self) -> Iterator[PairedSets]:
        """Every axis of three groups or more, with the sets that have a sentence for each."""
        for key, groups in self._groups.items():
            if len(groups) > 2:
                yield self._block(key, groups)

    def _block(self, key: tuple[str, str], groups: tuple[str, ...]) -> PairedSets:
        sets = {name: one for name, one in self._sets[key].items() if all(group in one for group in groups)}
        prompts = [[one[group] for group in groups] for one in sets.values()]
        firsts = [sides[0] for sides in prompts]
        code = {label: place for place, label in enumerate(self.labels)}
        places = [[self._rows.get(prompt.id, -1) for prompt in sides] for sides in prompts]
        rows = np.array(places, dtype=np.intp).reshape(-1, len(groups))
        texts = np.array([[prompt.text for prompt in sides] for sides in prompts], dtype=np.object_)
        return PairedSets(
            *key,
            groups,
            self.emotions,
            self.labels,
            np.array(list(sets), dtype=np.str_),
            texts.reshape(rows.shape),
            np.array([prompt.cluster for prompt in firsts], dtype=np.str_),
            np.array([code.get(prompt.meta.get("emotion", ""), NONE) for prompt in firsts], dtype=np.intp),
            self._predicted[rows],
            self._score[rows],
            self._intensities[rows],
        )


def build_flip_table(predictions: PairedPredictions, model: str) -> pl.DataFrame:
    """The table ``flips``: pairs whose predicted class changes with the group, with their sentences."""
    parts = []
    for block in predictions.pairs():
        flips = block.select(find_flips(*block.predicted.T))
        columns: Row = {"set": flips.sets, "emotion": flips.name_classes(flips.truth)}
        for place, side in enumerate("ab"):
            columns[f"text_{side}"] = flips.texts[:, place].tolist()
            columns[f"label_{side}"] = flips.name_classes(flips.predicted[:, place])
            columns[f"score_{side}"] = flips.score[:, place]
        parts.append(_to_table(columns, block.name_pair(model), FLIPS))
    return pl.concat(parts) if parts else pl.DataFrame(schema=dict(FLIPS))


def build_score_table(predictions: PairedPredictions, model: str) -> pl.DataFrame:
    """The table ``pair_scores``: every pair, once for each emotion."""
    parts = [
        _to_table(_scores(block, place), {**block.name_pair(model), "emotion": emotion}, PAIR_SCORES)
        for block in predictions.pairs()
        for place, emotion in enumerate(block.emotions)
    ]
    return pl.concat(parts) if parts else pl.DataFrame(schema=dict(PAIR_SCORES))


def _scores(block: PairedSets, place: int) -> Row:
    """The columns of one emotion, and the ways of measuring in which each pair counts for it."""
    code = block.labels.index(block.emotions[place])
    first, second = block.predicted.T
    columns: Row = {
        "set": block.sets,
        "truth": block.name_classes(block.truth),
        "agreeing": select_pairs(
            first, second, block.truth, emotion=code, pairs="agreeing", score="predicted"
        ),
        "all_predicted": select_pairs(
            first, second, block.truth, emotion=code, pairs="all", score="predicted"
        ),
        "all_emotion": select_pairs(first, second, block.truth, emotion=code, pairs="all", score="emotion"),
    }
    for number, side in enumerate("ab"):
        columns[f"label_{side}"] = block.name_classes(block.predicted[:, number])
        columns[f"predicted_{side}"] = block.score[:, number]
        columns[f"intensity_{side}"] = block.intensities[:, number, place]
    return columns


def _to_table(
    columns: Row, shared: Row, schema: Mapping[str, pl.DataType | type[pl.DataType]]
) -> pl.DataFrame:
    """A table of columns, and of shared values as constant columns, with NaN as null."""
    table = pl.DataFrame(columns, schema_overrides={name: schema[name] for name in columns})
    table = table.with_columns(pl.lit(value, schema[name]).alias(name) for name, value in shared.items())
    return table.select(list(schema)).with_columns(pl.selectors.float().fill_nan(None))
