"""Prompts to texts: shard by shard, each committed as it is finished."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple, Protocol, cast, runtime_checkable

import polars as pl

from evenhand.core.digests import Json, digest
from evenhand.core.errors import FailureRateError, InputError, ModelError, RunFolderError
from evenhand.core.protocols import MaxBatch, Model, Progress
from evenhand.core.records import Completion, Finish, GenerationSpec, Prompt, Request
from evenhand.store.cache import ContentCache
from evenhand.store.run_folder import RunFolder
from evenhand.store.schemas import GENERATIONS
from evenhand.text.sentences import cut_first_sentence

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


@dataclass(frozen=True, slots=True)
class RunSlice:
    """One of several machines' share of a run: every ``of``-th shard, from the ``index``-th on."""

    index: int
    of: int

    @classmethod
    def parse(cls, text: str) -> RunSlice:
        """The slice in words: ``2/5`` is the second of five."""
        index, slash, of = text.partition("/")
        if slash and index.isdecimal() and of.isdecimal() and 1 <= int(index) <= int(of):
            return cls(int(index), int(of))
        raise InputError(
            f"--shard {text!r}",
            expected="I/N with I from 1 to N, such as 2/5",
            fix="number the parts from 1",
        )

    def places(self, shards: int) -> range:
        """The places of its shards among all."""
        return range(self.index - 1, shards, self.of)


def add_tier(tiers: Sequence[SampleTier], new: SampleTier) -> tuple[SampleTier, ...]:
    """The tiers with a new one; a run may grow, never shrink."""
    if not tiers:
        return (new,)
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
        for start, stop, have in _prompt_ranges(end, tiers[:number]):
            for first in range(start, stop, SHARD_PROMPTS):
                if have < tier.samples:
                    last = min(first + SHARD_PROMPTS, stop)
                    shards.append(PromptShard(first, last, range(have, tier.samples), number))
    return shards


def _prompt_ranges(end: int, earlier: Sequence[SampleTier]) -> Iterator[tuple[int, int, int]]:
    """Stretches of prompts up to ``end`` that hold the same number of samples already."""
    bounds = {0, end} | {min(tier.limit, end) for tier in earlier if tier.limit is not None}
    ordered = sorted(bounds)
    for start, stop in pairwise(ordered):
        held = [tier.samples for tier in earlier if tier.limit is None or tier.limit > start]
        yield start, stop, max(held, default=0)


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
    """A shard of the plan."""

    key: str
    prompts: Sequence[Prompt]
    samples: range
    tier: int

    @property
    def size(self) -> int:
        return len(self.prompts) * len(self.samples)

    @property
    def places(self) -> list[tuple[str, int]]:
        """Request and sample of each text."""
        return [(prompt.id, sample) for prompt in self.prompts for sample in self.samples]

    def requests(self) -> list[Request]:
        return [Request(prompt.id, prompt.text, tuple(self.samples)) for prompt in self.prompts]


@dataclass(slots=True)
class GenerationStats:
    """What a generation stage did."""

    items: int = 0
    failed: int = 0
    new_tokens: int = 0
    seconds: float = 0.0


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
        tally = GenerationStats()
        keys = [self._shard_key(prompts, shard) for shard in shards]
        wanted = [
            _ShardRequest(key, prompts[shard.start : shard.stop], shard.samples, shard.tier)
            for key, shard in zip(keys, shards, strict=True)
        ]
        with progress.step("generating", sum(item.size for item in wanted)) as advance:
            left: set[str] = set()
            for item in wanted:
                if self._is_finished(item.key) or self._copy_from_cache(item, tally):
                    advance(item.size)
                else:
                    left.add(item.key)
            started = time.perf_counter()
            for item, completions in self._generate_shards(wanted, left, tally):
                self._commit(item, self._check_completions(item, completions), tally)
                tally.seconds = time.perf_counter() - started
                advance(item.size)
        self._remember_rate(tally)
        return keys

    def _generate_shards(
        self, shards: Sequence[_ShardRequest], left: set[str], tally: GenerationStats
    ) -> Iterator[tuple[_ShardRequest, Iterable[Completion]]]:
        """What the model writes for each shard whose key is among those left, as they are done."""
        size = self.model.at_once if isinstance(self.model, MaxBatch) else 1
        groups = [group for group in _group_shards(shards, size) if any(shard.key in left for shard in group)]
        # All shards of a group: what a text has beside it must not depend on what was finished before.
        asked = ([request for shard in group for request in shard.requests()] for group in groups)
        answers: Iterator[tuple[int, Iterable[Completion]]]
        if isinstance(self.model, ParallelModel):
            answers = self.model.generate_each(asked, self.spec)
        else:
            answers = ((place, self.model.generate(some, self.spec)) for place, some in enumerate(asked))
        for place, completions in answers:
            yield from _split_by_shard(_count_tokens(completions, tally), groups[place], left)

    def _is_finished(self, key: str) -> bool:
        if not self.folder.has_shard(STAGE, key):
            return False
        if not self.retry_failed:
            return True
        failed = self.folder.read_shards(STAGE, [key]).filter(pl.col("failure").is_not_null())
        return failed.collect().height == 0

    def _copy_from_cache(self, shard: _ShardRequest, tally: GenerationStats) -> bool:
        """Whether the cache holds the whole shard, which is then committed."""
        completions = self._read_cached(shard.prompts, shard.samples)
        if completions is not None:
            tally.items += len(completions)
            self.folder.write_shard(STAGE, shard.key, self._table(completions))
        return completions is not None

    def _commit(
        self, shard: _ShardRequest, completions: Sequence[Completion], tally: GenerationStats
    ) -> None:
        tally.items += len(completions)
        tally.failed += sum(completion.failure is not None for completion in completions)
        # Before the commit: a shard of failures must be tried again, not kept.
        self._check_failures(tally, completions)
        # First the cache: a kill between the two would leave a finished shard it never learns of.
        self._keep(shard.prompts, completions)
        self.folder.write_shard(STAGE, shard.key, self._table(completions))

    def _check_completions(self, shard: _ShardRequest, completions: Iterable[Completion]) -> list[Completion]:
        """One completion for each request and sample, in their order."""
        wanted = dict.fromkeys(shard.places)
        found: dict[tuple[str, int], Completion] = {}
        for completion in completions:
            place = (completion.request_id, completion.sample)
            if place not in wanted or place in found:
                raise ModelError(
                    f"model {self.model.ref.name!r} answered for {place}, which was "
                    f"{'answered already' if place in found else 'not asked'}",
                    expected="one completion for each request and sample",
                    fix="run `evenhand.testing.check_model` on the back-end",
                )
            found[place] = self._cut(completion)
        return [found.get(place) or Completion(*place, None, None, failure="no_answer") for place in wanted]

    def _cut(self, completion: Completion) -> Completion:
        if completion.text is None:
            return completion
        if not completion.text.strip():
            # Scored with its prompt, an empty text would pass for a neutral one.
            return replace(completion, text=None, finish=None, failure="empty_text")
        if self.spec.stop != "sentence":
            return completion
        text = cut_first_sentence(completion.text)
        if text == completion.text:
            return completion
        return replace(completion, text=text, finish="sentence")

    def _read_cached(self, prompts: Sequence[Prompt], samples: range) -> list[Completion] | None:
        """The shard from the cache, if all of it is there: a part would change the batches of the rest."""
        places = [(prompt, sample) for prompt in prompts for sample in samples]
        keys = [self._item_key(prompt, sample) for prompt, sample in places]
        found = self.cache.get_many("generations", keys)
        if len(found) < len(set(keys)):
            return None
        try:
            return [
                _from_json(prompt.id, sample, found[key])
                for (prompt, sample), key in zip(places, keys, strict=True)
            ]
        except (TypeError, ValueError):
            return None  # a value of another shape is a miss

    def _keep(self, prompts: Sequence[Prompt], completions: Iterable[Completion]) -> None:
        by_id = {prompt.id: prompt for prompt in prompts}
        self.cache.put_many(
            "generations",
            {
                self._item_key(by_id[item.request_id], item.sample): [
                    item.text,
                    item.finish,
                    item.prompt_tokens,
                    item.new_tokens,
                ]
                for item in completions
                if item.failure is None
            },
        )

    def _check_failures(self, tally: GenerationStats, completions: Sequence[Completion]) -> None:
        if tally.failed <= max(3, self.failure_rate * tally.items):
            return
        codes = sorted({item.failure for item in completions if item.failure})
        raise FailureRateError(
            f"{tally.failed:,} of {tally.items:,} texts failed ({', '.join(codes)})",
            expected=f"at most {self.failure_rate:.0%}",
            fix="mend the cause and run the same command again; finished shards are kept",
        )

    def _shard_key(self, prompts: Sequence[Prompt], shard: PromptShard) -> str:
        ids = [prompt.id for prompt in prompts[shard.start : shard.stop]]
        return digest([self.model.ref.identity(), self.spec.sampling(), ids, list(shard.samples)])

    def _item_key(self, prompt: Prompt, sample: int) -> str:
        return digest([self.model.ref.identity(), self.spec.sampling(), prompt.id, prompt.text, sample])

    def _table(self, completions: Sequence[Completion]) -> pl.DataFrame:
        rows = [
            {
                "id": f"{item.request_id}:{item.sample}",
                "prompt_id": item.request_id,
                "model": self.model.ref.name,
                "sample": item.sample,
                "text": item.text,
                "finish": item.finish,
                "prompt_tokens": item.prompt_tokens,
                "new_tokens": item.new_tokens,
                "failure": item.failure,
            }
            for item in completions
        ]
        return pl.DataFrame(rows, schema=dict(GENERATIONS))

    def _remember_rate(self, tally: GenerationStats) -> None:
        if tally.new_tokens and tally.seconds > 1:
            key = throughput_key(self.model, self.spec)
            self.cache.put_many("rates", {key: tally.new_tokens / tally.seconds})


def throughput_key(model: Model, spec: GenerationSpec) -> str:
    """Under which a model's tokens a second are remembered, for the estimate of the next run."""
    # A masked model needs twice the time for twice the iterations.
    return digest(["tokens/s", model.ref.identity(), spec.burn_in, spec.iterations])


def _group_shards(shards: Sequence[_ShardRequest], size: int) -> Iterator[list[_ShardRequest]]:
    """Neighbours that have so many texts together, or more; the groups follow from the plan alone."""
    group: list[_ShardRequest] = []
    for shard in shards:
        # What was asked for later is not written with what may long be finished.
        if group and shard.tier != group[0].tier:
            yield group
            group = []
        group.append(shard)
        if sum(item.size for item in group) >= size:
            yield group
            group = []
    if group:
        yield group


def _count_tokens(completions: Iterable[Completion], tally: GenerationStats) -> Iterator[Completion]:
    """The completions, whose tokens are counted: also those of shards that were finished before."""
    for completion in completions:
        tally.new_tokens += completion.new_tokens or 0
        yield completion


def _split_by_shard(
    completions: Iterable[Completion], group: Sequence[_ShardRequest], left: set[str]
) -> Iterator[tuple[_ShardRequest, Iterable[Completion]]]:
    """The completions of each shard that is left; what nobody asked for goes to all, which refuse it."""
    if len(group) == 1:
        yield group[0], completions
        return
    found: dict[str | None, list[Completion]] = {None: [], **{shard.key: [] for shard in group}}
    owners: defaultdict[tuple[str, int], list[str | None]] = defaultdict(lambda: [None])
    for shard in group:
        for place in shard.places:
            owners[place].append(shard.key)
    for completion in completions:
        # The last shard that asked for it, then the one before: an id may be there twice.
        asking = owners[completion.request_id, completion.sample]
        found[asking.pop() if len(asking) > 2 else asking[-1]].append(completion)
    for shard in group:
        if shard.key in left:
            yield shard, found[shard.key] + found[None]


def _from_json(prompt_id: str, sample: int, value: Json) -> Completion:
    text, finish, prompt_tokens, new_tokens = cast("tuple[str, Finish, int | None, int | None]", value)
    if not isinstance(text, str):
        raise TypeError("a cached text is not text")
    return Completion(prompt_id, sample, text, finish, prompt_tokens, new_tokens)
