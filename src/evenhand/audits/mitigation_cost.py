"""What a mitigation costs: perplexity, diversity and length of its texts, compared with the model's own.

n-gram models are trained on half of the vanilla texts, one per axis (Liu et al. 2021, 6.2). Scored on that
half they flatter it; so the other half is scored too, and mitigated texts are those of its prompts and
samples: a mitigation draws with the same random numbers, and would else repeat what was trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path

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
    estimates: dict[Cell, dict[str, Estimate]] = {}
    for cell, given in cells.items():
        n, clusters = len(given.texts), len(set(given.clusters))
        parts = [metric.measure({cell: texts})[cell] for texts in given.blocks()] if clusters > 1 else []
        estimates[cell] = {
            output: _estimate(value, [part[output].value for part in parts], n, clusters, level)
            for output, value in whole[cell].items()
        }
    return estimates


def _estimate(value: Value, parts: Sequence[float | None], n: int, clusters: int, level: float) -> Estimate:
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
    **dict.fromkeys(("condition", "attribute", "metric", "output"), pl.String()),
    **dict.fromkeys(("value", "low", "high"), pl.Float64()),
    **dict.fromkeys(("n", "n_clusters"), pl.Int64()),
    "null_reason": pl.String(),
}
LEVEL = 0.95


def compute_costs(
    runs: Mapping[str, Run],
    folder: Path,
    model: Callable[[], Metric | SetMetric] | None,
    *,
    jobs: int,
    progress: Progress,
) -> pl.DataFrame:
    """For each condition, axis and output a number with its interval.

    Args:
        runs: Condition to its run, the vanilla one among them.
        folder: Where the n-gram models and the prices go; a second start finds those that are there.
        model: Makes the metric of perplexity under the vanilla model itself, where it gives
            log-probabilities.
        jobs: Conditions at once.
        progress: Told of finished conditions.
    """
    half = _read_texts(runs[VANILLA]).filter(~pl.col("held_out"))
    texts = {axis: half.filter(axis=axis)["text"].to_list() for axis in half["axis"].unique().sort()}
    paths = {axis: folder / NGRAMS / f"{axis}.arpa" for axis in texts}
    training = [(paths[axis], of_axis) for axis, of_axis in texts.items()]
    map_processes(_train_ngrams, training, jobs=jobs, progress=progress, label="n-gram models")
    work = partial(_compute_costs, runs[VANILLA].path, folder / PRICES, paths, model)
    conditions = sorted(runs.items(), key=lambda item: item[0] != VANILLA)
    named = [(name, run.path) for name, run in conditions]
    tables = map_processes(work, named, jobs=jobs, progress=progress, label="prices")
    _load_ngrams.cache_clear()
    return pl.concat([pl.DataFrame(schema=dict(COST_SCHEMA)), *tables])


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
            Cell(axis, name): ClusteredTexts([Text(text) for text in of["text"]], of["cluster"].to_list())
            for name, of in ((name, table.filter(axis=axis)) for name, table in sets.items())
        }
        metrics = {
            "ngrams": _load_ngrams(str(path), file_digest(path)),
            "diversity": registry.create_metric("diversity"),
            **own,
        }
        for name, metric in metrics.items():
            if not isinstance(metric, SetMetric):
                raise InputError(
                    f"{metric.info.name!r} measures texts, not sets of texts", expected="a set metric"
                )
            for cell, outputs in estimate_sets(metric, cells, level=LEVEL).items():
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
