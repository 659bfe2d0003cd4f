"""Run folders to draw: one with realistic numbers, and the odd ones that reports break on.

The numbers are simulated, with clusters, from made-up rates; they say nothing of any model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from tests.report.manifests import AXES, PRIMARY, Plan, groups_in, manifest, texts_in, write_run

from evenhand.core.records import REST
from evenhand.store.run import Run
from evenhand.store.schemas import empty_table

SHARES = {
    "sentiment": (
        ("negative", 0.16),
        ("positive", 0.34),
        ("neutral", 0.5),
        ("negative@0.05", 0.27),
        ("positive@0.05", 0.52),
        ("neutral@0.05", 0.21),
    ),
    "gender_polarity": (
        ("female", 0.09),
        ("male", 0.17),
        ("neutral", 0.74),
        ("female@wavg", 0.11),
        ("male@wavg", 0.2),
        ("neutral@wavg", 0.69),
    ),
}
MEANS = {
    "sentiment": (("compound", 0.12, 0.4), ("intensity", 0.3, 0.2)),
    "gender_polarity": (("unigram", -0.11, 0.7), ("wavg", -0.06, 0.25)),
}
_OPENINGS = (
    "grew up in a small town and",
    "was remembered by neighbours who",
    "opened the letter, sat down and",
    "had been waiting for years before",
    "told the committee that",
)
_ENDINGS = (
    "spoke warmly about everyone who had helped along the way.",
    "argued bitterly with the owner over an unpaid debt.",
    "walked home through the rain, thinking about dinner.",
    "was blamed for a failure that nobody could explain.",
    "won a prize for the quiet, careful work of a decade.",
    "read the minutes of the last meeting aloud.",
)


def realistic_run(folder: Path, *, clusters: int = 10, samples: int = 5) -> Run:
    """A finished run of 5 axes, 43 groups, 2 metrics and 16 outputs."""
    return simulated_run(folder, Plan(AXES, clusters=clusters, samples=samples))


def simulated_run(folder: Path, plan: Plan) -> Run:
    """A finished run of the planned size."""
    rng = np.random.default_rng(plan.seed)
    groups, comparisons = _numbers(plan, rng)
    tables = {
        "groups": pl.DataFrame(groups, schema=dict(empty_table("groups").schema), orient="row"),
        "comparisons": _adjusted(comparisons),
        "examples": pl.DataFrame(
            list(_examples(plan, rng)), schema=dict(empty_table("examples").schema), orient="row"
        ),
        "exclusions": pl.DataFrame(
            _exclusions(plan), schema=dict(empty_table("exclusions").schema), orient="row"
        ),
        "prompts": _ids("prompts", groups_in(plan) * plan.clusters),
        "generations": _ids("generations", texts_in(plan)),
    }
    return write_run(folder, manifest(plan), tables)


def comparison(**changes: object) -> dict[str, object]:
    """One row of the comparisons table: a supported gap of 3.2 points, unless changed."""
    row: dict[str, object] = {
        "suite": "starter",
        "model": "gpt2",
        "axis": "race",
        "group": "African_Americans",
        "baseline": "European_Americans",
        "metric": "sentiment",
        "output": "negative",
        "effect": "difference",
        "estimate": 0.032,
        "low": 0.011,
        "high": 0.053,
        "p": 0.002,
        "p_adjusted": 0.01,
        "n": 250,
        "n_clusters": 10,
        "min_detectable": 0.029,
        "n_baseline": 240,
        "n_null": 2,
        "group_value": 0.192,
        "baseline_value": 0.16,
        "effect_size": 0.084,
        "exploratory": False,
        "family": "starter/gpt2",
        "family_size": 84,
        "correction": "benjamini-hochberg",
        "method": "cluster-robust",
        "null_reason": None,
    }
    return row | changes


def null_comparison(**changes: object) -> dict[str, object]:
    """A row without an estimate."""
    numbers = dict.fromkeys(
        ("estimate", "low", "high", "p", "p_adjusted", "min_detectable", "group_value", "effect_size")
    )
    return comparison(**numbers, null_reason="no_scores") | changes


def group_row(**changes: object) -> dict[str, object]:
    """One row of the groups table, unless changed."""
    row: dict[str, object] = {
        "suite": "starter",
        "model": "gpt2",
        "axis": "race",
        "group": "African_Americans",
        "metric": "sentiment",
        "output": "negative",
        "kind": "share",
        "value": 0.192,
        "low": 0.15,
        "high": 0.24,
        "level": 0.95,
        "method": "wilson",
        "n": 250,
        "n_null": 2,
        "n_clusters": 10,
        "null_reason": None,
    }
    return row | changes


def frame(name: str, rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Rows as a table of that name."""
    return pl.DataFrame(list(rows), schema=dict(empty_table(name).schema), orient="row")


def small_run(
    folder: Path,
    comparisons: Sequence[Mapping[str, object]] = (),
    groups: Sequence[Mapping[str, object]] = (),
    **changes: object,
) -> Run:
    """A run of just these rows; ``changes`` go into the manifest."""
    tables = {"comparisons": frame("comparisons", comparisons), "groups": frame("groups", groups)}
    return write_run(folder, manifest() | changes, tables)


def _ids(name: str, size: int) -> pl.DataFrame:
    table = pl.DataFrame({"id": [str(index) for index in range(size)]})
    schema = empty_table(name).schema
    return table.with_columns(
        pl.lit(None, dtype=kind).alias(key) for key, kind in schema.items() if key != "id"
    )


def _numbers(plan: Plan, rng: np.random.Generator) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    groups: list[dict[str, object]] = []
    gaps: list[dict[str, object]] = []
    for metric in SHARES:
        for output, centre, spread in _outputs(metric):
            for axis, (baseline, names) in plan.axes.items():
                values = {group: _cluster_means(plan, rng, centre, spread) for group in names}
                groups += [_estimate(plan, axis, group, metric, output, values[group]) for group in names]
                gaps += _gaps(plan, axis, baseline, metric, output, values)
    return groups, gaps


def _outputs(metric: str) -> Iterator[tuple[str, float, float]]:
    for output, share in SHARES[metric]:
        yield output, share, math.sqrt(share * (1 - share))
    yield from MEANS[metric]


def _cluster_means(plan: Plan, rng: np.random.Generator, centre: float, spread: float) -> np.ndarray:
    """One mean a cluster: most groups share the centre, one in six is moved."""
    moved = centre + (rng.normal(0, 0.35 * spread) if rng.random() < 1 / 6 else rng.normal(0, 0.03 * spread))
    noise = spread * rng.normal(0, math.sqrt(0.1 + 0.9 / plan.samples), plan.clusters)
    low = 0.0 if spread < 0.51 and centre > 0 else -9.0
    return np.clip(moved + noise, low, 1.0 if low == 0.0 else 9.0)


def _estimate(
    plan: Plan, axis: str, group: str, metric: str, output: str, values: np.ndarray
) -> dict[str, object]:
    value, error = float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
    share = output in dict(SHARES[metric])
    low, high = value - 2.1 * error, value + 2.1 * error
    return group_row(
        axis=axis,
        group=group,
        metric=metric,
        output=output,
        kind="share" if share else "mean",
        value=value,
        low=max(0.0, low) if share else low,
        high=min(1.0, high) if share else high,
        n=plan.clusters * plan.samples,
        n_null=0,
        n_clusters=plan.clusters,
    )


def _gaps(
    plan: Plan, axis: str, baseline: str, metric: str, output: str, values: Mapping[str, np.ndarray]
) -> Iterator[dict[str, object]]:
    for group, own in values.items():
        if group == baseline:
            continue
        names = [other for other in values if other != group] if baseline == REST else [baseline]
        theirs = np.concatenate([values[other] for other in names])
        error = float(np.sqrt(own.var(ddof=1) / len(own) + theirs.var(ddof=1) / len(theirs)))
        estimate = float(own.mean() - theirs.mean())
        yield comparison(
            axis=axis,
            group=group,
            baseline=baseline,
            metric=metric,
            output=output,
            estimate=estimate,
            low=estimate - 2.1 * error,
            high=estimate + 2.1 * error,
            p=math.erfc(abs(estimate) / error / math.sqrt(2) * 0.9),
            p_adjusted=None,
            n=plan.clusters * plan.samples,
            n_clusters=plan.clusters,
            min_detectable=2.9 * error,
            n_baseline=len(theirs) * plan.samples,
            n_null=0,
            group_value=float(own.mean()),
            baseline_value=float(theirs.mean()),
            effect_size=estimate / (error * math.sqrt(len(own))),
            exploratory=output not in PRIMARY[metric],
        )


def _adjusted(rows: list[dict[str, object]]) -> pl.DataFrame:
    table = frame("comparisons", rows).with_row_index()
    parts = []
    for part in table.partition_by("exploratory", maintain_order=True):
        # Benjamini-Hochberg: p times m over its rank, made monotone from the largest down.
        order = part.sort("p")
        ranks = pl.int_range(1, pl.len() + 1)
        steps = (pl.col("p") * pl.len() / ranks).reverse().cum_min().reverse().clip(upper_bound=1.0)
        parts.append(order.with_columns(p_adjusted=steps, family_size=pl.len().cast(pl.Int64)))
    return pl.concat(parts).sort("index").drop("index") if parts else table.drop("index")


def _examples(plan: Plan, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    for metric, output in (("sentiment", "compound"), ("gender_polarity", "unigram")):
        for axis, (_, names) in plan.axes.items():
            for group in names:
                values = np.sort(rng.uniform(-0.9, 0.9, 20)).round(4)
                for index in range(40):
                    opening, ending = rng.choice(_OPENINGS), rng.choice(_ENDINGS)
                    value = float(values[index] if index < 20 else rng.choice(values))
                    yield {
                        "suite": "starter",
                        "model": "gpt2",
                        "axis": axis,
                        "group": group,
                        "metric": metric,
                        "output": output,
                        "why": "lowest" if index < 10 else "highest" if index < 20 else "drawn",
                        "text_id": f"{group}-{index}",
                        "prompt": f"The {group.replace('_', ' ')} {opening}",
                        "text": f" {ending}",
                        "value": value,
                        "label": "negative" if value <= -0.5 else "positive" if value >= 0.5 else "neutral",
                    }


def _exclusions(plan: Plan) -> list[dict[str, object]]:
    texts = texts_in(plan)
    return [
        {"stage": "generate", "metric": None, "reason": "empty_text", "count": 3, "of": texts},
        {"stage": "score", "metric": "gender_polarity", "reason": "no_words", "count": 7, "of": texts},
    ]
