"""The same audit of one model without and with mitigations: what changes, and what it costs.

A mitigation costs perplexity, diversity and length. n-gram models are trained on half of the vanilla texts,
one per axis (Liu et al. 2021, 6.2). Scored on that half they flatter it; so the other half is scored too, and
mitigated texts are those of its prompts and samples: a mitigation draws with the same random numbers, and
would else repeat what was trained on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl
from scipy.stats import t as student

from evenhand._version import __version__
from evenhand.audits.audit import AuditJob
from evenhand.audits.audit import prepare as prepare_audit
from evenhand.audits.parallel import map_processes
from evenhand.audits.run_setup import SILENT_PROGRESS
from evenhand.config import resolve_config
from evenhand.core import registry
from evenhand.core.digests import digest, file_digest
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import Cell, Metric, Model, Progress, ScoringModel, SetMetric
from evenhand.core.records import Estimate, Request, Text, Value
from evenhand.core.registry import Option
from evenhand.run_options import AuditOptions
from evenhand.stats.results import NO_VALUES, ONE_CLUSTER
from evenhand.store.cache import cached_table, run_key
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import MANIFEST, Run, read_manifest
from evenhand.text.ngram_model import train_ngram_model
from evenhand.text.word_tokens import tokenize

SUITES = ("political", "political:direct")
METRICS = ("ideology",)
TRIAL = 32
"""Prompts of a trial of speed: a batch of the paper's bar."""
VANILLA = "vanilla"
TRAINING = "vanilla (training half)"
NGRAMS, PRICES = "ngrams", "prices"
"""The folders of the ARPA files, and of what each condition costs."""
COST_SCHEMA: Mapping[str, pl.DataType] = {
    **dict.fromkeys(("condition", "attribute", "metric", "output"), pl.String()),
    **dict.fromkeys(("value", "low", "high"), pl.Float64()),
    **dict.fromkeys(("n", "n_clusters"), pl.Int64()),
    "null_reason": pl.String(),
}
LEVEL = 0.95
METHOD = "cluster jackknife"
BLOCKS = 20
"""At most so many blocks of clusters are left out, one at a time."""


@dataclass(frozen=True, slots=True)
class SweepCondition:
    """One way the model writes: as it is, or with a mitigation."""

    name: str
    mitigation: str | None = None
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The folder of its run."""
        return safe_file_name(self.name, "condition")


@dataclass(frozen=True, slots=True)
class MitigationSweep:
    """A model under several conditions, vanilla first."""

    model: Model | str
    conditions: tuple[SweepCondition, ...]
    options: AuditOptions
    """What all audits share: suites, metrics, sampling, seed."""
    spec: str | None = None
    """The model by name: other processes load it too. None keeps all work in this process."""
    jobs: int = 1
    """Conditions at once."""

    def audit(self, condition: SweepCondition, folder: Path) -> AuditJob:
        """The audit of one condition."""
        shared: AuditOptions = {**self.options, "out": folder / condition.folder}
        if condition.mitigation:
            shared["mitigate"] = condition.mitigation
            shared["mitigation_options"] = dict(condition.options)
        return prepare_audit(self.model, **shared)

    def runs(self, folder: Path, progress: Progress) -> dict[str, Run]:
        """The finished run of every condition, by name; a second start goes on where the first one ended."""
        if self.spec is None or self.jobs < 2:
            return {one.name: _run(self.audit(one, folder), progress) for one in self.conditions}
        # Other processes load the model by its name.
        work = partial(_run_elsewhere, replace(self, model=self.spec), folder)
        paths = map_processes(work, self.conditions, jobs=self.jobs, progress=progress, label="conditions")
        return {one.name: Run.open(path) for one, path in zip(self.conditions, paths, strict=True)}

    def compute_costs(
        self, runs: Mapping[str, Run], folder: Path, source: str | None, progress: Progress
    ) -> pl.DataFrame:
        """What the mitigations cost; ``source`` names the model for its own perplexity.

        For each condition, axis and output a number with its interval. The n-gram models and the prices go to
        ``folder``, where a second start finds them.
        """
        own = None
        if source is not None and isinstance(self.model, ScoringModel):
            # Under the vanilla model itself, as it gives log-probabilities.
            execution = resolve_config(self.options).execution()
            own = partial(registry.create_metric, "perplexity", {"source": source}, execution)
        half = _read_texts(runs[VANILLA]).filter(~pl.col("held_out"))
        texts = {axis: half.filter(axis=axis)["text"].to_list() for axis in half["axis"].unique().sort()}
        paths = {axis: folder / NGRAMS / f"{axis}.arpa" for axis in texts}
        training = [(paths[axis], of_axis) for axis, of_axis in texts.items()]
        map_processes(_train_ngrams, training, jobs=self.jobs, progress=progress, label="n-gram models")
        work = partial(_compute_costs, runs[VANILLA].path, folder / PRICES, paths, own)
        named = [(name, run.path) for name, run in {VANILLA: runs[VANILLA], **runs}.items()]
        tables = map_processes(work, named, jobs=self.jobs, progress=progress, label="prices")
        _load_ngrams.cache_clear()
        return pl.concat([pl.DataFrame(schema=dict(COST_SCHEMA)), *tables])

    def measure_throughput(self, condition: SweepCondition) -> float | None:
        """Tokens a second of one batch, after one to warm up; None where the model counts no tokens."""
        audit = self.audit(condition, Path())
        part = audit.parts[0]
        requests = [Request(prompt.id, prompt.text, (0,)) for prompt in part.prompts[:TRIAL]]
        for _ in range(2):
            start = time.perf_counter()
            tokens = sum(done.new_tokens or 0 for done in audit.model.generate(requests, part.spec))
            seconds = time.perf_counter() - start
        return tokens / seconds if tokens else None


def _run_elsewhere(sweep: MitigationSweep, folder: Path, condition: SweepCondition) -> Path:
    """The folder of a condition's finished run."""
    return _run(sweep.audit(condition, folder), SILENT_PROGRESS).path


def _run(audit: AuditJob, progress: Progress) -> Run:
    """The finished run of an audit; one that is there already is read, not compared again."""
    if audit.options["fresh"] or not (audit.folder / MANIFEST).is_file():
        return audit.run(progress)
    manifest = read_manifest(audit.folder)
    known = manifest.get("metrics") or {}
    same = ("version", "weights", "options")
    # As a manifest has them: with lists for tuples.
    identity, infos = json.loads(
        json.dumps([audit.identity, {name: asdict(metric.info) for name, metric in audit.metrics.items()}])
    )
    is_finished = (
        manifest.get("ended")
        and manifest["package"] == __version__
        and manifest["identity"] == identity
        and manifest["growth"] == [asdict(audit.sample_tier)]
        and infos.keys() <= known.keys()
        and all(known[name].get(key) == info.get(key) for name, info in infos.items() for key in same)
    )
    return Run.open(audit.folder) if is_finished else audit.run(progress)


def join_distances(runs: Mapping[str, Run]) -> pl.DataFrame:
    """The tables ``distances`` of all runs, with their ``condition``."""
    condition = {name: pl.lit(name).alias("condition") for name in runs}
    return pl.concat([run.table("distances").insert_column(0, condition[name]) for name, run in runs.items()])


def _train_ngrams(task: tuple[Path, list[str]]) -> None:
    """Write the n-gram model of texts, unless there is one."""
    path, texts = task
    mark, wanted = path.with_suffix(".digest"), digest(list(texts))
    if path.is_file() and mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    train_ngram_model([tokenize(text) for text in texts]).write(path)
    mark.write_text(wanted, encoding="utf-8")


def _compute_costs(
    vanilla: Path,
    folder: Path,
    ngrams: Mapping[str, Path],
    model: Callable[[], Metric | SetMetric] | None,
    condition: tuple[str, Path],
) -> pl.DataFrame:
    """The prices of one condition; of vanilla, those of both halves."""
    name, run = condition[0], Run.open(condition[1])
    depends_on = [*run_key(run), *run_key(Run.open(vanilla)), model is not None, LEVEL]
    costs = partial(_costs_of_run, name, run, ngrams, model)
    return cached_table(folder, safe_file_name(name, "condition"), depends_on, costs)


def _costs_of_run(
    condition: str, run: Run, ngrams: Mapping[str, Path], model: Callable[[], Metric | SetMetric] | None
) -> pl.DataFrame:
    texts = _read_texts(run)
    sets = {condition: texts.filter(pl.col("held_out"))}
    if condition == VANILLA:
        sets = {TRAINING: texts.filter(~pl.col("held_out")), **sets}
    own = {"model": model()} if model else {}
    rows: list[dict[str, object]] = []
    for axis, path in sorted(ngrams.items()):
        cells = {
            Cell(axis, name): [
                (Text(text), cluster)
                for text, cluster in table.filter(axis=axis).select("text", "cluster").iter_rows()
            ]
            for name, table in sets.items()
        }
        surprise, diversity = _load_ngrams(str(path), file_digest(path)), registry.create_metric("diversity")
        metrics = {"ngrams": surprise, "diversity": diversity, **own}
        for name, metric in metrics.items():
            for cell, outputs in estimate_sets(cast(SetMetric, metric), cells).items():
                known = {"condition": cell.group, "attribute": cell.axis, "metric": name}
                rows += [{**known, "output": output, **asdict(item)} for output, item in outputs.items()]
    return pl.DataFrame(rows, schema=dict(COST_SCHEMA))


@lru_cache(maxsize=3)
def _load_ngrams(path: str, _digest: str) -> Metric | SetMetric:
    """The metric of an ARPA file; reading one takes as long as a condition's texts."""
    return registry.create_metric(f"perplexity={path}")


def _read_texts(run: Run) -> pl.DataFrame:
    """The texts of a run by axis, and whether they are of the half that is held out.

    Every second sample; with one sample a prompt, every second prompt.
    """
    prompts = read_prompt_rows(run.table("prompts"))
    rows = [
        (prompt.id, place, group.axis, prompt.cluster)
        for place, prompt in enumerate(sorted(prompts, key=lambda prompt: prompt.id))
        for group in prompt.groups
    ]
    of_prompt = pl.DataFrame(rows, schema=["prompt_id", "place", "axis", "cluster"], orient="row")
    texts = run.table("generations").filter(pl.col("text").is_not_null())
    half = pl.col("sample") if (texts["sample"].max() or 0) else pl.col("place")
    joined = texts.select("prompt_id", "sample", "text").join(of_prompt, on="prompt_id")
    return joined.with_columns((half % 2 == 1).alias("held_out")).sort("prompt_id", "sample")


def estimate_sets(
    metric: SetMetric, cells: Mapping[Cell, Sequence[tuple[Text, str]]]
) -> dict[Cell, dict[str, Estimate]]:
    """For each set of texts, each with its cluster, and each output its number, with a jackknife interval.

    Each block of clusters is left out in turn; clusters are dealt to blocks in order of name. A bootstrap
    repeats texts, and repeated texts hold no new n-gram: distinct-n would come out too low.
    """
    whole = metric.measure({cell: [text for text, _ in rows] for cell, rows in cells.items()})
    estimates: dict[Cell, dict[str, Estimate]] = {}
    for cell, rows in cells.items():
        names = sorted({cluster for _, cluster in rows})
        block = {name: place % BLOCKS for place, name in enumerate(names)}
        parts = []
        for left_out in range(min(BLOCKS, len(names))) if len(names) > 1 else ():
            texts = [text for text, cluster in rows if block[cluster] != left_out]
            parts.append(metric.measure({cell: texts})[cell])
        known = partial(Estimate, level=LEVEL, method=METHOD, n=len(rows), n_null=0, n_clusters=len(names))
        estimates[cell] = {
            output: _estimate(value, [part[output].value for part in parts], known)
            for output, value in whole[cell].items()
        }
    return estimates


def _estimate(value: Value, parts: Sequence[float | None], estimate: Callable[..., Estimate]) -> Estimate:
    if value.value is None:
        return estimate(None, None, None, null_reason=value.null_reason or NO_VALUES)
    known = np.array([part for part in parts if part is not None])
    if known.size < 2:
        return estimate(value.value, None, None, null_reason=ONE_CLUSTER)
    error = np.sqrt((known.size - 1) / known.size * np.sum((known - known.mean()) ** 2))
    half = float(student.ppf((1 + LEVEL) / 2, known.size - 1) * error)
    return estimate(value.value, value.value - half, value.value + half)
