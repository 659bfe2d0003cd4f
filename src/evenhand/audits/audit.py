"""``audit``: generate, score, compare, report."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar, Unpack

from evenhand.audits import run_setup
from evenhand.audits.analysis.group_analysis import read_stratum
from evenhand.audits.generator import (
    STAGE,
    PromptShard,
    SampleTier,
    TextGenerator,
    add_tier,
    parse_slice,
    plan_shards,
    throughput_key,
)
from evenhand.audits.ray_pool import PooledModel, WorkerSpec, describe_engine, open_pool
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan, TextRunJob, format_duration
from evenhand.config import FORWARD_PRESETS, RunConfig, resolve_config
from evenhand.core import registry
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, split_names
from evenhand.core.protocols import EstimatesThroughput, Model, Progress, ResolvesSpec, ServerInfo, Suite
from evenhand.core.records import GenerationSpec, Group, Prompt
from evenhand.metrics.scorer import scoring_rate_key
from evenhand.models import replay
from evenhand.run_options import AuditOptions
from evenhand.store.cache import ContentCache
from evenhand.store.prompt_rows import interleave_groups
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage


@dataclass(frozen=True, slots=True)
class SuitePart:
    """One suite of an audit, with the sampling that is used for it."""

    suite: Suite
    spec: GenerationSpec
    prompts: tuple[Prompt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditJob(TextRunJob):
    """An audit that is ready to run: everything is checked, nothing is generated yet."""

    options: AuditOptions
    model: Model
    parts: tuple[SuitePart, ...]
    sample_tier: SampleTier
    """The requested number of prompts and samples."""
    slice: tuple[int, int] | None
    """Which part of the work is done here, and of how many; the others are merged later."""
    texts_stage: ClassVar[str] = STAGE

    @property
    def size(self) -> tuple[str, int, int]:
        """The line of the plan that says how much is written, the number of texts, and of tokens at most."""
        names = ", ".join(part.suite.info.name for part in self.parts)
        tier, limits = self.sample_tier, [part.spec.max_new_tokens for part in self.parts]
        counts = [len(part.prompts[: tier.limit]) for part in self.parts]
        texts = sum(counts) * tier.samples
        tokens = tier.samples * sum(count * limit for count, limit in zip(counts, limits, strict=True))
        amount = f"{sum(counts):,} prompts x {tier.samples} samples = {texts:,} texts"
        return f"suite   {names}: {amount}, at most {tokens:,} tokens", texts, tokens

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        size, texts, tokens = self.size
        return RunPlan(
            title=f"audit {self.name}",
            lines=(
                size,
                *self._describe_too_few(),
                *(["part    {} of {} of these".format(*self.slice)] if self.slice else []),
                f"metrics {', '.join(self.metrics)}",
                *run_setup.describe_mitigation(self.model.ref),
                *describe_engine(self.settings),
                f"time    {self._estimate(tokens, texts)}",
                f"folder  {self.folder}",
            ),
        )

    def _describe_too_few(self) -> list[str]:
        """For a plan: that no gap can be tested, where no group has two clusters; else nothing."""
        limit = self.sample_tier.limit
        if limit is None or any(_count_clusters(part.prompts[:limit])[1] > 1 for part in self.parts):
            return []
        prompts = self.parts[0].prompts
        fewest = _count_clusters(prompts)[0]
        need = bisect_left(range(len(prompts)), 2, lo=limit, key=lambda n: _count_clusters(prompts[:n])[0])
        advice = f"; {need:,} prompts give each group two" if fewest > 1 else ""
        return ["note    each group has at most one prompt (template), so that no gap can be tested" + advice]

    def write_texts(self, folder: RunFolder, cache: ContentCache, progress: Progress) -> list[Prompt]:
        """Write the table of generations; returns the prompts of its texts."""
        earlier = [SampleTier(**tier) for tier in folder.manifest["growth"]]
        tiers = add_tier(earlier, self.sample_tier) if earlier else (self.sample_tier,)
        index, of = self.slice or (1, 1)
        shards = [
            _select_shards(part, plan_shards(len(part.prompts), tiers), index, of) for part in self.parts
        ]
        most, retry = self.settings.options["max_failures"], self.options["retry_failed"]
        with run_stage(folder, STAGE) as record:
            keys: list[str] = []
            for part, numbered in zip(self.parts, shards, strict=True):
                generator = TextGenerator(self.model, part.spec, folder, cache, most, retry)
                part_keys = generator.run(part.prompts, list(numbered.values()), progress)
                keys += part_keys
                if self.slice is not None:
                    # For the merge: which shards of all this part of a run holds.
                    held = [[place, key] for place, key in zip(numbered, part_keys, strict=True)]
                    of_suite = folder.manifest.setdefault("slice", {"shards": {}})["shards"]
                    of_suite[part.suite.info.name] = held
            folder.join_shards("generations", STAGE, keys)
            # Only now: a growth that fails must leave the smaller run as it was.
            folder.manifest["growth"] = [asdict(tier) for tier in tiers]
            table = folder.run().table("generations")
            record.update(
                items=table.height,
                failed=table["failure"].count(),
                new_tokens=int(table["new_tokens"].sum() or 0),
            )
            # A run that generated nothing new keeps what it knew of its host.
            if isinstance(self.model, ServerInfo) and (served_by := dict(self.model.served_by)):
                folder.manifest["served_by"] = served_by
        return [
            part.prompts[number]
            for part, numbered in zip(self.parts, shards, strict=True)
            for number in sorted({at for shard in numbered.values() for at in range(shard.start, shard.stop)})
        ]

    def scoring_rate(self) -> float | None:
        """Texts per second that its metrics scored and compared when last measured here, if ever."""
        return _read_rate(scoring_rate_key(self.metrics.values()))

    def _estimate(self, tokens: int, texts: int) -> str:
        scored = self.scoring_rate()
        scoring = f"; scoring and comparing about {format_duration(texts / scored)}" if scored else ""
        spec = self.parts[0].spec
        rate, source = _read_rate(throughput_key(self.model, spec)), "as last measured here"
        if rate is None and isinstance(self.model, EstimatesThroughput):
            rate, source = self.model.pace(spec), "as measured just now"
        if rate is None:
            return f"not known before the first run of this model here; progress is shown{scoring}"
        if math.isinf(rate):
            return f"none for generation: the texts exist already{scoring}"
        return f"at most {format_duration(tokens / rate)} at {rate:,.0f} tokens/s, {source}{scoring}"


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
        metrics={"names": run_setup.metric_names(metrics)},
        mitigation={"name": options["mitigate"], "options": options["mitigation_options"]},
    )
    parts = _load_parts(suite, settings)
    spec = _worker_spec(model, settings)
    with ExitStack() as stack:
        pool = open_pool(settings, spec)
        plain: Model
        if pool:
            stack.callback(pool.close)
            plain = PooledModel(pool)
        elif model is not None and not isinstance(model, str):
            plain = model
        elif spec.model == replay.NAME and isinstance(suite, Suite):
            plain = replay.of_suite(suite)
        else:
            plain = registry.create_model(spec.model, spec.options, spec.execution)
        if isinstance(plain, ResolvesSpec):
            # What the model does not know is refused here.
            parts = tuple(replace(part, spec=plain.resolved(part.spec)) for part in parts)
        preset = settings.options["preset"]
        if preset in FORWARD_PRESETS and parts[0].spec.iterations is not None:
            # Each of its fields alone would pass.
            raise InputError(
                f"preset {preset!r} for the masked model {plain.ref.name!r}",
                expected="bold-bert for masked models; bold-gpt2 and bold-ctrl for models that write forward",
                fix="use --preset bold-bert, or name the sampling without a preset",
            )
        written_by = plain if pool or not spec.mitigation else spec.apply_mitigation(plain)
        if settings.options["baseline"] or settings.options["strata"]:
            _check_comparisons(settings, parts)
        defaults = dict.fromkeys(name for part in parts for name in part.suite.info.metrics)
        identity: dict[str, Json] = {
            "command": "audit",
            "model": written_by.ref.identity(),
            "suites": {
                part.suite.info.name: {
                    "version": part.suite.info.version,
                    "digest": digest([prompt.id for prompt in part.prompts]),
                    "sampling": part.spec.sampling(),
                }
                for part in parts
            },
            "compare": settings.compare_identity(),
        }
        own = parse_slice(options["shard"]) if options["shard"] else None
        if own is not None:
            identity["slice"] = list(own)
        job = AuditJob(
            name=written_by.ref.name,
            suites={part.suite.info.name: asdict(part.suite.info) for part in parts},
            options=options,
            settings=settings,
            model=written_by,
            parts=parts,
            sample_tier=SampleTier(settings.options["limit"], parts[0].spec.samples),
            slice=own,
            metrics=run_setup.find_metrics(metrics, settings, tuple(defaults)),
            identity=identity,
            folder=Path(options["out"] or default_folder("audit", written_by.ref.name, identity)),
            command=options["command"] or f"evenhand audit {settings.model}",
            open_pool=lambda: pool,
            callbacks=run_setup.find_callbacks(options),
        )
        stack.pop_all()
        return job


def _count_clusters(prompts: Sequence[Prompt]) -> tuple[int, int]:
    """The clusters of the group with the fewest, and of that with the most."""
    clusters: dict[Group, set[str]] = {}
    for prompt in prompts:
        for group in prompt.groups:
            clusters.setdefault(group, set()).add(prompt.cluster)
    counts = [len(ids) for ids in clusters.values()]
    return min(counts, default=0), max(counts, default=0)


def _load_parts(suite: str | Sequence[str] | Suite | None, settings: RunConfig) -> tuple[SuitePart, ...]:
    execution = settings.execution()
    parts = []
    for given in [suite] if isinstance(suite, Suite) else settings.suites:
        loaded = given if isinstance(given, Suite) else registry.create_suite(given, execution=execution)
        prompts = tuple(interleave_groups(list(loaded.prompts())))
        if not prompts:
            raise InputError(f"suite {loaded.info.name!r} has no prompts", expected="at least one prompt")
        parts.append(SuitePart(loaded, settings.sampling(loaded.info.spec), prompts))
    names = [part.suite.info.name for part in parts]
    if len(set(names)) < len(names):
        raise InputError(f"the suites are {', '.join(names)}", expected="each suite once", fix="rename one")
    return tuple(parts)


def _worker_spec(model: str | Model | None, settings: RunConfig) -> WorkerSpec:
    """The model by name; an error for an object that would have to travel to other machines."""
    options, engine = dict(settings.model_options), settings.options["engine"]
    if not isinstance(model, str | None) and engine != "local":
        raise InputError(
            f"the model is an object, and the engine is {engine}",
            expected="a model by name, which every worker can load",
            fix="register it as a plug-in and name it, or use the local engine",
        )
    if settings.mitigation_options and not settings.mitigation:
        raise InputError(
            f"options of a mitigation and no mitigation: {', '.join(settings.mitigation_options)}",
            expected="the mitigation too, such as --mitigate calibration",
            fix="name the mitigation, or leave its options out",
        )
    if "max_tokens_total" in options and engine != "local":
        raise InputError(
            f"max_tokens_total, and the engine is {engine}",
            expected="a cap that one process keeps: every worker would spend it again",
            fix="leave --engine ray out: a server needs no workers, `concurrency` says how much it is asked",
        )
    if settings.model == replay.NAME:
        options.setdefault("suite", settings.suites[0])
    named = (settings.model, options, settings.mitigation, settings.mitigation_options)
    return WorkerSpec(settings.execution(), *named)


def _check_comparisons(settings: RunConfig, parts: Sequence[SuitePart]) -> None:
    """An error for a baseline or a stratum that the prompts do not have."""
    prompts = [prompt for part in parts for prompt in part.prompts]
    groups = {axis: set[str]() for part in parts for axis in part.suite.info.baselines}
    for group in (group for prompt in prompts for group in prompt.groups if group.axis in groups):
        groups[group.axis].add(group.name)
    run_setup.check_baselines(settings.options["baseline"], groups)
    for by in settings.options["strata"]:
        if all(read_stratum(prompt, by) is None for prompt in prompts):
            known = {key for prompt in prompts for key in (*prompt.meta, *prompt.fills)}
            raise InputError(
                f"--stratum {by!r} is a property that no prompt has",
                expected=", ".join(sorted(known | {"template"})),
                fix="name one of these",
            )


def _select_shards(
    part: SuitePart, shards: Sequence[PromptShard], index: int, of: int
) -> dict[int, PromptShard]:
    """Every ``of``-th shard from number ``index`` on, by its place among all; an error for none."""
    own = {place: shards[place] for place in range(index - 1, len(shards), of)}
    if not own:
        raise InputError(
            f"--shard {index}/{of} has nothing to do",
            expected=f"at most {len(shards)} parts: {part.suite.info.name} has {len(shards)} shards",
            fix="use fewer parts",
        )
    return own


def _read_rate(key: str) -> float | None:
    """A speed that was measured here before."""
    with closing(ContentCache()) as cache:
        return cache.rate(key)
