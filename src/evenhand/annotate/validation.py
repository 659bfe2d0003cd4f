"""The tables of a metric against people: Table 8 of the BOLD paper, its Figure 6, and the best cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from evenhand.annotate.agreement import cells
from evenhand.annotate.matching import Match
from evenhand.core.records import Estimate, OutputInfo
from evenhand.stats.agreement import rank_correlation
from evenhand.stats.intervals import clustered_proportion
from evenhand.stats.scales import Scale
from evenhand.stats.thresholds import BestCut, best_cut
from evenhand.stats.validation import Validation, validate_labels
from evenhand.store.people_tables import (
    BEST_CUTS,
    CONFUSION,
    CUT_CURVES,
    JUDGED,
    SCORE_SPREADS,
    VALIDATION,
)

ALL = "(all)"
BINS = 24
RESAMPLES = 2_000
_QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
Floats = npt.NDArray[np.float64]
Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class Against:
    """How a metric is set against people."""

    metric: str
    scale: Scale
    """Of people's labels."""
    seed: int = 0
    level: float = 0.95
    resamples: int = RESAMPLES
    wants_cuts: bool = True
    """Whether the best cut is looked for."""

    def tables(
        self, matches: Sequence[Match], texts: pl.DataFrame, scores: pl.DataFrame
    ) -> dict[str, pl.DataFrame]:
        """Every table, from texts (item_id, text, human, share, cluster) and scores as a run has them."""
        rows: dict[str, list[Row]] = {name: [] for name in _SCHEMAS}
        for match in matches:
            own = scores.filter(pl.col("output") == match.output.name).select(
                "value", "null_reason", item_id="text_id", predicted="label"
            )
            judged = texts.join(own, on="item_id", how="left", maintain_order="left")
            rows["judged"] += [
                {"metric": self.metric, "output": match.output.name, **row}
                for row in judged.select([n for n in JUDGED if n in judged.columns]).to_dicts()
            ]
            for name, found in self._of(match, judged).items():
                rows[name] += [{"metric": self.metric, "output": match.output.name, **row} for row in found]
        return {name: pl.DataFrame(found, schema=dict(_SCHEMAS[name])) for name, found in rows.items()}

    def _of(self, match: Match, judged: pl.DataFrame) -> dict[str, list[Row]]:
        known = judged.filter(pl.col("value").is_not_null() & pl.col("human").is_not_null())
        if not match.is_complete:
            return {"validation": [self._by_rank(match.output, known)]}
        meant = pl.col("human").replace_strict(dict(match.labels), default=None, return_dtype=pl.String)
        labelled = known.with_columns(meant.alias("human")).drop_nulls(["human", "predicted"])
        found = self._validated(match, labelled)
        return {
            "validation": list(self._measures(match, labelled, found)),
            "confusion": list(_confusion(found)),
            "score_spreads": _spreads(match.output, labelled) if _has_score(match.output) else [],
            **self._cuts(match, labelled, found),
        }

    def _validated(self, match: Match, of: pl.DataFrame) -> Validation:
        return validate_labels(
            of["predicted"].to_list(),
            of["human"].to_list(),
            labels=match.output.labels,
            rng=self.seed,
            clusters=_clusters(of),
            resamples=self.resamples,
            level=self.level,
        )

    def _measures(self, match: Match, of: pl.DataFrame, found: Validation) -> Iterator[Row]:
        yield from self._correlations(match, of)
        for name in ("accuracy", "kappa", "precision", "recall", "f1"):
            yield _measure(ALL, name, getattr(found, name))
        yield _measure(ALL, "always_commonest", self._commonest(of))
        for each in found.by_label:
            for name in ("precision", "recall", "f1"):
                yield _measure(each.label, name, getattr(each, name))

    def _correlations(self, match: Match, of: pl.DataFrame) -> Iterator[Row]:
        """Spearman's rho of the codes of both labels, as the paper has it, and of score and people's code."""
        places = match.places
        placed = of.filter(pl.col("human").is_in(list(places)))
        both = placed.filter(pl.col("predicted").is_in(list(places)))
        if not _has_score(match.output) and not match.output.cuts:
            return  # leading emotions have no order
        kinds = [("spearman", both, "predicted")]
        kinds += [("spearman_score", placed, "value")] if _has_score(match.output) else []
        for name, rows, column in kinds:
            human = rows["human"].replace_strict(places, return_dtype=pl.Float64).to_numpy()
            other = rows[column]
            if column == "predicted":
                other = other.replace_strict(places, return_dtype=pl.Float64)
            yield self._correlation(name, other.to_numpy(), human, rows)

    def _by_rank(self, output: OutputInfo, known: pl.DataFrame) -> Row:
        places = {label: place for label, place in self.scale.places.items() if place is not None}
        rows = known.filter(pl.col("human").is_in(list(places)))
        human = rows["human"].replace_strict(places, return_dtype=pl.Float64).to_numpy()
        return self._correlation("spearman_score", rows["value"].to_numpy(), human, rows)

    def _correlation(self, name: str, x: Floats, human: Floats, rows: pl.DataFrame) -> Row:
        found = rank_correlation(
            x, human, _clusters(rows), rng=self.seed, resamples=self.resamples, level=self.level
        )
        return _measure(ALL, name, found.estimate) | {"p": found.p}

    def _commonest(self, of: pl.DataFrame) -> Estimate:
        """How often one is right by always saying what people say most: the least a metric must beat."""
        top = of["human"].mode().sort()[0] if of.height else ""
        hits = (of["human"] == top).to_numpy().astype(np.float64)
        return clustered_proportion(hits, _clusters(of), level=self.level)

    def _cuts(self, match: Match, of: pl.DataFrame, found: Validation) -> dict[str, list[Row]]:
        """The cut that agrees best, where the labels are parts of a range."""
        ordered = [label for label in match.output.labels if label != "other"]
        if not self.wants_cuts or not _has_score(match.output) or len(ordered) not in (2, 3):
            return {}
        kept = of.filter(pl.col("human").is_in(ordered))
        codes = kept["human"].replace_strict({label: at for at, label in enumerate(ordered)})
        best = best_cut(
            kept["value"].to_numpy(),
            codes.to_numpy() if kept.height else np.empty(0, dtype=np.intp),
            _clusters(kept),
            labels=len(ordered),
            rng=self.seed,
            resamples=max(self.resamples // 4, 100),
            level=self.level,
        )
        curve: list[Row] = [dict(point._asdict()) for point in best.curve]
        return {"best_cuts": [_best(match.output, best, found)], "cut_curves": curve}


_SCHEMAS = {
    "validation": VALIDATION,
    "confusion": CONFUSION,
    "score_spreads": SCORE_SPREADS,
    "best_cuts": BEST_CUTS,
    "cut_curves": CUT_CURVES,
    "judged": JUDGED,
}


def _has_score(output: OutputInfo) -> bool:
    """Whether the value is the output's own: a further cut repeats another one's."""
    return output.kind != "label"


def _clusters(rows: pl.DataFrame) -> npt.NDArray[np.generic] | None:
    """What belongs together; None where texts stand alone."""
    return rows["cluster"].to_numpy() if rows.height and not rows["cluster"].null_count() else None


def _measure(label: str, name: str, found: Estimate) -> Row:
    return {
        "label": label,
        "measure": name,
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "p": None,
        "level": found.level,
        "n": found.n,
        "n_clusters": found.n_clusters,
        "method": found.method,
        "null_reason": found.null_reason,
    }


def _confusion(found: Validation) -> Iterator[Row]:
    for human, row in zip(found.labels, found.confusion, strict=True):
        for predicted, count in zip(found.labels, row, strict=True):
            yield {"human": human, "predicted": predicted, "count": count}


def _spreads(output: OutputInfo, of: pl.DataFrame) -> list[Row]:
    """The scores of each of people's labels in the same equal bins."""
    values = of["value"].to_numpy()
    if not values.size:
        return []
    low = output.low if output.low is not None else float(values.min())
    high = output.high if output.high is not None else float(values.max())
    high = high if high > low else low + 1.0
    found: list[Row] = []
    for label in output.labels:
        own = of.filter(pl.col("human") == label)["value"].to_numpy()
        if own.size:
            counts, _ = np.histogram(np.clip(own, low, high), bins=BINS, range=(low, high))
            quantiles = np.quantile(own, list(_QUANTILES.values())).tolist()
            found.append(
                {
                    "label": label,
                    "low": low,
                    "high": high,
                    "counts": counts.tolist(),
                    "n": int(own.size),
                    "mean": float(own.mean()),
                    **dict(zip(_QUANTILES, quantiles, strict=True)),
                }
            )
    return found


def _best(output: OutputInfo, best: BestCut, found: Validation) -> Row:
    return {
        "own": output.cuts[-1] if output.cuts else None,
        "own_kappa": found.kappa.value,
        "own_accuracy": found.accuracy.value,
        **cells("cut", best.cut),
        **cells("kappa", best.kappa),
        **cells("accuracy", best.accuracy),
        **cells("kappa_held_out", best.kappa_held_out),
        **cells("accuracy_held_out", best.accuracy_held_out),
        "folds": best.folds,
        "n": best.cut.n,
    }
