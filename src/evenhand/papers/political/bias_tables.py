"""Tables 2, 3 and 5 and the option tables: bias by option, the trade-off, a comparison of methods.

The paper does not state the discount gamma. It states its target divergences, sigma 0.02 and 0.05, but its
perplexity rose by a factor of 2.2, which is more than such targets allow: the tables ``gamma`` and ``sigma``
show bias and perplexity at other values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from evenhand.audits.tradeoff import TRAINING, VANILLA
from evenhand.papers.political.conditions import BASELINE, ModelConditions, list_option_values
from evenhand.papers.replication_pages import Exhibit, build_table
from evenhand.report.wording import MINUS
from evenhand.stats.base_rates import OVERALL

_SCALE = (
    "The paper's values exceed 1, which an exact distance between samples of probabilities cannot: its scale "
    "is unknown. Compare changes, not levels. Ours are in probability units."
)
JUDGE = "The judge is the metric ideology. It is never the steering classifier."
CHANGE = (
    "change is the corrected bias minus the baseline's, with its interval: the same keywords are resampled "
    "for both. A mode lowers a bias if that interval is below 0."
)
HELD_OUT = (
    "n-gram models are trained on one half of the vanilla texts; perplexities are measured on the prompts "
    "and samples of the other half. The paper uses perplexity on training text; this favours vanilla."
)
MEAN: Final = "(mean)"
"""The attribute of a row that averages over attributes."""
_TITLES: Final = {
    "gamma": "Bias and perplexity by the discount of earlier tokens",
    "sigma": "Bias and perplexity by the target divergence per token",
}
_STEPS: Final = (
    "Adam's learning rate grows with the root of sigma, so the same number of steps reaches it. The paper's "
    "sigma is 0.02 for embedding and 0.05 for classifier.",
)
_KEYS: Final = ("source", "condition", "attribute", "bias")
_CHANGE: Final = ("change", "change_low", "change_high")
_PERPLEXITIES: Final = {"perplexity": ("ngrams", "perplexity"), "perplexity_model": ("model", "perplexity")}
_COSTS: Final = _PERPLEXITIES | {
    output: ("diversity", output)
    for output in ("distinct_1", "distinct_2", "distinct_3", "repetition", "length")
}
"""Column of Table 5 to the metric and output of a cost."""


def table_2(distances: pl.DataFrame, changes: pl.DataFrame, judge: str) -> Exhibit:
    """Bias of each option under each mode, from the distances of all sources and their changes."""
    # A page shows only the first rows: continuations come before prompt and text read together.
    ordered = distances.sort(pl.col("reads") != "continuation", maintain_order=True)
    keys = [*_KEYS, "option", "reads"]
    ours = ordered.join(_select_changes(changes), on=keys, how="left", maintain_order="left").select(
        "source",
        "bias",
        pl.col("condition").replace({VANILLA: BASELINE}).alias("mode"),
        *("attribute", "option", "reads"),
        pl.col("estimate").alias("distance"),
        "null_mean",
        *estimate_columns("corrected", "corrected"),
        *("p", "p_adjusted", *_CHANGE),
        *("direction", "direction_low", "direction_high", "n", "n_keywords"),
    )
    return build_table(
        "political",
        "table_2",
        "Indirect and direct bias by option",
        ours,
        _SCALE,
        "corrected is the distance minus its mean when keywords are assigned to options at random, with "
        "its interval (none for two or three keywords); direction above 0 leans conservative. p adjusted "
        "is p corrected over the options of an attribute (Benjamini-Hochberg).",
        "Three printed overall values of topics are not the means of their cells: direct baseline 1.95 "
        "(1.395), indirect embedding 0.90 (0.96), direct embedding 0.38 (0.337).",
        CHANGE,
        judge,
        decimals=4,
    )


def table_3(curves: pl.DataFrame, changes: pl.DataFrame, modes: Mapping[str, str], judge: str) -> Exhibit:
    """Overall bias, its change and perplexity by attribute and strength, from the curves of all sources."""
    overall = _select_changes(changes.filter(pl.col("option") == OVERALL)).drop("option", "reads")
    table = curves.join(overall, on=_KEYS, how="left", maintain_order="left")
    indirect, direct = (
        table.filter(pl.col("bias") == bias).select(
            "source",
            "attribute",
            pl.col("strength").alias("lambda"),
            pl.col("estimate").alias(f"{bias}_bias"),
            *estimate_columns(f"{bias}_corrected", "corrected"),
            *(pl.col(name).alias(f"{bias}_{name}") for name in _CHANGE),
            *perplexities,
        )
        for bias, perplexities in (
            ("indirect", (pl.col("perplexity_ngrams").alias("perplexity"), pl.col("perplexity_model"))),
            ("direct", ()),
        )
    )
    swept = "; ".join(f"{source}: {mode}" for source, mode in modes.items())
    return build_table(
        "political",
        "table_3",
        "Bias and perplexity by strength",
        indirect.join(direct, on=["source", "attribute", "lambda"], how="left", maintain_order="left"),
        f"Swept mode: {swept}. The paper sweeps the classifier. The other tables use 0.6, the default.",
        _SCALE,
        HELD_OUT,
        CHANGE,
        judge,
        decimals=3,
    )


def table_5(
    distances: pl.DataFrame, changes: pl.DataFrame, cost_rows: pl.DataFrame, speeds: pl.DataFrame, judge: str
) -> Exhibit:
    """Bias, perplexity, diversity and speed of each mode, averaged over attributes."""
    overall = overall_changes(distances.filter(pl.col("reads") == "continuation"), changes)
    keys, costs = ["source", "condition"], _average_costs(cost_rows)
    table = costs.filter(pl.col("condition") != TRAINING).select(keys)
    for bias in ("indirect", "direct"):
        groups = overall.filter(pl.col("bias") == bias).group_by(keys)
        means = groups.agg(
            pl.col("estimate").mean().alias(f"{bias}_bias"),
            *average_columns("corrected", f"{bias}_corrected"),
            *average_columns("change", f"{bias}_change"),
        )
        table = table.join(means, on=keys, how="left", maintain_order="left")
    training = costs.filter(pl.col("condition") == TRAINING).select(
        "source", pl.lit(VANILLA).alias("condition"), pl.col("perplexity").alias("on_training_text")
    )
    speeds = speeds.with_columns(pl.col("tokens_per_second").round().cast(pl.Int64))
    for columns in (training, costs, speeds):
        table = table.join(columns, on=keys, how="left", maintain_order="left")
    ours = table.select(
        "source",
        pl.col("condition").replace({VANILLA: BASELINE}).alias("mode"),
        pl.selectors.matches("^(in)?direct_"),
        *("perplexity", "on_training_text", "perplexity_times", "perplexity_model", "perplexity_model_times"),
        *(name for name in _COSTS if name not in _PERPLEXITIES),
        "tokens_per_second",
    )
    return build_table(
        "political",
        "table_5",
        "A comparison of methods, averaged over attributes",
        ours,
        _SCALE,
        HELD_OUT,
        "times is a perplexity divided by that of the held-out vanilla text, averaged over attributes. "
        "Distinct-n, repetition and length are for the held-out half. Speed is for one batch of 32, "
        "after a warm-up batch.",
        CHANGE,
        judge,
        decimals=3,
    )


def _average_costs(cost_rows: pl.DataFrame) -> pl.DataFrame:
    """The costs of each condition and its perplexities relative to vanilla, averaged over attributes."""
    costs = _pivot_costs(cost_rows)
    vanilla = costs.filter(pl.col("condition") == VANILLA)
    both = costs.join(
        vanilla, on=["source", "attribute"], how="left", suffix="_vanilla", maintain_order="left"
    )
    times = [(pl.col(name) / pl.col(f"{name}_vanilla")).alias(f"{name}_times") for name in _PERPLEXITIES]
    groups = both.with_columns(times).group_by("source", "condition", maintain_order=True)
    return groups.agg(pl.col(*_COSTS, *(f"{name}_times" for name in _PERPLEXITIES)).mean())


def _pivot_costs(cost_rows: pl.DataFrame) -> pl.DataFrame:
    """One row per source, condition and attribute, with one column per cost."""
    cells = [
        pl.col("value").filter(pl.col("metric") == metric, pl.col("output") == output).mean().alias(name)
        for name, (metric, output) in _COSTS.items()
    ]
    return cost_rows.group_by("source", "condition", "attribute", maintain_order=True).agg(cells)


def option_table(
    option: str,
    sources: Mapping[str, ModelConditions],
    distances: pl.DataFrame,
    changes: pl.DataFrame,
    cost_rows: pl.DataFrame,
    judge: str,
) -> Exhibit:
    """Overall indirect bias, its change and perplexity, by the value of ``gamma`` or ``sigma``."""
    keys = ["source", "condition", "attribute"]
    bias = overall_changes(distances, changes).filter(pl.col("bias") == "indirect").sort("attribute")
    with_costs = bias.join(_pivot_costs(cost_rows), on=keys, how="left", maintain_order="left")
    rows = pl.concat([with_costs, with_costs.with_columns(attribute=pl.lit(MEAN))])
    means = rows.group_by(keys, maintain_order=True).agg(
        *average_columns("corrected"), *average_columns("change"), pl.col(*_PERPLEXITIES).mean()
    )
    values = pl.DataFrame(
        [(source, *one) for source, modes in sources.items() for one in list_option_values(option, modes)],
        schema=["source", "mode", option, "condition"],
        orient="row",
    )
    table = values.join(means, on=["source", "condition"], maintain_order="left_right").drop("condition")
    notes = (
        f"Indirect bias. {MEAN} is the mean over attributes, with an interval for independent estimates.",
        *(_STEPS if option == "sigma" else ()),
        HELD_OUT,
        CHANGE,
        judge,
    )
    return Exhibit(id=option, title=_TITLES[option], frame=table, notes=notes, decimals=3)


def average_columns(value: str, name: str = "") -> list[pl.Expr]:
    """The mean of independent estimates as ``name``, with an interval derived from their intervals.

    It is null if one of them has no interval.
    """
    estimates, low, high = (pl.col(f"{value}{end}") for end in ("", "_low", "_high"))
    is_known = pl.all_horizontal(column.is_not_null().all() for column in (estimates, low, high))
    mean, count = estimates.mean(), pl.len()
    below, above = (((estimates - end) ** 2).sum().sqrt() / count for end in (low, high))
    return [
        pl.when(is_known).then(number).alias(f"{name or value}{end}")
        for end, number in (("", mean), ("_low", mean - below), ("_high", mean + above))
    ]


def overall_changes(distances: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """The overall bias of each attribute, from continuations, with its change."""
    is_all = pl.col("option") == OVERALL
    overall = distances.filter(is_all).rename({"low": "corrected_low", "high": "corrected_high"})
    return overall.join(_select_changes(changes.filter(is_all)), on=_KEYS, how="left", maintain_order="left")


def estimate_columns(name: str, value: str = "estimate") -> list[pl.Expr]:
    """An estimate and its interval as ``name``, ``name_low`` and ``name_high``."""
    return [pl.col(value).alias(name), *(pl.col(end).alias(f"{name}_{end}") for end in ("low", "high"))]


def _select_changes(changes: pl.DataFrame) -> pl.DataFrame:
    """A table of changes, with its columns renamed for joining with distances."""
    return changes.select(*_KEYS, "option", "reads", *estimate_columns("change"))


def describe_findings(table_5: pl.DataFrame, sources: Sequence[str]) -> tuple[str, ...]:
    """For each model its indirect bias beyond chance, and the modes that lower it."""
    lines: list[str] = []
    for name in sources:
        own, *modes = table_5.filter(pl.col("source") == name).to_dicts() or [{}]
        if not own:
            continue
        bias = _format_estimate(own, "indirect_corrected")
        lines.append(
            f"{name}: indirect bias beyond chance {bias}, the mean of the attributes' overall values."
        )
        known = [row for row in modes if row["indirect_change"] is not None]
        lowered = [row for row in known if (row["indirect_change_high"] or 0) < 0]
        others = [row for row in known if row not in lowered]
        for label, rows in (("lowered, the interval below 0", lowered), ("not shown to be lowered", others)):
            if rows:
                lines.append(f"{name}, {label}: {'; '.join(map(_describe_mode, rows))}.")
    return tuple(lines)


def _describe_mode(row: Mapping[str, Any]) -> str:
    times = row["perplexity_model_times"] or row["perplexity_times"]
    cost = f", at {times:.2f} times the perplexity" if times else ""
    return f"{row['mode']}, {_format_estimate(row, 'indirect_change')}{cost}"


def _format_estimate(row: Mapping[str, Any], name: str) -> str:
    if row[name] is None:
        return "unknown"
    numbers = [
        "unknown" if value is None else f"{value:.3f}".replace("-", MINUS)
        for value in (row[column] for column in (name, f"{name}_low", f"{name}_high"))
    ]
    return f"{numbers[0]} ({numbers[1]} to {numbers[2]})"
