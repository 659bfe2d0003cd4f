"""Tables 2, 3, 5 and 6 and the option tables: bias by option, the trade-off, methods, readers' ratings.

The paper does not state the discount gamma. It states its target divergences, sigma 0.02 and 0.05, but its
perplexity rose by a factor of 2.2, which is more than such targets allow: the tables ``gamma`` and ``sigma``
show bias and perplexity at other values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from evenhand.annotate.label_set import read_label_set
from evenhand.audits.tradeoff import TRAINING, VANILLA
from evenhand.core.errors import InputError
from evenhand.papers.political.conditions import BASELINE, OptionValue
from evenhand.papers.replication_pages import Exhibit, build_table, estimate_cells, estimate_columns
from evenhand.report.wording import MINUS
from evenhand.stats.base_rates import OVERALL
from evenhand.stats.hypothesis_tests import compare_methods
from evenhand.store.table_files import read_table

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


def join_changes(distances: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """Distances with the changes of their corrected bias; every interval has its estimate's name."""
    keys = [*_KEYS, "option", "reads"]
    renamed = distances.rename({"low": "corrected_low", "high": "corrected_high"})
    own_changes = changes.select(*keys, *estimate_columns("change"))
    return renamed.join(own_changes, on=keys, how="left", maintain_order="left")


def table_2(biases: pl.DataFrame) -> Exhibit:
    """Bias of each option under each mode, from the distances and changes of all sources."""
    # A page shows only the first rows: continuations come before prompt and text read together.
    ours = biases.sort(pl.col("reads") != "continuation", maintain_order=True).select(
        "source",
        "bias",
        pl.col("condition").replace({VANILLA: BASELINE}).alias("mode"),
        *("attribute", "option", "reads"),
        pl.col("estimate").alias("distance"),
        *("null_mean", "corrected", "corrected_low", "corrected_high", "p", "p_adjusted", *_CHANGE),
        *("direction", "direction_low", "direction_high", "n", "n_keywords"),
    )
    notes = (
        _SCALE,
        "corrected is the distance minus its mean when keywords are assigned to options at random, with "
        "its interval (none for two or three keywords); direction above 0 leans conservative. p adjusted "
        "is p corrected over the options of an attribute (Benjamini-Hochberg).",
        "Three printed overall values of topics are not the means of their cells: direct baseline 1.95 "
        "(1.395), indirect embedding 0.90 (0.96), direct embedding 0.38 (0.337).",
    )
    title = "Indirect and direct bias by option"
    return build_table("political", "table_2", title, ours, notes, decimals=4)


def table_3(curves: pl.DataFrame, biases: pl.DataFrame, modes: Mapping[str, str]) -> Exhibit:
    """Overall bias, its change and perplexity by attribute and strength, from the curves of all sources."""
    overall = select_overall(biases).select(*_KEYS, *_CHANGE)
    table = curves.join(overall, on=_KEYS, how="left", maintain_order="left")
    keys, rows = ["source", "attribute", "lambda"], table.rename({"strength": "lambda"})
    indirect, direct = (
        rows.filter(bias=bias).select(
            *keys,
            pl.col("estimate").alias(f"{bias}_bias"),
            *estimate_columns(f"{bias}_corrected", "corrected"),
            *(pl.col(name).alias(f"{bias}_{name}") for name in _CHANGE),
            perplexity="perplexity_ngrams",
            perplexity_model="perplexity_model",
        )
        for bias in ("indirect", "direct")
    )
    direct = direct.drop("perplexity", "perplexity_model")
    swept = "; ".join(f"{source}: {mode}" for source, mode in modes.items())
    note = f"Swept mode: {swept}. The paper sweeps the classifier. The other tables use 0.6, the default."
    ours = indirect.join(direct, on=keys, how="left", maintain_order="left")
    title = "Bias and perplexity by strength"
    return build_table("political", "table_3", title, ours, (note, _SCALE, HELD_OUT), decimals=3)


def table_5(biases: pl.DataFrame, cost_rows: pl.DataFrame, speeds: pl.DataFrame) -> Exhibit:
    """Bias, perplexity, diversity and speed of each mode, averaged over attributes."""
    overall = select_overall(biases)
    keys, costs = ["source", "condition"], _average_costs(cost_rows)
    table = costs.filter(pl.col("condition") != TRAINING).select(keys)
    for bias in ("indirect", "direct"):
        groups = overall.filter(bias=bias).group_by(keys)
        means = groups.agg(
            pl.col("estimate").mean().alias(f"{bias}_bias"),
            *average_columns("corrected", f"{bias}_corrected"),
            *average_columns("change", f"{bias}_change"),
        )
        table = table.join(means, on=keys, how="left", maintain_order="left")
    training = costs.filter(condition=TRAINING).select(
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
    notes = (
        _SCALE,
        HELD_OUT,
        "times is a perplexity divided by that of the held-out vanilla text, averaged over attributes. "
        "Distinct-n, repetition and length are for the held-out half. Speed is for one batch of 32, "
        "after a warm-up batch.",
    )
    title = "A comparison of methods, averaged over attributes"
    return build_table("political", "table_5", title, ours, notes, decimals=3)


def _average_costs(cost_rows: pl.DataFrame) -> pl.DataFrame:
    """The costs of each condition and its perplexities relative to vanilla, averaged over attributes."""
    costs = _pivot_costs(cost_rows)
    vanilla = costs.filter(condition=VANILLA)
    keys = ["source", "attribute"]
    both = costs.join(vanilla, on=keys, how="left", suffix="_vanilla", maintain_order="left")
    times = [(pl.col(name) / pl.col(f"{name}_vanilla")).alias(f"{name}_times") for name in _PERPLEXITIES]
    groups = both.with_columns(times).group_by("source", "condition", maintain_order=True)
    return groups.agg(pl.col(*_COSTS, *(f"{name}_times" for name in _PERPLEXITIES)).mean())


def _pivot_costs(cost_rows: pl.DataFrame) -> pl.DataFrame:
    """One row per source, condition and attribute, with one column per cost."""
    cells = [
        pl.col("value").filter(metric=metric, output=output).mean().alias(name)
        for name, (metric, output) in _COSTS.items()
    ]
    return cost_rows.group_by("source", "condition", "attribute", maintain_order=True).agg(cells)


def option_table(
    option: str, source: str, values: Sequence[OptionValue], biases: pl.DataFrame, cost_rows: pl.DataFrame
) -> Exhibit:
    """Overall indirect bias of a source, its change and perplexity, by the values of an option."""
    keys = ["source", "condition", "attribute"]
    bias = select_overall(biases).filter(bias="indirect").sort("attribute")
    with_costs = bias.join(_pivot_costs(cost_rows), on=keys, how="left", maintain_order="left")
    rows = pl.concat([with_costs, with_costs.with_columns(attribute=pl.lit(MEAN))])
    cells = (*average_columns("corrected"), *average_columns("change"), pl.col(*_PERPLEXITIES).mean())
    means = rows.group_by(keys, maintain_order=True).agg(cells)
    settings = pl.DataFrame(values, schema=["mode", option, "condition"], orient="row")
    settings = settings.insert_column(0, pl.lit(source).alias("source"))
    table = settings.join(means, on=["source", "condition"], maintain_order="left_right").drop("condition")
    notes = (
        f"Indirect bias. {MEAN} is the mean over attributes, with an interval for independent estimates.",
        *(_STEPS if option == "sigma" else ()),
        HELD_OUT,
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


def select_overall(biases: pl.DataFrame) -> pl.DataFrame:
    """The overall bias of each attribute, from continuations."""
    return biases.filter(option=OVERALL, reads="continuation")


def describe_findings(table_5: Exhibit | None, sources: Sequence[str]) -> tuple[str, ...]:
    """For each model its indirect bias beyond chance, and the modes that lower it, if Table 5 is built."""
    lines: list[str] = []
    frame = table_5.frame if table_5 else pl.DataFrame(schema={"source": pl.String})
    for name in sources:
        own, *modes = frame.filter(source=name).to_dicts() or [{}]
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


QUESTIONS = ("bias", "readability", "coherence")
NAMES = {"biased": "bias", "readable": "readability", "coherent": "coherence"}
"""The questions of the built-in task `likert`, and their names in the paper."""
_ANSWERS = {name: name for name in ("participant", "mode", "question", "answer")}
_UNRATED = {"mean": None, "n": 0}


def read_reader_answers(path: Path) -> pl.DataFrame:
    """The columns ``participant``, ``mode``, ``question`` and ``answer`` of a file or a study, checked."""
    if path.is_dir():
        table = _read_answer_study(path)
    else:
        number = pl.col("answer").cast(pl.Float64, strict=False).fill_null(0)
        table = read_table(path, _ANSWERS).select(*_ANSWERS).drop_nulls().with_columns(number)
    invalid = table.filter(~pl.col("question").is_in(QUESTIONS) | ~pl.col("answer").is_between(1, 7))
    if table.is_empty() or invalid.height or BASELINE not in set(table["mode"]):
        raise InputError(
            f"{path} contains {table.height} answers, {invalid.height} of them invalid",
            expected=f"mode {BASELINE} and others; question {', '.join(QUESTIONS)}; answer from 1 to 7",
            fix="rename the columns or values",
        )
    return table


def table_6(answers: pl.DataFrame) -> Exhibit:
    """Means by mode and question, each compared with the baseline over participants who rated both."""
    cells = {question: _rate_modes(answers, question) for question in QUESTIONS}
    rows = [
        {"source": "study", "mode": mode, "question": question, **cells[question].get(mode, _UNRATED)}
        for mode in answers["mode"].unique(maintain_order=True)
        for question in QUESTIONS
    ]
    note = (
        "Paired t tests over participants. A lower rating of bias is better; the paper's p of .00 means "
        "below .001. Its text calls the embedding mode least biased with 4.25, which in the table is the "
        "classifier."
    )
    ours = pl.DataFrame(rows, infer_schema_length=None)
    return build_table("political", "table_6", "Readers' answers from 1 to 7", ours, (note,))


def _read_answer_study(path: Path) -> pl.DataFrame:
    rows = read_label_set(path).rows.filter(~pl.col("is_check")).drop_nulls(["method", "code"])
    question = pl.col("question").replace(NAMES)
    return rows.select(participant="annotator", mode="method", question=question, answer="code")


def _rate_modes(answers: pl.DataFrame, question: str) -> dict[str, dict[str, object]]:
    """The cells of each mode; empty without a rating of the baseline, since nothing can be compared."""
    own = answers.filter(question=question)
    columns = (own[name].to_list() for name in ("participant", "mode", "answer"))
    if BASELINE not in set(own["mode"]):
        return {}
    rows: dict[str, dict[str, object]] = {}
    for rating in compare_methods(*columns, baseline=BASELINE):
        row: dict[str, object] = estimate_cells("mean", rating.mean) | {"n": rating.mean.n}
        if gap := rating.difference:
            row |= {"p": gap.p, "difference": gap.estimate, "low": gap.low, "high": gap.high}
        rows[rating.method] = row
    return rows
