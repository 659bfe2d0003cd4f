"""``probe``: does an emotion classifier read the same sentence differently for different groups?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Unpack

import polars as pl

from evenhand.api.parts import SILENT, Plan, begin, opened, split_names
from evenhand.api.probe_options import ProbeOptions
from evenhand.api.render import render
from evenhand.api.settings import Settings, resolve
from evenhand.core import registry
from evenhand.core.digests import Json, canonical_json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Metric, Progress, Suite
from evenhand.core.records import Execution, Prompt
from evenhand.pipeline.exclusions import exclusions
from evenhand.pipeline.pair_tables import flip_table, score_table
from evenhand.pipeline.predictions import OUTPUT, Predictions
from evenhand.pipeline.probing import UNSAID, Prober
from evenhand.pipeline.scoring import STAGE, Scorer
from evenhand.pipeline.tables import prompts_to_table
from evenhand.report.wording import count
from evenhand.store.cache import Cache
from evenhand.store.folder import RunFolder, default_folder, now, stage
from evenhand.store.run import Run
from evenhand.store.schemas import GENERATIONS
from evenhand.suites.pairs.sets import ORDER

NAME: Final = "emotion"
BUILTIN: Final = "builtin"
NEUTRAL: Final = "neutral"
REPLAY: Final = "replay:"
_KINDS: Final = (REPLAY, "endpoint:")
_TIMED: Final = 500
"""Sentences from which a run tells a rate; before that it is mostly the start of the classifier."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe that is ready to run: pairs read, the classifier loaded, nothing scored yet."""

    settings: Settings
    spec: str
    metric: Metric
    suites: tuple[Suite, ...]
    prompts: tuple[Prompt, ...]
    view: Mapping[str, str]
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    @property
    def model(self) -> str:
        """The classifier's name in tables."""
        name = self.spec.removeprefix(f"{NAME}=")
        return f"{REPLAY}{Path(name).name}" if name.startswith(REPLAY) else name

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        sentences = len({prompt.text for prompt in self.prompts})
        axes = ", ".join(dict.fromkeys(group.axis for prompt in self.prompts for group in prompt.groups))
        notes = [f"note    {suite.info.name}: {note}" for suite in self.suites for note in suite.info.notes]
        return Plan(
            title=f"probe {self.model}",
            lines=(
                f"pairs   {', '.join(suite.info.name for suite in self.suites)}: "
                f"{count(self._pairs(), 'pair')} of groups in {count(len(self.prompts), 'sentence')} "
                f"({sentences:,} different), by {axes}",
                *notes,
                f"labels  {', '.join(_labels(self.metric))}",
                f"time    {self._estimate(sentences)}",
                f"folder  {self.folder}",
            ),
            folder=self.folder,
        )

    def run(self, progress: Progress = SILENT) -> Run:
        """Score what is not scored yet, measure and report."""
        with opened(self.folder, self.identity, fresh=self.fresh) as (folder, cache):
            suites: dict[str, Json] = {suite.info.name: asdict(suite.info) for suite in self.suites}
            begin(folder, command=self.command, name=self.model, settings=self.settings, suites=suites)
            folder.write("prompts", prompts_to_table(self.prompts))
            self._score(folder, cache, progress)
            self._measure(folder, progress)
            folder.manifest["ended"] = now()
            folder.save_manifest()
            render(folder.run(), ("html", "json", "md"))
            return folder.run()

    def _score(self, folder: RunFolder, cache: Cache, progress: Progress) -> None:
        sentences = _sentences(self.prompts)
        scorer = Scorer(self.spec, self.metric, folder, cache, "none", self.settings.options["max_failures"])
        # The sentence is what is read; as a prompt it would be out of reach of metrics of continuations.
        prompts = {prompt.id: replace(prompt, text="") for prompt in self.prompts}
        with stage(folder, STAGE) as record:
            started = time.perf_counter()
            tally = scorer.run(sentences, prompts, progress)
            seconds = time.perf_counter() - started
            folder.join_shards("scores", STAGE, tally.keys)
            unsaid = _without_label(folder.run().table("scores"))
            record.update(items=sentences.height, failed=unsaid, seconds=round(seconds, 3))
            if sentences.height >= _TIMED:
                _remember_rate(cache, self.metric, sentences.height / seconds)
        if unsaid == sentences.height:
            raise InputError(
                f"{self.model} has no prediction for any of the {count(sentences.height, 'sentence')}",
                accepted="predictions for the sentences of the pairs, word for word",
                todo="check --pairs and the file",
            )
        folder.write("exclusions", exclusions(sentences, folder.run().scan("scores"), texts_stage="read"))
        folder.manifest["metrics"] = {self.spec: asdict(self.metric.info)}

    def _measure(self, folder: RunFolder, progress: Progress) -> None:
        labels = _labels(self.metric)
        with stage(folder, "measure") as record, progress.step("measuring", None):
            predictions = Predictions.of(
                self.prompts,
                folder.run().table("scores"),
                emotions=[label for label in labels if label != NEUTRAL],
                labels=labels,
                order=ORDER,
            )
            prober = Prober(
                self.model,
                level=self.settings.options["level"],
                correction=self.settings.options["correction"],
                seed=self.settings.options["seed"],
            )
            measures = prober.measures(predictions)
            folder.write("measures", measures)
            folder.write("sets", prober.sets(predictions))
            folder.write("flips", flip_table(predictions, self.model))
            folder.write("pair_scores", score_table(predictions, self.model))
            folder.manifest["view"] = _view(self.view, measures)
            folder.manifest["warnings"] += [
                f"{suite.info.name}: {note}" for suite in self.suites for note in suite.info.notes
            ]
            record.update(items=measures.height)

    def _pairs(self) -> int:
        sizes: dict[tuple[str, str | None], int] = {}
        for prompt in self.prompts:
            key = (prompt.suite, prompt.template_id)
            sizes[key] = sizes.get(key, 0) + 1
        return sum(size * (size - 1) // 2 for size in sizes.values())

    def _estimate(self, sentences: int) -> str:
        cache = Cache()
        rate = cache.rate(_rate_key(self.metric))
        cache.close()
        if rate is None:
            return "not known before the first run of this classifier here; progress is shown"
        return f"at most {sentences / rate:,.0f} s at {rate:,.0f} sentences/s, as last measured here"


@checks_options
def probe(
    classifier: str | Metric = NAME, *, progress: Progress = SILENT, **options: Unpack[ProbeOptions]
) -> Run:
    """The finished run of an emotion classifier over counterfactual pairs: measures, flips and a report.

    Arguments are those of ``evenhand probe``. The classifier may be a metric, the pairs a suite; ``labels``
    maps the classifier's labels to ours.
    """
    return prepare(classifier, **options).run(progress)


@checks_options
def prepare(classifier: str | Metric = NAME, **options: Unpack[ProbeOptions]) -> Probe:
    """A probe with everything loaded and checked, so that ``plan`` can be shown before ``run``."""
    # The pairs of a probe are sentences, those of [compare] are groups.
    settings = resolve({**options, "pairs": None})
    view = {"pairs": options["over"], "score": options["score"]}
    suites = _suites(options["pairs"], settings.execution())
    prompts = tuple(prompt for suite in suites for prompt in suite.prompts())
    _check_prompts(prompts)
    spec, metric = _metric(classifier, options["labels"], settings)
    identity: dict[str, Json] = {
        "command": "probe",
        "classifier": metric.info.identity(),
        "pairs": {suite.info.name: [suite.info.version, suite.info.digest] for suite in suites},
        "level": settings.options["level"],
        "correction": settings.options["correction"],
        "seed": settings.options["seed"],
    }
    out = options["out"]
    name = Path(spec.removeprefix(f"{NAME}=").rpartition(":")[2]).name
    return Probe(
        settings=settings,
        spec=spec,
        metric=metric,
        suites=suites,
        prompts=prompts,
        view=view,
        identity=identity,
        folder=Path(out) if out else default_folder("probe", name, identity),
        command=options["command"] or f"evenhand probe {spec}",
        fresh=options["fresh"],
    )


def _suites(pairs: str | Sequence[str] | Suite | None, execution: Execution) -> tuple[Suite, ...]:
    if isinstance(pairs, Suite):
        return (pairs,)
    found = [_suite(name, execution) for name in split_names(pairs) or (BUILTIN,)]
    names = [suite.info.name for suite in found]
    if len(set(names)) < len(names):
        raise InputError(f"the pairs are {', '.join(names)}", accepted="each once", todo="rename one")
    return tuple(found)


def _suite(name: str, execution: Execution) -> Suite:
    """The pairs of a name: ``builtin``, a registered suite such as ``eec`` or ``eec:PATH``, or a file."""
    family, _, rest = name.partition(":")
    registered = {entry.name for entry in registry.available("suites")}
    if name == BUILTIN:
        return registry.suite("pairs")
    if family in registered:
        return registry.suite(family, {"name": rest} if rest else {}, execution)
    if Path(name).suffix or Path(name).exists():
        return registry.suite("pairs", {"name": name})
    raise InputError(
        f"there are no pairs named {name!r}",
        accepted="builtin, eec, bits, crows, or a file (TOML, JSONL, CSV, TSV, Parquet)",
        todo="use one of these; eec:PATH names the place of published pairs",
    )


def _check_prompts(prompts: Sequence[Prompt]) -> None:
    single = [prompt for prompt in prompts if prompt.template_id is None or len(prompt.groups) != 1]
    if not prompts or single:
        raise InputError(
            f"{len(single):,} of {len(prompts):,} sentences belong to no set, or to several groups at once",
            accepted="sentences of one group each, linked by `template_id`",
            todo="use pairs: see `evenhand show pairs`",
        )


def _metric(
    classifier: str | Metric, labels: str | Mapping[str, str] | None, settings: Settings
) -> tuple[str, Metric]:
    given = labels if isinstance(labels, str) or labels is None else canonical_json(dict(labels))
    if not isinstance(classifier, str):
        _check_metric(classifier, classifier.info.name)
        return classifier.info.name, classifier
    spec = _spec(classifier)
    options = dict(settings.options_of_metrics.get(NAME, {})) | ({"labels": given} if given else {})
    metric = registry.metric(spec, options, settings.execution())
    if not isinstance(metric, Metric):
        raise InputError(f"{spec!r} measures sets of texts, not texts", accepted="an emotion classifier")
    _check_metric(metric, spec)
    return spec, metric


def _spec(classifier: str) -> str:
    """The metric behind a classifier's name: what is no metric is a folder, a Hub id, a file or a URL."""
    family = classifier.partition("=")[0]
    registered = {entry.name for entry in registry.available("metrics")}
    is_metric = family in registered and not classifier.startswith(_KINDS)
    return classifier if is_metric else f"{NAME}={classifier}"


def _check_metric(metric: Metric, spec: str) -> None:
    outputs = {output.name: output for output in metric.info.outputs}
    if OUTPUT not in outputs or not outputs[OUTPUT].labels:
        raise InputError(
            f"{spec!r} gives {', '.join(outputs)}",
            accepted=f"a metric with an output {OUTPUT!r} whose labels are emotions",
            todo="name an emotion classifier: emotion, a Hub id, a folder, replay:FILE or endpoint:URL",
        )


def _labels(metric: Metric) -> tuple[str, ...]:
    return next(output.labels for output in metric.info.outputs if output.name == OUTPUT)


def _sentences(prompts: Sequence[Prompt]) -> pl.DataFrame:
    columns: dict[str, list[str] | None] = {
        "id": [prompt.id for prompt in prompts],
        "prompt_id": [prompt.id for prompt in prompts],
        "text": [prompt.text for prompt in prompts],
    }
    table = pl.DataFrame(columns, schema={name: GENERATIONS[name] for name in columns})
    return table.with_columns(failure=pl.lit(None, pl.String))


def _without_label(scores: pl.DataFrame) -> int:
    return scores.filter((pl.col("output") == OUTPUT) & pl.col("label").is_null()).height


def _view(asked: Mapping[str, str], measures: pl.DataFrame) -> dict[str, Json]:
    """What the report shows first; a file of predicted classes has no intensities of other emotions."""
    own = measures.filter(pl.col("pairs") == asked["pairs"], pl.col("score") == asked["score"])
    unsaid = own["null_reason"].str.contains(UNSAID, literal=True).any()
    return {"pairs": asked["pairs"], "score": "predicted" if unsaid else asked["score"]}


def _rate_key(metric: Metric) -> str:
    return digest(["probe", metric.info.identity()])


def _remember_rate(cache: Cache, metric: Metric, rate: float) -> None:
    """Keep the slowest rate: a faster one may only have found its answers in the cache."""
    key = _rate_key(metric)
    cache.put_many("rates", {key: min(rate, cache.rate(key) or rate)})
