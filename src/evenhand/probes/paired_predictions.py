"""A classifier's predictions for counterfactual sentences, and their measures.

Every emotion, pair of groups and way of measuring; sets of three groups or more; flips.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations, product
from typing import Final, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.digests import canonical_json
from evenhand.core.records import Estimate, Prompt
from evenhand.core.seeds import derive_seed
from evenhand.stats.bootstrap import ResamplingOptions
from evenhand.stats.corrections import Correction, correct_by_family
from evenhand.stats.paired_measures import (
    NONE,
    PairedIntensities,
    PairSelection,
    ScoreChoice,
    compare_sets,
    demographic_parity,
    find_flips,
    paired_intensities,
    select_pairs,
)
from evenhand.store.schemas import FLIPS, MEASURES, PAIR_SCORES, SETS
from evenhand.suites.pairs.pair_sets import sort_groups

Row = dict[str, object]
OUTPUT = "emotion"
"""The output of the metric whose label is the predicted class."""
NEUTRAL: Final = "neutral"
FAMILY: Final = ("corpus", "pairs", "score")
"""One family of corrected p-values: all emotions and pairs of groups of a corpus, measured in one way."""
NO_INTENSITY: Final = "the classifier gives no intensity of its own for this emotion"


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

    def name_pair(self, model: str) -> Row:
        """The columns that name a pair of groups in every table."""
        groups = {"group_a": self.groups[0], "group_b": self.groups[1]}
        return {"corpus": self.corpus, "model": model, "axis": self.axis, **groups}

    def name_classes(self, codes: NDArray[np.intp]) -> list[str | None]:
        """The names of classes; null for the code `NONE`."""
        names = (*self.labels, None)
        return [names[code] for code in codes]


class PairedPredictions:
    """The predictions of one classifier for the sentences of a run."""

    def __init__(self, prompts: Sequence[Prompt], scores: pl.DataFrame, labels: Sequence[str]) -> None:
        self._labels, self._emotions = tuple(labels), tuple(label for label in labels if label != NEUTRAL)
        # Corpus and axis to set to group to sentence.
        self._sets: dict[tuple[str, str], dict[str, dict[str, Prompt]]] = {}
        for prompt in prompts:
            for group in prompt.groups:
                axis_sets = self._sets.setdefault((prompt.suite, group.axis), {})
                axis_sets.setdefault(prompt.template_id or prompt.id, {})[group.name] = prompt
        self._groups = {
            key: tuple(sort_groups(chain.from_iterable(axis_sets.values())))
            for key, axis_sets in self._sets.items()
        }
        answers = scores.filter(pl.col("output") == OUTPUT).unique(
            "text_id", keep="last", maintain_order=True
        )
        codes = answers["label"].replace_strict(
            labels, range(len(labels)), default=NONE, return_dtype=pl.Int64
        )
        # The last row of each array stands for sentences without a prediction.
        self._rows = {name: row for row, name in enumerate(answers["text_id"])}
        self._predicted = np.append(codes.to_numpy(), NONE)
        self._score = np.append(answers["value"].fill_null(np.nan).to_numpy(), np.nan)
        numbered = answers.select("text_id").with_row_index("row")
        own = scores.join(numbered, on="text_id", maintain_order="left")
        own = own.filter(pl.col("output").is_in(self._emotions))
        columns = own["output"].replace_strict(
            self._emotions, range(len(self._emotions)), return_dtype=pl.Int64
        )
        self._intensities = np.full((answers.height + 1, len(self._emotions)), np.nan)
        values = own["value"].fill_null(np.nan).to_numpy()
        self._intensities[own["row"].to_numpy(), columns.to_numpy()] = values

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
        code = {label: place for place, label in enumerate(self._labels)}
        places = [[self._rows.get(prompt.id, -1) for prompt in sides] for sides in prompts]
        rows = np.array(places, dtype=np.intp).reshape(-1, len(groups))
        texts = np.array([[prompt.text for prompt in sides] for sides in prompts], dtype=np.object_)
        return PairedSets(
            *key,
            groups,
            self._emotions,
            self._labels,
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
    choose = partial(select_pairs, first, second, block.truth, emotion=code)
    columns: Row = {
        "set": block.sets,
        "truth": block.name_classes(block.truth),
        "agreeing": choose(pairs="agreeing", score="predicted"),
        "all_predicted": choose(pairs="all", score="predicted"),
        "all_emotion": choose(pairs="all", score="emotion"),
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


@dataclass(frozen=True, slots=True)
class PairMeasures:
    """How predictions are measured."""

    model: str
    level: float
    correction: Correction
    seed: int

    def measure_pairs(self, predictions: PairedPredictions) -> pl.DataFrame:
        """The table ``measures``."""
        rows = [row for block in predictions.pairs() for row in self._pair(block)]
        for name in ("p", "p_wilcoxon"):
            self._correct(rows, name, FAMILY)
        return pl.DataFrame(rows, schema=dict(MEASURES))

    def measure_sets(self, predictions: PairedPredictions) -> pl.DataFrame:
        """The table ``sets``."""
        rows = [row for block in predictions.whole() for row in self._whole(block)]
        self._correct(rows, "p", ("corpus",))
        return pl.DataFrame(rows, schema=dict(SETS))

    def _pair(self, block: PairedSets) -> Iterator[Row]:
        block = block.select(np.all(block.predicted != NONE, axis=1))
        first, second = block.predicted.T
        for place, emotion in enumerate(block.emotions):
            code = block.labels.index(emotion)
            shared = self._classes(block, code)
            for pairs, score in product(get_args(PairSelection), get_args(ScoreChoice)):
                rows = select_pairs(first, second, block.truth, emotion=code, pairs=pairs, score=score)
                own = block.score if score == "predicted" else block.intensities[:, :, place]
                yield {
                    **block.name_pair(self.model),
                    **{"emotion": emotion, "pairs": pairs, "score": score, **shared},
                    **self._intensities(block, rows, own, (emotion, pairs, score), shared),
                }

    def _classes(self, block: PairedSets, code: int) -> Row:
        """The measures of predicted classes alone, over all pairs."""
        hits, emotion = block.predicted == code, block.labels[code]
        is_emotion, is_true = hits.any(axis=1), block.truth == code
        dp, opportunity = (
            demographic_parity(
                hits[rows, 0], hits[rows, 1], block.clusters[rows], **self._resampling(block, emotion, name)
            )
            for rows, name in ((slice(None), "dp"), (is_true, "opportunity"))
        )
        return {
            **_ends("dp", dp.ratio),
            "n_dp": dp.ratio.n,
            "share_a": dp.share_a,
            "share_b": dp.share_b,
            **_ends("opportunity", opportunity.ratio),
            "recall_a": opportunity.share_a,
            "recall_b": opportunity.share_b,
            "n_truth": opportunity.ratio.n,
            "flips": int(np.count_nonzero(find_flips(*block.predicted.T) & is_emotion)),
            "level": self.level,
            "correction": self.correction,
            "null_reason": f"dp: {dp.ratio.null_reason}" if dp.ratio.value is None else None,
        }

    def _intensities(
        self,
        block: PairedSets,
        rows: NDArray[np.bool_],
        own: NDArray[np.float64],
        key: tuple[str, ...],
        shared: Row,
    ) -> Row:
        known = rows & np.isfinite(own).all(axis=1)
        # Intensities known only for some pairs are those of predicted classes: selected by the outcome.
        known = known & (not (rows & ~known).any())
        first, second = own[known].T
        measured = paired_intensities(first, second, block.clusters[known], **self._resampling(block, *key))
        own_reasons = [NO_INTENSITY] if rows.any() and not known.any() else _list_reasons(measured)
        reasons = [str(shared["null_reason"] or ""), *own_reasons]
        return {
            **_ends("avg_delta", measured.avg_delta),
            **_ends("acs", measured.acs),
            **_ends("difference", measured.difference),
            "p": measured.t.p,
            "p_wilcoxon": measured.signed_rank.p,
            "effect_size": measured.effect_size.value,
            "mean_a": float(first.mean()) if known.any() else None,
            "mean_b": float(second.mean()) if known.any() else None,
            "n": int(np.count_nonzero(known)),
            "n_zero": measured.n_zero,
            "n_clusters": measured.avg_delta.n_clusters,
            "null_reason": "; ".join(filter(None, reasons)) or None,
        }

    def _whole(self, block: PairedSets) -> Iterator[Row]:
        block = block.select(np.all(block.predicted != NONE, axis=1))
        groups = list(block.groups)
        for place, emotion in enumerate(block.emotions):
            code = block.labels.index(emotion)
            rows = (block.truth == code) | (block.truth == NONE)
            values = block.intensities[:, :, place]
            compared = compare_sets(
                block.predicted == code,
                np.where(rows[:, None], values, np.nan),
                block.clusters,
                **self._resampling(block, emotion, "sets"),
            )
            known = values[rows & np.isfinite(values).all(axis=1)]
            means = known.mean(axis=0) if len(known) else None
            reason = compared.friedman.null_reason
            yield {
                **{"corpus": block.corpus, "model": self.model, "axis": block.axis},
                **{"groups": groups, "emotion": emotion},
                **_ends("dp", compared.parity),
                **_ends("spread", compared.spread),
                "statistic": compared.friedman.statistic,
                "p": compared.friedman.p,
                "highest": groups[int(np.argmax(means))] if means is not None else None,
                "lowest": groups[int(np.argmin(means))] if means is not None else None,
                "n_dp": compared.parity.n,
                "n": compared.spread.n,
                "n_clusters": compared.spread.n_clusters,
                "null_reason": f"p: {reason}" if reason else None,
            }

    def _resampling(self, block: PairedSets, *parts: str) -> ResamplingOptions:
        seed = derive_seed(self.seed, "probe", block.corpus, block.axis, *block.groups, *parts)
        return {"rng": seed, "level": self.level}

    def _correct(self, rows: Sequence[Row], name: str, family: Sequence[str]) -> None:
        """Add the corrected p-values of each family."""
        values = [value if isinstance(value := row[name], float) else None for row in rows]
        families = [canonical_json([str(row[column]) for column in family]) for row in rows]
        for row, corrected in zip(rows, correct_by_family(values, families, self.correction), strict=True):
            row[f"{name}_adjusted"] = corrected.adjusted


def _ends(name: str, estimate: Estimate) -> Row:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _list_reasons(measured: PairedIntensities) -> list[str]:
    reasons = []
    if measured.acs.value is None:
        reasons.append(f"acs: {measured.acs.null_reason}")
    elif measured.n_zero:
        noun, verb = ("pair", "is") if measured.n_zero == 1 else ("pairs", "are")
        reasons.append(f"acs: {measured.n_zero} {noun} whose second intensity is 0 {verb} left out")
    if measured.t.null_reason:
        ranks = "; p_wilcoxon is given" if measured.signed_rank.p is not None else ""
        reasons.append(f"p: {measured.t.null_reason}{ranks}")
    return reasons
