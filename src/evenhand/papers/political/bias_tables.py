"""Tables 2, 3 and 5 and those of options: bias by option, the trade-off, the methods side by side.

The paper prints no discount gamma. Its targets of divergence, sigma 0.02 and 0.05, are printed, but its texts
became 2.2 times as perplexing, which is more than such a target allows: tables ``gamma`` and ``sigma`` show
what other values do to bias and perplexity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from evenhand.audits.mitigation_sweep import TRAINING, VANILLA
from evenhand.papers.political.conditions import BASELINE, ModelConditions, list_option_values
from evenhand.papers.replication_pages import Exhibit, build_table
from evenhand.report.wording import MINUS
from evenhand.stats.base_rates import OVERALL

_SCALE = (
    "The paper's values exceed 1, which an exact distance between samples of probabilities cannot: its scale "
    "is not known. Compare changes, not levels. Ours are in probability units."
)
JUDGE = "The judge is the metric ideology. It never is the classifier that steers."
CHANGE = (
    "change is the corrected bias less the baseline's, with its interval: the same keywords are resampled "
    "under both. A mode lowers a bias where that interval lies below 0."
)
HELD_OUT = (
    "n-gram models are trained on one half of the vanilla texts; perplexities are those of the other half's "
    "prompts and samples. Perplexity on training text is the paper's way, which flatters the vanilla text."
)
MEAN: Final = "(mean)"
"""The attribute of a row that averages over attributes."""
_TITLES: Final = {
    "gamma": "Bias and perplexity by the discount of earlier tokens",
    "sigma": "Bias and perplexity by the divergence a token aims at",
}
_STEPS: Final = (
    "Adam's rate grows with the root of sigma, so that as many steps reach it. The paper's sigma is 0.02 for "
    "embedding and 0.05 for classifier.",
)
_KEYS: Final = ("source", "condition", "attribute", "bias")
_CHANGE: Final = ("change", "change_low", "change_high")
_PERPLEXITIES: Final = {"perplexity": ("ngrams", "perplexity"), "perplexity_model": ("model", "perplexity")}
_PRICES: Final = _PERPLEXITIES | {
    output: ("diversity", output)
    for output in ("distinct_1", "distinct_2", "distinct_3", "repetition", "length")
}
"""Column of Table 5 to the metric and output of a price."""


def table_2(distances: pl.DataFrame, changes: pl.DataFrame, judge: str) -> Exhibit:
    """Bias of every option under every mode, from the distances of all sources and their changes."""
    # A page shows the first rows: what each model wrote comes before prompt and text read together.
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
        "corrected is the distance less its mean where keywords are dealt to options at random, with its "
        "interval, for which two or three keywords are too few; direction above 0 leans conservative. "
        "p adjusted is p corrected for the options of an attribute (Benjamini-Hochberg).",
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
        f"Mode varied: {swept}. The paper varies the classifier's. 0.6 is the other tables' default.",
        _SCALE,
        HELD_OUT,
        CHANGE,
        judge,
        decimals=3,
    )


def table_5(
    distances: pl.DataFrame, changes: pl.DataFrame, price: pl.DataFrame, paces: pl.DataFrame, judge: str
) -> Exhibit:
    """Bias, perplexity, diversity and speed of every mode, averaged over attributes."""
    overall = overall_changes(distances.filter(pl.col("reads") == "continuation"), changes)
    keys, prices = ["source", "condition"], _average_prices(price)
    table = prices.filter(pl.col("condition") != TRAINING).select(keys)
    for bias in ("indirect", "direct"):
        of = overall.filter(pl.col("bias") == bias).group_by(keys)
        means = of.agg(
            pl.col("estimate").mean().alias(f"{bias}_bias"),
            *average_columns("corrected", f"{bias}_corrected"),
            *average_columns("change", f"{bias}_change"),
        )
        table = table.join(means, on=keys, how="left", maintain_order="left")
    training = prices.filter(pl.col("condition") == TRAINING).select(
        "source", pl.lit(VANILLA).alias("condition"), pl.col("perplexity").alias("on_training_text")
    )
    paces = paces.with_columns(pl.col("tokens_per_second").round().cast(pl.Int64))
    for columns in (training, prices, paces):
        table = table.join(columns, on=keys, how="left", maintain_order="left")
    ours = table.select(
        "source",
        pl.col("condition").replace({VANILLA: BASELINE}).alias("mode"),
        pl.selectors.matches("^(in)?direct_"),
        *("perplexity", "on_training_text", "perplexity_times", "perplexity_model", "perplexity_model_times"),
        *(name for name in _PRICES if name not in _PERPLEXITIES),
        "tokens_per_second",
    )
    return build_table(
        "political",
        "table_5",
        "The methods side by side, averaged over attributes",
        ours,
        _SCALE,
        HELD_OUT,
        "times is a perplexity over that of the held-out vanilla text, the mean over attributes. "
        "Distinct-n, repetition and length are those of the held-out half. Speed is one batch of 32, "
        "after one to warm up.",
        CHANGE,
        judge,
        decimals=3,
    )


def _average_prices(price: pl.DataFrame) -> pl.DataFrame:
    """The prices of every condition, and what its perplexities are to those of vanilla, over attributes."""
    prices = _spread_prices(price)
    vanilla = prices.filter(pl.col("condition") == VANILLA)
    both = prices.join(
        vanilla, on=["source", "attribute"], how="left", suffix="_vanilla", maintain_order="left"
    )
    times = [(pl.col(name) / pl.col(f"{name}_vanilla")).alias(f"{name}_times") for name in _PERPLEXITIES]
    of = both.with_columns(times).group_by("source", "condition", maintain_order=True)
    return of.agg(pl.col(*_PRICES, *(f"{name}_times" for name in _PERPLEXITIES)).mean())


def _spread_prices(price: pl.DataFrame) -> pl.DataFrame:
    """A row for every source, condition and attribute, with a column for every price."""
    cells = [
        pl.col("value").filter(pl.col("metric") == metric, pl.col("output") == output).mean().alias(name)
        for name, (metric, output) in _PRICES.items()
    ]
    return price.group_by("source", "condition", "attribute", maintain_order=True).agg(cells)


def option_table(
    option: str,
    of_source: Mapping[str, ModelConditions],
    distances: pl.DataFrame,
    changes: pl.DataFrame,
    price: pl.DataFrame,
    judge: str,
) -> Exhibit:
    """Overall indirect bias, its change and perplexity, by the value of ``gamma`` or ``sigma``."""
    keys = ["source", "condition", "attribute"]
    bias = overall_changes(distances, changes).filter(pl.col("bias") == "indirect").sort("attribute")
    priced = bias.join(_spread_prices(price), on=keys, how="left", maintain_order="left")
    rows = pl.concat([priced, priced.with_columns(attribute=pl.lit(MEAN))])
    means = rows.group_by(keys, maintain_order=True).agg(
        *average_columns("corrected"), *average_columns("change"), pl.col(*_PERPLEXITIES).mean()
    )
    values = pl.DataFrame(
        [(source, *one) for source, modes in of_source.items() for one in list_option_values(option, modes)],
        schema=["source", "mode", option, "condition"],
        orient="row",
    )
    table = values.join(means, on=["source", "condition"], maintain_order="left_right").drop("condition")
    notes = (
        f"Indirect bias. {MEAN} is the mean over attributes, with the interval of independent estimates.",
        *(_STEPS if option == "sigma" else ()),
        HELD_OUT,
        CHANGE,
        judge,
    )
    return Exhibit(id=option, title=_TITLES[option], frame=table, notes=notes, decimals=3)


def average_columns(value: str, name: str = "") -> list[pl.Expr]:
    """The mean of independent estimates as ``name``, with the interval their own intervals give it.

    It is not known where one of them has no interval.
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
    """The overall bias of every attribute as the judge reads continuations, beside its change."""
    whole = pl.col("option") == OVERALL
    overall = distances.filter(whole).rename({"low": "corrected_low", "high": "corrected_high"})
    return overall.join(_select_changes(changes.filter(whole)), on=_KEYS, how="left", maintain_order="left")


def estimate_columns(name: str, value: str = "estimate") -> list[pl.Expr]:
    """An estimate and its interval as ``name``, ``name_low`` and ``name_high``."""
    return [pl.col(value).alias(name), *(pl.col(end).alias(f"{name}_{end}") for end in ("low", "high"))]


def _select_changes(changes: pl.DataFrame) -> pl.DataFrame:
    """A table of changes with the names its columns have beside distances."""
    return changes.select(*_KEYS, "option", "reads", *estimate_columns("change"))


def describe_findings(table_5: pl.DataFrame, sources: Sequence[str]) -> tuple[str, ...]:
    """For each model its indirect bias beyond chance, and which modes lower it."""
    lines: list[str] = []
    for name in sources:
        own, *modes = table_5.filter(pl.col("source") == name).to_dicts() or [{}]
        if not own:
            continue
        whole = _format_estimate(own, "indirect_corrected")
        lines.append(
            f"{name}: indirect bias beyond chance {whole}, the mean of the attributes' overall values."
        )
        known = [row for row in modes if row["indirect_change"] is not None]
        lowered = [row for row in known if (row["indirect_change_high"] or 0) < 0]
        others = [row for row in known if row not in lowered]
        for words, some in (("lowered, the interval below 0", lowered), ("not shown to be lowered", others)):
            if some:
                lines.append(f"{name}, {words}: {'; '.join(map(_describe_mode, some))}.")
    return tuple(lines)


def _describe_mode(row: Mapping[str, Any]) -> str:
    times = row["perplexity_model_times"] or row["perplexity_times"]
    price = f", at {times:.2f} times the perplexity" if times else ""
    return f"{row['mode']}, {_format_estimate(row, 'indirect_change')}{price}"


def _format_estimate(row: Mapping[str, Any], name: str) -> str:
    if row[name] is None:
        return "not known"
    words = [
        "not known" if value is None else f"{value:.3f}".replace("-", MINUS)
        for value in (row[column] for column in (name, f"{name}_low", f"{name}_high"))
    ]
    return f"{words[0]} ({words[1]} to {words[2]})"
