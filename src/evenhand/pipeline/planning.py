"""Which prompts and samples form a shard: a plan that follows from the manifest alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from evenhand.core.errors import InputError, RunFolderError

SHARD_PROMPTS = 64
"""A shard is redone whole after a kill: small enough to lose little, large enough to fill a CPU's batch."""


@dataclass(frozen=True, slots=True)
class Tier:
    """How much of a suite was asked for at one time: prompts up to ``limit``, each ``samples`` times."""

    limit: int | None
    samples: int


@dataclass(frozen=True, slots=True)
class Shard:
    """Prompts from ``start`` to ``stop`` (exclusive), each with these sample numbers."""

    start: int
    stop: int
    samples: range
    tier: int = field(default=0, compare=False)
    """The place of the tier that asked for it."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One of several machines' share of a run: every ``of``-th shard, from the ``index``-th on."""

    index: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Slice:
        """The slice in words: ``2/5`` is the second of five."""
        index, slash, of = text.partition("/")
        if slash and index.isdecimal() and of.isdecimal() and 1 <= int(index) <= int(of):
            return cls(int(index), int(of))
        raise InputError(
            f"--shard {text!r}",
            accepted="I/N with I from 1 to N, such as 2/5",
            todo="number the parts from 1",
        )

    def places(self, shards: int) -> range:
        """The places of its shards among all."""
        return range(self.index - 1, shards, self.of)


def grow(tiers: Sequence[Tier], new: Tier) -> tuple[Tier, ...]:
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
            accepted="the same or more: samples and limit may grow",
            todo="choose another folder with --out, or start again with --fresh",
        )
    return tuple(tiers) if new == last else (*tiers, new)


def plan(prompts: int, tiers: Sequence[Tier]) -> list[Shard]:
    """The shards of a run, in the order they are worked on.

    Each tier adds what earlier tiers did not hold, so growing a run leaves its finished shards as they are.
    """
    shards: list[Shard] = []
    for number, tier in enumerate(tiers):
        end = prompts if tier.limit is None else min(tier.limit, prompts)
        for start, stop, have in _stretches(end, tiers[:number]):
            for first in range(start, stop, SHARD_PROMPTS):
                if have < tier.samples:
                    last = min(first + SHARD_PROMPTS, stop)
                    shards.append(Shard(first, last, range(have, tier.samples), number))
    return shards


def _stretches(end: int, earlier: Sequence[Tier]) -> Iterator[tuple[int, int, int]]:
    """Stretches of prompts up to ``end`` that hold the same number of samples already."""
    bounds = {0, end} | {min(tier.limit, end) for tier in earlier if tier.limit is not None}
    ordered = sorted(bounds)
    for start, stop in pairwise(ordered):
        held = [tier.samples for tier in earlier if tier.limit is None or tier.limit > start]
        yield start, stop, max(held, default=0)


def _words(tier: Tier) -> str:
    prompts = "all prompts" if tier.limit is None else f"{tier.limit:,} prompts"
    return f"{prompts} x {tier.samples} samples"
