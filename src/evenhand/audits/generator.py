"""Prompts to texts: shard by shard, each committed as it is finished."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import NamedTuple, Protocol, cast, runtime_checkable

import polars as pl

from evenhand.core.digests import Json, digest
from evenhand.core.errors import FailureRateError, InputError, ModelError, RunFolderError
from evenhand.core.protocols import MaxBatch, Model, Progress
from evenhand.core.records import Completion, Finish, GenerationSpec, Prompt, Request
from evenhand.store.cache import ContentCache
from evenhand.store.run_folder import RunFolder
from evenhand.store.schemas import GENERATIONS
from evenhand.text.sentences import first_sentence_end

SHARD_PROMPTS = 64
"""A shard is redone whole after a kill: small enough to lose little, large enough to fill a CPU's batch."""


@dataclass(frozen=True, slots=True)
class SampleTier:
    """How much of a suite was asked for at one time: prompts up to ``limit``, each ``samples`` times."""

    limit: int | None
    samples: int


@dataclass(frozen=True, slots=True)
class PromptShard:
    """Prompts from ``start`` to ``stop`` (exclusive), each with these sample numbers."""

    start: int
    stop: int
    samples: range
    tier: int = field(default=0, compare=False)
    """The place of the tier that asked for it."""


def parse_slice(text: str) -> tuple[int, int]:
    """One of several machines' share of a run: ``2/5``, the second of five, has every fifth shard."""
    index, slash, of = text.partition("/")
    if slash and index.isdecimal() and of.isdecimal() and 1 <= int(index) <= int(of):
        return int(index), int(of)
    raise InputError(
        f"--shard {text!r}",
        expected="I/N with I from 1 to N, such as 2/5",
        fix="number the parts from 1",
    )


def add_tier(tiers: Sequence[SampleTier], new: SampleTier) -> tuple[SampleTier, ...]:
    """The tiers of an earlier run with a new one; a run may grow, never shrink."""
    last = tiers[-1]
    shrinks = new.samples < last.samples or (
        new.limit is not None and (last.limit is None or new.limit < last.limit)
    )
    if shrinks:
        raise RunFolderError(
            f"this run already holds {_words(last)}, and {_words(new)} were asked for",
            expected="the same or more: samples and limit may grow",
            fix="choose another folder with --out, or start again with --fresh",
        )
    return tuple(tiers) if new == last else (*tiers, new)


def plan_shards(prompts: int, tiers: Sequence[SampleTier]) -> list[PromptShard]:
    """The shards of a run, in the order they are worked on.

    Each tier adds what earlier tiers did not hold, so growing a run leaves its finished shards as they are.
    """
    shards: list[PromptShard] = []
    for number, tier in enumerate(tiers):
        end = prompts if tier.limit is None else min(tier.limit, prompts)
        # Between two bounds all prompts hold the same number of samples already.
        earlier = [(prompts if item.limit is None else item.limit, item.samples) for item in tiers[:number]]
        bounds = sorted({0, end, *(min(limit, end) for limit, _ in earlier)})
        for start, stop in pairwise(bounds):
            have = max((samples for limit, samples in earlier if limit > start), default=0)
            for first in range(start, stop, SHARD_PROMPTS) if have < tier.samples else ():
                last = min(first + SHARD_PROMPTS, stop)
                shards.append(PromptShard(first, last, range(have, tier.samples), number))
    return shards


def _words(tier: SampleTier) -> str:
    prompts = "all prompts" if tier.limit is None else f"{tier.limit:,} prompts"
    return f"{prompts} x {tier.samples} samples"


STAGE = "generate"


@runtime_checkable
class ParallelModel(Model, Protocol):
    """A model that works on several shards, or groups of them, at once, elsewhere."""

    def generate_each(
        self, shards: Iterable[Sequence[Request]], spec: GenerationSpec
    ) -> Iterator[tuple[int, Sequence[Completion]]]:
        """The completions of each shard, with its place, as they are done."""
        ...


class _ShardRequest(NamedTuple):
    """A shard of the plan, with its prompts."""

    key: str
    prompts: Sequence[Prompt]
    samples: range
    tier: int
    size: int
    """How many texts it has."""


@dataclass(frozen=True, slots=True)
class TextGenerator:
    """One model, one spec, one run folder."""

    model: Model
    spec: GenerationSpec
    folder: RunFolder
    cache: ContentCache
    failure_rate: float = 0.2
    """A run that loses more than this share of its items says nothing about the rest."""
    retry_failed: bool = False

    def run(self, prompts: Sequence[Prompt], shards: Sequence[PromptShard], progress: Progress) -> list[str]:
        """Generate what is missing; returns the keys of the shards, all of them finished."""
        requests = list[_ShardRequest]()
        identity, sampling = self.model.ref.identity(), self.spec.sampling()
        for shard in shards:
            own = prompts[shard.start : shard.stop]
            key = digest([identity, sampling, [prompt.id for prompt in own], list(shard.samples)])
            requests.append(_ShardRequest(key, own, shard.samples, shard.tier, len(own) * len(shard.samples)))
        missing: set[str] = set()
        items = failed = new_tokens = 0
        with progress.step("generating", sum(item.size for item in requests)) as advance:
            for item in requests:
                is_finished = self.folder.has_shard(STAGE, item.key)
                if not is_finished or (self.retry_failed and self._has_failures(item.key)):
                    completions = self._read_cached(item)
                    if not completions:
                        missing.add(item.key)
                        continue
                    items += len(completions)
                    self._commit(item, completions, is_new=False)
                advance(item.size)
            started, seconds = time.perf_counter(), 0.0
            for item, answers in self._generate_shards(requests, missing):
                # Those of shards that were finished before, too.
                new_tokens += sum(answer.new_tokens or 0 for answer in answers)
                if item.key not in missing:
                    continue
                completions = self._check_completions(item, answers)
                items += len(completions)
                failed += sum(completion.failure is not None for completion in completions)
                # Before the commit: a shard of failures must be tried again, not kept.
                if failed > max(3, self.failure_rate * items):
                    codes = sorted({done.failure for done in completions if done.failure})
                    raise FailureRateError(
                        f"{failed:,} of {items:,} texts failed ({', '.join(codes)})",
                        expected=f"at most {self.failure_rate:.0%}",
                        fix="fix the cause and run the same command again; finished shards are kept",
                    )
                self._commit(item, completions, is_new=True)
                seconds = time.perf_counter() - started
                advance(item.size)
        # The first texts of a process compile and load: fewer than a shard say nothing about a long run.
        if items >= SHARD_PROMPTS and new_tokens and seconds > 1:
            self.cache.put_many("rates", {throughput_key(self.model, self.spec): new_tokens / seconds})
        return [item.key for item in requests]

    def _has_failures(self, key: str) -> bool:
        failed = self.folder.read_shards(STAGE, [key]).filter(pl.col("failure").is_not_null())
        return failed.collect().height > 0

    def _generate_shards(
        self, shards: Sequence[_ShardRequest], missing: set[str]
    ) -> Iterator[tuple[_ShardRequest, Sequence[Completion]]]:
        """The answers of the model to each shard of each group with a missing one, as they are done."""
        # Neighbours that have so many texts together, or more; the groups follow from the plan alone.
        size = self.model.at_once if isinstance(self.model, MaxBatch) else 1
        groups: list[list[_ShardRequest]] = []
        for item in shards:
            last = groups[-1] if groups else []
            # What was asked for later is not written with what may long be finished.
            if last and last[0].tier == item.tier and sum(other.size for other in last) < size:
                last.append(item)
            else:
                groups.append([item])
        # All shards of a group: a text's batch must not depend on what was finished before.
        groups = [of for of in groups if any(item.key in missing for item in of)]
        requests = (
            [Request(prompt.id, prompt.text, tuple(item.samples)) for item in of for prompt in item.prompts]
            for of in groups
        )
        if isinstance(self.model, ParallelModel):
            answered = self.model.generate_each(requests, self.spec)
        else:
            answered = enumerate(list(self.model.generate(of, self.spec)) for of in requests)
        for place, completions in answered:
            yield from _split_by_shard(completions, groups[place])

    def _commit(self, shard: _ShardRequest, completions: Sequence[Completion], *, is_new: bool) -> None:
        """Write the shard; first, if the texts are new, to the cache, or a kill would keep them from it."""
        keys = self._cache_keys(shard) if is_new else {}
        values: dict[str, Json] = {}
        rows = []
        for item in completions:
            written = (item.text, item.finish, item.prompt_tokens, item.new_tokens)
            if is_new and item.failure is None:
                values[keys[item.request_id, item.sample]] = list(written)
            text_id = f"{item.request_id}:{item.sample}"
            place = (text_id, item.request_id, self.model.ref.name, item.sample)
            rows.append((*place, *written, item.failure))
        self.cache.put_many("generations", values)
        self.folder.write_shard(STAGE, shard.key, pl.DataFrame(rows, schema=dict(GENERATIONS), orient="row"))

    def _check_completions(self, shard: _ShardRequest, answers: Iterable[Completion]) -> list[Completion]:
        """One completion for each request and sample, in their order."""
        completions: dict[tuple[str, int], Completion | None] = {
            (prompt.id, sample): None for prompt in shard.prompts for sample in shard.samples
        }
        for answer in answers:
            place = (answer.request_id, answer.sample)
            if completions.get(place, answer) is not None:
                raise ModelError(
                    f"model {self.model.ref.name!r} answered for {place}, which was "
                    f"{'answered already' if place in completions else 'not asked'}",
                    expected="one completion for each request and sample",
                    fix="run `evenhand.testing.check_model` on the back-end",
                )
            text = answer.text
            if text is not None and not text.strip():
                # Scored with its prompt, an empty text would pass for a neutral one.
                answer = replace(answer, text=None, finish=None, failure="empty_text")
            elif (
                text is not None
                and self.spec.stop == "sentence"
                and (cut := text[: first_sentence_end(text)]) != text
            ):
                answer = replace(answer, text=cut, finish="sentence")
            completions[place] = answer
        return [
            completion or Completion(*place, None, None, failure="no_answer")
            for place, completion in completions.items()
        ]

    def _read_cached(self, shard: _ShardRequest) -> list[Completion] | None:
        """The shard from the cache, if all of it is there: a part would change the batches of the rest."""
        keys = self._cache_keys(shard)
        values = self.cache.get_many("generations", list(keys.values()))
        completions = []
        for (prompt_id, sample), key in keys.items():
            value = values.get(key)
            if not isinstance(value, list) or len(value) != 4 or not isinstance(value[0], str):
                return None  # a value of another shape is a miss
            fields = cast("tuple[str, Finish, int | None, int | None]", value)
            completions.append(Completion(prompt_id, sample, *fields))
        return completions

    def _cache_keys(self, shard: _ShardRequest) -> dict[tuple[str, int], str]:
        """The key of each text in the cache, by prompt and sample."""
        identity, sampling = self.model.ref.identity(), self.spec.sampling()
        return {
            (prompt.id, sample): digest([identity, sampling, prompt.id, prompt.text, sample])
            for prompt in shard.prompts
            for sample in shard.samples
        }


def throughput_key(model: Model, spec: GenerationSpec) -> str:
    """Under which a model's tokens a second are remembered, for the estimate of the next run."""
    # A masked model needs twice the time for twice the iterations.
    return digest(["tokens/s", model.ref.identity(), spec.burn_in, spec.iterations])


def _split_by_shard(
    completions: Sequence[Completion], group: Sequence[_ShardRequest]
) -> Iterator[tuple[_ShardRequest, Sequence[Completion]]]:
    """The completions of each shard; one that nobody requested goes to all, which refuse it."""
    owners: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for shard in group:
        for prompt, sample in product(shard.prompts, shard.samples):
            owners[prompt.id, sample].append(shard.key)
    of_shard: dict[str, list[Completion]] = {shard.key: [] for shard in group}
    for completion in completions:
        keys = owners.get((completion.request_id, completion.sample), [])
        # The last shard that requested it, then the one before: an id may be there twice.
        own = [keys.pop()] if len(keys) > 1 else keys
        for key in own or of_shard:
            of_shard[key].append(completion)
    for shard in group:
        yield shard, of_shard[shard.key]
