"""Tables ``gamma`` and ``sigma``: what an option of the modes does to bias and price.

The paper prints no discount gamma. Its targets of divergence, sigma 0.02 and 0.05, are printed, but its texts
became 2.2 times as perplexing, which is more than such a target allows: what a larger one does is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import polars as pl

from evenhand.audits.debias import MODES
from evenhand.audits.mitigation_sweep import SweepCondition
from evenhand.mitigations.calibration import SIGMA, CalibrationConfig, Mode
from evenhand.papers.political.bias_tables import CHANGE, HELD_OUT, average_estimates, overall_changes
from evenhand.papers.political.conditions import ModelConditions
from evenhand.papers.replication_pages import PaperTable

OPTION_VALUES: Final[Mapping[str, Mapping[Mode, tuple[float, ...]]]] = {
    "gamma": {"classifier": (0.5, 0.8, 1.0)},
    "sigma": {"embedding": (0.05, 0.1, 0.2, 0.4), "classifier": (0.02, 0.1, 0.2, 0.4)},
}
"""Option to mode to the values beside the mode's own."""
TITLES: Final = {
    "gamma": "Bias and perplexity by the discount of earlier tokens",
    "sigma": "Bias and perplexity by the divergence a token aims at",
}
_STEPS: Final = (
    "Adam's rate grows with the root of sigma, so that as many steps reach it. The paper's sigma is 0.02 for "
    "embedding and 0.05 for classifier.",
)
MEAN: Final = "(mean)"
"""The attribute of a row that averages over attributes."""


class OptionValue(NamedTuple):
    """A mode at one value of an option, and the condition that is."""

    mode: Mode
    value: float
    condition: str


def list_option_values(dial: str, modes: ModelConditions) -> list[OptionValue]:
    """The values of an option for every mode a model has, the mode's own among them."""
    known, found = modes.names, list[OptionValue]()
    for mode, values in OPTION_VALUES[dial].items():
        if mode in known:
            own = CalibrationConfig().gamma if dial == "gamma" else SIGMA[mode]
            others = [OptionValue(mode, at, f"{mode} {dial} {at:g}") for at in values]
            found += sorted([OptionValue(mode, own, mode), *others], key=lambda one: one.value)
    return found


def list_conditions(dials: Sequence[str], modes: ModelConditions) -> list[SweepCondition]:
    """What has to be written besides the modes themselves."""
    return [
        SweepCondition(one.condition, MODES[one.mode], {**modes.options(one.mode), dial: one.value})
        for dial in dials
        for one in list_option_values(dial, modes)
        if one.condition not in modes.names
    ]


def option_table(
    dial: str,
    of_source: Mapping[str, ModelConditions],
    found: pl.DataFrame,
    changed: pl.DataFrame,
    price: pl.DataFrame,
    judge: str,
) -> PaperTable:
    """Overall indirect bias, what changed of it, and perplexity, by the value of an option."""
    whole = overall_changes(found, changed).filter(pl.col("bias") == "indirect")
    rows = [
        row
        for source, modes in of_source.items()
        for one in list_option_values(dial, modes)
        for row in _rows(dial, source, one, whole, price)
    ]
    notes = (
        f"Indirect bias. {MEAN} is the mean over attributes, with the interval of independent estimates.",
        *(_STEPS if dial == "sigma" else ()),
        HELD_OUT,
        CHANGE,
        judge,
    )
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return PaperTable(id=dial, title=TITLES[dial], frame=frame, notes=notes, decimals=3)


def _rows(
    dial: str, source: str, one: OptionValue, whole: pl.DataFrame, price: pl.DataFrame
) -> list[dict[str, object]]:
    here = (pl.col("source") == source) & (pl.col("condition") == one.condition)
    of, paid = whole.filter(here).sort("attribute"), price.filter(here & (pl.col("output") == "perplexity"))
    named = {"source": source, "mode": one.mode, dial: one.value}
    changes = of.select("attribute", corrected="change", low="change_low", high="change_high")
    rows = []
    for attribute in (*of["attribute"], MEAN):
        mine = pl.lit(True) if attribute == MEAN else pl.col("attribute") == attribute
        row: dict[str, object] = {**named, "attribute": attribute}
        row["corrected"], row["corrected_low"], row["corrected_high"] = average_estimates(of.filter(mine))
        row["change"], row["change_low"], row["change_high"] = average_estimates(changes.filter(mine))
        for metric, column in (("ngrams", "perplexity"), ("model", "perplexity_model")):
            row[column] = paid.filter(mine & (pl.col("metric") == metric))["value"].mean()
        rows.append(row)
    return rows
