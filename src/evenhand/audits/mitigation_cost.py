"""What a mitigation costs: perplexity, diversity and length of its texts, beside the model's own.

n-gram models are trained on half of the vanilla texts, one an axis (Liu et al. 2021, 6.2). Scored on that
half they flatter it; so the other half stands beside it, and mitigated texts are those of its prompts and
samples: a mitigation draws with the same random numbers, and would else repeat what was trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import t as student

from evenhand.audits.parallel import map_processes
from evenhand.core import registry
from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import Cell, Metric, Progress, SetMetric
from evenhand.core.records import Estimate, Text, Value
from evenhand.stats.results import NO_VALUES, ONE_CLUSTER
from evenhand.store.cache import cached_table, run_key
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import Run
from evenhand.text.ngram_model import train_ngram_model
from evenhand.text.word_tokens import tokenize

METHOD = "cluster jackknife"
BLOCKS = 20
"""At most so many blocks of clusters are left out, one at a time."""


@dataclass(frozen=True, slots=True)
class ClusteredTexts:
    """The texts of a set and the cluster of each; texts of one cluster are not independent."""

    texts: Sequence[Text]
    clusters: Sequence[str]

    def blocks(self) -> list[list[Text]]:
        """The set without each block of clusters in turn; clusters are dealt to blocks in order of name."""
        names = sorted(set(self.clusters))
        block = {name: place % BLOCKS for place, name in enumerate(names)}
        rows = list(zip(self.texts, self.clusters, strict=True))
        return [
            [text for text, cluster in rows if block[cluster] != left_out]
            for left_out in range(min(BLOCKS, len(names)))
        ]


def estimate_sets(
    metric: SetMetric, cells: Mapping[Cell, ClusteredTexts], *, level: float = 0.95
) -> dict[Cell, dict[str, Estimate]]:
    """For each set and output its number, with a jackknife interval over clusters.

    A bootstrap repeats texts, and repeated texts hold no new n-gram: distinct-n would come out too low.
    """
    whole = metric.measure({cell: given.texts for cell, given in cells.items()})
    return {cell: _estimates(metric, cell, given, whole[cell], level) for cell, given in cells.items()}


def _estimates(
    metric: SetMetric, cell: Cell, given: ClusteredTexts, found: Mapping[str, Value], level: float
) -> dict[str, Estimate]:
    clusters = len(set(given.clusters))
    parts = [metric.measure({cell: texts})[cell] for texts in given.blocks()] if clusters > 1 else []
    return {
        output: _estimate(value, [part[output].value for part in parts], (len(given.texts), clusters), level)
        for output, value in found.items()
    }


def _estimate(value: Value, parts: Sequence[float | None], sizes: tuple[int, int], level: float) -> Estimate:
    n, clusters = sizes
    if value.value is None:
        return Estimate(None, None, None, level, METHOD, n, 0, clusters, value.null_reason or NO_VALUES)
    known = np.array([part for part in parts if part is not None])
    if known.size < 2:
        return Estimate(value.value, None, None, level, METHOD, n, 0, clusters, ONE_CLUSTER)
    error = np.sqrt((known.size - 1) / known.size * np.sum((known - known.mean()) ** 2))
    half = float(student.ppf((1 + level) / 2, known.size - 1) * error)
    return Estimate(value.value, value.value - half, value.value + half, level, METHOD, n, 0, clusters)


VANILLA = "vanilla"
TRAINING = "vanilla (training half)"
NGRAMS, PRICES = "ngrams", "prices"
"""The folders of the ARPA files, and of what each condition costs."""
COST_SCHEMA: Mapping[str, pl.DataType] = {
    "condition": pl.String(),
    "attribute": pl.String(),
    "metric": pl.String(),
    "output": pl.String(),
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "n": pl.Int64(),
    "n_clusters": pl.Int64(),
    "null_reason": pl.String(),
}


@dataclass(frozen=True, slots=True)
class MitigationCosts:
    """How prices are taken."""

    folder: Path
    """Where the n-gram models and the prices go; a second start finds those that are there."""
    model: Callable[[], Metric | SetMetric] | None = None
    """Makes the metric of perplexity under the vanilla model itself, where it gives log-probabilities."""
    level: float = 0.95
    jobs: int = 1
    """Conditions at once."""

    def compute(self, vanilla: Run, mitigated: Mapping[str, Run], progress: Progress) -> pl.DataFrame:
        """For each condition, axis and output a number with its interval."""
        learnt = _texts(vanilla).filter(~pl.col("held_out"))
        models = [
            _NgramTask(
                self.folder / NGRAMS / f"{axis}.arpa", learnt.filter(pl.col("axis") == axis)["text"].to_list()
            )
            for axis in learnt["axis"].unique().sort()
        ]
        map_processes(_train_ngrams, models, jobs=self.jobs, progress=progress, label="n-gram models")
        axes = {model.path.stem: str(model.path) for model in models}
        tasks = [
            _CostTask(name, run.path, vanilla.path, self.folder / PRICES, axes, self.model, self.level)
            for name, run in {VANILLA: vanilla, **mitigated}.items()
        ]
        found = map_processes(_compute_costs, tasks, jobs=self.jobs, progress=progress, label="prices")
        _ngrams.cache_clear()
        return pl.concat([pl.DataFrame(schema=dict(COST_SCHEMA)), *found])


class _NgramTask(NamedTuple):
    """An n-gram model and the texts it is trained on."""

    path: Path
    texts: list[str]


class _CostTask(NamedTuple):
    """A condition whose price is to be taken."""

    name: str
    run: Path
    vanilla: Path
    folder: Path
    axes: Mapping[str, str]
    """Axis to ARPA file."""
    model: Callable[[], Metric | SetMetric] | None
    level: float


def _train_ngrams(learnt: _NgramTask) -> None:
    """Write the n-gram model of texts, where it is not there yet."""
    mark, wanted = learnt.path.with_suffix(".digest"), digest(list(learnt.texts))
    if learnt.path.is_file() and mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
        return
    learnt.path.parent.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    train_ngram_model([tokenize(text) for text in learnt.texts]).write(learnt.path)
    mark.write_text(wanted, encoding="utf-8")


def _compute_costs(task: _CostTask) -> pl.DataFrame:
    """The prices of one condition; of vanilla, those of both halves."""
    run = Run.open(task.run)
    depends_on = [*run_key(run), *run_key(Run.open(task.vanilla)), task.model is not None, task.level]
    return cached_table(
        task.folder, safe_file_name(task.name, "condition"), depends_on, lambda: _costs_of_run(task, run)
    )


def _costs_of_run(task: _CostTask, run: Run) -> pl.DataFrame:
    texts = _texts(run)
    sets = {task.name: texts.filter(pl.col("held_out"))}
    if task.name == VANILLA:
        sets = {TRAINING: texts.filter(~pl.col("held_out")), **sets}
    own = {"model": _of_sets(task.model())} if task.model else {}
    rows = [row for axis in sorted(task.axes) for row in _of_axis(axis, sets, task, own)]
    return pl.DataFrame(rows, schema=dict(COST_SCHEMA))


def _of_axis(
    axis: str, sets: Mapping[str, pl.DataFrame], task: _CostTask, own: Mapping[str, SetMetric]
) -> Iterator[dict[str, object]]:
    path = task.axes[axis]
    cells = {
        Cell(axis, name): _to_clustered_texts(table.filter(pl.col("axis") == axis))
        for name, table in sets.items()
    }
    metrics = {
        "ngrams": _ngrams(path, file_digest(Path(path))),
        "diversity": _create_set_metric("diversity"),
        **own,
    }
    for name, metric in metrics.items():
        for cell, found in estimate_sets(metric, cells, level=task.level).items():
            for output, estimate in found.items():
                yield _row(cell, name, output, estimate)


@lru_cache(maxsize=3)
def _ngrams(path: str, _digest: str) -> SetMetric:
    """The metric of an ARPA file; reading one takes as long as a condition's texts."""
    return _create_set_metric(f"perplexity={path}")


def _texts(run: Run) -> pl.DataFrame:
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


def _to_clustered_texts(table: pl.DataFrame) -> ClusteredTexts:
    return ClusteredTexts([Text(text) for text in table["text"]], table["cluster"].to_list())


def _create_set_metric(spec: str) -> SetMetric:
    return _of_sets(registry.create_metric(spec))


def _of_sets(metric: Metric | SetMetric) -> SetMetric:
    if not isinstance(metric, SetMetric):
        raise InputError(f"{metric.info.name!r} measures texts, not sets of texts", expected="a set metric")
    return metric


def _row(cell: Cell, metric: str, output: str, estimate: Estimate) -> dict[str, object]:
    known = {name: value for name, value in asdict(estimate).items() if name in COST_SCHEMA}
    return {"condition": cell.group, "attribute": cell.axis, "metric": metric, "output": output, **known}
