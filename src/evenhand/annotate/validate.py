"""``validate``: a metric against people, who are taken as right (BOLD, section 6.3, Table 8 and Figure 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from evenhand.annotate.agreement import (
    describe_questions,
    describe_rule,
    finish_people_run,
    people_identity,
    read_source,
    rule_of,
    write_people_manifest,
)
from evenhand.annotate.agreement_tables import ConsensusRule, estimate_cells
from evenhand.annotate.label_mapping import LabelMapping, find_question, map_labels
from evenhand.annotate.label_set import LabelSet
from evenhand.annotate.options import ValidateOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan, find_metrics
from evenhand.config import resolve_config
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, split_names
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import Estimate, OutputInfo, Prompt
from evenhand.metrics.scorer import STAGE, MetricScorer
from evenhand.stats.agreement_coefficients import rank_correlation
from evenhand.stats.classification_metrics import BestCut, Validation, best_cut, validate_labels
from evenhand.stats.intervals import clustered_proportion
from evenhand.stats.label_scales import LabelScale
from evenhand.store.cache import ContentCache
from evenhand.store.metric_evidence import build_evidence, write_evidence
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage
from evenhand.store.schemas import (
    BEST_CUTS,
    CONFUSION,
    CUT_CURVES,
    EXCLUSIONS,
    GENERATIONS,
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
class MetricValidation:
    """How a metric is set against people."""

    metric: str
    scale: LabelScale
    """Of people's labels."""
    seed: int = 0
    level: float = 0.95
    resamples: int = RESAMPLES
    wants_cuts: bool = True
    """Whether the best cut is looked for."""

    def tables(
        self, matches: Sequence[LabelMapping], texts: pl.DataFrame, scores: pl.DataFrame
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
            for name, found in self._tables_of_output(match, judged).items():
                rows[name] += [{"metric": self.metric, "output": match.output.name, **row} for row in found]
        return {name: pl.DataFrame(found, schema=dict(_SCHEMAS[name])) for name, found in rows.items()}

    def _tables_of_output(self, match: LabelMapping, judged: pl.DataFrame) -> dict[str, list[Row]]:
        known = judged.filter(pl.col("value").is_not_null() & pl.col("human").is_not_null())
        if not match.is_complete:
            return {"validation": [self._by_rank(match.output, known)]}
        meant = pl.col("human").replace_strict(dict(match.labels), default=None, return_dtype=pl.String)
        labelled = known.with_columns(meant.alias("human")).drop_nulls(["human", "predicted"])
        found = self._validate(match, labelled)
        return {
            "validation": list(self._measures(match, labelled, found)),
            "confusion": list(_confusion(found)),
            "score_spreads": _spreads(match.output, labelled) if _has_score(match.output) else [],
            **self._cuts(match, labelled, found),
        }

    def _validate(self, match: LabelMapping, of: pl.DataFrame) -> Validation:
        return validate_labels(
            of["predicted"].to_list(),
            of["human"].to_list(),
            labels=match.output.labels,
            rng=self.seed,
            clusters=_clusters(of),
            resamples=self.resamples,
            level=self.level,
        )

    def _measures(self, match: LabelMapping, of: pl.DataFrame, found: Validation) -> Iterator[Row]:
        yield from self._correlations(match, of)
        for name in ("accuracy", "kappa", "precision", "recall", "f1"):
            yield _measure(ALL, name, getattr(found, name))
        yield _measure(ALL, "always_commonest", self._majority_accuracy(of))
        for each in found.by_label:
            for name in ("precision", "recall", "f1"):
                yield _measure(each.label, name, getattr(each, name))

    def _correlations(self, match: LabelMapping, of: pl.DataFrame) -> Iterator[Row]:
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

    def _majority_accuracy(self, of: pl.DataFrame) -> Estimate:
        """How often one is right by always saying what people say most: the least a metric must beat."""
        top = of["human"].mode().sort()[0] if of.height else ""
        hits = (of["human"] == top).to_numpy().astype(np.float64)
        return clustered_proportion(hits, _clusters(of), level=self.level)

    def _cuts(self, match: LabelMapping, of: pl.DataFrame, found: Validation) -> dict[str, list[Row]]:
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
        **estimate_cells("cut", best.cut),
        **estimate_cells("kappa", best.kappa),
        **estimate_cells("accuracy", best.accuracy),
        **estimate_cells("kappa_held_out", best.kappa_held_out),
        **estimate_cells("accuracy_held_out", best.accuracy_held_out),
        "folds": best.folds,
        "n": best.cut.n,
    }


COMMAND = "validate"
_MASKS = ("XYZ", "Person")


@dataclass(frozen=True, slots=True)
class ValidationJob:
    """A metric and people's labels, ready to be set against each other."""

    spec: str
    metric: Metric
    labels: LabelSet
    rule: ConsensusRule
    texts: pl.DataFrame
    """item_id, text, human, share, reason, cluster: one row a text."""
    mappings: tuple[LabelMapping, ...]
    seed: int
    level: float
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool
    onto_card: bool

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        kept = self.texts["human"].drop_nulls().len()
        outputs = ", ".join(match.output.name for match in self.mappings)
        card = ("card     the result is written onto the metric's card",) if self.onto_card else ()
        return RunPlan(
            f"validate {self.spec}",
            (
                *describe_questions(self.labels),
                f"label    {describe_rule(self.rule)}: {kept:,} of {self.texts.height:,} texts have one",
                f"metric   {self.spec}: {outputs}",
                *card,
                f"folder   {self.folder}",
            ),
            self.folder,
        )

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Score the texts, compare, report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            write_people_manifest(folder, self.command, self.labels)
            folder.manifest["metrics"] = {self.spec: _describe_metric(self.metric)}
            folder.manifest["warnings"] += self._warn_unmasked()
            with run_stage(folder, STAGE) as record:
                scores, failed = self._scores(folder, progress)
                record.update(items=self.texts.height, failed=failed)
            with run_stage(folder, COMMAND) as record, progress.step("comparing with people", None):
                scale = self.labels.questions[0].scale
                against = MetricValidation(self.spec, scale, self.seed, self.level, RESAMPLES)
                for name, table in against.tables(self.mappings, self.texts, scores).items():
                    folder.write(name, table)
                    record[name] = table.height
                folder.write("exclusions", self._exclusions(scores))
            run = finish_people_run(folder)
        if self.onto_card:
            write_evidence(self.spec, build_evidence(run, self.spec, self.metric.info))
        return run

    def _scores(self, folder: RunFolder, progress: Progress) -> tuple[pl.DataFrame, int]:
        # One empty prompt for all: people read the text, and so does the metric.
        prompt = Prompt.create(self.labels.name, "", groups=(), cluster="texts")
        rows = [
            {
                "id": item,
                "prompt_id": prompt.id,
                "model": "people",
                "sample": 0,
                "text": text,
                "finish": "replayed",
            }
            for item, text in self.texts.select("item_id", "text").iter_rows()
        ]
        generations = pl.DataFrame(rows, schema=dict(GENERATIONS))
        cache = ContentCache()
        try:
            tally = MetricScorer(self.spec, self.metric, folder, cache).run(
                generations, {prompt.id: prompt}, progress
            )
        finally:
            cache.close()
        folder.join_shards("scores", STAGE, tally.keys)
        return folder.run().table("scores"), tally.errors

    def _warn_unmasked(self) -> list[str]:
        """A warning where the metric wants group mentions masked and texts show no mask."""
        if self.metric.info.masking == "none":
            return []
        bare = sum(not any(mask in text for mask in _MASKS) for text in self.texts["text"])
        said_ = f"{bare:,} of {self.texts.height:,} texts have no mask, and {self.spec} expects one"
        return [f"{said_}: people and metric may have seen the group"] if bare else []

    def _exclusions(self, scores: pl.DataFrame) -> pl.DataFrame:
        """What is left out, counted by reason."""
        missing = Counter(self.texts.filter(pl.col("human").is_null())["reason"].to_list())
        rows = [("people", "", str(reason), count) for reason, count in sorted(missing.items())]
        labels = self.mappings[0].labels if self.mappings[0].is_complete else {}
        unmatched = Counter(
            label for label in self.texts["human"].drop_nulls() if label in labels and labels[label] is None
        )
        rows += [
            ("people", self.spec, f"no label of the metric: {label}", n) for label, n in unmatched.items()
        ]
        first = scores.filter(pl.col("output") == self.mappings[0].output.name)
        nulls = Counter(first["null_reason"].drop_nulls().to_list())
        rows += [(STAGE, self.spec, str(reason), count) for reason, count in sorted(nulls.items())]
        told = [(*row, self.texts.height) for row in rows]
        return pl.DataFrame(told, schema=dict(EXCLUSIONS), orient="row")


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
def prepare(metric: str | Metric, human: Path | str, **options: Unpack[ValidateOptions]) -> ValidationJob:
    """Metric and labels read, matched and checked, so that ``plan`` can be shown before ``run``."""
    settings = resolve_config(options)
    ((spec, made),) = find_metrics([metric], settings).items()
    rule, collected = rule_of(options), read_source(human, options, cluster=options["cluster"])
    asked = find_question(made.info.name, [question.name for question in collected.questions])
    collected = collected.select_questions([asked])
    found = tuple(
        map_labels(
            made.info,
            collected.questions[0].scale,
            renamed=options["renamed"],
            outputs=split_names(options["output"]) or (),
        )
    )
    texts = aggregate_texts(collected, rule)
    _check_any(texts, collected)
    level, seed, out = settings.options["level"], settings.options["seed"], options["out"]
    identity = people_identity(COMMAND, collected, rule) | {
        "metric": {"spec": spec, **made.info.identity()},
        "labels": {match.output.name: dict(match.labels) for match in found},
        "cluster": options["cluster"],
        "seed": seed,
        "level": level,
    }
    return ValidationJob(
        spec=spec,
        metric=made,
        labels=collected,
        rule=rule,
        texts=texts,
        mappings=found,
        seed=seed,
        level=level,
        identity=identity,
        folder=Path(out) if out else default_folder(COMMAND, f"{spec}-{collected.name}", identity),
        command=options["command"] or f"evenhand validate {spec} --human {human}",
        fresh=options["fresh"],
        onto_card=options["onto_card"],
    )


def aggregate_texts(collected: LabelSet, rule: ConsensusRule) -> pl.DataFrame:
    """One row a text of the first question: item_id, text, human (or null with a reason), share, cluster."""
    question = collected.questions[0]
    ratings = collected.ratings(question)
    consensus, _ = rule.apply(ratings)
    texts = collected.texts()
    found = pl.DataFrame(
        {
            "item_id": ratings.items,
            "text": [texts[item] for item in ratings.items],
            "human": consensus.labels,
            "share": consensus.shares,
            "reason": consensus.reasons,
        },
        schema={
            "item_id": pl.String,
            "text": pl.String,
            "human": pl.String,
            "share": pl.Float64,
            "reason": pl.String,
        },
    )
    return _with_clusters(found, collected)


def _with_clusters(texts: pl.DataFrame, collected: LabelSet) -> pl.DataFrame:
    """The texts with what belongs together: of one prompt, of one value of ``--cluster``, or equal ones."""
    of = collected.rows.select("item_id", "cluster").unique("item_id", keep="first", maintain_order=True)
    if of["cluster"].null_count() == of.height and not texts["text"].is_duplicated().any():
        return texts.with_columns(pl.lit(None, pl.String).alias("cluster"))
    joined = texts.join(of, on="item_id", how="left", maintain_order="left")
    # A text without a cluster stands alone, but for those that say the same under another id.
    return joined.with_columns(pl.coalesce("cluster", pl.lit("text ") + pl.col("text")))


def _check_any(texts: pl.DataFrame, collected: LabelSet) -> None:
    if texts["human"].null_count() < texts.height:
        return
    reasons = Counter(texts["reason"].to_list())
    raise InputError(
        f"no text of {collected.source} has a label that people agree on: "
        + ", ".join(f"{reason} {count}" for reason, count in reasons.items()),
        expected="one text or more with a majority",
        fix="lower --agreement or --least, or try --consensus dawid-skene",
    )


def _describe_metric(metric: Metric) -> dict[str, Json]:
    described_: dict[str, Json] = asdict(metric.info)
    return described_
