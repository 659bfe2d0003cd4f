"""Measures of predictions: every emotion, pair of groups and way of measuring; sets; flips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.digests import canonical_json
from evenhand.core.records import Estimate
from evenhand.core.seeds import derive_seed
from evenhand.probes.paired_predictions import PairedPredictions, PairedSets
from evenhand.stats.corrections import Correction, correct_by_family
from evenhand.stats.paired_measures import (
    NONE,
    PairedIntensities,
    PairSelection,
    Parity,
    ScoreChoice,
    compare_sets,
    demographic_parity,
    find_flips,
    paired_intensities,
    select_pairs,
)
from evenhand.store.schemas import MEASURES, SETS

Row = dict[str, object]
FAMILY: Final = ("corpus", "pairs", "score")
"""One family of corrected p-values: all emotions and pairs of groups of a corpus, measured in one way."""
NO_INTENSITY: Final = "the classifier gives no intensity of its own for this emotion"


@dataclass(frozen=True, slots=True)
class PairMeasures:
    """How predictions are measured."""

    model: str
    level: float = 0.95
    correction: Correction = "bh"
    seed: int = 0
    resamples: int = 2_000

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
        block = block.with_predictions()
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
        dp = self._parity(block, code, "dp")
        opportunity = self._parity(block.select(block.truth == code), code, "opportunity")
        is_emotion = np.any(block.predicted == code, axis=1)
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
        measured = paired_intensities(
            first,
            second,
            block.clusters[known],
            rng=self._rng(block, *key),
            resamples=self.resamples,
            level=self.level,
        )
        is_unknown = bool(rows.any() and not known.any())
        reasons = [str(shared["null_reason"] or ""), *_reasons(measured, is_unknown=is_unknown)]
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
        block = block.with_predictions()
        groups = list(block.groups)
        for place, emotion in enumerate(block.emotions):
            code = block.labels.index(emotion)
            rows = (block.truth == code) | (block.truth == NONE)
            values = block.intensities[:, :, place]
            compared = compare_sets(
                block.predicted == code,
                np.where(rows[:, None], values, np.nan),
                block.clusters,
                rng=self._rng(block, emotion, "sets"),
                resamples=self.resamples,
                level=self.level,
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

    def _parity(self, block: PairedSets, code: int, name: str) -> Parity:
        rng = self._rng(block, block.labels[code], name)
        first, second = (block.predicted == code).T
        return demographic_parity(
            first, second, block.clusters, rng=rng, resamples=self.resamples, level=self.level
        )

    def _rng(self, block: PairedSets, *parts: str) -> int:
        return derive_seed(self.seed, "probe", block.corpus, block.axis, *block.groups, *parts)

    def _correct(self, rows: Sequence[Row], name: str, family: Sequence[str]) -> None:
        """Add the corrected p-values of each family."""
        values = [value if isinstance(value := row[name], float) else None for row in rows]
        families = [canonical_json([str(row[column]) for column in family]) for row in rows]
        for row, corrected in zip(rows, correct_by_family(values, families, self.correction), strict=True):
            row[f"{name}_adjusted"] = corrected.adjusted


def _ends(name: str, estimate: Estimate) -> Row:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _reasons(measured: PairedIntensities, *, is_unknown: bool) -> list[str]:
    if is_unknown:
        return [NO_INTENSITY]
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
