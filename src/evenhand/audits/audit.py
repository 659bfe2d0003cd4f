"""``audit``: generate, score, compare, report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Unpack

import polars as pl

from evenhand.audits.experiment_loggers import Callback, callbacks
from evenhand.audits.generator import (
    STAGE,
    PromptShard,
    RunSlice,
    SampleTier,
    TextGenerator,
    add_tier,
    plan_shards,
    throughput_key,
)
from evenhand.audits.ray_pool import (
    ActorPool,
    ModelSpec,
    PooledModel,
    close_pool_after,
    create_executors,
    describe_engine,
    open_pool,
)
from evenhand.audits.run_setup import (
    SILENT_PROGRESS,
    RunMetrics,
    RunPlan,
    add_earlier_metrics,
    check_axes,
    check_baseline,
    check_strata,
    describe_mitigation,
    find_metrics,
    format_duration,
    measure_and_report,
    metric_names,
    object_names,
    open_run,
    write_manifest,
)
from evenhand.config import FORWARD_PRESETS, RunConfig, resolve_config
from evenhand.core import registry
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, split_names
from evenhand.core.protocols import (
    EstimatesThroughput,
    Metric,
    Model,
    Progress,
    ResolvesSpec,
    ServerInfo,
    Suite,
)
from evenhand.core.records import GenerationSpec, Prompt
from evenhand.metrics.scorer import scoring_rate_key
from evenhand.models import replay
from evenhand.run_options import AuditOptions
from evenhand.store.cache import ContentCache
from evenhand.store.prompt_rows import interleave_groups
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage

"""The model that is no model: the texts people wrote, which come with the run's suite."""


@dataclass(frozen=True, slots=True)
class _SuitePart:
    """One suite of an audit, with the sampling that is used for it."""

    suite: Suite
    spec: GenerationSpec
    prompts: tuple[Prompt, ...]

    def identity(self) -> dict[str, Json]:
        info = self.suite.info
        return {
            "version": info.version,
            "digest": digest([prompt.id for prompt in self.prompts]),
            "sampling": self.spec.sampling(),
        }


@dataclass(frozen=True, slots=True)
class AuditJob:
    """An audit that is ready to run: everything is checked, nothing is generated yet."""

    settings: RunConfig
    model: Model
    parts: tuple[_SuitePart, ...]
    metrics: Mapping[str, Metric]
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool
    retry_failed: bool
    slice: RunSlice | None = None
    """The part of the work that is done here; the others are merged later."""
    pool: ActorPool | None = None
    """The actors that write and score; None where this process does."""
    objects: tuple[str, ...] = ()
    """Metrics that were given as objects."""
    callbacks: tuple[Callback, ...] = ()
    """Each is called with the finished run."""

    @property
    def sample_tier(self) -> SampleTier:
        """How much is asked for."""
        return SampleTier(self.settings.options["limit"], self.parts[0].spec.samples)

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        limit = self.settings.options["limit"]
        prompts = sum(len(part.prompts[:limit]) for part in self.parts)
        texts = prompts * self.sample_tier.samples
        tokens = sum(
            len(part.prompts[:limit]) * self.sample_tier.samples * part.spec.max_new_tokens
            for part in self.parts
        )
        return RunPlan(
            title=f"audit {self.model.ref.name}",
            lines=(
                f"suite   {', '.join(part.suite.info.name for part in self.parts)}: {prompts:,} prompts "
                f"x {self.sample_tier.samples} samples = {texts:,} texts, at most {tokens:,} tokens",
                *([f"part    {self.slice.index} of {self.slice.of} of these"] if self.slice else []),
                f"metrics {', '.join(self.metrics)}",
                *describe_mitigation(self.model.ref),
                *describe_engine(self.settings),
                f"time    {self._estimate(tokens, texts)}",
                f"folder  {self.folder}",
            ),
            folder=self.folder,
        )

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Generate, score, compare and report; resumes what an earlier run left."""
        with (
            close_pool_after(self.pool),
            open_run(self.folder, self.identity, fresh=self.fresh) as (folder, cache),
        ):
            run = self._work(folder, cache, progress)
        for callback in self.callbacks:
            callback(run)
        return run

    def _work(self, folder: RunFolder, cache: ContentCache, progress: Progress) -> Run:
        tiers = add_tier([SampleTier(**tier) for tier in folder.manifest["growth"]], self.sample_tier)
        suites: dict[str, Json] = {part.suite.info.name: asdict(part.suite.info) for part in self.parts}
        write_manifest(
            folder, command=self.command, name=self.model.ref.name, settings=self.settings, suites=suites
        )
        shards = {part.suite.info.name: self._shards(part, tiers) for part in self.parts}
        with run_stage(folder, STAGE) as record:
            keys: list[str] = []
            for part in self.parts:
                found = shards[part.suite.info.name]
                made = self._generate(part, [shard for _, shard in found], folder, cache, progress)
                keys += made
                self._remember(folder, part, found, made)
            folder.join_shards("generations", STAGE, keys)
            # Only now: a growth that fails must leave the smaller run as it was.
            folder.manifest["growth"] = [asdict(tier) for tier in tiers]
            record.update(_count_generations(folder.run().table("generations")))
            self._note_host(folder)
        prompts = [
            prompt
            for part in self.parts
            for prompt in _select_prompts(part.prompts, shards[part.suite.info.name])
        ]
        metrics = add_earlier_metrics(self.metrics, folder, self.settings)
        return measure_and_report(
            folder,
            settings=self.settings,
            metrics=RunMetrics(metrics, create_executors(self.pool, metrics, self.settings, self.objects)),
            prompts=prompts,
            baselines=self.baselines(),
            cache=cache,
            progress=progress,
            texts_stage=STAGE,
        )

    def _shards(self, part: _SuitePart, tiers: Sequence[SampleTier]) -> list[tuple[int, PromptShard]]:
        """The shards that are worked on here, each with its place among all."""
        shards = list(enumerate(plan_shards(len(part.prompts), tiers)))
        if self.slice is None:
            return shards
        own = [shards[place] for place in self.slice.places(len(shards))]
        if not own:
            raise InputError(
                f"--shard {self.slice.index}/{self.slice.of} has nothing to do",
                expected=f"at most {len(shards)} parts: {part.suite.info.name} has {len(shards)} shards",
                fix="use fewer parts",
            )
        return own

    def _remember(
        self,
        folder: RunFolder,
        part: _SuitePart,
        shards: Sequence[tuple[int, PromptShard]],
        keys: Sequence[str],
    ) -> None:
        """Write down which shards this part of a run holds, for the merge."""
        if self.slice is not None:
            held = [[place, key] for (place, _), key in zip(shards, keys, strict=True)]
            of_suite = folder.manifest.setdefault("slice", {"shards": {}})["shards"]
            of_suite[part.suite.info.name] = held

    def _note_host(self, folder: RunFolder) -> None:
        """Keep what a host said of itself; a run that asked for nothing more keeps what it knew."""
        served = dict(self.model.served_by) if isinstance(self.model, ServerInfo) else {}
        if served:
            folder.manifest["served_by"] = served

    def _generate(
        self,
        part: _SuitePart,
        shards: Sequence[PromptShard],
        folder: RunFolder,
        cache: ContentCache,
        progress: Progress,
    ) -> list[str]:
        generator = TextGenerator(
            self.model,
            part.spec,
            folder,
            cache,
            failure_rate=self.settings.options["max_failures"],
            retry_failed=self.retry_failed,
        )
        return generator.run(part.prompts, shards, progress)

    def baselines(self) -> dict[tuple[str, str], str]:
        """The declared baseline of every suite and axis."""
        given = self.settings.options["baseline"]
        known = {
            (part.suite.info.name, axis): given.get(axis, name)
            for part in self.parts
            for axis, name in part.suite.info.baselines.items()
        }
        check_axes(given, {axis for _, axis in known})
        for axis, name in given.items():
            check_baseline(axis, name, self._groups(axis))
        return known

    def _groups(self, axis: str) -> set[str]:
        prompts = [prompt for part in self.parts for prompt in part.prompts]
        return {group.name for prompt in prompts for group in prompt.groups if group.axis == axis}

    def scoring_rate(self) -> float | None:
        """Texts a second that its metrics scored and compared when last measured here; None before that."""
        return _read_rate(scoring_rate_key(self.metrics.values()))

    def _estimate(self, tokens: int, texts: int) -> str:
        rate = self.scoring_rate()
        scoring = f"; scoring and comparing about {format_duration(texts / rate)}" if rate else ""
        return self._describe_generation(tokens) + scoring

    def _describe_generation(self, tokens: int) -> str:
        spec = self.parts[0].spec
        rate, source = _read_rate(throughput_key(self.model, spec)), "as last measured here"
        if rate is None and isinstance(self.model, EstimatesThroughput):
            rate, source = self.model.pace(spec), "as tried just now"
        if rate is None:
            return "not known before the first run of this model here; progress is shown"
        if math.isinf(rate):
            return "none for writing: the texts are there already"
        return f"at most {format_duration(tokens / rate)} at {rate:,.0f} tokens/s, {source}"


@checks_options
def audit(
    model: str | Model | None = None, *, progress: Progress = SILENT_PROGRESS, **options: Unpack[AuditOptions]
) -> Run:
    """The finished run of a model on prompt suites: texts, scores, comparisons and a report.

    Arguments are those of ``evenhand audit``. A model, suite or metric may be an object instead of a name.
    """
    return prepare(model, **options).run(progress)


@checks_options
def prepare(model: str | Model | None = None, **options: Unpack[AuditOptions]) -> AuditJob:
    """An audit with everything loaded and checked, so that ``plan`` can be shown before ``run``."""
    suite, metrics = options["suite"], options["metrics"]
    settings = resolve_config(
        options,
        model={"name": model if isinstance(model, str) else None},
        suite={"names": None if isinstance(suite, Suite) else split_names(suite)},
        metrics={"names": metric_names(metrics)},
        mitigation={"name": options["mitigate"], "options": options["mitigation_options"]},
    )
    parts = tuple(_build_part(item, settings) for item in _load_suites(suite, settings))
    names = [part.suite.info.name for part in parts]
    if len(set(names)) < len(names):
        raise InputError(f"the suites are {', '.join(names)}", expected="each suite once", fix="rename one")
    recipe = _model_spec(model, settings)
    pool = open_pool(settings, recipe)
    with close_pool_after(pool, always=False):
        chosen = PooledModel(pool) if pool else _find_model(model, recipe, settings, suite)
        parts = tuple(_resolve_part(part, chosen) for part in parts)
        _check_preset(settings.options["preset"], chosen, parts[0].spec)
        prepared = _build_job(
            parts, chosen if pool else recipe.apply_mitigation(chosen), settings, options, pool
        )
        prepared.baselines()  # a wrong one is refused before anything is generated
        check_strata(settings.options["strata"], [prompt for part in parts for prompt in part.prompts])
        return prepared


def _build_job(
    parts: tuple[_SuitePart, ...],
    model: Model,
    settings: RunConfig,
    options: AuditOptions,
    pool: ActorPool | None,
) -> AuditJob:
    identity: dict[str, Json] = {
        "command": "audit",
        "model": model.ref.identity(),
        "suites": {part.suite.info.name: part.identity() for part in parts},
        "compare": settings.compare_identity(),
    }
    metrics, shard, out = options["metrics"], options["shard"], options["out"]
    part_of = RunSlice.parse(shard) if shard else None
    if part_of:
        identity["slice"] = [part_of.index, part_of.of]
    defaults = tuple(dict.fromkeys(name for part in parts for name in part.suite.info.metrics))
    return AuditJob(
        settings=settings,
        model=model,
        parts=parts,
        metrics=find_metrics(metrics, settings, defaults),
        identity=identity,
        folder=Path(out) if out else default_folder("audit", model.ref.name, identity),
        command=options["command"] or f"evenhand audit {settings.model}",
        fresh=options["fresh"],
        retry_failed=options["retry_failed"],
        slice=part_of,
        pool=pool,
        objects=object_names(metrics),
        callbacks=tuple(callbacks(options)),
    )


def _select_prompts(prompts: Sequence[Prompt], shards: Sequence[tuple[int, PromptShard]]) -> list[Prompt]:
    """The prompts of the shards, once each, in their order."""
    held = {number for _, shard in shards for number in range(shard.start, shard.stop)}
    return [prompts[number] for number in sorted(held)]


def _build_part(suite: Suite, settings: RunConfig) -> _SuitePart:
    prompts = tuple(interleave_groups(list(suite.prompts())))
    if not prompts:
        raise InputError(f"suite {suite.info.name!r} has no prompts", expected="at least one prompt")
    return _SuitePart(suite, settings.sampling(suite.info.spec), prompts)


def _resolve_part(part: _SuitePart, model: Model) -> _SuitePart:
    """The part with its sampling as the model will do it; what the model does not know is refused here."""
    return replace(part, spec=model.resolved(part.spec)) if isinstance(model, ResolvesSpec) else part


def _check_preset(preset: str | None, model: Model, resolved: GenerationSpec) -> None:
    """An error for the preset of another kind of model, where each of its fields alone would pass."""
    if preset in FORWARD_PRESETS and resolved.iterations is not None:
        raise InputError(
            f"preset {preset!r} for the masked model {model.ref.name!r}",
            expected="bold-bert for masked models; bold-gpt2 and bold-ctrl for models that write forward",
            fix="use --preset bold-bert, or name the sampling without a preset",
        )


def _load_suites(suite: str | Sequence[str] | Suite | None, settings: RunConfig) -> list[Suite]:
    if isinstance(suite, Suite):
        return [suite]
    return [registry.create_suite(name, execution=settings.execution()) for name in settings.suites]


def _model_spec(model: str | Model | None, settings: RunConfig) -> ModelSpec:
    """The model by name; an error for an object that would have to travel to other machines."""
    if not isinstance(model, str | None) and settings.options["engine"] != "local":
        raise InputError(
            f"the model is an object, and the engine is {settings.options['engine']}",
            expected="a model by name, which every worker can load",
            fix="register it as a plug-in and name it, or use the local engine",
        )
    if settings.mitigation_options and not settings.mitigation:
        raise InputError(
            f"options of a mitigation and no mitigation: {', '.join(settings.mitigation_options)}",
            expected="the mitigation too, such as --mitigate calibration",
            fix="name the mitigation, or leave its options out",
        )
    given = dict(settings.model_options)
    if "max_tokens_total" in given and settings.options["engine"] != "local":
        raise InputError(
            f"max_tokens_total, and the engine is {settings.options['engine']}",
            expected="a cap that one process keeps: every worker would spend it again",
            fix="leave --engine ray out: a server needs no workers, `concurrency` says how much it is asked",
        )
    if settings.model == replay.NAME:
        given.setdefault("suite", settings.suites[0])
    return ModelSpec(settings.model, given, settings.mitigation, settings.mitigation_options)


def _find_model(model: str | Model | None, recipe: ModelSpec, settings: RunConfig, suite: object) -> Model:
    if model is not None and not isinstance(model, str):
        return model
    if settings.model == replay.NAME and isinstance(suite, Suite):
        return replay.of_suite(suite)
    return recipe.load_plain(settings.execution())


def _read_rate(key: str) -> float | None:
    """A speed that was measured here before."""
    cache = ContentCache()
    rate = cache.rate(key)
    cache.close()
    return rate


def _count_generations(generations: pl.DataFrame) -> dict[str, Json]:
    return {
        "items": generations.height,
        "failed": generations["failure"].count(),
        "new_tokens": int(generations["new_tokens"].sum() or 0),
    }
