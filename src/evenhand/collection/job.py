"""A collection over many pages: committed part by part, so that it can be stopped and go on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import polars as pl

from evenhand.collection.collector import Collected, Taken, collect
from evenhand.collection.groups import Groups, same
from evenhand.collection.pages import Page, linked, pages
from evenhand.core.digests import digest
from evenhand.core.protocols import Progress
from evenhand.corpus.sources import Source
from evenhand.corpus.terms import Problem
from evenhand.store.atomic import write_text
from evenhand.store.folder import RunFolder

PART = 2000
"""Pages between two commits."""
_TAKEN = {name: pl.Int64 if name in ("sentence", "byte") else pl.String for name in Taken._fields}
_LINKS = {"list": pl.String, "title": pl.String}
_REJECTED = {"domain": pl.String, "group": pl.String, "reason": pl.String, "count": pl.Int64}


@dataclass(slots=True)
class Outcome:
    """What a collection came to."""

    pages: int = 0
    prompts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By domain and group."""
    rejected: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Collection:
    """Sources, groups and the folder they are collected into."""

    sources: Sequence[Source]
    groups: Groups
    one_page: bool
    """Whether a plain text file is one page."""

    def run(self, folder: RunFolder, progress: Progress) -> Outcome:
        """Collect what is missing, then write one ``.jsonl`` a domain."""
        outcome = Outcome()
        groups = self._with_lists(folder, progress, outcome)
        keys: list[str] = []
        total = sum(source.size for source in self.sources)
        with progress.step("collecting", total) as advance:
            for source in self.sources:
                keys += self._collect(source, groups, folder, outcome, _Place(advance))
        self._write(folder, keys, outcome)
        return outcome

    def _with_lists(self, folder: RunFolder, progress: Progress, outcome: Outcome) -> Groups:
        """The groups with the pages that list pages link to, which a first pass over dumps finds."""
        dumps = [source for source in self.sources if source.format == "mediawiki"]
        if not dumps or not self.groups.lists:
            return self.groups
        if not folder.has_shard("lists", "links"):
            with progress.step("reading lists", sum(source.size for source in dumps)) as advance:
                rows = [row for source in dumps for row in self._links(source, _Place(advance))]
            folder.write_shard("lists", "links", pl.DataFrame(rows, _LINKS, orient="row"))
        listed: dict[str, list[str]] = {}
        for name, title in folder.read_shards("lists", ["links"]).collect().iter_rows():
            listed.setdefault(name, []).append(title)
        return Groups(self.groups.rules, listed)

    def _links(self, source: Source, place: _Place) -> Iterator[tuple[str, str]]:
        # What is wrong with a file is told once, in the second pass.
        for page in pages(source, lambda problem: None, moved=place.move):
            if same(page.title) in self.groups.lists:
                yield from ((same(page.title), title) for title in linked(page))

    def _collect(
        self, source: Source, groups: Groups, folder: RunFolder, outcome: Outcome, place: _Place
    ) -> list[str]:
        keys: list[str] = []
        stream = pages(source, outcome.problems.append, is_page=self.one_page, moved=place.move)
        while part := list(islice(stream, PART)):
            key = digest([source.path, source.size, len(keys)])
            keys.append(key)
            outcome.pages += len(part)
            if not (folder.has_shard("prompts", key) and folder.has_shard("rejected", key)):
                self._commit(key, part, groups, folder, source)
        return keys

    def _commit(
        self, key: str, part: Sequence[Page], groups: Groups, folder: RunFolder, source: Source
    ) -> None:
        found = Collected([], Counter())
        for page in part:
            one = collect(page, groups)
            found.taken.extend(one.taken)
            found.rejected.update(one.rejected)
        rows = [(*place, count) for place, count in found.rejected.items()]
        folder.write_shard("rejected", key, pl.DataFrame(rows, _REJECTED, orient="row"))
        taken = pl.DataFrame(found.taken, _TAKEN, orient="row").with_columns(file=pl.lit(source.path))
        folder.write_shard("prompts", key, taken)

    def _write(self, folder: RunFolder, keys: Sequence[str], outcome: Outcome) -> None:
        lines: dict[str, list[str]] = {rule.domain: [] for rule in self.groups.rules}
        seen: set[tuple[str, str, str, str]] = set()
        counts: Counter[tuple[str, str, str]] = Counter()
        for row in _rows(folder, "prompts", keys):
            domain, group, key = row["domain"], row["group"], row["key"]
            if (domain, group, key, row["wiki"]) in seen:
                outcome.rejected[domain, group, "repeated"] += 1
                continue
            seen.add((domain, group, key, row["wiki"]))
            lines[domain].append(json.dumps(row | {"idx": counts[domain, group, key]}, ensure_ascii=False))
            counts[domain, group, key] += 1
            outcome.prompts[domain, group] += 1
        for row in _rows(folder, "rejected", keys):
            outcome.rejected[row["domain"], row["group"], row["reason"]] += row["count"]
        for domain, found in lines.items():
            path = folder.path / f"{domain}.jsonl"
            path.unlink(missing_ok=True)
            if found:
                write_text(path, "\n".join(found) + "\n")


class _Place:
    """Turns how far a file is read into steps of a progress bar."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance
        self._at = 0

    def move(self, byte: int) -> None:
        """Say how many bytes of the file are behind us."""
        self._advance(byte - self._at)
        self._at = byte


def _rows(folder: RunFolder, stage: str, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    if keys:
        yield from folder.read_shards(stage, keys).collect().iter_rows(named=True)
