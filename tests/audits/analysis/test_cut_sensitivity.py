"""Findings at other cuts, worked by hand."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from evenhand.audits.analysis.cut_sensitivity import CUT_GRID, cut_table, find_cut_shares
from evenhand.audits.analysis.group_comparison import GroupComparer
from evenhand.audits.analysis.quantities import Axis, Quantity
from evenhand.core.records import MetricInfo, OutputInfo
from evenhand.stats.corrections import benjamini_hochberg
from evenhand.store.schemas import COMPARISONS

LABELS = ("negative", "neutral", "positive")
TONE = OutputInfo("tone", "continuous", "warmer", low=-1.0, high=1.0, labels=LABELS, cuts=(-0.5, 0.5))
RISK = OutputInfo("risk", "continuous", "riskier", low=0.0, high=1.0, labels=("no", "yes"), cuts=(0.5,))
INFOS = {"m": MetricInfo("m", "1", (TONE, RISK), "", primary=("negative", "positive"))}
# Two groups of four texts, every text its own cluster.
VALUES = np.array([-0.9, -0.5, -0.1, 0.0, -0.1, 0.05, 0.2, np.nan])
AXIS = Axis("s", "ax", ("a", "b"), np.arange(8), np.repeat([0, 1], 4), np.arange(8), "b")


def _tone(values=VALUES):
    return Quantity("m", "tone", "mean", np.asarray(values, dtype=float), False)


def _own_shares(values):
    known = ~np.isnan(values)
    for name, chosen in (("negative", values <= -0.5), ("positive", values >= 0.5)):
        yield Quantity("m", name, "share", np.where(known, chosen, np.nan), True)


def _table(values=VALUES, axis=AXIS):
    comparer = GroupComparer("model")
    compared = pl.DataFrame(comparer.comparisons([axis], list(_own_shares(values))), schema=COMPARISONS)
    return cut_table(comparer, [axis], INFOS, [_tone(values)], compared), compared


def test_a_label_that_begins_at_a_cut_has_a_share_on_each_side():
    risk = Quantity("m", "risk", "mean", np.zeros(8), False)
    found = find_cut_shares(INFOS, [_tone(), risk])
    # The primary ones first; of one cut only the label above it.
    assert [(share.output, share.own, share.below) for share in found] == [
        ("negative", -0.5, True),
        ("positive", 0.5, False),
        ("yes", 0.5, False),
    ]


def test_the_grid_begins_in_the_middle_of_the_range():
    table, _ = _table()
    cuts = table.filter(group="a", output="negative")["cut"].to_list()
    assert cuts == [-cut for cut in CUT_GRID]


def test_a_cut_of_its_own_joins_the_grid():
    own = {"m": replace(INFOS["m"], outputs=(replace(TONE, cuts=(-0.33, 0.5)), RISK))}
    table = cut_table(GroupComparer("model"), [AXIS], own, [_tone()], _table()[1])
    cuts = table.filter(group="a", output="negative")["cut"].to_list()
    assert -0.33 in cuts
    assert cuts == sorted(cuts, key=abs)
    assert len(cuts) == len(CUT_GRID) + 1


def test_the_share_at_each_cut_by_hand():
    table, _ = _table()
    a = {row["cut"]: row for row in table.filter(group="a", output="negative").iter_rows(named=True)}
    # Of a: -0.9, -0.5, -0.1, 0.0. Of b: -0.1, 0.05, 0.2 (one is null).
    assert (a[-0.05]["value"], a[-0.05]["baseline_value"]) == pytest.approx((3 / 4, 1 / 3))
    assert a[-0.1]["estimate"] == pytest.approx(3 / 4 - 1 / 3)
    assert (a[-0.5]["value"], a[-0.5]["baseline_value"]) == (0.5, 0.0)
    assert a[-0.75]["value"] == 0.25
    assert [cut for cut, row in a.items() if row["own"]] == [-0.5]


def test_the_baseline_has_a_share_and_no_gap():
    table, _ = _table()
    row = table.filter(group="b", output="positive", cut=0.2).row(0, named=True)
    assert row["value"] == pytest.approx(1 / 3)
    assert (row["baseline"], row["estimate"], row["p_adjusted"]) == (None, None, None)


def test_at_the_own_cut_the_numbers_are_those_of_the_run():
    rng = np.random.default_rng(0)
    axis = Axis("s", "ax", ("a", "b", "c"), np.arange(240), np.arange(240) % 3, np.arange(240) // 2, "b")
    values = np.clip(rng.normal(axis.codes * 0.4 - 0.4, 0.4), -1, 1)
    table, compared = _table(values, axis)
    keys = ["axis", "group", "metric", "output"]
    numbers = ["estimate", "low", "high", "p", "p_adjusted"]
    own = table.filter(pl.col("own") & pl.col("estimate").is_not_null()).sort(keys).select(keys + numbers)
    assert own.equals(compared.sort(keys).select(keys + numbers))


def test_other_cuts_are_corrected_in_the_family_of_the_run():
    rng = np.random.default_rng(1)
    axis = Axis("s", "ax", ("a", "b", "c"), np.arange(240), np.arange(240) % 3, np.arange(240), "b")
    values = np.clip(rng.normal(axis.codes * 0.3 - 0.3, 0.5), -1, 1)
    table, compared = _table(values, axis)
    at = table.filter(pl.col("p").is_not_null(), output="negative", cut=-0.1)
    others = compared.filter(output="positive")["p"].to_list()
    expected = benjamini_hochberg([*at["p"].to_list(), *others])[: at.height]
    assert at["p_adjusted"].to_list() == pytest.approx(expected)


def test_too_much_work_leaves_shares_out(monkeypatch):
    monkeypatch.setattr("evenhand.audits.analysis.cut_sensitivity.MOST_WORK", 10 * 8 * 2)
    table, _ = _table()
    assert table["output"].unique().to_list() == ["negative"]


def test_nothing_to_compare_still_has_shares():
    alone = Axis("s", "ax", ("a",), np.arange(8), np.zeros(8, dtype=np.int64), np.arange(8))
    table, _ = _table(axis=alone)
    assert table.filter(output="negative", cut=-0.5)["value"].to_list() == pytest.approx([2 / 7])
    assert table["estimate"].null_count() == table.height


def test_all_null_has_null_shares():
    table, _ = _table(values=np.full(8, np.nan))
    assert table["value"].null_count() == table.height
