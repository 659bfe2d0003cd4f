"""What a mitigation costs: perplexity, diversity and length of its texts, beside the model's own.

n-gram models are trained on half of the vanilla texts, one an axis (Liu et al. 2021, 6.2). Scored on that
half they flatter it; so the other half stands beside it, and mitigated texts are those of its prompts and
samples: a mitigation draws with the same random numbers, and would else repeat what was trained on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.protocols import Cell, SetMetric
from evenhand.core.records import Estimate, Text
from evenhand.pipeline.sets import ClusteredTexts, set_estimates
from evenhand.pipeline.tables import prompts_from_table
from evenhand.store.run import Run
from evenhand.text.ngrams import pieces, train

VANILLA = "vanilla"
TRAINING = "vanilla (training half)"
NGRAMS = "ngrams"
"""The folder of the ARPA files."""
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
    """Where the n-gram models go."""
    model: SetMetric | None = None
    """Perplexity under the vanilla model itself, where it gives log-probabilities."""
    level: float = 0.95

    def prices(self, vanilla: Run, mitigated: Mapping[str, Run]) -> pl.DataFrame:
        """For each condition, axis and output a number with its interval."""
        own = _texts(vanilla)
        learnt, held_out = own.filter(~pl.col("held_out")), own.filter(pl.col("held_out"))
        sets = {TRAINING: learnt, VANILLA: held_out}
        sets |= {name: _texts(run).filter(pl.col("held_out")) for name, run in mitigated.items()}
        rows = [row for axis in own["axis"].unique().sort() for row in self._of_axis(axis, sets)]
        return pl.DataFrame(rows, schema=dict(PRICE))

    def _of_axis(self, axis: str, sets: Mapping[str, pl.DataFrame]) -> Iterator[dict[str, object]]:
        cells = {
            Cell(axis, name): _clustered(table.filter(pl.col("axis") == axis)) for name, table in sets.items()
        }
        metrics = {"ngrams": self._ngrams(axis, cells[Cell(axis, TRAINING)]), "diversity": _set("diversity")}
        for name, metric in (metrics | ({"model": self.model} if self.model else {})).items():
            for cell, found in set_estimates(metric, cells, level=self.level).items():
                for output, estimate in found.items():
                    yield _row(cell, name, output, estimate)

    def _ngrams(self, axis: str, learnt: ClusteredTexts) -> SetMetric:
        path = self.folder / NGRAMS / f"{axis}.arpa"
        path.parent.mkdir(parents=True, exist_ok=True)
        train([pieces(text.text) for text in learnt.texts]).write(path)
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
    metric = registry.metric(spec)
    if not isinstance(metric, SetMetric):
        raise InputError(f"{spec!r} measures texts, not sets of texts", accepted="a set metric")
    return metric


def _row(cell: Cell, metric: str, output: str, estimate: Estimate) -> dict[str, object]:
    known = {name: value for name, value in asdict(estimate).items() if name in PRICE}
    return {"condition": cell.group, "attribute": cell.axis, "metric": metric, "output": output, **known}
