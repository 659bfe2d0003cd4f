"""Prompts to texts: shard by shard, each committed as it is finished."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import polars as pl

from evenhand.core.digests import Json, digest
from evenhand.core.errors import FailureRateError, ModelError
from evenhand.core.protocols import Model, Progress
from evenhand.core.records import Completion, Finish, GenerationSpec, Prompt, Request
from evenhand.pipeline.planning import Shard
from evenhand.store.cache import Cache
from evenhand.store.folder import RunFolder
from evenhand.store.schemas import GENERATIONS
from evenhand.text.sentences import cut_first_sentence

STAGE = "generate"


@dataclass(slots=True)
class Tally:
    """What a generation stage did."""

    items: int = 0
    failed: int = 0
    new_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Generator:
    """One model, one spec, one run folder."""

    model: Model
    spec: GenerationSpec
    folder: RunFolder
    cache: Cache
    failure_rate: float = 0.2
    """A run that loses more than this share of its items says nothing about the rest."""
    retry_failed: bool = False

    def run(self, prompts: Sequence[Prompt], shards: Sequence[Shard], progress: Progress) -> list[str]:
        """Generate what is missing; returns the keys of the shards, all of them finished."""
        tally = Tally()
        keys = [self._shard_key(prompts, shard) for shard in shards]
        total = sum((shard.stop - shard.start) * len(shard.samples) for shard in shards)
        with progress.step("generating", total) as advance:
            for key, shard in zip(keys, shards, strict=True):
                if not self._finished(key):
                    self._work(key, prompts[shard.start : shard.stop], shard.samples, tally)
                advance((shard.stop - shard.start) * len(shard.samples))
        self._remember_rate(tally)
        return keys

    def _finished(self, key: str) -> bool:
        if not self.folder.has_shard(STAGE, key):
            return False
        if not self.retry_failed:
            return True
        failed = self.folder.read_shards(STAGE, [key]).filter(pl.col("failure").is_not_null())
        return failed.collect().height == 0

    def _work(self, key: str, prompts: Sequence[Prompt], samples: range, tally: Tally) -> None:
        started = time.perf_counter()
        completions = self._cached(prompts, samples) or self._asked(prompts, samples)
        tally.items += len(completions)
        tally.failed += sum(completion.failure is not None for completion in completions)
        tally.new_tokens += sum(completion.new_tokens or 0 for completion in completions)
        tally.seconds += time.perf_counter() - started
        # Before the commit: a shard of failures must be tried again, not kept.
        self._check_failures(tally, completions)
        self.folder.write_shard(STAGE, key, self._table(completions))
        self._keep(prompts, completions)

    def _asked(self, prompts: Sequence[Prompt], samples: range) -> list[Completion]:
        requests = [Request(prompt.id, prompt.text, tuple(samples)) for prompt in prompts]
        wanted = {(request.id, sample): None for request in requests for sample in samples}
        found: dict[tuple[str, int], Completion] = {}
        for completion in self.model.generate(requests, self.spec):
            place = (completion.request_id, completion.sample)
            if place not in wanted or place in found:
                raise ModelError(
                    f"model {self.model.ref.name!r} answered for {place}, which was "
                    f"{'answered already' if place in found else 'not asked'}",
                    accepted="one completion for each request and sample",
                    todo="run `evenhand.testing.check_model` on the back-end",
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

    def _cached(self, prompts: Sequence[Prompt], samples: range) -> list[Completion] | None:
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

    def _check_failures(self, tally: Tally, completions: Sequence[Completion]) -> None:
        if tally.failed <= max(3, self.failure_rate * tally.items):
            return
        codes = sorted({item.failure for item in completions if item.failure})
        raise FailureRateError(
            f"{tally.failed:,} of {tally.items:,} texts failed ({', '.join(codes)})",
            accepted=f"at most {self.failure_rate:.0%}",
            todo="mend the cause and run the same command again; finished shards are kept",
        )

    def _shard_key(self, prompts: Sequence[Prompt], shard: Shard) -> str:
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

    def _remember_rate(self, tally: Tally) -> None:
        if tally.new_tokens and tally.seconds > 1:
            key = rate_key(self.model, self.spec)
            self.cache.put_many("rates", {key: tally.new_tokens / tally.seconds})


def rate_key(model: Model, spec: GenerationSpec) -> str:
    """Under which a model's tokens a second are remembered, for the estimate of the next run."""
    # A masked model needs twice the time for twice the iterations.
    return digest(["tokens/s", model.ref.identity(), spec.burn_in, spec.iterations])


def _from_json(prompt_id: str, sample: int, value: Json) -> Completion:
    text, finish, prompt_tokens, new_tokens = cast("tuple[str, Finish, int | None, int | None]", value)
    if not isinstance(text, str):
        raise TypeError("a cached text is not text")
    return Completion(prompt_id, sample, text, finish, prompt_tokens, new_tokens)
