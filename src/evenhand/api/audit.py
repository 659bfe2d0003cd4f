"""``audit``: generate, score, compare, report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Unpack

import polars as pl

from evenhand.api.cluster import askers, ending, engine_line, open_pool
from evenhand.api.parts import (
    SILENT,
    Asked,
    Plan,
    begin,
    check_axes,
    check_baseline,
    check_strata,
    duration,
    find_metrics,
    finish,
    metric_names,
    mitigation_lines,
    objects_among,
    opened,
    split_names,
    with_earlier,
)
from evenhand.api.run_options import AuditOptions
from evenhand.api.settings import FORWARD_PRESETS, Settings, resolve
from evenhand.api.tracking import Callback, callbacks
from evenhand.core import registry
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Metric, Model, Paced, Progress, ResolvesSpec, Served, Suite
from evenhand.core.records import GenerationSpec, Prompt
from evenhand.models import human
from evenhand.pipeline.actors import Pool, PooledModel
from evenhand.pipeline.generation import STAGE, Generator, rate_key
from evenhand.pipeline.planning import Shard, Slice, Tier, grow, plan
from evenhand.pipeline.scoring import pace_key
from evenhand.pipeline.tables import spread
from evenhand.pipeline.workers import ModelRecipe
from evenhand.store.cache import Cache
from evenhand.store.folder import RunFolder, default_folder, stage
from evenhand.store.run import Run

"""The model that is no model: the texts people wrote, which come with the run's suite."""


@dataclass(frozen=True, slots=True)
class _Part:
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
class Audit:
    """An audit that is ready to run: everything is checked, nothing is generated yet."""

    settings: Settings
    model: Model
    parts: tuple[_Part, ...]
    metrics: Mapping[str, Metric]
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool
    retry_failed: bool
    slice: Slice | None = None
    """The part of the work that is done here; the others are merged later."""
    pool: Pool | None = None
    """The actors that write and score; None where this process does."""
    objects: tuple[str, ...] = ()
    """Metrics that were given as objects."""
    callbacks: tuple[Callback, ...] = ()
    """Each is called with the finished run."""

    @property
    def tier(self) -> Tier:
        """How much is asked for."""
        return Tier(self.settings.options["limit"], self.parts[0].spec.samples)

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        limit = self.settings.options["limit"]
        prompts = sum(len(part.prompts[:limit]) for part in self.parts)
        texts = prompts * self.tier.samples
        tokens = sum(
            len(part.prompts[:limit]) * self.tier.samples * part.spec.max_new_tokens for part in self.parts
        )
        return Plan(
            title=f"audit {self.model.ref.name}",
            lines=(
                f"suite   {', '.join(part.suite.info.name for part in self.parts)}: {prompts:,} prompts "
                f"x {self.tier.samples} samples = {texts:,} texts, at most {tokens:,} tokens",
                *([f"part    {self.slice.index} of {self.slice.of} of these"] if self.slice else []),
                f"metrics {', '.join(self.metrics)}",
                *mitigation_lines(self.model.ref),
                *engine_line(self.settings),
                f"time    {self._estimate(tokens, texts)}",
                f"folder  {self.folder}",
            ),
            folder=self.folder,
        )

    def run(self, progress: Progress = SILENT) -> Run:
        """Generate, score, compare and report; resumes what an earlier run left."""
        with (
            ending(self.pool),
            opened(self.folder, self.identity, fresh=self.fresh) as (folder, cache),
        ):
            run = self._work(folder, cache, progress)
        for callback in self.callbacks:
            callback(run)
        return run

    def _work(self, folder: RunFolder, cache: Cache, progress: Progress) -> Run:
        tiers = grow([Tier(**tier) for tier in folder.manifest["growth"]], self.tier)
        suites: dict[str, Json] = {part.suite.info.name: asdict(part.suite.info) for part in self.parts}
        begin(folder, command=self.command, name=self.model.ref.name, settings=self.settings, suites=suites)
        shards = {part.suite.info.name: self._shards(part, tiers) for part in self.parts}
        with stage(folder, STAGE) as record:
            keys: list[str] = []
            for part in self.parts:
                found = shards[part.suite.info.name]
                made = self._generate(part, [shard for _, shard in found], folder, cache, progress)
                keys += made
                self._remember(folder, part, found, made)
            folder.join_shards("generations", STAGE, keys)
            # Only now: a growth that fails must leave the smaller run as it was.
            folder.manifest["growth"] = [asdict(tier) for tier in tiers]
            record.update(_counted(folder.run().table("generations")))
            self._note_host(folder)
        prompts = [
            prompt for part in self.parts for prompt in _held(part.prompts, shards[part.suite.info.name])
        ]
        metrics = with_earlier(self.metrics, folder, self.settings)
        return finish(
            folder,
            settings=self.settings,
            metrics=Asked(metrics, askers(self.pool, metrics, self.settings, self.objects)),
            prompts=prompts,
            baselines=self.baselines(),
            cache=cache,
            progress=progress,
            texts_stage=STAGE,
        )

    def _shards(self, part: _Part, tiers: Sequence[Tier]) -> list[tuple[int, Shard]]:
        """The shards that are worked on here, each with its place among all."""
        shards = list(enumerate(plan(len(part.prompts), tiers)))
        if self.slice is None:
            return shards
        own = [shards[place] for place in self.slice.places(len(shards))]
        if not own:
            raise InputError(
                f"--shard {self.slice.index}/{self.slice.of} has nothing to do",
                accepted=f"at most {len(shards)} parts: {part.suite.info.name} has {len(shards)} shards",
                todo="use fewer parts",
            )
        return own

    def _remember(
        self, folder: RunFolder, part: _Part, shards: Sequence[tuple[int, Shard]], keys: Sequence[str]
    ) -> None:
        """Write down which shards this part of a run holds, for the merge."""
        if self.slice is not None:
            held = [[place, key] for (place, _), key in zip(shards, keys, strict=True)]
            of_suite = folder.manifest.setdefault("slice", {"shards": {}})["shards"]
            of_suite[part.suite.info.name] = held

    def _note_host(self, folder: RunFolder) -> None:
        """Keep what a host said of itself; a run that asked for nothing more keeps what it knew."""
        served = dict(self.model.served_by) if isinstance(self.model, Served) else {}
        if served:
            folder.manifest["served_by"] = served

    def _generate(
        self, part: _Part, shards: Sequence[Shard], folder: RunFolder, cache: Cache, progress: Progress
    ) -> list[str]:
        generator = Generator(
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
        return _remembered(pace_key(self.metrics.values()))

    def _estimate(self, tokens: int, texts: int) -> str:
        rate = self.scoring_rate()
        scoring = f"; scoring and comparing about {duration(texts / rate)}" if rate else ""
        return self._writing(tokens) + scoring

    def _writing(self, tokens: int) -> str:
        spec = self.parts[0].spec
        rate, source = _remembered(rate_key(self.model, spec)), "as last measured here"
        if rate is None and isinstance(self.model, Paced):
            rate, source = self.model.pace(spec), "as tried just now"
        if rate is None:
            return "not known before the first run of this model here; progress is shown"
        if math.isinf(rate):
            return "none for writing: the texts are there already"
        return f"at most {duration(tokens / rate)} at {rate:,.0f} tokens/s, {source}"


@checks_options
def audit(
    model: str | Model | None = None, *, progress: Progress = SILENT, **options: Unpack[AuditOptions]
) -> Run:
    """The finished run of a model on prompt suites: texts, scores, comparisons and a report.

    Arguments are those of ``evenhand audit``. A model, suite or metric may be an object instead of a name.
    """
    return prepare(model, **options).run(progress)


@checks_options
def prepare(model: str | Model | None = None, **options: Unpack[AuditOptions]) -> Audit:
    """An audit with everything loaded and checked, so that ``plan`` can be shown before ``run``."""
    suite, metrics = options["suite"], options["metrics"]
    settings = resolve(
        options,
        model={"name": model if isinstance(model, str) else None},
        suite={"names": None if isinstance(suite, Suite) else split_names(suite)},
        metrics={"names": metric_names(metrics)},
        mitigation={"name": options["mitigate"], "options": options["mitigation_options"]},
    )
    parts = tuple(_part(item, settings) for item in _suites(suite, settings))
    names = [part.suite.info.name for part in parts]
    if len(set(names)) < len(names):
        raise InputError(f"the suites are {', '.join(names)}", accepted="each suite once", todo="rename one")
    recipe = _recipe(model, settings)
    pool = open_pool(settings, recipe)
    with ending(pool, always=False):
        chosen = PooledModel(pool) if pool else _find_model(model, recipe, settings, suite)
        parts = tuple(_resolved(part, chosen) for part in parts)
        _check_preset(settings.options["preset"], chosen, parts[0].spec)
        prepared = _prepared(parts, chosen if pool else recipe.mitigated(chosen), settings, options, pool)
        prepared.baselines()  # a wrong one is refused before anything is generated
        check_strata(settings.options["strata"], [prompt for part in parts for prompt in part.prompts])
        return prepared


def _prepared(
    parts: tuple[_Part, ...], model: Model, settings: Settings, options: AuditOptions, pool: Pool | None
) -> Audit:
    identity: dict[str, Json] = {
        "command": "audit",
        "model": model.ref.identity(),
        "suites": {part.suite.info.name: part.identity() for part in parts},
        "compare": settings.compare_identity(),
    }
    metrics, shard, out = options["metrics"], options["shard"], options["out"]
    part_of = Slice.parse(shard) if shard else None
    if part_of:
        identity["slice"] = [part_of.index, part_of.of]
    defaults = tuple(dict.fromkeys(name for part in parts for name in part.suite.info.metrics))
    return Audit(
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
        objects=objects_among(metrics),
        callbacks=tuple(callbacks(options)),
    )


def _held(prompts: Sequence[Prompt], shards: Sequence[tuple[int, Shard]]) -> list[Prompt]:
    """The prompts of the shards, once each, in their order."""
    held = {number for _, shard in shards for number in range(shard.start, shard.stop)}
    return [prompts[number] for number in sorted(held)]


def _part(suite: Suite, settings: Settings) -> _Part:
    prompts = tuple(spread(list(suite.prompts())))
    if not prompts:
        raise InputError(f"suite {suite.info.name!r} has no prompts", accepted="at least one prompt")
    return _Part(suite, settings.sampling(suite.info.spec), prompts)


def _resolved(part: _Part, model: Model) -> _Part:
    """The part with its sampling as the model will do it; what the model does not know is refused here."""
    return replace(part, spec=model.resolved(part.spec)) if isinstance(model, ResolvesSpec) else part


def _check_preset(preset: str | None, model: Model, resolved: GenerationSpec) -> None:
    """An error for the preset of another kind of model, where each of its fields alone would pass."""
    if preset in FORWARD_PRESETS and resolved.iterations is not None:
        raise InputError(
            f"preset {preset!r} for the masked model {model.ref.name!r}",
            accepted="bold-bert for masked models; bold-gpt2 and bold-ctrl for models that write forward",
            todo="use --preset bold-bert, or name the sampling without a preset",
        )


def _suites(suite: str | Sequence[str] | Suite | None, settings: Settings) -> list[Suite]:
    if isinstance(suite, Suite):
        return [suite]
    return [registry.suite(name, execution=settings.execution()) for name in settings.suites]


def _recipe(model: str | Model | None, settings: Settings) -> ModelRecipe:
    """The model by name; an error for an object that would have to travel to other machines."""
    if not isinstance(model, str | None) and settings.options["engine"] != "local":
        raise InputError(
            f"the model is an object, and the engine is {settings.options['engine']}",
            accepted="a model by name, which every worker can load",
            todo="register it as a plug-in and name it, or use the local engine",
        )
    given = dict(settings.model_options)
    if "max_tokens_total" in given and settings.options["engine"] != "local":
        raise InputError(
            f"max_tokens_total, and the engine is {settings.options['engine']}",
            accepted="a cap that one process keeps: every worker would spend it again",
            todo="leave --engine ray out: a server needs no workers, `concurrency` says how much it is asked",
        )
    if settings.model == human.NAME:
        given.setdefault("suite", settings.suites[0])
    return ModelRecipe(settings.model, given, settings.mitigation, settings.mitigation_options)


def _find_model(model: str | Model | None, recipe: ModelRecipe, settings: Settings, suite: object) -> Model:
    if model is not None and not isinstance(model, str):
        return model
    if settings.model == human.NAME and isinstance(suite, Suite):
        return human.of_suite(suite)
    return recipe.plain(settings.execution())


def _remembered(key: str) -> float | None:
    """A speed that was measured here before."""
    cache = Cache()
    rate = cache.rate(key)
    cache.close()
    return rate


def _counted(generations: pl.DataFrame) -> dict[str, Json]:
    return {
        "items": generations.height,
        "failed": generations["failure"].count(),
        "new_tokens": int(generations["new_tokens"].sum() or 0),
    }
