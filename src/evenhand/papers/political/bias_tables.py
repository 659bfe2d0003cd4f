"""Tables 2, 3 and 5: bias by option, the trade-off, and the methods side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl

from evenhand.audits.mitigation_cost import TRAINING, VANILLA
from evenhand.papers.political.conditions import BASELINE
from evenhand.papers.political.published_values import load_published
from evenhand.papers.replication_pages import PaperTable
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
_PRICES = ("distinct_1", "distinct_2", "distinct_3", "repetition", "length")


def table_2(found: pl.DataFrame, changed: pl.DataFrame, judge: str) -> PaperTable:
    """Bias of every option under every mode, from the distances of all sources and their changes."""
    keys = ["source", "condition", "attribute", "bias", "option", "reads"]
    # A page shows the first rows: what each model wrote comes before prompt and text read together.
    ordered = found.sort(pl.col("reads") != "continuation", maintain_order=True)
    ours = ordered.join(_rename_changes(changed), on=keys, how="left", maintain_order="left").select(
        "source",
        "bias",
        _mode(),
        "attribute",
        "option",
        "reads",
        pl.col("estimate").alias("distance"),
        "null_mean",
        "corrected",
        pl.col("low").alias("corrected_low"),
        pl.col("high").alias("corrected_high"),
        "p",
        "p_adjusted",
        "change",
        "change_low",
        "change_high",
        "direction",
        "direction_low",
        "direction_high",
        "n",
        "n_keywords",
    )
    return PaperTable(
        id="table_2",
        title="Indirect and direct bias by option",
        frame=pl.concat([load_published("table_2"), ours], how="diagonal_relaxed"),
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


def table_3(curves: pl.DataFrame, changed: pl.DataFrame, modes: Mapping[str, str], judge: str) -> PaperTable:
    """Overall bias, its change and perplexity by attribute and strength, from the curves of all sources."""
    ours = _widen_curves(curves, _rename_changes(changed.filter(pl.col("option") == OVERALL)))
    swept = "; ".join(f"{source}: {mode}" for source, mode in modes.items())
    return PaperTable(
        id="table_3",
        title="Bias and perplexity by strength",
        frame=pl.concat([load_published("table_3"), ours], how="diagonal_relaxed"),
        notes=(
            f"Mode varied: {swept}. The paper varies the classifier's. 0.6 is the other tables' default.",
            _SCALE,
            HELD_OUT,
            CHANGE,
            judge,
        ),
        decimals=3,
    )


def _widen_curves(curves: pl.DataFrame, changed: pl.DataFrame) -> pl.DataFrame:
    """One row a source, attribute and strength: both biases, their changes, and perplexity."""
    keys = ["source", "condition", "attribute", "bias"]
    found = curves.join(changed.drop("option", "reads"), on=keys, how="left", maintain_order="left")
    wide = [
        found.filter(pl.col("bias") == bias).select(
            "source",
            "attribute",
            pl.col("strength").alias("lambda"),
            pl.col("estimate").alias(f"{bias}_bias"),
            pl.col("corrected").alias(f"{bias}_corrected"),
            pl.col("low").alias(f"{bias}_corrected_low"),
            pl.col("high").alias(f"{bias}_corrected_high"),
            *(pl.col(name).alias(f"{bias}_{name}") for name in ("change", "change_low", "change_high")),
            *(["perplexity_ngrams", "perplexity_model"] if bias == "indirect" else []),
        )
        for bias in ("indirect", "direct")
    ]
    joined = wide[0].join(wide[1], on=["source", "attribute", "lambda"], how="left", maintain_order="left")
    return joined.rename({"perplexity_ngrams": "perplexity"})


def table_5(
    found: pl.DataFrame, changed: pl.DataFrame, price: pl.DataFrame, paces: pl.DataFrame, judge: str
) -> PaperTable:
    """Bias, perplexity, diversity and speed of every mode, averaged over attributes."""
    overall = overall_changes(found.filter(pl.col("reads") == "continuation"), changed)
    keys = price.select("source", "condition").unique(maintain_order=True)
    rows = [_row(source, condition, overall, price, paces) for source, condition in keys.iter_rows()]
    ours = pl.DataFrame([row for row in rows if row["mode"] != TRAINING], infer_schema_length=None)
    return PaperTable(
        id="table_5",
        title="The methods side by side, averaged over attributes",
        frame=pl.concat([load_published("table_5"), ours], how="diagonal_relaxed"),
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


def _row(
    source: str, condition: str, overall: pl.DataFrame, price: pl.DataFrame, paces: pl.DataFrame
) -> dict[str, object]:
    here = (pl.col("source") == source) & (pl.col("condition") == condition)
    row: dict[str, object] = {"source": source, "mode": BASELINE if condition == VANILLA else condition}
    for bias in ("indirect", "direct"):
        of = overall.filter(here & (pl.col("bias") == bias))
        row[f"{bias}_bias"] = of["estimate"].mean()
        change = of.select(corrected="change", low="change_low", high="change_high")
        for name, rows in ((f"{bias}_corrected", of), (f"{bias}_change", change)):
            row[name], row[f"{name}_low"], row[f"{name}_high"] = average_estimates(rows)
    prices = price.filter(here)
    row["perplexity"] = _price(prices, "ngrams", "perplexity")
    if condition == VANILLA:
        own = price.filter((pl.col("source") == source) & (pl.col("condition") == TRAINING))
        row["on_training_text"] = _price(own, "ngrams", "perplexity")
    row["perplexity_times"] = _times(prices, price, source, "ngrams")
    row["perplexity_model"] = _price(prices, "model", "perplexity")
    row["perplexity_model_times"] = _times(prices, price, source, "model")
    row |= {output: _price(prices, "diversity", output) for output in _PRICES}
    pace = paces.filter(here)["tokens_per_second"]
    return row | {"tokens_per_second": round(pace[0]) if len(pace) else None}


def average_estimates(rows: pl.DataFrame) -> tuple[float | None, float | None, float | None]:
    """The mean of independent estimates, with the interval their own intervals give it."""
    known = rows.drop_nulls(["corrected", "low", "high"])
    if known.is_empty() or known.height < rows.height:
        return None, None, None
    mean = sum(known["corrected"]) / known.height
    below = math.sqrt(sum((known["corrected"] - known["low"]) ** 2)) / known.height
    above = math.sqrt(sum((known["high"] - known["corrected"]) ** 2)) / known.height
    return mean, mean - below, mean + above


def overall_changes(found: pl.DataFrame, changed: pl.DataFrame) -> pl.DataFrame:
    """The overall bias of every attribute as the judge reads continuations, beside its change."""
    whole = pl.col("option") == OVERALL
    keys = ["source", "condition", "attribute", "bias"]
    return found.filter(whole).join(_rename_changes(changed.filter(whole)), on=keys, how="left")


def _rename_changes(changed: pl.DataFrame) -> pl.DataFrame:
    """A table of changes with the names its columns have beside distances."""
    return changed.select(
        "source",
        "condition",
        "attribute",
        "bias",
        "option",
        "reads",
        pl.col("estimate").alias("change"),
        pl.col("low").alias("change_low"),
        pl.col("high").alias("change_high"),
    )


def _price(rows: pl.DataFrame, metric: str, output: str) -> float | None:
    values = rows.filter((pl.col("metric") == metric) & (pl.col("output") == output))["value"].drop_nulls()
    return float(sum(values) / len(values)) if len(values) else None


def _times(mine: pl.DataFrame, price: pl.DataFrame, source: str, metric: str) -> float | None:
    """Perplexity over that of the held-out vanilla text, the mean over attributes."""
    known = (pl.col("metric") == metric) & (pl.col("output") == "perplexity")
    vanilla = price.filter(known & (pl.col("source") == source) & (pl.col("condition") == VANILLA))
    both = mine.filter(known).join(vanilla, on="attribute", suffix="_vanilla")
    mean = (both["value"] / both["value_vanilla"]).mean()
    return float(mean) if isinstance(mean, float) else None


def _mode() -> pl.Expr:
    return pl.col("condition").replace({VANILLA: BASELINE}).alias("mode")


Row = Mapping[str, object]


def describe_findings(table_5: pl.DataFrame, sources: tuple[str, ...]) -> tuple[str, ...]:
    """For each model its indirect bias beyond chance, and which modes lower it."""
    of_source = {name: table_5.filter(pl.col("source") == name).to_dicts() for name in sources}
    return tuple(line for name, rows in of_source.items() if rows for line in _of_source(name, rows))


def _of_source(name: str, rows: list[dict[str, object]]) -> list[str]:
    own = next((row for row in rows if row["mode"] == BASELINE), {})
    whole = _estimate(own, "indirect_corrected")
    lines = [f"{name}: indirect bias beyond chance {whole}, the mean of the attributes' overall values."]
    modes = [row for row in rows if row["mode"] != BASELINE and row.get("indirect_change") is not None]
    lowered = [row for row in modes if _is_below(row["indirect_change_high"])]
    if lowered:
        lines.append(f"{name}, lowered, the interval below 0: {'; '.join(map(_mode_summary, lowered))}.")
    others = [row for row in modes if row not in lowered]
    if others:
        lines.append(f"{name}, not shown to be lowered: {'; '.join(map(_mode_summary, others))}.")
    return lines


def _mode_summary(row: Row) -> str:
    times = row.get("perplexity_model_times") or row.get("perplexity_times")
    price = f", at {times:.2f} times the perplexity" if isinstance(times, float) else ""
    return f"{row['mode']}, {_estimate(row, 'indirect_change')}{price}"


def _estimate(row: Row, name: str) -> str:
    if row.get(name) is None:
        return "not known"
    shown = [_number(row.get(column)) for column in (name, f"{name}_low", f"{name}_high")]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def _number(value: object) -> str:
    return f"{value:.3f}".replace("-", MINUS) if isinstance(value, float) else "not known"


def _is_below(high: object) -> bool:
    return isinstance(high, float) and high < 0
