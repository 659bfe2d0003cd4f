"""Tables 2, 3 and 5 and those of options: bias by option, the trade-off, the methods side by side.

The paper prints no discount gamma. Its targets of divergence, sigma 0.02 and 0.05, are printed, but its texts
became 2.2 times as perplexing, which is more than such a target allows: tables ``gamma`` and ``sigma`` show
what other values do to bias and perplexity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from evenhand.audits.mitigation_sweep import TRAINING, VANILLA
from evenhand.papers.political.conditions import BASELINE, ModelConditions, OptionValue, list_option_values
from evenhand.papers.replication_pages import PaperTable, add_published
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
Row = dict[str, object]
_PRICES: Final = ("distinct_1", "distinct_2", "distinct_3", "repetition", "length")


def table_2(distances: pl.DataFrame, changes: pl.DataFrame, judge: str) -> PaperTable:
    """Bias of every option under every mode, from the distances of all sources and their changes."""
    # A page shows the first rows: what each model wrote comes before prompt and text read together.
    ordered = distances.sort(pl.col("reads") != "continuation", maintain_order=True)
    keys = [*_KEYS, "option", "reads"]
    ours = ordered.join(_select_changes(changes), on=keys, how="left", maintain_order="left").select(
        "source",
        "bias",
        pl.col("condition").replace({VANILLA: BASELINE}).alias("mode"),
        "attribute",
        "option",
        "reads",
        pl.col("estimate").alias("distance"),
        "null_mean",
        *estimate_columns("corrected", "corrected"),
        "p",
        "p_adjusted",
        *_CHANGE,
        "direction",
        "direction_low",
        "direction_high",
        "n",
        "n_keywords",
    )
    return PaperTable(
        id="table_2",
        title="Indirect and direct bias by option",
        frame=add_published("political", "table_2", ours),
        notes=(
            _SCALE,
            "corrected is the distance less its mean where keywords are dealt to options at random, with its "
            "interval, for which two or three keywords are too few; direction above 0 leans conservative. "
            "p adjusted is p corrected for the options of an attribute (Benjamini-Hochberg).",
            "Three printed overall values of topics are not the means of their cells: direct baseline 1.95 "
            "(1.395), indirect embedding 0.90 (0.96), direct embedding 0.38 (0.337).",
            CHANGE,
            judge,
        ),
        decimals=4,
    )


def table_3(curves: pl.DataFrame, changes: pl.DataFrame, modes: Mapping[str, str], judge: str) -> PaperTable:
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
    return PaperTable(
        id="table_3",
        title="Bias and perplexity by strength",
        frame=add_published(
            "political",
            "table_3",
            indirect.join(direct, on=["source", "attribute", "lambda"], how="left", maintain_order="left"),
        ),
        notes=(
            f"Mode varied: {swept}. The paper varies the classifier's. 0.6 is the other tables' default.",
            _SCALE,
            HELD_OUT,
            CHANGE,
            judge,
        ),
        decimals=3,
    )


def table_5(
    distances: pl.DataFrame, changes: pl.DataFrame, price: pl.DataFrame, paces: pl.DataFrame, judge: str
) -> PaperTable:
    """Bias, perplexity, diversity and speed of every mode, averaged over attributes."""
    overall = overall_changes(distances.filter(pl.col("reads") == "continuation"), changes)
    keys = price.select("source", "condition").unique(maintain_order=True)
    rows = [
        _row(source, condition, overall, price, paces)
        for source, condition in keys.iter_rows()
        if condition != TRAINING
    ]
    return PaperTable(
        id="table_5",
        title="The methods side by side, averaged over attributes",
        frame=add_published("political", "table_5", pl.DataFrame(rows, infer_schema_length=None)),
        notes=(
            _SCALE,
            HELD_OUT,
            "times is a perplexity over that of the held-out vanilla text, the mean over attributes. "
            "Distinct-n, repetition and length are those of the held-out half. Speed is one batch of 32, "
            "after one to warm up.",
            CHANGE,
            judge,
        ),
        decimals=3,
    )


def _row(source: str, condition: str, overall: pl.DataFrame, price: pl.DataFrame, paces: pl.DataFrame) -> Row:
    here = (pl.col("source") == source) & (pl.col("condition") == condition)
    row: Row = {"source": source, "mode": BASELINE if condition == VANILLA else condition}
    for bias in ("indirect", "direct"):
        of = overall.filter(here & (pl.col("bias") == bias))
        row[f"{bias}_bias"] = of["estimate"].mean()
        row |= average_columns(of, f"{bias}_corrected", f"{bias}_change")
    prices, of_source = price.filter(here), price.filter(pl.col("source") == source)
    row["perplexity"] = _mean_price(prices, "ngrams", "perplexity")
    if condition == VANILLA:
        training = of_source.filter(pl.col("condition") == TRAINING)
        row["on_training_text"] = _mean_price(training, "ngrams", "perplexity")
    vanilla = of_source.filter(pl.col("condition") == VANILLA)
    row["perplexity_times"] = _mean_ratio(prices, vanilla, "ngrams")
    row["perplexity_model"] = _mean_price(prices, "model", "perplexity")
    row["perplexity_model_times"] = _mean_ratio(prices, vanilla, "model")
    row |= {output: _mean_price(prices, "diversity", output) for output in _PRICES}
    pace = paces.filter(here)["tokens_per_second"]
    return row | {"tokens_per_second": round(pace[0]) if len(pace) else None}


def option_table(
    option: str,
    of_source: Mapping[str, ModelConditions],
    distances: pl.DataFrame,
    changes: pl.DataFrame,
    price: pl.DataFrame,
    judge: str,
) -> PaperTable:
    """Overall indirect bias, its change and perplexity, by the value of ``gamma`` or ``sigma``."""
    whole = overall_changes(distances, changes).filter(pl.col("bias") == "indirect")
    rows = [
        row
        for source, modes in of_source.items()
        for one in list_option_values(option, modes)
        for row in _option_rows(option, source, one, whole, price)
    ]
    notes = (
        f"Indirect bias. {MEAN} is the mean over attributes, with the interval of independent estimates.",
        *(_STEPS if option == "sigma" else ()),
        HELD_OUT,
        CHANGE,
        judge,
    )
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return PaperTable(id=option, title=_TITLES[option], frame=frame, notes=notes, decimals=3)


def _option_rows(
    option: str, source: str, one: OptionValue, whole: pl.DataFrame, price: pl.DataFrame
) -> list[Row]:
    here = (pl.col("source") == source) & (pl.col("condition") == one.condition)
    of, paid = whole.filter(here).sort("attribute"), price.filter(here & (pl.col("output") == "perplexity"))
    rows = []
    for attribute in (*of["attribute"], MEAN):
        mine = pl.lit(True) if attribute == MEAN else pl.col("attribute") == attribute
        row: Row = {"source": source, "mode": one.mode, option: one.value, "attribute": attribute}
        row |= average_columns(of.filter(mine), "corrected", "change")
        for metric, column in (("ngrams", "perplexity"), ("model", "perplexity_model")):
            row[column] = paid.filter(mine & (pl.col("metric") == metric))["value"].mean()
        rows.append(row)
    return rows


def average_columns(rows: pl.DataFrame, corrected: str, change: str) -> Row:
    """The mean corrected bias and the mean change of several rows, each with its interval."""
    changes = rows.select(corrected="change", low="change_low", high="change_high")
    row: Row = {}
    for name, table in ((corrected, rows), (change, changes)):
        row[name], row[f"{name}_low"], row[f"{name}_high"] = average_estimates(table)
    return row


def average_estimates(rows: pl.DataFrame) -> tuple[float | None, float | None, float | None]:
    """The mean of independent estimates, with the interval their own intervals give it."""
    known = rows.drop_nulls(["corrected", "low", "high"])
    if known.is_empty() or known.height < rows.height:
        return None, None, None
    mean = sum(known["corrected"]) / known.height
    below = math.sqrt(sum((known["corrected"] - known["low"]) ** 2)) / known.height
    above = math.sqrt(sum((known["high"] - known["corrected"]) ** 2)) / known.height
    return mean, mean - below, mean + above


def overall_changes(distances: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """The overall bias of every attribute as the judge reads continuations, beside its change."""
    whole = pl.col("option") == OVERALL
    return distances.filter(whole).join(_select_changes(changes.filter(whole)), on=_KEYS, how="left")


def estimate_columns(name: str, value: str = "estimate") -> list[pl.Expr]:
    """An estimate and its interval as ``name``, ``name_low`` and ``name_high``."""
    return [pl.col(value).alias(name), *(pl.col(end).alias(f"{name}_{end}") for end in ("low", "high"))]


def _select_changes(changes: pl.DataFrame) -> pl.DataFrame:
    """A table of changes with the names its columns have beside distances."""
    return changes.select(*_KEYS, "option", "reads", *estimate_columns("change"))


def _mean_price(rows: pl.DataFrame, metric: str, output: str) -> float | None:
    values = rows.filter((pl.col("metric") == metric) & (pl.col("output") == output))["value"].drop_nulls()
    return float(sum(values) / len(values)) if len(values) else None


def _mean_ratio(mine: pl.DataFrame, vanilla: pl.DataFrame, metric: str) -> float | None:
    """Perplexity over that of the held-out vanilla text, the mean over attributes."""
    known = (pl.col("metric") == metric) & (pl.col("output") == "perplexity")
    both = mine.filter(known).join(vanilla.filter(known), on="attribute", suffix="_vanilla")
    mean = (both["value"] / both["value_vanilla"]).mean()
    return float(mean) if isinstance(mean, float) else None


def describe_findings(table_5: pl.DataFrame, sources: Sequence[str]) -> tuple[str, ...]:
    """For each model its indirect bias beyond chance, and which modes lower it."""
    lines: list[str] = []
    for name in sources:
        rows = table_5.filter(pl.col("source") == name).to_dicts()
        if not rows:
            continue
        own = next((row for row in rows if row["mode"] == BASELINE), {})
        whole = _format_estimate(own, "indirect_corrected")
        lines.append(
            f"{name}: indirect bias beyond chance {whole}, the mean of the attributes' overall values."
        )
        modes = [row for row in rows if row["mode"] != BASELINE and row.get("indirect_change") is not None]
        lowered = [row for row in modes if (row["indirect_change_high"] or 0) < 0]
        others = [row for row in modes if row not in lowered]
        for words, some in (("lowered, the interval below 0", lowered), ("not shown to be lowered", others)):
            if some:
                lines.append(f"{name}, {words}: {'; '.join(map(_describe_mode, some))}.")
    return tuple(lines)


def _describe_mode(row: Mapping[str, Any]) -> str:
    times = row.get("perplexity_model_times") or row.get("perplexity_times")
    price = f", at {times:.2f} times the perplexity" if times else ""
    return f"{row['mode']}, {_format_estimate(row, 'indirect_change')}{price}"


def _format_estimate(row: Mapping[str, Any], name: str) -> str:
    if row.get(name) is None:
        return "not known"
    values = (row.get(column) for column in (name, f"{name}_low", f"{name}_high"))
    words = ["not known" if value is None else f"{value:.3f}".replace("-", MINUS) for value in values]
    return f"{words[0]} ({words[1]} to {words[2]})"
