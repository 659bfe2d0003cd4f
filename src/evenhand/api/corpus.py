"""``scan_corpus``: how often emotions occur in a corpus, and with which groups they share a sentence."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack, get_args

import polars as pl

from evenhand.api.parts import SILENT, Plan
from evenhand.api.render import render
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress
from evenhand.corpus.counts import Counts, no_counts
from evenhand.corpus.engines import Engine, run_local, run_ray
from evenhand.corpus.results import cooccurrence, occurrence, samples
from evenhand.corpus.rule import Counting, Unit
from evenhand.corpus.scanner import Sample, Way, compile_kernel
from evenhand.corpus.schemas import PROBLEMS
from evenhand.corpus.shards import Clock, Counted, Shard, Task, from_tables, plan, plan_record, to_tables
from evenhand.corpus.sources import Source, find_sources
from evenhand.corpus.terms import Problem, TermList, builtin_terms, load_terms, unmatched
from evenhand.store.atomic import replacing
from evenhand.store.folder import RunFolder, default_folder, now, stage
from evenhand.store.run import Run

STAGE = "count"
PRESETS = ("paper",)
DEFAULT_SAMPLES = 5
_TABLES = ("problems", "samples", "counts")
"""The tables of a shard; the last one marks it as finished."""


class CorpusOptions(TypedDict, total=False):
    """The options of ``scan_corpus``."""

    terms: Path | str | Sequence[Path | str] | None
    preset: str | None
    counting: str | None
    unit: str | None
    text: str | None
    samples: int | None
    seed: int | None
    level: float | None
    engine: str | None
    workers: int | None
    address: str | None
    out: Path | str | None
    fresh: bool
    command: str


@dataclass(frozen=True, slots=True)
class CorpusScan:
    """A scan that is ready to run: inputs found, terms read, nothing counted yet."""

    sources: tuple[Source, ...]
    shards: tuple[Shard, ...]
    task: Task
    counting: Counting
    level: float
    engine: Engine
    workers: int
    address: str | None
    problems: tuple[Problem, ...]
    """Found before counting: in the paths and in the term files."""
    notes: tuple[str, ...]
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        size = sum(source.size for source in self.sources)
        emotions, groups = self.task.terms.size
        corpora = dict.fromkeys(source.corpus for source in self.sources)
        way = self.task.way
        return Plan(
            title=f"corpus {', '.join(corpora)}",
            lines=(
                f"inputs  {len(self.sources):,} files, {_bytes(size)} as stored, {len(self.shards):,} shards",
                f"terms   {emotions:,} for {len(self.task.terms.emotions)} emotions, "
                f"{groups:,} for {len(self.task.terms.groups)} groups",
                f"count   {self.counting}, a unit is a {way.unit}, rule {way.rule}",
                f"engine  {self.engine}, {self.workers} workers; plain text takes about "
                f"{max(1, round(size / 4e8 / self.workers)):,} s",
                f"folder  {self.folder}",
            ),
            folder=self.folder,
        )

    def run(self, progress: Progress = SILENT) -> Run:
        """Count what is not counted yet, then write tables and report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            self._begin(folder)
            with stage(folder, STAGE) as record:
                started = time.perf_counter()
                self._count(folder, progress)
                results = {shard: _read(folder, shard, self._shape) for shard in self.shards}
                problems = [*self.problems, *(p for r in results.values() for p in r.problems)]
                record.update(_speed(results.values(), time.perf_counter() - started))
                record.update(items=len(self.shards), failed=len(problems))
            self._write(folder, results, problems)
            folder.manifest["ended"] = now()
            folder.save_manifest()
            render(folder.run(), ("html", "json", "md"))
            return folder.run()

    @property
    def _shape(self) -> tuple[int, int, int]:
        terms = self.task.terms
        return len(terms.emotions), len(terms.groups), len(terms.axes)

    def _begin(self, folder: RunFolder) -> None:
        corpora = dict.fromkeys(source.corpus for source in self.sources)
        folder.manifest.update(
            command=self.command,
            name=", ".join(corpora),
            config={"counting": self.counting, "level": self.level},
            execution={"engine": self.engine, "workers": self.workers, "address": self.address},
            shards=plan_record(self.shards),
            warnings=list(self.notes),
            ended=None,
        )
        folder.save_manifest()

    def _count(self, folder: RunFolder, progress: Progress) -> None:
        left = [shard for shard in self.shards if not folder.has_shard(_TABLES[-1], shard.key)]
        total = sum(shard.size for shard in self.shards)
        if left and self.engine == "local":
            with progress.step("compiling the counter (once an installation)", None):
                compile_kernel(self.task.vocabulary(), self.task.way)
        with progress.step("counting", max(1, total >> 20)) as advance:
            advance((total - sum(shard.size for shard in left)) >> 20)
            for shard, counted in self._engine(left):
                tables = to_tables(counted)
                for name in _TABLES:
                    folder.write_shard(name, shard.key, tables[name])
                advance(shard.size >> 20)

    def _engine(self, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Counted]]:
        if not shards:
            return iter(())
        if self.engine == "ray":
            return run_ray(shards, self.task, workers=self.workers, address=self.address)
        return run_local(shards, self.task, workers=self.workers)

    def _write(
        self, folder: RunFolder, results: Mapping[Shard, Counted], problems: Sequence[Problem]
    ) -> None:
        corpora = {source.corpus: no_counts(*self._shape) for source in self.sources}
        drawn: dict[str, list[tuple[str, Sample]]] = {corpus: [] for corpus in corpora}
        for shard, counted in results.items():
            corpora[shard.source.corpus] += counted.counts
            drawn[shard.source.corpus] += counted.samples
        terms, size = self.task.terms, self.task.way.samples
        _write_table(folder, "occurrence", occurrence(corpora, terms, level=self.level))
        _write_table(
            folder, "cooccurrence", cooccurrence(corpora, terms, counting=self.counting, level=self.level)
        )
        _write_table(folder, "samples", samples(drawn, terms, size=size))
        rows = [(p.file, p.byte, p.reason) for p in problems]
        _write_table(folder, "problems", pl.DataFrame(rows, schema=dict(PROBLEMS), orient="row"))
        folder.manifest["corpora"] = {
            name: _totals(name, counts, results) for name, counts in corpora.items()
        }


def scan_corpus(
    paths: Path | str | Sequence[Path | str],
    *,
    progress: Progress = SILENT,
    **options: Unpack[CorpusOptions],
) -> Run:
    """The finished run over a corpus: occurrence and co-occurrence tables, samples and a report.

    Arguments are those of ``evenhand corpus``; ``NAME=PATH`` names one of several corpora.
    """
    return prepare(paths, **options).run(progress)


def prepare(paths: Path | str | Sequence[Path | str], **options: Unpack[CorpusOptions]) -> CorpusScan:
    """A scan with inputs found and terms read, so that ``plan`` can be shown before ``run``."""
    sources, missing = find_sources([paths] if isinstance(paths, Path | str) else paths)
    is_paper = _choice("preset", options.get("preset"), PRESETS) == "paper"
    terms = _terms(options.get("terms"))
    counting: Counting = _counting(options.get("counting"), is_paper)
    unit = _unit(options.get("unit"), is_paper, sources)
    sampled, seed = options.get("samples"), options.get("seed") or 0
    way = Way(
        unit=unit,
        rule="paper" if is_paper else "words",
        is_distinct=counting == "distinct",
        samples=DEFAULT_SAMPLES if sampled is None else sampled,
    )
    lost = unmatched(terms, way.rule)
    identity: dict[str, Json] = {
        "command": "corpus",
        "inputs": [source.identity() for source in sources],
        "terms": terms.identity(),
        "unit": way.unit,
        "rule": way.rule,
        "counting": counting,
        "samples": way.samples,
        "seed": seed,
        "text": options.get("text"),
    }
    name = next(iter(dict.fromkeys(source.corpus for source in sources)))
    out = options.get("out")
    # The paper's list is taken as published: terms of two groups belong to it.
    of_terms = () if is_paper else terms.problems
    notes = [str(problem) for problem in terms.problems] if is_paper else []
    if lost:
        notes.append(f"{len(lost)} terms cannot be found under the rule {way.rule!r}, such as {lost[0]!r}")
    return CorpusScan(
        sources=tuple(sources),
        shards=tuple(plan(sources, way)),
        task=Task(terms, way, options.get("text"), seed),
        counting=counting,
        level=options.get("level") or 0.95,
        engine="ray" if _choice("engine", options.get("engine"), get_args(Engine)) == "ray" else "local",
        workers=options.get("workers") or os.cpu_count() or 1,
        address=options.get("address"),
        problems=(*missing, *of_terms),
        notes=tuple(notes),
        identity=identity,
        folder=Path(out) if out else default_folder("corpus", name, identity),
        command=options.get("command") or "evenhand corpus",
        fresh=options.get("fresh", False),
    )


def _write_table(folder: RunFolder, name: str, table: pl.DataFrame) -> None:
    with replacing(folder.path / f"{name}.parquet") as temporary:
        table.write_parquet(temporary)


def _terms(given: Path | str | Sequence[Path | str] | None) -> TermList:
    if not given:
        return builtin_terms()
    return load_terms([given] if isinstance(given, Path | str) else given)


def _counting(given: str | None, is_paper: bool) -> Counting:
    chosen = _choice("counting", given, get_args(Counting))
    return "distinct" if chosen == "distinct" or (chosen is None and is_paper) else "flag"


def _unit(given: str | None, is_paper: bool, sources: Sequence[Source]) -> Unit:
    """The unit asked for; the paper counted rows of tables whole, and sentences of running text."""
    chosen = _choice("unit", given, get_args(Unit))
    for unit in get_args(Unit):
        if chosen == unit:
            return unit  # type: ignore[no-any-return]
    has_rows = all(source.format in ("csv", "tsv", "jsonl", "parquet") for source in sources)
    return "document" if is_paper and has_rows else "sentence"


def _choice(option: str, given: str | None, known: Sequence[str]) -> str | None:
    if given is not None and given not in known:
        raise InputError(f"--{option} {given!r}", accepted=", ".join(known), todo="use one of these")
    return given


def _read(folder: RunFolder, shard: Shard, shape: tuple[int, int, int]) -> Counted:
    tables = {name: folder.read_shards(name, [shard.key]).collect() for name in _TABLES}
    return from_tables(tables, shape)


def _totals(corpus: str, counts: Counts, results: Mapping[Shard, Counted]) -> dict[str, Json]:
    own = [counted for shard, counted in results.items() if shard.source.corpus == corpus]
    return {
        "units": counts.units,
        "words": counts.words,
        "bytes": sum(counted.bytes for counted in own),
        "files": len({shard.source.path for shard in results if shard.source.corpus == corpus}),
        "units_without_group": counts.units - int(counts.axes[-1]),
    }


def _speed(counted: Collection[Counted], seconds: float) -> dict[str, Json]:
    """Where the time went, and which stage was the limit."""
    total = Clock(
        sum(result.clock.reading for result in counted),
        sum(result.clock.counting for result in counted),
        sum(result.clock.waiting for result in counted),
    )
    limit = "reading and unpacking" if total.reading > total.counting else "counting"
    return {
        "seconds": round(seconds, 3),
        "bytes": sum(result.bytes for result in counted),
        "reading_seconds": round(total.reading, 3),
        "counting_seconds": round(total.counting, 3),
        "waiting_seconds": round(total.waiting, 3),
        "limited_by": limit,
    }


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.4g} {unit}"
        size /= 1000
    return f"{size:,.4g} TB"
