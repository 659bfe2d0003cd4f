"""The tables of options: which conditions they ask for, and a row worked by hand."""

import polars as pl
import pytest

from evenhand.audits.tradeoff import SweepCondition
from evenhand.mitigations.calibration import default_rate
from evenhand.papers.political.conditions import list_conditions, list_option_values
from evenhand.papers.political.tables import join_changes, option_table


def modes(*conditions):
    return {condition.name: condition for condition in conditions}


EMBEDDING = SweepCondition("embedding", "calibration:embedding")
CLASSIFIER = SweepCondition("classifier", "calibration:classifier", {"calibrator": "head"})
BOTH = modes(SweepCondition("vanilla"), EMBEDDING, CLASSIFIER)


def test_a_modes_own_value_stands_among_the_others():
    found = list_option_values("gamma", BOTH)
    assert [(one.value, one.condition) for one in found] == [
        (0.5, "classifier gamma 0.5"),
        (0.8, "classifier gamma 0.8"),
        (0.95, "classifier"),
        (1.0, "classifier gamma 1"),
    ]
    assert list_option_values("gamma", modes(SweepCondition("vanilla"))) == []


def test_more_divergence_comes_with_longer_steps():
    asked = {one.name: one for one in list_conditions(["sigma"], BOTH)}
    assert list(asked)[:3] == ["embedding sigma 0.05", "embedding sigma 0.1", "embedding sigma 0.2"]
    assert asked["classifier sigma 0.2"].options == {"calibrator": "head", "sigma": 0.2}
    assert "classifier" not in asked
    # The classifier's own are 0.05 and 0.03: four times the divergence, twice the step.
    assert default_rate("classifier", 0.2) == pytest.approx(0.06)
    # A row of the main tables is not written twice.
    main = modes(*BOTH.values(), SweepCondition("embedding sigma 0.4", "calibration:embedding"))
    assert "embedding sigma 0.4" not in {one.name for one in list_conditions(["sigma"], main)}


def rows(*values):
    """Overall indirect bias of (condition, attribute, corrected); intervals reach 0.01 to either side."""
    table = pl.DataFrame(values, schema=["condition", "attribute", "corrected"], orient="row")
    known = {"source": "m", "bias": "indirect", "option": "(overall)", "reads": "continuation"}
    return table.with_columns(
        *(pl.lit(value).alias(name) for name, value in known.items()),
        low=pl.col("corrected") - 0.01,
        high=pl.col("corrected") + 0.01,
    )


def test_a_row_and_the_mean_over_attributes():
    found = rows(("classifier", "topic", 0.01), ("classifier", "gender", 0.03))
    changed = rows(("classifier", "topic", -0.02), ("classifier", "gender", 0.0))
    changed = changed.rename({"corrected": "estimate"})
    price = pl.DataFrame(
        {
            "source": ["m"] * 2,
            "condition": ["classifier"] * 2,
            "attribute": ["topic", "gender"],
            "metric": ["ngrams"] * 2,
            "output": ["perplexity"] * 2,
            "value": [100.0, 200.0],
        }
    )
    values = list_option_values("gamma", modes(CLASSIFIER))
    table = option_table("gamma", "m", values, join_changes(found, changed), price).frame
    own = table.filter(pl.col("gamma") == 0.95)
    assert own["attribute"].to_list() == ["gender", "topic", "(mean)"]
    mean = own.row(2, named=True)
    # Means of 0.01 and 0.03, and of -0.02 and 0; half-widths sqrt(0.01^2 + 0.01^2) / 2.
    half = 0.01 * 2**0.5 / 2
    assert (mean["corrected"], mean["corrected_high"]) == (pytest.approx(0.02), pytest.approx(0.02 + half))
    assert (mean["change"], mean["change_low"]) == (pytest.approx(-0.01), pytest.approx(-0.01 - half))
    assert (mean["perplexity"], mean["perplexity_model"]) == (150.0, None)
