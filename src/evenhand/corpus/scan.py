"""``scan_corpus``: how often emotions occur in a corpus, and with which groups they share a sentence."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Unpack

import polars as pl

from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan, finish_run
from evenhand.core.digests import Json
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.corpus.options import CorpusOptions
from evenhand.corpus.result_tables import (
    contrast_table,
    cooccurrence_table,
    occurrence_table,
    sample_table,
)
from evenhand.corpus.scanner import CountingConfig, compile_kernel
from evenhand.corpus.shards import (
    TABLES,
    WITH_GROUP,
    CorpusShard,
    CorpusTotal,
    ScanTask,
    escape_surrogates,
    plan_shards,
    problem_table,
    run_local,
    run_ray,
)
from evenhand.corpus.term_lists import builtin_terms, find_unmatchable, load_terms
from evenhand.corpus.tokenisation import ClusterUnit
from evenhand.report.wording import format_count
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage
from evenhand.store.text_sources import ReadProblem, TextSource, find_sources

STAGE = "count"
COUNTER = 4
"""The version of a shard's contents: raised when finished shards can no longer be added to new ones."""
_CLUSTERS: Mapping[ClusterUnit | None, str] = {
    None: "documents: records, texts between empty lines, or lines where a file has no empty line",
    "document": "documents: records, or texts between empty lines",
    "line": "lines of running text, records of tables",
    "file": "files",
}
"""The observations that intervals treat as independent."""


@dataclass(frozen=True, slots=True)
class CorpusScan:
    """A scan that is ready to run: inputs found, terms read, nothing counted yet."""

    sources: Sequence[TextSource]
    shards: Sequence[CorpusShard]
    task: ScanTask
    options: CorpusOptions
    problems: Sequence[ReadProblem]
    """Problems found before counting: in the paths and in the term files."""
    notes: Sequence[str]
    identity: Mapping[str, Json]
    folder: Path

    @property
    def workers(self) -> int:
        """The number of shards counted in parallel."""
        return self.options["workers"] or os.cpu_count() or 1

    @property
    def name(self) -> str:
        """The names of the corpora."""
        return ", ".join(dict.fromkeys(source.corpus for source in self.sources))

    def plan(self) -> RunPlan:
        """A summary of the run, to show before it starts."""
        size = sum(source.size for source in self.sources)
        emotions, groups = self.task.terms.size
        way, seconds = self.task.config, round(size / 4e8 / self.workers)
        return RunPlan(
            title=f"corpus {self.name}",
            lines=(
                f"inputs  {format_count(len(self.sources), 'file')}, {_bytes(size)} as stored, "
                f"{format_count(len(self.shards), 'shard')}",
                f"terms   {emotions:,} for {format_count(len(self.task.terms.emotions), 'emotion')}, "
                f"{groups:,} for {format_count(len(self.task.terms.groups), 'group')}",
                f"count   --counting {self.identity['counting']}, --unit {way.unit}; word rule: {way.rule}",
                f"cluster {_CLUSTERS[self.task.cluster]}",
                f"engine  {self.options['engine']}, {format_count(self.workers, 'worker')}; plain text takes "
                f"{f'about {seconds:,} s' if seconds else 'less than a second'}, after start-up",
                f"folder  {self.folder}",
            ),
        )

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Count the remaining shards, then write tables and report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.options["fresh"]) as folder:
            folder.manifest.update(
                command=self.options["command"] or "evenhand corpus",
                name=self.name,
                config={"counting": self.identity["counting"], "level": self.options["level"]},
                execution={
                    "engine": self.options["engine"],
                    "workers": self.workers,
                    "address": self.options["address"],
                },
                shards=[[shard.key, shard.source.path, shard.start, shard.stop] for shard in self.shards],
                warnings=list(self.notes),
                ended=None,
            )
            folder.save_manifest()
            with run_stage(folder, STAGE) as record:
                started = time.perf_counter()
                self._count(folder, progress)
                totals, problems = self._total(folder)
                record.update(describe_speed(totals.values(), time.perf_counter() - started))
                record.update(items=len(self.shards), failed=problems.height)
            self._write(folder, totals, problems)
            return finish_run(folder, ("html", "json", "md"))

    def _count(self, folder: RunFolder, progress: Progress) -> None:
        left = [shard for shard in self.shards if not folder.has_shard(TABLES[-1], shard.key)]
        total = sum(shard.size for shard in self.shards)
        is_ray = self.options["engine"] == "ray"
        if left and not is_ray:
            with progress.step("compiling the counter (once per installation)", None):
                compile_kernel(self.task.vocabulary(), self.task.config)
        with progress.step("counting", max(1, total >> 20)) as advance:
            advance((total - sum(shard.size for shard in left)) >> 20)
            run = partial(run_ray, address=self.options["address"]) if is_ray else run_local
            for shard, tables in run(left, self.task, workers=self.workers) if left else ():
                for name in TABLES:
                    folder.write_shard(name, shard.key, tables[name])
                advance(shard.size >> 20)

    def _total(self, folder: RunFolder) -> tuple[dict[str, CorpusTotal], pl.DataFrame]:
        totals, problems = dict[str, CorpusTotal](), [problem_table(self.problems)]
        for shard in self.shards:
            tables = {name: folder.read_shards(name, [shard.key]).collect() for name in TABLES}
            totals.setdefault(shard.source.corpus, CorpusTotal(self.task)).add(shard, tables)
            problems.append(tables["problems"])
        return totals, pl.concat(problems)

    def _write(self, folder: RunFolder, totals: Mapping[str, CorpusTotal], problems: pl.DataFrame) -> None:
        terms, level, is_distinct = self.task.terms, self.options["level"], self.task.config.is_distinct
        corpora = {
            name: (self.task.layout.split(total.blocks), total.documents.total())
            for name, total in totals.items()
        }
        folder.write("occurrence", occurrence_table(corpora, terms, level=level))
        folder.write("cooccurrence", cooccurrence_table(corpora, terms, is_distinct=is_distinct, level=level))
        folder.write("contrasts", contrast_table(corpora, terms, level=level))
        samples = {name: total.samples for name, total in totals.items()}
        row_files = {escape_surrogates(one.path) for one in self.sources if one.format == "parquet"}
        folder.write("samples", sample_table(samples, terms, row_files))
        folder.write("problems", problems)
        folder.manifest["corpora"] = {name: _facts(total) for name, total in totals.items()}


@checks_options
def scan_corpus(
    paths: Path | str | Sequence[Path | str],
    *,
    progress: Progress = SILENT_PROGRESS,
    **options: Unpack[CorpusOptions],
) -> Run:
    """The finished run over a corpus: occurrence and co-occurrence tables, samples and a report.

    Arguments are those of ``evenhand corpus``; ``NAME=PATH`` names one of several corpora.
    """
    return prepare(paths, **options).run(progress)


@checks_options
def prepare(paths: Path | str | Sequence[Path | str], **options: Unpack[CorpusOptions]) -> CorpusScan:
    """A scan with inputs found and terms read, so that ``plan`` can be shown before ``run``."""
    sources, missing = find_sources([paths] if isinstance(paths, Path | str) else paths)
    is_paper = options["preset"] == "paper"
    lists = options["terms"]
    terms = load_terms([lists] if isinstance(lists, Path | str) else lists) if lists else builtin_terms()
    counting = options["counting"] or ("distinct" if is_paper else "flag")
    # The paper counted whole rows of tables, and sentences of running text.
    has_rows = all(source.format in ("csv", "tsv", "jsonl", "parquet") for source in sources)
    way = CountingConfig(
        unit=options["unit"] or ("document" if is_paper and has_rows else "sentence"),
        rule="paper" if is_paper else "words",
        is_distinct=counting == "distinct",
        samples=options["samples"],
    )
    identity: dict[str, Json] = {
        "command": "corpus",
        "inputs": [source.identity() for source in sources],
        "terms": terms.identity(),
        "counter": COUNTER,
        "unit": way.unit,
        "cluster": options["cluster"],
        "rule": way.rule,
        "counting": counting,
        "samples": way.samples,
        "seed": options["seed"],
        "text": options["text"],
    }
    # The paper's list is used as published, with its terms of two groups.
    notes = [str(problem) for problem in terms.problems] if is_paper else []
    if unmatchable := find_unmatchable(terms, way.rule):
        problem = f"{format_count(len(unmatchable), 'term')} cannot be found under the rule {way.rule!r}"
        notes.append(f"{problem}, such as {unmatchable[0]!r}")
    out = options["out"]
    return CorpusScan(
        sources=sources,
        shards=plan_shards(sources, way),
        task=ScanTask(terms, way, options["text"], options["seed"], options["cluster"]),
        options=options,
        problems=missing if is_paper else [*missing, *terms.problems],
        notes=notes,
        identity=identity,
        folder=Path(out) if out else default_folder("corpus", sources[0].corpus, identity),
    )


def _facts(total: CorpusTotal) -> dict[str, Json]:
    values = total.values
    return {
        **{name: values[name] for name in ("units", "words", "bytes")},
        "files": len(total.files),
        "units_without_group": values["units"] - values[WITH_GROUP],
        "documents": dict(total.documents),
    }


def describe_speed(totals: Collection[CorpusTotal], seconds: float) -> dict[str, Json]:
    """The time spent in each stage, and the stage that limited the speed."""
    values = sum((total.values for total in totals), Counter[str]())
    reading, counting, waiting = (
        values[f"clock.{name}"] / 1e6 for name in ("reading", "counting", "waiting")
    )
    return {
        "seconds": round(seconds, 3),
        "bytes": values["bytes"],
        "reading_seconds": round(reading, 3),
        "counting_seconds": round(counting, 3),
        "waiting_seconds": round(waiting, 3),
        "limited_by": "reading and unpacking" if reading > counting else "counting",
    }


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.4g} {unit}"
        size /= 1000
    return f"{size:,.4g} TB"
