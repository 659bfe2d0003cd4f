"""What a mitigation costs: perplexity, diversity and length of its texts, beside the model's own.

n-gram models are trained on half of the vanilla texts, one an axis (Liu et al. 2021, 6.2). Scored on that
half they flatter it; so the other half stands beside it, and mitigated texts are those of its prompts and
samples: a mitigation draws with the same random numbers, and would else repeat what was trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import polars as pl

from evenhand.core import registry
from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.file_names import file_name
from evenhand.core.protocols import Cell, Metric, Progress, SetMetric
from evenhand.core.records import Estimate, Text
from evenhand.pipeline.processes import in_processes
from evenhand.pipeline.sets import ClusteredTexts, set_estimates
from evenhand.pipeline.tables import prompts_from_table
from evenhand.store.kept import kept_table, run_key
from evenhand.store.run import Run
from evenhand.text.ngrams import pieces, train

VANILLA = "vanilla"
TRAINING = "vanilla (training half)"
NGRAMS, PRICES = "ngrams", "prices"
"""The folders of the ARPA files, and of what each condition costs."""
PRICE: Mapping[str, pl.DataType] = {
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
class Pricing:
    """How prices are taken."""

    folder: Path
    """Where the n-gram models and the prices go; a second start finds those that are there."""
    model: Callable[[], Metric | SetMetric] | None = None
    """Makes the metric of perplexity under the vanilla model itself, where it gives log-probabilities."""
    level: float = 0.95
    jobs: int = 1
    """Conditions at once."""

    def prices(self, vanilla: Run, mitigated: Mapping[str, Run], progress: Progress) -> pl.DataFrame:
        """For each condition, axis and output a number with its interval."""
        learnt = _texts(vanilla).filter(~pl.col("held_out"))
        models = [
            _Learnt(
                self.folder / NGRAMS / f"{axis}.arpa", learnt.filter(pl.col("axis") == axis)["text"].to_list()
            )
            for axis in learnt["axis"].unique().sort()
        ]
        in_processes(_trained, models, jobs=self.jobs, progress=progress, label="n-gram models")
        axes = {model.path.stem: str(model.path) for model in models}
        tasks = [
            _Priced(name, run.path, vanilla.path, self.folder / PRICES, axes, self.model, self.level)
            for name, run in {VANILLA: vanilla, **mitigated}.items()
        ]
        found = in_processes(_price, tasks, jobs=self.jobs, progress=progress, label="prices")
        _ngrams.cache_clear()
        return pl.concat([pl.DataFrame(schema=dict(PRICE)), *found])


class _Learnt(NamedTuple):
    """An n-gram model and the texts it is trained on."""

    path: Path
    texts: list[str]


class _Priced(NamedTuple):
    """A condition whose price is to be taken."""

    name: str
    run: Path
    vanilla: Path
    folder: Path
    axes: Mapping[str, str]
    """Axis to ARPA file."""
    model: Callable[[], Metric | SetMetric] | None
    level: float


def _trained(learnt: _Learnt) -> None:
    """Write the n-gram model of texts, where it is not there yet."""
    mark, wanted = learnt.path.with_suffix(".digest"), digest(list(learnt.texts))
    if learnt.path.is_file() and mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
        return
    learnt.path.parent.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    train([pieces(text) for text in learnt.texts]).write(learnt.path)
    mark.write_text(wanted, encoding="utf-8")


def _price(task: _Priced) -> pl.DataFrame:
    """The prices of one condition; of vanilla, those of both halves."""
    run = Run.open(task.run)
    depends_on = [*run_key(run), *run_key(Run.open(task.vanilla)), task.model is not None, task.level]
    return kept_table(task.folder, file_name(task.name, "condition"), depends_on, lambda: _taken(task, run))


def _taken(task: _Priced, run: Run) -> pl.DataFrame:
    texts = _texts(run)
    sets = {task.name: texts.filter(pl.col("held_out"))}
    if task.name == VANILLA:
        sets = {TRAINING: texts.filter(~pl.col("held_out")), **sets}
    own = {"model": _of_sets(task.model())} if task.model else {}
    rows = [row for axis in sorted(task.axes) for row in _of_axis(axis, sets, task, own)]
    return pl.DataFrame(rows, schema=dict(PRICE))


def _of_axis(
    axis: str, sets: Mapping[str, pl.DataFrame], task: _Priced, own: Mapping[str, SetMetric]
) -> Iterator[dict[str, object]]:
    path = task.axes[axis]
    cells = {
        Cell(axis, name): _clustered(table.filter(pl.col("axis") == axis)) for name, table in sets.items()
    }
    metrics = {"ngrams": _ngrams(path, file_digest(Path(path))), "diversity": _set("diversity"), **own}
    for name, metric in metrics.items():
        for cell, found in set_estimates(metric, cells, level=task.level).items():
            for output, estimate in found.items():
                yield _row(cell, name, output, estimate)


@lru_cache(maxsize=3)
def _ngrams(path: str, _digest: str) -> SetMetric:
    """The metric of an ARPA file; reading one takes as long as a condition's texts."""
    return _set(f"perplexity={path}")


def _texts(run: Run) -> pl.DataFrame:
    """The texts of a run by axis, and whether they are of the half that is held out.

    Every second sample; with one sample a prompt, every second prompt.
    """
    prompts = prompts_from_table(run.table("prompts"))
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


def _clustered(table: pl.DataFrame) -> ClusteredTexts:
    return ClusteredTexts([Text(text) for text in table["text"]], table["cluster"].to_list())


def _set(spec: str) -> SetMetric:
    return _of_sets(registry.metric(spec))


def _of_sets(metric: Metric | SetMetric) -> SetMetric:
    if not isinstance(metric, SetMetric):
        raise InputError(f"{metric.info.name!r} measures texts, not sets of texts", accepted="a set metric")
    return metric


def _row(cell: Cell, metric: str, output: str, estimate: Estimate) -> dict[str, object]:
    known = {name: value for name, value in asdict(estimate).items() if name in PRICE}
    return {"condition": cell.group, "attribute": cell.axis, "metric": metric, "output": output, **known}
