"""Distances of base rates from scored texts: which texts are read together, and what the table says."""

import numpy as np
import polars as pl
import pytest

from evenhand.audits.analysis.base_rate_distances import (
    DistanceRequest,
    JudgedTexts,
    distance_changes,
    distance_table,
)
from evenhand.audits.analysis.group_comparison import GroupComparer
from evenhand.audits.analysis.quantities import Quantity
from evenhand.core.records import Group, Prompt
from evenhand.stats.base_rates import OVERALL, base_rate_distances

WANTED = DistanceRequest({"ideology": ("ideology",)}, ("liberal", "conservative"))


def prompt(suite, option, keyword, kind):
    return Prompt.create(
        suite,
        f"About {keyword} ({kind})",
        groups=(Group("topic", option),),
        cluster=keyword,
        meta={"kind": kind},
    )


def made(kinds, suite="political", lean=0.3):
    """Two options of six keywords, four texts each; ``red`` lies ``lean`` higher under every kind."""
    rng = np.random.default_rng(0)
    rows = [
        (prompt(suite, option, f"{option}{number}", kind), 0.3 + lean * (option == "red"))
        for kind in kinds
        for option in ("blue", "red")
        for number in range(6)
        for _ in range(4)
    ]
    prompts = {given.id: given for given, _ in rows}
    values = np.array([value for _, value in rows]) + rng.uniform(-0.1, 0.1, len(rows))
    return [given.id for given, _ in rows], prompts, values


def table(kinds, *, wanted=None, metric="ideology", suite="political", lean=0.3):
    ids, prompts, values = made(kinds, suite, lean)
    quantity = Quantity(metric, "ideology", "mean", values, True)
    return distance_table(GroupComparer("m"), wanted or {suite: WANTED}, ids, prompts, [quantity])


def test_indirect_prompts_give_indirect_bias_per_option_and_overall():
    found = table(["indirect"])
    assert found["option"].to_list() == ["blue", "red", OVERALL]
    assert set(found["bias"]) == {"indirect"}
    red = found.row(1, named=True)
    # Two equal halves about 0.3 apart: each lies 0.3 / sqrt(2) from both together, and leans by half of it.
    assert red["estimate"] == pytest.approx(0.3 / np.sqrt(2), abs=0.03)
    assert red["direction"] == pytest.approx(0.15, abs=0.02)
    assert (red["n"], red["n_keywords"], red["low"] > 0, red["p"] < 0.05) == (24, 6, True, True)
    assert red["p_adjusted"] >= red["p"]
    assert found.row(2, named=True)["direction"] is None


def test_it_is_what_the_statistics_say_without_missing_values():
    ids, prompts, values = made(["indirect"])
    values[::5] = np.nan
    quantity = Quantity("ideology", "ideology", "mean", values, True)
    found = distance_table(GroupComparer("m"), {"political": WANTED}, ids, prompts, [quantity])
    known = np.isfinite(values)
    options = np.array([prompts[at].groups[0].name for at in ids])
    words = np.array([prompts[at].cluster for at in ids])
    direct = base_rate_distances(
        [(values[known], options[known], words[known])], rng=0, permutations=20, resamples=20
    )
    assert found["estimate"].to_list() == pytest.approx([direct[name].estimate for name in found["option"]])
    assert found["n"].to_list()[:2] == [int((options[known] == name).sum()) for name in ("blue", "red")]


def test_both_sides_give_direct_bias_and_one_side_none():
    assert set(table(["liberal", "conservative"])["bias"]) == {"direct"}
    assert set(table(["indirect", "liberal", "conservative"])["bias"]) == {"indirect", "direct"}
    assert table(["liberal"]).is_empty()


def test_suites_of_one_family_are_read_together():
    ids, prompts, values = [], {}, []
    for side in ("liberal", "conservative"):
        more, of_side, numbers = made([side], f"political:{side}")
        ids, prompts, values = [*ids, *more], {**prompts, **of_side}, [*values, *numbers]
    wanted = {"political:liberal": WANTED, "political:conservative": WANTED}
    quantity = Quantity("ideology", "ideology", "mean", np.array(values), True)
    found = distance_table(GroupComparer("m"), wanted, ids, prompts, [quantity])
    assert set(found["suite"]) == {"political"}
    assert set(found["bias"]) == {"direct"}


def test_a_variant_of_the_metric_counts_and_other_metrics_and_suites_do_not():
    assert set(table(["indirect"], metric="ideology=./judge")["metric"]) == {"ideology=./judge"}
    assert table(["indirect"], metric="sentiment").is_empty()
    assert table(["indirect"], wanted={"other": WANTED}).is_empty()


def test_no_value_at_all_is_an_empty_table():
    ids, prompts, values = made(["indirect"])
    quantity = Quantity("ideology", "ideology", "mean", np.full_like(values, np.nan), True)
    found = distance_table(GroupComparer("m"), {"political": WANTED}, ids, prompts, [quantity])
    assert found.is_empty()
    assert found.schema["estimate"] == pl.Float64()


def test_changes_of_every_bias_that_both_runs_have():
    ids, prompts, leaning = made(["indirect", "liberal", "conservative"])
    _, _, even = made(["indirect", "liberal", "conservative"], lean=0.0)
    even[0] = np.nan  # a text without a score is left out
    found = distance_changes(
        JudgedTexts(ids, leaning), JudgedTexts(ids, even), WANTED, prompts, seed=0, level=0.95
    )
    assert found.select("attribute", "bias", "option").rows() == [
        ("topic", bias, option) for bias in ("direct", "indirect") for option in (OVERALL, "blue", "red")
    ]
    whole = found.filter((pl.col("bias") == "indirect") & (pl.col("option") == OVERALL)).row(0, named=True)
    one, two = (
        distance_table(GroupComparer("m"), {"political": WANTED}, ids, prompts, [quantity])
        .filter((pl.col("bias") == "indirect") & (pl.col("option") == OVERALL))["corrected"]
        .item()
        for quantity in (Quantity("ideology", "ideology", "mean", values, True) for values in (leaning, even))
    )
    assert whole["estimate"] == pytest.approx(two - one, abs=0.01)
    assert whole["high"] < 0
    only = distance_changes(
        JudgedTexts(ids[:48], leaning[:48]), JudgedTexts(ids, even), WANTED, prompts, seed=0, level=0.95
    )
    assert set(only["bias"]) == {"indirect"}
