"""``validate``: a metric against human labels as ground truth (BOLD, section 6.3, Table 8 and Figure 6).

Human labels are mapped to the metric's by name, spelling, code, or the user's own mapping.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from evenhand.annotate.agreement import (
    ConsensusRule,
    Row,
    build_tables,
    flatten_estimates,
    label_identity,
    label_job,
    write_tables,
)
from evenhand.annotate.label_set import UNORDERED, LabelSet, read_label_set, require_known
from evenhand.annotate.options import ValidateOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, PreparedJob, find_metrics
from evenhand.config import resolve_config
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, split_names
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import Estimate, MetricInfo, OutputInfo, Prompt
from evenhand.metrics.scorer import STAGE, MetricScorer
from evenhand.stats.agreement_coefficients import rank_correlation
from evenhand.stats.bootstrap import ResamplingOptions
from evenhand.stats.classification_metrics import Validation, best_cut, validate_labels
from evenhand.stats.intervals import clustered_proportion
from evenhand.stats.label_scales import KNOWN_SCALES, LabelScale, normalise_label, number_or_none
from evenhand.store.cache import ContentCache
from evenhand.store.metric_evidence import build_evidence, write_evidence
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, run_stage
from evenhand.store.schemas import EXCLUSIONS, GENERATIONS

COMMAND = "validate"
TABLES = ("validation", "confusion", "score_spreads", "best_cuts", "cut_curves", "judged")
ALL = "(all)"
BINS = 24
RESAMPLES = 2_000
_QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
_MASKS = ("XYZ", "Person")
_OTHER = ("mixed", "opposing", "other")
QUESTIONS = {"gender_polarity": "gender"}
"""The question that corresponds to a metric, if its name differs."""


@dataclass(frozen=True, slots=True)
class LabelMapping:
    """One output of a metric, and the metric's label for each human label."""

    output: OutputInfo
    labels: Mapping[str, str | None]
    """Human label to the metric's label; None if there is none and the label is left out."""

    @property
    def is_complete(self) -> bool:
        """Whether labels can be compared; otherwise only ranks can."""
        return len(set(self.labels.values()) - {None}) > 1

    @property
    def has_score(self) -> bool:
        """Whether the output has its own score: another cut of the same score only repeats it."""
        return self.output.kind != "label"

    @property
    def places(self) -> dict[str, float]:
        """Codes of the metric's labels in order: -1, 0, 1 for three, 0, 1 for two; none for ``other``."""
        ordered = [label for label in self.output.labels if label != "other"]
        start = -1.0 if len(ordered) == 3 else 0.0
        return {label: start + at for at, label in enumerate(ordered)}


def map_labels(
    info: MetricInfo, scale: LabelScale, *, renamed: Mapping[str, str], outputs: Sequence[str] = ()
) -> list[LabelMapping]:
    """The outputs that human labels can be compared with; an error if there is none.

    ``renamed`` is the user's mapping of labels, empty for labels to leave out; ``outputs`` selects
    some. If people gave numbers that are not labels, every output is compared by rank.
    """
    known = {output.name: output for output in info.outputs}
    problem = f"metric {info.name!r} has no output"
    require_known(outputs, known, problem, fix="name one of these with --output")
    selected = [known[name] for name in outputs or known]
    own = {normalise_label(theirs): normalise_label(ours) for theirs, ours in renamed.items()}
    mappings = [
        LabelMapping(
            output,
            {label: _map_label(normalise_label(label), output.labels, scale, own) for label in scale.labels},
        )
        for output in selected
        if output.labels
    ]
    if complete := [mapping for mapping in mappings if mapping.is_complete]:
        _check_all_known(complete, scale, own)
        return complete
    if scale.is_ordered and all(number_or_none(label) is not None for label in scale.labels):
        return [
            LabelMapping(output, dict.fromkeys(scale.labels)) for output in selected if output.kind != "label"
        ]
    if len(scale.labels) == 1 and any(mapping.labels[scale.labels[0]] for mapping in mappings):
        raise InputError(
            f"every text has the human label {scale.labels[0]}: there is nothing to compare",
            expected="texts with at least two labels",
            fix="add texts with other labels",
        )
    accepted = "; ".join(f"{one.output.name}: {', '.join(one.output.labels)}" for one in mappings)
    raise InputError(
        f"the human labels are {', '.join(scale.labels)}, of which {info.name} has fewer than two",
        expected=accepted or "numbers, which are compared by rank",
        fix="map them with --map THEIRS=OURS, or name another question with --question",
    )


def find_question(metric: str, questions: Sequence[str]) -> str:
    """The question that corresponds to a metric: by name, or the only question."""
    question = QUESTIONS.get(metric, metric)
    if question in questions:
        return question
    if len(questions) == 1:
        return questions[0]
    raise InputError(
        f"there are {len(questions)} questions, none of them {question!r}",
        expected=", ".join(questions),
        fix="name the question that fits the metric with --question",
    )


def _map_label(label: str, known: Sequence[str], scale: LabelScale, own: Mapping[str, str]) -> str | None:
    if label in own:
        return own[label] if own[label] in known else None
    if label in known:
        return label
    if label in _OTHER and "other" in known:
        return "other"
    for other in KNOWN_SCALES:
        alias = other.label_of(label)
        if alias in known and set(known) <= set(other.labels):
            return alias
    # Codes: -1, 0 and 1 for three labels, 0 and 1 for two (BOLD, section 6.3).
    codes = ("-1", "0", "1") if len([name for name in known if name != "other"]) == 3 else ("0", "1")
    is_coded = label in codes and all(normalise_label(one) in codes for one in scale.labels)
    return known[codes.index(label)] if is_coded else None


def _check_all_known(mappings: Sequence[LabelMapping], scale: LabelScale, own: Mapping[str, str]) -> None:
    """Raise an error for a label unknown to the metric, instead of dropping it silently."""
    for label in scale.labels:
        plain = normalise_label(label)
        mapped = own.get(plain, plain)
        if all(mapping.labels[label] is None for mapping in mappings) and mapped not in ("", *UNORDERED):
            raise InputError(
                f"the human label {label!r}"
                + (f", mapped to {mapped!r}," if plain in own else "")
                + " is not a label of the metric",
                expected=", ".join(mappings[0].output.labels),
                fix=f"map it with --map {label}=LABEL, or leave it out with --map {label}=",
            )


@dataclass(frozen=True, slots=True)
class MetricValidation:
    """How a metric is compared with human labels."""

    metric: str
    scale: LabelScale
    """The scale of the human labels."""
    how: ResamplingOptions
    wants_cuts: bool = True
    """Whether to search for the best cut."""

    def tables(
        self, matches: Sequence[LabelMapping], texts: pl.DataFrame, scores: pl.DataFrame
    ) -> dict[str, pl.DataFrame]:
        """Compute every table from texts (item_id, text, human, share, cluster) and a run's scores."""
        rows: dict[str, list[Row]] = {name: [] for name in TABLES}
        for match in matches:
            own = scores.filter(pl.col("output") == match.output.name).select(
                "value", "null_reason", item_id="text_id", predicted="label"
            )
            judged = texts.join(own, on="item_id", how="left", maintain_order="left")
            for name, part in {**self._tables_of_output(match, judged), "judged": judged.to_dicts()}.items():
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
            clusters=_clusters(labelled),
            **self.how,
        )
        return {
            "validation": list(self._measures(match, labelled, validation)),
            "confusion": [
                {"human": human, "predicted": predicted, "count": count}
                for human, row in zip(validation.labels, validation.confusion, strict=True)
                for predicted, count in zip(validation.labels, row, strict=True)
            ],
            "score_spreads": _spreads(match.output, labelled) if match.has_score else [],
            **self._cuts(match, labelled, validation),
        }

    def _measures(self, match: LabelMapping, labelled: pl.DataFrame, validation: Validation) -> Iterator[Row]:
        # Leading emotions have no order. The paper correlates the codes of both labels.
        if match.has_score or match.output.cuts:
            yield self._correlation("spearman", "predicted", labelled, match.places)
        if match.has_score:
            yield self._correlation("spearman_score", "value", labelled, match.places)
        for name in ("accuracy", "kappa", "precision", "recall", "f1"):
            yield _measure(ALL, name, getattr(validation, name))
        # The accuracy of always giving the most frequent human label: the baseline a metric must beat.
        top = labelled["human"].mode().sort()[0] if labelled.height else ""
        hits = (labelled["human"] == top).to_numpy().astype(np.float64)
        commonest = clustered_proportion(hits, _clusters(labelled), level=self.how["level"])
        yield _measure(ALL, "always_commonest", commonest)
        for each in validation.by_label:
            for name in ("precision", "recall", "f1"):
                yield _measure(each.label, name, getattr(each, name))

    def _correlation(self, name: str, column: str, labelled: pl.DataFrame, places: dict[str, float]) -> Row:
        """Spearman's rho of a column (labels or scores) and the human labels, by their places in order."""
        columns = ("human", column) if column == "predicted" else ("human",)
        rows = labelled.filter([pl.col(one).is_in(list(places)) for one in columns])
        rows = rows.with_columns(pl.col(*columns).replace_strict(places, return_dtype=pl.Float64))
        values, people = (rows[one].to_numpy() for one in (column, "human"))
        correlation = rank_correlation(values, people, _clusters(rows), **self.how)
        return _measure(ALL, name, correlation.estimate) | {"p": correlation.p}

    def _cuts(
        self, match: LabelMapping, labelled: pl.DataFrame, validation: Validation
    ) -> dict[str, list[Row]]:
        """The cut with the best agreement, if the labels are parts of a range."""
        ordered = list(match.places)
        if not self.wants_cuts or not match.has_score or len(ordered) not in (2, 3):
            return {}
        rows = labelled.filter(pl.col("human").is_in(ordered))
        places = {label: at for at, label in enumerate(ordered)}
        codes = rows["human"].replace_strict(places, return_dtype=pl.Int64).to_numpy()
        best = best_cut(
            rows["value"].to_numpy(),
            codes,
            _clusters(rows),
            labels=len(ordered),
            **self.how | {"resamples": max(self.how["resamples"] // 4, 100)},
        )
        row = flatten_estimates({one.name: getattr(best, one.name) for one in fields(best)}) | {
            "own": match.output.cuts[-1] if match.output.cuts else None,
            "own_kappa": validation.kappa.value,
            "own_accuracy": validation.accuracy.value,
            "n": best.cut.n,
        }
        return {"best_cuts": [row], "cut_curves": [dict(point._asdict()) for point in best.curve]}


def _clusters(rows: pl.DataFrame) -> npt.NDArray[np.generic] | None:
    """The cluster of each text; None if texts are independent."""
    return rows["cluster"].to_numpy() if rows.height and not rows["cluster"].null_count() else None


def _measure(label: str, name: str, estimate: Estimate) -> Row:
    return {"label": label, "measure": name, "p": None, **asdict(estimate)}


def _spreads(output: OutputInfo, labelled: pl.DataFrame) -> list[Row]:
    """The scores of each human label in equal-width bins shared by all labels."""
    values = labelled["value"].to_numpy()
    low = output.low if output.low is not None else float(values.min(initial=np.inf))
    high = output.high if output.high is not None else float(values.max(initial=-np.inf))
    high = high if high > low else low + 1.0
    rows: list[Row] = []
    for label in output.labels:
        own = labelled.filter(pl.col("human") == label)["value"].to_numpy()
        if own.size:
            counts, _ = np.histogram(np.clip(own, low, high), bins=BINS, range=(low, high))
            row: Row = {"label": label, "low": low, "high": high, "counts": counts.tolist(), "n": own.size}
            quantiles = np.quantile(own, list(_QUANTILES.values())).tolist()
            rows.append(row | {"mean": float(own.mean())} | dict(zip(_QUANTILES, quantiles, strict=True)))
    return rows


@checks_options
def validate(
    metric: str | Metric,
    human: Path | str,
    *,
    progress: Progress = SILENT_PROGRESS,
    **options: Unpack[ValidateOptions],
) -> Run:
    """Compare a metric with human labels; arguments are those of ``evenhand validate``.

    ``human`` is a study folder, an export, or a table of texts and labels. Tables: ``validation``,
    ``confusion``, ``score_spreads``, ``best_cuts``, ``cut_curves``, ``judged``.
    """
    return prepare(metric, human, **options).run(progress)


@checks_options
def prepare(metric: str | Metric, human: Path | str, **options: Unpack[ValidateOptions]) -> PreparedJob[Run]:
    """Read, match and check metric and labels, so that ``plan`` can be shown before ``run``."""
    settings = resolve_config(options)
    ((spec, scored_metric),) = find_metrics([metric], settings).items()
    info = scored_metric.info
    rule = ConsensusRule(options["consensus"], options["agreement"], options["least"])
    labels = read_label_set(human, options, cluster=options["cluster"])
    labels = labels.select_questions([find_question(info.name, [one.name for one in labels.questions])])
    scale = labels.questions[0]
    mappings = map_labels(
        info, scale, renamed=options["renamed"], outputs=split_names(options["output"]) or ()
    )
    texts = aggregate_texts(labels, rule)
    if not texts["human"].count():
        reasons = Counter(texts["reason"].to_list())
        raise InputError(
            f"no text of {labels.source} has a label on which people agree: "
            + ", ".join(f"{reason} {count}" for reason, count in reasons.items()),
            expected="at least one text with a majority",
            fix="lower --agreement or --least, or try --consensus dawid-skene",
        )
    level, seed, onto_card = settings.options["level"], settings.options["seed"], options["onto_card"]

    def compute(folder: RunFolder, progress: Progress) -> None:
        folder.manifest["metrics"] = {spec: asdict(info)}
        unmasked = sum(not any(mask in text for mask in _MASKS) for text in texts["text"])
        if unmasked and info.masking != "none":
            folder.manifest["warnings"].append(
                f"{unmasked:,} of {texts.height:,} texts have no mask, but {spec} expects one: people and "
                "metric may have seen the group"
            )
        with run_stage(folder, STAGE) as record:
            scores, failed = _score_texts(labels.name, texts, spec, scored_metric, folder, progress)
            record.update(items=texts.height, failed=failed)
        with run_stage(folder, COMMAND) as record, progress.step("comparing with people", None):
            validation = MetricValidation(spec, scale, {"rng": seed, "resamples": RESAMPLES, "level": level})
            write_tables(folder, validation.tables(mappings, texts, scores), record)
            folder.write("exclusions", _exclusions(texts, spec, mappings[0], scores))

    identity = label_identity(COMMAND, labels, rule) | {
        "metric": {"spec": spec, **info.identity()},
        "labels": {match.output.name: dict(match.labels) for match in mappings},
        "cluster": options["cluster"],
        "seed": seed,
        "level": level,
    }
    return label_job(
        labels,
        options,
        identity,
        compute,
        title=f"validate {spec}",
        name=f"{spec}-{labels.name}",
        command=f"evenhand validate {spec} --human {human}",
        lines=(
            f"label    {rule.describe()}: {texts['human'].count():,} of {texts.height:,} texts have one",
            f"metric   {spec}: {', '.join(match.output.name for match in mappings)}",
            *(("card     the result is written to the metric's card",) if onto_card else ()),
        ),
        finish=(lambda run: write_evidence(spec, build_evidence(run, spec, info))) if onto_card else None,
    )


def _score_texts(
    name: str, texts: pl.DataFrame, spec: str, metric: Metric, folder: RunFolder, progress: Progress
) -> tuple[pl.DataFrame, int]:
    # One empty prompt for all: the metric reads only the text, as people do.
    prompt = Prompt.create(name, "", groups=(), cluster="texts")
    columns = {"model": "people", "finish": "replayed", "prompt_id": prompt.id}
    rows = [
        {"id": item, "text": text, "sample": 0, **columns}
        for item, text in texts.select("item_id", "text").iter_rows()
    ]
    generations = pl.DataFrame(rows, schema=dict(GENERATIONS))
    with closing(ContentCache()) as cache:
        tally = MetricScorer(spec, metric, folder, cache).run(generations, {prompt.id: prompt}, progress)
    folder.join_shards("scores", STAGE, tally.keys)
    return folder.run().table("scores"), tally.errors


def _exclusions(texts: pl.DataFrame, spec: str, mapping: LabelMapping, scores: pl.DataFrame) -> pl.DataFrame:
    """Count the texts left out, by reason."""
    without = texts.filter(pl.col("human").is_null())
    labels = mapping.labels if mapping.is_complete else {}
    unmatched = [label for label in texts["human"].drop_nulls() if label in labels and labels[label] is None]
    nulls = scores.filter(pl.col("output") == mapping.output.name)["null_reason"].drop_nulls()
    counts = [
        *(("people", "", str(reason), count) for reason, count in sorted(Counter(without["reason"]).items())),
        *(("people", spec, f"no label of the metric: {label}", n) for label, n in Counter(unmatched).items()),
        *((STAGE, spec, str(reason), count) for reason, count in sorted(Counter(nulls).items())),
    ]
    return pl.DataFrame([(*row, texts.height) for row in counts], schema=dict(EXCLUSIONS), orient="row")


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
    # A text without a cluster is its own cluster, shared by equal texts under another id.
    return joined.with_columns(pl.coalesce("cluster", pl.lit("text ") + pl.col("text")))
