"""``probe``: does an emotion classifier read the same sentence differently for different groups?"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from math import comb
from pathlib import Path
from typing import Final, Unpack

import polars as pl

from evenhand.audits.run_setup import SILENT_PROGRESS, RunJob, write_manifest
from evenhand.config import RunConfig, resolve_config
from evenhand.core import registry
from evenhand.core.digests import Json, canonical_json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, split_names
from evenhand.core.protocols import Metric, Progress, Suite
from evenhand.core.records import Execution, Prompt
from evenhand.metrics.scorer import STAGE, MetricScorer, exclusion_table
from evenhand.probes.options import ProbeOptions
from evenhand.probes.paired_predictions import (
    NO_INTENSITY,
    OUTPUT,
    PairedPredictions,
    PairMeasures,
    build_flip_table,
    build_score_table,
)
from evenhand.report.wording import format_count
from evenhand.store.cache import ContentCache
from evenhand.store.prompt_rows import write_prompt_rows
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage
from evenhand.store.schemas import GENERATIONS

NAME: Final = "emotion"
BUILTIN: Final = "builtin"
REPLAY: Final = "replay:"
_KINDS: Final = (REPLAY, "endpoint:")
_TIMED: Final = 500
"""Minimum sentences for a run to give a rate; with fewer, start-up of the classifier dominates."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The work of a probe: pairs read, the classifier loaded, nothing scored yet."""

    settings: RunConfig
    spec: str
    metric: Metric
    suites: tuple[Suite, ...]
    prompts: tuple[Prompt, ...]
    options: ProbeOptions

    @property
    def model(self) -> str:
        """The classifier's name in tables."""
        name = self.spec.removeprefix(f"{NAME}=")
        return f"{REPLAY}{Path(name).name}" if name.startswith(REPLAY) else name

    def list_plan(self, folder: Path) -> tuple[str, ...]:
        """What is read, the labels, the expected time and the folder."""
        sentences = len({prompt.text for prompt in self.prompts})
        sizes = Counter((prompt.suite, prompt.template_id) for prompt in self.prompts)
        pairs = sum(comb(size, 2) for size in sizes.values())
        axes = ", ".join(dict.fromkeys(group.axis for prompt in self.prompts for group in prompt.groups))
        with closing(ContentCache()) as cache:
            rate = cache.rate(self._rate_key)
        duration = "not known before the first run of this classifier here; progress is shown"
        if rate is not None:
            duration = f"at most {sentences / rate:,.0f} s at {rate:,.0f} sentences/s, as last measured here"
        return (
            f"pairs   {', '.join(suite.info.name for suite in self.suites)}: "
            f"{format_count(pairs, 'pair')} of groups in "
            f"{format_count(len(self.prompts), 'sentence')} ({sentences:,} different), by {axes}",
            *(f"note    {suite.info.name}: {note}" for suite in self.suites for note in suite.info.notes),
            f"labels  {', '.join(_labels(self.metric))}",
            f"time    {duration}",
            f"folder  {folder}",
        )

    def __call__(self, folder: RunFolder, progress: Progress) -> None:
        """Score the remaining sentences, and measure."""
        command = self.options["command"] or f"evenhand probe {self.spec}"
        suites: dict[str, Json] = {suite.info.name: asdict(suite.info) for suite in self.suites}
        write_manifest(folder, command=command, name=self.model, settings=self.settings, suites=suites)
        folder.write("prompts", write_prompt_rows(self.prompts))
        with closing(ContentCache()) as cache:
            self._score(folder, cache, progress)
        self._measure(folder, progress)

    def _score(self, folder: RunFolder, cache: ContentCache, progress: Progress) -> None:
        columns = {"id": "id", "prompt_id": "id", "text": "text"}
        rows = {name: [getattr(prompt, field) for prompt in self.prompts] for name, field in columns.items()}
        sentences = pl.DataFrame(rows, schema={name: GENERATIONS[name] for name in columns})
        sentences = sentences.with_columns(failure=pl.lit(None, pl.String))
        scorer = MetricScorer(
            self.spec, self.metric, folder, cache, "none", self.settings.options["max_failures"]
        )
        # The sentence is the text to score; metrics of continuations would leave it out as a prompt.
        prompts = {prompt.id: replace(prompt, text="") for prompt in self.prompts}
        with run_stage(folder, STAGE) as record:
            started = time.perf_counter()
            tally = scorer.run(sentences, prompts, progress)
            seconds = time.perf_counter() - started
            folder.join_shards("scores", STAGE, tally.keys)
            answers = folder.run().table("scores").filter(pl.col("output") == OUTPUT)
            n_unlabelled = answers["label"].null_count()
            record.update(items=sentences.height, failed=n_unlabelled, seconds=round(seconds, 3))
            if sentences.height >= _TIMED:
                # Keep the slowest rate: a faster run may have read its answers from the cache.
                rate = sentences.height / seconds
                cache.put_many("rates", {self._rate_key: min(rate, cache.rate(self._rate_key) or rate)})
        if n_unlabelled == sentences.height:
            raise InputError(
                f"{self.model} has no prediction for any of the {format_count(sentences.height, 'sentence')}",
                expected="predictions for the sentences of the pairs, word for word",
                fix="check --pairs and the file",
            )
        folder.write(
            "exclusions", exclusion_table(sentences, folder.run().scan("scores"), texts_stage="read")
        )
        folder.manifest["metrics"] = {self.spec: asdict(self.metric.info)}

    def _measure(self, folder: RunFolder, progress: Progress) -> None:
        with run_stage(folder, "measure") as record, progress.step("measuring", None):
            predictions = PairedPredictions(self.prompts, folder.run().table("scores"), _labels(self.metric))
            options = self.settings.options
            prober = PairMeasures(self.model, options["level"], options["correction"], options["seed"])
            measures = prober.measure_pairs(predictions)
            folder.write("measures", measures)
            folder.write("sets", prober.measure_sets(predictions))
            folder.write("flips", build_flip_table(predictions, self.model))
            folder.write("pair_scores", build_score_table(predictions, self.model))
            pairs, score = self.options["over"], self.options["score"]
            shown = measures.filter(pl.col("pairs") == pairs, pl.col("score") == score)
            # A file of predicted classes has no intensities of other emotions.
            if shown["null_reason"].str.contains(NO_INTENSITY, literal=True).any():
                score = "predicted"
            folder.manifest["view"] = {"pairs": pairs, "score": score}
            folder.manifest["warnings"] += [
                f"{suite.info.name}: {note}" for suite in self.suites for note in suite.info.notes
            ]
            record.update(items=measures.height)

    @property
    def _rate_key(self) -> str:
        return digest(["probe", self.metric.info.identity()])


@checks_options
def probe(
    classifier: str | Metric = NAME, *, progress: Progress = SILENT_PROGRESS, **options: Unpack[ProbeOptions]
) -> Run:
    """The finished run of an emotion classifier over counterfactual pairs: measures, flips and a report.

    Arguments are those of ``evenhand probe``. The classifier may be a metric, the pairs a suite; ``labels``
    maps the classifier's labels to ours.
    """
    return prepare(classifier, **options).run(progress)


@checks_options
def prepare(classifier: str | Metric = NAME, **options: Unpack[ProbeOptions]) -> RunJob:
    """A probe with everything loaded and checked, so that ``plan`` can be shown before ``run``."""
    # The pairs of a probe are sentences; those of [compare] are groups.
    settings = resolve_config({**options, "pairs": None})
    suites = _suites(options["pairs"], settings.execution())
    prompts = tuple(prompt for suite in suites for prompt in suite.prompts())
    _check_prompts(prompts)
    spec, metric = _metric(classifier, options["labels"], settings)
    identity: dict[str, Json] = {
        "command": "probe",
        "classifier": metric.info.identity(),
        "pairs": {suite.info.name: [suite.info.version, suite.info.digest] for suite in suites},
        **{name: settings.options[name] for name in ("level", "correction", "seed")},
    }
    name = Path(spec.removeprefix(f"{NAME}=").rpartition(":")[2]).name
    folder = Path(options["out"] or default_folder("probe", name, identity))
    work = Probe(settings, spec, metric, suites, prompts, options)
    return RunJob(
        f"probe {work.model}",
        work.list_plan(folder),
        identity,
        folder,
        fresh=options["fresh"],
        work=work,
        formats=("html", "json", "md"),
    )


def _suites(pairs: str | Sequence[str] | Suite | None, execution: Execution) -> tuple[Suite, ...]:
    if isinstance(pairs, Suite):
        return (pairs,)
    suites = [_suite(name, execution) for name in split_names(pairs) or (BUILTIN,)]
    names = [suite.info.name for suite in suites]
    if len(set(names)) < len(names):
        raise InputError(f"the pairs are {', '.join(names)}", expected="distinct names", fix="rename one")
    return tuple(suites)


def _suite(name: str, execution: Execution) -> Suite:
    """The pairs of a name: ``builtin``, a registered suite such as ``eec`` or ``eec:PATH``, or a file."""
    if name == BUILTIN:
        return registry.create_suite("pairs")
    if name.partition(":")[0] in {entry.name for entry in registry.list_entries("suites")}:
        return registry.create_suite(name, execution=execution)
    if Path(name).suffix or Path(name).exists():
        return registry.create_suite(f"pairs:{name}")
    raise InputError(
        f"there are no pairs named {name!r}",
        expected="builtin, eec, bits, crows, or a file (TOML, JSONL, CSV, TSV, Parquet)",
        fix="use one of these; eec:PATH gives the location of published pairs",
    )


def _check_prompts(prompts: Sequence[Prompt]) -> None:
    single = [prompt for prompt in prompts if prompt.template_id is None or len(prompt.groups) != 1]
    if not prompts or single:
        raise InputError(
            f"{len(single):,} of {len(prompts):,} sentences belong to no set, or to several groups at once",
            expected="sentences of one group each, linked by `template_id`",
            fix="use pairs: see `evenhand show pairs`",
        )


def _metric(
    classifier: str | Metric, labels: str | Mapping[str, str] | None, settings: RunConfig
) -> tuple[str, Metric]:
    if isinstance(classifier, str):
        given = labels if isinstance(labels, str) or labels is None else canonical_json(dict(labels))
        registered = {entry.name for entry in registry.list_entries("metrics")}
        is_metric = classifier.partition("=")[0] in registered and not classifier.startswith(_KINDS)
        # A name that is not a metric is a folder, a Hub id, a file or a URL.
        spec = classifier if is_metric else f"{NAME}={classifier}"
        options = dict(settings.options_of_metrics.get(NAME, {})) | ({"labels": given} if given else {})
        metric = registry.create_metric(spec, options, settings.execution())
        if not isinstance(metric, Metric):
            raise InputError(f"{spec!r} measures sets of texts, not texts", expected="an emotion classifier")
    else:
        spec, metric = classifier.info.name, classifier
    outputs = {output.name: output for output in metric.info.outputs}
    if OUTPUT not in outputs or not outputs[OUTPUT].labels:
        raise InputError(
            f"{spec!r} has the outputs {', '.join(outputs)}",
            expected=f"a metric with an output {OUTPUT!r} whose labels are emotions",
            fix="name an emotion classifier: emotion, a Hub id, a folder, replay:FILE or endpoint:URL",
        )
    return spec, metric


def _labels(metric: Metric) -> tuple[str, ...]:
    return next(output.labels for output in metric.info.outputs if output.name == OUTPUT)
