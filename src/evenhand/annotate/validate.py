"""``validate``: a metric against people, who are taken as right (BOLD, section 6.3, Table 8 and Figure 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from evenhand.annotate.agreement import (
    ConsensusRule,
    LabelJob,
    Row,
    build_tables,
    describe_rule,
    estimate_cells,
    label_identity,
    read_source,
    rule_of,
    write_tables,
)
from evenhand.annotate.label_mapping import LabelMapping, find_question, map_labels
from evenhand.annotate.label_set import LabelSet
from evenhand.annotate.options import ValidateOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, find_metrics
from evenhand.config import resolve_config
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, split_names
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import Estimate, OutputInfo, Prompt
from evenhand.metrics.scorer import STAGE, MetricScorer
from evenhand.stats.agreement_coefficients import rank_correlation
from evenhand.stats.classification_metrics import Validation, best_cut, validate_labels
from evenhand.stats.intervals import clustered_proportion
from evenhand.stats.label_scales import LabelScale
from evenhand.store.cache import ContentCache
from evenhand.store.metric_evidence import build_evidence, write_evidence
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage
from evenhand.store.schemas import EXCLUSIONS, GENERATIONS, JUDGED

COMMAND = "validate"
TABLES = ("validation", "confusion", "score_spreads", "best_cuts", "cut_curves", "judged")
ALL = "(all)"
BINS = 24
RESAMPLES = 2_000
_QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
_MASKS = ("XYZ", "Person")


@dataclass(frozen=True, slots=True)
class MetricValidation:
    """How a metric is compared with people."""

    metric: str
    scale: LabelScale
    """Of people's labels."""
    seed: int = 0
    level: float = 0.95
    resamples: int = RESAMPLES
    wants_cuts: bool = True
    """Whether the best cut is searched for."""

    def tables(
        self, matches: Sequence[LabelMapping], texts: pl.DataFrame, scores: pl.DataFrame
    ) -> dict[str, pl.DataFrame]:
        """Every table, from texts (item_id, text, human, share, cluster) and scores as a run has them."""
        rows: dict[str, list[Row]] = {name: [] for name in TABLES}
        for match in matches:
            own = scores.filter(pl.col("output") == match.output.name).select(
                "value", "null_reason", item_id="text_id", predicted="label"
            )
            judged = texts.join(own, on="item_id", how="left", maintain_order="left")
            parts = self._tables_of_output(match, judged)
            parts["judged"] = judged.select([name for name in JUDGED if name in judged.columns]).to_dicts()
            for name, part in parts.items():
                rows[name] += [{"metric": self.metric, "output": match.output.name, **row} for row in part]
        return build_tables(rows)

    def _tables_of_output(self, match: LabelMapping, judged: pl.DataFrame) -> dict[str, list[Row]]:
        known = judged.drop_nulls(["value", "human"])
        if not match.is_complete:
            places = {label: place for label, place in self.scale.places.items() if place is not None}
            return {"validation": [self._correlation("spearman_score", "value", known, places)]}
        mapped = pl.col("human").replace_strict(dict(match.labels), default=None, return_dtype=pl.String)
        labelled = known.with_columns(mapped.alias("human")).drop_nulls(["human", "predicted"])
        validation = validate_labels(
            labelled["predicted"].to_list(),
            labelled["human"].to_list(),
            labels=match.output.labels,
            rng=self.seed,
            clusters=_clusters(labelled),
            resamples=self.resamples,
            level=self.level,
        )
        return {
            "validation": list(self._measures(match, labelled, validation)),
            "confusion": [
                {"human": human, "predicted": predicted, "count": count}
                for human, row in zip(validation.labels, validation.confusion, strict=True)
                for predicted, count in zip(validation.labels, row, strict=True)
            ],
            "score_spreads": _spreads(match.output, labelled) if _has_score(match.output) else [],
            **self._cuts(match, labelled, validation),
        }

    def _measures(self, match: LabelMapping, labelled: pl.DataFrame, validation: Validation) -> Iterator[Row]:
        # Leading emotions have no order. The paper correlates the codes of both labels.
        if _has_score(match.output) or match.output.cuts:
            yield self._correlation("spearman", "predicted", labelled, match.places)
        if _has_score(match.output):
            yield self._correlation("spearman_score", "value", labelled, match.places)
        for name in ("accuracy", "kappa", "precision", "recall", "f1"):
            yield _measure(ALL, name, getattr(validation, name))
        yield _measure(ALL, "always_commonest", self._majority_accuracy(labelled))
        for each in validation.by_label:
            for name in ("precision", "recall", "f1"):
                yield _measure(each.label, name, getattr(each, name))

    def _correlation(self, name: str, column: str, labelled: pl.DataFrame, places: dict[str, float]) -> Row:
        """Spearman's rho of a column (labels or scores) and people's labels, by their places in order."""
        columns = ("human", column) if column == "predicted" else ("human",)
        rows = labelled.filter([pl.col(one).is_in(list(places)) for one in columns])
        rows = rows.with_columns(pl.col(*columns).replace_strict(places, return_dtype=pl.Float64))
        correlation = rank_correlation(
            rows[column].to_numpy(),
            rows["human"].to_numpy(),
            _clusters(rows),
            rng=self.seed,
            resamples=self.resamples,
            level=self.level,
        )
        return _measure(ALL, name, correlation.estimate) | {"p": correlation.p}

    def _majority_accuracy(self, labelled: pl.DataFrame) -> Estimate:
        """The accuracy of always giving people's most frequent label: the least a metric must beat."""
        top = labelled["human"].mode().sort()[0] if labelled.height else ""
        hits = (labelled["human"] == top).to_numpy().astype(np.float64)
        return clustered_proportion(hits, _clusters(labelled), level=self.level)

    def _cuts(
        self, match: LabelMapping, labelled: pl.DataFrame, validation: Validation
    ) -> dict[str, list[Row]]:
        """The cut that agrees best, where the labels are parts of a range."""
        output = match.output
        ordered = [label for label in output.labels if label != "other"]
        if not self.wants_cuts or not _has_score(output) or len(ordered) not in (2, 3):
            return {}
        rows = labelled.filter(pl.col("human").is_in(ordered))
        codes = rows["human"].replace_strict({label: at for at, label in enumerate(ordered)})
        best = best_cut(
            rows["value"].to_numpy(),
            codes.to_numpy() if rows.height else np.empty(0, dtype=np.intp),
            _clusters(rows),
            labels=len(ordered),
            rng=self.seed,
            resamples=max(self.resamples // 4, 100),
            level=self.level,
        )
        row: Row = {
            "own": output.cuts[-1] if output.cuts else None,
            "own_kappa": validation.kappa.value,
            "own_accuracy": validation.accuracy.value,
            "folds": best.folds,
            "n": best.cut.n,
        }
        row |= estimate_cells(
            cut=best.cut,
            kappa=best.kappa,
            accuracy=best.accuracy,
            kappa_held_out=best.kappa_held_out,
            accuracy_held_out=best.accuracy_held_out,
        )
        return {"best_cuts": [row], "cut_curves": [dict(point._asdict()) for point in best.curve]}


def _has_score(output: OutputInfo) -> bool:
    """Whether the value is the output's own: a further cut repeats another one's."""
    return output.kind != "label"


def _clusters(rows: pl.DataFrame) -> npt.NDArray[np.generic] | None:
    """The cluster of each text; None where texts are independent."""
    return rows["cluster"].to_numpy() if rows.height and not rows["cluster"].null_count() else None


def _measure(label: str, name: str, estimate: Estimate) -> Row:
    return {"label": label, "measure": name, "p": None, **asdict(estimate)}


def _spreads(output: OutputInfo, labelled: pl.DataFrame) -> list[Row]:
    """The scores of each of people's labels in the same equal bins."""
    values = labelled["value"].to_numpy()
    if not values.size:
        return []
    low = output.low if output.low is not None else float(values.min())
    high = output.high if output.high is not None else float(values.max())
    high = high if high > low else low + 1.0
    rows: list[Row] = []
    for label in output.labels:
        own = labelled.filter(pl.col("human") == label)["value"].to_numpy()
        if own.size:
            counts, _ = np.histogram(np.clip(own, low, high), bins=BINS, range=(low, high))
            quantiles = np.quantile(own, list(_QUANTILES.values())).tolist()
            rows.append(
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
    return rows


@checks_options
def validate(
    metric: str | Metric,
    human: Path | str,
    *,
    progress: Progress = SILENT_PROGRESS,
    **options: Unpack[ValidateOptions],
) -> Run:
    """The finished run of a metric against people's labels; arguments are those of ``evenhand validate``.

    ``human`` is a study folder, an export, or a table of texts and labels. Tables: ``validation``,
    ``confusion``, ``score_spreads``, ``best_cuts``, ``cut_curves``, ``judged``.
    """
    return prepare(metric, human, **options).run(progress)


@checks_options
def prepare(metric: str | Metric, human: Path | str, **options: Unpack[ValidateOptions]) -> LabelJob:
    """Metric and labels read, matched and checked, so that ``plan`` can be shown before ``run``."""
    settings = resolve_config(options)
    ((spec, scored_metric),) = find_metrics([metric], settings).items()
    info = scored_metric.info
    rule, labels = rule_of(options), read_source(human, options, cluster=options["cluster"])
    labels = labels.select_questions([find_question(info.name, [one.name for one in labels.questions])])
    scale = labels.questions[0].scale
    mappings = map_labels(
        info, scale, renamed=options["renamed"], outputs=split_names(options["output"]) or ()
    )
    texts = aggregate_texts(labels, rule)
    _check_any(texts, labels)
    level, seed, onto_card = settings.options["level"], settings.options["seed"], options["onto_card"]

    def compute(folder: RunFolder, progress: Progress) -> None:
        folder.manifest["metrics"] = {spec: asdict(info)}
        folder.manifest["warnings"] += _warn_unmasked(texts, spec, scored_metric)
        with run_stage(folder, STAGE) as record:
            scores, failed = _score_texts(labels.name, texts, spec, scored_metric, folder, progress)
            record.update(items=texts.height, failed=failed)
        with run_stage(folder, COMMAND) as record, progress.step("comparing with people", None):
            validation = MetricValidation(spec, scale, seed, level, RESAMPLES)
            write_tables(folder, validation.tables(mappings, texts, scores), record)
            folder.write("exclusions", _exclusions(texts, spec, mappings[0], scores))

    label_count = texts["human"].drop_nulls().len()
    identity = label_identity(COMMAND, labels, rule) | {
        "metric": {"spec": spec, **info.identity()},
        "labels": {match.output.name: dict(match.labels) for match in mappings},
        "cluster": options["cluster"],
        "seed": seed,
        "level": level,
    }
    return LabelJob(
        title=f"validate {spec}",
        lines=(
            f"label    {describe_rule(rule)}: {label_count:,} of {texts.height:,} texts have one",
            f"metric   {spec}: {', '.join(match.output.name for match in mappings)}",
            *(("card     the result is written onto the metric's card",) if onto_card else ()),
        ),
        labels=labels,
        identity=identity,
        folder=Path(options["out"] or default_folder(COMMAND, f"{spec}-{labels.name}", identity)),
        command=options["command"] or f"evenhand validate {spec} --human {human}",
        fresh=options["fresh"],
        compute=compute,
        finish=(lambda run: write_evidence(spec, build_evidence(run, spec, info))) if onto_card else None,
    )


def _score_texts(
    name: str, texts: pl.DataFrame, spec: str, metric: Metric, folder: RunFolder, progress: Progress
) -> tuple[pl.DataFrame, int]:
    # One empty prompt for all: people read the text, and so does the metric.
    prompt = Prompt.create(name, "", groups=(), cluster="texts")
    rows = [
        {
            "id": item,
            "prompt_id": prompt.id,
            "model": "people",
            "sample": 0,
            "text": text,
            "finish": "replayed",
        }
        for item, text in texts.select("item_id", "text").iter_rows()
    ]
    generations = pl.DataFrame(rows, schema=dict(GENERATIONS))
    cache = ContentCache()
    try:
        tally = MetricScorer(spec, metric, folder, cache).run(generations, {prompt.id: prompt}, progress)
    finally:
        cache.close()
    folder.join_shards("scores", STAGE, tally.keys)
    return folder.run().table("scores"), tally.errors


def _warn_unmasked(texts: pl.DataFrame, spec: str, metric: Metric) -> list[str]:
    """A warning where the metric wants group mentions masked and texts show no mask."""
    bare = sum(not any(mask in text for mask in _MASKS) for text in texts["text"])
    if metric.info.masking == "none" or not bare:
        return []
    return [
        f"{bare:,} of {texts.height:,} texts have no mask, and {spec} expects one: people and metric may "
        "have seen the group"
    ]


def _exclusions(texts: pl.DataFrame, spec: str, mapping: LabelMapping, scores: pl.DataFrame) -> pl.DataFrame:
    """What is left out, counted by reason."""
    missing = Counter(texts.filter(pl.col("human").is_null())["reason"].to_list())
    labels = mapping.labels if mapping.is_complete else {}
    unmatched = Counter(
        label for label in texts["human"].drop_nulls() if label in labels and labels[label] is None
    )
    nulls = Counter(
        scores.filter(pl.col("output") == mapping.output.name)["null_reason"].drop_nulls().to_list()
    )
    rows = [
        *(("people", "", str(reason), count) for reason, count in sorted(missing.items())),
        *(("people", spec, f"no label of the metric: {label}", n) for label, n in unmatched.items()),
        *((STAGE, spec, str(reason), count) for reason, count in sorted(nulls.items())),
    ]
    return pl.DataFrame([(*row, texts.height) for row in rows], schema=dict(EXCLUSIONS), orient="row")


def aggregate_texts(labels: LabelSet, rule: ConsensusRule) -> pl.DataFrame:
    """The texts of the first question: item_id, text, human (or null with a reason), share, cluster."""
    ratings = labels.ratings(labels.questions[0])
    consensus, _ = rule.apply(ratings)
    words = labels.texts()
    texts = pl.DataFrame(
        {
            "item_id": ratings.items,
            "text": [words[item] for item in ratings.items],
            "human": consensus.labels,
            "share": consensus.shares,
            "reason": consensus.reasons,
        },
        schema_overrides={"human": pl.String, "share": pl.Float64, "reason": pl.String},
    )
    clusters = labels.rows.select("item_id", "cluster").unique("item_id", keep="first", maintain_order=True)
    if clusters["cluster"].null_count() == clusters.height and not texts["text"].is_duplicated().any():
        return texts.with_columns(pl.lit(None, pl.String).alias("cluster"))
    joined = texts.join(clusters, on="item_id", how="left", maintain_order="left")
    # A text without a cluster is one of its own, shared by those that say the same under another id.
    return joined.with_columns(pl.coalesce("cluster", pl.lit("text ") + pl.col("text")))


def _check_any(texts: pl.DataFrame, labels: LabelSet) -> None:
    if texts["human"].null_count() < texts.height:
        return
    reasons = Counter(texts["reason"].to_list())
    raise InputError(
        f"no text of {labels.source} has a label that people agree on: "
        + ", ".join(f"{reason} {count}" for reason, count in reasons.items()),
        expected="one text or more with a majority",
        fix="lower --agreement or --least, or try --consensus dawid-skene",
    )
