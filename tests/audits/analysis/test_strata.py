"""Gaps inside strata, worked by hand."""

import numpy as np
import polars as pl
import pytest

from evenhand.audits.analysis.group_analysis import (
    PromptStrata,
    compare_strata,
    describe_reversals,
    find_strata,
    read_stratum,
)
from evenhand.audits.analysis.group_comparison import GroupComparer
from evenhand.audits.analysis.quantities import Axis, Quantity, read_axes
from evenhand.core.records import ALL, REST, Group, Prompt
from evenhand.store.schemas import ADJUSTED

# The kidney-stone table, nine times over: (stratum, group, successes, of).
STONES = [("small", 0, 81, 87), ("small", 1, 234, 270), ("large", 0, 192, 263), ("large", 1, 55, 80)]


def _stones(times=9, baseline="b"):
    values = np.concatenate([np.repeat([1.0, 0.0], [k, n - k]) for _, _, k, n in STONES * times])
    codes = np.concatenate([np.full(n, side) for _, side, _, n in STONES * times])
    strata = np.concatenate([np.full(n, int(name == "small")) for name, _, _, n in STONES * times])
    rows = np.arange(values.size)
    axis = Axis("s", "ax", ("a", "b"), rows, codes, rows, baseline)
    found = [PromptStrata("s", "size", pl.Series(["large", "small"]).gather(strata))]
    return compare_strata(
        GroupComparer("model"), [axis], [Quantity("m", "cured", "share", values, True)], found
    )["strata"]


def test_the_gap_of_each_stratum_and_the_same_mix_for_both():
    # Inside: small 81/87 - 234/270, large 192/263 - 55/80; the mix is 357 small and 343 large of 700.
    rows = {row["stratum"]: row for row in _stones().to_dicts()}
    small, large = 81 / 87 - 234 / 270, 192 / 263 - 55 / 80
    assert rows["small"]["estimate"] == pytest.approx(small)
    assert rows["large"]["estimate"] == pytest.approx(large)
    assert rows[ADJUSTED]["estimate"] == pytest.approx((357 * small + 343 * large) / 700)
    assert rows["small"]["group_value"] == pytest.approx(81 / 87)
    assert (rows["small"]["n"], rows["small"]["n_baseline"]) == (9 * 87, 9 * 270)
    assert all(row["exploratory"] for row in rows.values())
    # Of the adjusted gap only the difference is known; the others would be those of the crude one.
    unknown = ("ratio", "ratio_low", "ratio_high", "effect_size", "cliffs_delta")
    assert {rows[ADJUSTED][name] for name in unknown} == {None}
    assert rows["small"]["family"] == "s / model / inside size"
    assert rows["small"]["family_size"] == 2
    assert (rows[ADJUSTED]["family"], rows[ADJUSTED]["family_size"]) == ("s / model / adjusted for size", 1)


def test_simpsons_paradox_is_a_warning():
    table = _stones()
    assert table.filter("disagrees")["stratum"].to_list() == [ADJUSTED]
    assert describe_reversals(table) == [
        "a against b, m cured: inside size the gap points the other way than over all texts: the mix of size "
        "makes it (see strata.parquet)"
    ]
    assert describe_reversals(_stones(times=1)) == []  # within noise


def test_against_all_the_adjusted_gap_is_scaled_as_the_gap_is():
    rest = {row["stratum"]: row for row in _stones(baseline=REST).to_dicts()}
    everyone = {row["stratum"]: row for row in _stones(baseline=ALL).to_dicts()}
    # Half of the 6300 texts are the group's own.
    assert everyone[ADJUSTED]["estimate"] == pytest.approx(rest[ADJUSTED]["estimate"] / 2)
    assert everyone[ADJUSTED]["p"] == rest[ADJUSTED]["p"]


def test_strata_are_numbered_once_for_all_gaps(monkeypatch):
    sizes, rank = [], pl.Series.rank
    monkeypatch.setattr(pl.Series, "rank", lambda self, *how: sizes.append(self.len()) or rank(self, *how))
    rows = np.arange(60)
    axis = Axis("s", "ax", ("a", "b", "c"), rows, rows % 3, rows)
    strata = PromptStrata("s", "size", pl.Series(["large", "small"]).gather(rows % 2))
    quantities = [Quantity("m", name, "share", (rows % 5 < at) * 1.0, True) for at, name in enumerate("xyz")]
    table = compare_strata(GroupComparer("model"), [axis], quantities, [strata])["strata"]
    assert table.filter(stratum=ADJUSTED).height == 9
    assert sizes == [60]


def _prompt(group, stratum, number):
    return Prompt.create(
        "s",
        f"text {number}",
        groups=(Group("ax", group),),
        cluster=f"c{number}",
        template_id=f"t{number % 2}",
        fills={"job": "nurse"} if number % 2 else {},
        meta={"context": stratum} if stratum else {},
    )


def test_strata_come_from_meta_template_or_fills():
    prompt = _prompt("a", "respect", 1)
    assert [read_stratum(prompt, by) for by in ("context", "template", "job", "other")] == [
        "respect",
        "t1",
        "nurse",
        None,
    ]
    prompts = {p.id: p for p in [_prompt("a", "y", 0), _prompt("b", "x", 1), _prompt("b", None, 2)]}
    (found,) = find_strata(list(prompts), prompts, {"s": ("context", "job"), "other": ("context",)})
    assert (found.by, found.labels.to_list()) == ("context", ["y", "x", None])


def test_a_group_that_a_stratum_lacks_is_null_with_a_reason():
    prompts = {p.id: p for n in range(8) for p in [_prompt("ab"[n % 2], "x" if n < 4 else "y", n)]}
    prompts |= {p.id: p for n in range(8, 12) for p in [_prompt("c", "x", n)]}
    ids = list(prompts)
    (axis,) = read_axes(ids, prompts, baselines={"ax": "a"})
    found = find_strata(ids, prompts, {"s": ("context",)})
    quantity = Quantity("m", "score", "mean", np.arange(12.0), True)
    table = compare_strata(GroupComparer("model"), [axis], [quantity], found)["strata"]
    row = table.filter((pl.col("group") == "c") & (pl.col("stratum") == "y")).to_dicts()[0]
    assert (row["estimate"], row["null_reason"], row["n"]) == (None, "no values", 0)
    assert table.height == 6


def test_no_strata_is_an_empty_table():
    tables = compare_strata(GroupComparer("model"), [], [], [])
    assert {name: table.height for name, table in tables.items()} == {"strata": 0, "strata_groups": 0}


def test_groups_are_estimated_inside_strata():
    rows = np.arange(8)
    axis = Axis("s", "ax", ("a", "b"), rows, rows % 2, rows)
    found = [PromptStrata("s", "half", pl.Series(["first", "second"]).gather(rows // 4))]
    share = Quantity("m", "negative", "share", np.array([1.0, 0, 1, 0, 0, 0, 1, 1]), True)
    table = compare_strata(GroupComparer("model"), [axis], [share], found)["strata_groups"]
    values = {(row["stratum"], row["group"]): row["value"] for row in table.to_dicts()}
    # first: a has 1, 1 and b has 0, 0; second: a has 0, 1 and b has 0, 1.
    assert values == {("first", "a"): 1, ("first", "b"): 0, ("second", "a"): 0.5, ("second", "b"): 0.5}
    assert table["by"].unique().to_list() == ["half"]
